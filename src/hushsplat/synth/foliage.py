"""Leaves, many at once, each a half-transparent surfel."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
from jaxtyping import Float32
from numpy import ndarray as Array
from numpy.random import Generator

from hushsplat.synth.patterns import ramp, ripples
from hushsplat.synth.surfels import Finish, Part, Surfels, any_tangent, cross, normalized, random_directions

FOLIAGE = Finish(translucency=0.6, opacity=(0.3, 0.8))
Places = Callable[[Generator, int], tuple[Float32[Array, "n 3"], Float32[Array, "n 3"]]]  # means, rough normals


def leafage(
    name: str, wanted: float, size: float, places: Places, tones: Float32[Array, "m 3"], stray: float = 0.8
) -> Part:
    """Single-surfel leaves of `size` metres when the part gets the surfels it wants, larger when it gets fewer."""

    def make(rng: Generator, n: int) -> Surfels:
        means, outward = places(rng, n)
        normals = normalized(outward + np.float32(stray) * random_directions(rng, n))
        tangents = any_tangent(normals)
        angle = rng.uniform(0, 2 * np.pi, (n, 1)).astype(np.float32)
        tangents = np.cos(angle) * tangents + np.sin(angle) * cross(normals, tangents)
        length = np.float32(size * np.sqrt(wanted / n)) * np.exp(0.3 * rng.standard_normal(n, dtype=np.float32))
        width = length / np.clip(1.9 * np.exp(0.3 * rng.standard_normal(n, dtype=np.float32)), 1, 8)
        clump = 0.5 + 0.28 * ripples(means[:, 0] + means[:, 1], means[:, 2] - means[:, 1], 0.7, 81)
        shade = ramp(tones, clump + 0.22 * rng.standard_normal(n, dtype=np.float32))
        opacities = np.float32(0.3) + np.float32(0.5) * rng.random(n, dtype=np.float32)
        return Surfels(means, normals, tangents, np.stack([length, width], axis=1), opacities, shade, FOLIAGE)

    return Part(name, wanted, make)
