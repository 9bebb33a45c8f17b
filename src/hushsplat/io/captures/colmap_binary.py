"""COLMAP's .bin files: little endian, no padding; every count is checked against the bytes that are left."""

from __future__ import annotations

import struct
from pathlib import Path
from typing import Any

import numpy as np
from jaxtyping import Float64, UInt8
from numpy import ndarray as Array

from hushsplat.io.captures.colmap_records import MODELS, UNSUPPORTED, CameraRecord, ImageRecord
from hushsplat.types.errors import CaptureError

MAX_FILE_BYTES = 2**32  # ours: COLMAP's largest models are a few hundred megabytes a file

_CAMERA = struct.Struct("<IiQQ")  # camera_id, model_id, width, height; then the parameters as doubles
_IMAGE = struct.Struct("<I7dI")  # image_id, quaternion, translation, camera_id; then the name and its zero byte
_POINT = struct.Struct("<Q3d3BdQ")  # point_id, position, colour, error, track length; then the track
_COUNT = struct.Struct("<Q")
_OBSERVATION_BYTES = 24  # two doubles and a point's id
_TRACK_BYTES = 8  # an image's id and an index
_POSITION = slice(8, 32)  # within a point's record
_COLOR = slice(32, 35)

_MODEL_BY_ID = {model.model_id: (name, model.parameters) for name, model in MODELS.items()}
_MODEL_BY_ID |= {model_id: (name, parameters) for name, (model_id, parameters) in UNSUPPORTED.items()}


def read_cameras(path: Path) -> list[CameraRecord]:
    """The cameras of a cameras.bin."""
    cursor = _Cursor(path)
    records = []
    for index in range(cursor.count(f"{path}: the number of cameras", _CAMERA.size)):
        camera_id, model_id, width, height = cursor.take(_CAMERA)
        if model_id not in _MODEL_BY_ID:
            raise CaptureError(
                f"{path}: camera {index} has the unknown model {model_id}; the file is damaged or newer."
            )
        name, parameters = _MODEL_BY_ID[model_id]
        values = cursor.take(struct.Struct(f"<{parameters}d"))
        records.append(CameraRecord(camera_id, name, width, height, values))
    return records


def read_images(path: Path) -> list[ImageRecord]:
    """The images of an images.bin, without their observations of points."""
    cursor = _Cursor(path)
    records = []
    for _ in range(cursor.count(f"{path}: the number of images", _IMAGE.size + 1 + _COUNT.size)):
        image_id, *pose, camera_id = cursor.take(_IMAGE)
        name = cursor.take_name()
        cursor.skip(
            cursor.count(f"{path}: the observations of image {image_id}", _OBSERVATION_BYTES), _OBSERVATION_BYTES
        )
        records.append(ImageRecord(image_id, tuple(pose[:4]), tuple(pose[4:]), camera_id, name))
    return records


def read_points(path: Path) -> tuple[Float64[Array, "m 3"], UInt8[Array, "m 3"]]:
    """Positions and colours of a points3D.bin."""
    cursor = _Cursor(path)
    starts = np.empty(cursor.count(f"{path}: the number of points", _POINT.size), dtype=np.int64)
    for index in range(len(starts)):
        starts[index] = cursor.offset
        cursor.skip(1, _POINT.size - _COUNT.size)
        cursor.skip(cursor.count(f"{path}: the track of point {index}", _TRACK_BYTES), _TRACK_BYTES)
    content = np.frombuffer(cursor.content, dtype=np.uint8)
    positions = content[starts[:, None] + np.arange(_POSITION.start, _POSITION.stop)]
    colors = content[starts[:, None] + np.arange(_COLOR.start, _COLOR.stop)]
    return positions.view("<f8").astype(np.float64, copy=False), colors


class _Cursor:
    """A read position in a file's bytes, checked against their end."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self.offset = 0
        try:
            if path.stat().st_size > MAX_FILE_BYTES:
                raise CaptureError(f"{path}: is larger than {MAX_FILE_BYTES} bytes, too large for a sparse model.")
            self.content = path.read_bytes()
        except OSError as error:
            raise CaptureError(f"{path}: cannot be read: {error.strerror or error}.") from error

    def take(self, record: struct.Struct) -> tuple[Any, ...]:
        """The next record."""
        start = self.offset
        self.skip(1, record.size)
        return record.unpack_from(self.content, start)

    def count(self, what: str, record_bytes: int) -> int:
        """The next count, refused if the bytes left cannot hold that many records of this size."""
        (count,) = self.take(_COUNT)
        if count * record_bytes > len(self.content) - self.offset:
            raise CaptureError(f"{what} is {count}, more than fit into the {len(self.content)} bytes of the file.")
        return int(count)

    def skip(self, count: int, record_bytes: int) -> None:
        """Move past records."""
        self.offset += count * record_bytes
        if self.offset > len(self.content):
            raise CaptureError(f"{self.path}: ends after {len(self.content)} bytes within a record; it was cut off.")

    def take_name(self) -> str:
        """The next text, up to its zero byte."""
        end = self.content.find(b"\0", self.offset)
        if end < 0:
            raise CaptureError(f"{self.path}: an image's name has no end; the file was cut off.")
        try:
            name = self.content[self.offset : end].decode()
        except UnicodeDecodeError as error:
            raise CaptureError(f"{self.path}: an image's name is not UTF-8; the file is damaged.") from error
        self.offset = end + 1
        return name
