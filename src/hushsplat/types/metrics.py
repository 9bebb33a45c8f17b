"""PSNR: the one definition that training, evaluation and benchmarks use."""

from __future__ import annotations

import numpy as np
from jaxtyping import Float32
from numpy import ndarray as Array

BEST_DB = 100.0  # of equal pictures: infinity has no place in a mean nor in JSON


def psnr(color: Float32[Array, "h w 3"], target: Float32[Array, "h w 3"]) -> float:
    """Peak signal-to-noise ratio in dB over all pixels and channels, of values clamped to 0..1; at most BEST_DB."""
    difference = np.clip(color, 0, 1).astype(np.float64) - np.clip(target, 0, 1)
    error = float(np.mean(difference * difference))
    return min(-10 * float(np.log10(error)), BEST_DB) if error > 0 else BEST_DB
