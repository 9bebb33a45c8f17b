"""A picture, drawn or denoised, with whatever its maker knows beside the colour."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np
from jaxtyping import Float32
from numpy import ndarray as Array


@dataclass(frozen=True)
class Image:
    """Colour, and where known alpha, depth, variance and the denoiser's views.

    Attributes:
        color: [h, w, 3], linear in the scene's own colour space, background included; may exceed 1.
        alpha: [h, w], 0..1: coverage by Gaussians, 1 - transmittance. None for a denoised picture.
        depth: [h, w], camera-space z in world units, mean by blending weight; 0 where nothing was hit.
        variance: [h, w, 3], of the colour of one stochastic sample; only `exact` knows it.
        views: intermediate results of a denoiser by the names in `hushsplat.spec.views.VIEWS`; None unless asked for.
    """

    color: Float32[Array, "h w 3"]
    alpha: Float32[Array, "h w"] | None = None
    depth: Float32[Array, "h w"] | None = None
    variance: Float32[Array, "h w 3"] | None = None
    views: Mapping[str, Float32[Array, "h w _"]] | None = None

    def numpy(self) -> Image:
        """Itself: its arrays are numpy's already (images of other engines are read back by this call)."""
        return self

    @staticmethod
    def stacked(bands: Sequence[Image]) -> Image:
        """One image of several with the same columns, from top to bottom."""

        def joined(name: str) -> Array | None:
            parts = [getattr(band, name) for band in bands]
            return None if any(part is None for part in parts) else np.concatenate(parts)

        color = np.concatenate([band.color for band in bands])
        return Image(color, joined("alpha"), joined("depth"), joined("variance"))
