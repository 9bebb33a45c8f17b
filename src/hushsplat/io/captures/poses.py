"""Poses and lenses in files of strangers: read with limits, each field checked, refused by file and field."""

from __future__ import annotations

import json
import math
from collections.abc import Mapping
from dataclasses import dataclass
from itertools import chain
from pathlib import Path
from typing import Any

import numpy as np
from jaxtyping import Float64
from numpy import ndarray as Array

from hushsplat.types.camera import Camera
from hushsplat.types.distortion import Distortion
from hushsplat.types.errors import CaptureError, HushsplatError
from hushsplat.types.rotations import nearest_rotation

ROTATION_TOLERANCE = 0.02  # matrices are sometimes written with few digits; what is further from a rotation is refused
MAX_JSON_BYTES = 200 * 2**20  # ours: six hundred thousand frames with all their digits, or five hours of video


def read_json_object(path: Path, error: type[HushsplatError]) -> dict[str, Any]:
    """The object in a JSON file, or the given kind of error."""
    try:
        size = path.stat().st_size
        if size > MAX_JSON_BYTES:
            raise error(f"{path}: {size} bytes are more than the {MAX_JSON_BYTES} that a file of poses may have.")
        content = json.loads(path.read_bytes())
    except OSError as problem:
        raise error(f"{path}: cannot be read: {problem.strerror or problem}.") from problem
    except (ValueError, RecursionError) as problem:  # ValueError: syntax, encoding or endless digits
        raise error(f"{path}: is not JSON: {problem}.") from problem
    if not isinstance(content, dict):
        raise error(f"{path}: holds {described(content)}, expected a JSON object.")
    return content


@dataclass(frozen=True)
class Fields:
    """A JSON object, what to call it in errors, and the kind of error."""

    where: str
    values: Mapping[str, Any]
    error: type[HushsplatError]

    def number(self, key: str, default: float | None = None) -> float:
        """The finite number at `key`."""
        value = self.values.get(key, default)
        if value is None:
            raise self.error(f"{self.where}: {key} is missing, expected a number.")
        if type(value) not in (int, float) or not _is_finite(value):
            raise self.error(f"{self.where}: {key} is {described(value)}, expected a finite number.")
        return float(value)

    def pixels(self, key: str) -> int:
        """The whole number of pixels at `key`; some programs write 1080.0."""
        value = self.number(key)
        if value != round(value) or value < 1:
            raise self.error(f"{self.where}: {key} is {described(value)}, expected a whole number of pixels.")
        return int(value)

    def text(self, key: str) -> str:
        """The text at `key`, not empty."""
        value = self.values.get(key)
        if not isinstance(value, str) or not value:
            raise self.error(f"{self.where}: {key} is {described(value)}, expected a text.")
        return value

    def objects(self, key: str) -> list[dict[str, Any]]:
        """The list of objects at `key`, at least one."""
        value = self.values.get(key)
        if not isinstance(value, list) or not value or not all(isinstance(item, dict) for item in value):
            raise self.error(f"{self.where}: {key} is {described(value)}, expected a list of objects.")
        return value

    def pose(self, key: str) -> Float64[Array, "4 4"]:
        """The 4×4 matrix at `key`, its last row 0 0 0 1 and allowed to be missing."""
        rows = self.values.get(key)
        if not isinstance(rows, list) or len(rows) not in (3, 4) or not all(map(_is_row, rows)):
            raise self.error(f"{self.where}: {key} is {described(rows)}, expected a 4×4 matrix as a list of rows.")
        cells = list(chain.from_iterable(rows))
        if not all(type(cell) in (int, float) and _is_finite(cell) for cell in cells):
            raise self.error(f"{self.where}: {key} has a value that is not a finite number.")
        matrix = np.eye(4)
        matrix[: len(rows)] = np.reshape(np.array(cells, dtype=np.float64), (len(rows), 4))
        if (matrix[3] != [0, 0, 0, 1]).any():
            raise self.error(f"{self.where}: the last row of {key} is not 0 0 0 1, so it is no pose.")
        return matrix


def rigid_pose(pose: Float64[Array, "4 4"], where: str) -> Float64[Array, "4 4"]:
    """The pose with its rotation made exact, if it is one but for rounding."""
    rotation = pose[:3, :3]
    if np.isfinite(pose).all() and np.abs(rotation).max() < 2:  # keeps wild numbers out of the decomposition
        exact = nearest_rotation(rotation)
        if np.abs(exact - rotation).max() < ROTATION_TOLERANCE:
            cleaned = pose.copy()
            cleaned[:3, :3] = exact
            return cleaned
    raise CaptureError(f"{where}: the pose is not a rotation and a position, but has scale, shear or mirroring.")


def usable_lens(lens: Distortion, camera: Camera, where: str) -> Distortion | None:
    """The lens if it bends anything, None for a pinhole; refused if its model breaks down within the picture."""
    if lens.is_none:
        return None
    if lens.folds_within(camera):
        raise CaptureError(
            f"{where}: the lens distortion folds the picture over, so its coefficients are wrong or meant for another "
            "size; calibrate again, or undistort the photographs first."
        )
    return lens


def _is_row(value: object) -> bool:
    return isinstance(value, list) and len(value) == 4


def _is_finite(value: int | float) -> bool:
    try:
        return math.isfinite(value)
    except OverflowError:  # an integer beyond all floats
        return False


def described(value: object) -> str:
    """A value in an error message: short, whatever it is."""
    if value is None:
        return "missing"
    if isinstance(value, list):
        return f"a list of {len(value)}"
    if isinstance(value, dict):
        return "an object"
    if isinstance(value, int) and value.bit_length() > 200:
        return "a huge integer"
    text = ascii(value)
    return text if len(text) <= 60 else text[:57] + "..."
