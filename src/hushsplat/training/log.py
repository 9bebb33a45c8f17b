"""What a run leaves to read: log.jsonl, events for TensorBoard, and a line now and then for whoever watches."""

from __future__ import annotations

import json
import time
from collections.abc import Callable, Mapping
from pathlib import Path

from hushsplat.io.tensorboard import EventWriter
from hushsplat.types.errors import TrainingError

LOG = "log.jsonl"


class Journal:
    """Writes every entry to both logs; on resuming, entries after the checkpoint are dropped first."""

    def __init__(self, folder: Path, finished: list[str], stage: str | None, step: int) -> None:
        self.path = folder / LOG
        self._forget(finished, stage, step)
        self._file = self.path.open("a", encoding="utf-8")
        self._events = EventWriter(folder)
        self._events.begin_session(step)

    def write(self, stage: str, step: int, values: Mapping[str, float]) -> None:
        """One entry; `step` counts from 1."""
        self._file.write(json.dumps({"stage": stage, "step": step, **values}) + "\n")
        self._file.flush()
        self._events.scalars(step, {f"{stage}/{name}": value for name, value in values.items()})

    def close(self) -> None:
        """Nothing more comes."""
        self._file.close()
        self._events.close()

    def _forget(self, finished: list[str], stage: str | None, step: int) -> None:
        """A run that was killed has logged steps that it has to do again."""
        if not self.path.exists():
            return
        kept = []
        for number, line in enumerate(self.path.read_text(encoding="utf-8").splitlines()):
            try:
                entry = json.loads(line)
                known = entry["stage"] in finished or (entry["stage"] == stage and entry["step"] <= step)
            except (ValueError, KeyError, TypeError):
                if number and line:  # the last line may be half written
                    continue
                raise TrainingError(f"{self.path}: is not the log of a run; remove it to go on.") from None
            if known:
                kept.append(line + "\n")
        self.path.write_text("".join(kept), encoding="utf-8")


class Ticker:
    """How fast it goes, and how long it will take."""

    def __init__(self, steps: int, done: int, clock: Callable[[], float] = time.monotonic) -> None:
        self.steps, self.clock = steps, clock
        self.begin, self.first = clock(), done

    def seconds_left(self, done: int) -> float:
        """As fast as so far; infinity before the first step."""
        made = done - self.first
        return (self.steps - done) * (self.clock() - self.begin) / made if made > 0 else float("inf")
