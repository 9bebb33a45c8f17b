"""Coarser levels of detail: neighbours merged so that mass, mean and covariance stay."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from jaxtyping import Float64, Int
from numpy import ndarray as Array

from hushsplat.types.gaussians import Gaussians
from hushsplat.types.harmonics import SH_C0
from hushsplat.types.rotations import matrix_from_quaternion, quaternion_from_matrix

DEPTH = 19  # bits per axis of the octree
GROUP = 8  # ours: a cell of at most so many becomes one Gaussian; a level has a third to a quarter of the one before
SIZE_CLASSES = 8  # of four times the size each: a sky dome is not merged with the leaves before it
COLOR_SPREAD = 0.1  # ours: a group whose colours differ by more (standard deviation) becomes two Gaussians; +1.5 dB
MOST_OPACITY = 1.5  # ours, by the PSNR of levels of `synth:500k`; ellipsoids (bonsai) are best without
SMALLEST = 1e-12  # world units: a scale is never 0


def merged(gaussians: Gaussians) -> Gaussians:
    """The next coarser level of detail: the Gaussians of each small cell of an adaptive octree become one.

    Or two, where their colours differ much: a dark frame on a white wall stays a frame. Mean and covariance are those
    of the mixture, weighted by opacity times area; opacity times area is the sum, and the colour the weighted mean. A
    denoiser payload is dropped.
    """
    if len(gaussians) < 2:
        return gaussians
    area = np.sort(gaussians.scales.astype(np.float64), axis=1)[:, -2:].prod(axis=1)
    mass = gaussians.opacities * area + 1e-30
    group = _split_by_color(_groups(gaussians), gaussians, mass)
    count = int(group.max()) + 1
    frames = matrix_from_quaternion(gaussians.rotations.astype(np.float64))[:, :, : gaussians.scales.shape[1]]
    axes = frames * gaussians.scales[:, None].astype(np.float64)
    total = np.bincount(group, mass, count)

    def mean_of(values: Float64[Array, "n k"]) -> Float64[Array, "m k"]:
        return _means(values, mass, group, count)

    means = gaussians.means.astype(np.float64)
    middle = mean_of(means)
    offset = means - middle[group]
    second = np.einsum("nik,njk->nij", axes, axes) + offset[:, :, None] * offset[:, None, :]
    variances, directions = np.linalg.eigh(mean_of(second.reshape(-1, 9)).reshape(-1, 3, 3))
    scales = np.sqrt(np.maximum(variances[:, ::-1], SMALLEST**2))  # the largest first
    directions = directions[:, :, ::-1].copy()
    directions[:, :, 2] *= np.sign(np.linalg.det(directions))[:, None]
    opacity = total / scales[:, :2].prod(axis=1)
    if gaussians.is_surfels:
        # Where surfels overlap so much that the opacity would be above 1, the merged one is larger instead, with the
        # same half-opacity radius: else a floor gets holes.
        scales[:, :2] *= np.sqrt(np.log(2 * np.clip(opacity, 1, MOST_OPACITY)) / np.log(2))[:, None]
    opacity = np.minimum(opacity, _most_opaque(group, gaussians.opacities, count))
    return Gaussians(
        means=middle.astype(np.float32),
        scales=scales[:, : gaussians.scales.shape[1]].astype(np.float32),
        rotations=quaternion_from_matrix(directions).astype(np.float32),
        opacities=opacity.astype(np.float32),
        sh=mean_of(gaussians.sh.reshape(len(gaussians), -1).astype(np.float64))
        .astype(np.float32)
        .reshape(count, *gaussians.sh.shape[1:]),
        antialiased=gaussians.antialiased,
    )


def _means(
    values: Float64[Array, "n k"], mass: Float64[Array, " n"], group: Int[Array, " n"], count: int
) -> Float64[Array, "m k"]:
    """Of each group, weighted by mass."""
    sums = [np.bincount(group, mass * column, count) for column in values.T]
    return np.stack(sums, axis=1) / np.bincount(group, mass, count)[:, None]


def _split_by_color(group: Int[Array, " n"], gaussians: Gaussians, mass: Float64[Array, " n"]) -> Int[Array, " n"]:
    """Groups of one colour each: halves those that differ much, at the mean of the channel that differs most."""
    count = int(group.max()) + 1
    color = SH_C0 * gaussians.sh[:, 0].astype(np.float64)
    apart = color - _means(color, mass, group, count)[group]
    variance = _means(apart**2, mass, group, count)
    above = np.take_along_axis(apart, variance.argmax(axis=1)[group, None], axis=1)[:, 0] > 0
    differs = variance.max(axis=1) > COLOR_SPREAD**2
    return np.unique(2 * group + (above & differs[group]), return_inverse=True)[1]


def _most_opaque(group: Int[Array, " n"], opacities: Array, count: int) -> Float64[Array, " m"]:
    """Of each group: what all of its Gaussians one behind the other would let through at least, as an opacity."""
    clear = np.log1p(-np.minimum(opacities.astype(np.float64), 1 - 1e-6))
    return 1 - np.exp(np.bincount(group, clear, count))


def _groups(gaussians: Gaussians) -> Int[Array, " n"]:
    """The number of the group of each Gaussian: of the largest octree cell with at most GROUP of its size class."""
    means = gaussians.means.astype(np.float64)
    low, high = means.min(axis=0), means.max(axis=0)
    cells = ((means - low) / max(float((high - low).max()), 1e-300) * (2**DEPTH - 1)).astype(np.uint64)
    key = np.zeros(len(means), np.uint64)
    for bit in range(DEPTH):
        for axis in range(3):
            key |= ((cells[:, axis] >> np.uint64(bit)) & np.uint64(1)) << np.uint64(3 * bit + axis)
    size = gaussians.scales.max(axis=1).astype(np.float64)
    size_class = np.clip(np.log2(size / max(float(np.median(size)), 1e-300)) / 2 + 2, 0, SIZE_CLASSES - 1)
    key |= size_class.astype(np.uint64) << np.uint64(3 * DEPTH)
    group = np.full(len(means), -1, np.int64)
    left, found = np.arange(len(means)), 0
    for depth in range(DEPTH + 1):
        _, cell, counts = np.unique(
            key[left] >> np.uint64(3 * (DEPTH - depth)), return_inverse=True, return_counts=True
        )
        small = counts <= GROUP if depth < DEPTH else np.ones(len(counts), bool)
        number = found + np.cumsum(small) - 1
        chosen = small[cell]
        group[left[chosen]] = number[cell[chosen]]
        found += int(small.sum())
        left = left[~chosen]
        if not len(left):
            break
    return group


def leaves(gaussians: Gaussians, most: int) -> list[Int[Array, " m"]]:
    """Indices of the Gaussians of each leaf of at most so many: halves along the longest side."""
    done, open_ = [], [np.arange(len(gaussians))]
    while open_:
        index = open_.pop()
        if len(index) <= most:
            done.append(index)
            continue
        means = gaussians.means[index]
        axis = int(np.argmax(np.subtract(*np.percentile(means, [99, 1], axis=0))))
        half = len(index) // 2
        order = np.argpartition(means[:, axis], half)
        open_ += [index[order[half:]], index[order[:half]]]
    return done


def joined(parts: Sequence[Gaussians]) -> Gaussians:
    """All of these, which are of one kind and degree, in this order; without payload."""
    names = ("means", "scales", "rotations", "opacities", "sh")
    arrays = [np.concatenate([getattr(part, name) for part in parts]) for name in names]
    return Gaussians(*arrays, antialiased=parts[0].antialiased)
