"""Captures: photographs with poses, from COLMAP, transforms.json, LLFF or a camera list."""
