"""Levels of detail of a scene side by side in one set of Gaussians, and which of them to draw for a camera."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
from jaxtyping import Float64, Int32, UInt8
from numpy import ndarray as Array

from hushsplat.types.camera import Camera
from hushsplat.types.gaussians import Gaussians
from hushsplat.types.merge import joined, leaves, merged

LEAF_GAUSSIANS = 8192  # ours: of the finest level; a leaf is drawn in one level
LEVELS = 4  # the scene itself and coarser ones of a third each
LOSS = 3.0  # ours, by the PSNR of bonsai: a coarser level loses more than its spacing says
# Specks: of a smaller standard deviation in the picture than this, where the next level's are less than so far apart.
# They are drawn larger than they are (docs/rendering.md) and hide too much, so that the next level is nearer to the
# true picture. Ours, by the PSNR of synth:20M, bonsai and flowers to finer pictures; synth:200k, synth:500k and
# showroom lose nothing.
SPECK_PX, SPECK_SPACING_PX = 1.0, 4.0
NEAREST_SIZES = 0.4  # ours: most of a leaf that the camera is in is not nearer than this share of its size


@dataclass(frozen=True, eq=False)
class Levels:
    """A scene and its coarser levels; every leaf, a part of space, is drawn in one of them.

    Attributes:
        gaussians: those of the scene in their own order, then those of the coarser levels.
        group: of each Gaussian: LEVELS · leaf + level, 0 being the finest.
        middle: of each leaf, world.
        extent: of each leaf, world units.
        spacing: between the Gaussians of each leaf and level, world units.
        size: the median standard deviation of the Gaussians of each leaf and level, world units.
    """

    gaussians: Gaussians
    group: Int32[Array, " n"]
    middle: Float64[Array, "leaves 3"]
    extent: Float64[Array, " leaves"]
    spacing: Float64[Array, "leaves levels"]
    size: Float64[Array, "leaves levels"]

    @staticmethod
    def of(gaussians: Gaussians, on_leaf: Callable[[], None] = lambda: None) -> Levels:
        """Merge neighbours leaf by leaf; a denoiser payload is dropped.

        Args:
            gaussians: the scene.
            on_leaf: called before each leaf; an exception of it ends the work.
        """
        parts, groups = [gaussians], [np.empty(len(gaussians), np.int32)]
        middle, extent, counts, sizes = [], [], [], []
        for number, index in enumerate(leaves(gaussians, LEAF_GAUSSIANS)):
            on_leaf()
            part = gaussians.take(index)
            low, high = np.percentile(part.means, [2, 98], axis=0)  # a few that lie far away do not count
            middle.append((low + high) / 2)
            extent.append(float(np.linalg.norm(high - low)))
            groups[0][index] = LEVELS * number
            counts.append([len(part)])
            sizes.append([_typical_size(part)])
            for level in range(1, LEVELS):
                part = merged(part)
                parts.append(part)
                groups.append(np.full(len(part), LEVELS * number + level, np.int32))
                counts[-1].append(len(part))
                sizes[-1].append(_typical_size(part))
        reach = np.array(extent)
        spacing = reach[:, None] / np.sqrt(counts)
        return Levels(joined(parts), np.concatenate(groups), np.array(middle), reach, spacing, np.array(sizes))

    @property
    def scene(self) -> Gaussians:
        """The scene itself, a view of the same arrays."""
        return self.gaussians.first(int(np.count_nonzero(self.group % LEVELS == 0)))

    @property
    def finest(self) -> UInt8[Array, " groups"]:
        """The groups of the scene itself."""
        return self._shown(np.zeros(len(self.extent), np.int64))

    def seen_by(self, camera: Camera, spacing_px: float) -> UInt8[Array, " groups"]:
        """For each leaf its coarsest level whose spacing, with LOSS, is at most this in the picture; and no specks."""
        distance = np.linalg.norm(self.middle - camera.position, axis=1) - 0.5 * self.extent
        px = camera.fy / np.maximum(distance, np.maximum(NEAREST_SIZES * self.extent, 1e-9))[:, None]  # per world unit
        fine_enough = px * self.spacing * LOSS ** np.arange(LEVELS) <= spacing_px
        specks = (px * self.size < SPECK_PX)[:, :-1] & (px * self.spacing < SPECK_SPACING_PX)[:, 1:]
        level = np.maximum(fine_enough.sum(axis=1) - 1, np.logical_and.accumulate(specks, axis=1).sum(axis=1))
        return self._shown(level)

    def _shown(self, level: Array) -> UInt8[Array, " groups"]:
        shown = np.zeros(self.spacing.shape, np.uint8)
        shown[np.arange(len(level)), level] = 1
        return shown.ravel()


def _typical_size(gaussians: Gaussians) -> float:
    """The median standard deviation: the root of the area that two axes span, the largest two."""
    return float(np.median(np.sort(gaussians.scales, axis=1)[:, -2:].prod(axis=1)) ** 0.5)
