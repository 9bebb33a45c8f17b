"""Gaussians and a camera in, pictures out."""

from hushsplat.render.decode import decode, decode_channels, decode_color
from hushsplat.render.engine import RenderOptions
from hushsplat.render.methods import METHODS, render
from hushsplat.render.ordered import render_ordered
from hushsplat.render.sampling import SAMPLERS
from hushsplat.render.sorted import render_sorted
from hushsplat.render.stochastic import sample_visibility

__all__ = [
    "METHODS",
    "SAMPLERS",
    "RenderOptions",
    "decode",
    "decode_channels",
    "decode_color",
    "render",
    "render_ordered",
    "render_sorted",
    "sample_visibility",
]
