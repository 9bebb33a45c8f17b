"""What stands on the tables: a bouquet in a vase, fruit, tea."""

from __future__ import annotations

import numpy as np
from jaxtyping import Float32
from numpy import ndarray as Array
from numpy.random import Generator

from hushsplat.synth.patterns import linear, mix, smoothstep, speckled
from hushsplat.synth.plan import COFFEE, COFFEE_TOP, DINING, TABLE_TOP
from hushsplat.synth.shapes import Blobs, block, f32, join, lathe, tube
from hushsplat.synth.soft import Blades
from hushsplat.synth.surfaces import each, plain, surface
from hushsplat.synth.surfels import Finish, Part, Spots, any_tangent, cross, normalized

FLOWERS = 19
PETALS = ((0.95, 9, 0.042), (0.5, 7, 0.034))  # how far a ring of petals opens, how many, their length in metres
VASE_X, VASE_Z = DINING[0] - 0.02, DINING[1] + 0.22
VASE = (
    (0, 0), (0, 0.05), (0.03, 0.066), (0.09, 0.082), (0.15, 0.073),
    (0.2, 0.046), (0.235, 0.034), (0.255, 0.04), (0.258, 0.036), (0.2, 0.034),
)  # fmt: skip
MOUTH = f32([VASE_X, -(TABLE_TOP + 0.24), VASE_Z])
BOWL = (
    (0, 0), (0, 0.06), (0.012, 0.075), (0.04, 0.13), (0.07, 0.16),
    (0.072, 0.155), (0.04, 0.122), (0.02, 0.07), (0.018, 0),
)  # fmt: skip
FRUIT = (
    (-0.05, 0.055, -0.03), (0.045, 0.055, -0.045), (0.0, 0.055, 0.055), (0.075, 0.062, 0.04),
    (-0.07, 0.062, 0.05), (0.0, 0.115, 0.0), (0.05, 0.11, 0.02),
)  # fmt: skip
CUP = ((0, 0), (0, 0.026), (0.01, 0.034), (0.06, 0.041), (0.06, 0.037), (0.052, 0.036), (0.05, 0))
SAUCER = ((0, 0), (0, 0.05), (0.008, 0.075), (0.01, 0.075), (0.008, 0))
TEAPOT = (
    (0, 0), (0, 0.055), (0.03, 0.08), (0.08, 0.085), (0.12, 0.06),
    (0.135, 0.035), (0.15, 0.014), (0.16, 0.016), (0.168, 0),
)  # fmt: skip
CHINA = Finish(gloss=0.5, sharpness=4.0, rough=0.02)


def parts(rng: Generator) -> list[Part]:
    """Everything on the two tables."""
    return [*_vase(), *_bouquet(rng), *_fruit(), *_tea()]


def _vase() -> list[Part]:
    def paint(rng: Generator, spots: Spots) -> Float32[Array, "n 3"]:
        height, turn = -spots.means[:, 1] - np.float32(TABLE_TOP), spots.uv[:, 1]
        blue = smoothstep(0.35, 0.6, np.sin(2 * np.pi * 8 * turn) * np.sin(2 * np.pi * height / 0.075))
        band = (np.abs(height - 0.192) < 0.006) | (np.abs(height - 0.024) < 0.006)
        return speckled(rng, mix(linear("#eef0ee"), linear("#2c5f86"), np.maximum(blue, f32(band))), len(turn), 0.03)

    glaze = Finish(gloss=0.6, sharpness=4.0, rough=0.02)
    return [surface("vase", lathe(VASE, VASE_X, VASE_Z, TABLE_TOP), 24000, paint, glaze)]


def _bouquet(rng: Generator) -> list[Part]:
    turn = 2.4 * np.arange(FLOWERS) + rng.uniform(-0.3, 0.3, FLOWERS)
    spread = 0.25 + 0.75 * np.sqrt((np.arange(FLOWERS) + 0.5) / FLOWERS)
    height = rng.uniform(0.2, 0.34, FLOWERS) * (1.25 - 0.5 * spread)
    lean = f32(np.stack([0.24 * spread * np.cos(turn), -height, 0.24 * spread * np.sin(turn)], axis=1))
    below, bend = MOUTH + f32([0, 0.2, 0]), MOUTH + 0.5 * lean + f32([0, -0.04, 0])
    stems = [tube([below, MOUTH, knee, MOUTH + out], 0.0028) for knee, out in zip(bend, lean, strict=True)]
    shades = linear("#f3c5c4", "#e88a86", "#fbeee0", "#d9595f", "#f6d38a")[(3 * np.arange(FLOWERS)) % 5]
    blossoms = [_petal_ring(rng, MOUTH + lean, normalized(lean), ring) for ring in PETALS]

    def petal_paint(rng: Generator, spots: Spots) -> Float32[Array, "n 3"]:
        deep = 0.72 + 0.4 * spots.uv[:, 0]
        return speckled(rng, shades[spots.owner % FLOWERS] * deep[:, None], len(deep), 0.05)

    leaf_paint = each(linear("#4f7a3c", "#6b9450", "#3f6a3a"), 0.1)
    petal = Finish(translucency=0.45, opacity=(0.55, 0.95), rough=0.12)
    leaf = Finish(translucency=0.4, opacity=(0.5, 0.9), rough=0.12)
    return [
        surface("bouquet stems", join(stems), 17000, plain("#557a3d", 0.1), Finish(stretch=5.0, translucency=0.2)),
        surface("bouquet petals", join(blossoms), 17000, petal_paint, petal),
        surface("bouquet leaves", _leaves(rng), 13000, leaf_paint, leaf),
    ]


def _petal_ring(
    rng: Generator, hearts: Float32[Array, "m 3"], outward: Float32[Array, "m 3"], ring: tuple[float, int, float]
) -> Blades:
    """One ring of petals around the heart of each flower; blade i belongs to flower i modulo m."""
    opening, petals, length = ring
    side = any_tangent(outward)
    other = cross(outward, side)
    angles = 2 * np.pi * np.arange(petals) / petals + opening
    radial = np.concatenate([f32(np.cos(a)) * side + f32(np.sin(a)) * other for a in angles])
    axis = np.tile(outward, (petals, 1))
    bases = np.tile(hearts, (petals, 1)) + f32(0.006) * radial
    directions = normalized(f32(opening * radial + (1.15 - opening) * axis))
    normals = normalized(f32(axis - 0.5 * opening * radial))
    sizes = f32(length * np.stack([rng.uniform(0.85, 1.15, len(bases)), np.full(len(bases), 0.72)], axis=1))
    return Blades(bases, directions, normals, sizes, droop=0.05, bluntness=0.5)


def _leaves(rng: Generator) -> Blades:
    m = 46
    out = normalized(f32(rng.normal(0, [0.5, 0.28, 0.5], (m, 3)) - np.array([0, 0.55, 0])))
    bases = MOUTH + out * f32(rng.uniform(0.04, 0.19, (m, 1)))
    normals = normalized(f32(rng.normal(0, 0.5, (m, 3)) - np.array([0, 1, 0])))
    return Blades(bases, out, normals, f32(rng.uniform([0.07, 0.018], [0.12, 0.035], (m, 2))), droop=0.25)


def _fruit() -> list[Part]:
    x, z = DINING[0] + 0.05, DINING[1] - 0.36
    centers = f32([[x + a, -(TABLE_TOP + height), z + b] for a, height, b in FRUIT])
    fruit = Blobs(centers, np.tile(f32([0.041, 0.038, 0.04]), (len(FRUIT), 1)))
    skins = linear("#e58a1f", "#efb52c", "#e27a18", "#b9432e", "#9fb03a", "#ef9a25", "#c24b33")
    bowl = lathe(BOWL, x, z, TABLE_TOP)
    return [
        surface("bowl", bowl, 10000, plain("#d8d2c4", 0.03), Finish(gloss=0.4, rough=0.02)),
        surface("fruit", fruit, 15000, each(skins, 0.05), Finish(gloss=0.3, sharpness=4.0)),
    ]


def _tea() -> list[Part]:
    (x, z), h = COFFEE, COFFEE_TOP
    lower = block((-0.15, 0.13), (0, 0.014), (-0.1, 0.1)).placed(x - 0.1, z + 0.12, 20, h)
    upper = block((-0.12, 0.12), (0.014, 0.03), (-0.085, 0.085)).placed(x - 0.1, z + 0.12, 38, h)
    cup = join([lathe(CUP, x + 0.17, z + 0.02, h + 0.008), lathe(SAUCER, x + 0.17, z + 0.02, h)])
    bends = [[x + 0.09, -h - 0.06, z - 0.17], [x + 0.13, -h - 0.085, z - 0.16], [x + 0.15, -h - 0.125, z - 0.155]]
    turns = np.linspace(-1.2, 1.2, 9)
    loop = np.stack(
        [x - 0.06 - 0.055 * np.cos(turns), -h - 0.075 - 0.05 * np.sin(turns), 0 * turns + z - 0.175], axis=1
    )
    pot = join([lathe(TEAPOT, x + 0.02, z - 0.17, h), tube(bends, [0.02, 0.012, 0.009]), tube(loop, 0.006)])
    paper = Finish(gloss=0.15, stretch=1.8, spin=0.1)
    return [
        surface("magazines", join([lower, upper]), 14000, each(linear("#d7cfc0", "#b4573f"), 0.04), paper),
        surface("cup", cup, 40000, plain("#f2efe8", 0.03), CHINA),
        surface("teapot", pot, 16000, plain("#c8643c", 0.04), CHINA),
    ]
