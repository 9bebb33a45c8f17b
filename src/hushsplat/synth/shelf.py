"""The shelf, its books and what stands between them."""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np
from jaxtyping import Float32
from numpy import ndarray as Array
from numpy.random import Generator

from hushsplat.synth.patterns import choose, linear, speckled
from hushsplat.synth.plan import SHELF_X, SHELF_Z
from hushsplat.synth.shapes import Blobs, block, boxes, f32, join, lathe
from hushsplat.synth.surfaces import WOODEN, each, facing, grained, plain, surface
from hushsplat.synth.surfels import Finish, Part, Spots

LEVELS = (0.06, 0.46, 0.84, 1.22, 1.60, 1.96)  # metres above the floor
BOARD = 0.012  # metres: half the thickness of a board
OAK = linear("#cdb28c", "#d5bb96", "#c6a980")
SPINES = linear(
    "#8c2f2b", "#2f4858", "#d9b382", "#3f6b4f", "#e8e0d0", "#c4672f", "#5b4a78",
    "#1f2a33", "#c9a227", "#7a8f99", "#a3485a", "#ece3cf", "#33658a", "#758e4f",
)  # fmt: skip
GLAZES = linear("#c98a6b", "#e6ddcf", "#4f6d6b", "#d3a95c", "#2f3d46")


@dataclass
class Books:
    """Boxes by centre, size and axes, and the gaps that are left at the ends of rows as (height, z)."""

    centers: list[list[float]] = field(default_factory=list)
    sizes: list[list[float]] = field(default_factory=list)
    axes: list[list[list[float]]] = field(default_factory=list)
    gaps: list[tuple[float, float]] = field(default_factory=list)


def parts(rng: Generator) -> list[Part]:
    """The shelf on the right wall."""
    (x0, x1), (z0, z1) = SHELF_X, SHELF_Z
    middle = (z0 + z1) / 2
    boards = [block((x0, x1), (level - BOARD, level + BOARD), (z0, z1)) for level in LEVELS]
    boards += [block((x0, x1), (0, LEVELS[-1] + BOARD), (z - BOARD, z + BOARD)) for z in (z0, middle, z1)]
    back = block((x1 - 0.006, x1), (0.05, LEVELS[-1]), (z0, z1))
    books = Books()
    for row in range(2 * len(LEVELS) - 2):
        span = (z0, middle) if row % 2 == 0 else (middle, z1)
        _fill_row(rng, books, row, LEVELS[row // 2] + BOARD, (span[0] + BOARD, span[1] - BOARD))
    return [
        surface("shelf", join(boards), 2200, grained(OAK, 51), WOODEN),
        surface("shelf back", back, 900, grained(OAK, 52), WOODEN),
        _book_part(rng, books),
        *_things(rng, books.gaps),
    ]


def _fill_row(rng: Generator, books: Books, row: int, bottom: float, span: tuple[float, float]) -> None:
    """Stand books side by side, a few leaning, and leave some room."""
    place = span[0] + rng.uniform(0.01, 0.06) + (0.32 if row % 4 == 2 else 0)
    end = span[1] - rng.uniform(0.05, 0.45)
    while place < end:
        width, height, depth = rng.uniform(0.018, 0.05), rng.uniform(0.19, 0.30), rng.uniform(0.15, 0.22)
        lean = rng.uniform(0.12, 0.22) if rng.random() < 0.07 else rng.normal(0, 0.008)
        place += 0.9 * height * max(np.sin(lean), 0)
        c, s = np.cos(lean), np.sin(lean)
        front = SHELF_X[0] + 0.02 + rng.uniform(0, 0.02)
        books.centers.append([front + depth / 2, -(bottom + height / 2), place + width / 2])
        books.sizes.append([depth, height, width])
        books.axes.append([[1, 0, 0], [0, c, s], [0, -s, c]])
        place += width + rng.uniform(0.0, 0.003)
    if span[1] - place > 0.16:
        books.gaps.append((bottom, (place + span[1]) / 2 + 0.02))


def _book_part(rng: Generator, books: Books) -> Part:
    sides = boxes(books.centers, books.sizes, f32(books.axes))
    shown = np.flatnonzero((sides.normals[:, 0] < -0.5) | (sides.normals[:, 1] < -0.5))  # spines and tops
    m = len(books.centers)
    spine = choose(rng, SPINES, m) * f32(rng.uniform(0.75, 1.1, (m, 1)))
    label_at, golden, heights = f32(rng.uniform(0.15, 0.85, m)), rng.random(m) < 0.5, f32(books.sizes)[:, 1]

    def paint(rng: Generator, spots: Spots) -> Float32[Array, "n 3"]:
        book = shown[spots.owner] % m
        color = spine[book]
        off_label = spots.uv[:, 0] / heights[book] - label_at[book]
        label = ((np.abs(off_label) < 0.05) | (np.abs(off_label + 0.14) < 0.012)) & (facing(spots, (-1, 0, 0)) > 0)
        print_color = np.where(golden[book][:, None], linear("#e6d3a0"), color * 0.35)
        color = np.where(label[:, None], print_color, color)
        color = np.where(facing(spots, (0, -1, 0))[:, None] > 0, linear("#e9dfc8"), color)
        return speckled(rng, f32(color), len(book), 0.05)

    return surface("books", sides.take(shown), 8000, paint, Finish(stretch=2.5, spin=0.1, gloss=0.05))


def _things(rng: Generator, gaps: list[tuple[float, float]]) -> list[Part]:
    """Pots and globes where a row of books leaves room, and a basket on top."""
    x = sum(SHELF_X) / 2 - 0.03
    profile = f32([(0, 0), (0, 0.05), (0.07, 0.075), (0.13, 0.06), (0.17, 0.03), (0.19, 0.036)])
    basket = lathe(
        [(0, 0), (0, 0.12), (0.1, 0.15), (0.2, 0.15), (0.2, 0.14), (0.12, 0.13)], x, -2.75, LEVELS[-1] + BOARD
    )
    shiny = Finish(gloss=0.3)
    found = [surface("basket", basket, 5000, plain("#b08a57", 0.16), Finish(rough=0.2))]
    for index, (bottom, z) in enumerate(gaps):
        size = float(rng.uniform(0.8, 1.15))
        paint = each(GLAZES[index % 5 : index % 5 + 1])
        if index % 2:
            found.append(surface("pot", lathe(profile * f32(size), x, z, bottom), 7000, paint, shiny))
        else:
            globe = Blobs(f32([[x, -(bottom + 0.07 * size), z]]), np.full((1, 3), 0.07 * size, np.float32))
            found.append(surface("globe", globe, 7000, paint, shiny))
    return found
