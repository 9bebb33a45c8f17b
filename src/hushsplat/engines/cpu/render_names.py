"""Gaussians and a camera in, pictures out."""

from hushsplat.engines.cpu.decode import decode, decode_channels, decode_color
from hushsplat.engines.cpu.methods import METHODS, render
from hushsplat.engines.cpu.ordered import render_ordered
from hushsplat.engines.cpu.prepare import RenderOptions
from hushsplat.engines.cpu.sorted import render_sorted
from hushsplat.engines.cpu.stochastic import sample_visibility
from hushsplat.spec.sampling import SAMPLERS

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
