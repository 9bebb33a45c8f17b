"""The stream between renderers and denoisers: what a stochastic renderer says about each pixel of a frame."""

from __future__ import annotations

from dataclasses import dataclass

from jaxtyping import Float32, Int32
from numpy import ndarray as Array


@dataclass(frozen=True)
class VisibilitySample:
    """Which primitive won each pixel's depth test, and how deep; one plane per sample."""

    primitive_id: Int32[Array, "samples h w"]  # index into the Gaussians, -1 where nothing was hit
    depth: Float32[Array, "samples h w"]  # camera-space z, world units; 0 where nothing was hit


@dataclass(frozen=True)
class Observation:
    """One noisy frame as a denoiser sees it: the mean over the frame's samples."""

    color: Float32[Array, "h w 3"]  # linear in the scene's own colour space, background filled in
    depth: Float32[Array, "h w"]  # camera-space z, mean over the samples that hit; 0 where none did
    alpha: Float32[Array, "h w"]  # share of the samples that hit anything
    neural_view: Float32[Array, "h w 4"] | None = None  # V0..V3 of the payload; None for a scene without payload
