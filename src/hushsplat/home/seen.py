"""What one small picture shows, in numbers."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from jaxtyping import Bool, Float, Float32, Float64, Int
from numpy import ndarray as Array

SOLID = 4.0  # what is larger than so many times the median is fog: a picture may cut it


@dataclass(frozen=True)
class Seen:
    """What a candidate shows, in numbers."""

    eye: Float64[Array, " 3"]
    target: Float64[Array, " 3"]
    hit: Bool[Array, "h w"]
    depth: Float32[Array, "h w"]
    size_px: Float[Array, "h w"]  # infinite where nothing was hit
    visible: float  # share of the subject that is in the picture and not hidden
    unhidden: float  # of the part of it that is before or about the target, the share that is not hidden

    @property
    def distance(self) -> float:
        """From eye to target."""
        return float(np.linalg.norm(self.target - self.eye))

    @property
    def direction(self) -> Float64[Array, " 3"]:
        """From target to eye."""
        return (self.eye - self.target) / self.distance

    @property
    def usual_px(self) -> float:
        """Median size of what is hit."""
        return float(np.median(self.size_px[self.hit])) if self.hit.any() else np.inf

    @property
    def solid(self) -> Bool[Array, "h w"]:
        """Where something is hit that is not fog."""
        return self.hit & (self.size_px <= SOLID * self.usual_px)

    def reaches_target(self) -> float:
        """The share of the middle of the picture that nothing hides before half of the way."""
        h, w = self.hit.shape
        middle = np.s_[h // 2 - h // 10 : h // 2 + h // 10 + 1, w // 2 - w // 12 : w // 2 + w // 12 + 1]
        return float(1 - (self.hit[middle] & (self.depth[middle] < 0.5 * self.distance)).mean())


def border(mask: Bool[Array, "h w"]) -> float:
    """The share of pixels near the border of the picture that are set."""
    rows, columns = (max(1, side // 16) for side in mask.shape)
    inner = np.zeros(mask.shape, bool)
    inner[rows:-rows, columns:-columns] = True
    return float(mask[~inner].mean())


def extent(counts: Int[Array, " n"]) -> tuple[float, float]:
    """First and last pixel of what is hit, without the outermost 0.3 %: single Gaussians far off."""
    total = np.cumsum(counts) / counts.sum()
    return float(np.searchsorted(total, 0.003)), float(np.searchsorted(total, 0.997) + 1)
