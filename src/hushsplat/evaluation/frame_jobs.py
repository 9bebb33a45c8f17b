"""A track drawn by jobs: frames of methods without state in parts, a method with state from the first frame on."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import numpy as np
from jaxtyping import Float32
from numpy import ndarray as Array

from hushsplat.evaluation.draw_jobs import Drawing, save_frame, uploaded
from hushsplat.evaluation.score_jobs import load_bytes
from hushsplat.evaluation.shots import SceneSource
from hushsplat.io.legend import with_label
from hushsplat.methods import BLENDED, LEARNED, configure
from hushsplat.spec.settings import DenoiserSettings
from hushsplat.spec.weights import DenoiserWeights
from hushsplat.types.camera import Camera
from hushsplat.types.options import Noise, RenderOptions

FRAMES_PER_JOB = 24


@dataclass(frozen=True)
class FrameJob:
    """Some frames of a track by one method, stored as PNG."""

    scene: SceneSource
    method: str
    cameras: tuple[Camera, ...] = field(repr=False)
    first: int  # number of the first of these frames
    noise: Noise  # of frame 0
    options: RenderOptions
    label: str = ""  # written into the picture
    settings: DenoiserSettings | None = None  # of a learned method
    weights: DenoiserWeights | None = None

    @property
    def group(self) -> SceneSource:
        """A worker keeps the scene that it drew last."""
        return self.scene

    @property
    def cost(self) -> int:
        """Frames, for a progress bar."""
        return len(self.cameras)

    @property
    def takes_all_cores(self) -> bool:
        """Several run side by side."""
        return False

    def files(self, folder: Path) -> list[Path]:
        """A picture for each frame."""
        return [folder / self.method / f"{self.first + index:06d}.png" for index in range(len(self.cameras))]

    def run(self, folder: Path, threads: int) -> dict[str, Any]:
        """Draw and store them."""
        drawing = Drawing(*uploaded(self.scene), replace(self.options, threads=threads))
        learned = self.method in LEARNED
        method = configure(self.method, weights=self.weights, settings=self.settings) if learned else self.method
        stream = drawing.stream(method, noise=replace(self.noise, frame=self.noise.frame + self.first))
        for camera, path in zip(self.cameras, self.files(folder), strict=True):
            color = stream.step(camera).images[0].numpy().color
            save_frame(path, with_label(color, self.label) if self.label else color)
        return {}


def frame_jobs(whole: FrameJob) -> list[FrameJob]:
    """The whole of a track as jobs: in parts, if the method keeps nothing from frame to frame."""
    if whole.method not in (*BLENDED, "raw"):
        return [whole]
    starts = range(0, len(whole.cameras), FRAMES_PER_JOB)
    return [replace(whole, cameras=whole.cameras[s : s + FRAMES_PER_JOB], first=s) for s in starts]


def side_by_side(tracks: Sequence[FrameJob], folder: Path) -> Iterator[Float32[Array, "h w 3"]]:
    """The stored frames of all methods, one picture after the other."""
    for paths in zip(*(track.files(folder) for track in tracks), strict=True):
        yield np.concatenate([load_bytes(path) for path in paths], axis=1).astype(np.float32) / 255
