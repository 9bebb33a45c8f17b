"""SSIM, as the field computes it."""

from __future__ import annotations

import numpy as np
from jaxtyping import Float32
from numpy import ndarray as Array

from hushsplat.types.errors import MeasureError

# Wang et al. 2004, and every paper since: a Gaussian window of 11 px, the constants for values 0..1.
WINDOW_PX, SIGMA_PX = 11, 1.5
C1, C2 = 0.01**2, 0.03**2


def ssim(shown: Float32[Array, "h w 3"], expected: Float32[Array, "h w 3"]) -> float:
    """Structural similarity of values 0..1, the mean over channels and all places where the window fits."""
    if min(shown.shape[:2]) < WINDOW_PX:
        raise MeasureError(
            f"SSIM needs pictures of at least {WINDOW_PX}×{WINDOW_PX} px, got {shown.shape[1]}×{shown.shape[0]}; "
            "draw larger ones, or measure without ssim."
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
