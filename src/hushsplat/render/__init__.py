"""Gaussians and a camera in, pictures out."""
