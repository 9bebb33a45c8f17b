"""The house from outside: front, windows, shutters, roof."""

from __future__ import annotations

import numpy as np
from jaxtyping import Float32
from numpy import ndarray as Array
from numpy.random import Generator

from hushsplat.synth.patterns import linear, ramp, ripples, smoothstep, speckled
from hushsplat.synth.plan import DOOR, GARDEN, WALL
from hushsplat.synth.shapes import Pierced, Quads, block, f32, join, quad
from hushsplat.synth.surfaces import plain, surface, wall
from hushsplat.synth.surfels import Finish, Part, Spots

HALF_WIDTH, EAVES = GARDEN.x + 0.1, 3.0  # metres
WINDOWS = ((-4.45, -3.35), (3.35, 4.45))  # x
WINDOW_HEIGHTS = (0.95, 2.15)


def parts(rng: Generator) -> list[Part]:
    """The front that looks at the garden."""
    x, z = HALF_WIDTH, WALL
    low, high = WINDOW_HEIGHTS
    front = wall((x, z), (-x, z), (-0.1, EAVES))
    openings = [(-DOOR.x, DOOR.x, -9.0, DOOR.height), *((a, b, low, high) for a, b in WINDOWS)]
    holes = f32([[[a, -top, -9], [b, -bottom, 9]] for a, b, bottom, top in openings])
    panes = join([wall((b, z - 0.05), (a, z - 0.05), WINDOW_HEIGHTS) for a, b in WINDOWS])
    beam = block((-x, x), (EAVES - 0.05, EAVES + 0.06), (z, z + 0.45))
    gutter = block((-x, x), (EAVES - 0.09, EAVES - 0.02), (z + 0.4, z + 0.5))
    roof = quad([x, -(EAVES + 0.06), z + 0.5], [-2 * x, 0, 0], [0, -1.9, -3.4])
    glassy = Finish(gloss=0.6, sharpness=3.0, rough=0.01)
    return [
        surface("house front", Pierced(front, holes), 560, _render, Finish(rough=0.06)),
        surface("window frames", _frames(), 2600, plain("#f2efe8", 0.03), Finish(stretch=3.5)),
        surface("window panes", panes, 700, plain("#2d3a40", 0.08), glassy),
        surface("shutters", _shutters(), 1500, plain("#6f8b80", 0.05), Finish(stretch=4.0, spin=0.05)),
        surface("eaves", join([beam, gutter]), 500, plain("#8d7a63", 0.05), Finish(stretch=3.0)),
        surface("roof", roof, 170, _tiles, Finish(rough=0.1)),
    ]


def _render(rng: Generator, spots: Spots) -> Float32[Array, "n 3"]:
    """Lime render, stained near the ground."""
    x, y, _ = spots.means.T
    tone = 1 + 0.03 * ripples(x, y, 0.8, 101) + 0.03 * ripples(x, y, 0.15, 102) - 0.16 * smoothstep(-0.5, 0.1, y)
    return speckled(rng, linear("#e6d8c0"), len(x), 0.03) * tone[:, None]


def _tiles(rng: Generator, spots: Spots) -> Float32[Array, "n 3"]:
    """Rows of clay tiles, each fired a little differently."""
    u, v = spots.uv.T
    row = np.floor(v / 0.26)
    column = np.floor(u / 0.2 + 0.5 * (row % 2))
    pick = f32((np.sin(row * 12.9898 + column * 78.233) * 437.585453) % 1)
    shade = 1 - 0.5 * smoothstep(0.06, 0.0, v % np.float32(0.26))
    color = ramp(linear("#7d4a36", "#94593f", "#a86a4b", "#6e4434"), pick)
    return speckled(rng, color * shade[:, None], len(u), 0.06)


def _frames() -> Quads:
    low, high = WINDOW_HEIGHTS
    depth, t = (WALL - 0.06, WALL + 0.02), 0.05
    bars = []
    for a, b in WINDOWS:
        middle = (a + b) / 2
        bars += [block(x, (low, high), depth) for x in ((a, a + t), (b - t, b), (middle - t / 2, middle + t / 2))]
        bars += [block((a, b), (h - t / 2, h + t / 2), depth) for h in (low, (low + high) / 2, high)]
    return join(bars)


def _shutters() -> Quads:
    low, high = WINDOW_HEIGHTS
    slats = []
    for a, b in WINDOWS:
        for left, right in ((a - 0.5, a), (b, b + 0.5)):
            heights = np.arange(low + 0.04, high - 0.03, 0.06)
            slats += [block((left + 0.04, right - 0.04), (h, h + 0.04), (WALL + 0.02, WALL + 0.035)) for h in heights]
            stiles = ((left, left + 0.045), (right - 0.045, right))
            slats += [block(stile, (low, high), (WALL + 0.015, WALL + 0.05)) for stile in stiles]
    return join(slats)
