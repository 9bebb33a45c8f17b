"""A scene on the GPU: pages of Gaussians, each small enough for one binding."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field, replace

import numpy as np
from jaxtyping import Float32
from numpy import ndarray as Array

from hushsplat.engines.base import GaussianScene
from hushsplat.engines.webgpu.device import Buffer, Device
from hushsplat.types.errors import SceneError
from hushsplat.types.gaussians import PAYLOAD_FLOATS, Gaussians
from hushsplat.types.rotations import matrix_from_quaternion

FIXED_FLOATS = 10  # as lib_project.wgsl
TRANSPARENT = -1e3  # stands for 2 ln(0): never drawn
ARRAYS = ("means", "scales", "rotations", "opacities", "sh")


@dataclass(frozen=True, eq=False)
class Page:
    """Gaussians `base` to `base + count` of the scene."""

    base: int
    count: int
    uniform: Buffer = field(repr=False)
    fixed: Buffer = field(repr=False)
    sh: Buffer = field(repr=False)
    payload: Buffer | None = field(repr=False)


@dataclass(frozen=True, eq=False)
class GpuScene(GaussianScene):
    """Gaussians in pages; no order between pages matters to a depth test."""

    pages: tuple[Page, ...] = field(repr=False)
    corners: Float32[Array, "8 3"] = field(repr=False)  # of the box around the means
    halves: bool = True

    @property
    def bytes(self) -> int:
        """Memory of the GPU."""
        held = [buffer for page in self.pages for buffer in (page.uniform, page.fixed, page.sh, page.payload)]
        return sum(buffer.bytes for buffer in held if buffer is not None)


def upload(device: Device, gaussians: Gaussians, *, halves: bool, page_count: int | None = None) -> GpuScene:
    """Copy a scene to the GPU; values that are not finite are refused.

    Args:
        device: to copy to.
        gaussians: the scene.
        halves: store colours in 16 bits, else in 32.
        page_count: Gaussians of a page; None takes as many as one buffer holds.
    """
    for name in ARRAYS:
        if not np.isfinite(getattr(gaussians, name)).all():
            raise SceneError(f"{name} holds values that are not finite; remove those Gaussians first.")
    coefficients = gaussians.sh.shape[1]
    largest = 4 * max(FIXED_FLOATS, PAYLOAD_FLOATS, (3 * coefficients + halves) // (1 + halves))
    pages = []
    for base, part in _parts(gaussians, page_count or device.most_bytes // largest):
        uniform = device.uniform("cull", "Page", base=base, count=len(part), coefficients=coefficients)
        colors = part.sh.reshape(-1)
        if halves:
            padded = np.concatenate([colors, np.zeros(len(colors) % 2, dtype=np.float32)])
            colors = np.clip(padded, -65504, 65504).astype(np.float16).view(np.uint32)
        payload = None if part.payload is None else device.upload(part.payload)
        pages.append(Page(base, len(part), uniform, device.upload(_fixed(part)), device.upload(colors), payload))
    return GpuScene(gaussians, tuple(pages), _corners(gaussians.means), halves)


def with_payload(device: Device, scene: GpuScene, payload: Float32[Array, "n 10"] | None) -> GpuScene:
    """The same scene with another payload; everything else is shared."""

    def piece(page: Page) -> Buffer | None:
        return None if payload is None else device.upload(payload[page.base : page.base + page.count])

    pages = tuple(replace(page, payload=piece(page)) for page in scene.pages)
    return replace(scene, gaussians=replace(scene.gaussians, payload=payload), pages=pages)


def _parts(gaussians: Gaussians, most: int) -> Iterator[tuple[int, Gaussians]]:
    """Pieces of at most so many Gaussians and where each begins; an empty scene is one empty piece."""
    for base in range(0, max(len(gaussians), 1), most):
        yield base, gaussians.take(np.arange(base, min(base + most, len(gaussians))))


def _fixed(gaussians: Gaussians) -> Float32[Array, "n 10"]:
    """What does not depend on the camera: mean, axes of a surfel or covariance of an ellipsoid, 2 ln(opacity)."""
    axes = matrix_from_quaternion(gaussians.rotations)[..., : gaussians.scales.shape[1]] * gaussians.scales[:, None]
    if gaussians.is_surfels:
        shape = np.moveaxis(axes, -1, -2).reshape(-1, 6)
    else:
        covariance = axes @ np.moveaxis(axes, -1, -2)
        rows, columns = np.triu_indices(3)
        shape = covariance[:, rows, columns]
    with np.errstate(divide="ignore"):
        log_opacity = np.maximum(2 * np.log(gaussians.opacities), TRANSPARENT)
    return np.concatenate([gaussians.means, shape, log_opacity[:, None]], axis=1).astype(np.float32)


def _corners(means: Float32[Array, "n 3"]) -> Float32[Array, "8 3"]:
    if not len(means):
        return np.zeros((8, 3), dtype=np.float32)
    ends = np.stack([means.min(axis=0), means.max(axis=0)])
    picks = np.stack(np.meshgrid([0, 1], [0, 1], [0, 1], indexing="ij"), axis=-1).reshape(8, 3)
    return ends[picks, np.arange(3)]
