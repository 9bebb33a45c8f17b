"""The stream between renderers and denoisers: what a stochastic renderer knows about each pixel of a frame."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
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

    @staticmethod
    def mean(before: Observation, after: Observation, samples_before: int, samples_after: int) -> Observation:
        """One frame of two that saw the same from so many samples each."""
        share = np.float32(samples_after / (samples_before + samples_after))

        def mixed(first: Array, second: Array) -> Array:
            return first + (second - first) * share

        alpha = mixed(before.alpha, after.alpha)
        hits = mixed(before.depth * before.alpha, after.depth * after.alpha)
        view = None
        if before.neural_view is not None and after.neural_view is not None:
            view = mixed(before.neural_view, after.neural_view)
        depth = np.divide(hits, alpha, out=np.zeros_like(hits), where=alpha > 0)
        return Observation(mixed(before.color, after.color), depth, alpha, view)

    @staticmethod
    def stacked(bands: Sequence[Observation]) -> Observation:
        """One frame of several with the same columns, from top to bottom."""
        color, depth, alpha = (
            np.concatenate([getattr(band, name) for band in bands]) for name in ("color", "depth", "alpha")
        )
        views = [band.neural_view for band in bands if band.neural_view is not None]
        return Observation(color, depth, alpha, np.concatenate(views) if views else None)

    def image(self) -> Image:
        """The noisy frame itself as a picture."""
        return Image(self.color, self.alpha, self.depth)
