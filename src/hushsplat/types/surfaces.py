"""Gaussians as surfaces: their normals and areas, and where the bulk of a scene lies."""

from __future__ import annotations

import numpy as np
from jaxtyping import Float64
from numpy import ndarray as Array

from hushsplat.types.gaussians import Gaussians
from hushsplat.types.rotations import matrix_from_quaternion

MOST_GAUSSIANS = 50_000  # ours: a guess needs no more than this many
BULK_PERCENT = 90.0  # of the detail is in the picture
SKY_RADII, SKY_GAP = (
    (3.0, 6.0),
    0.005,
)  # ours: between these many radii of the bulk lies less than this share of Gaussians


def surfaces(gaussians: Gaussians) -> tuple[Array, Array]:
    """The direction in which each Gaussian is thinnest, and the product of its other two scales."""
    rotations = matrix_from_quaternion(gaussians.rotations)
    if gaussians.is_surfels:
        return rotations[:, :, 2], gaussians.scales.astype(np.float64).prod(axis=1)
    thinnest = gaussians.scales.argmin(axis=1)
    normal = np.take_along_axis(rotations, thinnest[:, None, None], axis=2)[:, :, 0]
    return normal, np.sort(gaussians.scales, axis=1)[:, 1:].astype(np.float64).prod(axis=1)


def importance(gaussians: Gaussians) -> Array:
    """How much each Gaussian counts: trainers put many small ones where the photographs look, large ones elsewhere."""
    _, area = surfaces(gaussians)
    if len(area) == 0:
        return gaussians.opacities
    return gaussians.opacities / np.maximum(area, np.percentile(area, 5) + 1e-30)


def scene_bulk(gaussians: Gaussians) -> tuple[Float64[Array, " 3"], float]:
    """The middle of what a scene shows in detail, and the radius about it that holds most of that."""
    if len(gaussians) == 0:
        return np.zeros(3), 1.0
    some = thinned(gaussians)
    means, weight = some.means.astype(np.float64), importance(some)
    middle = np.array([_percentile(means[:, axis], weight, 50.0) for axis in range(3)])
    return middle, max(_percentile(np.linalg.norm(means - middle, axis=1), weight, BULK_PERCENT), 1e-6)


def without_sky(gaussians: Gaussians) -> Gaussians:
    """The same without what lies far away, if there is a gap: a shell of sky about an object."""
    middle, radius = scene_bulk(gaussians)
    distances = np.linalg.norm(gaussians.means - middle, axis=1) / radius
    near, far = distances < SKY_RADII[0], distances > SKY_RADII[1]
    if not far.any() or (~near & ~far).sum() > SKY_GAP * len(near):
        return gaussians
    return gaussians.take(np.flatnonzero(near))


def thinned(gaussians: Gaussians) -> Gaussians:
    """Every so many-th Gaussian, at most MOST_GAUSSIANS."""
    step = -(-len(gaussians) // MOST_GAUSSIANS)
    return gaussians.take(np.arange(0, len(gaussians), step)) if step > 1 else gaussians


def _percentile(values: Array, weights: Array, percent: float) -> float:
    """The value with this much of the weight below it."""
    order = np.argsort(values)
    total = np.cumsum(weights[order], dtype=np.float64)
    return float(values[order[np.searchsorted(total, total[-1] * percent / 100)]])
