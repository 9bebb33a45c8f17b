"""Plants in pots, indoors and on the terrace."""

from __future__ import annotations

import numpy as np
from jaxtyping import Float32
from numpy import ndarray as Array
from numpy.random import Generator

from hushsplat.synth.foliage import leafage
from hushsplat.synth.patterns import linear, mix, smoothstep, speckled
from hushsplat.synth.shapes import UP, Blobs, Cones, f32, join, lathe, tube
from hushsplat.synth.soft import Blades
from hushsplat.synth.surfaces import each, plain, surface
from hushsplat.synth.surfels import Finish, Part, Spots, normalized, random_directions

HOUSE_PLANT = (2.52, -0.55)  # x, z
POTS = ((-2.05, 0.62, 0.19), (2.0, 0.6, 0.2), (2.5, 0.75, 0.14), (-4.0, 2.1, 0.22))  # x, z, radius


def parts(rng: Generator) -> list[Part]:
    """All pots."""
    return [*_house_plant(rng), *_pots(rng)]


def _house_plant(rng: Generator) -> list[Part]:
    """A large-leaved plant in a basket by the door, indoors."""
    x, z = HOUSE_PLANT
    pot = lathe([(0, 0), (0, 0.15), (0.16, 0.19), (0.3, 0.18), (0.33, 0.185), (0.33, 0.165), (0.28, 0.16)], x, z)
    soil = lathe([(0.28, 0.17), (0.285, 0.0)], x, z)
    stems, leaves = _stems_and_leaves(rng)
    leathery = Finish(gloss=0.22, translucency=0.4, opacity=(0.55, 0.98), rough=0.06)
    return [
        surface("plant basket", pot, 5500, plain("#b9925f", 0.16), Finish(rough=0.2)),
        surface("plant soil", soil, 3000, plain("#3a2b20", 0.2), Finish(rough=0.3)),
        surface("plant stems", stems, 9000, plain("#5d7f45", 0.08), Finish(stretch=5.0)),
        surface("plant leaves", leaves, 11000, _veined, leathery),
    ]


def _stems_and_leaves(rng: Generator) -> tuple[Cones, Blades]:
    """Stems that rise from the pot in all directions, a large leaf at the end of each."""
    x, z = HOUSE_PLANT
    m = 17
    turn = 2.399 * np.arange(m) + rng.uniform(-0.2, 0.2, m)
    out = f32(np.stack([np.cos(turn), np.zeros(m), np.sin(turn)], axis=1))
    reach, height = f32(rng.uniform(0.12, 0.42, m)), f32(rng.uniform(0.55, 1.5, m))
    reach = np.where(x + out[:, 0] * reach > 2.8, 0.4 * reach, reach)[:, None]  # not into the wall
    roots = f32([x, -0.28, z]) + f32(0.05) * out
    tips = f32([x, 0, z]) + out * reach + height[:, None] * UP
    knees = f32(0.5) * (roots + tips) + f32([0, -0.12, 0]) - f32(0.06) * out
    stems = [tube(path, [0.011, 0.009, 0.006]) for path in np.stack([roots, knees, tips], axis=1)]
    directions = normalized(out + f32(rng.uniform(-0.1, 0.5, (m, 1))) * UP)
    sizes = f32(rng.uniform([0.26, 0.19], [0.42, 0.29], (m, 2)))
    return join(stems), Blades(tips, directions, normalized(f32(0.5) * out + UP), sizes, droop=0.42, bluntness=0.55)


def _veined(rng: Generator, spots: Spots) -> Float32[Array, "n 3"]:
    """Dark leaves with pale ribs."""
    s, w = spots.uv.T
    side_ribs = np.abs(np.sin(np.pi * (7 * s - 2.2 * np.abs(w)))) ** 6
    rib = np.maximum(0.5 * side_ribs, smoothstep(0.07, 0.02, np.abs(w)))
    tone = linear("#2f5b33", "#3d6f3a", "#28502f")[spots.owner % 3]
    return speckled(rng, mix(tone, linear("#84a95c"), 0.55 * rib), len(s), 0.06)


def _pots(rng: Generator) -> list[Part]:
    """Terracotta pots on the terrace with herbs and geraniums."""
    profile = f32([(0, 0), (0, 0.7), (1.5, 1), (1.5, 1.12), (1.8, 1.12), (1.8, 0.98), (1.6, 0)])
    pots = [lathe(profile * f32(radius), x, z, -0.02) for x, z, radius in POTS]
    centers = f32([[x, -1.8 * radius - 0.12, z] for x, z, radius in POTS])
    spread = f32([[1.15 * radius, 0.9 * radius, 1.15 * radius] for _, _, radius in POTS])

    def tufts(rng: Generator, n: int) -> tuple[Float32[Array, "n 3"], Float32[Array, "n 3"]]:
        pick = rng.integers(0, len(POTS), n)
        off = random_directions(rng, n) * np.sqrt(rng.random((n, 1), dtype=np.float32))
        return centers[pick] + off * spread[pick], off + f32([0, -0.4, 0])

    m = 64
    pick = rng.integers(0, len(POTS), m)
    off = random_directions(rng, m)
    off[:, 1] = -np.abs(off[:, 1])
    flowers = Blobs(centers[pick] + off * spread[pick], np.full((m, 3), 0.03, np.float32))
    reds = linear("#d8372f", "#e2574c", "#f0d9d0", "#c92a45")[pick]
    petal = Finish(translucency=0.4, rough=0.4, opacity=(0.5, 0.95))
    return [
        surface("terracotta pots", join(pots), 3000, plain("#b5694a", 0.08), Finish(rough=0.1)),
        leafage("pot leaves", 7000.0, 0.024, tufts, linear("#31561f", "#4a7a33", "#6f9a4a")),
        surface("geraniums", flowers, 7000, each(reds, 0.12), petal),
    ]
