"""Ellipsoids as surfels: the shortest axis becomes the normal."""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from hushsplat.types.gaussians import Gaussians
from hushsplat.types.rotations import matrix_from_quaternion, quaternion_from_matrix


def flattened(gaussians: Gaussians) -> Gaussians:
    """The same scene of flat Gaussians; surfels stay what they are. A payload is dropped: it belonged to that one."""
    if gaussians.is_surfels:
        return replace(gaussians, payload=None)
    order = np.argsort(-gaussians.scales, axis=1, kind="stable")  # largest first, the normal last
    axes = np.take_along_axis(matrix_from_quaternion(gaussians.rotations.astype(np.float64)), order[:, None, :], axis=2)
    mirrored = np.linalg.det(axes) < 0
    axes[mirrored, :, 2] *= -1
    return replace(
        gaussians,
        scales=np.take_along_axis(gaussians.scales, order[:, :2], axis=1),
        rotations=quaternion_from_matrix(axes).astype(np.float32),
        payload=None,
    )
