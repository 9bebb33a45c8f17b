"""The sofa and its cushions."""

from __future__ import annotations

import numpy as np
from jaxtyping import Float32
from numpy import ndarray as Array
from numpy.random import Generator

from hushsplat.synth.patterns import linear, ripples, speckled
from hushsplat.synth.shapes import Length, f32, join, tube
from hushsplat.synth.soft import Cushions
from hushsplat.synth.surfaces import WOODEN, Paint, plain, surface
from hushsplat.synth.surfels import Finish, Part, Spots

PLACE = (-2.48, -2.55)  # x, z
YAW_DEG = -90.0  # its back to the left wall
CLOTH = Finish(rough=0.14)

# Middle (x, height, z), size (width, height, depth), lean in radians; the sofa itself looks along +z.
Size = tuple[Length, Length, Length]
Piece = tuple[Size, Size, float]
BODY: list[Piece] = [
    ((0, 0.22, 0), (2.06, 0.2, 0.86), 0.0),
    ((0, 0.5, -0.36), (2.06, 0.56, 0.18), 0.0),
    ((-1.0, 0.36, 0), (0.17, 0.48, 0.9), 0.0),
    ((1.0, 0.36, 0), (0.17, 0.48, 0.9), 0.0),
]
SEATS: list[Piece] = [((side * 0.46, 0.385, 0.07), (0.9, 0.16, 0.72), 0.0) for side in (-1, 1)]
BACKS: list[Piece] = [((side * 0.46, 0.63, -0.2), (0.88, 0.4, 0.17), 0.2) for side in (-1, 1)]
THROWS: list[Piece] = [
    ((-0.72, 0.62, -0.03), (0.42, 0.42, 0.1), 0.42),
    ((-0.42, 0.60, 0.06), (0.36, 0.36, 0.09), 0.5),
    ((0.7, 0.62, -0.02), (0.44, 0.42, 0.1), 0.4),
]


def parts(rng: Generator) -> list[Part]:
    """The sofa in its place."""
    legs = [
        tube([[x * 0.92, -0.13, z * 0.34], [x * 0.95, 0, z * 0.36]], [0.022, 0.014]).placed(*PLACE, YAW_DEG)
        for x in (-1, 1)
        for z in (-1, 1)
    ]
    return [
        surface("sofa body", _cushions(BODY, 0.055, 0.01), 2100, _woven("#4b6670", 41), CLOTH),
        surface("sofa seats", _cushions(SEATS, 0.05, 0.03), 3200, _woven("#527079", 42), CLOTH),
        surface("sofa backs", _cushions(BACKS, 0.07, 0.05), 3200, _woven("#527079", 43), CLOTH),
        surface("sofa throws", _cushions(THROWS, 0.045, 0.05), 7000, _striped, CLOTH),
        surface("sofa legs", join(legs), 8000, plain("#7a5238"), WOODEN),
    ]


def _cushions(pieces: list[Piece], radius: float, bulge: float) -> Cushions:
    axes = []
    for _, _, lean in pieces:
        c, s = np.cos(lean), np.sin(lean)
        axes.append([[1, 0, 0], [0, c, s], [0, -s, c]])
    centers = f32([[x, -height, z] for (x, height, z), _, _ in pieces])
    sizes = f32([size for _, size, _ in pieces])
    return Cushions(centers, sizes, f32(axes), radius, bulge).placed(*PLACE, YAW_DEG)


def _woven(color: str, key: int) -> Paint:
    rgb = linear(color)

    def paint(rng: Generator, spots: Spots) -> Float32[Array, "n 3"]:
        u, v = spots.uv.T
        threads = 1 + 0.05 * ripples(u, v, 0.35, key) + 0.05 * np.sin(420 * u) * np.sin(420 * v)
        return speckled(rng, rgb, len(u), 0.07) * threads[:, None]

    return paint


def _striped(rng: Generator, spots: Spots) -> Float32[Array, "n 3"]:
    """Mustard, cream with blue stripes, rust: one colour for each throw cushion."""
    colors, stripes = linear("#d59f3c", "#f0e6d2", "#b2543a"), linear("#c98f2e", "#3d5560", "#d9805f")
    band = np.sin(2 * np.pi * spots.uv[:, 0] / 0.075) > np.where(spots.owner == 1, 0.2, 0.93)
    return speckled(rng, np.where(band[:, None], stripes[spots.owner], colors[spots.owner]), len(band), 0.06)
