"""The room itself: floor, walls, ceiling, glass door, curtains."""

from __future__ import annotations

from itertools import pairwise

import numpy as np
from jaxtyping import Float32
from numpy import ndarray as Array
from numpy.random import Generator

from hushsplat.synth.patterns import linear, ripples, speckled
from hushsplat.synth.plan import BACK_PICTURES, DOOR, PICTURES, ROOM, RUG_X, RUG_Z, SHELF_Z, WALL
from hushsplat.synth.shapes import Blobs, Pierced, Quads, Span, block, boxes, displaced, f32, join, tube
from hushsplat.synth.surfaces import Paint, grained, ground, overhead, plain, surface, wall
from hushsplat.synth.surfels import Finish, Part, Spots, Surfels, settle

OAK = linear("#b98a5b", "#c79a69", "#a97b4e", "#d0a778", "#bd9061")
WHITE, SAGE = "#efe7da", "#a8b09a"
PLANK_WIDTH, PLANK_LENGTH = 0.15, 1.7  # metres


def parts(rng: Generator) -> list[Part]:
    """Everything that stays when the movers have been."""
    return [*_floor(rng), *_walls(), *_backing(), *_trim(), *_door(), *_curtains()]


def hole(x: Span, heights: Span, z: Span) -> Float32[Array, "2 3"]:
    """A box to leave free, by heights that are positive upwards."""
    return f32([[x[0], -heights[1], z[0]], [x[1], -heights[0], z[1]]])


def _floor(rng: Generator) -> list[Part]:
    planks, seams = [], []
    rows = int(np.ceil(2 * ROOM.x / PLANK_WIDTH))
    for row in range(rows):
        x0 = -ROOM.x + row * PLANK_WIDTH
        x1 = min(x0 + PLANK_WIDTH, ROOM.x)
        cuts = np.arange(-ROOM.z - rng.uniform(0.2, PLANK_LENGTH), WALL, PLANK_LENGTH)
        cuts = np.unique(np.clip(np.append(cuts, WALL), -ROOM.z, WALL))
        planks += [ground((x0, x1), (a, b)) for a, b in pairwise(cuts)]
        seams.append(ground((x0 - 0.0025, x0 + 0.0025), (-ROOM.z, 0), 0.0006))
        seams += [ground((x0, x1), (cut - 0.002, cut + 0.002), 0.0006) for cut in cuts[1:-1]]
    under_rug = hole((RUG_X[0] + 0.03, RUG_X[1] - 0.03), (-1, 1), (RUG_Z[0] + 0.03, RUG_Z[1] - 0.03))[None]
    sheen = Finish(gloss=0.16, sharpness=3.0, stretch=3.0, spin=0.08, rough=0.03)
    line = Finish(opacity=(0.4, 0.95), stretch=6.0, spin=0.0, shadow=False)
    below = ground((-ROOM.x - 0.1, ROOM.x + 0.1), (-ROOM.z - 0.1, WALL), -0.02)
    return [
        surface("subfloor", Pierced(below, under_rug), 300, plain("#8f6842"), Finish(rough=0.02)),
        surface("floor", Pierced(join(planks), under_rug), 2900, grained(OAK, 11), sheen),
        surface("floor seams", Pierced(_longways(join(seams)), under_rug), 24000, plain("#7d5a3a"), line),
    ]


def _longways(quads: Quads) -> Quads:
    """The same quads with the grain along the longer edge."""
    swap = (np.linalg.norm(quads.across, axis=1) > np.linalg.norm(quads.along, axis=1))[:, None]
    along, across = np.where(swap, quads.across, quads.along), np.where(swap, quads.along, quads.across)
    return Quads(quads.corners, along, across, quads.normals)


def _plaster(color: str, key: int) -> Paint:
    """Paint on plaster: a little uneven."""
    rgb = linear(color)

    def paint(rng: Generator, spots: Spots) -> Float32[Array, "n 3"]:
        u, v = spots.uv.T
        brushed = 1 + 0.014 * ripples(u, v, 0.9, key) + 0.01 * ripples(u, v, 0.22, key + 1)
        return speckled(rng, rgb, len(u), 0.012) * brushed[:, None]

    return paint


def _walls() -> list[Part]:
    x, z, h = ROOM.x, ROOM.z, ROOM.height
    e = 0.06  # walls run on behind each other, so that no corner is open
    front = join(
        [
            wall((-x - e, 0), (-DOOR.x, 0), (-e, h + e)),
            wall((DOOR.x, 0), (x + e, 0), (-e, h + e)),
            wall((-DOOR.x - e, 0), (DOOR.x + e, 0), (DOOR.height, h + e)),
        ]
    )
    reveal = join(
        [
            wall((-DOOR.x, WALL), (-DOOR.x, 0), (-e, DOOR.height + e)),
            wall((DOOR.x, 0), (DOOR.x, WALL), (-e, DOOR.height + e)),
            overhead((-DOOR.x - e, DOOR.x + e), (0, WALL), DOOR.height),
        ]
    )
    matt = Finish(rough=0.03, opacity=(0.8, 1.0))  # plain walls must not let the sky through
    behind_pictures = f32([hole((-x - 1, 1 - x), heights, span) for span, heights in PICTURES])
    behind_shelf = hole((x - 1, x + 1), (0.0, 1.94), (SHELF_Z[0] + 0.03, SHELF_Z[1] - 0.03))[None]
    behind_prints = f32([hole(span, heights, (-z - 1, 1 - z)) for span, heights in BACK_PICTURES])
    back = wall((x + e, -z), (-x - e, -z), (-e, h + e))
    left, right = wall((-x, -z - e), (-x, e), (-e, h + e)), wall((x, e), (x, -z - e), (-e, h + e))
    return [
        surface("left wall", Pierced(left, behind_pictures), 900, _plaster(SAGE, 21), matt),
        surface("right wall", Pierced(right, behind_shelf), 750, _plaster(WHITE, 22), matt),
        surface("back wall", Pierced(back, behind_prints), 650, _plaster(WHITE, 23), matt),
        surface("front wall", front, 1000, _plaster(WHITE, 24), matt),
        surface("reveal", reveal, 2500, _plaster("#f1ebe0", 25), matt),
        surface("ceiling", overhead((-x - e, x + e), (-z - e, e), h), 420, _plaster("#f4f0e8", 26), matt),
    ]


def _backing() -> list[Part]:
    """A sparse second layer behind the plaster: where the first is thin, one sees wall and not the night outside."""
    x, z, h, e = ROOM.x + 0.08, ROOM.z + 0.08, ROOM.height + 0.08, 0.1
    white = join(
        [
            wall((x, e), (x, -z - e), (-e, h + e)),
            wall((x + e, -z), (-x - e, -z), (-e, h + e)),
            overhead((-x - e, x + e), (-z - e, 0), h),
        ]
    )
    hidden = Finish(rough=0.02, opacity=(0.85, 1.0), shadow=False)
    return [
        surface("backing", white, 90, plain(WHITE, 0.02), hidden),
        surface("left backing", wall((-x, -z - e), (-x, e), (-e, h + e)), 90, plain(SAGE, 0.02), hidden),
    ]


def _trim() -> list[Part]:
    x, z, h = ROOM.x, ROOM.z, ROOM.height
    t, top = 0.016, 0.09
    skirting = join(
        [
            block((-x, -x + t), (0, top), (-z, 0)),
            block((x - t, x), (0, top), (-z, 0)),
            block((-x, x), (0, top), (-z, -z + t)),
            block((-x, -DOOR.x), (0, top), (-t, 0)),
            block((DOOR.x, x), (0, top), (-t, 0)),
        ]
    )
    cornice = join(
        [
            block((-x, -x + 0.05), (h - 0.06, h), (-z, 0)),
            block((x - 0.05, x), (h - 0.06, h), (-z, 0)),
            block((-x, x), (h - 0.06, h), (-0.05, 0)),
            block((-x, x), (h - 0.06, h), (-z, -z + 0.05)),
        ]
    )
    return [
        surface("skirting", skirting, 1900, plain("#f3eee4", 0.02), Finish(stretch=2.5, gloss=0.05)),
        surface("cornice", cornice, 1300, plain("#f5f1ea", 0.02), Finish(stretch=2.5)),
    ]


def _door() -> list[Part]:
    """A sliding door of three panes; the left one is pushed open behind the middle one."""
    zc, t = 0.10, 0.045
    x, h = DOOR.x, DOOR.height
    frame = [
        block((-x, -x + t), (0, h), (zc - t, zc + t)),
        block((x - t, x), (0, h), (zc - t, zc + t)),
        block((-x, x), (h - t, h), (zc - t, zc + t)),
        block((-x, x), (-0.01, 0.012), (zc - t, zc + t)),
    ]
    third = 2 * x / 3
    panes = (
        (-x + third, -x + 2 * third, zc + 0.05),
        (x - third, x, zc),
        (-x + third + 0.06, -x + 2 * third + 0.06, zc),
    )
    glass = []
    for left, right, z in panes:
        b = 0.032
        frame += [
            block((left, left + b), (0.012, h - t), (z - 0.015, z + 0.015)),
            block((right - b, right), (0.012, h - t), (z - 0.015, z + 0.015)),
            block((left, right), (0.012, 0.10), (z - 0.015, z + 0.015)),
            block((left, right), (h - t - b, h - t), (z - 0.015, z + 0.015)),
        ]
        glass.append(wall((left + b, z), (right - b, z), (0.1, h - t - b)))
    handle = tube([[-x + 0.05 + third, -0.95, zc - 0.05], [-x + 0.05 + third, -1.25, zc - 0.05]], 0.011)
    glassy = Finish(gloss=0.5, sharpness=3.0, opacity=(0.01, 0.05), shadow=False, rough=0.01)
    return [
        surface("door frame", join(frame), 3800, plain("#3a3b3b"), Finish(gloss=0.12, stretch=3.5, spin=0.1)),
        surface("door glass", join(glass), 120, plain("#cfe0e6", 0.0), glassy),
        surface("door handle", handle, 16000, plain("#b9b4a8"), Finish(gloss=0.5)),
    ]


def _curtains() -> list[Part]:
    linen = linear("#efe6d4")
    rod_height = 2.58

    def hang(x0: float, x1: float, key: int) -> Part:
        cloth = wall((x0, -0.11), (x1, -0.11), (0.015, rod_height - 0.02))

        def make(rng: Generator, n: int) -> Surfels:
            def folds(u: Float32[Array, " n"], v: Float32[Array, " n"]) -> Float32[Array, " n"]:
                swing = 0.6 * np.sin(1.7 * v + key) + 0.25 * np.sin(4.1 * v)
                return 0.035 * np.sin(2 * np.pi * u / 0.105 + swing) + 0.012 * np.sin(2 * np.pi * u / 0.043 + 2 * v)

            spots = displaced(cloth.spots(rng, n), folds)
            weave = 1 + 0.03 * np.sin(2 * np.pi * spots.uv[:, 1] / 0.05 + key)
            albedo = speckled(rng, linen, n, 0.04) * weave[:, None]
            cloth_finish = Finish(
                glow=0.22, translucency=0.65, opacity=(0.35, 0.85), stretch=0.4, spin=0.1, rough=0.1, shadow=False
            )
            return settle(rng, spots, albedo.astype(np.float32), cloth_finish)

        return Part("curtain", cloth.area * 7000, make)

    rod = tube([[-2.55, -rod_height, -0.11], [2.55, -rod_height, -0.11]], 0.012)
    knobs = Blobs(f32([[-2.57, -rod_height, -0.11], [2.57, -rod_height, -0.11]]), np.full((2, 3), 0.028, np.float32))
    brackets = boxes([[s * 2.4, -rod_height, -0.06] for s in (-1, 1)], [[0.02, 0.02, 0.12]] * 2)
    brass = Finish(gloss=0.45, stretch=2.5)
    return [
        hang(-2.42, -1.62, 1),
        hang(1.66, 2.36, 2),
        surface("curtain rod", rod, 7000, plain("#8a6f43"), brass),
        surface("curtain knobs", knobs, 9000, plain("#8a6f43"), brass),
        surface("curtain brackets", brackets, 9000, plain("#8a6f43"), brass),
    ]
