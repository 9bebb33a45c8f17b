"""A scene on the GPU: Gaussians in Morton order, in chunks that are culled together and pages that fit one buffer."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np
from jaxtyping import Float32, Int32
from numpy import ndarray as Array

from hushsplat.engines.base import GaussianScene
from hushsplat.engines.webgpu.device import Buffer, Device
from hushsplat.engines.webgpu.packing import (
    FIXED_WORDS,
    ScaleRange,
    axes_of,
    color_words,
    levels,
    packed_colors,
    packed_fixed,
)
from hushsplat.types.errors import SceneError
from hushsplat.types.gaussians import PAYLOAD_FLOATS, Gaussians
from hushsplat.types.morton import BITS, morton_codes

CHUNK = 256  # Gaussians that are culled together: the workgroup of cull.wgsl
MOST_CHUNKS = 1 << 14  # of a page, a workgroup each (65,535 at most); drawing takes 8 B a Gaussian of the largest page
ARRAYS = ("means", "scales", "rotations", "opacities", "sh")


@dataclass(frozen=True, eq=False)
class Page:
    """The Gaussians at the places `base` to `base + count` of the scene."""

    base: int
    count: int
    uniform: Buffer = field(repr=False)
    bounds: Buffer = field(repr=False)  # of the chunks: lowest and highest corner
    ids: Buffer = field(repr=False)  # index of each in the file, which seeds its noise
    fixed: Buffer = field(repr=False)
    sh: Buffer = field(repr=False)
    payload: Buffer | None = field(repr=False)

    @property
    def chunks(self) -> int:
        """How many."""
        return -(-self.count // CHUNK)


@dataclass(frozen=True, eq=False)
class GpuScene(GaussianScene):
    """Gaussians in pages, in an order of their own: `ids` has the index in the file of each place."""

    pages: tuple[Page, ...] = field(repr=False)
    ids: Int32[Array, " n"] = field(repr=False)
    corners: Float32[Array, "8 3"] = field(repr=False)  # of the box around the means
    compact: bool = True

    @property
    def bytes(self) -> int:
        """Memory of the GPU."""
        held = [
            buffer
            for page in self.pages
            for buffer in (page.uniform, page.bounds, page.ids, page.fixed, page.sh, page.payload)
        ]
        return sum(buffer.bytes for buffer in held if buffer is not None)

    @property
    def constants(self) -> dict[str, Any]:
        """How shaders read and project its Gaussians."""
        return {
            "SURFELS": self.gaussians.is_surfels,
            "ANTIALIASED": self.gaussians.antialiased,
            "COMPACT": self.compact,
        }


def upload(device: Device, gaussians: Gaussians, *, compact: bool, page_count: int | None = None) -> GpuScene:
    """Copy a scene to the GPU; values that are not finite are refused.

    Args:
        device: to copy to.
        gaussians: the scene.
        compact: store Gaussians as packing.py says, else in float32.
        page_count: Gaussians of a page at most; None takes as many as one buffer holds.
    """
    for name in ARRAYS:
        if not np.isfinite(getattr(gaussians, name)).all():
            raise SceneError(f"{name} holds values that are not finite; remove those Gaussians first.")
    coefficients = gaussians.sh.shape[1]
    words = color_words(coefficients, compact=compact)
    largest = 4 * max(FIXED_WORDS[compact], PAYLOAD_FLOATS, words)
    most = min(page_count or device.most_bytes // largest, MOST_CHUNKS * CHUNK)
    most = max(most // CHUNK, 1) * CHUNK
    order, scales, pages = _space_order(gaussians), ScaleRange.of(gaussians.scales), []
    for base in range(0, max(len(gaussians), 1), most):
        part = gaussians.take(order[base : base + most])
        uniform = device.uniform(
            "cull",
            "Page",
            base=base,
            count=len(part),
            coefficients=coefficients,
            color_words=words,
            scale_first=scales.first,
            scale_step=scales.step,
        )
        pages.append(
            Page(
                base,
                len(part),
                uniform,
                bounds=device.upload(_bounds(part)),
                ids=device.upload(order[base : base + most]),
                fixed=device.upload(packed_fixed(part, scales, compact=compact)),
                sh=device.upload(packed_colors(part.sh, compact=compact)),
                payload=None if part.payload is None else device.upload(part.payload),
            )
        )
    return GpuScene(gaussians, tuple(pages), order, _corners(gaussians.means), compact)


def with_payload(device: Device, scene: GpuScene, payload: Float32[Array, "n 10"] | None) -> GpuScene:
    """The same scene with another payload; everything else is shared."""

    def piece(page: Page) -> Buffer | None:
        return None if payload is None else device.upload(payload[scene.ids[page.base : page.base + page.count]])

    pages = tuple(replace(page, payload=piece(page)) for page in scene.pages)
    return replace(scene, gaussians=replace(scene.gaussians, payload=payload), pages=pages)


def _space_order(gaussians: Gaussians) -> Int32[Array, " n"]:
    """Indices along a Morton curve, small Gaussians before large ones, which would blow up their neighbours' bounds."""
    if not len(gaussians):
        return np.zeros(0, dtype=np.int32)
    low, high = np.percentile(gaussians.means[:: max(len(gaussians) // 100_000, 1)], (2, 98), axis=0)
    side = max(float((high - low).max()), 1e-12)  # a few far-away Gaussians must not coarsen the grid for all others
    cells = ((gaussians.means - (low + high) / 2) / side + 2) * 2 ** (BITS - 2)
    codes = morton_codes(np.clip(cells, 0, 2**BITS - 1).astype(np.int64))
    radii = np.maximum(gaussians.scales.max(axis=1), np.float32(1e-30))
    size_class = np.clip(np.log2(radii / np.median(radii)) / 2, 0, 7).astype(np.uint64)
    order = np.argsort(codes | size_class << np.uint64(60)).astype(np.int32)
    whole = len(order) // CHUNK * CHUNK
    order[:whole].reshape(-1, CHUNK).sort(axis=1)  # two at one depth are more often drawn in the order of the file
    order[whole:].sort()
    return order


def _bounds(gaussians: Gaussians) -> Float32[Array, "chunks 2 3"]:
    """The box of each chunk around all that can be seen of its Gaussians, before low-pass and dilation."""
    variances = np.square(axes_of(gaussians)).sum(axis=-1)
    reach = np.sqrt(np.maximum(levels(gaussians.opacities), 0)[:, None] * variances) * np.float32(1.001)  # of packing
    starts = np.arange(0, len(gaussians), CHUNK)
    if not len(starts):
        return np.zeros((0, 2, 3), dtype=np.float32)
    low = np.minimum.reduceat(gaussians.means - reach, starts, axis=0)
    high = np.maximum.reduceat(gaussians.means + reach, starts, axis=0)
    return np.stack([low, high], axis=1).astype(np.float32)


def _corners(means: Float32[Array, "n 3"]) -> Float32[Array, "8 3"]:
    if not len(means):
        return np.zeros((8, 3), dtype=np.float32)
    ends = np.stack([means.min(axis=0), means.max(axis=0)])
    picks = np.stack(np.meshgrid([0, 1], [0, 1], [0, 1], indexing="ij"), axis=-1).reshape(8, 3)
    return ends[picks, np.arange(3)]
