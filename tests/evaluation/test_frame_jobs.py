"""A track drawn by jobs is the track drawn in one process, byte for byte, and a run that was stopped goes on."""

from dataclasses import dataclass
from pathlib import Path

import numpy as np
import pytest

from hushsplat import jobs
from hushsplat.cli.main import main
from hushsplat.evaluation import frame_jobs
from hushsplat.io.tracks import write_track
from hushsplat.types.paths import orbit


@pytest.fixture
def track(tmp_path: Path) -> Path:
    path = tmp_path / "ring.json"
    write_track(orbit(np.array([0, -1.0, 0]), 3.0, turns=0.05, seconds=0.2, fps=30.0, width=40, height=24), path)
    return path


def pictures(folder: Path) -> list[bytes]:
    return [path.read_bytes() for path in sorted(folder.glob("*.png"))]


def test_jobs_draw_what_one_process_draws(
    track: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(frame_jobs, "FRAMES_PER_JOB", 4)
    words = ["render", "synth:1k", "--track", str(track), "--compare", "raw,hush", "--frame", "3", "--quiet"]
    assert main([*words, "-o", str(tmp_path / "one" / "%02d.png")]) == 0
    begun: list[tuple[str, int]] = []
    run_job = jobs.run_job

    def stopped(job: frame_jobs.FrameJob, *rest: object) -> dict:
        if job.method == "hush" and ("hush", 0) not in begun:
            begun.append((job.method, job.first))
            raise KeyboardInterrupt
        begun.append((job.method, job.first))
        return run_job(job, *rest)

    monkeypatch.setattr(jobs, "run_job", stopped)
    by_jobs = [*words, "-o", str(tmp_path / "many" / "%02d.png"), "--workers", "1"]
    assert main(by_jobs) == 130
    assert main(by_jobs) == 0
    assert begun == [("raw", 0), ("raw", 4), ("hush", 0), ("hush", 0)]  # hush keeps a state, raw is not drawn again
    assert len(pictures(tmp_path / "one")) == 6
    assert pictures(tmp_path / "one") == pictures(tmp_path / "many")
    assert not list((tmp_path / "many").glob("*.files"))
    capsys.readouterr()
    assert main(["render", "synth:1k", "-o", str(tmp_path / "one.png"), "--workers", "1"]) == 2
    assert "are for pictures of 8 bits along a track; leave them out" in capsys.readouterr().err


@dataclass(frozen=True)
class Nothing:
    """A job that writes no files."""

    group = ""
    cost = 1
    takes_all_cores = False

    def files(self, folder: Path) -> list[Path]:
        return []

    def run(self, folder: Path, threads: int) -> jobs.Outcome:
        return {"rows": []}


@pytest.mark.parametrize("content", [b"", b"{", b"[]", b"\xff", b"[" * 100_000])
def test_damaged_outcome_is_computed_again(tmp_path: Path, content: bytes) -> None:
    assert jobs.run_jobs([Nothing()], tmp_path, jobs.Processes(1)) == [{"rows": []}]
    (path,) = (tmp_path / "parts").iterdir()
    path.write_bytes(content)
    assert jobs.stored(Nothing(), tmp_path) is None
    assert jobs.run_jobs([Nothing()], tmp_path, jobs.Processes(1)) == [{"rows": []}]
    assert jobs.stored(Nothing(), tmp_path) == {"rows": []}
