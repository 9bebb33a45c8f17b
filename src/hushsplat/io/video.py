"""Writing H.264 video in an MP4 file, frame by frame; PyAV brings the encoder along."""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import contextmanager
from fractions import Fraction
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from hushsplat.io.atomic import atomic_write
from hushsplat.types.errors import HushsplatError
from hushsplat.types.image import Pixels, to_bytes

if TYPE_CHECKING:
    import av

VIDEO_SUFFIXES = (".mp4",)
DEFAULT_CRF = 18  # x264's "visually lossless"; 0 is lossless, 51 the worst
MAX_CRF = 51
MAX_FPS = 1000.0


class VideoWriter:
    """Takes frames of one size; made by `video_writer`."""

    def __init__(self, container: av.container.OutputContainer, width: int, height: int, fps: float, crf: int) -> None:
        self._container = container
        self._shape = (height, width, 3)
        stream = container.add_stream("libx264", rate=Fraction(fps).limit_denominator(1001))
        stream.width, stream.height = _even(width), _even(height)
        stream.pix_fmt = "yuv420p"  # what every player opens
        stream.options = {"crf": str(crf), "preset": "medium"}
        # Tagged in the file, because players guess by the size otherwise: BT.709, 16..235.
        stream.codec_context.colorspace = 1
        stream.codec_context.color_primaries = 1
        stream.codec_context.color_trc = 1
        stream.codec_context.color_range = 1
        self._stream = stream

    def write(self, color: Pixels) -> None:
        """Append one frame; an odd size is filled up by repeating the last row or column."""
        import av

        if color.shape != self._shape:
            raise HushsplatError(f"a frame of {color.shape} came into a video of {self._shape}.")
        height, width = color.shape[:2]
        pixels = to_bytes(color)
        if (height, width) != (_even(height), _even(width)):
            pixels = np.pad(pixels, ((0, height % 2), (0, width % 2), (0, 0)), mode="edge")
        frame = av.VideoFrame.from_ndarray(pixels, format="rgb24")
        frame = frame.reformat(format="yuv420p", dst_colorspace="ITU709", dst_color_range="MPEG")
        self._container.mux(self._stream.encode(frame))

    def finish(self) -> None:
        """Flush what the encoder still holds."""
        self._container.mux(self._stream.encode(None))


@contextmanager
def video_writer(
    path: str | os.PathLike[str],
    width: int,
    height: int,
    fps: float,
    crf: int = DEFAULT_CRF,  # 0 (lossless) .. 51 (worst)
) -> Iterator[VideoWriter]:
    """Open a video to write; the file only appears when the block ends without an exception."""
    path = Path(path)
    if path.suffix.lower() not in VIDEO_SUFFIXES:
        raise HushsplatError(f"{path}: cannot write a video as '{path.suffix}'; give a name that ends in .mp4.")
    if not 0 <= crf <= MAX_CRF:
        raise HushsplatError(f"crf must lie in 0 (lossless) .. {MAX_CRF} (worst), got {crf}.")
    if not 0 < fps <= MAX_FPS:
        raise HushsplatError(f"a video needs more than 0 and at most {MAX_FPS:g} frames a second, got {fps}.")
    import av  # here: it is slow to import

    with atomic_write(path) as temporary:
        try:
            with av.open(str(temporary), "w", format="mp4") as container:
                writer = VideoWriter(container, width, height, fps, crf)
                yield writer
                writer.finish()
        except av.FFmpegError as error:
            raise HushsplatError(f"{path}: the video cannot be encoded: {error}.") from error


def _even(side: int) -> int:
    return side + side % 2
