"""Writing PlayCanvas' SOG (version 2) as one bundle."""

from __future__ import annotations

import json
import os
import zipfile
from io import BytesIO
from typing import Any

import numpy as np
from jaxtyping import Float32, Float64, Int, UInt8
from numpy import ndarray as Array
from PIL import Image

from hushsplat.io.atomic import atomic_write
from hushsplat.io.scenes.codebooks import fit_codebook, fit_palette, nearest_entries
from hushsplat.io.scenes.sanitize import SMALLEST_SCALE, refuse_unwritable, three_scales
from hushsplat.io.scenes.sog import FIRST_MODE, MAX_COUNT, MAX_LOG, META, PALETTE_MAX, PALETTE_ROW
from hushsplat.types.errors import SceneError
from hushsplat.types.gaussians import Gaussians
from hushsplat.types.morton import morton_codes


def write_sog(gaussians: Gaussians, path: str | os.PathLike[str]) -> None:
    """Write a `.sog` bundle, in Morton order and without a denoiser payload.

    Positions have 16 bits per axis on a logarithmic scale, rotations 8 bits for each of three components, opacities
    1/255; scales and the constant SH band share a codebook of 256 values each, and the other bands a palette of
    65,536 entries. Surfels get a tiny third scale and the tag "2dgs": `read_sog` and splat-transform make surfels of
    them again, other readers thin ellipsoids.
    """
    refuse_unwritable(path, gaussians)
    if len(gaussians) > MAX_COUNT:
        raise SceneError(f"{path}: a SOG bundle of {len(gaussians)} Gaussians is too large; write a PLY.")
    if len(gaussians) and np.log1p(np.abs(gaussians.means).max()) > MAX_LOG:
        raise SceneError(f"{path}: a position of {np.abs(gaussians.means).max():g} is too far away for a SOG.")
    content = packed_sog(gaussians.take(morton_order(gaussians.means)))
    with atomic_write(path) as temporary, zipfile.ZipFile(temporary, "w") as archive:
        for name, file in content.items():
            archive.writestr(zipfile.ZipInfo(name), file)  # a fixed date: the same scene makes the same file


def packed_sog(ordered: Gaussians) -> dict[str, bytes]:
    """The files of a SOG by name, with the Gaussians in the order that they are given in."""
    meta: dict[str, Any] = {"version": 2, "asset": {"generator": "hushsplat"}, "count": len(ordered)}
    if ordered.is_surfels or ordered.antialiased:
        meta["model"] = "2dgs" if ordered.is_surfels else "antialiased"
    pictures: dict[str, bytes] = {}
    _add_means(meta, pictures, ordered)
    _add_scales(meta, pictures, ordered)
    _add_rotations(meta, pictures, ordered)
    _add_colors(meta, pictures, ordered)
    if ordered.sh_degree:
        _add_higher_bands(meta, pictures, ordered)
    return {META: json.dumps(meta).encode(), **pictures}


def morton_order(means: Float32[Array, "n 3"]) -> Int[Array, " n"]:
    """The order along a Morton curve with 1024 steps per axis: neighbours in space become neighbours in pictures."""
    if not len(means):
        return np.arange(0)
    corner, extent = means.min(axis=0), np.ptp(means, axis=0)
    steps = ((means - corner) / np.where(extent > 0, extent, 1) * 1023).astype(np.uint32)
    return np.argsort(morton_codes(steps), kind="stable")


def _add_means(meta: dict[str, Any], pictures: dict[str, bytes], gaussians: Gaussians) -> None:
    exact: Float64[Array, "n 3"] = gaussians.means.astype(np.float64)
    logarithms = np.sign(exact) * np.log1p(np.abs(exact))
    low, high = (np.zeros(3), np.zeros(3)) if not len(exact) else (logarithms.min(axis=0), logarithms.max(axis=0))
    steps = np.rint((logarithms - low) / np.where(high > low, high - low, 1) * 65535).astype(np.uint16)
    names = ["means_l.webp", "means_u.webp"]
    meta["means"] = {"mins": low.tolist(), "maxs": high.tolist(), "files": names}
    pictures[names[0]] = _webp((steps & 255).astype(np.uint8))
    pictures[names[1]] = _webp((steps >> 8).astype(np.uint8))


def _add_scales(meta: dict[str, Any], pictures: dict[str, bytes], gaussians: Gaussians) -> None:
    logarithms = np.log(np.maximum(three_scales(gaussians), SMALLEST_SCALE))
    codebook = fit_codebook(logarithms)
    meta["scales"] = {"codebook": codebook.tolist(), "files": ["scales.webp"]}
    pictures["scales.webp"] = _webp(nearest_entries(logarithms, codebook))


def _add_rotations(meta: dict[str, Any], pictures: dict[str, bytes], gaussians: Gaussians) -> None:
    rotations = gaussians.rotations
    largest = np.abs(rotations).argmax(axis=1)
    signs = np.where(rotations[np.arange(len(rotations)), largest] < 0, -1, 1)  # -q is the same rotation
    stored = rotations[np.arange(4) != largest[:, None]].reshape(-1, 3) * signs[:, None]
    rgb = np.clip(np.rint((stored * np.sqrt(2) + 1) * 127.5), 0, 255)
    meta["quats"] = {"files": ["quats.webp"]}
    pictures["quats.webp"] = _webp(np.column_stack([rgb, FIRST_MODE + largest]).astype(np.uint8))


def _add_colors(meta: dict[str, Any], pictures: dict[str, bytes], gaussians: Gaussians) -> None:
    constant = gaussians.sh[:, 0]
    codebook = fit_codebook(constant)
    opacity = np.clip(np.rint(gaussians.opacities * 255), 0, 255).astype(np.uint8)
    meta["sh0"] = {"codebook": codebook.tolist(), "files": ["sh0.webp"]}
    pictures["sh0.webp"] = _webp(np.column_stack([nearest_entries(constant, codebook), opacity]))


def _add_higher_bands(meta: dict[str, Any], pictures: dict[str, bytes], gaussians: Gaussians) -> None:
    coefficients = gaussians.sh.shape[1] - 1
    vectors = np.ascontiguousarray(gaussians.sh[:, 1:]).reshape(len(gaussians), 3 * coefficients)
    palette, labels = fit_palette(vectors, PALETTE_MAX)
    if not len(palette):
        palette = np.zeros((1, 3 * coefficients), np.float32)
    codebook = fit_codebook(palette)
    names = ["shN_centroids.webp", "shN_labels.webp"]
    meta["shN"] = {
        "count": len(palette),
        "bands": gaussians.sh_degree,
        "codebook": codebook.tolist(),
        "files": names,
    }
    entries = nearest_entries(palette, codebook).reshape(-1, 3)
    rows = -(-len(palette) // PALETTE_ROW)
    pictures[names[0]] = _webp(entries, width=PALETTE_ROW * coefficients, height=rows)
    pictures[names[1]] = _webp(np.column_stack([labels & 255, labels >> 8, np.zeros_like(labels)]).astype(np.uint8))


def _webp(pixels: UInt8[Array, "n c"], width: int | None = None, height: int | None = None) -> bytes:
    """A lossless picture of RGB or RGBA pixels, nearly square unless its size is given; what is left over is 0."""
    if width is None or height is None:
        width = max(4, -(-int(np.ceil(np.sqrt(len(pixels)))) // 4) * 4)  # multiples of 4, as other writers do
        height = max(4, -(-len(pixels) // width))
    channels = pixels.shape[1]
    picture = np.zeros((height * width, channels), np.uint8)
    picture[: len(pixels)] = pixels
    content = BytesIO()
    image = Image.fromarray(picture.reshape(height, width, channels))  # RGB or RGBA by its channels
    # exact: keep the colours where alpha is 0, they are numbers. Quality is the effort here.
    image.save(content, "WEBP", lossless=True, exact=True, quality=60, method=4)
    return content.getvalue()
