"""poses_bounds.npy of LLFF: a row of 17 numbers for each photograph, in the order of their names."""

from __future__ import annotations

import io
import warnings
from pathlib import Path
from tokenize import TokenError

import numpy as np
from jaxtyping import Float64
from numpy import ndarray as Array

from hushsplat.io.captures.photographs import SUFFIXES
from hushsplat.io.captures.poses import rigid_pose
from hushsplat.types.camera import Camera
from hushsplat.types.capture import View
from hushsplat.types.errors import CameraError, CaptureError

COLUMNS = 17  # a 3×5 matrix (rotation, position, height-width-focal) row by row, then the nearest and farthest depth
# What numpy lets through when a header is not the Python literal that it should be.
_BAD_HEADER = (ValueError, TypeError, SyntaxError, TokenError, MemoryError, RecursionError, OverflowError)
MAX_FILE_BYTES = 2**28  # a million photographs are half of it


def read_llff(path: Path, *, images: Path, required: bool = True) -> list[View]:
    """The views of a poses_bounds.npy; `images` is the folder of the photographs, which alone knows their names.

    If they are not required and there is no such folder, views are named by their rows.
    """
    rows = _read_rows(path)
    if not required and not images.is_dir():
        return [_view(f"{path}: row {index}", row, images / f"{index:06d}") for index, row in enumerate(rows)]
    photographs = list_photographs(images)
    if len(photographs) != len(rows):
        raise CaptureError(f"{path}: has {len(rows)} poses, but {images} has {len(photographs)} photographs.")
    return [_view(f"{path}: row {index}", row, photographs[index]) for index, row in enumerate(rows)]


def list_photographs(folder: Path) -> list[Path]:
    """The photographs in a folder, in the order of their names."""
    try:
        return sorted(path for path in folder.iterdir() if path.suffix.lower() in SUFFIXES)
    except OSError as error:
        raise CaptureError(f"{folder}: cannot be listed: {error.strerror or error}.") from error


def _view(where: str, row: Float64[Array, " 17"], photograph: Path) -> View:
    # LLFF's camera axes are down, right and back.
    down, right, back, position, (height, width, focal) = row[:15].reshape(3, 5).T
    pose = np.eye(4)
    pose[:3] = np.stack([right, down, -back, position], axis=1)
    if height != round(height) or width != round(width) or not (1 <= height <= 1e6 and 1 <= width <= 1e6):
        raise CaptureError(f"{where}: the picture size is {width:g}×{height:g}, expected whole numbers of pixels.")
    try:
        camera = Camera(
            int(width), int(height), float(focal), float(focal), width / 2, height / 2, rigid_pose(pose, where)
        )
    except CameraError as error:
        raise CaptureError(f"{where}: {error}") from error
    return View(photograph.name, photograph, camera)


def _read_rows(path: Path) -> Float64[Array, "n 17"]:
    """The table, its size checked against the file's before anything is allocated; nothing is unpickled."""
    try:
        if path.stat().st_size > MAX_FILE_BYTES:
            raise CaptureError(f"{path}: is larger than {MAX_FILE_BYTES} bytes, too large for poses of photographs.")
        content = path.read_bytes()
    except OSError as error:
        raise CaptureError(f"{path}: cannot be read: {error.strerror or error}.") from error
    stream = io.BytesIO(content)
    try:
        version = np.lib.format.read_magic(stream)
        read_header = np.lib.format.read_array_header_1_0 if version == (1, 0) else np.lib.format.read_array_header_2_0
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # of headers that Python 2 wrote; they are read all the same
            shape, fortran_order, dtype = read_header(stream)
    except _BAD_HEADER as error:
        raise CaptureError(f"{path}: is not a .npy file of numbers: {' '.join(str(error).split())}.") from error
    if len(shape) != 2 or shape[1] != COLUMNS or shape[0] < 1 or dtype.kind != "f":
        raise CaptureError(
            f"{path}: holds {dtype} of shape {shape}, expected floats of shape (photographs, {COLUMNS})."
        )
    payload = content[stream.tell() :]
    if len(payload) != shape[0] * COLUMNS * dtype.itemsize:
        raise CaptureError(f"{path}: {shape[0]} rows do not fit its {len(content)} bytes; the file is damaged.")
    table = np.frombuffer(payload, dtype=dtype).reshape(shape, order="F" if fortran_order else "C").astype(np.float64)
    if not np.isfinite(table[:, :15]).all():
        raise CaptureError(f"{path}: row {np.argmin(np.isfinite(table[:, :15]).all(axis=1))} has a value not finite.")
    return table
