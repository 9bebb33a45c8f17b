"""JSON from untrusted files and pages: each value is read by key and type, and refused by file and field."""

from __future__ import annotations

import json
import math
from collections.abc import Mapping
from dataclasses import dataclass, replace
from itertools import chain
from pathlib import Path
from typing import Any

import numpy as np
from jaxtyping import Float64
from numpy import ndarray as Array

from hushsplat.types.errors import HushsplatError

MAX_JSON_BYTES = 200 * 2**20  # ours: six hundred thousand poses with all their digits, or five hours of video


def read_json_object(path: Path, error: type[HushsplatError], list_key: str | None = None) -> dict[str, Any]:
    """The object in a JSON file of at most MAX_JSON_BYTES, or the given error; a list becomes its `list_key`."""
    try:
        size = path.stat().st_size
        if size > MAX_JSON_BYTES:
            raise error(f"{path}: has {size} bytes, at most {MAX_JSON_BYTES} are read.")
        content = path.read_bytes()
    except OSError as problem:
        raise error(f"{path}: cannot be read: {problem.strerror or problem}.") from problem
    return parse_json_object(str(path), content, error, list_key)


def parse_json_object(
    where: str, text: bytes, error: type[HushsplatError], list_key: str | None = None
) -> dict[str, Any]:
    """The object that JSON text holds; `where` names it in errors."""
    try:
        content = json.loads(text)
    except (ValueError, RecursionError) as problem:  # ValueError: syntax, encoding or too many digits
        raise error(f"{where}: is not JSON: {problem}.") from problem
    if isinstance(content, list) and list_key is not None:
        return {list_key: content}
    if not isinstance(content, dict):
        raise error(f"{where}: holds {described(content)}, expected a JSON object.")
    return content


@dataclass(frozen=True)
class Fields:
    """The fields of a JSON object.

    Attributes:
        where: names the object in errors: the file, and the place in it.
        values: the object.
        error: the exception that is raised for a bad field.
    """

    where: str
    values: Mapping[str, Any]
    error: type[HushsplatError]

    def number(self, key: str, default: float | None = None) -> float:
        """The finite number at `key`."""
        value = self.values.get(key, default)
        if value is None:
            raise self.refusal(key, value, "a number")
        if not _is_finite_number(value):
            raise self.refusal(key, value, "a finite number")
        return float(value)

    def integer(self, key: str, first: int, last: int) -> int:
        """The integer at `key`, from `first` to `last`."""
        value = self.values.get(key)
        if type(value) is not int or not first <= value <= last:
            raise self.refusal(key, value, f"an integer from {first} to {last}")
        return value

    def pixels(self, key: str) -> int:
        """The whole number of pixels at `key`; some programs write 1080.0."""
        value = self.number(key)
        if value != round(value) or value < 1:
            raise self.refusal(key, value, "a whole number of pixels")
        return int(value)

    def text(self, key: str) -> str:
        """The text at `key`, not empty."""
        value = self.values.get(key)
        if not isinstance(value, str) or not value:
            raise self.refusal(key, value, "a text")
        return value

    def numbers(self, key: str, count: int, limit: float) -> list[float]:
        """The list of `count` numbers at `key`, each within ±limit."""
        value = self.values.get(key)
        if not isinstance(value, list) or len(value) != count:
            raise self.refusal(key, value, f"a list of {count} numbers")
        for item in value:
            if not _is_finite_number(item) or abs(item) > limit:
                raise self.refusal(key, item, f"only numbers within ±{limit:g}")
        return [float(item) for item in value]

    def names(self, key: str, count: int | None = None) -> list[str]:
        """The list of texts at `key`: `count` of them, or any number."""
        value = self.values.get(key)
        if not isinstance(value, list) or (count is not None and len(value) != count):
            raise self.refusal(key, value, "a list of names" if count is None else f"a list of {count} names")
        for item in value:
            if not isinstance(item, str):
                raise self.refusal(key, item, "only names")
        return value

    def nested(self, key: str) -> Fields:
        """The object at `key`."""
        value = self.values.get(key)
        if not isinstance(value, dict):
            raise self.refusal(key, value, "an object")
        return replace(self, where=f"{self.where}: {key}", values=value)

    def objects(self, key: str) -> list[dict[str, Any]]:
        """The list of objects at `key`, at least one."""
        value = self.values.get(key)
        if not isinstance(value, list) or not value or not all(isinstance(item, dict) for item in value):
            raise self.refusal(key, value, "a list of objects")
        return value

    def pose(self, key: str) -> Float64[Array, "4 4"]:
        """The 4×4 matrix at `key`; its last row is 0 0 0 1 and may be missing."""
        rows = self.values.get(key)
        if not isinstance(rows, list) or len(rows) not in (3, 4) or not all(map(_is_row, rows)):
            raise self.refusal(key, rows, "a 4×4 matrix as a list of rows")
        cells = list(chain.from_iterable(rows))
        if not all(map(_is_finite_number, cells)):
            raise self.error(f"{self.where}: {key} has a value that is not a finite number.")
        matrix = np.eye(4)
        matrix[: len(rows)] = np.reshape(np.array(cells, dtype=np.float64), (len(rows), 4))
        if (matrix[3] != [0, 0, 0, 1]).any():
            raise self.error(f"{self.where}: the last row of {key} is not 0 0 0 1, so it is no pose.")
        return matrix

    def refusal(self, key: str, value: object, expected: str) -> HushsplatError:
        """The error for a field that is not what it should be."""
        in_list = value is None and self.values.get(key) is not None
        return self.error(f"{self.where}: {key} is {'null' if in_list else described(value)}, expected {expected}.")


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


def _is_row(value: object) -> bool:
    return isinstance(value, list) and len(value) == 4


def _is_finite_number(value: Any) -> bool:
    try:
        return type(value) in (int, float) and math.isfinite(value)
    except OverflowError:  # an integer beyond all floats
        return False
