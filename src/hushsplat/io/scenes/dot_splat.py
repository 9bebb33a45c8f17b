"""The `.splat` format of antimatter15: 32 bytes per Gaussian, no header, colours without spherical harmonics."""

from __future__ import annotations

import os
from pathlib import Path

import numpy as np

from hushsplat.io.atomic import atomic_write
from hushsplat.io.progress import progressed
from hushsplat.io.scenes.sanitize import checked, refuse_unwritable, three_scales
from hushsplat.types.errors import SceneError
from hushsplat.types.gaussians import Gaussians
from hushsplat.types.harmonics import SH_C0

ROW = np.dtype(
    [
        ("position", "<f4", 3),
        ("scale", "<f4", 3),  # linear
        ("color", "u1", 4),  # red, green, blue, opacity: 0..255 for 0..1
        ("rotation", "u1", 4),  # wxyz: 0..255 for -1..127/128
    ]
)


def read_splat(path: str | os.PathLike[str]) -> Gaussians:
    """Read a `.splat` file; spherical harmonics are of degree 0."""
    size = Path(path).stat().st_size
    if size == 0 or size % ROW.itemsize:
        raise SceneError(
            f"{path}: a .splat file has {ROW.itemsize} bytes per Gaussian, but this one has {size} bytes; "
            "it is cut short or of another format."
        )
    rows = np.fromfile(path, ROW)
    progressed(0.3)
    color = rows["color"].astype(np.float32) / 255
    progressed(0.6)
    return checked(
        path,
        means=rows["position"].astype(np.float32),
        scales=rows["scale"].astype(np.float32),
        rotations=(rows["rotation"].astype(np.float32) - 128) / 128,
        opacities=color[:, 3],
        sh=((color[:, :3] - np.float32(0.5)) / np.float32(SH_C0))[:, None],
    )


def write_splat(gaussians: Gaussians, path: str | os.PathLike[str]) -> None:
    """Write a `.splat` file: only the constant band of the colour is kept, and surfels become very thin ellipsoids."""
    if not len(gaussians):
        raise SceneError(f"{path}: an empty scene would be an empty file, which no reader takes; write a .ply.")
    refuse_unwritable(path, gaussians)
    rows = np.empty(len(gaussians), ROW)
    rows["position"] = gaussians.means
    rows["scale"] = three_scales(gaussians)
    color = np.column_stack([0.5 + SH_C0 * gaussians.sh[:, 0], gaussians.opacities])
    rows["color"] = np.rint(color * 255).clip(0, 255)
    rows["rotation"] = np.rint(gaussians.rotations * 128 + 128).clip(0, 255)
    with atomic_write(path) as temporary:
        rows.tofile(temporary)
