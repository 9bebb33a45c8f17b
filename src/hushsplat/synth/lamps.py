"""The pendant over the table and the floor lamp by the sofa."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
from jaxtyping import Float32
from numpy import ndarray as Array
from numpy.random import Generator

from hushsplat.synth.patterns import linear, ramp, speckled
from hushsplat.synth.plan import DINING, ROOM
from hushsplat.synth.shapes import Blobs, f32, lathe, tube
from hushsplat.synth.surfaces import plain, surface
from hushsplat.synth.surfels import Finish, Part, Spots


def parts(rng: Generator) -> list[Part]:
    """Both lamps."""
    return [*_pendant(), *_floor_lamp()]


def _pendant() -> list[Part]:
    x, z = DINING
    hangs = 1.62
    dome = [
        (0, 0.235),
        (0.035, 0.232),
        (0.08, 0.21),
        (0.12, 0.17),
        (0.155, 0.11),
        (0.175, 0.05),
        (0.185, 0.022),
        (0.24, 0.018),
        (0.25, 0.0),
    ]
    inside = lathe([(0.03, 0.0), (0.03, 0.215)], x, z, hangs)
    cord = tube([[x, -ROOM.height, z], [x + 0.004, -2.2, z + 0.003], [x, -hangs - 0.24, z]], 0.0035)
    rose = lathe([(0, 0), (0, 0.05), (0.025, 0.05), (0.025, 0.0)], x, z, ROOM.height - 0.026)
    bulb = Blobs(f32([[x, -hangs - 0.06, z]]), f32([[0.04, 0.05, 0.04]]))
    copper = Finish(gloss=0.6, sharpness=3.5, rough=0.02, stretch=1.4, opacity=(0.9, 1.0))
    return [
        surface("pendant", lathe(dome, x, z, hangs), 11000, plain("#9c5a3c", 0.04), copper),
        surface("pendant inside", inside, 5000, plain("#f0dcc0", 0.03), Finish(glow=0.5)),
        surface("pendant bulb", bulb, 12000, plain("#ffe9c0", 0.0), Finish(glow=2.0)),
        surface("pendant cord", cord, 26000, plain("#1e1c1b"), Finish(stretch=6.0, translucency=0.7)),
        surface("ceiling rose", rose, 6000, plain("#8a4f35"), copper),
    ]


def _floor_lamp() -> list[Part]:
    x, z = -2.52, -0.72
    foot = lathe([(0, 0.15), (0.018, 0.15), (0.024, 0.14), (0.026, 0.0)], x, z)
    stem = tube([[x, 0, z], [x, -1.42, z]], 0.0075)
    shade = lathe([(1.36, 0.215), (1.66, 0.15)], x, z)
    ring = lathe([(1.355, 0.217), (1.366, 0.217), (1.366, 0.21)], x, z)
    cable = tube(
        [
            [x, -0.006, z],
            [x - 0.12, -0.005, z + 0.2],
            [x - 0.25, -0.005, z + 0.3],
            [x - 0.45, -0.02, z + 0.42],
            [x - 0.46, -0.3, z + 0.43],
        ],
        0.004,
    )

    def lampshade(rng: Generator, spots: Spots) -> Float32[Array, "n 3"]:
        warm = ramp(linear("#ffe3b0", "#f5c98a", "#e3b179"), np.abs(spots.uv[:, 0] - 0.12) / 0.2)
        return speckled(rng, warm, len(warm), 0.04)

    brass = Finish(gloss=0.6, stretch=3.0)
    return [
        surface("lamp foot", foot, 7000, plain("#7d6a45"), brass),
        surface("lamp stem", stem, 16000, plain("#8d7748"), replace(brass, gloss=0.2, translucency=0.7)),
        surface("lamp shade", shade, 9000, lampshade, Finish(glow=0.85, translucency=0.5, rough=0.08)),
        surface("lamp ring", ring, 9000, plain("#c9a878"), Finish(glow=0.2)),
        surface("lamp cable", cable, 16000, plain("#2a2724"), Finish(stretch=6.0)),
    ]
