"""COLMAP's .txt files: one record a line (two for an image), # begins a comment."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import numpy as np
from jaxtyping import Float64, UInt8
from numpy import ndarray as Array

from hushsplat.io.captures.colmap_records import CameraRecord, ImageRecord
from hushsplat.types.errors import CaptureError

MAX_FILE_BYTES = 2**31  # as text, twice as large as in binary


def read_cameras(path: Path) -> list[CameraRecord]:
    """The cameras of a cameras.txt: CAMERA_ID MODEL WIDTH HEIGHT PARAMS..."""
    records = []
    for number, line in _records(_lines(path)):
        words = line.split()
        try:
            camera_id, model, width, height = int(words[0]), words[1], int(words[2]), int(words[3])
            records.append(CameraRecord(camera_id, model, width, height, tuple(float(word) for word in words[4:])))
        except (ValueError, IndexError) as error:
            raise _unreadable(path, number, "CAMERA_ID MODEL WIDTH HEIGHT PARAMS...") from error
    return records


def read_images(path: Path) -> list[ImageRecord]:
    """The images of an images.txt: IMAGE_ID QW QX QY QZ TX TY TZ CAMERA_ID NAME, then a line of observations."""
    records = []
    lines = _lines(path)
    for number, line in _records(lines):
        words = line.split(maxsplit=9)  # a name may have spaces
        try:
            pose = tuple(float(word) for word in words[1:8])
            records.append(ImageRecord(int(words[0]), pose[:4], pose[4:], int(words[8]), words[9].rstrip()))
        except (ValueError, IndexError) as error:
            raise _unreadable(path, number, "IMAGE_ID QW QX QY QZ TX TY TZ CAMERA_ID NAME") from error
        next(lines, None)  # the observations; an image that sees no points has an empty line here
    return records


def read_points(path: Path) -> tuple[Float64[Array, "m 3"], UInt8[Array, "m 3"]]:
    """Positions and colours of a points3D.txt: POINT3D_ID X Y Z R G B ERROR TRACK..."""
    positions, colors = [], []
    for number, line in _records(_lines(path)):
        words = line.split(maxsplit=7)
        try:
            position, color = [float(word) for word in words[1:4]], [int(word) for word in words[4:7]]
        except ValueError as error:
            raise _unreadable(path, number, "POINT3D_ID X Y Z R G B ERROR TRACK...") from error
        if len(color) != 3 or not all(0 <= channel <= 255 for channel in color):
            raise _unreadable(path, number, "POINT3D_ID X Y Z R G B ERROR TRACK... with R, G, B from 0 to 255")
        positions.append(position)
        colors.append(color)
    return np.array(positions, dtype=np.float64).reshape(-1, 3), np.array(colors, dtype=np.uint8).reshape(-1, 3)


def _lines(path: Path) -> Iterator[tuple[int, str]]:
    """The lines of a file with their numbers, from 1."""
    try:
        if path.stat().st_size > MAX_FILE_BYTES:
            raise CaptureError(f"{path}: is larger than {MAX_FILE_BYTES} bytes, too large for a sparse model.")
        text = path.read_bytes().decode()
    except OSError as error:
        raise CaptureError(f"{path}: cannot be read: {error.strerror or error}.") from error
    except UnicodeDecodeError as error:
        raise CaptureError(f"{path}: is not text in UTF-8; the file is damaged.") from error
    return iter(list(enumerate(text.split("\n"), start=1)))  # not splitlines: a name may hold any other separator


def _records(lines: Iterator[tuple[int, str]]) -> Iterator[tuple[int, str]]:
    """The lines that are records."""
    return ((number, line) for number, line in lines if line.strip() and not line.lstrip().startswith("#"))


def _unreadable(path: Path, number: int, expected: str) -> CaptureError:
    return CaptureError(f"{path}: line {number} is not {expected}.")
