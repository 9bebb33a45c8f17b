"""JSON from strangers: every value is asked for by name and type, and refused with the file and the field."""

from __future__ import annotations

import json
import math
from dataclasses import dataclass
from typing import Any

from hushsplat.types.errors import SceneError


@dataclass(frozen=True)
class Record:
    """A JSON object and what to call it in errors."""

    where: str  # file, and the field inside it
    values: dict[str, Any]

    @staticmethod
    def parse(where: str, text: bytes) -> Record:
        """The object that a whole JSON file holds."""
        try:
            values = json.loads(text)
        except (ValueError, RecursionError) as error:  # ValueError: syntax, encoding or endless digits
            raise SceneError(f"{where}: is not JSON: {error}.") from error
        if not isinstance(values, dict):
            raise SceneError(f"{where}: holds {_named(values)}, expected an object.")
        return Record(where, values)

    def record(self, key: str) -> Record:
        """The object at `key`."""
        value = self._value(key)
        if not isinstance(value, dict):
            raise self.refusal(key, value, "an object")
        return Record(f"{self.where}: {key}", value)

    def records(self, key: str) -> list[Record]:
        """The objects in the list at `key`, none if it is absent."""
        value = self.values.get(key, [])
        if not isinstance(value, list) or not all(isinstance(item, dict) for item in value):
            raise self.refusal(key, value, "a list of objects")
        return [Record(f"{self.where}: {key}", item) for item in value]

    def integer(self, key: str, first: int, last: int) -> int:
        """The integer at `key`, from `first` to `last`."""
        value = self._value(key)
        if type(value) is not int or not first <= value <= last:
            raise self.refusal(key, value, f"an integer from {first} to {last}")
        return value

    def numbers(self, key: str, count: int, limit: float) -> list[float]:
        """Exactly `count` numbers at `key`, each within ±limit."""
        value = self._value(key)
        if not isinstance(value, list) or len(value) != count:
            raise self.refusal(key, value, f"a list of {count} numbers")
        for item in value:
            if type(item) not in (int, float) or not math.isfinite(item) or abs(item) > limit:
                raise self.refusal(key, item, f"only numbers within ±{limit:g}")
        return [float(item) for item in value]

    def names(self, key: str, count: int | None = None) -> list[str]:
        """The strings in the list at `key`: `count` of them, or any number."""
        value = self._value(key)
        if not isinstance(value, list) or len(value) != (len(value) if count is None else count):
            raise self.refusal(key, value, "a list of names" if count is None else f"a list of {count} names")
        for item in value:
            if not isinstance(item, str):
                raise self.refusal(key, item, "only names")
        return value

    def refusal(self, key: str, value: object, expected: str) -> SceneError:
        """The error for a value that is not what it should be."""
        return SceneError(f"{self.where}: {key} is {_named(value)}, expected {expected}.")

    def _value(self, key: str) -> Any:
        if key not in self.values:
            raise SceneError(f"{self.where}: {key} is missing.")
        return self.values[key]


def _named(value: object) -> str:
    if isinstance(value, list):
        return f"a list of {len(value)}"
    if isinstance(value, dict):
        return "an object"
    text = json.dumps(value) if not isinstance(value, int) or value.bit_length() < 200 else "a huge integer"
    return text if len(text) <= 60 else text[:57] + "..."
