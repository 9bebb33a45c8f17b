"""Short runs of tools/fuzz.py: every seed is read, inputs that failed once pass, and a few hundred new ones do."""

from __future__ import annotations

import resource
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


@pytest.mark.skipif(sys.platform != "linux", reason="limits the memory of a process")
def test_a_length_that_is_not_there_is_not_allocated(tmp_path: Path) -> None:
    """In a process of its own, whose memory is limited."""
    count, failed, _ = fuzz.fuzz("photograph", seconds=20, inputs=40, seed=3, plain=True)
    assert (count, failed) == (40, 0)
    kept = fuzz.DATA / "crashes" / "photograph" / "bcae5b098a16"  # took gigabytes
    fuzzer = fuzz.Fuzzer("photograph", tmp_path, seed=1)
    fuzzer.path.write_bytes(kept.read_bytes())
    before = resource.getrlimit(resource.RLIMIT_AS)
    used = int(Path("/proc/self/statm").read_text().split()[0]) * resource.getpagesize()
    resource.setrlimit(resource.RLIMIT_AS, (used + (256 << 20), before[1]))
    try:
        assert fuzzer.problem(kept.read_bytes()) is None
    finally:
        resource.setrlimit(resource.RLIMIT_AS, before)


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
