"""Adaptive resolution: the scale of moving frames follows how long they take."""

from __future__ import annotations

SCALES = (1.0, 0.8, 0.64, 0.5, 0.4, 0.32, 0.25)  # of the canvas' sides
FIRST = 2
TARGET_MS = 50.0  # ours: 20 frames a second feel smooth
FIXED_SHARE = 0.35  # of a frame's time is expected not to depend on its pixels: the Gaussians are as many at any size
TOO_SLOW, FAST_ENOUGH = 1.15, 0.95  # of the target; the gap keeps the size from jumping to and fro
SETTLED = 3  # frames at one size before they are judged; the first one is not: it resizes the histories
FAR_TOO_SLOW = 3.0  # of the target: there is no time to wait for three of these
PATIENCE = 6  # frames in a row that could be sharper before they are
# Fewer pixels must save at least this share of the time that they would if it were proportional to them. Where they do
# not, as for a huge scene on a small canvas, the larger scale is kept.
WORTH = 0.25
HOLD = 90  # frames until it is tried again
MEMORY = 0.75  # weight of the previous frames in the smoothed time


class Pace:
    """The scale of a client's moving frames."""

    def __init__(self) -> None:
        self._hold = 0
        self._time_ms = 0.0
        self._before: tuple[int, float] | None = None  # level and time before it came down to this one
        self._start(FIRST)

    @property
    def scale(self) -> float:
        """Of the next moving frame, relative to the canvas' sides."""
        return SCALES[self._level]

    def took(self, scale: float, time_ms: float) -> None:
        """Adapt to the time of a frame that was drawn at this scale while the camera moved."""
        if scale != self.scale:  # asked for before the last change
            return
        self._frames += 1
        self._hold = max(0, self._hold - 1)
        self._time_ms = time_ms if self._frames <= 2 else MEMORY * self._time_ms + (1 - MEMORY) * time_ms
        if self._frames < SETTLED and self._time_ms < FAR_TOO_SLOW * TARGET_MS:
            return
        if self._frames < 2 or self._steps_back():
            return
        if self._time_ms > TOO_SLOW * TARGET_MS and self._hold == 0:
            self._step_down()
        else:
            self._step_up()

    def _start(self, level: int) -> None:
        self._level, self._frames, self._time_ms, self._could = level, 0, 0.0, 0

    def _expected_ms(self, level: int) -> float:
        return self._time_ms * (FIXED_SHARE + (1 - FIXED_SHARE) * (SCALES[level] / self.scale) ** 2)

    def _step_down(self) -> None:
        coarser = range(self._level + 1, len(SCALES))
        if coarser:
            self._before = (self._level, self._time_ms)
            self._start(next((level for level in coarser if self._expected_ms(level) <= TARGET_MS), coarser[-1]))

    def _steps_back(self) -> bool:
        """Return to the larger scale if the smaller one has saved too little time; judged once."""
        if self._before is None:
            return False
        (level, before_ms), self._before = self._before, None
        pixels = (self.scale / SCALES[level]) ** 2
        if 1 - self._time_ms / before_ms >= WORTH * (1 - pixels):
            return False
        self._start(level)
        self._hold = HOLD
        return True

    def _step_up(self) -> None:
        sharper = self._level - 1
        self._could = self._could + 1 if sharper >= 0 and self._expected_ms(sharper) <= FAST_ENOUGH * TARGET_MS else 0
        if self._could >= PATIENCE:
            self._start(sharper)
