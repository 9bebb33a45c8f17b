"""Checks on poses and lenses from files: a pose must be rigid, a lens model must not fold the picture."""

from __future__ import annotations

import numpy as np
from jaxtyping import Float64
from numpy import ndarray as Array

from hushsplat.types.camera import Camera
from hushsplat.types.distortion import Distortion
from hushsplat.types.errors import CaptureError
from hushsplat.types.rotations import nearest_rotation

ROTATION_TOLERANCE = 0.02  # matrices are sometimes written with few digits; what is further from a rotation is refused


def rigid_pose(pose: Float64[Array, "4 4"], where: str) -> Float64[Array, "4 4"]:
    """The pose with its rotation made exact, if it is one but for rounding."""
    rotation = pose[:3, :3]
    if np.isfinite(pose).all() and np.abs(rotation).max() < 2:  # keeps huge numbers out of the decomposition
        exact = nearest_rotation(rotation)
        if np.abs(exact - rotation).max() < ROTATION_TOLERANCE:
            cleaned = pose.copy()
            cleaned[:3, :3] = exact
            return cleaned
    raise CaptureError(f"{where}: the pose is not a rotation and a position, but has scale, shear or mirroring.")


def usable_lens(lens: Distortion, camera: Camera, where: str) -> Distortion | None:
    """The lens, None for a pinhole; refused if its model folds over within the picture."""
    if lens.is_none:
        return None
    if lens.folds_within(camera):
        raise CaptureError(
            f"{where}: the lens distortion folds the picture over, so its coefficients are wrong or meant for another "
            "size; calibrate again, or undistort the photographs first."
        )
    return lens
