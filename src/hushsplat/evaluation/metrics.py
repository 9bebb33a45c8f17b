"""SSIM as the field computes it, gradient energy, and what changes from one frame to the next: tPSNR and flicker."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from jaxtyping import Bool, Float32, Int64
from numpy import ndarray as Array

from hushsplat.types.camera import Camera
from hushsplat.types.errors import EvaluationError
from hushsplat.types.metrics import BEST_DB

# Wang et al. 2004, and every paper since: a Gaussian window of 11 px, the constants for values 0..1.
WINDOW_PX, SIGMA_PX = 11, 1.5
C1, C2 = 0.01**2, 0.03**2
SAME_SURFACE = 0.05  # relative depth difference: what differs by more was hidden in the frame before
LEVELS = 255.0  # the unit: steps of an 8-bit display


def ssim(shown: Float32[Array, "h w 3"], expected: Float32[Array, "h w 3"]) -> float:
    """Structural similarity of values 0..1, the mean over channels and all places where the window fits."""
    if min(shown.shape[:2]) < WINDOW_PX:
        raise EvaluationError(
            f"SSIM needs pictures of at least {WINDOW_PX}×{WINDOW_PX} px, got {shown.shape[1]}×{shown.shape[0]}; "
            "draw larger ones, or evaluate without ssim."
        )
    # Variances are differences of means of squares: values about 0 keep them exact in float32.
    x, y = (np.clip(picture, 0, 1) - np.float32(0.5) for picture in (shown, expected))
    mean_x, mean_y = _windowed(x), _windowed(y)
    variances = _windowed(x * x + y * y) - mean_x * mean_x - mean_y * mean_y  # only their sum is needed
    covariance = _windowed(x * y) - mean_x * mean_y
    mean_x, mean_y = mean_x + np.float32(0.5), mean_y + np.float32(0.5)
    structure = (2 * covariance + C2) / (variances + C2)
    light = (2 * mean_x * mean_y + C1) / (mean_x * mean_x + mean_y * mean_y + C1)
    return float(np.mean(structure * light, dtype=np.float64))


def _windowed(values: Float32[Array, "h w c"]) -> Float32[Array, "h2 w2 c"]:
    """Gaussian-weighted means, only where the whole window lies in the picture; one axis after the other."""
    offsets = np.arange(WINDOW_PX) - WINDOW_PX // 2
    weights = np.exp(-0.5 * (offsets / SIGMA_PX) ** 2)
    weights = (weights / weights.sum()).astype(np.float32)
    for axis in (0, 1):
        length = values.shape[axis] - WINDOW_PX + 1
        values = sum(
            weight * (values[start : start + length] if axis == 0 else values[:, start : start + length])
            for start, weight in enumerate(weights)
        )
    return values


def gradient_energy(shown: Float32[Array, "h w 3"], expected: Float32[Array, "h w 3"]) -> float | None:
    """Squared differences of neighbouring pixels, in percent of the expected picture's: blur has less, noise more.

    None if the expected picture has none.
    """
    energies = []
    for picture in (shown, expected):
        values = np.clip(picture, 0, 1).astype(np.float64)
        energies.append(sum(float(np.sum(np.diff(values, axis=axis) ** 2)) for axis in (0, 1)))
    return 100 * energies[0] / energies[1] if energies[1] > 0 else None


def tpsnr(error: Float32[Array, "h w 3"], previous_error: Float32[Array, "h w 3"]) -> float:
    """PSNR of the difference of two frames, pixel by pixel, against that of the expected ones; at most BEST_DB."""
    change = error.astype(np.float64) - previous_error
    power = float(np.mean(change * change))
    return min(-10 * float(np.log10(power)), BEST_DB) if power > 0 else BEST_DB


@dataclass(frozen=True)
class Warp:
    """Where each pixel was one frame before."""

    source: Int64[Array, "h w"]  # index of the pixel in the frame before, row by row; 0 where it was not there
    seen: Bool[Array, "h w"]  # it was in the picture, and nothing was in front of it

    @staticmethod
    def still(height: int, width: int) -> Warp:
        """Of a camera that stands still."""
        return Warp(np.arange(height * width).reshape(height, width), np.ones((height, width), dtype=bool))

    @staticmethod
    def between(
        previous: Camera, current: Camera, previous_depth: Float32[Array, "h w"], depth: Float32[Array, "h w"]
    ) -> Warp:
        """By the depths of the reference; the nearest pixel, because a mean of several would hide noise."""
        height, width = depth.shape
        x, y = np.meshgrid(np.arange(width) + 0.5, np.arange(height) + 0.5)
        rays = np.stack([(x - current.cx) / current.fx, (y - current.cy) / current.fy, np.ones_like(x)], axis=-1)
        moved = previous.camera_from_world @ current.world_from_camera
        points = (rays * depth[..., None]) @ moved[:3, :3].T + moved[:3, 3]
        z = points[..., 2]
        ahead = (depth > 0) & (z > 1e-6)
        safe = np.where(ahead, z, 1.0)
        before_x = np.floor(np.where(ahead, previous.fx * points[..., 0] / safe + previous.cx, -1.0))
        before_y = np.floor(np.where(ahead, previous.fy * points[..., 1] / safe + previous.cy, -1.0))
        inside = ahead & (before_x >= 0) & (before_x < width) & (before_y >= 0) & (before_y < height)
        source = np.where(inside, before_y * width + before_x, 0).astype(np.int64)
        was = previous_depth.reshape(-1)[source]
        same = np.abs(was - z) <= SAME_SURFACE * np.maximum(was, z)
        return Warp(source, inside & same & (was > 0))


def flicker(
    error: Float32[Array, "h w 3"],  # shown - expected, of this frame
    previous_error: Float32[Array, "h w 3"],  # and of the one before
    warp: Warp,
) -> float | None:
    """Flicker (ours, docs/evaluation.md): RMS of the change of the error, over √2, in 8-bit levels.

    White noise of standard deviation σ gives 255 σ, an error that stays with its surface gives 0. None if no pixel was
    visible before.
    """
    if not warp.seen.any():
        return None
    change = (error - previous_error.reshape(-1, 3)[warp.source])[warp.seen]
    return LEVELS * float(np.sqrt(np.mean(change.astype(np.float64) ** 2) / 2))
