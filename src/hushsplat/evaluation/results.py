"""Results of an evaluation as one JSON file; docs/evaluation.md describes every field."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import asdict, dataclass, field, fields
from pathlib import Path, PurePosixPath
from typing import Any

from hushsplat.io.atomic import atomic_write
from hushsplat.io.strict_json import described, read_json_object
from hushsplat.types.errors import EvaluationError

FORMAT, VERSION = "hushsplat-results", 1
EXPERIMENTS = ("static", "navigation", "ablation", "convergence", "timing", "zero-shot")
ROW_TEXTS = ("experiment", "scene", "track", "method")  # every row has them
METRIC_FIELDS = ("psnr", "ssim", "gradient_energy", "tpsnr", "flicker", "lpips", "lpips_3dgs", "cvvdp")
ROW_NUMBERS = (
    *METRIC_FIELDS,
    *(f"{metric}_ci95" for metric in METRIC_FIELDS),
    *("effective_samples", "gap_closed", "time_ms", "speedup", "fps"),
)
ROW_COUNTS = ("frames", "samples", "views", "seeds")
MAX_ITEMS = 1_000_000  # of a list; more is damage
MAX_NUMBER = 1e12  # of any; more is damage, and sums of them stay finite

Row = dict[str, Any]  # flat: texts, numbers, and None for what could not be computed


@dataclass(frozen=True)
class Results:
    """Metrics by scene, track and method, and how they were computed."""

    experiment: str  # one of EXPERIMENTS
    command: str  # that computes them again
    rows: list[Row]  # one for each scene, track, method and number of frames
    series: list[Row] = field(default_factory=list)  # the same by frame: lists of one length, `frame`, `psnr`, ...
    assets: list[Row] = field(default_factory=list)  # pictures and videos: kind, scene, track, method, name, path
    protocol: Row = field(default_factory=dict)  # picture size, which frames are scored, seeds and so on
    versions: Row = field(default_factory=dict)  # of hushsplat and what the metrics use
    machine: Row = field(default_factory=dict)
    missing: dict[str, str] = field(default_factory=dict)  # metric: what to install
    notes: list[str] = field(default_factory=list)  # what a reader should know
    seconds: float = 0.0  # how long it took, this time
    folder: Path | None = field(default=None, compare=False)  # of the assets' paths; not written

    def asset_path(self, asset: Row) -> Path:
        """Where an asset is; it must lie below the folder of the results."""
        path = PurePosixPath(asset["path"])
        leaves = path.is_absolute() or ".." in path.parts or "\\" in asset["path"]
        if self.folder is None or leaves or not asset["path"].isprintable():
            raise EvaluationError(f"{self.folder}: the path {described(asset['path'])} of an asset leaves the folder.")
        return self.folder / path


def write_results(results: Results, path: str | Path) -> None:
    """Write the file; it is there as a whole or not at all."""
    content = {"format": FORMAT, "version": VERSION, **asdict(results)}
    del content["folder"]
    with atomic_write(path) as temporary:
        temporary.write_text(json.dumps(content, indent=1, ensure_ascii=False, allow_nan=False) + "\n", "utf-8")


def read_results(path: str | Path) -> Results:
    """Read a file that `write_results` wrote, or one that looks like it; what does not fit is refused by its field."""
    path = Path(path)
    content = read_json_object(path, EvaluationError)
    for key, expected in (("format", FORMAT), ("version", VERSION)):
        if content.get(key) != expected or isinstance(content.get(key), bool):
            raise EvaluationError(f"{path}: {key} is {described(content.get(key))}, expected {expected!r}.")
    if content.get("experiment") not in EXPERIMENTS:
        raise _wrong(path, "experiment", content.get("experiment"), f"one of {', '.join(EXPERIMENTS)}")
    _check_kind(path, "command", content.get("command"), str, "a text")
    rows = _records(path, content, "rows")
    for index, row in enumerate(rows):
        _check_row(path, index, row)
    series, assets = _records(path, content, "series"), _records(path, content, "assets")
    for index, one in enumerate(series):
        _check_series(path, index, one)
    for index, asset in enumerate(assets):
        for key in ("kind", "scene", "track", "method", "name", "path"):
            _check_kind(path, f"assets {index}: {key}", asset.get(key), str, "a text")
    for key in ("protocol", "versions", "machine"):
        _check_facts(path, key, content.setdefault(key, {}))
    missing = content.setdefault("missing", {})
    if not isinstance(missing, dict) or not all(isinstance(reason, str) for reason in missing.values()):
        raise _wrong(path, "missing", missing, "an object of texts")
    notes = content.setdefault("notes", [])
    if not isinstance(notes, list) or not all(isinstance(note, str) for note in notes):
        raise _wrong(path, "notes", notes, "a list of texts")
    if not _is_number(content.setdefault("seconds", 0.0)):
        raise _wrong(path, "seconds", content["seconds"], "a number")
    known = {one.name for one in fields(Results)} - {"folder"}
    return Results(**{key: value for key, value in content.items() if key in known}, folder=path.parent)


def _check_row(path: Path, index: int, row: Row) -> None:
    for key in ROW_TEXTS:
        _check_kind(path, f"rows {index}: {key}", row.get(key), str, "a text")
    for key in ROW_NUMBERS:
        if not (row.get(key) is None or _is_number(row[key])):
            raise _wrong(path, f"rows {index}: {key}", row[key], "a number")
    for key in ROW_COUNTS:
        if not (_is_count(row.get(key)) or (row.get(key) is None and key != "frames")):
            raise _wrong(path, f"rows {index}: {key}", row.get(key), "a whole number")
    for key, value in row.items():
        if not (value is None or isinstance(value, str) or _is_number(value)):
            raise _wrong(path, f"rows {index}: {key}", value, "a number, a text or null")


def _check_series(path: Path, index: int, series: Row) -> None:
    for key in ("scene", "track", "method"):
        _check_kind(path, f"series {index}: {key}", series.get(key), str, "a text")
    lists = {key: value for key, value in series.items() if not isinstance(value, str)}
    for key, values in lists.items():
        if not isinstance(values, list) or not all(value is None or _is_number(value) for value in values):
            raise _wrong(path, f"series {index}: {key}", values, "a list of numbers and nulls")
    if not isinstance(series.get("psnr", []), list):
        raise _wrong(path, f"series {index}: psnr", series["psnr"], "a list of numbers and nulls")
    if None in lists.get("frame", []) or "frame" not in lists or len({len(values) for values in lists.values()}) != 1:
        raise EvaluationError(
            f"{path}: series {index}: expected lists of equal length, and one of them `frame` without nulls."
        )


def _check_facts(path: Path, key: str, facts: object) -> None:
    """Texts, numbers, and lists of them, by name."""
    _check_kind(path, key, facts, dict, "an object")
    for name, value in dict(facts).items():  # type: ignore[call-overload]  # checked just now
        for item in value if isinstance(value, list) else [value]:
            if isinstance(item, (list, dict)):
                raise _wrong(path, f"{key}: {described(name)}", item, "a text, a number, or a list of them")


def _records(path: Path, content: Row, key: str) -> list[Row]:
    values = content.setdefault(key, [])
    if not isinstance(values, list) or len(values) > MAX_ITEMS or not all(isinstance(item, dict) for item in values):
        raise _wrong(path, key, values, "a list of objects")
    return values


def _check_kind(path: Path, key: str, value: object, kind: type, expected: str) -> None:
    if not isinstance(value, kind):
        raise _wrong(path, key, value, expected)


def _wrong(path: Path, key: str, value: object, expected: str) -> EvaluationError:
    return EvaluationError(f"{path}: {key} is {described(value)}, expected {expected}.")


def _is_number(value: object) -> bool:
    return isinstance(value, (int, float)) and not isinstance(value, bool) and abs(value) <= MAX_NUMBER


def _is_count(value: object) -> bool:
    return isinstance(value, int) and _is_number(value) and value >= 0


def scenes_of(rows: Sequence[Row]) -> list[str]:
    """Every scene once, in order."""
    return list(dict.fromkeys(row["scene"] for row in rows))
