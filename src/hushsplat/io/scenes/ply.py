"""Splat scenes in PLY: ellipsoids as 3DGS trainers write them, surfels as 2DGS trainers do, our payload beside them.

Files hold log scales, opacities before the sigmoid, quaternions of any length and the coefficients above the constant
band channel by channel (all red ones first); `Gaussians` has them activated, normalised and coefficient by coefficient.
"""

from __future__ import annotations

import os
import re
import sys
from collections.abc import Iterator
from itertools import islice
from pathlib import Path

import numpy as np
from jaxtyping import Float32
from numpy import ndarray as Array

from hushsplat.io.atomic import atomic_write
from hushsplat.io.progress import progressed
from hushsplat.io.scenes.compressed_ply import is_compressed, read_compressed
from hushsplat.io.scenes.ply_header import MIP_COMMENT, PlyElement, PlyHeader, read_header
from hushsplat.io.scenes.sanitize import SMALLEST_SCALE, refuse_unwritable, sanitize_rows
from hushsplat.types.errors import SceneError
from hushsplat.types.gaussians import MAX_SH_DEGREE, PAYLOAD_FLOATS, Gaussians

BLOCK_BYTES = 1 << 20  # ours, benchmarks/load_ply.py: a block that stays in the cache from the file to its last check
SMALLEST_ODDS = 1e-12  # opacities are kept this far from 0 and 1 on writing: their logits stay finite, and 1 stays 1
PAYLOAD_NAMES = [f"hush_{i}" for i in range(PAYLOAD_FLOATS)]
F_REST_COUNTS = [3 * ((degree + 1) ** 2 - 1) for degree in range(MAX_SH_DEGREE + 1)]


def read_ply(path: str | os.PathLike[str]) -> Gaussians:
    """Read a splat PLY: 3DGS, 2DGS or SuperSplat's compressed one, binary or text; other properties are ignored."""
    header = read_header(path)
    if is_compressed(header):
        return read_compressed(header)
    vertex = header.find("vertex")
    if vertex is None:
        raise SceneError(f"{path}: element 'vertex' is missing; a splat scene has one vertex per Gaussian.")
    groups = _property_groups(header.path, vertex)
    blocks, column_of = _blocks(header, vertex, [name for names in groups.values() for name in names])
    columns = {field: np.array([column_of[name] for name in names]) for field, names in groups.items()}
    arrays = _allocate(vertex.count, groups)
    first = 0
    for block in blocks:
        stop = first + len(block)
        for field, chosen in columns.items():
            target = arrays[field][first:stop].reshape(len(block), len(chosen))
            # mode="clip": the columns are in range, and "raise" would go through a temporary copy
            np.take(block, chosen, axis=1, out=target, mode="clip")
        _activate(arrays["scales"][first:stop], arrays["opacities"][first:stop])
        sanitize_rows(path, arrays, first, stop)
        first = stop
        progressed(first / vertex.count)
    return Gaussians(**arrays, antialiased=header.antialiased and "scale_2" in groups["scales"])


def write_ply(gaussians: Gaussians, path: str | os.PathLike[str]) -> None:
    """Write the binary layout of the official trainers; two scales for surfels, the payload in extra properties."""
    refuse_unwritable(path, gaussians)
    names = ["x", "y", "z", "nx", "ny", "nz", "f_dc_0", "f_dc_1", "f_dc_2"]
    names += [f"f_rest_{i}" for i in range(F_REST_COUNTS[gaussians.sh_degree])]
    names += ["opacity", *(f"scale_{i}" for i in range(gaussians.scales.shape[1])), *(f"rot_{i}" for i in range(4))]
    names += PAYLOAD_NAMES if gaussians.payload is not None else []
    header = ["ply", "format binary_little_endian 1.0"]
    header += [f"comment {MIP_COMMENT}"] if gaussians.antialiased else []
    header += [f"element vertex {len(gaussians)}"]
    header += [*(f"property float {name}" for name in names), "end_header", ""]
    with atomic_write(path) as temporary, temporary.open("wb") as file:
        file.write("\n".join(header).encode("ascii"))
        rows_at_once = max(1, BLOCK_BYTES // (4 * len(names)))
        for first in range(0, len(gaussians), rows_at_once):
            file.write(_written_rows(gaussians, slice(first, first + rows_at_once)).astype("<f4", copy=False).data)


def _property_groups(path: str, vertex: PlyElement) -> dict[str, list[str]]:
    """Field of `Gaussians` to the properties that fill it, in its order; refuses vertices that are not Gaussians."""
    if not {"opacity", "scale_0", "rot_0", "f_dc_0"} & set(vertex.types):
        raise SceneError(
            f"{path}: this PLY is a point cloud or a mesh, not a splat scene: its vertices have "
            f"{', '.join(list(vertex.types)[:8]) or 'nothing'}, but no opacity, scale_*, rot_* and f_dc_*."
        )
    rest_count = 1 + max((int(name[7:]) for name in vertex.types if re.fullmatch(r"f_rest_\d{1,6}", name)), default=-1)
    if rest_count not in F_REST_COUNTS:
        raise SceneError(
            f"{path}: properties f_rest_0 to f_rest_{rest_count - 1} make no whole degree of spherical harmonics; "
            f"expected {', '.join(map(str, F_REST_COUNTS[:-1]))} or {F_REST_COUNTS[-1]} of them (degree 0 to 3)."
        )
    rest = rest_count // 3
    groups = {
        "means": ["x", "y", "z"],
        "scales": ["scale_0", "scale_1"] + (["scale_2"] if "scale_2" in vertex.types else []),
        "rotations": [f"rot_{i}" for i in range(4)],
        "opacities": ["opacity"],
        "sh": [f"f_dc_{c}" for c in range(3)] + [f"f_rest_{c * rest + k}" for k in range(rest) for c in range(3)],
    }
    if set(PAYLOAD_NAMES) & set(vertex.types):
        groups["payload"] = PAYLOAD_NAMES
    for field, names in groups.items():
        for name in names:
            if name not in vertex.types:
                raise SceneError(f"{path}: property '{name}' is missing; {_EXPECTED[field]}.")
    return groups


_EXPECTED = {
    "means": "a splat scene has x, y and z",
    "scales": "a 2DGS scene has scale_0 and scale_1, a 3DGS scene also scale_2",
    "rotations": "a splat scene has rot_0 to rot_3, a quaternion wxyz",
    "opacities": "a splat scene has opacity",
    "sh": "a splat scene has f_dc_0 to f_dc_2 and all f_rest_* of its degree",
    "payload": f"a scene with a denoiser payload has hush_0 to hush_{PAYLOAD_FLOATS - 1}",
}


def _allocate(count: int, groups: dict[str, list[str]]) -> dict[str, Float32[Array, "n ..."]]:
    """Arrays for the fields of `Gaussians`, not yet filled."""
    shapes: dict[str, tuple[int, ...]] = {field: (count, len(names)) for field, names in groups.items()}
    shapes |= {"opacities": (count,), "sh": (count, len(groups["sh"]) // 3, 3)}
    return {field: np.empty(shape, np.float32) for field, shape in shapes.items()}


def _blocks(
    header: PlyHeader, vertex: PlyElement, used: list[str]
) -> tuple[Iterator[Float32[Array, "rows columns"]], dict[str, int]]:
    """The vertices, a block of rows at a time, and which column of a block holds which property.

    A block is only valid until the next one: the memory is used again. The file is known to be long enough.
    """
    if header.byte_order is None:
        # a value takes a digit and a space at least: no count may ask for more memory than the file could fill
        smallest = 2 * vertex.count * len(vertex.types) - 1
        if header.length + smallest > header.file_size:
            raise SceneError(
                f"{header.path}: the header promises {vertex.count} vertices, which do not fit into the "
                f"{header.file_size} bytes of the file; it is cut short, copy or export it again."
            )
        return _text_blocks(header, vertex), {name: i for i, name in enumerate(vertex.types)}
    begin = header.begin(vertex)
    row = vertex.row(header.byte_order)
    native = header.byte_order == {"little": "<", "big": ">"}[sys.byteorder]
    if native and set(vertex.types.values()) == {"f4"}:  # what trainers write: the rows are a matrix already
        columns = {name: i for i, name in enumerate(vertex.types)}
        return (block.view(np.float32).reshape(len(block), -1) for block in _rows(header, begin, vertex, row)), columns
    columns = {name: i for i, name in enumerate(used)}
    return (_converted(block, used) for block in _rows(header, begin, vertex, row)), columns


def _rows(header: PlyHeader, begin: int, vertex: PlyElement, row: np.dtype) -> Iterator[Array]:
    """Binary rows as they are in the file, a block at a time in the same memory."""
    rows_at_once = max(1, BLOCK_BYTES // row.itemsize)
    memory = np.empty(min(rows_at_once, vertex.count), row)
    with Path(header.path).open("rb", buffering=0) as file:
        file.seek(begin)
        for first in range(0, vertex.count, rows_at_once):
            block = memory[: vertex.count - first]
            if file.readinto(block.view(np.uint8).data) != block.nbytes:
                raise SceneError(f"{header.path}: the file became shorter while it was read; try again.")
            yield block


def _converted(block: Array, used: list[str]) -> Float32[Array, "rows columns"]:
    """Rows of any types and byte order as a float32 matrix of the used properties."""
    matrix = np.empty((len(block), len(used)), np.float32)
    with np.errstate(over="ignore"):  # a double beyond float32 becomes infinite and is refused later, by name
        for column, name in enumerate(used):
            matrix[:, column] = block[name]
    return matrix


def _text_blocks(header: PlyHeader, vertex: PlyElement) -> Iterator[Float32[Array, "rows columns"]]:
    width = len(vertex.types)
    if vertex.lists:
        raise SceneError(f"{header.path}: property '{vertex.lists[0]}' of a vertex is a list; export the scene again.")
    rows_at_once = max(1, BLOCK_BYTES // (16 * width))
    before = sum(element.count for element in header.elements[: header.elements.index(vertex)])
    with Path(header.path).open("rb") as file:
        file.seek(header.length)
        for _ in islice(file, before):
            pass
        for first in range(0, vertex.count, rows_at_once):
            count = min(rows_at_once, vertex.count - first)
            values = [line.split() for line in islice(file, count)]
            if len(values) < count or any(len(row) != width for row in values):
                raise SceneError(
                    f"{header.path}: vertices {first} to {first + count - 1} are not {count} lines of {width} values; "
                    "the file is damaged or cut short, copy or export it again."
                )
            try:
                matrix = np.array([[float(value) for value in row] for row in values])
            except ValueError as error:
                raise SceneError(
                    f"{header.path}: vertices {first} to {first + count - 1} have a value that is not a number; "
                    "the file is damaged, export it again."
                ) from error
            with np.errstate(over="ignore"):
                yield matrix.astype(np.float32)


def _activate(scales: Float32[Array, "n s"], opacities: Float32[Array, " n"]) -> None:
    """Log scales to scales and logits to opacities, in place; infinities are checked afterwards, or mean 0 and 1."""
    with np.errstate(over="ignore", invalid="ignore"):
        np.exp(scales, out=scales)
        np.negative(opacities, out=opacities)
        np.exp(opacities, out=opacities)
        opacities += 1
        np.reciprocal(opacities, out=opacities)


def _written_rows(gaussians: Gaussians, rows: slice) -> Float32[Array, "n columns"]:
    means, sh = gaussians.means[rows], gaussians.sh[rows]
    opacities = gaussians.opacities[rows].astype(np.float64).clip(SMALLEST_ODDS, 1 - SMALLEST_ODDS)
    parts = [
        means,
        np.zeros_like(means),  # normals, which no viewer reads and every trainer writes
        sh[:, 0],
        sh[:, 1:].transpose(0, 2, 1).reshape(len(sh), -1),
        np.log(opacities / (1 - opacities))[:, None],
        np.log(gaussians.scales[rows].clip(SMALLEST_SCALE)),
        gaussians.rotations[rows],
    ]
    if gaussians.payload is not None:
        parts.append(gaussians.payload[rows])
    return np.concatenate(parts, axis=1, dtype=np.float32)
