"""Short runs of tools/fuzz.py: every seed is read, inputs that failed once pass, and a few hundred new ones do."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

sys.path.insert(0, str(Path(__file__).resolve().parent.parent / "tools"))
import fuzz

INPUTS = 120  # of each target


@pytest.mark.parametrize("name", fuzz.TARGETS)
def test_hostile_inputs_are_read_or_refused_in_one_line(name: str, tmp_path: Path) -> None:
    fuzzer = fuzz.Fuzzer(name, tmp_path, seed=1)
    assert fuzzer.seeds, "the corpus is empty"
    problems = {}
    for number in range(INPUTS):
        content = fuzzer.seeds[number] if number < len(fuzzer.seeds) else fuzzer.next_input()
        problem = fuzzer.problem(content)
        if problem is not None:
            problems[content[:200]] = problem
    assert problems == {}


@pytest.mark.parametrize("name", fuzz.TARGETS)
def test_every_target_reads_a_seed(name: str, tmp_path: Path) -> None:
    """Mutations of what nobody reads attack nothing."""
    fuzzer = fuzz.Fuzzer(name, tmp_path, seed=1)
    for path in sorted((fuzz.DATA / "corpus" / name).iterdir()):
        fuzzer.path.write_bytes(path.read_bytes())
        fuzzer.read(fuzzer.path)


def test_a_failing_reader_is_found_and_its_input_minimised(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(fuzz, "DATA", tmp_path)
    monkeypatch.setattr(fuzz, "ROOT", tmp_path)
    (tmp_path / "corpus" / "splat").mkdir(parents=True)
    (tmp_path / "corpus" / "splat" / "seed").write_bytes(b"plain")
    fuzzer = fuzz.Fuzzer("splat", tmp_path, seed=1)
    fuzzer.read = lambda path: 1 / (b"!" not in path.read_bytes())  # type: ignore[method-assign, assignment]
    fuzzer.try_input(b"many bytes and ! among them")
    (kept,) = (tmp_path / "crashes" / "splat").iterdir()
    assert kept.read_bytes() == b"!" and fuzzer.crashes == ["ZeroDivisionError"]
