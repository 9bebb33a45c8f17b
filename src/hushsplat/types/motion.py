"""Camera motion between two frames."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from jaxtyping import Float64
from numpy import ndarray as Array

from hushsplat.types.camera import Camera


@dataclass(frozen=True)
class CameraMotion:
    """Previous-from-current, less the identity: small motions keep all their digits in float32."""

    rotation_change: Float64[Array, "3 3"]  # R - I
    translation: Float64[Array, " 3"]  # world units
    static: bool  # nothing moved, neither the pose nor the intrinsics

    @staticmethod
    def between(previous: Camera, current: Camera, tolerance: float) -> CameraMotion:
        """The motion from one frame to the next; static if no entry moved by more than the tolerance.

        The current pose is inverted as it is drawn with, by `camera_from_world`: a rotation that a file holds to a few
        digits then still gives exactly the identity for a camera that stands still.
        """
        previous_from_current = previous.camera_from_world @ np.linalg.inv(current.camera_from_world)
        change = previous_from_current - np.eye(4)
        lenses = [(camera.fx, camera.fy, camera.cx, camera.cy) for camera in (previous, current)]
        static = lenses[0] == lenses[1] and bool((np.abs(change) <= tolerance).all())
        return CameraMotion(change[:3, :3], change[:3, 3], static)
