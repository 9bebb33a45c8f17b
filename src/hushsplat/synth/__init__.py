"""Scenes made by code."""
