"""The distance: meadow, far trees, rows of hills and a sky, so that every ray ends somewhere."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace

import numpy as np
from jaxtyping import Float32
from numpy import ndarray as Array
from numpy.random import PCG64, Generator

from hushsplat.synth.light import TO_SUN
from hushsplat.synth.patterns import linear, mix, ramp, ripples, smoothstep
from hushsplat.synth.plan import GARDEN, LAWN_HEIGHT
from hushsplat.synth.shapes import even_pairs, f32
from hushsplat.synth.surfels import Finish, Part, Surfels, loose, normalized, random_directions, settle

SKY_RADIUS = 95.0  # metres
MEADOW = (7.0, 40.0)  # metres from the middle of the garden
CENTER = f32([0, 0, 3.5])  # where one stands
HAZE = linear("#c4d6e4")
# Its light is painted in: it shines by itself and takes no part in shadows.
PAINTED = Finish(glow=1.0, shadow=False, rough=0.02, opacity=(0.8, 1.0))


@dataclass(frozen=True)
class Ridge:
    """A row of hills all around, seen as a wall with a wavy top."""

    radius: float  # metres
    height: float  # metres, mean
    swing: float  # metres, how much the top varies
    trees: float  # metres, roughness of the top: woods
    tones: Float32[Array, "m 3"]
    key: int


RIDGES = (
    Ridge(40.0, 3.2, 0.9, 0.55, linear("#3d5a2c", "#55753a", "#759048", "#93a656"), 171),
    Ridge(58.0, 7.0, 1.9, 0.35, linear("#56784f", "#6f8f58", "#93a866", "#b3b478"), 172),
    Ridge(80.0, 13.0, 3.4, 0.0, linear("#6f8fa3", "#7d9cae", "#8ba8b8"), 173),
)


def parts(rng: Generator) -> list[Part]:
    """Sky, hills, meadow and far trees."""
    hills = [
        Part("hills", wanted, _hills(ridge)) for ridge, wanted in zip(RIDGES, (11000.0, 8000.0, 4000.0), strict=True)
    ]
    return [Part("sky", 20000.0, _sky), *hills, Part("meadow", 5000.0, _meadow), Part("far trees", 12000.0, _far_trees)]


def _front_first(turn: Float32[Array, " n"], front: float) -> tuple[Float32[Array, " n"], Float32[Array, " n"]]:
    """Angles from +z, a share `front` of them beyond the garden, and radians per unit of `turn` at each."""
    width = 2.0  # radians of the arc beyond the garden
    behind = 2 * np.pi - width
    ahead = turn < front
    angle = np.where(ahead, (turn / front - 0.5) * width, width / 2 + (turn - front) / (1 - front) * behind)
    return angle.astype(np.float32), np.where(ahead, width / front, behind / (1 - front)).astype(np.float32)


def _hazy(color: Float32[Array, "n 3"], distance: Float32[Array, " n"]) -> Float32[Array, "n 3"]:
    share = 0.85 * (1 - np.exp(-np.maximum(distance - 8, 0) / np.float32(75)))
    return mix(color, HAZE * np.float32(0.92), share.astype(np.float32)).astype(np.float32)


def _sky(rng: Generator, n: int) -> Surfels:
    turn, lift = even_pairs(rng, n)
    # More of them low, where one looks.
    up = np.float32(-0.03) + np.float32(1.03) * lift ** np.float32(1.5)
    angle, spread = _front_first(turn, 0.6)
    ring = np.sqrt(np.maximum(1 - up * up, 0))
    direction = np.stack([ring * np.sin(angle), -up, ring * np.cos(angle)], axis=1)
    color = ramp(linear("#e3ecf0", "#bcd6ea", "#8fbce6", "#639bd9", "#4f8ad0"), np.sqrt(np.clip(up, 0, 1)))
    sun = np.clip(direction @ TO_SUN, 0, 1)
    color = color + (0.3 * sun**6 + 0.9 * sun**60)[:, None] * f32([1.0, 0.9, 0.68])
    # Clouds lie on a plane overhead: far ones look flat and small.
    flat = 1 / (np.clip(up, 0, 1) + 0.16)
    cx, cz = direction[:, 0] * flat, direction[:, 2] * flat
    fine = smoothstep(2.2, 1.2, np.abs(angle))  # behind the house there are too few surfels to draw wisps
    billow = ripples(cx, cz, 1.7, 151, 7) + fine * (
        0.55 * ripples(cx, cz, 0.6, 152, 7) + 0.3 * ripples(cx, cz, 0.23, 153, 7)
    )
    cloud = smoothstep(0.15, 1.4, billow) * smoothstep(0.02, 0.16, up) * np.float32(0.9)
    shade = ramp(linear("#dfe5ec", "#f6f6f4", "#ffffff"), 0.3 + 0.35 * billow)
    color = np.float32(1.3) * mix(color, shade * np.float32(1.15), cloud)
    # Large flat surfels on a round sky cut each other into facets; half transparent ones melt together.
    airy = replace(PAINTED, opacity=(0.3, 0.75))
    batch = settle(rng, loose(CENTER + SKY_RADIUS * direction, -direction, 1.0), color, airy)
    # The same number of surfels in less sky makes smaller ones: size by the local density.
    density = 1.03 * 1.5 * np.sqrt(np.maximum(lift, 0.01)) * spread / n
    return replace(batch, scales=batch.scales * (1.5 * SKY_RADIUS * np.sqrt(density))[:, None].astype(np.float32))


def _hills(ridge: Ridge) -> Callable[[Generator, int], Surfels]:
    def make(rng: Generator, n: int) -> Surfels:
        turn, lift = even_pairs(rng, n)
        angle, spread = _front_first(turn, 0.82)
        arc = angle * np.float32(ridge.radius)
        # Waves over a circle would not close; the seam lies behind the house.
        crest = ridge.height + ridge.swing * ripples(arc, 0 * arc, 46, ridge.key, 5)
        crest = crest + ridge.trees * np.abs(ripples(arc, 0 * arc, 2.3, ridge.key + 10, 6))
        height = crest * lift - 1.0 * (1 - lift)
        out = np.stack([np.sin(angle), np.zeros_like(angle), np.cos(angle)], axis=1)
        # Leaning back, so that the slope looks lit.
        means = CENTER + out * (ridge.radius + 1.5 * lift)[:, None]
        means[:, 1] = -height - LAWN_HEIGHT
        fields = (
            0.45
            + 0.3 * np.sign(ripples(arc, 4 * height, 17, ridge.key + 20, 4))
            + 0.1 * ripples(arc, 2 * height, 4, ridge.key + 30)
        )
        woods = smoothstep(0.62, 0.9, lift + 0.14 * ripples(arc, height, 6, ridge.key + 40)) * (ridge.trees > 0)
        color = ramp(ridge.tones, fields)
        crowns = 0.75 + 0.3 * ripples(arc, height, 1.1, ridge.key + 50)
        color = mix(color, ridge.tones[0] * np.clip(crowns, 0.4, 1.3)[:, None], woods.astype(np.float32))
        color = _hazy(color * (0.75 + 0.25 * lift)[:, None], np.full(n, ridge.radius, np.float32))
        batch = settle(rng, loose(means.astype(np.float32), -out, 1.0), color, replace(PAINTED, stretch=1.8, spin=0.3))
        size = np.sqrt(ridge.radius * spread * (crest + 1) / n)
        return replace(batch, scales=batch.scales * size[:, None].astype(np.float32))

    return make


def _meadow(rng: Generator, n: int) -> Surfels:
    turn, lift = even_pairs(rng, n)
    width = np.float32(
        3.8
    )  # radians: only beyond the garden; near the house its large surfels would get into the rooms
    angle = (turn - np.float32(0.5)) * width
    near, far = MEADOW
    ratio = np.float32(np.log(far / near))
    radius = np.float32(near) * np.exp(ratio * lift)
    x, z = CENTER[0] + radius * np.sin(angle), CENTER[2] + radius * np.cos(angle)
    inside = (np.abs(x) < GARDEN.x) & (z > -6) & (z < GARDEN.z)
    z = np.where(inside, GARDEN.z + 0.1 + 3 * lift, z).astype(np.float32)
    means = np.stack([x, np.full(n, -LAWN_HEIGHT + 0.06, np.float32), z], axis=1)
    tufts = 0.4 + 0.25 * ripples(x, z, 6, 163) + 0.2 * rng.standard_normal(n, dtype=np.float32)
    color = ramp(linear("#5c7f33", "#7c9a41", "#a3ad55", "#c2b768"), tufts)
    batch = settle(rng, loose(means, np.tile(f32([0, -1, 0]), (n, 1)), 1.0), _hazy(color, radius), PAINTED)
    size = radius * np.sqrt(width * ratio / n)
    return replace(batch, scales=batch.scales * size[:, None].astype(np.float32))


def _far_trees(rng: Generator, n: int) -> Surfels:
    """Single trees and groups on the meadow."""
    layout = Generator(PCG64(165))
    m = 64
    angle = layout.uniform(-1.3, 1.3, m)
    radius = 14 + 24 * layout.random(m)
    size = layout.uniform(0.8, 1.7, m) * (0.6 + radius / 40)
    weights = size**2 / radius
    owner = rng.choice(m, n, p=weights / weights.sum())
    off = random_directions(rng, n) * (rng.random((n, 1), dtype=np.float32) ** np.float32(0.35))
    lumps = 1 + 0.16 * ripples(3 * off[:, 0] + f32(owner), 3 * off[:, 1] - 3 * off[:, 2], 2.2, 166)
    off = (off * lumps[:, None]).astype(np.float32)
    big = f32(size)[owner]
    roots = np.stack(
        [CENTER[0] + radius * np.sin(angle), -1.1 * size - LAWN_HEIGHT, CENTER[2] + radius * np.cos(angle)], axis=1
    )
    means = f32(roots)[owner] + off * big[:, None] * f32([0.8, 1.1, 0.8])
    normals = normalized(off + 0.6 * random_directions(rng, n))
    lightness = 0.42 + 0.4 * (off @ TO_SUN) + 0.16 * rng.standard_normal(n, dtype=np.float32)
    color = ramp(linear("#263f1e", "#3d5b2a", "#5c7a38", "#86a04e"), lightness)
    finish = replace(PAINTED, opacity=(0.4, 0.85), stretch=1.6)
    batch = settle(rng, loose(means, normals, 1.0), _hazy(color, f32(radius)[owner]), finish)
    share = weights / weights.sum()
    crown = f32(np.sqrt(11.0 * size**2 / np.maximum(share * n, 1)))[owner]
    return replace(batch, scales=batch.scales * crown[:, None])
