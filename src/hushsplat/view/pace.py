"""How sharp a moving picture may be: the machine decides, frame by frame."""

from __future__ import annotations

SCALES = (1.0, 0.8, 0.64, 0.5, 0.4, 0.32, 0.25)  # of the canvas' sides
TARGET_MS = 50.0  # ours: twenty frames a second feel like moving
# Of the sides: twice the pixels take less than twice the time, because the Gaussians stay as many.
EXPONENT = 1.5
TOO_SLOW, FAST_ENOUGH = 1.25, 0.85  # of the target; the gap keeps the size from jumping to and fro
PATIENCE = 6  # fast frames in a row before it gets sharper


class Pace:
    """The scale of a client's moving frames."""

    def __init__(self) -> None:
        self._level = 2
        self._fast = 0

    @property
    def scale(self) -> float:
        """What to draw the next moving frame at."""
        return SCALES[self._level]

    def took(self, scale: float, time_ms: float) -> None:
        """Learn from a frame that was drawn at this scale, while the camera moved."""
        if scale != self.scale:  # asked for before the last change
            return
        if time_ms > TOO_SLOW * TARGET_MS:
            self._fast = 0
            while self._level < len(SCALES) - 1 and self._expected(time_ms, scale, self._level) > TARGET_MS:
                self._level += 1
            return
        sharper = self._level - 1
        if sharper < 0 or self._expected(time_ms, scale, sharper) > FAST_ENOUGH * TARGET_MS:
            self._fast = 0
            return
        self._fast += 1
        if self._fast >= PATIENCE:
            self._level, self._fast = sharper, 0

    @staticmethod
    def _expected(time_ms: float, scale: float, level: int) -> float:
        return time_ms * (SCALES[level] / scale) ** EXPONENT
