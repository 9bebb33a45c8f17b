"""A ground that reaches beyond all that stands on it: under an object that was captured on a floor or a lawn."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from jaxtyping import Bool, Float, Float64
from numpy import ndarray as Array

from hushsplat.types.gaussians import Gaussians
from hushsplat.types.rotations import level_axes
from hushsplat.types.surfaces import surfaces

# Ours, set on objects with and without a ground: tables, shelves, figures, lawns, rooms, walls with a railing.
GAUSSIANS = 15_000  # that are looked at, at most
BINS = 64  # of heights, over most of the scene
FACING = 0.85  # cosine between a Gaussian's normal and that of the ground
HALF_BINS = 2.5  # half of the ground's thickness
OPAQUE = 0.3
OTHER_SIDE = 0.03  # of what is no ground: at most this share is below it, if the rest is above, or the other way round
LEAST_REST = 0.05  # of opaque Gaussians: as much is no ground
CELLS, LEAST_IN_CELL = 16, 20  # a side of a grid across a terrain, Gaussians of a cell that is looked at
FOOT = 0.75  # a quarter of what stands on it is below this share of the height: else it is the zenith of a sky
WAYS, REACH = 12, 1.15  # to so many sides the ground reaches so much farther than what stands on it


@dataclass(frozen=True)
class Ground:
    """A slab of a scene.

    Attributes:
        up: across it, to the side where all else is.
        low: its lower end along `up`.
        high: its upper end.
        times: its width over the size of what stands on it.
    """

    up: Float64[Array, " 3"]
    low: float
    high: float
    times: float

    def holds(self, means: Float[Array, "n 3"]) -> Bool[Array, " n"]:
        """Which of these points lie in it."""
        heights = means @ self.up
        return (heights >= self.low) & (heights <= self.high)


def _some(gaussians: Gaussians) -> Gaussians:
    """Every so many-th."""
    return gaussians.take(np.arange(0, len(gaussians), max(1, len(gaussians) // GAUSSIANS)))


def fitted(some: Gaussians, normal: Float64[Array, " 3"]) -> Float64[Array, " 3"]:
    """The exact normal of the plane that is found across about this one."""
    some = _some(some)
    heights = some.means.astype(np.float64) @ normal
    directions, areas = surfaces(some)
    level = np.flatnonzero((some.opacities > OPAQUE) & (np.abs(directions @ normal) > FACING))
    if len(level) < BINS:
        return normal
    low, high = np.percentile(heights[level], [0.5, 99.5])
    weight = some.opacities[level] * np.minimum(areas[level], np.percentile(areas, 99))
    counts, edges = np.histogram(heights[level], BINS // 2, (low, max(high, low + 1e-12)), weights=weight)
    fullest = int(np.argmax(counts[1:] + counts[:-1])) + 1
    near = np.abs(heights[level] - edges[fullest]) < HALF_BINS * (edges[1] - edges[0])
    points = some.means[level[near]].astype(np.float64)
    if len(points) < BINS:
        return normal
    _, axes = np.linalg.eigh(np.cov(points.T))
    exact = axes[:, 0] * np.sign(axes[:, 0] @ normal)
    return exact if exact @ normal > FACING else normal


def wide_ground(some: Gaussians, normal: Float64[Array, " 3"]) -> Ground | None:
    """The fullest slab across `normal`, if all else is on one side of it and it reaches beyond that to all sides."""
    some = _some(some)
    opaque = some.opacities > OPAQUE
    if opaque.sum() < BINS:
        return None
    heights = some.means.astype(np.float64) @ normal
    low, high = np.percentile(heights[opaque], [0.5, 99.5])
    if not high > low:
        return None
    directions, areas = surfaces(some)
    level = opaque & (np.abs(directions @ normal) > FACING)
    weight = some.opacities * np.minimum(areas, np.percentile(areas, 99))
    counts, edges = np.histogram(heights[level], BINS, (low, high), weights=weight[level])
    fullest = int(np.argmax(counts[1:] + counts[:-1])) + 1
    half = HALF_BINS * (edges[1] - edges[0])
    ground = np.abs(heights - edges[fullest]) <= half
    rest = opaque & ~ground
    if rest.sum() < LEAST_REST * opaque.sum():
        return None
    above = float((heights[rest] > edges[fullest]).mean())
    if OTHER_SIDE < above < 1 - OTHER_SIDE:
        return None
    first, second = level_axes(normal)
    angles = np.arange(WAYS)[:, None] * (2 * np.pi / WAYS)
    ways = np.cos(angles) * first + np.sin(angles) * second
    middle = np.median(some.means[rest], axis=0)
    reach = [np.percentile((some.means[part] - middle) @ ways.T, 98, axis=0) for part in (opaque & ground, rest)]
    if not (reach[0] > REACH * np.maximum(reach[1], 0)).all():
        return None
    side = 1.0 if above > 0.5 else -1.0
    low, tall = np.percentile(side * (heights[rest] - edges[fullest]), [25, 98])
    if low > FOOT * tall:
        return None
    times = float(np.median(2 * reach[0])) / max(float(tall), float((reach[1] + np.roll(reach[1], WAYS // 2)).max()))
    return Ground(side * normal, side * edges[fullest] - half, side * edges[fullest] + half, times)


def risen(some: Gaussians, normal: Float64[Array, " 3"]) -> float:
    """How much farther things rise from a terrain than they sink into it, along the normal: -1..1."""
    some = some.take(np.flatnonzero(some.opacities > OPAQUE))
    heights, across = some.means @ normal, some.means @ np.stack(level_axes(normal), axis=1)
    low, high = np.percentile(across, [2, 98], axis=0)
    cells = np.floor((across - low) / np.maximum(high - low, 1e-12) * CELLS)
    inside = np.flatnonzero(((cells >= 0) & (cells < CELLS)).all(axis=1))
    indices = (cells[inside] @ [CELLS, 1]).astype(np.int64)
    order = np.argsort(indices, kind="stable")
    parts = np.split(heights[inside][order], np.flatnonzero(np.diff(indices[order])) + 1)
    levels = [np.percentile(part, [5, 50, 95]) for part in parts if len(part) >= LEAST_IN_CELL]
    if not levels:
        return 0.0
    bottom, usual, top = np.array(levels).T
    return float((top + bottom - 2 * usual).sum() / max(float((top - bottom).sum()), 1e-12))
