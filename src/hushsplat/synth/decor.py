"""What lies and hangs: the rug and the pictures."""

from __future__ import annotations

import numpy as np
from jaxtyping import Float32, Int64
from numpy import ndarray as Array
from numpy.random import Generator

from hushsplat.synth.patterns import linear, mix, ramp, ripples, smoothstep, speckled
from hushsplat.synth.plan import BACK_PICTURES, PICTURES, ROOM, RUG_X, RUG_Z
from hushsplat.synth.shapes import Quads, Span, block, f32, join, rods
from hushsplat.synth.surfaces import ground, plain, surface, wall
from hushsplat.synth.surfels import Finish, Part, Spots

MATS, SMALL_MAT = (0.06, 0.035, 0.035), 0.05  # metres of paper around the pictures


def parts(rng: Generator) -> list[Part]:
    """Rug and pictures."""
    return [*_rug(rng), *_pictures()]


def _kilim(rng: Generator, spots: Spots) -> Float32[Array, "n 3"]:
    """Rows of stepped diamonds inside a striped border."""
    colors = linear("#e9dcc3", "#a8412f", "#2e4a5b", "#d29a4a", "#7b2d26", "#e9dcc3")
    length, width = RUG_Z[1] - RUG_Z[0], RUG_X[1] - RUG_X[0]
    u, v = spots.uv.T
    border = np.minimum(np.minimum(u, length - u), np.minimum(v, width - v))
    a, b = (u - length / 2) / 0.40, (v - width / 2) / 0.345
    steps = np.abs(a - np.round(a)) + np.abs(np.round((b - np.round(b)) * 9) / 9)
    field = np.clip((steps * 5.2).astype(np.int64), 0, 5)
    edge = np.select([border < 0.05, border < 0.085, border < 0.12, border < 0.2], [4, 0, 2, 1], -1)
    teeth = (border > 0.12) & (border < 0.2) & (np.abs((u + v) / 0.13 % 1 - 0.5) < 0.16)
    color = colors[np.where(edge >= 0, np.where(teeth, 3, edge), field)]
    worn = 1 + 0.05 * ripples(u, v, 0.6, 61) + 0.05 * np.sin(2 * np.pi * v / 0.011)
    return speckled(rng, color * worn[:, None].astype(np.float32), len(u), 0.07)


def _rug(rng: Generator) -> list[Part]:
    rug = ground(RUG_X, RUG_Z, 0.011)
    knots = np.linspace(RUG_X[0] + 0.01, RUG_X[1] - 0.01, 190) + rng.normal(0, 0.003, 190)
    fringe = []
    for z, out in ((RUG_Z[0], -0.055), (RUG_Z[1], 0.055)):
        start = np.stack([knots, np.full(190, -0.008), np.full(190, z)], axis=1)
        end = start + np.stack([rng.normal(0, 0.012, 190), np.full(190, 0.003), np.full(190, out)], axis=1)
        fringe.append(rods(start, end, (0.0022, 0.0022)))
    wool = Finish(rough=0.1, spin=0.4, opacity=(0.8, 1.0))
    return [
        surface("rug", rug, 5200, _kilim, wool),
        surface("rug fringe", join(fringe), 9000, plain("#e4d6bb", 0.1), Finish(stretch=5.0, rough=0.2)),
    ]


def _landscape(rng: Generator, spots: Spots) -> Float32[Array, "n 3"]:
    """A painting: an evening sky over rows of hills and a lake."""
    u, v = spots.uv[:, 0] / 1.18, spots.uv[:, 1] / 0.76
    color = ramp(
        linear("#f7d9a0", "#f0a868", "#c9788a", "#5f7fa6", "#34567f"),
        (v - 0.35) / 0.65 + 0.04 * ripples(u, 3 * v, 0.3, 71),
    )
    sun = smoothstep(0.075, 0.06, np.hypot((u - 0.66) * 1.5, v - 0.6))
    color = mix(color, linear("#fff0c0"), sun)
    rows = [
        ("#8d7fa3", 0.50, 0.05, 0.5),
        ("#5f6a8f", 0.43, 0.06, 0.33),
        ("#3c4f6b", 0.35, 0.05, 0.27),
        ("#22384a", 0.26, 0.045, 0.21),
    ]
    for index, (tone, level, swing, wavelength) in enumerate(rows):
        crest = level + swing * ripples(u, 0 * u, wavelength, 72 + index, 4)
        color = mix(color, linear(tone), smoothstep(-0.004, 0.004, crest.astype(np.float32) - v))
    lake = smoothstep(0.175, 0.165, v)
    glitter = ramp(
        linear("#274257", "#c98c6e", "#f3c98b"), 0.35 + 0.3 * ripples(0.4 * u, v, 0.022, 77) - 1.3 * np.abs(u - 0.66)
    )
    color = mix(color, glitter, lake)
    return speckled(rng, color, len(u), 0.06)


def _botanical(rng: Generator, spots: Spots) -> Float32[Array, "n 3"]:
    """A sprig on paper."""
    u, v = spots.uv[:, 0] / 0.25 - 0.5, spots.uv[:, 1] / 0.33 - 0.5
    stem = np.abs(u - 0.06 * np.sin(5 * v)) < 0.018
    leaves = (np.abs(np.abs(u) - 0.16) < 0.12 * np.abs(np.sin(14 * v + 6 * np.abs(u)))) & (np.abs(v) < 0.34)
    tone = np.where(spots.owner[:, None] % 2 == 0, linear("#47624b"), linear("#8a5a3c"))
    color = np.where(((stem & (np.abs(v) < 0.4)) | leaves)[:, None], tone, linear("#efe8d8"))
    return speckled(rng, color.astype(np.float32), len(u), 0.03)


def _shapes(u: Float32[Array, " n"], v: Float32[Array, " n"], owner: Int64[Array, " n"]) -> Float32[Array, "n 3"]:
    """Flat round shapes on coloured paper, a different set for each print."""
    papers, inks = linear("#e8dcc4", "#d9cbb0", "#ece4d4"), linear("#b9573c", "#2f4d5c", "#d39c45")
    color = papers[owner]
    for index, (x, y, size) in enumerate(((0.4, 0.35, 0.24), (0.62, 0.55, 0.2), (0.36, 0.72, 0.15))):
        inside = np.hypot(u - x, (v - y) * np.where(owner == 0, 1.4, 0.75)) < size
        color = np.where(inside[:, None], inks[(owner + index) % 3], color)
    return color


def _prints(rng: Generator, spots: Spots) -> Float32[Array, "n 3"]:
    """The prints on the back wall."""
    sizes = f32([[span[1] - span[0], heights[1] - heights[0]] for span, heights in BACK_PICTURES])[spots.owner]
    u, v = (spots.uv / (sizes - 2 * SMALL_MAT)).T
    return speckled(rng, _shapes(u, v, spots.owner), len(u), 0.03)


def _framed(span: Span, heights: Span, mat: float) -> tuple[Quads, Quads, Quads]:
    """Frame, mat and picture on a wall along x that faces -z."""
    (a, b), (low, high), t, depth = span, heights, 0.022, (-0.03, 0)
    sides = [block(x, (low - t, high + t), depth) for x in ((a - t, a), (b, b + t))]
    sides += [block((a, b), level, depth) for level in ((low - t, low), (high, high + t))]
    z = -0.012
    mats = [wall((x, z), (x + mat, z), heights) for x in (a, b - mat)]
    mats += [wall((a + mat, z), (b - mat, z), level) for level in ((low, low + mat), (high - mat, high))]
    return join(sides), join(mats), wall((a + mat, z), (b - mat, z), (low + mat, high - mat))


def _pictures() -> list[Part]:
    left = [_framed(span, heights, mat) for (span, heights), mat in zip(PICTURES, MATS, strict=True)]
    back = [_framed((-b, -a), heights, SMALL_MAT) for (a, b), heights in BACK_PICTURES]
    hung = [[piece.placed(-ROOM.x, 0, 90) for piece in pieces] for pieces in left]
    hung += [[piece.placed(0, -ROOM.z, 180) for piece in pieces] for pieces in back]
    frames, mats = join([pieces[0] for pieces in hung]), join([pieces[1] for pieces in hung])
    painting, *sprigs = (pieces[2] for pieces in hung[: len(left)])
    prints = join([pieces[2] for pieces in hung[len(left) :]])
    fine = Finish(stretch=1.6, rough=0.03)
    return [
        surface("picture frames", frames, 9000, plain("#2b2622"), Finish(stretch=3.0, gloss=0.15)),
        surface("picture mats", mats, 2200, plain("#f2ede1", 0.02), fine),
        surface("painting", painting, 7000, _landscape, fine),
        surface("sprigs", join(sprigs), 9000, _botanical, fine),
        surface("prints", prints, 3500, _prints, fine),
    ]
