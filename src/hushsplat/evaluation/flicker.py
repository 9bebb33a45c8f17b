"""Flicker: how much the error of a picture changes from one frame to the next. Ours; defined in docs/measuring.md."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from jaxtyping import Bool, Float32, Int64
from numpy import ndarray as Array

from hushsplat.types.camera import Camera

SAME_SURFACE = 0.05  # relative depth difference: what differs by more was hidden in the frame before
LEVELS = 255.0  # the unit: steps of an 8-bit display


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
    """Root mean square of the change of the error, over √2 and in 8-bit levels; None if no pixel was seen before.

    White noise of standard deviation σ gives 255 σ, an error that stays with its surface gives 0.
    """
    if not warp.seen.any():
        return None
    change = (error - previous_error.reshape(-1, 3)[warp.source])[warp.seen]
    return LEVELS * float(np.sqrt(np.mean(change.astype(np.float64) ** 2) / 2))
