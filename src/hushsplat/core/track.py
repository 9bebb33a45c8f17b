"""A camera track: one set of intrinsics, poses over time."""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np
from jaxtyping import Float64
from numpy import ndarray as Array

from hushsplat.core.camera import Camera
from hushsplat.core.errors import TrackError


@dataclass(frozen=True)
class Track:
    """Poses of one camera over time; `camera(i)` is the i-th frame."""

    width: int
    height: int
    fx: float
    fy: float
    cx: float
    cy: float
    times_s: Float64[Array, " n"]  # strictly increasing seconds
    world_from_camera: Float64[Array, "n 4 4"]

    def __post_init__(self) -> None:
        n = len(self.times_s)
        if n == 0 or self.world_from_camera.shape != (n, 4, 4):
            raise TrackError(f"a track needs as many poses as times, got {len(self.world_from_camera)} and {n}.")
        if not np.isfinite(self.times_s).all() or (np.diff(self.times_s) <= 0).any():
            raise TrackError("the times of a track must be finite and strictly increasing.")
        for index in range(n):
            self.camera(index)

    def __len__(self) -> int:
        return len(self.times_s)

    def camera(self, index: int) -> Camera:
        """The camera of one frame."""
        pose = self.world_from_camera[index]
        return Camera(self.width, self.height, self.fx, self.fy, self.cx, self.cy, pose)

    def resized(self, width: int, height: int | None = None) -> Track:
        """The same track at another picture size."""
        small = self.camera(0).resized(width, height)
        return replace(
            self, width=small.width, height=small.height, fx=small.fx, fy=small.fy, cx=small.cx, cy=small.cy
        )
