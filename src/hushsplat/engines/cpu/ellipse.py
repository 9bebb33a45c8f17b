"""The filter's kernel in each pixel, for looking at; the engine computes the same where it filters."""

from __future__ import annotations

import numpy as np
from jaxtyping import Float32
from numpy import ndarray as Array

ZERO_SHOT_SCALE_PX = 2.0  # paper, "Zero-Shot Transfer": a_x = a_y
LARGEST_VIEW = 1e4  # docs/denoiser.md: every V is limited to this


def filter_ellipse(
    neural_view: Float32[Array, "h w 4"] | None,  # None: zero-shot
    size: tuple[int, int],  # height, width
) -> Float32[Array, "h w 4"]:
    """Major and minor axis in px, cosine and sine of the major one's angle (docs/denoiser.md, "Filter")."""
    if neural_view is None:
        scale_x = scale_y = np.full(size, ZERO_SHOT_SCALE_PX)
        correlation = np.zeros(size)
    else:
        finite = np.where(np.isfinite(neural_view), neural_view, 0).clip(-LARGEST_VIEW, LARGEST_VIEW)
        up, right, forward, blur = np.moveaxis(_binomial_blur(finite.astype(np.float64)), -1, 0)
        floor = np.logaddexp(0, blur)  # softplus
        scale_x, scale_y, correlation = np.maximum(right, 0) + floor, np.maximum(up, 0) + floor, np.tanh(forward)
    covariance = correlation * np.sqrt(scale_x * scale_y + 1e-8)
    mean, half_difference = (scale_x + scale_y) / 2, (scale_x - scale_y) / 2
    radius = np.sqrt(half_difference**2 + covariance**2 + 1e-12) - 1e-6
    minor = np.maximum(mean - radius, 1e-4)
    major = np.maximum(mean + radius, minor)
    angle = np.arctan2(covariance, half_difference + mean / 32) / 2
    return np.stack([major, minor, np.cos(angle), np.sin(angle)], axis=-1).astype(np.float32)


def _binomial_blur(values: Array) -> Array:
    """[1 2 1]ᵀ[1 2 1] / 16, edges repeated."""
    padded = np.pad(values, ((1, 1), (1, 1), (0, 0)), mode="edge")
    rows = (padded[:-2] + 2 * padded[1:-1] + padded[2:]) / 4
    return (rows[:, :-2] + 2 * rows[:, 1:-1] + rows[:, 2:]) / 4
