"""SuperSplat's compressed PLY: 16 bytes per Gaussian, quantised inside the bounds of its chunk of 256.

Bit layout, from the high bit down: position and scale 11-10-11 (x, y, z), rotation 2-10-10-10 (which component is
left out, then the other three in the order wxyz), colour 8-8-8-8 (red, green, blue, opacity).
"""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import numpy as np
from jaxtyping import Float32, UInt32
from numpy import ndarray as Array

from hushsplat.io.progress import progressed
from hushsplat.io.scenes.ply_header import PlyElement, PlyHeader
from hushsplat.io.scenes.sanitize import checked
from hushsplat.types.errors import SceneError
from hushsplat.types.gaussians import Gaussians
from hushsplat.types.harmonics import SH_C0

CHUNK = 256  # Gaussians that share bounds
SH_RANGE = 4.0  # coefficients above the constant band are stored as 0..255 for -4..4
PACKED = ("packed_position", "packed_rotation", "packed_scale", "packed_color")


def is_compressed(header: PlyHeader) -> bool:
    """True for a file that says it is compressed, well or badly formed."""
    vertex = header.find("vertex")
    return vertex is not None and any(name in vertex.types for name in PACKED)


def read_compressed(header: PlyHeader) -> Gaussians:
    """Read a compressed PLY whose header has been read."""
    vertex = _element(header, "vertex", {name: "u4" for name in PACKED})
    bounds = {f"{end}_{what}": "f4" for what in ("x", "y", "z") for end in ("min", "max")}
    bounds |= {f"{end}_scale_{axis}": "f4" for axis in "xyz" for end in ("min", "max")}
    chunk = _element(header, "chunk", bounds)
    if chunk.count != -(-vertex.count // CHUNK):
        raise SceneError(
            f"{header.path}: element 'chunk' has {chunk.count} rows, expected {-(-vertex.count // CHUNK)} for "
            f"{vertex.count} vertices in chunks of {CHUNK}; the file is damaged, export it again."
        )
    has_colors = "min_r" in chunk.types  # older files have no bounds of colours: theirs are 0..1
    if has_colors:
        _element(header, "chunk", {f"{end}_{channel}": "f4" for channel in "rgb" for end in ("min", "max")})
    rest = _read_rest(header, vertex.count)

    progressed(0.3)
    packed, chunks = _read_rows(header, vertex), _read_rows(header, chunk)
    progressed(0.5)
    color = np.stack([packed["packed_color"] >> shift & 255 for shift in (24, 16, 8, 0)], axis=1)
    rgb, opacities = np.split(color.astype(np.float32) / 255, [3], axis=1)
    with np.errstate(over="ignore", invalid="ignore"):  # bounds that overflow become infinite and are refused by name
        means = _within(chunks, ("x", "y", "z"), _unpack_11_10_11(packed["packed_position"]))
        scales = np.exp(_within(chunks, ("scale_x", "scale_y", "scale_z"), _unpack_11_10_11(packed["packed_scale"])))
        if has_colors:
            rgb = _within(chunks, ("r", "g", "b"), rgb)
        constant = (rgb - np.float32(0.5)) / np.float32(SH_C0)
    sh = np.concatenate([constant[:, None], rest], axis=1)
    progressed(0.8)
    rotations = _unpack_rotation(packed["packed_rotation"])
    scene = checked(header.path, means, scales, rotations, opacities[:, 0], sh)
    return replace(scene, antialiased=header.antialiased)


def _element(header: PlyHeader, name: str, types: dict[str, str]) -> PlyElement:
    """The element of this name, with all these properties of these types."""
    element = header.find(name)
    if element is None:
        raise SceneError(f"{header.path}: element '{name}' is missing; a compressed PLY has elements chunk and vertex.")
    words = {"f4": "float", "u4": "uint", "u1": "uchar"}
    for prop, code in types.items():
        if prop not in element.types:
            raise SceneError(f"{header.path}: property '{prop}' of element '{name}' is missing in this compressed PLY.")
        if element.types[prop] != code:
            raise SceneError(f"{header.path}: property '{prop}' of element '{name}' must be of type {words[code]}.")
    return element


def _read_rows(header: PlyHeader, element: PlyElement) -> Array:
    begin = header.begin(element)  # refuses text and files that are too short
    row = element.row(header.byte_order or "<")
    with Path(header.path).open("rb") as file:
        file.seek(begin)
        content = file.read(element.count * row.itemsize)
    if len(content) != element.count * row.itemsize:
        raise SceneError(f"{header.path}: the file became shorter while it was read; try again.")
    return np.frombuffer(content, row)


def _read_rest(header: PlyHeader, count: int) -> Float32[Array, "n k 3"]:
    """The coefficients above the constant band, none if the file has no element 'sh'."""
    element = header.find("sh")
    if element is None:
        return np.zeros((count, 0, 3), np.float32)
    width = len(element.types)
    if width not in (9, 24, 45):
        raise SceneError(f"{header.path}: element 'sh' has {width} properties, expected 9, 24 or 45 (degree 1 to 3).")
    names = [f"f_rest_{i}" for i in range(width)]
    _element(header, "sh", {name: "u1" for name in names})
    if element.count != count:
        raise SceneError(f"{header.path}: element 'sh' has {element.count} rows, expected {count}, one per vertex.")
    rows = _read_rows(header, element)
    levels = (np.arange(256, dtype=np.float32) + 0.5) / 256  # the middle of each step
    levels[[0, 255]] = 0, 1  # the first and last level are exact
    values = ((levels - 0.5) * 2 * SH_RANGE).astype(np.float32)
    rest = np.empty((count, width // 3, 3), np.float32)
    for i, name in enumerate(names):  # channel by channel in the file
        rest[:, i % (width // 3), i // (width // 3)] = values[rows[name]]
    return rest


def _within(chunks: Array, what: tuple[str, str, str], t: Float32[Array, "n 3"]) -> Float32[Array, "n 3"]:
    """0..1 to the bounds of each Gaussian's chunk."""
    low = np.stack([chunks[f"min_{name}"] for name in what], axis=1).astype(np.float32)
    high = np.stack([chunks[f"max_{name}"] for name in what], axis=1).astype(np.float32)
    low, high = (np.repeat(bound, CHUNK, axis=0)[: len(t)] for bound in (low, high))
    return low * (1 - t) + high * t


def _unpack_11_10_11(bits: UInt32[Array, " n"]) -> Float32[Array, "n 3"]:
    fields = np.stack([bits >> 21, bits >> 11 & 1023, bits & 2047], axis=1)
    return fields.astype(np.float32) / np.array([2047, 1023, 2047], np.float32)


def _unpack_rotation(bits: UInt32[Array, " n"]) -> Float32[Array, "n 4"]:
    """Three components in ±1/√2; the largest was left out, is positive and follows from unit length."""
    fields = np.stack([bits >> 20 & 1023, bits >> 10 & 1023, bits & 1023], axis=1)
    three = (fields.astype(np.float32) / 1023 - np.float32(0.5)) * np.float32(np.sqrt(2))
    largest = np.sqrt(np.maximum(0, 1 - np.einsum("ij,ij->i", three, three)))
    order = np.array([[3, 0, 1, 2], [0, 3, 1, 2], [0, 1, 3, 2], [0, 1, 2, 3]])[bits >> 30]
    return np.take_along_axis(np.column_stack([three, largest]), order, axis=1)
