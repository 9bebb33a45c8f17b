"""SIGKILL at random moments: no half file under a final name, and what is done again gives the same bytes.

    python tools/kill.py --kills 100
    python tools/kill.py --kills 8 --jobs convert train

Each job runs once undisturbed, then again and again in a folder that also holds a result from before. It is killed at a
random moment; every file under a final name must then be the old one or a complete one. Run again (`train` with
--resume), it must give the bytes of the undisturbed run and remove the temporary files of the killed one. `train` is
killed in each of its four stages before it may finish. Linux and macOS.
"""

from __future__ import annotations

import argparse
import json
import os
import random
import shutil
import signal
import sys
import tempfile
import time
from collections.abc import Callable, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
sys.path.insert(0, str(ROOT / "tests" / "training"))
STAGES = ("stage1", "stage2", "stage3", "stage4")
TRAINED = ("stage1.ply", "stage2.ply", "stage3.ply", "stage4.ply", "denoiser.safetensors")
OLD = b"what was there before"
LEFT = ".hushsplat-"  # how the names of temporary files begin


@dataclass(frozen=True)
class Job:
    """A command that is killed.

    Attributes:
        run: does the work in a folder; it is called in a process of its own.
        outputs: names of the files that it writes, in the folder.
        same: whether two complete outputs are the same.
    """

    run: Callable[[Path], object]
    outputs: tuple[str, ...]
    same: Callable[[bytes, bytes], bool] = field(default=bytes.__eq__)


def command(line: str) -> Callable[[Path], object]:
    """A command of ours; `IN` and `OUT` in its words stand for the folder of inputs and the job's own."""

    def run(folder: Path) -> object:
        from hushsplat.cli.main import main

        code = main([word.replace("IN", str(folder.parent)).replace("OUT", str(folder)) for word in line.split()])
        if code:
            raise SystemExit(code)
        return code

    return run


def same_results(first: bytes, second: bytes) -> bool:
    """The same numbers; how long it took may differ."""
    known, found = (json.loads(content) for content in (first, second))
    return all(known[key] == found[key] for key in ("rows", "series", "experiment"))


JOBS = {
    "convert": Job(command("convert IN/scene.ply OUT/scene.sog --force"), ("scene.sog",)),
    "save": Job(command("convert IN/scene.ply OUT/copy.ply --force"), ("copy.ply",)),
    "levels": Job(command("convert IN/scene.ply OUT/lod-meta.json --force"), ("lod-meta.json",)),
    "picture": Job(command("render IN/scene.ply -o OUT/a.png --method raw --quiet"), ("a.png",)),
    "video": Job(
        command("render IN/scene.ply -o OUT/a.mp4 --orbit --seconds 1 --method raw --width 64 --height 48 --quiet"),
        ("a.mp4",),
    ),
    "evaluate": Job(
        command(
            "evaluate navigation synth:1k --methods raw svgf --width 64 --height 48 --fps 30 --every 2 --frames 6 "
            "--workers 1 --metrics psnr --quiet -o OUT/r.json"
        ),
        ("r.json",),
        same_results,
    ),
    "report": Job(command("report IN/r.json -o OUT/r.html"), ("r.html",)),
}


class Killer:
    """Runs jobs in child processes and kills them."""

    def __init__(self, folder: Path, seed: int) -> None:
        self.folder, self.random = folder, random.Random(seed)
        self.kills = dict[str, int]()
        self.problems: list[str] = []

    def attack(self, name: str, job: Job, kills: int) -> None:
        """Kill a job so often, and let it end each time after."""
        whole = self.folder / f"{name}-whole"
        whole.mkdir()
        begin = time.monotonic()
        self._expect(start(job.run, whole), f"{name}: the undisturbed run")
        seconds = time.monotonic() - begin
        expected = {output: (whole / output).read_bytes() for output in job.outputs}
        done = 0
        while done < kills:
            folder = self.folder / f"{name}-{done}"
            folder.mkdir(exist_ok=True)
            for output in job.outputs:
                if done % 2:
                    (folder / output).write_bytes(OLD)
            child = start(job.run, folder)
            time.sleep(self.random.uniform(0, seconds))
            done += self._kill(child, name)
            for output in job.outputs:
                path = folder / output
                if path.exists() and path.read_bytes() != OLD and not self._is_same(job, path, expected[output]):
                    self.problems.append(f"{name}: {output} is half written after a kill")
            self._expect(start(job.run, folder), f"{name}: the run after a kill")
            for output in job.outputs:
                if not self._is_same(job, folder / output, expected[output]):
                    self.problems.append(f"{name}: {output} differs after a kill and another run")
            self._expect_swept(folder, name)
            shutil.rmtree(folder)

    def attack_training(self, kills: int) -> None:
        """Kill a run in each of its stages, resume it to the end, and compare."""
        from made_capture import tiny_settings, write_capture

        from hushsplat.training.api import train

        capture = write_capture(self.folder / "capture")

        def run(folder: Path) -> object:
            return train(capture, folder, settings=tiny_settings(threads=1), resume=(folder / "config.json").exists())

        whole = self.folder / "train-whole"
        self._expect(start(run, whole), "train: the undisturbed run")
        done = 0
        while done < kills:
            folder = self.folder / f"train-{done}"
            for stage in STAGES[: kills - done]:
                child = start(run, folder)
                while not ended(child) and not _has_begun(folder, stage):
                    time.sleep(0.005)
                time.sleep(self.random.uniform(0, 0.15))
                done += self._kill(child, f"train {stage}")
            self._expect(start(run, folder), "train: the run that was resumed")
            for name in TRAINED:
                if (folder / name).read_bytes() != (whole / name).read_bytes():
                    self.problems.append(f"train: {name} differs from that of the undisturbed run")
            self._expect_swept(folder, "train")
            shutil.rmtree(folder)

    def _kill(self, child: int, name: str) -> int:
        """1 if it was killed, 0 if it had ended before."""
        if ended(child):
            return 0
        os.kill(child, signal.SIGKILL)
        os.waitpid(child, 0)
        self.kills[name] = self.kills.get(name, 0) + 1
        return 1

    def _is_same(self, job: Job, path: Path, expected: bytes) -> bool:
        try:
            return job.same(path.read_bytes(), expected)
        except (OSError, ValueError, KeyError):
            return False

    def _expect(self, child: int, what: str) -> None:
        _, status = os.waitpid(child, 0)
        if status:
            self.problems.append(f"{what} ended with status {status}")

    def _expect_swept(self, folder: Path, name: str) -> None:
        left = [path.name for path in folder.rglob(f"{LEFT}*")]
        if left:
            self.problems.append(f"{name}: {', '.join(left)} stayed after the next run")


def start(run: Callable[[Path], object], folder: Path) -> int:
    """Run it in a child; its process id."""
    child = os.fork()
    if child:
        return child
    code = 1
    with suppress(BaseException):
        with open(os.devnull, "w") as nowhere:  # noqa: PTH123 -- a descriptor is needed
            os.dup2(nowhere.fileno(), 1)
        run(folder)
        code = 0
    os._exit(code)


def ended(child: int) -> bool:
    """Whether a child has ended; it stays to be waited for."""
    return os.waitid(os.P_PID, child, os.WEXITED | os.WNOHANG | os.WNOWAIT) is not None


def _has_begun(folder: Path, stage: str) -> bool:
    with suppress(OSError):
        return f'"{stage}"' in (folder / "log.jsonl").read_text()
    return False


def prepare(folder: Path, jobs: Sequence[str], gaussians: int) -> None:
    """What the commands read; and all imports, so that children spend their time at work."""
    import hushsplat
    import hushsplat.cli.main
    import hushsplat.evaluation.report

    hushsplat.save(hushsplat.room_and_garden(gaussians), folder / "scene.ply")
    if "report" not in jobs:
        return
    os.waitpid(start(JOBS["evaluate"].run, folder), 0)
    content = json.loads((folder / "r.json").read_text())
    (folder / "r.json").write_text(json.dumps({**content, "assets": []}))


def run(jobs: Sequence[str], kills: int, seed: int, folder: Path, gaussians: int = 20_000) -> Killer:
    """Kill each of the jobs, all together so often."""
    killer = Killer(folder, seed)
    prepare(folder, jobs, gaussians)
    share = -(-kills // len(jobs))
    for name in jobs:
        wanted = min(share, kills - sum(killer.kills.values()))
        if name == "train":
            import hushsplat.training.api  # noqa: F401

            killer.attack_training(wanted)
        else:
            killer.attack(name, JOBS[name], wanted)
        print(f"{name}: {wanted} kills, {len(killer.problems)} problems so far", flush=True)
    return killer


def main() -> int:
    """Kill, and say what was found; 1 if anything was."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--kills", type=int, default=100, help="of all jobs together")
    parser.add_argument("--jobs", nargs="+", choices=[*JOBS, "train"], default=[*JOBS, "train"])
    parser.add_argument("--seed", type=int, default=0)
    words = parser.parse_args()
    with tempfile.TemporaryDirectory(prefix="hushsplat-kill-") as temporary:
        killer = run(words.jobs, words.kills, words.seed, Path(temporary))
    print(", ".join(f"{name}: {count}" for name, count in killer.kills.items()))
    for problem in killer.problems:
        print(f"FAILED: {problem}")
    print(f"{sum(killer.kills.values())} kills, {len(killer.problems)} problems")
    return int(bool(killer.problems))


if __name__ == "__main__":
    raise SystemExit(main())
