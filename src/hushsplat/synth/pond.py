"""The pond: water, stones, water lilies."""

from __future__ import annotations

import numpy as np
from jaxtyping import Float, Float32
from numpy import ndarray as Array
from numpy.random import Generator

from hushsplat.synth.patterns import choose, linear, mix, ramp, ripples, smoothstep, speckled
from hushsplat.synth.plan import LAWN_HEIGHT, POND, POND_SIZE
from hushsplat.synth.shapes import UP, Blobs, even_pairs, f32, join, lathe
from hushsplat.synth.surfaces import each, plain, surface
from hushsplat.synth.surfels import Finish, Part, Spots, Surfels, loose, settle

WATER_Y = -LAWN_HEIGHT - 0.012
RIM_STONES = 34
# Stones on the lawn: x, z, size.
LOOSE_STONES = ((1.05, 4.3, 0.16), (1.35, 4.55, 0.1), (-0.6, 6.3, 0.14), (1.5, 7.2, 0.3))


def parts(rng: Generator) -> list[Part]:
    """Everything in and around the water."""
    return [Part("pond", 5200.0, _water), _stones(rng), *_lilies(rng)]


def _around(turn: Float[Array, " n"], radius: Float[Array, " n"], y: float) -> Float32[Array, "n 3"]:
    """Places by angle and by distance from the middle, which is 1 at the water's edge."""
    x, z = POND[0] + POND_SIZE[0] * radius * np.cos(turn), POND[1] + POND_SIZE[1] * radius * np.sin(turn)
    return f32(np.stack([x, np.full_like(x, y), z], axis=1))


def _water(rng: Generator, n: int) -> Surfels:
    turn, v = even_pairs(rng, n)
    radius = np.sqrt(v)
    means = _around(2 * np.pi * turn, radius, WATER_Y)
    spots = loose(means, np.tile(UP, (n, 1)), float(np.sqrt(np.pi * POND_SIZE[0] * POND_SIZE[1] / n)))
    shimmer = 0.5 + 0.22 * ripples(0.5 * means[:, 0], means[:, 2], 0.3, 131)
    deep = ramp(linear("#0f2a2c", "#1d4445", "#3a6a68"), shimmer)
    color = mix(deep, linear("#5b5a3c"), 0.6 * smoothstep(0.86, 1.0, radius))
    return settle(rng, spots, color, Finish(gloss=0.34, sharpness=3.5, rough=0.02, stretch=2.2, spin=0.2))


def _stones(rng: Generator) -> Part:
    turn = np.linspace(0, 2 * np.pi, RIM_STONES, endpoint=False) + rng.normal(0, 0.05, RIM_STONES)
    rim = _around(turn, rng.uniform(1.02, 1.14, RIM_STONES), -LAWN_HEIGHT - 0.02)
    others = f32([[x, -LAWN_HEIGHT - 0.2 * size, z] for x, z, size in LOOSE_STONES])
    sizes = np.append(rng.uniform(0.09, 0.19, RIM_STONES), [size for _, _, size in LOOSE_STONES])
    radii = sizes[:, None] * rng.uniform(0.75, 1.25, (len(sizes), 3)) * np.array([1, 0.62, 1])
    tones = choose(rng, linear("#7f7a72", "#948b7f", "#696661", "#a59c8d", "#5d605f"), len(sizes))

    def paint(rng: Generator, spots: Spots) -> Float32[Array, "n 3"]:
        x, y, z = spots.means.T
        veins = 1 + 0.12 * ripples(x + y, z - y, 0.12, 132)
        return speckled(rng, tones[spots.owner] * veins[:, None], len(x), 0.07)

    wet = Finish(gloss=0.35, sharpness=2.5, rough=0.08)
    return surface("stones", Blobs(np.concatenate([rim, others]), f32(radii)), 1900, paint, wet)


def _lilies(rng: Generator) -> list[Part]:
    places = _around(rng.uniform(0, 2 * np.pi, 11), 0.8 * np.sqrt(rng.random(11)), WATER_Y)
    pads = [
        lathe([(0, rng.uniform(0.07, 0.13)), (0.004, 0)], float(x), float(z), 0.006 - WATER_Y) for x, _, z in places
    ]
    lilies = Blobs(places[:4] + f32([0, -0.046, 0]), np.tile(f32([0.05, 0.035, 0.05]), (4, 1)))
    return [
        surface("lily pads", join(pads), 5000, each(linear("#4d7a3a", "#5f8c42", "#3f6b38"), 0.08), Finish(gloss=0.2)),
        surface("lilies", lilies, 9000, plain("#f3d3dc", 0.08), Finish(rough=0.4, translucency=0.4)),
    ]
