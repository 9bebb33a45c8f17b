"""Grass, flower beds and the rose on the trellis."""

from __future__ import annotations

import numpy as np
from jaxtyping import Float32
from numpy import ndarray as Array
from numpy.random import Generator

from hushsplat.synth.foliage import leafage
from hushsplat.synth.patterns import linear, ramp, ripples
from hushsplat.synth.plan import GARDEN, LAWN_HEIGHT, TERRACE_Z, on_lawn
from hushsplat.synth.shapes import UP, Blobs, even_pairs, f32, join, rods, tube
from hushsplat.synth.surfaces import each, plain, surface
from hushsplat.synth.surfels import Finish, Part, Surfels, cross, normalized, random_directions

GRASS_WANTED = 50000.0
PETALS = Finish(translucency=0.4, opacity=(0.5, 0.95), rough=0.35)


def parts(rng: Generator) -> list[Part]:
    """Everything that is mown or tied up."""
    return [Part("grass", GRASS_WANTED, _grass), *_beds(rng), *_climber(rng)]


def _grass_bases(rng: Generator, n: int) -> Float32[Array, "n 3"]:
    """Even places on the lawn, denser near the terrace, where one stands."""
    kept = np.empty((0, 3), dtype=np.float32)
    while len(kept) < n:
        u, v = even_pairs(rng, int(1.35 * n) + 64)
        z = TERRACE_Z + (GARDEN.z - TERRACE_Z) * (0.25 * v + 0.75 * v * v)
        tries = np.stack([(2 * u - 1) * (GARDEN.x - 0.7), np.full_like(u, -LAWN_HEIGHT), z], axis=1)
        kept = np.concatenate([kept, tries[on_lawn(tries)]])
    return kept[rng.permutation(len(kept))[:n]]


def _grass(rng: Generator, n: int) -> Surfels:
    """Blades of grass: thin and upright."""
    bases = _grass_bases(rng, n)
    x, _, z = bases.T
    lush = 0.5 + 0.25 * ripples(x, z, 1.3, 87) + 0.15 * ripples(x, z, 0.35, 88)
    # Fewer blades are both longer and wider, so that the lawn stays as green.
    larger = np.float32((GRASS_WANTED / n) ** 0.25)
    length_noise, width_noise = np.exp(0.25 * rng.standard_normal((2, n), dtype=np.float32))
    length = larger * (0.022 + 0.008 * lush) * length_noise
    width = length / np.clip(4.2 * width_noise / larger, 1.2, 10)
    lean = 0.45 * rng.standard_normal((n, 3), dtype=np.float32)
    tangents = normalized(lean * f32([1, 0, 1]) + UP)
    normals = normalized(cross(tangents, random_directions(rng, n)))
    means = bases + tangents * (0.9 * length)[:, None]
    tones = linear("#3c5f22", "#55802c", "#729a3a", "#9cb455")
    color = ramp(tones, lush + 0.2 * rng.standard_normal(n, dtype=np.float32))
    opacities = np.float32(0.4) + np.float32(0.5) * rng.random(n, dtype=np.float32)
    finish = Finish(translucency=0.75, shadow=False)
    return Surfels(means, normals, tangents, np.stack([length, width], axis=1), opacities, color, finish)


def _beds(rng: Generator) -> list[Part]:
    """Two flower beds: stems, leaves and blossoms."""
    m = 260
    left = rng.random(m) < 0.45
    z = np.where(left, rng.uniform(6.2, GARDEN.z - 0.3, m), rng.uniform(2.7, GARDEN.z - 0.4, m))
    x = np.where(left, rng.uniform(-GARDEN.x + 0.15, -4.5, m), rng.uniform(4.0, GARDEN.x - 0.75, m))
    far = rng.random(m) < 0.22
    x, z = np.where(far, rng.uniform(-4.6, 4.4, m), x), np.where(far, rng.uniform(9.6, GARDEN.z - 0.1, m), z)
    height = rng.uniform(0.25, 0.75, m)
    base = np.stack([x, np.full(m, -LAWN_HEIGHT), z], axis=1)
    tip = base + np.stack([rng.normal(0, 0.06, m), -height, rng.normal(0, 0.06, m)], axis=1)
    knee = 0.5 * (base + tip) + rng.normal(0, 0.02, (m, 3))
    stems = join([rods(base, knee, (0.006, 0.005)), rods(knee, tip, (0.005, 0.004))])
    kinds = rng.integers(0, 6, m)
    heads = Blobs(f32(tip), f32(rng.uniform(0.8, 1.25, (m, 1)) * np.array([0.038, 0.03, 0.038])))
    palette = linear("#d8443c", "#f2c230", "#f4efe6", "#9b6fc4", "#e886ac", "#7d6fd0")

    def among(rng: Generator, n: int) -> tuple[Float32[Array, "n 3"], Float32[Array, "n 3"]]:
        pick = rng.integers(0, m, n)
        lift = rng.random((n, 1), dtype=np.float32)
        means = f32(base)[pick] * (1 - 0.8 * lift) + f32(tip)[pick] * (0.8 * lift)
        means = means + f32([0.09, 0.05, 0.09]) * rng.standard_normal((n, 3), dtype=np.float32)
        means[:, 1] = np.minimum(means[:, 1], -LAWN_HEIGHT)
        return means, np.tile(f32([0, -0.7, 0]), (n, 1))

    return [
        surface("bed stems", stems, 2600, plain("#4c6e34", 0.12), Finish(stretch=6.0, translucency=0.2)),
        surface("blossoms", heads, 3200, each(palette[kinds], 0.12), PETALS),
        leafage("bed leaves", 15000.0, 0.026, among, linear("#2c4c22", "#47692c", "#6a8b40", "#8aa562")),
    ]


def _climber(rng: Generator) -> list[Part]:
    """A rose on the trellis: wandering shoots, leaves, blossoms."""
    x = -GARDEN.x + 0.12
    shoots, joints = [], []
    for _ in range(16):
        point = f32([x, -LAWN_HEIGHT, rng.uniform(2.9, 5.4)])
        heading = f32([0, -1, rng.normal(0, 0.35)])
        path = [point]
        for _ in range(12):
            heading = heading + f32([0, rng.normal(0, 0.15), rng.normal(0, 0.35)])
            heading = heading / np.linalg.norm(heading)
            path.append(path[-1] + 0.18 * heading * f32([0, 1, 1]) + f32([rng.normal(0, 0.025), 0, 0]))
        shoots.append(tube(path, np.linspace(0.009, 0.003, len(path))))
        joints.append(f32(path[2:]))
    knots = np.concatenate(joints)
    blooms = knots[rng.integers(0, len(knots), 70)] + f32(rng.normal(0, 0.07, (70, 3))) + f32([0.07, 0, 0])

    def along(rng: Generator, n: int) -> tuple[Float32[Array, "n 3"], Float32[Array, "n 3"]]:
        stray = f32([0.05, 0.09, 0.09]) * rng.standard_normal((n, 3), dtype=np.float32)
        return knots[rng.integers(0, len(knots), n)] + stray, np.tile(f32([0.8, -0.3, 0]), (n, 1))

    roses = Blobs(f32(blooms), np.full((70, 3), 0.038, np.float32))
    return [
        surface("rose shoots", join(shoots), 4500, plain("#5c4a35", 0.1), Finish(stretch=6.0)),
        leafage("rose leaves", 9500.0, 0.024, along, linear("#2a4a24", "#41652f", "#5f8440")),
        surface("roses", roses, 4600, each(linear("#e9a9b4", "#d9697d", "#f4d9d6", "#c8475d"), 0.12), PETALS),
    ]
