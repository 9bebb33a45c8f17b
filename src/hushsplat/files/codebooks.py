"""Few values for many: codebooks of numbers and palettes of vectors, by k-means."""

from __future__ import annotations

import numpy as np
from jaxtyping import Float, Float32, Int, UInt8, UInt16
from numpy import ndarray as Array

CODEBOOK_ENTRIES = 256
CODEBOOK_ROUNDS = 30  # ours: more change the error by less than 1 %
HISTOGRAM_BINS = 4096
EVEN_SHARE = 0.3  # ours: on normal values 1 % more mean error than without, and a seventh of the largest one
PALETTE_ROUNDS = 8  # ours: four have 0.5 % more error, in 60 % of the time
COARSE_SAMPLES_PER_CELL = 64
ROWS_AT_ONCE = 65536  # ours: 64 MiB of distances to 256 cells


def fit_codebook(values: Float[Array, " ..."]) -> Float32[Array, " 256"]:
    """256 ascending numbers close to all values: exact if these are at most 256 different ones."""
    ordered = np.sort(values, axis=None).astype(np.float64)
    distinct = np.unique(ordered) if len(ordered) else np.zeros(1)
    if len(distinct) <= CODEBOOK_ENTRIES:
        return np.pad(distinct, (0, CODEBOOK_ENTRIES - len(distinct)), mode="edge").astype(np.float32)
    # The best density of entries is the cube root of the density of values (Panter and Dite): a good start. Some
    # entries are spread evenly, so that no rare value is far from all of them.
    edges = np.linspace(ordered[0], ordered[-1], HISTOGRAM_BINS + 1)
    weights = np.cbrt(np.diff(np.searchsorted(ordered, edges)))
    weights += EVEN_SHARE * weights.mean()
    share = np.concatenate([[0], np.cumsum(weights)]) / weights.sum()
    entries = np.interp((np.arange(CODEBOOK_ENTRIES) + 0.5) / CODEBOOK_ENTRIES, share, edges)
    sums = np.concatenate([[0], np.cumsum(ordered)])  # so that a round of k-means costs 256 look-ups
    for _ in range(CODEBOOK_ROUNDS):
        borders = np.searchsorted(ordered, (entries[1:] + entries[:-1]) / 2)
        borders = np.concatenate([[0], borders, [len(ordered)]])
        counts = np.diff(borders)
        entries = np.where(counts, np.diff(sums[borders]) / np.maximum(counts, 1), entries)
    return entries.astype(np.float32)


def nearest_entries(values: Float[Array, "*shape"], codebook: Float32[Array, " 256"]) -> UInt8[Array, "*shape"]:
    """The index of the codebook's nearest entry for each value."""
    return np.searchsorted((codebook[1:] + codebook[:-1]) / 2, values).astype(np.uint8)


def fit_palette(vectors: Float32[Array, "n d"], size: int) -> tuple[Float32[Array, "m d"], UInt16[Array, " n"]]:
    """At most `size` vectors (up to 65536) close to all, and for each vector the index of its own.

    Two levels of k-means, as one level of 65,536 would compare each vector with all of them: cells first, then in
    each cell a share of the palette that grows with the cell's error.
    """
    if len(vectors) <= size:
        return vectors, np.arange(len(vectors), dtype=np.uint16)
    random = np.random.default_rng(0)
    cell_count = max(1, int(np.sqrt(size)))
    sample = random.choice(len(vectors), min(len(vectors), cell_count * COARSE_SAMPLES_PER_CELL), replace=False)
    centers, _ = _k_means(vectors[sample], cell_count, random)
    cells = np.concatenate(
        [_nearest(vectors[first : first + ROWS_AT_ONCE], centers) for first in range(0, len(vectors), ROWS_AT_ONCE)]
    )
    order = np.argsort(cells, kind="stable")
    members = np.split(order, np.cumsum(np.bincount(cells, minlength=len(centers)))[:-1])
    shares = _shares(np.array([_error(vectors[rows]) for rows in members]), np.array([len(r) for r in members]), size)
    palette: list[Float32[Array, "k d"]] = []
    labels = np.empty(len(vectors), np.uint16)
    used = 0
    for rows, share in zip(members, shares, strict=True):
        if len(rows):
            entries, nearest = _k_means(vectors[rows], int(share), random)
            labels[rows] = used + nearest
            palette.append(entries)
            used += len(entries)
    return np.concatenate(palette), labels


def _shares(errors: Float[Array, " c"], counts: Int[Array, " c"], size: int) -> Int[Array, " c"]:
    """How many palette entries each cell gets: at least one, at most its vectors, `size` or less in all."""
    weights = errors**0.75 + 1e-12
    shares = np.minimum(np.floor((size - len(counts)) * weights / weights.sum()).astype(np.int64) + 1, counts)
    for _ in range(4):  # what small cells could not take goes to the others
        spare = size - shares.sum()
        room = weights * (shares < counts)
        if spare <= 0 or not room.any():
            break
        shares = np.minimum(shares + np.floor(spare * room / room.sum()).astype(np.int64), counts)
    return shares


def _error(vectors: Float32[Array, "n d"]) -> float:
    return float(vectors.var(axis=0).sum() * len(vectors)) if len(vectors) else 0.0


def _k_means(
    vectors: Float32[Array, "n d"], count: int, random: np.random.Generator
) -> tuple[Float32[Array, "k d"], Int[Array, " n"]]:
    """At most `count` centres and the nearest one of each vector."""
    if count >= len(vectors):
        return vectors, np.arange(len(vectors))
    centers = vectors[random.choice(len(vectors), count, replace=False)]
    for _ in range(PALETTE_ROUNDS):
        nearest = _nearest(vectors, centers)
        order = np.argsort(nearest, kind="stable")
        counts = np.bincount(nearest, minlength=count)
        filled = counts > 0
        firsts = (np.cumsum(counts) - counts)[filled]
        centers = centers.copy()
        centers[filled] = np.add.reduceat(vectors[order], firsts, axis=0) / counts[filled, None]
    return centers, _nearest(vectors, centers)


def _nearest(vectors: Float32[Array, "n d"], centers: Float32[Array, "k d"]) -> Int[Array, " n"]:
    distances = vectors @ (-2 * centers).T  # |v - c|² without |v|², which is the same for all centres
    distances += np.einsum("kd,kd->k", centers, centers)
    return distances.argmin(axis=1)
