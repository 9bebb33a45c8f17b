"""Shapes that furniture, houses and plants are made of, many instances at a time: each hands out spots on its surface.

World: metres, y points down (up is -y). Heights in the arguments of builders are positive upwards.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, fields, replace
from typing import Any, ClassVar, Protocol, TypeVar, runtime_checkable

import numpy as np
from jaxtyping import Bool, Float, Float32, Int64
from numpy import ndarray as Array
from numpy.random import PCG64, Generator

from hushsplat.synth.surfels import COVER, Spots, any_tangent, cross, normalized

Length = float | int  # metres, or degrees of yaw; spelled so because the tests' checker takes `float` literally
Span = tuple[Length, Length]
Numbers = Sequence[Any] | Array | Length  # whatever numpy makes an array of
UP = np.array([0, -1, 0], dtype=np.float32)


def f32(values: Numbers) -> Float32[Array, " ..."]:
    """The values as a float32 array."""
    return np.asarray(values, dtype=np.float32)


def even_pairs(rng: Generator, n: int) -> Float32[Array, "2 n"]:
    """Points that fill the unit square evenly: the R2 sequence from a random start."""
    index = np.arange(n)
    start = rng.random(2)
    pairs = np.stack([start[0] + index * 0.7548776662466927, start[1] + index * 0.5698402909980532])
    pairs -= np.floor(pairs)
    return np.minimum(pairs.astype(np.float32), np.float32(1 - 1e-7))


def by_area(areas: Float[Array, " m"], n: int) -> tuple[Int64[Array, " n"], float]:
    """The instance that each of n spots belongs to, in proportion to the areas, and the mean spacing in metres."""
    ends = np.cumsum(areas, dtype=np.float64)
    owner = np.searchsorted(ends, (np.arange(n) + 0.5) * (ends[-1] / n))
    return np.minimum(owner, len(ends) - 1), float(np.sqrt(ends[-1] / n))


def turn_matrix(yaw_deg: Length) -> Float32[Array, "3 3"]:
    """Rotation about the vertical; +90 turns x towards z."""
    c, s = np.cos(np.radians(yaw_deg)), np.sin(np.radians(yaw_deg))
    return f32([[c, 0, -s], [0, 1, 0], [s, 0, c]])


@dataclass(frozen=True)
class Quads:
    """Parallelograms."""

    corners: Float32[Array, "m 3"]
    along: Float32[Array, "m 3"]  # edge along the grain
    across: Float32[Array, "m 3"]
    normals: Float32[Array, "m 3"]

    @property
    def area(self) -> float:
        """Square metres in all."""
        return float(self._areas().sum())

    def _areas(self) -> Float32[Array, " m"]:
        return np.linalg.norm(cross(self.along, self.across), axis=1)

    def spots(self, rng: Generator, n: int) -> Spots:
        """n spots, even by area; borders stay crisp because spots keep off them by their own size."""
        owner, spacing = by_area(self._areas(), n)
        pairs = even_pairs(rng, n)
        lengths = np.stack([np.linalg.norm(self.along, axis=1), np.linalg.norm(self.across, axis=1)])
        margins = np.minimum(np.float32(0.75 * COVER * spacing), np.float32(0.33) * lengths)
        length, margin = lengths[:, owner], margins[:, owner]
        uv = margin + (length - 2 * margin) * pairs
        reach = np.minimum(uv, length - uv)
        unit_along = self.along / lengths[0][:, None]
        unit_across = self.across / lengths[1][:, None]
        tangents = unit_along[owner]
        means = self.corners[owner] + uv[0][:, None] * tangents + uv[1][:, None] * unit_across[owner]
        return Spots(means, self.normals[owner], tangents, reach.T, uv.T, owner, spacing)

    def take(self, rows: Int64[Array, " k"]) -> Quads:
        """Some of them."""
        return Quads(self.corners[rows], self.along[rows], self.across[rows], self.normals[rows])

    def placed(self, x: Length, z: Length, yaw_deg: Length = 0, height: Length = 0) -> Quads:
        """Turned about the vertical, then moved."""
        turn = turn_matrix(yaw_deg).T
        corners = self.corners @ turn + f32([x, -height, z])
        return Quads(corners, self.along @ turn, self.across @ turn, self.normals @ turn)


@dataclass(frozen=True)
class Cones:
    """Cone frustums: tubes, stems, cords, and by stacking anything turned on a lathe."""

    starts: Float32[Array, "m 3"]
    axes: Float32[Array, "m 3"]  # unit vectors
    heights: Float32[Array, " m"]  # metres along the axis, 0 for a flat ring or disc
    radii: Float32[Array, "m 2"]  # at the start and at the end

    @property
    def area(self) -> float:
        """Square metres in all."""
        return float(self._areas().sum())

    def _areas(self) -> Float32[Array, " m"]:
        first, last = self.radii.T
        return np.float32(np.pi) * (first + last) * np.hypot(self.heights, last - first)

    def spots(self, rng: Generator, n: int) -> Spots:
        """n spots, even by area; the grain runs along the axis, uv is (metres along it, turn 0..1)."""
        owner, spacing = by_area(self._areas(), n)
        turn, lift = even_pairs(rng, n)
        slants = np.hypot(self.heights, self.radii[:, 1] - self.radii[:, 0])
        insets = np.minimum(0.75 * COVER * spacing / slants, 0.33).astype(np.float32)
        lift = insets[owner] + (1 - 2 * insets[owner]) * lift
        first, last = self.radii[owner].T
        radius = np.sqrt(first * first + lift * (last * last - first * first))
        widening = last - first
        along = np.where(np.abs(widening) > 1e-6, (radius - first) / np.where(widening == 0, 1, widening), lift)
        side = any_tangent(self.axes)
        other = cross(self.axes, side)
        angle = np.float32(2 * np.pi) * turn
        radial = np.cos(angle)[:, None] * side[owner] + np.sin(angle)[:, None] * other[owner]
        height, axis = self.heights[owner], self.axes[owner]
        means = self.starts[owner] + (along * height)[:, None] * axis + radius[:, None] * radial
        normals = normalized(height[:, None] * radial - widening[:, None] * axis)
        tangents = normalized(height[:, None] * axis + widening[:, None] * radial)
        slant = slants[owner]
        reach = np.stack([slant * np.minimum(along, 1 - along), 0.9 * np.maximum(radius, 1e-3)], axis=1)
        uv = np.stack([along * np.hypot(height, widening), turn], axis=1)
        return Spots(means, normals, tangents, reach, uv, owner, spacing)

    def placed(self, x: Length, z: Length, yaw_deg: Length = 0, height: Length = 0) -> Cones:
        """Turned about the vertical, then moved."""
        turn = turn_matrix(yaw_deg).T
        return replace(self, starts=self.starts @ turn + f32([x, -height, z]), axes=self.axes @ turn)


@dataclass(frozen=True)
class Blobs:
    """Ellipsoids with axes along the world's."""

    centers: Float32[Array, "m 3"]
    radii: Float32[Array, "m 3"]

    @property
    def area(self) -> float:
        """Square metres in all, by Thomsen's formula."""
        return float(self._areas().sum())

    def _areas(self) -> Float32[Array, " m"]:
        a, b, c = self.radii.T**1.6
        return np.float32(4 * np.pi) * ((a * b + a * c + b * c) / 3) ** np.float32(1 / 1.6)

    def spots(self, rng: Generator, n: int) -> Spots:
        """n spots on the skin; uv is (turn, height) in 0..1."""
        owner, spacing = by_area(self._areas(), n)
        turn, lift = even_pairs(rng, n)
        level = 1 - 2 * lift
        ring = np.sqrt(np.maximum(1 - level * level, 0))
        angle = np.float32(2 * np.pi) * turn
        sphere = np.stack([ring * np.cos(angle), level, ring * np.sin(angle)], axis=1)
        radii = self.radii[owner]
        normals = normalized(sphere / radii)
        reach = np.repeat(0.8 * radii.min(axis=1, keepdims=True), 2, axis=1)
        uv = np.stack([turn, lift], axis=1)
        return Spots(self.centers[owner] + sphere * radii, normals, any_tangent(normals), reach, uv, owner, spacing)


@dataclass(frozen=True)
class Pierced:
    """A shape without the spots inside some boxes: nothing shines through from behind a picture or a rug."""

    shape: Quads
    holes: Float32[Array, "m 2 3"]  # low and high corner of each box

    @property
    def area(self) -> float:
        """Square metres that are left, as counted on a sample."""
        return self.shape.area * self._share()

    def _share(self) -> float:
        return float(self._outside(self.shape.spots(Generator(PCG64(0)), 4096).means).mean())

    def _outside(self, means: Float32[Array, "n 3"]) -> Bool[Array, " n"]:
        outside = np.ones(len(means), dtype=bool)
        for low, high in self.holes:
            outside &= ((means < low) | (means > high)).any(axis=1)
        return outside

    def spots(self, rng: Generator, n: int) -> Spots:
        """n spots outside the boxes, even by area."""
        tries = int(1.02 * n / self._share()) + 16
        while True:
            spots = self.shape.spots(rng, tries)
            kept = np.flatnonzero(self._outside(spots.means))
            if len(kept) >= n:
                break
            tries += tries // 20 + 16
        kept = kept[np.linspace(0, len(kept) - 1, n).astype(np.int64)]
        means, normals, tangents, reach, uv, owner = (getattr(spots, name)[kept] for name in SPOT_ARRAYS)
        for low, high in self.holes:
            gap = np.maximum(np.maximum(low - means, means - high), 0)
            distance = np.sqrt(np.einsum("ni,ni->n", gap, gap))
            reach = np.minimum(reach, np.maximum(distance, 0.3 * COVER * spots.spacing)[:, None])
        return Spots(means, normals, tangents, reach, uv, owner, spots.spacing)


SPOT_ARRAYS = ("means", "normals", "tangents", "reach", "uv", "owner")


@runtime_checkable
class Record(Protocol):
    """Any of the shapes: a dataclass of arrays."""

    __dataclass_fields__: ClassVar[dict[str, Any]]


S = TypeVar("S", bound=Record)


def join(shapes: Iterable[S]) -> S:
    """Several shapes of one kind as one; what is not an array is taken from the first."""
    shapes = list(shapes)
    names = [field.name for field in fields(shapes[0]) if isinstance(getattr(shapes[0], field.name), np.ndarray)]
    return replace(shapes[0], **{name: np.concatenate([getattr(shape, name) for shape in shapes]) for name in names})


def quad(corner: Numbers, along: Numbers, across: Numbers) -> Quads:
    """One parallelogram in world coordinates; it faces along × across."""
    corner, along, across = (f32(v).reshape(1, 3) for v in (corner, along, across))
    return Quads(corner, along, across, normalized(cross(along, across)))


def boxes(centers: Numbers, sizes: Numbers, axes: Numbers | None = None) -> Quads:
    """Boxes by centre (y down), full sizes and, where they are turned, axes as rows."""
    centers, sizes = np.atleast_2d(f32(centers)), np.atleast_2d(f32(sizes))
    m = len(centers)
    frames = np.broadcast_to(np.eye(3, dtype=np.float32) if axes is None else f32(axes), (m, 3, 3))
    edges = frames * sizes[:, :, None]
    faces = []
    for normal_axis in range(3):
        first, second = (axis for axis in range(3) if axis != normal_axis)
        swap = (sizes[:, second] > sizes[:, first])[:, None]  # the grain follows the longer edge
        along = np.where(swap, edges[:, second], edges[:, first])
        across = np.where(swap, edges[:, first], edges[:, second])
        for sign in (-0.5, 0.5):
            corner = centers + sign * edges[:, normal_axis] - 0.5 * (along + across)
            faces.append(Quads(f32(corner), along, across, f32(2 * sign * frames[:, normal_axis])))
    return join(faces)


def block(x: Span, height: Span, z: Span) -> Quads:
    """One upright box between two x, two heights (positive up) and two z."""
    center = [(x[0] + x[1]) / 2, -(height[0] + height[1]) / 2, (z[0] + z[1]) / 2]
    return boxes(center, [x[1] - x[0], height[1] - height[0], z[1] - z[0]])


def rods(starts: Numbers, ends: Numbers, radii: tuple[float, float]) -> Cones:
    """Many straight rods at once, with a radius at their starts and one at their ends."""
    first, last = f32(starts), f32(ends)
    lengths = np.linalg.norm(last - first, axis=1)
    return Cones(first, (last - first) / lengths[:, None], lengths, np.tile(f32(radii), (len(first), 1)))


def tube(path: Numbers, radius: Numbers) -> Cones:
    """A tube along a polyline (y down) with one radius, or one for each point."""
    points = f32(path)
    radii = np.broadcast_to(f32(radius), (len(points),))
    steps = np.diff(points, axis=0)
    heights = np.linalg.norm(steps, axis=1)
    return Cones(points[:-1], steps / heights[:, None], heights, np.stack([radii[:-1], radii[1:]], axis=1))


def lathe(profile: Numbers, x: Length = 0, z: Length = 0, height: Length = 0) -> Cones:
    """A solid of revolution about the vertical: (height, radius) pairs from the bottom up, all normals outwards."""
    levels, radii = f32(profile).T
    m = len(levels) - 1
    starts = np.tile(f32([x, 0, z]), (m, 1))
    starts[:, 1] = -(levels[:-1] + np.float32(height))
    axes = np.tile(UP, (m, 1))
    return Cones(starts, axes, np.diff(levels), np.stack([radii[:-1], radii[1:]], axis=1))


def sagging(start: Numbers, end: Numbers, sag: float, pieces: int = 24) -> Float32[Array, "k 3"]:
    """Points of a wire that hangs between two points."""
    t = np.linspace(0, 1, pieces + 1)[:, None]
    points = f32(start) * (1 - t) + f32(end) * t
    points[:, 1] += sag * 4 * t[:, 0] * (1 - t[:, 0])
    return f32(points)


def displaced(
    spots: Spots, offset: Callable[[Float32[Array, " n"], Float32[Array, " n"]], Float32[Array, " n"]]
) -> Spots:
    """Spots of a `quad` moved along their normals by offset(u, v) metres, with the normals of the new surface."""
    u, v = spots.uv.T
    step = np.float32(0.004)
    height = offset(u, v)
    slope_along = (offset(u + step, v) - height) / step
    slope_across = (offset(u, v + step) - height) / step
    bitangents = cross(spots.normals, spots.tangents)
    normals = spots.normals - slope_along[:, None] * spots.tangents - slope_across[:, None] * bitangents
    tangents = spots.tangents + slope_along[:, None] * spots.normals
    normals = normalized(normals)
    tangents = normalized(tangents - np.einsum("ni,ni->n", tangents, normals)[:, None] * normals)
    return replace(spots, means=spots.means + height[:, None] * spots.normals, normals=normals, tangents=tangents)
