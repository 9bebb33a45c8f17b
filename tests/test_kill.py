"""A short run of tools/kill.py, and that it finds a writer that is not atomic."""

from __future__ import annotations

import sys
import time
from pathlib import Path

import pytest

sys.path.insert(0, str(Path(__file__).resolve().parent.parent / "tools"))
import kill

pytestmark = pytest.mark.skipif(sys.platform == "win32", reason="needs fork and signals")


def test_killed_writers_leave_no_half_file(tmp_path: Path) -> None:
    killer = kill.run(["save", "convert"], kills=4, seed=2, folder=tmp_path, gaussians=1000)
    assert killer.problems == [] and sum(killer.kills.values()) == 4


def test_a_half_file_is_found(tmp_path: Path) -> None:
    def write(folder: Path) -> None:
        with (folder / "a.txt").open("wb", buffering=0) as file:
            for _ in range(20):
                file.write(b"part")
                time.sleep(0.01)
        (folder / ".hushsplat-left").touch()

    killer = kill.Killer(tmp_path, seed=0)
    killer.attack("half", kill.Job(write, ("a.txt",)), kills=3)
    assert "half: a.txt is half written after a kill" in killer.problems
    assert "half: .hushsplat-left stayed after the next run" in killer.problems
