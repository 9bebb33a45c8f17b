"""A track as a video: drawn in turn with everybody's frames, told about while it grows, stopped when asked to."""

from __future__ import annotations

import asyncio
import secrets
import threading
from collections.abc import Awaitable, Callable, Iterator
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
from jaxtyping import Float32
from numpy import ndarray as Array

from hushsplat.io.images import to_bytes
from hushsplat.io.strict_json import Fields, described
from hushsplat.io.tracks import track_from_json
from hushsplat.io.video import video_writer
from hushsplat.types.errors import HushsplatError, ViewError
from hushsplat.types.track import Track
from hushsplat.viewer.frame_renderer import Drawn, Painter, composed
from hushsplat.viewer.protocol import Draw
from hushsplat.viewer.scene_entry import Exhibit
from hushsplat.viewer.service import Studio

MAX_FRAMES = 20_000  # of a video: eleven minutes at 30 frames a second
MAX_PIXELS = 3840 * 2160
TOLD_EVERY_S = 0.1


@dataclass(frozen=True)
class VideoOrder:
    """What to make."""

    track: Track  # at the video's frame rate and size
    fps: float
    exhibit: Exhibit
    draw: Draw
    divider: float  # 0..1: where the second side begins

    @staticmethod
    def parse(content: Any, exhibit: Exhibit, draw: Draw) -> VideoOrder:
        """An order as the page sends it: a track, a frame rate and a size."""
        if not isinstance(content, dict):
            raise ViewError(f"the video was refused: it is {described(content)}, expected an object.")
        order = Fields("the video was refused", content, ViewError)
        given = content.get("track")
        if not isinstance(given, dict):
            raise ViewError(f"the video was refused: track is {described(given)}, expected an object.")
        fps, width, height = order.number("fps"), order.pixels("width"), order.pixels("height")
        if not 1 <= fps <= 120:
            raise ViewError(f"the video was refused: fps is {fps:g}, expected 1 to 120.")
        if width * height > MAX_PIXELS or max(width, height) > 4096:
            raise ViewError(f"the video was refused: {width}×{height} px are more than 4096 a side or 3840×2160.")
        divider = order.number("divider", 1.0)
        if not 0 <= divider <= 1:
            raise ViewError(f"the video was refused: divider is {divider:g}, expected 0 to 1.")
        track = track_from_json("the track", given)
        if track.duration_s * fps > MAX_FRAMES:
            raise ViewError(f"the video was refused: it has more than {MAX_FRAMES} frames; make it shorter.")
        return VideoOrder(track.resampled(fps).resized(width, height), fps, exhibit, draw, divider)


class Cancelled(HushsplatError):
    """Somebody does not want this video any more."""


class Video:
    """A video in the making, or made."""

    def __init__(self, studio: Studio, order: VideoOrder, tell: Callable[[dict[str, Any]], Awaitable[None]]) -> None:
        self.id = secrets.token_urlsafe(24)
        self.path: Path | None = None  # once it is there
        self._studio = studio
        self._order = order
        self._tell = tell
        self._unwanted = threading.Event()
        self._progress = 0  # frames that are written
        self._task = asyncio.create_task(self._make())

    @property
    def done(self) -> bool:
        """Whether nothing more will happen."""
        return self._task.done()

    def cancel(self) -> None:
        """Stop after the frame at hand; the page is told when it has."""
        self._unwanted.set()

    async def discard(self) -> None:
        """Stop, and remove the file."""
        self.cancel()
        await asyncio.gather(self._task, return_exceptions=True)
        if self.path is not None:
            self.path.unlink(missing_ok=True)

    async def _make(self) -> None:
        path = self._studio.new_file(".mp4")
        writing = asyncio.ensure_future(self._studio.make_video(partial(self._write, path)))
        told = -1
        while not writing.done():
            if told != self._progress:
                told = self._progress
                await self._say("drawing", told)
            await asyncio.wait([writing], timeout=TOLD_EVERY_S)
        try:
            writing.result()
        except Cancelled:
            await self._say("cancelled", self._progress)
        except (HushsplatError, MemoryError) as error:
            await self._say("failed", self._progress, message=str(error) or "not enough memory for this video.")
        else:
            self.path = path
            await self._say("ready", self._progress, bytes=path.stat().st_size)

    async def _say(self, state: str, frame: int, **more: Any) -> None:
        total = len(self._order.track)
        await self._tell({"type": "video", "id": self.id, "state": state, "frame": frame, "frames": total, **more})

    def _write(self, path: Path) -> None:
        """Runs in a thread of its own; each frame is drawn in turn with everybody's, the next while this is encoded."""
        order, studio = self._order, self._studio
        painter = Painter(studio.weights, studio.options.render)

        def paint(index: int) -> Iterator[Drawn | None]:
            return painter.paint(order.exhibit.gaussians, order.track.camera(index), order.draw, index)

        total = len(order.track)
        with video_writer(path, order.track.width, order.track.height, order.fps) as writer:
            work = paint(0)
            coming = studio.submit(partial(next, work))
            for index in range(total):
                while (drawn := coming.result()) is None:
                    self._check_wanted()
                    coming = studio.submit(partial(next, work))
                self._check_wanted()
                if index + 1 < total:
                    work = paint(index + 1)
                    coming = studio.submit(partial(next, work))
                writer.write(_whole(drawn, order.divider))
                self._progress = index + 1

    def _check_wanted(self) -> None:
        if self._unwanted.is_set():
            raise Cancelled("the video was cancelled.")


def _whole(drawn: Drawn, divider: float) -> Float32[Array, "h w 3"]:
    if len(drawn.pictures) == 1:
        return drawn.pictures[0]
    return composed(tuple(to_bytes(color) for color in drawn.pictures), divider).astype(np.float32) / 255
