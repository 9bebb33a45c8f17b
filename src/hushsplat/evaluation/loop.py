"""The moving picture that the demo's page opens with: raw beside hush, with a divider that wanders."""

from __future__ import annotations

import base64
from dataclasses import dataclass
from html import escape
from pathlib import Path
from time import perf_counter

import numpy as np
from jaxtyping import Float32
from numpy import ndarray as Array

from hushsplat.engines.base import engine
from hushsplat.io.video import video_writer
from hushsplat.stream import Stream
from hushsplat.types.gaussians import Gaussians
from hushsplat.types.metrics import psnr
from hushsplat.types.options import RenderOptions
from hushsplat.types.track import Track

LEFT, RIGHT, SORTED = "raw", "hush", "reference"
FPS = 24.0
WANDER = 0.32  # of the width to either side of the middle
LINE_PX = 2
MEASURED_EVERY = 12  # frames: the sorted picture is drawn beside them


@dataclass(frozen=True)
class Loop:
    """A video that repeats without a seam, and what was measured while it was drawn."""

    path: Path
    psnr_left: float  # dB, to the sorted picture
    psnr_right: float
    time_share: float  # of a frame of `hush` in the time of the sorted one

    def html(self) -> str:
        """The top of a page: the video, a sentence, three numbers."""
        video = base64.b64encode(self.path.read_bytes()).decode()
        numbers = (
            (f"{self.psnr_left:.1f} dB", f"{LEFT} to the sorted picture, in this loop"),
            (f"{self.psnr_right:.1f} dB", f"{RIGHT} to the sorted picture, in this loop"),
            (f"{self.time_share:.2f} ×", f"the time of sorting, for {RIGHT} on this machine"),
        )
        cells = "".join(f"<div><b>{escape(value)}</b><span>{escape(text)}</span></div>" for value, text in numbers)
        return (
            f'<section class="hero"><video src="data:video/mp4;base64,{video}" autoplay loop muted playsinline></video>'
            f"<p>On the left {LEFT}, one random sample per pixel; on the right {RIGHT}, only the Gaussians that were "
            f'seen and still matter, sorted and blended.</p><div class="numbers">{cells}</div></section>'
        )


def write_loop(gaussians: Gaussians, track: Track, path: Path) -> Loop:
    """Draw the track there and back, and write the video."""
    drawing, options = engine("cpu"), RenderOptions()
    scene = drawing.upload(gaussians)
    there = [track.camera(index) for index in range(len(track))]
    cameras = [*there, *there[-2:0:-1]]
    stream = Stream(drawing, scene, [LEFT, RIGHT], options=options)
    found: list[tuple[float, float, float]] = []
    with video_writer(path, track.width, track.height, FPS) as writer:
        for index, camera in enumerate(cameras):
            frame = stream.step(camera)
            left, right = (image.numpy().color for image in frame.images)
            writer.write(_wiped(left, right, 0.5 + WANDER * np.sin(2 * np.pi * index / len(cameras))))
            if index % MEASURED_EVERY == MEASURED_EVERY - 1 or len(cameras) < MEASURED_EVERY:
                start = perf_counter()
                expected = drawing.render(scene, camera, SORTED, options).numpy().color
                share = frame.passes_ms[RIGHT] / (1000 * (perf_counter() - start))
                found.append((psnr(left, expected), psnr(right, expected), share))
    return Loop(path, *np.median(found, axis=0).tolist())


def _wiped(left: Float32[Array, "h w 3"], right: Float32[Array, "h w 3"], share: float) -> Float32[Array, "h w 3"]:
    """The left part of one picture, the right part of another, a line between."""
    column = round(share * left.shape[1])
    picture = np.concatenate([left[:, :column], right[:, column:]], axis=1)
    picture[:, max(0, column - LINE_PX // 2) : column + LINE_PX // 2] = 1
    return picture
