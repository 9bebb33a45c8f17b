"""Daylight, baked into the colours: sun with shadows, sky, what comes in through the glass door, dark corners, lamps.

Cheap approximations of light transport: a shadow map along the sun, and a coarse occupancy grid, blurred at three
sizes, for ambient occlusion.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from jaxtyping import Bool, Float32, Int64
from numpy import ndarray as Array
from numpy.random import Generator

from hushsplat.synth.patterns import smoothstep
from hushsplat.synth.plan import DOOR, ROOM, WALL
from hushsplat.synth.shapes import f32
from hushsplat.synth.surfels import Surfels, normalized

TO_SUN = normalized(f32([[0.55, -0.68, 0.60]]))[0]
SUN = 2.9 * f32([1.0, 0.86, 0.66])
SUN_INDOORS = 1.7  # a photograph of a room is exposed for the room: its sunny patches are nearly white
SKY = 0.80 * f32([0.66, 0.83, 1.12])
LAWN = 0.34 * f32([0.72, 0.80, 0.42])  # what the ground outside sends back up
DOORWAY = 3.2 * f32([0.96, 1.0, 1.04])  # sky and sunny garden seen through the opening
INDOORS = 0.98 * f32([1.08, 1.0, 0.90])  # light that has bounced around the room
FLOOR_GLOW = 0.9 * f32([1.0, 0.80, 0.56])  # the sunny patch of floor lights the ceiling
LAMPS = (((-2.45, -1.52, -0.72), 0.16 * f32([1.0, 0.66, 0.34])),)  # place, colour: the floor lamp is on

CELL = 0.11  # metres: cell of the occupancy grid
GRID_LOW = f32([-6.4, -4.8, -5.4])
GRID_CELLS = (117, 48, 146)
PROBES = (
    (0.36, (1, 1), 0.6),
    (0.62, (2, 2), 0.72),
    (1.1, (4, 4), 0.75),
)  # metres off the surface, blurs in cells, weight
MAP_HALF = 11.0  # metres: half the side of the shadow map


@dataclass(frozen=True)
class Daylight:
    """Shadow map and blurred occupancy grids of the scene's geometry."""

    blurred: tuple[Float32[Array, " cells"], ...]
    shadow: Float32[Array, "side side"]  # distance towards the sun of the first occluder
    sun_x: Float32[Array, " 3"]
    sun_y: Float32[Array, " 3"]
    texel: float


def precompute_daylight(batches: Sequence[Surfels]) -> Daylight:
    """Build the shadow map and the occupancy grids of all parts that cast shadows."""
    casters = [batch for batch in batches if batch.finish.shadow]
    means = np.concatenate([batch.means for batch in casters] or [np.empty((0, 3), dtype=np.float32)])
    cover = np.concatenate([batch.opacities * batch.scales.prod(axis=1) for batch in casters] or [means[:, 0]])
    filled = np.bincount(_cells(means), weights=2 * np.pi / CELL**2 * cover, minlength=int(np.prod(GRID_CELLS)))
    filled = np.minimum(filled.astype(np.float32), 1).reshape(GRID_CELLS)
    blurred = []
    for _, radii, _ in PROBES:
        for radius in radii:
            filled = _box_blur(filled, radius)
        blurred.append(np.ascontiguousarray(filled).ravel())
    sun_x = normalized(np.cross(TO_SUN, [0, 1, 0]).astype(np.float32)[None])[0]
    sun_y = np.cross(TO_SUN, sun_x).astype(np.float32)
    solid = _cast_shadows(means)
    texel = float(np.clip(1.4 * np.sqrt(60.0 / max(len(means), 1)), 0.022, 0.12))
    side = int(2 * MAP_HALF / texel)
    shadow = np.full(side * side, -1e9, dtype=np.float32)
    caster = means[solid]
    light = Daylight(tuple(blurred), shadow.reshape(side, side), sun_x, sun_y, texel)
    np.maximum.at(shadow, _texels(light, caster @ sun_x, caster @ sun_y), caster @ TO_SUN)
    return light


def _cast_shadows(means: Float32[Array, "n 3"]) -> Bool[Array, " n"]:
    """False for walls, floors and ceilings, whose large surfels would leak; the opening is known exactly."""
    x, y, z = means.T
    shell = (np.abs(x) > ROOM.x - 0.06) | (y < -ROOM.height + 0.06) | (z < -ROOM.z + 0.06)
    return np.where(z < 0, ~shell, z > WALL + 0.05) & (y < 0.0)


def _cells(points: Float32[Array, "n 3"]) -> Int64[Array, " n"]:
    """Index of the grid's cell that holds each point; outside goes to the border."""
    place = ((points - GRID_LOW) * np.float32(1 / CELL)).astype(np.int32)
    nx, ny, nz = GRID_CELLS
    x = np.clip(place[:, 0], 0, nx - 1)
    y = np.clip(place[:, 1], 0, ny - 1)
    z = np.clip(place[:, 2], 0, nz - 1)
    return ((x * ny + y) * nz + z).astype(np.int64)


def _box_blur(volume: Float32[Array, "x y z"], radius: int) -> Float32[Array, "x y z"]:
    """Mean over cubes of 2·radius+1 cells."""
    width = 2 * radius + 1
    for axis in range(3):
        pad = [(radius, radius) if k == axis else (0, 0) for k in range(3)]
        padded = np.moveaxis(np.pad(volume, pad, mode="edge"), axis, 0)
        cells = volume.shape[axis]
        total = padded[:cells].copy()
        for shift in range(1, width):  # a few additions beat running sums, which walk against the memory
            total += padded[shift : shift + cells]
        volume = np.moveaxis(total, 0, axis) * np.float32(1 / width)
    return volume


def _texels(light: Daylight, x: Float32[Array, " n"], y: Float32[Array, " n"]) -> Int64[Array, " n"]:
    side = len(light.shadow)
    scale = np.float32(1 / light.texel)
    column = np.clip(((x + MAP_HALF) * scale).astype(np.int64), 0, side - 1)
    row = np.clip(((y + MAP_HALF) * scale).astype(np.int64), 0, side - 1)
    return row * side + column


def lit(rng: Generator, light: Daylight, batch: Surfels) -> Float32[Array, "n 3"]:
    """Linear radiance of each surfel, the same in all directions."""
    openness = _openness(rng, light, batch)
    sun = _sunshine(rng, light, batch)
    facing = batch.normals @ TO_SUN
    through = np.float32(batch.finish.translucency)
    # A leaf shines on both sides: what falls on its back comes through, a little of it.
    received = np.maximum(facing, 0) * (1 - 0.4 * through) + through * np.maximum(-facing, 0) + 0.25 * through
    energy = (sun * received)[:, None] * SUN
    outside = smoothstep(-0.1, 0.9, batch.means[:, 2])[:, None]
    upward = (0.5 - 0.5 * batch.normals[:, 1])[:, None]
    # Two-sided things see half of each half-space.
    upward = upward * (1 - 0.6 * through) + 0.3 * through
    ambient = outside * (SKY * upward + LAWN * (1 - upward))
    if batch.means[:, 2].min() < 0.9:
        ambient = ambient + (1 - outside) * _indoor_light(batch)
    energy += ambient * openness[:, None]
    return batch.albedo * (energy + np.float32(batch.finish.glow))


def _openness(rng: Generator, light: Daylight, batch: Surfels) -> Float32[Array, " n"]:
    """1 in the open, towards 0 in corners and gaps: how empty it is at three distances off the surface."""
    openness = np.ones(len(batch), dtype=np.float32)
    # A random place within the cell instead of interpolation, and the opposite one, which cancels most of the noise.
    jitter = np.float32(CELL) * (rng.random((len(batch), 3), dtype=np.float32) - np.float32(0.5))
    for (distance, _, weight), volume in zip(PROBES, light.blurred, strict=True):
        probe = batch.means + batch.normals * np.float32(distance)
        filled = volume[_cells(probe + jitter)] + volume[_cells(probe - jitter)]
        openness *= 1 - np.float32(weight) * np.minimum(filled * np.float32(0.8), 1)
    return openness


def _sunshine(rng: Generator, light: Daylight, batch: Surfels) -> Float32[Array, " n"]:
    """0 in shadow, 1 in the sun, soft in between."""
    lifted = batch.means + batch.normals * np.float32(0.03)
    x, y, depth = lifted @ light.sun_x, lifted @ light.sun_y, lifted @ TO_SUN
    shadow = light.shadow.ravel()
    sun = np.zeros(len(batch), dtype=np.float32)
    taps = 5
    blur = np.float32(1.3 * light.texel)
    for _ in range(taps):
        dx, dy = blur * (rng.random((2, len(batch)), dtype=np.float32) - np.float32(0.5)) * 2
        sun += shadow[_texels(light, x + dx, y + dy)] < depth + np.float32(0.05)
    sun /= taps
    inside = batch.means[:, 2] < WALL / 2
    if inside.any():
        sun *= np.where(inside, np.float32(SUN_INDOORS) * _through_door(batch.means), 1)
    return sun


def _through_door(means: Float32[Array, "n 3"]) -> Float32[Array, " n"]:
    """1 where a ray to the sun leaves the room through the opening; the edge softens with distance."""
    steps = (WALL / 2 - means[:, 2]) / TO_SUN[2]
    x, y = means[:, 0] + steps * TO_SUN[0], means[:, 1] + steps * TO_SUN[1]
    inset = np.minimum(DOOR.x - np.abs(x), np.minimum(y + DOOR.height, -y))
    return np.clip(0.5 + inset / (0.012 + 0.012 * np.abs(steps)), 0, 1)


def _indoor_light(batch: Surfels) -> Float32[Array, "n 3"]:
    """Light of the doorway, of the sunny floor and of lamps, without occluders."""
    energy = np.tile(INDOORS, (len(batch), 1))
    two_sided = np.float32(0.5 * batch.finish.translucency)
    for x in (-0.7, 0.7):
        for height in (0.55, 1.75):
            energy += _panel(batch, f32([x, -height, 0.05]), f32([0, 0, -1]), two_sided)[:, None] * (
                DOORWAY * 0.25 * 7.5
            )
    energy += _panel(batch, f32([0.5, -0.05, -1.5]), f32([0, -1, 0]), two_sided)[:, None] * (FLOOR_GLOW * 3.0)
    for place, color in LAMPS:
        energy += _panel(batch, f32(place), None, two_sided)[:, None] * color
    return energy


def _panel(
    batch: Surfels, place: Float32[Array, " 3"], facing: Float32[Array, " 3"] | None, two_sided: np.float32
) -> Float32[Array, " n"]:
    """Form factor of a small light per square metre; softened near the light itself."""
    towards = place - batch.means
    squared = np.einsum("ni,ni->n", towards, towards) + np.float32(0.25)
    towards /= np.sqrt(squared)[:, None]
    cosine = np.einsum("ni,ni->n", towards, batch.normals)
    received = np.maximum(cosine, two_sided * np.abs(cosine))
    if facing is not None:
        received = received * np.maximum(-(towards @ facing), 0)
    return received / (squared * np.float32(np.pi))


def displayed(radiance: Float32[Array, "n 3"]) -> Float32[Array, "n 3"]:
    """Display values (sRGB-like): a soft shoulder for the highlights, the display's curve, a mild grade."""
    x = radiance * (1 + radiance * np.float32(0.15)) / (1 + np.float32(0.75) * radiance)
    x = np.minimum(x, 1.1) ** np.float32(1 / 2.2)
    x += np.float32(0.28) * (x * x * (3 - 2 * x) - x)  # a little contrast
    gray = x @ f32([0.3, 0.59, 0.11])
    return np.clip(gray[:, None] + np.float32(1.1) * (x - gray[:, None]), 0, 1)
