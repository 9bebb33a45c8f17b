"""The results file: what is written reads back the same, and what does not fit is refused by its field."""

import json
from dataclasses import replace
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from hushsplat.evaluation.results import Results, read_results, write_results
from hushsplat.types.errors import EvaluationError

ROW = {"experiment": "navigation", "scene": "a.ply", "track": "walk", "method": "raw", "frames": 2, "psnr": 20.5}
SERIES = {"scene": "a.ply", "track": "walk", "method": "raw", "frame": [9, 19], "psnr": [20.0, None]}
ASSET = {"kind": "frame", "scene": "a.ply", "track": "walk", "method": "raw", "name": "9", "path": "r.files/x.webp"}
RESULTS = Results(
    "navigation", "hushsplat evaluate navigation a.ply", [ROW], [SERIES], [ASSET], {"fps": 300.0}, {"numpy": "2"}, {}
)


def test_what_is_written_reads_back(tmp_path: Path) -> None:
    path = tmp_path / "r.json"
    write_results(RESULTS, path)
    found = read_results(path)
    assert found == RESULTS
    assert found.asset_path(ASSET) == tmp_path / "r.files" / "x.webp"


WRONG = {
    "format": ("other", "format is 'other', expected 'hushsplat-results'"),
    "version": (2, "version is 2, expected 1"),
    "experiment": ("guess", "experiment is 'guess', expected one of static, navigation"),
    "command": (7, "command is 7, expected a text"),
    "rows": ([1], "rows is a list of 1, expected a list of objects"),
    "series": ([{**SERIES, "psnr": [1.0]}], "series 0: expected lists of equal length, and one of them `frame`"),
    "assets": ([{**ASSET, "path": 3}], "assets 0: path is 3, expected a text"),
    "machine": ([], "machine is a list of 0, expected an object"),
    "notes": ([3], "notes is a list of 1, expected a list of texts"),
    "missing": ({"lpips": 3}, "missing is an object, expected an object of texts"),
    "protocol": ({"size": [[800]]}, "protocol: 'size' is a list of 1, expected a text, a number, or a list of them"),
    "seconds": ("long", "seconds is 'long', expected a number"),
}


@pytest.mark.parametrize("key", WRONG)
def test_what_does_not_fit_is_refused_by_its_field(key: str, tmp_path: Path) -> None:
    path = tmp_path / "r.json"
    write_results(RESULTS, path)
    value, expected = WRONG[key]
    path.write_text(json.dumps({**json.loads(path.read_text()), key: value}))
    with pytest.raises(EvaluationError) as error:
        read_results(path)
    assert str(error.value).startswith(f"{path}: ") and expected in str(error.value)


@pytest.mark.parametrize(
    ("row", "expected"),
    [
        ({**ROW, "scene": None}, "rows 0: scene is missing, expected a text"),
        ({**ROW, "frames": None}, "rows 0: frames is missing, expected a whole number"),
        ({**ROW, "other": [1]}, "rows 0: other is a list of 1, expected a number, a text or null"),
        ({**ROW, "psnr": [1]}, "rows 0: psnr is a list of 1, expected a number"),
        ({**ROW, "psnr": float("inf")}, "rows 0: psnr is inf, expected a number"),
        ({**ROW, "psnr": 10**400}, "rows 0: psnr is a huge integer, expected a number"),
        ({**ROW, "frames": 10**400}, "rows 0: frames is a huge integer, expected a whole number"),
        ({**ROW, "frames": -1}, "rows 0: frames is -1, expected a whole number"),
        ({**ROW, "gap_closed": "all"}, "rows 0: gap_closed is 'all', expected a number"),
    ],
)
def test_rows_are_flat(row: dict, expected: str, tmp_path: Path) -> None:
    path = tmp_path / "r.json"
    path.write_text(
        json.dumps({"format": "hushsplat-results", "version": 1, "experiment": "static", "command": "", "rows": [row]})
    )
    with pytest.raises(EvaluationError) as error:
        read_results(path)
    assert expected in str(error.value)


@pytest.mark.parametrize("change", [{"psnr": "best"}, {"psnr": 5}, {"frame": [9, None]}, {"psnr": [10**400, None]}])
def test_series_that_cannot_be_plotted_are_refused(change: dict, tmp_path: Path) -> None:
    path = tmp_path / "r.json"
    path.write_text(json.dumps({**as_json(tmp_path), "series": [{**SERIES, **change}]}))
    with pytest.raises(EvaluationError, match="series 0: "):
        read_results(path)


def as_json(folder: Path) -> dict:
    write_results(RESULTS, folder / "good.json")
    return json.loads((folder / "good.json").read_text())


@pytest.mark.parametrize("path", ["/etc/passwd", "../secret", "a/../../b", "..\\b", "a\0b", "a\x1b[2J"])
def test_assets_stay_in_their_folder(path: str, tmp_path: Path) -> None:
    found = replace(RESULTS, folder=tmp_path)
    with pytest.raises(EvaluationError, match="of an asset leaves the folder"):
        found.asset_path({**ASSET, "path": path})


VALUES = st.none() | st.booleans() | st.floats() | st.text()


@given(st.recursive(VALUES, lambda inner: st.lists(inner) | st.dictionaries(st.text(), inner)))
def test_anything_else_is_refused_not_crashed_on(tmp_path_factory: pytest.TempPathFactory, content: object) -> None:
    path = tmp_path_factory.mktemp("any") / "r.json"
    path.write_text(json.dumps({"format": "hushsplat-results", "version": 1, "experiment": "static", "rows": content}))
    with pytest.raises(EvaluationError):
        read_results(path)
