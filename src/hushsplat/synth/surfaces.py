"""A shape and a paint make a part of the scene."""

from __future__ import annotations

from collections.abc import Callable
from typing import Protocol, runtime_checkable

import numpy as np
from jaxtyping import Float32
from numpy import ndarray as Array
from numpy.random import Generator

from hushsplat.synth.patterns import linear, speckled, wood
from hushsplat.synth.shapes import Length, Quads, Span, f32, quad
from hushsplat.synth.surfels import Finish, Part, Spots, Surfels, settle

WOODEN = Finish(stretch=2.6, spin=0.1, rough=0.04, gloss=0.06)
Paint = Callable[[Generator, Spots], Float32[Array, "n 3"]]


@runtime_checkable
class Shape(Protocol):
    """Anything that has an area and hands out spots on its surface."""

    @property
    def area(self) -> float:
        """Square metres."""

    def spots(self, rng: Generator, n: int) -> Spots:
        """n spots, even by area."""


def surface(name: str, shape: Shape, per_m2: int, paint: Paint, finish: Finish | None = None) -> Part:
    """A painted shape that wants `per_m2` surfels per square metre in a scene of about a million."""

    def make(rng: Generator, n: int) -> Surfels:
        spots = shape.spots(rng, n)
        return settle(rng, spots, paint(rng, spots), finish or Finish())

    return Part(name, shape.area * per_m2, make)


def plain(color: str, noise: float = 0.04) -> Paint:
    """One colour with a little noise from surfel to surfel."""
    rgb = linear(color)
    return lambda rng, spots: speckled(rng, rgb, len(spots.means), noise)


def each(colors: Float32[Array, "m 3"], noise: float = 0.05) -> Paint:
    """Instance i in colour i, counting round and round."""
    return lambda rng, spots: speckled(rng, colors[spots.owner % len(colors)], len(spots.means), noise)


def grained(tones: Float32[Array, "m 3"], key: int) -> Paint:
    """Wood, each board in its own tone."""
    return lambda rng, spots: wood(spots.uv, spots.owner, tones, key)


def ground(x: Span, z: Span, height: Length = 0) -> Quads:
    """A level rectangle that faces up, grain along z."""
    return quad([x[1], -height, z[0]], [0, 0, z[1] - z[0]], [x[0] - x[1], 0, 0])


def overhead(x: Span, z: Span, height: Length) -> Quads:
    """A level rectangle that faces down, grain along z."""
    return quad([x[0], -height, z[0]], [0, 0, z[1] - z[0]], [x[1] - x[0], 0, 0])


def wall(left: Span, right: Span, heights: Span) -> Quads:
    """An upright rectangle from its left to its right end (x, z) as one sees it from the front."""
    start = f32([left[0], -heights[0], left[1]])
    return quad(start, [right[0] - left[0], 0, right[1] - left[1]], [0, heights[0] - heights[1], 0])


def facing(spots: Spots, direction: tuple[int, int, int], above: float = 0.6) -> Float32[Array, " n"]:
    """1 for spots whose normal points that way, else 0."""
    return (spots.normals @ f32(direction) > np.float32(above)).astype(np.float32)
