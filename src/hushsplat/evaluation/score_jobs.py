"""The second half of an evaluation: metrics of stored frames, LPIPS by the frame, ColorVideoVDP by the video."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

import numpy as np
from jaxtyping import UInt8
from numpy import ndarray as Array
from PIL import Image as Pillow

from hushsplat.evaluation.draw_jobs import EXPECTED, picture_path
from hushsplat.evaluation.perceptual import DISPLAY, LPIPS, cvvdp_of, lpips_of
from hushsplat.evaluation.shots import Method, SceneSource, Shot
from hushsplat.types.errors import EvaluationError

SCORED_METRICS = (*LPIPS, "cvvdp")


@dataclass(frozen=True)
class ScoreJob:
    """One metric of some frames, or of the whole video, of one method on one shot."""

    shot: Shot
    method: Method
    frames: tuple[int, ...]
    metric: str  # of SCORED_METRICS
    weights: Path | None = None  # of LPIPS
    drawn: str = ""  # which job drew the frames: other frames are another score
    display: str = DISPLAY  # of ColorVideoVDP

    @property
    def cost(self) -> int:
        """Frames to score, for a progress bar."""
        return len(self.frames)

    @property
    def group(self) -> SceneSource:
        """In the order of the scenes."""
        return self.shot.scene

    @property
    def takes_all_cores(self) -> bool:
        """Several run side by side."""
        return False

    def files(self, folder: Path) -> list[Path]:
        """It stores none."""
        return []

    def run(self, folder: Path, threads: int) -> dict[str, list[float | None]]:
        """The metric's values: one for each frame, or a single one of a video."""
        shown = self._loaded(folder, self.method)
        expected = self._loaded(folder, EXPECTED)
        if self.metric == "cvvdp":
            return {"cvvdp": [cvvdp_of(shown, expected, self.shot.fps, self.display)]}
        if self.weights is None:
            raise EvaluationError("lpips needs its weights.")
        return {self.metric: [*lpips_of(self.metric, shown, expected, self.weights)]}

    def _loaded(self, folder: Path, method: Method) -> UInt8[Array, "n h w 3"]:
        return np.stack([load_bytes(picture_path(folder, self.shot, method, frame)) for frame in self.frames])


def load_bytes(path: Path) -> UInt8[Array, "h w 3"]:
    """A stored picture."""
    try:
        with Pillow.open(path, formats=("PNG",)) as image:
            return np.asarray(image.convert("RGB"))
    except OSError as error:
        raise EvaluationError(
            f"{path}: a frame that was drawn cannot be read: {error}; delete the folder and evaluate again."
        ) from error
