"""View-dependent colour: what a glossy surfel shows of the doorway, the sun and the sky, as spherical harmonics."""

from __future__ import annotations

import numpy as np
from jaxtyping import Float32
from numpy import ndarray as Array
from numpy.random import Generator

from hushsplat.synth.light import TO_SUN
from hushsplat.synth.plan import DOOR, ROOM
from hushsplat.synth.shapes import f32
from hushsplat.synth.surfels import Surfels, normalized
from hushsplat.types.harmonics import SH_C0, sh_basis

WINDOW_SHINE = f32([0.95, 0.98, 1.0])
SUN_SHINE = f32([1.0, 0.93, 0.78])
SKY_SHINE = f32([0.62, 0.78, 0.95])
WOBBLE = 0.012  # noise of the higher bands: no trained surfel is perfectly matt


def write_sh(
    rng: Generator, batch: Surfels, colors: Float32[Array, "n 3"], out: Float32[Array, "n k 3"], degree: int
) -> None:
    """Fill `out` with harmonics of display colours and, on glossy surfels, of their reflections."""
    out[:, 0] = (colors - np.float32(0.5)) * np.float32(1 / SH_C0)
    if degree == 0:
        return
    noise = np.frombuffer(rng.bytes(out[:, 1:].size), dtype=np.int8).reshape(out[:, 1:].shape)
    np.multiply(noise, np.float32(WOBBLE / 74), out=out[:, 1:])  # 74 is the deviation of an even byte
    if batch.finish.gloss == 0:
        return
    for toward_light, shine in _lights(batch):
        along = np.einsum("ni,ni->n", toward_light, batch.normals)
        seen_along = toward_light - 2 * along[:, None] * batch.normals
        strength = (np.float32(batch.finish.gloss) * np.clip(along * 3, 0, 1))[:, None] * shine
        _add_lobe(out, seen_along, strength, degree, batch.finish.sharpness)


def _lights(batch: Surfels) -> list[tuple[Float32[Array, "n 3"], Float32[Array, " 3"]]]:
    """Directions to what is reflected, and its colour: the doorway indoors, sun and sky outdoors."""
    x, _, z = batch.means.T
    if float(np.median(z)) < 0.1 and float(np.abs(x).max()) < ROOM.x + 0.1:
        nearest = np.clip(x, -0.6 * DOOR.x, 0.6 * DOOR.x)
        doorway = np.stack([nearest, np.full_like(x, -0.6 * DOOR.height), np.zeros_like(x)], axis=1)
        return [(normalized(doorway - batch.means), WINDOW_SHINE)]
    sun = np.broadcast_to(TO_SUN, batch.means.shape)
    horizon = normalized(np.broadcast_to(f32([0.1, -0.35, 1.0]), batch.means.shape).astype(np.float32))
    return [(sun, f32(0.7) * SUN_SHINE), (horizon, f32(0.8) * SKY_SHINE)]


def _add_lobe(
    out: Float32[Array, "n k 3"],
    axis: Float32[Array, "n 3"],
    strength: Float32[Array, "n 3"],
    degree: int,
    sharpness: float,
) -> None:
    """Add a round lobe about `axis` with its peak at `strength`, by the addition theorem of the harmonics."""
    bands = np.arange(degree + 1)
    weights = (2.0 * bands + 1) * np.exp(-bands * (bands + 1) / (2 * sharpness))
    weights = weights / weights.sum()
    basis = sh_basis(axis, degree)
    for band in bands:
        factor = np.float32(weights[band] * 4 * np.pi / (2 * band + 1))
        for k in range(band * band, (band + 1) ** 2):
            out[:, k] += (factor * basis[:, k])[:, None] * strength
