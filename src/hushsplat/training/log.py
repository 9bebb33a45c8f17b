"""The progress and the log of a run: log.jsonl, and events for TensorBoard where it is installed."""

from __future__ import annotations

import json
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from hushsplat.io.atomic import atomic_write
from hushsplat.types.errors import TrainingError

LOG, EVENTS = "log.jsonl", "events"
FLUSH_SECONDS = 10  # how long events may wait in memory
NO_TENSORBOARD = "no events are written; install TensorBoard with: pip install 'hushsplat[tensorboard]'"


@dataclass(frozen=True)
class TrainProgress:
    """What is known after a step of training.

    Attributes:
        stage: stage1 to stage4.
        step: steps of this stage that are done.
        steps: that it has.
        seconds_left: until the end of this stage, at the pace so far.
        metrics: loss and psnr of this step, and held-out metrics where they were measured.
    """

    stage: str
    step: int
    steps: int
    seconds_left: float
    metrics: Mapping[str, float]


OnProgress = Callable[[TrainProgress], None]


class RunLog:
    """Writes every entry to both logs; on resuming, entries after the checkpoint are dropped first."""

    def __init__(self, folder: Path, finished: list[str], stage: str | None, step: int) -> None:
        self.folder, self.path = folder, folder / LOG
        self._drop_repeated(finished, stage, step)
        self._file = self.path.open("a", encoding="utf-8")
        self._events: Any = None

    def begin_stage(self, stage: str, done: int) -> None:
        """Entries of this stage follow; `done` steps of it are logged already."""
        self._close_events()
        try:
            from torch.utils.tensorboard import SummaryWriter
        except ImportError:
            if not done:
                self._write({"stage": stage, "step": 0, "note": NO_TENSORBOARD})
            return
        # A folder for each stage: purge_step makes TensorBoard drop every later step of the folder.
        folder = self.folder / EVENTS / stage
        _wait_for_a_later_name(folder)
        self._events = SummaryWriter(str(folder), purge_step=done + 1, flush_secs=FLUSH_SECONDS)

    def write(self, stage: str, step: int, values: Mapping[str, float]) -> None:
        """One entry; `step` counts from 1."""
        self._write({"stage": stage, "step": step, **values})
        if self._events is not None:
            for name, value in values.items():
                self._events.add_scalar(name, value, step)

    def close(self) -> None:
        """No more entries."""
        self._file.close()
        self._close_events()

    def _write(self, entry: Mapping[str, Any]) -> None:
        self._file.write(json.dumps(entry) + "\n")
        self._file.flush()

    def _close_events(self) -> None:
        if self._events is not None:
            self._events.close()
        self._events = None

    def _drop_repeated(self, finished: list[str], stage: str | None, step: int) -> None:
        """A run that was killed has logged steps that it has to do again."""
        if not self.path.exists():
            return
        kept = []
        lines = self.path.read_text(encoding="utf-8", errors="replace").splitlines(keepends=True)
        for number, line in enumerate(lines):
            try:
                entry = json.loads(line)
                known = entry["stage"] in finished or (entry["stage"] == stage and entry["step"] <= step)
            except (ValueError, KeyError, TypeError):
                if number or not line.endswith("\n"):  # half written when the run was killed, also the first
                    continue
                raise TrainingError(f"{self.path}: is not the log of a run; remove it to go on.") from None
            if known:
                kept.append(line.rstrip("\n") + "\n")
        with atomic_write(self.path) as temporary:
            temporary.write_text("".join(kept), encoding="utf-8")


def _wait_for_a_later_name(folder: Path) -> None:
    """TensorBoard reads a folder's files in the order of their names, which begin with the second of their start."""
    seconds = [int(path.name.split(".")[3]) for path in folder.glob("events.out.tfevents.*.*")]
    time.sleep(min(1.0, max(0.0, max(seconds, default=0) + 1 - time.time())))


def last_entries(folder: Path) -> dict[str, dict[str, float]]:
    """The last entry of each stage: the numbers at its end."""
    found = {}
    for line in (folder / LOG).read_text(encoding="utf-8").splitlines():
        entry = json.loads(line)
        found[entry["stage"]] = {key: value for key, value in entry.items() if key not in ("stage", "step", "note")}
    return found


class TimeLeft:
    """Extrapolates the time that the steps left will take."""

    def __init__(self, steps: int, done: int, clock: Callable[[], float] = time.monotonic) -> None:
        self.steps, self.clock = steps, clock
        self.begin, self.first = clock(), done

    def seconds(self, done: int) -> float:
        """At the pace so far; infinity before the first step."""
        made = done - self.first
        return (self.steps - done) * (self.clock() - self.begin) / made if made > 0 else float("inf")
