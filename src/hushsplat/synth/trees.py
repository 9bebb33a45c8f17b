"""The tree, the hedge and the bushes."""

from __future__ import annotations

import numpy as np
from jaxtyping import Float32
from numpy import ndarray as Array
from numpy.random import Generator

from hushsplat.synth.foliage import leafage
from hushsplat.synth.patterns import linear, mix, ripples, smoothstep, speckled
from hushsplat.synth.plan import GARDEN, LAWN_HEIGHT, TREE
from hushsplat.synth.shapes import Blobs, Cones, block, f32, join, rods, tube
from hushsplat.synth.surfaces import plain, surface
from hushsplat.synth.surfels import Finish, Part, Spots, any_tangent, cross, normalized, random_directions

WANDER = (0.05, 0.15, 0.17, 0.17)  # how crooked trunk, boughs, branches and twigs grow


def parts(rng: Generator) -> list[Part]:
    """Everything with wood."""
    return [*_tree(rng), *_hedge(rng), *_bushes(rng)]


def _branches(rng: Generator) -> tuple[list[Cones], Float32[Array, "m 3"]]:
    """Wood from the trunk to the twigs, and points along the twigs where leaves sit."""
    wood: list[Cones] = []
    twigs: list[Float32[Array, "k 3"]] = []

    def grow(
        start: Float32[Array, " 3"], direction: Float32[Array, " 3"], length: float, radius: float, level: int
    ) -> None:
        pieces = 5
        points, heading = [start], direction
        for _ in range(pieces):
            heading = heading + f32(rng.normal(0, WANDER[level], 3)) + f32([0, -0.05 if level < 2 else 0.03, 0])
            heading = heading / np.linalg.norm(heading)
            points.append(points[-1] + heading * (length / pieces))
        wood.append(tube(points, np.linspace(radius, radius * (0.66 if level == 0 else 0.4), pieces + 1)))
        if level >= 2:
            twigs.append(f32(points[1:]))
        if level == 3:
            return
        children = (6, 5, 4)[level]
        for child in range(children):
            along = (0.62 if level == 0 else 0.35) + (0.38 if level == 0 else 0.6) * child / (children - 1)
            place = along * pieces
            first = min(int(place), pieces - 1)
            base = points[first] + (points[first + 1] - points[first]) * f32(place - first)
            turn = 2.4 * child + rng.uniform(-0.5, 0.5)
            side = any_tangent(heading[None])[0]
            other = cross(heading[None], side[None])[0]
            spread = (0.95, 0.9, 0.9)[level] * rng.uniform(0.75, 1.2)
            away = heading + spread * f32(np.cos(turn) * side + np.sin(turn) * other)
            away = away / np.linalg.norm(away)
            grow(base, away, length * rng.uniform(0.52, 0.72), radius * 0.46, level + 1)

    root = f32([TREE[0], -LAWN_HEIGHT + 0.05, TREE[1]])
    grow(root, f32([0.05, -1, -0.03]), 2.6, 0.15, 0)
    return wood, np.concatenate(twigs)


def _tree(rng: Generator) -> list[Part]:
    wood, twigs = _branches(rng)
    middle = twigs.mean(axis=0)

    def around_twigs(rng: Generator, n: int) -> tuple[Float32[Array, "n 3"], Float32[Array, "n 3"]]:
        points = twigs[rng.integers(0, len(twigs), n)] + 0.105 * rng.standard_normal((n, 3), dtype=np.float32)
        return points, normalized(points - middle) + f32([0, -0.5, 0])

    def bark(rng: Generator, spots: Spots) -> Float32[Array, "n 3"]:
        uv, owner, means = spots.uv, spots.owner, spots.means
        ridges = np.sin(2 * np.pi * 9 * uv[:, 1] + 2.5 * np.sin(9 * means[:, 1])) * 0.18
        moss = smoothstep(0.3, 1.0, ripples(means[:, 1], means[:, 0] + means[:, 2], 0.5, 83)) * 0.4
        tone = mix(speckled(rng, linear("#6d5a48"), len(owner), 0.12), linear("#6f7a4a"), moss)
        return tone * (1 + ridges)[:, None].astype(np.float32)

    greens = linear("#35561f", "#4f7527", "#6f9433", "#94b049", "#b9c766")
    thick = [cones for cones in wood if cones.radii.max() > 0.03]
    thin = [cones for cones in wood if cones.radii.max() <= 0.03]
    return [
        surface("trunk", join(thick), 1700, bark, Finish(stretch=3.0, rough=0.15, spin=0.15)),
        surface("twigs", join(thin), 2300, bark, Finish(stretch=5.0, rough=0.15, spin=0.1)),
        leafage("tree leaves", 50000.0, 0.021, around_twigs, greens),
    ]


def _hedge(rng: Generator) -> list[Part]:
    x0, x1, z0, z1, top = GARDEN.x - 0.75, GARDEN.x, 0.5, GARDEN.z, 1.9
    core = block((x0 + 0.16, x1), (LAWN_HEIGHT, top - 0.14), (z0 + 0.1, z1))

    def skin(rng: Generator, n: int) -> tuple[Float32[Array, "n 3"], Float32[Array, "n 3"]]:
        spots = block((x0, x1), (LAWN_HEIGHT, top), (z0, z1)).spots(rng, n)
        means = spots.means
        x, y, z = means.T
        bumps = 0.05 * ripples(z, y, 0.55, 85) + 0.02 * ripples(z, y + x, 0.17, 86)
        depth = bumps - 0.09 * np.abs(rng.standard_normal(n, dtype=np.float32)) + 0.03
        return means + spots.normals * depth[:, None], spots.normals + f32([0, -0.3, 0])

    greens = linear("#1f3d1c", "#2f5524", "#44702c", "#5f8a38")
    return [
        surface("hedge core", core, 220, plain("#16260f", 0.15), Finish(rough=0.3)),
        leafage("hedge", 26000.0, 0.03, skin, greens, 0.7),
    ]


# Round shrubs: x, z, radius, height. The first four, by the terrace, are lavender.
SHRUBS = (
    (-4.5, 3.1, 0.5, 0.55), (-3.6, 2.95, 0.36, 0.36), (1.9, 2.95, 0.34, 0.36), (2.55, 3.0, 0.42, 0.45),
    (-4.6, 8.9, 0.95, 1.3), (-2.9, 9.9, 0.75, 0.95), (3.9, 9.7, 0.9, 1.2), (4.3, 7.6, 0.6, 0.8),
    (1.4, 10.1, 0.55, 0.7),
)  # fmt: skip
LAVENDERS, SPIKES = 4, 420


def _bushes(rng: Generator) -> list[Part]:
    centers = f32([[x, -LAWN_HEIGHT - 0.45 * height, z] for x, z, _, height in SHRUBS])
    radii = f32([[radius, 0.55 * height, radius] for _, _, radius, height in SHRUBS])
    balls = Blobs(centers, radii)

    def fluffy(rng: Generator, n: int) -> tuple[Float32[Array, "n 3"], Float32[Array, "n 3"]]:
        spots = balls.spots(rng, n)
        depth = 0.05 - 0.16 * np.abs(rng.standard_normal(n, dtype=np.float32)) * radii[spots.owner].min(axis=1)
        return spots.means + spots.normals * depth[:, None], spots.normals + f32([0, -0.25, 0])

    which = rng.integers(0, LAVENDERS, SPIKES)
    out = random_directions(rng, SPIKES)
    out[:, 1] = -np.abs(out[:, 1]) - 0.25
    out = normalized(out)
    start = centers[which] + out * radii[which] * f32(0.8)
    end = start + normalized(out + f32([0, -0.8, 0])) * f32(rng.uniform(0.12, 0.26, (SPIKES, 1)))
    stems = rods(start, end, (0.004, 0.003))

    def purple(rng: Generator, n: int) -> tuple[Float32[Array, "n 3"], Float32[Array, "n 3"]]:
        pick, lift = rng.integers(0, SPIKES, n), rng.random((n, 1), dtype=np.float32)
        means = start[pick] + (end - start)[pick] * (0.55 + 0.5 * lift)
        return means + 0.008 * rng.standard_normal((n, 3), dtype=np.float32), np.tile(f32([0, -0.5, 0]), (n, 1))

    return [
        surface("bush cores", Blobs(centers, radii * f32(0.8)), 300, plain("#1b2c13", 0.15), Finish(rough=0.3)),
        leafage("bushes", 20000.0, 0.026, fluffy, linear("#2c4a20", "#42662b", "#5f8639", "#7f9f50")),
        surface("lavender stems", stems, 5000, plain("#7f8f68", 0.1), Finish(stretch=6.0, translucency=0.2)),
        leafage("lavender", 6500.0, 0.011, purple, linear("#5f4a9a", "#7f68ba", "#a58fd2")),
    ]
