"""The stream between renderers and denoisers: what a stochastic renderer knows about each pixel of a frame."""

from __future__ import annotations

from dataclasses import dataclass

from jaxtyping import Float32, Int32
from numpy import ndarray as Array

from hushsplat.types.image import Image


@dataclass(frozen=True)
class Visibility:
    """Which primitive won each pixel's depth test, and how deep; one plane per sample.

    Attributes:
        primitive_id: [samples, h, w], index into the Gaussians, -1 where nothing was hit.
        depth: [samples, h, w], camera-space z in world units; 0 where nothing was hit.
    """

    primitive_id: Int32[Array, "samples h w"]
    depth: Float32[Array, "samples h w"]

    def numpy(self) -> Visibility:
        """Itself: its arrays are numpy's already."""
        return self


@dataclass(frozen=True)
class Observation:
    """One noisy frame as a denoiser sees it: the mean over the frame's samples.

    Attributes:
        color: [h, w, 3], linear in the scene's own colour space, background filled in.
        depth: [h, w], camera-space z, mean over the samples that hit; 0 where none did.
        alpha: [h, w], share of the samples that hit anything.
        neural_view: [h, w, 4], V0..V3 of the payload; None for a scene without payload.
    """

    color: Float32[Array, "h w 3"]
    depth: Float32[Array, "h w"]
    alpha: Float32[Array, "h w"]
    neural_view: Float32[Array, "h w 4"] | None = None

    def numpy(self) -> Observation:
        """Itself: its arrays are numpy's already."""
        return self

    def image(self) -> Image:
        """The noisy frame itself as a picture."""
        return Image(self.color, self.alpha, self.depth)
