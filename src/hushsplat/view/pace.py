"""How sharp a moving picture may be: the machine decides, frame by frame."""

from __future__ import annotations

SCALES = (1.0, 0.8, 0.64, 0.5, 0.4, 0.32, 0.25)  # of the canvas' sides
TARGET_MS = 50.0  # ours: twenty frames a second feel like moving
# Some of a frame's time does not depend on its pixels: the Gaussians are as many at any size. Where that alone is more
# than the target, a frame may take this much longer; smaller ones would be worse to look at and hardly faster.
OVER_FIXED = 1.5
FIXED_SHARE = 0.35  # of a frame of full size, until frames of two sizes have been seen
TOO_SLOW = 1.15  # of the budget; the gap keeps the size from jumping to and fro
PATIENCE = 6  # frames in a row that could be sharper before they are
MEMORY = 0.7  # how much of a time is that of the frames before


class Pace:
    """The scale of a client's moving frames, learned from how long sharp and moving ones take."""

    def __init__(self) -> None:
        self._level = 2
        self._sharp_ms: float | None = None
        self._moving_ms: float | None = None  # at this level
        self._fixed_share = FIXED_SHARE
        self._could = 0

    @property
    def scale(self) -> float:
        """What to draw the next moving frame at."""
        return SCALES[self._level]

    def took_sharp(self, time_ms: float) -> None:
        """Learn from a frame of full size."""
        self._sharp_ms = _blended(self._sharp_ms, time_ms)
        if self._moving_ms is None:  # nothing has moved yet: begin with what is expected to be right
            self._level = self._wanted()[0]

    def took(self, scale: float, time_ms: float) -> None:
        """Learn from a frame that was drawn at this scale while the camera moved."""
        if scale != self.scale:  # asked for before the last change
            return
        self._moving_ms = _blended(self._moving_ms, time_ms)
        wanted, budget_ms = self._wanted()
        if wanted > self._level and self._moving_ms > TOO_SLOW * budget_ms:
            self._change(wanted)
        elif wanted < self._level:
            self._could += 1
            if self._could >= PATIENCE:
                self._change(self._level - 1)
        else:
            self._could = 0

    def _change(self, level: int) -> None:
        self._level, self._moving_ms, self._could = level, None, 0

    def _wanted(self) -> tuple[int, float]:
        """The sharpest level that stays within the budget, and the budget."""
        fixed, per_share = self._model()
        budget_ms = max(TARGET_MS, OVER_FIXED * fixed)
        fitting = [level for level, scale in enumerate(SCALES) if fixed + per_share * scale**2 <= budget_ms]
        return (fitting[0] if fitting else len(SCALES) - 1), budget_ms

    def _model(self) -> tuple[float, float]:
        """Milliseconds of a frame without pixels, and of all pixels of the canvas."""
        pixels = self.scale**2
        if self._moving_ms is not None and self._sharp_ms is not None and pixels < 1:
            slope = max(0.0, (self._sharp_ms - self._moving_ms) / (1 - pixels))
            fixed = max(0.0, self._moving_ms - slope * pixels)
            self._fixed_share = fixed / max(fixed + slope, 1e-9)
            return fixed, slope
        seen = [ms / (self._fixed_share + (1 - self._fixed_share) * share) for ms, share in self._seen(pixels)]
        full = seen[0] if seen else TARGET_MS
        return self._fixed_share * full, (1 - self._fixed_share) * full

    def _seen(self, pixels: float) -> list[tuple[float, float]]:
        known = ((self._moving_ms, pixels), (self._sharp_ms, 1.0))
        return [(ms, share) for ms, share in known if ms is not None]


def _blended(before: float | None, now: float) -> float:
    return now if before is None else MEMORY * before + (1 - MEMORY) * now
