"""Directions, and rotations as unit quaternions wxyz and as matrices; functions work on whole arrays of them."""

from __future__ import annotations

import numpy as np
from jaxtyping import Float, Float64
from numpy import ndarray as Array

SLERP_LINEAR_BELOW = 1e-8  # rad: below this sin(angle) carries no digits and the straight line is the arc


def matrix_from_quaternion(quaternions: Float[Array, "*batch 4"]) -> Float[Array, "*batch 3 3"]:
    """The rotation matrices of quaternions wxyz of any length > 0."""
    w, x, y, z = np.moveaxis(normalized(quaternions), -1, 0)
    rows = [
        [1 - 2 * (y * y + z * z), 2 * (x * y - w * z), 2 * (x * z + w * y)],
        [2 * (x * y + w * z), 1 - 2 * (x * x + z * z), 2 * (y * z - w * x)],
        [2 * (x * z - w * y), 2 * (y * z + w * x), 1 - 2 * (x * x + y * y)],
    ]
    return np.stack([np.stack(row, axis=-1) for row in rows], axis=-2)


def quaternion_from_matrix(matrices: Float[Array, "*batch 3 3"]) -> Float[Array, "*batch 4"]:
    """The unit quaternions wxyz (w >= 0) of rotation matrices.

    The four rows of `products` are 4·q[k]·q for k = w, x, y, z: the one with the largest q[k] loses no digits.
    """
    m = matrices
    xx, yy, zz = m[..., 0, 0], m[..., 1, 1], m[..., 2, 2]
    wx, wy, wz = m[..., 2, 1] - m[..., 1, 2], m[..., 0, 2] - m[..., 2, 0], m[..., 1, 0] - m[..., 0, 1]
    xy, xz, yz = m[..., 0, 1] + m[..., 1, 0], m[..., 0, 2] + m[..., 2, 0], m[..., 1, 2] + m[..., 2, 1]
    rows = [
        [1 + xx + yy + zz, wx, wy, wz],
        [wx, 1 + xx - yy - zz, xy, xz],
        [wy, xy, 1 - xx + yy - zz, yz],
        [wz, xz, yz, 1 - xx - yy + zz],
    ]
    products = np.stack([np.stack(row, axis=-1) for row in rows], axis=-2)
    best = np.argmax(np.diagonal(products, axis1=-2, axis2=-1), axis=-1)
    quaternions = normalized(np.take_along_axis(products, best[..., None, None], axis=-2)[..., 0, :])
    return np.where(quaternions[..., :1] < 0, -quaternions, quaternions)


def normalized(vectors: Float[Array, "*batch k"]) -> Float[Array, "*batch k"]:
    """The vectors (or quaternions) at length 1; they must not be zero."""
    return vectors / np.linalg.norm(vectors, axis=-1, keepdims=True)


def sign_continuous(quaternions: Float[Array, "n 4"]) -> Float[Array, "n 4"]:
    """The same rotations with signs chosen so that neighbours have a positive dot product, for interpolation."""
    flips = np.sum(quaternions[1:] * quaternions[:-1], axis=-1) < 0
    parity = np.concatenate([[0], np.cumsum(flips) % 2])
    return np.where(parity[:, None] == 1, -quaternions, quaternions)


def slerp(
    start: Float[Array, "*batch 4"],
    end: Float[Array, "*batch 4"],
    fraction: Float[Array, "*batch"],  # 0 at start, 1 at end
) -> Float[Array, "*batch 4"]:
    """Unit quaternions on the shorter arc from start to end, at constant angular speed."""
    end = np.where(np.sum(start * end, axis=-1, keepdims=True) < 0, -end, end)
    # atan2 of chord lengths keeps all digits for small angles, where arccos of the dot product keeps half of them.
    angle = 2 * np.arctan2(np.linalg.norm(end - start, axis=-1), np.linalg.norm(end + start, axis=-1))
    straight = angle < SLERP_LINEAR_BELOW
    sine = np.where(straight, 1.0, np.sin(angle))
    from_start = np.where(straight, 1 - fraction, np.sin((1 - fraction) * angle) / sine)
    from_end = np.where(straight, fraction, np.sin(fraction * angle) / sine)
    return normalized(from_start[..., None] * start + from_end[..., None] * end)


def nearest_rotation(matrices: Float[Array, "*batch 3 3"]) -> Float[Array, "*batch 3 3"]:
    """The proper rotations closest to these matrices (polar decomposition)."""
    left, _, right = np.linalg.svd(matrices)
    handedness = np.linalg.det(left @ right)
    left = np.concatenate([left[..., :2], left[..., 2:] * handedness[..., None, None]], axis=-1)
    return left @ right


def level_axes(upward: Float64[Array, " 3"]) -> tuple[Float64[Array, " 3"], Float64[Array, " 3"]]:
    """Two directions that span the horizon, the ones that `orbit` counts its angles from."""
    first = normalized(np.cross(upward, np.eye(3)[np.argmin(np.abs(upward))]))
    return first, np.cross(upward, first)


def hemisphere(count: int) -> Float64[Array, "n 3"]:
    """Directions that cover half a sphere evenly: a Fibonacci lattice."""
    place = np.arange(count) + 0.5
    z, angle = place / count, place * np.pi * (3 - np.sqrt(5))
    flat = np.sqrt(1 - z * z)
    return np.stack([flat * np.cos(angle), flat * np.sin(angle), z], axis=1)
