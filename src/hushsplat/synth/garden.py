"""The garden without its plants: soil, path, fences, trellis."""

from __future__ import annotations

import numpy as np
from jaxtyping import Float32
from numpy import ndarray as Array
from numpy.random import Generator

from hushsplat.synth.patterns import choose, linear, ramp, ripples, speckled
from hushsplat.synth.plan import GARDEN, LAWN_HEIGHT, POND, POND_SIZE, TERRACE_Z, WALL, on_lawn, path_x
from hushsplat.synth.shapes import UP, Pierced, Quads, Span, block, boxes, displaced, even_pairs, f32, join
from hushsplat.synth.surfaces import ground, plain, surface
from hushsplat.synth.surfels import Finish, Part, Spots, Surfels, loose, settle


def parts(rng: Generator) -> list[Part]:
    """Everything on the lawn that does not grow."""
    return [*_ground(), *_fences(rng)]


def _soil_color(rng: Generator, means: Float32[Array, "n 3"]) -> Float32[Array, "n 3"]:
    """Lawn, gravel or earth, by the place."""
    x, _, z = means.T
    n = len(x)
    blades = 0.5 + 0.28 * ripples(x, z, 1.3, 87) + 0.2 * rng.standard_normal(n, dtype=np.float32)
    green = ramp(linear("#3a5522", "#4d6f2a", "#678c38", "#86a04c"), blades)
    gravel = choose(rng, linear("#b8ad98", "#a3988a", "#8d857a", "#cabfa8", "#77706a"), n)
    color = np.where(on_lawn(means, 0.03)[:, None], green, gravel)
    bed = (x > 3.95 + 0.06 * np.sin(5 * z)) | ((x < -4.45 + 0.06 * np.sin(4 * z)) & (z > 6)) | (z > 9.65)
    pond = np.hypot((x - POND[0]) / POND_SIZE[0], (z - POND[1]) / POND_SIZE[1]) < 1.12
    color = np.where((bed | pond)[:, None], linear("#5a4733"), color)
    return speckled(rng, color.astype(np.float32), n, 0.14)


def _ground() -> list[Part]:
    """Soil under the grass, a layer below it that closes the gaps, and the gravel path."""
    soil = ground((-GARDEN.x, GARDEN.x), (TERRACE_Z - 0.05, GARDEN.z), LAWN_HEIGHT)
    below = ground((-GARDEN.x, GARDEN.x), (TERRACE_Z - 0.2, GARDEN.z + 0.3), LAWN_HEIGHT - 0.045)
    px, pz, rx, rz = *POND, 0.7 * POND_SIZE[0], 0.7 * POND_SIZE[1]
    pond = f32([[[px - rx, -9, pz - rz], [px + rx, 9, pz + rz]]])

    def lawn(rng: Generator, n: int) -> Surfels:
        spots = displaced(soil.spots(rng, n), lambda u, v: 0.012 * ripples(u, v, 1.1, 121))
        x, y, z = spots.means.T
        y += 0.3 * (np.hypot((x - POND[0]) / POND_SIZE[0], (z - POND[1]) / POND_SIZE[1]) < 1)
        return settle(rng, spots, _soil_color(rng, spots.means), Finish(rough=0.12))

    def gravel(rng: Generator, n: int) -> Surfels:
        u, v = even_pairs(rng, n)
        z = TERRACE_Z + (GARDEN.z - TERRACE_Z) * (0.35 * v + 0.65 * v * v)
        x = path_x(z) + (2 * u - 1) * (0.46 + 0.05 * np.sin(7 * z))
        lift = 0.004 + 0.012 * rng.random(n, dtype=np.float32)
        means = np.stack([x, -LAWN_HEIGHT - lift, z], axis=1)
        spacing = 0.75 * float(np.sqrt(0.95 * (GARDEN.z - TERRACE_Z) / n))  # pebbles: smaller than a closed layer needs
        spots = loose(means, np.tile(UP, (n, 1)), spacing)
        tones = choose(rng, linear("#bfb39d", "#a79c8c", "#8b8378", "#d3c9b4", "#6f6963", "#b59f86"), n)
        return settle(rng, spots, speckled(rng, tones, n, 0.1), Finish(rough=0.45, spin=1.5))

    deep = Finish(rough=0.02, shadow=False)
    return [
        surface("subsoil", Pierced(below, pond), 110, lambda rng, spots: _soil_color(rng, spots.means), deep),
        Part("soil", soil.area * 330, lawn),
        Part("gravel", 9000.0, gravel),
    ]


def _fences(rng: Generator) -> list[Part]:
    x, z1 = -GARDEN.x, GARDEN.z
    plane, foot = (x - 0.012, x + 0.012), LAWN_HEIGHT + 0.04
    boards = [block(plane, (foot, 1.72 + rng.normal(0, 0.008)), (z, z + 0.108)) for z in np.arange(5.75, z1, 0.125)]
    boards += [block((x + 0.012, x + 0.045), (k, k + 0.07), (5.7, z1)) for k in (0.35, 1.35)]
    boards += [block(plane, (foot, 1.75), (z, z + 0.1)) for z in np.arange(WALL, 2.5, 0.112)]
    pickets = [
        block((px, px + 0.055), (foot, 0.86 + rng.normal(0, 0.006)), (z1, z1 + 0.018))
        for px in np.arange(-GARDEN.x, GARDEN.x - 0.7, 0.125)
    ]
    pickets += [block((-GARDEN.x, GARDEN.x - 0.7), (k, k + 0.05), (z1 + 0.018, z1 + 0.045)) for k in (0.2, 0.62)]
    weathered = linear("#8d8272", "#a0937f", "#7c7264")

    def silvered(rng: Generator, spots: Spots) -> Float32[Array, "n 3"]:
        board = f32(spots.owner)
        tone = ramp(weathered, 0.5 + 0.4 * np.sin(13 * board))
        streaks = 1 + 0.1 * ripples(0.05 * spots.uv[:, 0], spots.uv[:, 1] + board, 0.02, 141)
        return speckled(rng, tone * streaks[:, None], len(board), 0.06)

    trellis = _lattice(x + 0.04, (2.6, 5.7), (0.0, 1.95))
    return [
        surface("board fence", join(boards), 560, silvered, Finish(stretch=4.0, spin=0.06)),
        surface("picket fence", join(pickets), 1000, plain("#ece7dc", 0.05), Finish(stretch=4.0, spin=0.06)),
        surface("trellis", trellis, 2000, plain("#8a6a4a", 0.1), Finish(stretch=5.0, spin=0.03)),
    ]


def _lattice(x: float, z: Span, heights: Span) -> Quads:
    """Crossed diagonal laths in a frame, in the plane of one x."""
    low, high = heights
    centers, sizes, axes = [], [], []
    for slope in (1, -1):
        for start in np.arange(z[0] - (high - low), z[1], 0.2):
            # The lath follows z = start + t with height = t (or high - t); keep what lies inside the frame.
            first, last = max(0.0, z[0] - start), min(high - low, z[1] - start)
            if last - first < 0.08:
                continue
            t = (first + last) / 2
            height = low + t if slope > 0 else high - t
            centers.append([x + 0.008 * slope, -height, start + t])
            sizes.append([0.007, 0.021, (last - first) * np.sqrt(2)])
            c = np.sqrt(0.5)
            axes.append([[1, 0, 0], [0, c, slope * c], [0, -slope * c, c]])
    laths = boxes(centers, sizes, f32(axes))
    frame = [block((x - 0.03, x + 0.03), heights, (k - 0.03, k + 0.03)) for k in z]
    frame += [block((x - 0.03, x + 0.03), (k - 0.03, k + 0.03), z) for k in heights]
    return join([laths, *frame])
