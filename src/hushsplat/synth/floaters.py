"""Floaters, as trained scenes have them: faint veils in mid-air and needles."""

from __future__ import annotations

import numpy as np
from jaxtyping import Bool, Float32
from numpy import ndarray as Array
from numpy.random import Generator

from hushsplat.synth.patterns import choose, linear
from hushsplat.synth.plan import GARDEN, ROOM, WALL
from hushsplat.synth.surfels import Finish, Part, Surfels, any_tangent, random_directions

AIRY = Finish(glow=0.28, translucency=1.0, shadow=False)
WANTED_VEILS, WANTED_NEEDLES = 20000.0, 7000.0


def parts(rng: Generator) -> list[Part]:
    """A few percent of the scene."""
    return [Part("veils", WANTED_VEILS, _veils), Part("needles", WANTED_NEEDLES, _needles)]


def _somewhere(rng: Generator, n: int) -> tuple[Float32[Array, "n 3"], Bool[Array, " n"]]:
    """Places in the air of the room or the garden, rather at the margins than in the way, and which are indoors."""
    share = rng.random((n, 3), dtype=np.float32)
    side = 2 * share[:, 0] - 1
    side = np.sign(side) * np.abs(side) ** np.float32(0.45)
    up, depth = share[:, 1], share[:, 2]
    indoors = rng.random(n, dtype=np.float32) < 0.4
    x = side * np.where(indoors, ROOM.x - 0.1, GARDEN.x)
    y = np.where(indoors, -0.08 - up * (ROOM.height - 0.16), -0.05 - 1.9 * up * up)
    z = np.where(indoors, -0.1 - depth * (ROOM.z - 0.2), WALL + 0.3 + depth * (GARDEN.z - WALL - 0.4))
    return np.stack([x, y, z], axis=1).astype(np.float32), indoors


def _colors(rng: Generator, indoors: Bool[Array, " n"]) -> Float32[Array, "n 3"]:
    """What such surfels have learned: the colours around them."""
    n = len(indoors)
    room = choose(rng, linear("#d8d2c4", "#c9c4b4", "#b9bdae"), n)
    garden = choose(rng, linear("#b5c49a", "#9fb383", "#d3d8cf", "#a9b88d"), n)
    return np.where(indoors[:, None], room, garden).astype(np.float32)


def _veils(rng: Generator, n: int) -> Surfels:
    """Large and faint. Their number grows with the scene, their total cover does not."""
    means, indoors = _somewhere(rng, n)
    normals = random_directions(rng, n)
    size = np.float32(0.0205 * np.sqrt(WANTED_VEILS / n)) * np.exp(0.6 * rng.standard_normal(n, dtype=np.float32))
    aspect = np.clip(np.exp(0.6 * np.abs(rng.standard_normal(n, dtype=np.float32))), 1, 6)
    scales = np.stack([size * np.sqrt(aspect), size / np.sqrt(aspect)], axis=1)
    opacities = np.float32(0.02) + np.float32(0.18) * rng.random(n, dtype=np.float32) ** 2
    return Surfels(means, normals, any_tangent(normals), scales, opacities, _colors(rng, indoors), AIRY)


def _needles(rng: Generator, n: int) -> Surfels:
    """Long, thin and half opaque."""
    means, indoors = _somewhere(rng, n)
    normals = random_directions(rng, n)
    length = np.float32(0.015 * np.sqrt(WANTED_NEEDLES / n)) * np.exp(0.5 * rng.standard_normal(n, dtype=np.float32))
    thin = length / (np.float32(8) + 2 * rng.random(n, dtype=np.float32))
    opacities = np.float32(0.05) + np.float32(0.35) * rng.random(n, dtype=np.float32)
    scales = np.stack([length, thin], axis=1)
    return Surfels(means, normals, any_tangent(normals), scales, opacities, _colors(rng, indoors), AIRY)
