"""Fewer Gaussians that stand for all of a scene, and points that stand for its subject."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
from jaxtyping import Float, Float64, Int
from numpy import ndarray as Array

from hushsplat.types.gaussians import Gaussians
from hushsplat.types.morton import morton_codes
from hushsplat.types.surfaces import surfaces

SUBJECT_POINTS = 3_000  # places of detail: what should be seen


def fewer(gaussians: Gaussians, count: int) -> tuple[Int[Array, " m"], Gaussians]:
    """Which Gaussians stand for all, and these enlarged so that they cover as much; the same for the same scene.

    One is kept with a probability that grows with opacity and extent; one that stands for ten has ten times the area.
    """
    if len(gaussians) <= count:
        return np.arange(len(gaussians)), gaussians
    _, area = surfaces(gaussians)
    weight = gaussians.opacities * np.sqrt(area.astype(np.float64)) + 1e-30
    kept = np.zeros(len(gaussians))
    for _ in range(4):  # what would be kept more than once is kept once, the others share the rest
        sure = kept >= 1
        kept = np.where(sure, 1.0, weight * ((count - sure.sum()) / max(weight[~sure].sum(), 1e-300)))
    kept = np.minimum(kept, 1.0)
    steps = np.floor(np.cumsum(kept) + 0.5)
    chosen = np.flatnonzero(np.diff(steps, prepend=0.0) > 0)
    some = gaussians.take(chosen)
    larger = np.repeat((1 / np.sqrt(kept[chosen]))[:, None], some.scales.shape[1], axis=1)
    if not gaussians.is_surfels:
        np.put_along_axis(larger, some.scales.argmin(axis=1)[:, None], 1.0, axis=1)
    return chosen, replace(some, scales=(some.scales * larger).astype(np.float32))


def spread_points(
    some: Gaussians, weight: Float[Array, " m"], middle: Float64[Array, " 3"], radius: float
) -> Float64[Array, "4 n"]:
    """Centres of Gaussians by weight as columns (x, y, z, 1), in the order of a curve that fills space.

    The same share of the way along the curve is about the same place in all levels of detail.
    """
    if len(some) == 0:
        return np.ones((4, 0))
    cells = np.clip((some.means - middle) / (4 * radius) + 0.5, 0, 1 - 1e-6) * 1024
    order = np.argsort(morton_codes(cells.astype(np.int64)), kind="stable")
    total = np.cumsum(weight[order], dtype=np.float64)
    picked = np.searchsorted(total, total[-1] * (np.arange(SUBJECT_POINTS) + 0.5) / SUBJECT_POINTS)
    means = some.means[order[np.minimum(picked, len(order) - 1)]].astype(np.float64)
    return np.concatenate([means.T, np.ones((1, SUBJECT_POINTS))])
