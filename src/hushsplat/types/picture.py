"""A finished picture: what a renderer that blends gives back."""

from __future__ import annotations

from dataclasses import dataclass

from jaxtyping import Float32
from numpy import ndarray as Array


@dataclass(frozen=True)
class Picture:
    """Blended colour, and what is known beside it."""

    color: Float32[Array, "h w 3"]  # linear in the scene's own colour space, background included; may exceed 1
    alpha: Float32[Array, "h w"]  # 0..1, what the Gaussians cover: 1 - transmittance
    depth: Float32[Array, "h w"]  # camera-space z, world units, mean by blending weight; 0 where nothing was hit
    variance: Float32[Array, "h w 3"] | None = None  # of the colour of one stochastic sample; `exact` knows it
