"""Which way up an object stands: directions scored by cues that need no ground."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import numpy as np
from jaxtyping import Bool, Float, Float64, Int64
from numpy import ndarray as Array

from hushsplat.types.gaussians import Gaussians
from hushsplat.types.harmonics import SH_C0
from hushsplat.types.rotations import hemisphere, level_axes
from hushsplat.types.surfaces import surfaces

# Seen from outside, from so many directions and their opposites: what lies within SKIN radii of the foremost point of
# its cell in a grid across the direction.
DIRECTIONS, CELLS, SKIN = 13, 64, 0.05
REACH = 1.3  # half the grid's side, in radii
TRIM = (0.5, 99.5)  # per cent: ends of an object, without its outermost Gaussians
OPAQUE = 0.3
LOOSE_CELLS, LOOSE_SHARE = 16, 0.0005  # a floater: in its cell and those about it is less than this share of all
VOXELS, MIRRORED, PLANES = 64, 1_500, 160  # a side of the grid, voxels that are mirrored, planes that are tried
THIN_VOXELS = 6  # across a plane: the shifts and the tolerance below make up as much
SHIFTS = (0.0, -0.04, 0.04, -0.08, 0.08)  # of a mirror plane from the middle, in radii
PATCHES = 10  # a side: shading is compared within patches, whose own colour is about the same
FOOT = 0.05  # of the height: what an object stands on
# Log-likelihood per unit of each cue, fitted by `benchmarks/up.py --fit` to 36 objects, rooms and grounds at three
# azimuths, turned to all six axes: 20 parts of the procedural scene and 16 of real ones. Of those left out in turn,
# with the shares of axes in up.py, 93 % come out right with -y up, 96 % with z, 81 % with y and x, 62 % with -z.
WEIGHTS = {
    "bright": 15.3,
    "shaded": 2.15,
    "detailed": 5.2,
    "stable": 5.7,
    "mirrored": 18.4,
    "uneven": 8.0,
    "upright": 8.7,
    "level": 2.4,
}
LUMA = np.array([0.2126, 0.7152, 0.0722])


@dataclass(frozen=True)
class Cues:
    """What speaks for each of k directions to be up; each is larger for up, on average.

    Attributes:
        bright: how much brighter the object looks from there than from the other side: light comes from above.
        shaded: how much brighter surfaces that face there are than their neighbours.
        detailed: how much smaller the Gaussians seen from there are: few photographs show an underside.
        stable: how far the middle stays within the foot, over its height; negative if it would fall over.
        mirrored: overlap with the best mirror image across an upright plane: figures, furniture, plants.
        uneven: how little the mirror image across the level plane overlaps: a head is no foot.
        upright: share of surface that is upright, as a logarithm over that by chance.
        level: share of surface that is level, the same way.
    """

    bright: Float64[Array, " k"]
    shaded: Float64[Array, " k"]
    detailed: Float64[Array, " k"]
    stable: Float64[Array, " k"]
    mirrored: Float64[Array, " k"]
    uneven: Float64[Array, " k"]
    upright: Float64[Array, " k"]
    level: Float64[Array, " k"]

    def scores(self) -> Float64[Array, " k"]:
        """Log-likelihoods of the directions, up to a constant."""
        return np.sum([weight * getattr(self, name) for name, weight in WEIGHTS.items()], axis=0)


class StandingObject:
    """An object as seen from all sides; lengths in radii about its middle."""

    def __init__(self, some: Gaussians) -> None:
        opaque = some.opacities > OPAQUE
        if opaque.mean() < OPAQUE:  # all of it is faint
            opaque[:] = True
        means = some.means.astype(np.float64)
        low, high = np.percentile(means[opaque], TRIM, axis=0)
        radius = max(float(np.linalg.norm(high - low)) / 2, 1e-12)
        self.points = (means - (low + high) / 2) / radius
        self.solid = opaque & (np.linalg.norm(self.points, axis=1) < REACH)
        self.solid &= ~_is_floater(self.points, self.solid)
        normals, areas = surfaces(some)
        self.areas = some.opacities * np.minimum(areas, np.percentile(areas, 95)) / radius**2
        self.flatness = np.ones(len(some))
        if not some.is_surfels:
            thin, wide, _ = np.sort(some.scales.astype(np.float64), axis=1).T
            self.flatness = np.clip(1 - 1.5 * thin / np.maximum(wide, 1e-30), 0, 1)
        self.log_luma = log_luminance(some)
        self.directions = np.concatenate([hemisphere(DIRECTIONS), -hemisphere(DIRECTIONS)])
        self.visible = np.stack([self._visible_from(direction) for direction in self.directions])
        self.seen = self.visible.any(axis=0)
        outward = self.visible.T.astype(np.float64) @ self.directions
        self.normals = normals * np.sign(np.sum(normals * outward, axis=1))[:, None]

    def seen_share(self, weights: Float[Array, " n"]) -> float:
        """The share of these weights that is seen from outside."""
        inside = weights * self.solid
        return float((inside * self.seen).sum() / max(float(inside.sum()), 1e-300))

    def _visible_from(self, direction: Float64[Array, " 3"]) -> Bool[Array, " n"]:
        """Which Gaussians are seen from far away in this direction."""
        inside = np.flatnonzero(self.solid)
        heights = self.points[inside] @ direction
        across = self.points[inside] @ np.stack(level_axes(direction), axis=1)
        rows, columns = np.clip((across + REACH) * (CELLS / (2 * REACH)), 0, CELLS - 1).astype(np.int64).T
        cells = rows * CELLS + columns
        top = np.full(CELLS * CELLS, -np.inf)
        np.maximum.at(top, cells, heights)
        visible = np.zeros(len(self.points), bool)
        visible[inside] = heights > top[cells] - SKIN
        return visible

    def cues(self, axes: Float64[Array, "k 3"]) -> Cues:
        """All cues of these directions."""
        mirrored, uneven = self._mirrored(axes)
        upright, level = self._facing(axes)
        return Cues(
            bright=axes @ self._gradient(self.log_luma),
            shaded=axes @ self._shading(),
            detailed=-axes @ self._gradient(np.log(self.areas + 1e-12)),
            stable=np.array([self._stability(axis) for axis in axes]),
            mirrored=mirrored,
            uneven=uneven,
            upright=upright,
            level=level,
        )

    def _gradient(self, values: Float64[Array, " n"]) -> Float64[Array, " 3"]:
        """The gradient, over directions, of the mean of these values that is seen from them."""
        weights = self.visible * self.areas
        means = weights @ values / np.maximum(weights.sum(axis=1), 1e-300)
        return 3 / len(means) * (means - means.mean()) @ self.directions

    def _shading(self) -> Float64[Array, " 3"]:
        """The gradient of log luminance over normals, both relative to their patch, in deviations of it."""
        weights = self.areas * self.flatness * self.seen
        used = np.flatnonzero(weights > 0)
        if len(used) == 0:
            return np.zeros(3)
        weights, patches = weights[used], _cells(self.points[used], PATCHES)
        values = np.concatenate([self.normals[used], self.log_luma[used, None]], axis=1)
        _, patches = np.unique(patches, return_inverse=True)
        total = np.bincount(patches, weights)
        for column in values.T:
            column -= (np.bincount(patches, weights * column) / total)[patches]
        normals, luma = values[:, :3], values[:, 3]
        squares = (normals * weights[:, None]).T @ normals
        gradient = np.linalg.solve(
            squares + (1e-3 * np.trace(squares) + 1e-300) * np.eye(3), (normals * weights[:, None]).T @ luma
        )
        return gradient / (np.sqrt(np.average(luma**2, weights=weights)) + 0.05)

    def _stability(self, axis: Float64[Array, " 3"]) -> float:
        """The least distance from the middle to the outline of the foot over the middle's height, within -1..1."""
        points = self.points[self.seen]
        heights = points @ axis
        low, high = np.percentile(heights, TRIM)
        angles = np.arange(24)[:, None] * (np.pi / 12)
        first, second = level_axes(axis)
        ways = np.cos(angles) * first + np.sin(angles) * second
        foot = points[heights <= low + FOOT * (high - low)]
        margin = float(((foot @ ways.T).max(axis=0) - self._middle @ ways.T).min())
        return float(np.clip(margin / max(self._middle @ axis - low, 1e-3), -1, 1))

    @cached_property
    def _occupied(self) -> Int64[Array, "m 3"]:
        """Voxels with a Gaussian that is seen."""
        return np.stack(np.unravel_index(np.unique(_cells(self.points[self.seen], VOXELS)), (VOXELS,) * 3), axis=1)

    @property
    def _middle(self) -> Float64[Array, " 3"]:
        """Of the occupied voxels: it does not depend on where Gaussians are dense."""
        return _centres(self._occupied).mean(axis=0)

    def _mirrored(self, axes: Float64[Array, "k 3"]) -> tuple[Float64[Array, " k"], Float64[Array, " k"]]:
        """The best overlap across planes that hold each axis, and the part that has none across the plane across it."""
        planes, overlaps, says = self._mirrors
        own, own_says = self._overlaps(axes)
        normals = np.concatenate([planes, axes])
        overlaps, says = np.concatenate([overlaps, own]), np.concatenate([says, own_says])
        upright = (np.abs(normals @ axes.T) < 0.13) & says[:, None]
        best = np.where(upright, overlaps[:, None], 0).max(axis=0)
        uneven = 1 - own
        return (
            np.where(upright.any(axis=0), best, best.max()),
            np.where(own_says, uneven, uneven.max(where=own_says, initial=0.0)),
        )

    @cached_property
    def _mirrors(self) -> tuple[Float64[Array, "m 3"], Float64[Array, " m"], Bool[Array, " m"]]:
        """Normals of planes in all directions, and their overlaps."""
        planes = hemisphere(PLANES)
        return planes, *self._overlaps(planes)

    def _overlaps(self, normals: Float64[Array, "m 3"]) -> tuple[Float64[Array, " m"], Bool[Array, " m"]]:
        """Of the object with its mirror image across planes, and whether that says anything."""
        every = max(1, len(self._occupied) // MIRRORED)
        centres = _centres(self._occupied[::every])
        overlaps = np.array([_overlap(self._grid, centres, normal) for normal in normals])
        # What is thin overlaps with its mirror image, whatever it is: that says nothing.
        spans = np.ptp(np.percentile(centres @ normals.T, [1, 99], axis=0), axis=0)
        return overlaps, spans > THIN_VOXELS * (2 * REACH / VOXELS)

    @cached_property
    def _grid(self) -> Bool[Array, " cells"]:
        """The occupied voxels and their neighbours: one voxel of tolerance."""
        grid = np.zeros((VOXELS,) * 3, bool)
        grid[tuple(self._occupied.T)] = True
        for axis in range(3):
            for step in (-1, 1):
                grid |= np.roll(grid, step, axis)
        return grid.ravel()

    def _facing(self, axes: Float64[Array, "k 3"]) -> tuple[Float64[Array, " k"], Float64[Array, " k"]]:
        """Shares of surface that is upright and level, as logarithms over those of a ball."""
        weights = self.areas * self.flatness * self.solid
        weights /= max(float(weights.sum()), 1e-300)
        cosines = np.abs(self.normals @ axes.T)
        return np.log(weights @ (cosines < 0.2) / 0.2 + 0.2), np.log(weights @ (cosines > 0.95) / 0.05 + 0.2)


def log_luminance(some: Gaussians) -> Float64[Array, " n"]:
    """Of each Gaussian's own colour."""
    return np.log(np.clip(some.sh[:, 0] @ LUMA * SH_C0 + 0.5, 0, 1) + 0.05)


def _is_floater(points: Float64[Array, "n 3"], solid: Bool[Array, " n"]) -> Bool[Array, " n"]:
    """Which points have hardly any others about them."""
    cells = _cells(points, LOOSE_CELLS)
    counts = np.bincount(cells[solid], minlength=LOOSE_CELLS**3).reshape((LOOSE_CELLS,) * 3)
    for axis in range(3):
        counts = counts + np.roll(counts, 1, axis) + np.roll(counts, -1, axis)
    return counts.ravel()[cells] < LOOSE_SHARE * solid.sum()


def _cells(points: Float64[Array, "n 3"], count: int) -> Int64[Array, " n"]:
    """The index of each point's cell in a cubic grid."""
    x, y, z = np.clip((points + REACH) * (count / (2 * REACH)), 0, count - 1).astype(np.int64).T
    return (x * count + y) * count + z


def _centres(voxels: Int64[Array, "m 3"]) -> Float64[Array, "m 3"]:
    return (voxels + 0.5) * (2 * REACH / VOXELS) - REACH


def _overlap(grid: Bool[Array, " cells"], centres: Float64[Array, "m 3"], normal: Float64[Array, " 3"]) -> float:
    """The share of voxels whose mirror image is occupied, for the best of some planes with this normal."""
    heights = centres @ normal
    middle = np.percentile(heights, [1, 99]).mean()
    best = 0.0
    for shift in SHIFTS:
        images = centres - 2 * np.outer(heights - middle - shift, normal)
        inside = (np.abs(images) < REACH).all(axis=1)
        best = max(best, float((grid[_cells(images, VOXELS)] & inside).mean()))
    return best
