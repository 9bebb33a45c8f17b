"""Adaptive quality: resolution and level of detail of moving frames follow how long they take."""

from __future__ import annotations

from typing import NamedTuple


class Step(NamedTuple):
    """How moving frames are drawn."""

    scale: float  # of the canvas' sides
    spacing_px: float = 0.0  # of the Gaussians in the picture, see types/levels.py; 0: the scene as it is


SCALES = tuple(Step(scale) for scale in (1.0, 0.8, 0.64, 0.5, 0.4, 0.32, 0.25))
# Where there are levels of detail: first fewer Gaussians, then fewer pixels. Ours, by PSNR and time of bonsai.
LEVELS = (
    *(Step(1.0, 15.0), Step(0.8, 20.0), Step(0.64, 20.0), Step(0.64, 30.0), Step(0.64, 45.0), Step(0.64, 70.0)),
    *(Step(scale, 70.0) for scale in (0.5, 0.4, 0.32, 0.25)),
)
FIRST = 2
SPACING_POWER = -0.35  # of the spacing: the time of a frame, measured with hush on bonsai
TARGET_MS = 50.0  # ours: 20 frames a second feel smooth
FIXED_SHARE = 0.35  # of a frame's time is expected not to depend on its pixels: the Gaussians are as many at any size
TOO_SLOW, FAST_ENOUGH = 1.15, 0.95  # of the target; the gap keeps the size from jumping to and fro
SETTLED = 3  # frames at one size before they are judged; the first one is not: it resizes the histories
FAR_TOO_SLOW = 3.0  # of the target: there is no time to wait for three of these
PATIENCE = 6  # frames in a row that could be sharper before they are
# A step must save at least this share of the time that it would if that were proportional to pixels and Gaussians.
# Where it does not, as for a huge scene on a small canvas, the one before is kept.
WORTH = 0.25
HOLD = 90  # frames until it is tried again, and so is a sharper step that was too slow
MEMORY = 0.75  # weight of the previous frames in the smoothed time


class Pace:
    """The steps that a client's moving frames take."""

    def __init__(self, has_levels: bool = False) -> None:
        self._steps = LEVELS if has_levels else SCALES
        self._hold = self._stay = self._rising = 0  # frames: without a step down, without a step up, since a step up
        self._time_ms = self._waited_ms = 0.0
        self._before: tuple[int, float] | None = None  # level and time before it came down to this one
        self._start(FIRST)

    @property
    def step(self) -> Step:
        """Of the next moving frame."""
        return self._steps[self._level]

    def took(self, step: Step, time_ms: float, waited_ms: float = 0.0) -> None:
        """Adapt to the time of a frame that was drawn with this step while the camera moved.

        Args:
            step: it was drawn with.
            time_ms: from the time when it could have been drawn to its end.
            waited_ms: of this, until the page had shown frames before it.
        """
        if step != self.step:  # asked for before the last change
            return
        self._frames += 1
        self._hold, self._stay, self._rising = (max(0, left - 1) for left in (self._hold, self._stay, self._rising))
        memory = 0.0 if self._frames <= 2 else MEMORY
        self._time_ms = memory * self._time_ms + (1 - memory) * time_ms
        self._waited_ms = memory * self._waited_ms + (1 - memory) * waited_ms
        if self._frames < SETTLED and self._time_ms < FAR_TOO_SLOW * TARGET_MS:
            return
        if self._frames < 2 or self._steps_back():
            return
        if self._time_ms > TOO_SLOW * TARGET_MS and self._hold == 0:
            self._step_down()
        else:
            self._step_up()

    def _start(self, level: int) -> None:
        self._level, self._frames, self._could = level, 0, 0
        self._time_ms = self._waited_ms = 0.0

    def _expected_ms(self, level: int) -> float:
        """Of another step. Nobody knows whether the page's share depends on the pixels: what is hoped for is tried."""
        pixels, gaussians = self._work(level, self._level)
        work = (FIXED_SHARE + (1 - FIXED_SHARE) * pixels) * gaussians
        return min(work * self._time_ms, self._waited_ms + work * (self._time_ms - self._waited_ms))

    def _work(self, level: int, other: int) -> tuple[float, float]:
        """Pixels of a step over those of another, and the time of its Gaussians over that of the other's."""
        one, two = self._steps[level], self._steps[other]
        gaussians = (one.spacing_px / two.spacing_px) ** SPACING_POWER if two.spacing_px else 1.0
        return (one.scale / two.scale) ** 2, gaussians

    def _step_down(self) -> None:
        coarser = range(self._level + 1, len(self._steps))
        if coarser:
            self._stay = HOLD if self._rising else self._stay
            self._before = (self._level, self._time_ms)
            self._start(next((level for level in coarser if self._expected_ms(level) <= TARGET_MS), coarser[-1]))

    def _steps_back(self) -> bool:
        """Return to the step before if this one has saved too little time; judged once."""
        if self._before is None:
            return False
        (level, before_ms), self._before = self._before, None
        pixels, gaussians = self._work(self._level, level)
        if 1 - self._time_ms / before_ms >= WORTH * (1 - pixels * gaussians):
            return False
        self._start(level)
        self._hold = HOLD
        return True

    def _step_up(self) -> None:
        sharper = self._level - 1
        self._could = self._could + 1 if sharper >= 0 and self._expected_ms(sharper) <= FAST_ENOUGH * TARGET_MS else 0
        if self._could >= PATIENCE and self._stay == 0:
            self._start(sharper)
            self._rising = HOLD
