"""A track rendered to a video: drawn in turn with the clients' frames, with progress messages, cancellable."""

from __future__ import annotations

import asyncio
import secrets
import threading
from collections.abc import Awaitable, Callable, Iterator
from concurrent.futures import CancelledError, Future
from concurrent.futures import TimeoutError as FutureTimeout
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

from jaxtyping import Float32
from numpy import ndarray as Array

from hushsplat.io.strict_json import Fields, described
from hushsplat.io.tracks import track_from_json
from hushsplat.io.video import video_writer
from hushsplat.types.errors import HushsplatError, ViewError
from hushsplat.types.image import Pixels
from hushsplat.types.track import Track
from hushsplat.viewer.drawing import STUCK_S
from hushsplat.viewer.encoding import composed
from hushsplat.viewer.frame_renderer import RenderedFrame, bytes_per_px
from hushsplat.viewer.protocol import Draw
from hushsplat.viewer.scene_entry import SceneEntry
from hushsplat.viewer.service import RenderService

MAX_FRAMES = 20_000  # of a video: eleven minutes at 30 frames a second
MAX_PIXELS = 3840 * 2160
PROGRESS_EVERY_S = 0.1


@dataclass(frozen=True)
class VideoRequest:
    """What to make.

    Attributes:
        track: at the video's frame rate and size.
        fps: frames a second.
        entry: the scene.
        draw: methods and settings.
        divider: 0..1, where the second side begins.
        environment: of the page's background.
    """

    track: Track
    fps: float
    entry: SceneEntry
    draw: Draw
    divider: float
    environment: Float32[Array, "h w 3"] | None = None

    @staticmethod
    def parse(content: Any, entry: SceneEntry, draw: Draw) -> VideoRequest:
        """A request as the page sends it: a track, a frame rate and a size."""
        if not isinstance(content, dict):
            raise ViewError(f"the video was refused: it is {described(content)}, expected an object.")
        fields = Fields("the video was refused", content, ViewError)
        given = content.get("track")
        if not isinstance(given, dict):
            raise ViewError(f"the video was refused: track is {described(given)}, expected an object.")
        fps, width, height = fields.number("fps"), fields.pixels("width"), fields.pixels("height")
        if not 1 <= fps <= 120:
            raise ViewError(f"the video was refused: fps is {fps:g}, expected 1 to 120.")
        if width * height > MAX_PIXELS or max(width, height) > 4096:
            raise ViewError(f"the video was refused: {width}×{height} px are more than 4096 a side or 3840×2160.")
        divider = fields.number("divider", 1.0)
        if not 0 <= divider <= 1:
            raise ViewError(f"the video was refused: divider is {divider:g}, expected 0 to 1.")
        track = track_from_json("the track", given)
        if track.duration_s * fps > MAX_FRAMES:
            raise ViewError(f"the video was refused: it has more than {MAX_FRAMES} frames; make it shorter.")
        return VideoRequest(track.resampled(fps).resized(width, height), fps, entry, draw, divider)


class Cancelled(HushsplatError):
    """The page does not want this video any more."""


class Video:
    """A video that is being made, or is ready."""

    def __init__(
        self, service: RenderService, request: VideoRequest, send: Callable[[dict[str, Any]], Awaitable[None]]
    ) -> None:
        self.id = secrets.token_urlsafe(24)
        self.path: Path | None = None  # once it is there
        self.downloads = 0  # that are being sent
        self._service = service
        self._request = request
        self._send = send
        self._cancelled = threading.Event()
        self._written = 0  # frames
        self._task = asyncio.create_task(self._make())

    @property
    def done(self) -> bool:
        """Whether it is ready, cancelled or failed."""
        return self._task.done()

    def cancel(self) -> None:
        """Stop after the current frame; the page gets a message then."""
        self._cancelled.set()

    async def discard(self) -> None:
        """Stop, and remove the file."""
        self.cancel()
        await asyncio.gather(self._task, return_exceptions=True)
        self.remove()

    def remove(self) -> None:
        """Remove the file, if it is there."""
        if self.path is not None:
            self.path.unlink(missing_ok=True)

    async def _make(self) -> None:
        try:
            track, draw = self._request.track, self._request.draw
            needed = track.width * track.height * bytes_per_px(draw, self._request.entry.scene.has_payload)
            self._service.memory.pin(self, needed, "the video")
            await self._draw_and_send()
        except ViewError as error:
            await self._send_state("failed", self._written, message=str(error))
        finally:
            self._service.memory.release(self)

    async def _draw_and_send(self) -> None:
        path = self._service.new_file(".mp4")
        writing = asyncio.ensure_future(self._service.make_video(partial(self._write, path)))
        reported = -1
        while not writing.done():
            if reported != self._written:
                reported = self._written
                await self._send_state("drawing", reported)
            await asyncio.wait([writing], timeout=PROGRESS_EVERY_S)
        try:
            writing.result()
        except Cancelled:
            await self._send_state("cancelled", self._written)
        except (HushsplatError, MemoryError) as error:
            await self._send_state("failed", self._written, message=str(error) or "not enough memory for this video.")
        else:
            self.path = path
            await self._send_state("ready", self._written, bytes=path.stat().st_size)

    async def _send_state(self, state: str, frame: int, **more: Any) -> None:
        total = len(self._request.track)
        await self._send({"type": "video", "id": self.id, "state": state, "frame": frame, "frames": total, **more})

    def _write(self, path: Path) -> None:
        """Runs in a thread of its own: submits frames to the drawing thread, encodes each while the next is drawn."""
        request, service = self._request, self._service
        renderer = service.new_renderer(request.entry)
        renderer.environment = request.environment

        def render(index: int) -> Iterator[RenderedFrame | None]:
            return renderer.render(request.track.camera(index), request.draw, index)

        total = len(request.track)
        with video_writer(path, request.track.width, request.track.height, request.fps) as writer:
            work = render(0)
            pending = service.submit(partial(next, work))
            for index in range(total):
                while (frame := _drawn(pending)) is None:
                    self._check_cancelled()
                    pending = service.submit(partial(next, work))
                self._check_cancelled()
                if index + 1 < total:
                    work = render(index + 1)
                    pending = service.submit(partial(next, work))
                writer.write(_whole(frame, request.divider))
                self._written = index + 1

    def _check_cancelled(self) -> None:
        if self._cancelled.is_set():
            raise Cancelled("the video was cancelled.")


def _drawn(pending: Future[RenderedFrame | None]) -> RenderedFrame | None:
    try:
        return pending.result(2 * STUCK_S)
    except (CancelledError, FutureTimeout) as error:
        raise ViewError("the video was given up: drawing was stuck; try again with a smaller picture.") from error


def _whole(frame: RenderedFrame, divider: float) -> Pixels:
    return frame.pictures[0] if len(frame.pictures) == 1 else composed(frame, divider)
