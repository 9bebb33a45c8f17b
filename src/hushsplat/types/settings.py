"""Settings declared once: a field says its default, range, unit, source and effect; everything else is derived.

The command line's flags, `help()`, the validator, the native struct and its binding, the WGSL struct, the tables of the
docs and the viewer's sliders all come from these declarations.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, field, fields
from typing import Any, ClassVar, Literal, TypeVar, get_args, get_origin, get_type_hints

from hushsplat.types.errors import HushsplatError

Kind = TypeVar("Kind")
DECLARED = "setting"  # key of the declaration in a field's metadata


@dataclass(frozen=True)
class Slider:
    """How the viewer shows a setting: linear or over powers of two."""

    low: int | float
    high: int | float
    step: int | float
    power_of_two: bool = False  # low, high and step are exponents


@dataclass(frozen=True)
class Declared:
    """What a field of a settings class declares beside its name, type and default."""

    help: str  # effect, one sentence
    unit: str = ""  # px, frames, world units, ...
    low: int | float = -math.inf
    high: int | float = math.inf
    above: bool = False  # low itself is not allowed
    source: str = ""  # where in the paper, or "ours"
    title: str = ""  # short name for a slider
    slider: Slider | None = None

    def text(self) -> str:
        """One line for `--help`, `help()` and the docs."""
        bounds = self.bounds()
        start = ", ".join(part for part in (self.unit, bounds) if part)
        text = f"{start}: {self.help}" if start else self.help
        return f"{text} {self.source}." if self.source else text

    def bounds(self) -> str:
        """The range in words, empty if there is none."""
        if math.isfinite(self.low) and self.high <= 1 and self.low >= 0 and not self.above:
            return f"{self.low:g}..{self.high:g}"
        if math.isfinite(self.low):
            return f"{'>' if self.above else '>='} {self.low:g}"
        return ""


def setting(default: Any, help: str, **declared: Any) -> Any:
    """A field of a settings class: its default and its declaration; numbers may also come as a tuple."""
    metadata = {DECLARED: Declared(help, **declared)}
    if isinstance(default, Settings):
        return field(default_factory=lambda: default, metadata=metadata)
    return field(default=default, metadata=metadata)


def declared(kind: type) -> dict[str, Declared]:
    """The declarations of a settings class by field name."""
    return {each.name: each.metadata[DECLARED] for each in fields(kind) if DECLARED in each.metadata}


def documented(kind: type[Kind]) -> type[Kind]:
    """Append the declarations to the class's docstring, where help(), editors and the command line find them."""
    lines = [f"    {name}: {each.text()}" for name, each in declared(kind).items()]
    kind.__doc__ = "\n".join([kind.__doc__ or "", "", "Attributes:", *lines])
    return kind


@dataclass(frozen=True)
class Settings:
    """Base of all settings: every field is checked against its type and declared range."""

    error: ClassVar[type[HushsplatError]] = HushsplatError

    def __post_init__(self) -> None:
        hints = get_type_hints(type(self))
        for each in fields(self):
            declared = each.metadata.get(DECLARED)
            try:
                value = _checked(getattr(self, each.name), hints[each.name], declared)
            except ValueError as error:
                raise self.error(f"{each.name} must be {error}, got {getattr(self, each.name)!r}.") from None
            object.__setattr__(self, each.name, value)


def _checked(value: Any, hint: Any, declared: Declared | None) -> Any:
    """The value as the field keeps it (8 becomes 8.0); a ValueError says what was expected."""
    choices = (True, False) if hint is bool else get_args(hint) if get_origin(hint) is Literal else ()
    if choices:
        if not any(value == choice and type(value) is type(choice) for choice in choices):
            raise ValueError(f"one of {', '.join(map(repr, choices))}")
        return value
    if isinstance(hint, type) and issubclass(hint, Settings) and not isinstance(value, hint):
        raise ValueError(hint.__name__)
    if get_origin(hint) is tuple:
        kinds = get_args(hint)
        try:
            return tuple(_checked(each, kind, declared) for each, kind in zip(value, kinds, strict=True))
        except (TypeError, ValueError):
            expected = "that are finite" if declared is None else f"each {_span(declared)}"
            raise ValueError(f"{len(kinds)} numbers {expected}") from None
    if hint not in (int, float) or declared is None:
        return value
    number = isinstance(value, (int, float)) and not isinstance(value, bool) and math.isfinite(value)
    whole = hint is float or (number and value == int(value))
    inside = number and declared.low <= value <= declared.high and not (declared.above and value == declared.low)
    if not (whole and inside):
        raise ValueError(f"{'a number' if hint is float else 'a whole number'} {_span(declared)}")
    return hint(value)


def _span(declared: Declared) -> str:
    if math.isfinite(declared.high):
        return f"{'above' if declared.above else 'from'} {declared.low:g} to {declared.high:g}"
    if math.isfinite(declared.low):
        return f"{'above' if declared.above else 'of at least'} {declared.low:g}"
    return "that is finite"
