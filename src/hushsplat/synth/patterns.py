"""Colours and the cheap noises that vary them. Everything here is linear RGB unless it says otherwise."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from jaxtyping import Float32, Integer
from numpy import ndarray as Array
from numpy.random import PCG64, Generator


def linear(*hexes: str) -> Float32[Array, "m 3"]:
    """Linear RGB of sRGB colours written as in a style sheet, one row each."""
    srgb = np.array([[int(text[k : k + 2], 16) for k in (1, 3, 5)] for text in hexes]) / 255
    return np.where(srgb <= 0.04045, srgb / 12.92, ((srgb + 0.055) / 1.055) ** 2.4).astype(np.float32)


def mix(a: Float32[Array, "*n 3"], b: Float32[Array, "*m 3"], share: Float32[Array, " n"]) -> Float32[Array, "n 3"]:
    """From colour a (share 0) to colour b (share 1)."""
    return a + (b - a) * share[:, None]


def ramp(colors: Float32[Array, "m 3"], where: Float32[Array, " n"]) -> Float32[Array, "n 3"]:
    """Colours blended along a row of m colours, `where` from 0 (first) to 1 (last)."""
    place = np.clip(where, 0, 1) * (len(colors) - 1)
    first = np.minimum(place.astype(np.int64), len(colors) - 2)
    return mix(colors[first], colors[first + 1], (place - first).astype(np.float32))


def ripples(
    x: Float32[Array, " n"], y: Float32[Array, " n"], wavelength: float | int, key: int, waves: int = 5
) -> Float32[Array, " n"]:
    """Smooth noise of about unit variance: a few plane waves in random directions, the same for the same key."""
    rng = Generator(PCG64(key))
    total = np.zeros(len(x), dtype=np.float32)
    for angle, phase, factor in zip(
        rng.uniform(0, 2 * np.pi, waves), rng.uniform(0, 2 * np.pi, waves), rng.uniform(0.7, 1.5, waves), strict=True
    ):
        turns = 2 * np.pi * factor / wavelength
        total += np.sin(
            np.float32(turns * np.cos(angle)) * x + np.float32(turns * np.sin(angle)) * y + np.float32(phase)
        )
    return total * np.float32(np.sqrt(2 / waves))


def smoothstep(low: float, high: float, x: Float32[Array, " n"]) -> Float32[Array, " n"]:
    """0 below `low`, 1 above `high`, smooth in between."""
    t = np.clip((x - np.float32(low)) * np.float32(1 / (high - low)), 0, 1)
    return t * t * (3 - 2 * t)


def speckled(rng: Generator, color: Float32[Array, "#n 3"], n: int, amount: float) -> Float32[Array, "n 3"]:
    """The colour with a little brightness noise from surfel to surfel."""
    gain = 1 + np.float32(amount) * rng.standard_normal(n, dtype=np.float32)
    return (color * np.maximum(gain, 0.2)[:, None]).astype(np.float32)


def wood(
    uv: Float32[Array, "n 2"], board: Integer[Array, " n"], tones: Float32[Array, "m 3"], key: int
) -> Float32[Array, "n 3"]:
    """Boards of different tones with streaks along u."""
    tone, shift = Generator(PCG64(key)).random((2, 1024), dtype=np.float32)[:, board % 1024]
    u, v = uv[:, 0] + 7 * shift, uv[:, 1] + 3 * shift
    sway = 0.012 * np.sin(2.3 * u + 40 * shift)
    rings = np.sin(2 * np.pi * (v + sway) / 0.021 + 1.5 * np.sin(3.1 * u))
    streaks = ripples(0.06 * u, v + sway, 0.012, key + 1, 4)
    base = ramp(tones, tone)
    return base * (1 + 0.05 * rings + 0.06 * streaks)[:, None]


def choose(
    rng: Generator, palette: Float32[Array, "m 3"], n: int, weights: Sequence[float] = ()
) -> Float32[Array, "n 3"]:
    """n colours of a palette, by chance."""
    chances = np.asarray(weights) / np.sum(weights) if len(weights) else None
    return palette[rng.choice(len(palette), n, p=chances)]
