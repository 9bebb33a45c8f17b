"""Tables, chairs and the sideboard."""

from __future__ import annotations

import numpy as np
from jaxtyping import Float32
from numpy import ndarray as Array
from numpy.random import Generator

from hushsplat.synth.patterns import linear
from hushsplat.synth.plan import COFFEE, DINING, ROOM, SIDEBOARD_X
from hushsplat.synth.shapes import Blobs, Cones, Quads, block, boxes, f32, join, lathe, tube
from hushsplat.synth.soft import Cushions
from hushsplat.synth.surfaces import WOODEN, grained, plain, surface
from hushsplat.synth.surfels import Finish, Part

WALNUT = linear("#5f3b26", "#6f472e", "#523220")
ASH = linear("#c9ab83", "#d3b68e", "#bf9f76")


def parts(rng: Generator) -> list[Part]:
    """Dining table with chairs, coffee table, sideboard."""
    return [*_dining_table(), *_chairs(), *_coffee_table(), *_sideboard()]


def _dining_table() -> list[Part]:
    x, z = DINING
    top = block((-0.44, 0.44), (0.715, 0.75), (-0.8, 0.8)).placed(x, z)
    apron = join(
        [block((-0.36, 0.36), (0.64, 0.715), (s * 0.7 - 0.012, s * 0.7 + 0.012)).placed(x, z) for s in (-1, 1)]
        + [block((s * 0.36 - 0.012, s * 0.36 + 0.012), (0.64, 0.715), (-0.7, 0.7)).placed(x, z) for s in (-1, 1)]
    )
    legs = join(
        [
            tube([[sx * 0.36, -0.715, sz * 0.7], [sx * 0.40, 0, sz * 0.76]], [0.034, 0.017]).placed(x, z)
            for sx in (-1, 1)
            for sz in (-1, 1)
        ]
    )
    lacquer = Finish(gloss=0.3, sharpness=3.5, stretch=2.6, spin=0.08, rough=0.02)
    return [
        surface("table top", top, 6200, grained(WALNUT, 31), lacquer),
        surface("table apron", apron, 4500, grained(WALNUT, 32), WOODEN),
        surface("table legs", legs, 5200, grained(WALNUT, 33), WOODEN),
    ]


def _chair() -> tuple[Quads, Cones]:
    """A chair at the origin that faces +z: boards and round parts."""
    lean = f32([[1, 0, 0], [0, np.cos(0.16), np.sin(0.16)], [0, -np.sin(0.16), np.cos(0.16)]])
    foot = f32([0, -0.46, -0.195])  # where the back starts

    def on_back(across: float, up: float) -> Float32[Array, " 3"]:
        return foot + f32([across, 0, 0]) - lean[1] * f32(up)

    slats = boxes([on_back(a, 0.21) for a in np.linspace(-0.145, 0.145, 6)], [[0.024, 0.34, 0.009]] * 6, lean)
    rails = boxes([on_back(0.0, 0.385), on_back(0.0, 0.05)], [[0.43, 0.055, 0.02], [0.37, 0.03, 0.016]], lean)
    seat = block((-0.215, 0.215), (0.435, 0.46), (-0.21, 0.21))
    posts = [
        tube(
            [[s * 0.19, 0, -0.235], [s * 0.195, -0.46, -0.195], on_back(s * 0.2, 0.42).tolist()], [0.012, 0.017, 0.012]
        )
        for s in (-1, 1)
    ]
    legs = [tube([[s * 0.185, -0.44, 0.175], [s * 0.205, 0, 0.205]], [0.017, 0.011]) for s in (-1, 1)]
    rungs = [tube([[s * 0.195, -0.2, -0.22], [s * 0.197, -0.2, 0.19]], 0.008) for s in (-1, 1)]
    rungs.append(tube([[-0.195, -0.24, 0.0], [0.195, -0.24, 0.0]], 0.008))
    return join([slats, rails, seat]), join(posts + legs + rungs)


def _chairs() -> list[Part]:
    boards, rounds = _chair()
    x, z = DINING
    places = [(x - 0.66, z - 0.38, -84), (x - 0.78, z + 0.40, -97), (x + 0.62, z - 0.36, 92), (x + 0.60, z + 0.42, 86)]
    pad = Cushions(f32([[0, -0.475, 0]]), f32([[0.38, 0.035, 0.38]]), f32(np.eye(3))[None], 0.015, 0.012)
    pads = [pad.placed(*place) for place in places[:3]]
    return [
        surface("chair boards", join([boards.placed(*place) for place in places]), 8200, grained(ASH, 35), WOODEN),
        surface("chair rods", join([rounds.placed(*place) for place in places]), 9000, grained(ASH, 36), WOODEN),
        surface("chair pads", join(pads), 5000, plain("#8f5a3f", 0.05), Finish(rough=0.06)),
    ]


def _coffee_table() -> list[Part]:
    x, z = COFFEE
    top = lathe([(0.385, 0.0), (0.385, 0.44), (0.391, 0.45), (0.405, 0.45), (0.411, 0.44), (0.411, 0.0)], x, z)
    wires = []
    for turn in np.radians([20, 110, 200, 290]):
        c, s = np.cos(turn), np.sin(turn)
        side = f32([-s, 0, c]) * 0.055
        knee = f32([0.40 * c, -0.012, 0.40 * s])
        shoulder = f32([0.30 * c, -0.39, 0.30 * s])
        wires.append(tube([shoulder + side, knee + 0.2 * side, knee - 0.2 * side, shoulder - side], 0.006).placed(x, z))
    lacquer = Finish(gloss=0.5, sharpness=3.5, rough=0.015)
    return [
        surface("coffee table", top, 6500, plain("#24282b", 0.03), lacquer),
        surface("hairpin legs", join(wires), 14000, plain("#1d1e20"), Finish(gloss=0.3, stretch=4.0)),
    ]


def _sideboard() -> list[Part]:
    """A low cupboard with three doors, a bowl and candles on it."""
    (a, b), back = SIDEBOARD_X, -ROOM.z + 0.03
    front, low, high = back + 0.42, 0.18, 0.72
    third = (b - a) / 3
    doors = [
        block((a + k * third + 0.012, a + (k + 1) * third - 0.012), (low + 0.02, high - 0.03), (front, front + 0.014))
        for k in range(3)
    ]
    knobs = [[a + (k + 0.88) * third, -0.52, front + 0.024] for k in range(3)]
    legs = [
        tube([[x, -low, z], [x, 0, z]], [0.02, 0.012])
        for x in (a + 0.08, b - 0.08)
        for z in (back + 0.06, front - 0.06)
    ]
    bowl = lathe(
        [(0, 0), (0, 0.07), (0.03, 0.1), (0.09, 0.16), (0.092, 0.155), (0.04, 0.09), (0.03, 0)],
        b - 0.35,
        back + 0.2,
        high,
    )
    candles = [
        lathe([(0, 0), (0, 0.04), (0.012, 0.045), (0.02, 0.011), (tall, 0.011), (tall, 0)], a + at, back + 0.18, high)
        for at, tall in ((0.25, 0.26), (0.36, 0.2))
    ]
    return [
        surface("sideboard", block((a, b), (low, high), (back, front)), 2600, grained(WALNUT, 37), WOODEN),
        surface("sideboard doors", join(doors), 3200, grained(ASH, 38), WOODEN),
        surface(
            "sideboard knobs",
            Blobs(f32(knobs), np.full((3, 3), 0.013, np.float32)),
            20000,
            plain("#8d7748"),
            Finish(gloss=0.5),
        ),
        surface("sideboard legs", join(legs), 5000, grained(WALNUT, 39), WOODEN),
        surface("sideboard bowl", bowl, 6000, plain("#4f6d6b", 0.05), Finish(gloss=0.45, sharpness=4.0, rough=0.02)),
        surface("candles", join(candles), 14000, plain("#efe6d2", 0.03), Finish(translucency=0.3)),
    ]
