"""One client: its camera, its methods, and the frames that are drawn and sent to it."""

from __future__ import annotations

import asyncio
import logging
import math
import secrets
import time
from collections.abc import AsyncIterator, Callable, Iterator
from contextlib import asynccontextmanager, contextmanager, suppress
from dataclasses import dataclass
from functools import partial
from typing import Any, Protocol, runtime_checkable

from jaxtyping import Float32
from numpy import ndarray as Array

from hushsplat.engines.cpu.engine import Cancel, Cancelled
from hushsplat.methods import METHODS, drawn_by
from hushsplat.types.camera import Camera
from hushsplat.types.errors import HushsplatError, ViewError
from hushsplat.viewer import protocol
from hushsplat.viewer.drawing import ServiceClosed
from hushsplat.viewer.encoding import jpeg, screenshot
from hushsplat.viewer.frame_renderer import FrameRenderer, RenderedFrame, bytes_per_px
from hushsplat.viewer.pace import Pace, Step
from hushsplat.viewer.protocol import Draw, Look, Message, Side
from hushsplat.viewer.scene_entry import SceneEntry
from hushsplat.viewer.scene_info import legend, place_info, scene_info
from hushsplat.viewer.service import RenderService

MOST_FETCHING = 16  # pictures of places; browsers ask for six at once
IN_FLIGHT = 2  # frames that are drawn or sent and not yet acknowledged
ACTIVE_STILL_FRAMES = 4  # of hush: the first finds nearly all, a few more the rest
BETWEEN_SCALE = 0.64  # of the canvas' sides: the first frame after a stop, if frames were smaller before
DEPTH_EVERY_S = 0.5
VIDEO_CHECK_S = 0.5  # how often a picture that waits for a video to be drawn looks whether it is
STILL_FRAMES = 128  # of a still camera; more would not be seen
STILL_AFTER_S = 0.15  # without a new camera, the next frames have the full resolution
MAX_PIXELS = 2560 * 1600  # of one frame; a larger canvas gets fewer than it has. temporal keeps 128 bytes for each

log = logging.getLogger("hushsplat.viewer")


@runtime_checkable
class Connection(Protocol):
    """How a session reaches its page."""

    async def send_json(self, message: dict[str, Any]) -> None:
        """Send a text message."""

    async def send_bytes(self, message: bytes) -> None:
        """Send a binary message."""


@dataclass(frozen=True)
class FrameRequest:
    """What a frame is drawn for.

    Attributes:
        look: the page's camera.
        draw: methods and settings.
        version: of both and of the scene; a change counts up.
        step: resolution and level of detail.
        moving: whether the camera moved just before, and a sharper frame follows.
    """

    look: Look
    draw: Draw
    version: int
    step: Step
    moving: bool


@dataclass(frozen=True)
class OutgoingFrame:
    """A frame that waits to be encoded and sent.

    Attributes:
        rendered: its pictures.
        request: what it was drawn for.
        number: counts the frames of this client; acknowledgements repeat it.
        still_frames: frames at full resolution since the last change.
        depth: of the middle of the picture, world units; None where nothing is.
    """

    rendered: RenderedFrame
    request: FrameRequest
    number: int
    still_frames: int
    depth: float | None

    def header(self) -> dict[str, Any]:
        """The JSON that is sent with the pictures."""
        return {
            "kind": "frame",
            "frame": self.number,
            "sequence": self.request.look.sequence,
            "width": self.rendered.camera.width,
            "height": self.rendered.camera.height,
            "scale": round(self.request.step.scale, 3),
            "moving": self.request.moving,
            "depth": self.depth,
            "still_frames": self.still_frames,
            "still_limit": _still_limit(self.request.draw),
            "sides": [{"method": side.method, "show": side.show} for side in self.rendered.sides],
            "legends": [legend(scale) for scale in self.rendered.scales],
        }


class Session:
    """Draws frames for one client until its picture is refined, and waits for the next change."""

    def __init__(self, service: RenderService, connection: Connection) -> None:
        self.id = secrets.token_urlsafe(24)
        self.service = service
        self.entry = service.entry
        self.draw = Draw((Side(drawn_by(service.options.method, self.entry.scene.has_payload).name),))
        self._connection = connection
        self.file: str | None = None  # key of the dropped scene that is shown
        self.environment: Float32[Array, "h w 3"] | None = None  # a background that the page has sent
        self._renderer = self._new_renderer(service.entry)
        self._pace = self._new_pace()
        self._look: Look | None = None
        self._moved_at = -STILL_AFTER_S
        self._held = False  # a hand is on the camera
        self._scale = 1.0  # of the last frame
        self._depth: float | None = None  # of the middle of the picture
        self._probed_at = -DEPTH_EVERY_S
        self._version = 0  # counts changes of camera, methods, settings and scene
        self._drawn_version = self._failed_version = -1  # the last that was drawn, the last that failed
        self._still_frames = 0  # at full resolution, of this version
        self._moving_frames = 0  # of this version, at the resolution of moving frames
        self._frames = 0
        self._last: RenderedFrame | None = None
        self._cancel = Cancel()  # of the still frame that is being drawn
        self._changed = asyncio.Event()
        self._slots = asyncio.Semaphore(IN_FLIGHT)
        self._unacknowledged: set[int] = set()
        self._outbox: asyncio.Queue[OutgoingFrame] = asyncio.Queue(1)
        self._tasks: list[asyncio.Task[None]] = []
        self._uploading = False
        self._fetching = 0  # pictures that were asked for and not yet sent
        self._one_picture = asyncio.Lock()
        self._loop: asyncio.AbstractEventLoop | None = None
        service.memory.join(self, self._shrink)

    def start(self, on_failure: Callable[[], object]) -> None:
        """Begin to draw; an unexpected exception is logged and ends the session."""

        def check(task: asyncio.Task[None]) -> None:
            if not task.cancelled() and not isinstance(task.exception(), (ServiceClosed, type(None))):
                log.error("a session failed", exc_info=task.exception())
                on_failure()

        self._loop = asyncio.get_running_loop()
        self._tasks = [asyncio.create_task(self._draw_frames()), asyncio.create_task(self._send_frames())]
        for task in self._tasks:
            task.add_done_callback(check)

    async def close(self) -> None:
        """Stop drawing, and release the scene and all frames."""
        for task in self._tasks:
            task.cancel()
        await asyncio.gather(*self._tasks, return_exceptions=True)
        self._tasks = []
        self.close_file(keep=True)
        self._last = None
        self.service.memory.release(self)

    @property
    def camera(self) -> Camera | None:
        """Of the canvas; None before the first `look`."""
        return None if self._look is None else self._look.camera

    def show_file(self, entry: SceneEntry) -> None:
        """Show a scene that was dropped on the page, without history."""
        self.close_file()
        self.file = self.service.dropped.add(entry)
        self.refine(entry)

    def show_file_again(self, key: str) -> None:
        """The page was loaded again: show the scene that it had, if it is still there."""
        entry = self.service.dropped.join(key)
        if entry is not None:
            self.file = key
            self.refine(entry)

    def close_file(self, keep: bool = False) -> None:
        """Show the viewer's own scene again; `keep` the dropped one for a while, its page may only be loading again."""
        if self.file is not None:
            self.service.dropped.leave(self.file, keep)
            self.file = None
        self.refine(self.service.entry)

    def refine(self, entry: SceneEntry) -> None:
        """Go on with the same scene in another level of detail."""
        self.entry = entry
        self._renderer = self._new_renderer(entry)
        self._pace = self._new_pace()
        self._restart()

    def set_environment(self, environment: Float32[Array, "h w 3"]) -> None:
        """A picture all around, for the background."""
        self.environment = self._renderer.environment = environment
        self._restart()

    def _new_renderer(self, entry: SceneEntry) -> FrameRenderer:
        renderer = self.service.new_renderer(entry)
        renderer.environment = self.environment
        return renderer

    def _new_pace(self) -> Pace:
        return Pace(has_levels=self.entry.has_levels)

    @property
    def rests(self) -> bool:
        """Whether the camera stands still and its first sharp frame is drawn."""
        return self._look is not None and self._still_frames > 0 and self._drawn_version == self._version

    @contextmanager
    def uploading(self) -> Iterator[None]:
        """One body of a request at a time."""
        if self._uploading:
            raise ViewError("a file of this page is being uploaded already; wait until it is there.")
        self._uploading = True
        try:
            yield
        finally:
            self._uploading = False

    @asynccontextmanager
    async def fetching(self) -> AsyncIterator[None]:
        """One picture of a place at a time: the pages of others need not wait for all of ours."""
        if self._fetching >= MOST_FETCHING:
            raise ViewError(f"more than {MOST_FETCHING} pictures were asked for at once; wait for the first ones.")
        self._fetching += 1
        try:
            async with self._one_picture:
                yield
        finally:
            self._fetching -= 1

    async def handle(self, message: Message) -> None:
        """Handle a message of the page."""
        if isinstance(message, Look):
            self._handle_look(message)
        elif isinstance(message, Draw):
            self._handle_draw(message)
        elif isinstance(message, protocol.Hold):
            self._handle_hold(message)
        elif isinstance(message, protocol.Acknowledge):
            if message.frame in self._unacknowledged:
                self._unacknowledged.discard(message.frame)
                self._slots.release()
        elif isinstance(message, protocol.Probe):
            await self._answer_probe(message)
        elif isinstance(message, protocol.Shot):
            await self._answer_shot(message)
        elif isinstance(message, protocol.Home):
            entry = self.entry
            place = await self.service.read(lambda: entry.home(message.up))
            await self.send({"type": "home", "place": place_info(place)})
        elif isinstance(message, protocol.Walls):
            await self._answer_walls(message)
        elif isinstance(message, protocol.CloseFile):
            self.close_file()
            await self.send_scene()

    async def send(self, message: dict[str, Any]) -> None:
        """Send a text message to the page."""
        await self._connection.send_json(message)

    async def send_scene(self) -> None:
        """Send what the page has to know about its scene."""
        entry, options = self.entry, self.service.render_options(self.entry)
        if self.service.loading is not None and entry is self.service.entry:
            name, share = self.service.loading, round(self.service.loaded, 3)
            await self.send({"type": "scene", "session": self.id, "loading": True, "name": name, "share": share})
            return
        info = await self.service.draw(lambda: scene_info(entry, options))
        own = entry is self.service.entry
        await self.send({"type": "scene", "session": self.id, "own": own, "file": self.file, **info})

    def _handle_look(self, look: Look) -> None:
        before = self._look
        self._look = look
        if before is None or not _same_camera(before.camera, look.camera):
            self._moved_at = time.monotonic() if before is not None else self._moved_at
            if before is None or _size(before.camera) != _size(look.camera):
                self._pace = self._new_pace()
            self._restart()

    def _handle_hold(self, message: protocol.Hold) -> None:
        if self._held and not message.held:
            self._moved_at = time.monotonic() - STILL_AFTER_S  # the next frame is sharp
            if self._still_frames == 0:
                self._restart()
        if message.held:
            self._cancel.set()  # a hand is on the camera: nobody waits for the sharp frame any more
        self._held = message.held
        self._changed.set()

    def _handle_draw(self, draw: Draw) -> None:
        if draw != self.draw:
            self.draw, self._pace = draw, self._new_pace()
            self._restart()

    def _restart(self) -> None:
        self._version += 1
        self._still_frames = self._moving_frames = 0
        self._cancel.set()
        self._changed.set()

    def _shrink(self) -> None:
        """Others need memory: drop the history, and draw again with fewer pixels. Called in any thread."""
        self._renderer = self._new_renderer(self.entry)
        self._last = None
        if self._loop is not None:
            with suppress(RuntimeError):  # the viewer is closing
                self._loop.call_soon_threadsafe(self._restart)

    async def _answer_probe(self, message: protocol.Probe) -> None:
        entry, camera, options = self.entry, self.camera, self.service.render_options(self.entry)
        if camera is None:
            raise ViewError("the message 'probe' was refused: send a 'look' first.")
        point = await self.service.draw(lambda: entry.point_at(camera, message.x, message.y, options))
        await self.send({"type": "probe", "request": message.request, "point": point})

    async def _answer_walls(self, message: protocol.Walls) -> None:
        entry, options = self.entry, self.service.render_options(self.entry)
        faces = await self.service.draw(lambda: entry.surroundings(message.point, message.near, options))
        rounded = [float(f"{far:.4g}") if math.isfinite(far) else 0 for far in faces.ravel()]
        point = message.point.tolist()
        await self.send({"type": "walls", "point": point, "near": message.near, "size": faces.shape[1], "far": rounded})

    async def _answer_shot(self, message: protocol.Shot) -> None:
        last = self._last
        if last is None:
            raise ViewError("the message 'shot' was refused: there is no picture yet.")
        picture = await self.service.encode(lambda: screenshot(last, message.divider))
        await self._connection.send_bytes(protocol.pack({"kind": "shot", "request": message.request}, [picture]))

    async def _draw_frames(self) -> None:
        while True:
            await self._wait_for_work()
            asked, version = time.monotonic(), self._version
            await self._slots.acquire()
            waited = time.monotonic()
            try:
                drawn = await self._next_frame()
            except (HushsplatError, MemoryError) as error:
                self._slots.release()
                self._failed_version = version  # is not tried again
                message = "not enough memory for this frame." if isinstance(error, MemoryError) else str(error)
                await self.send({"type": "error", "message": message})
                continue
            if drawn is None:
                self._slots.release()
                continue
            request, rendered = drawn
            self._count(request, 1000 * (time.monotonic() - asked), 1000 * (waited - asked))
            self._frames += 1
            self._drawn_version, self._last = request.version, rendered
            depth = self._depth if rendered.depth is None else rendered.depth
            await self._outbox.put(OutgoingFrame(rendered, request, self._frames, self._still_frames, depth))

    def _count(self, request: FrameRequest, time_ms: float, waited_ms: float) -> None:
        if request.moving:
            self._pace.took(request.step, time_ms, waited_ms)
        if request.version == self._version:
            self._still_frames += not request.moving
            self._moving_frames += request.moving

    async def _send_frames(self) -> None:
        while True:
            frame = await self._outbox.get()
            start = time.monotonic()
            parts = await self.service.encode(partial(_encoded, frame))
            encode_ms = round(1000 * (time.monotonic() - start), 2)
            header = {**frame.header(), "passes_ms": {**frame.rendered.passes_ms, "encode": encode_ms}}
            self._unacknowledged.add(frame.number)
            await self._connection.send_bytes(protocol.pack(header, parts))

    async def _wait_for_work(self) -> None:
        while True:
            moving_s = math.inf if self._held else STILL_AFTER_S - (time.monotonic() - self._moved_at)
            finished = self._failed_version == self._version or self._still_frames >= _still_limit(self.draw)
            if self._look is None or finished:
                timeout = None
            elif self._still_frames > 0 and self.service.videos_running > 0:
                timeout = VIDEO_CHECK_S
            elif moving_s > 0 and (self._still_frames > 0 or self._moving_frames >= _still_limit(self.draw)):
                # A hand that holds still: nothing coarser replaces a sharp picture, and a coarse one is refined as far.
                timeout = None if self._held else moving_s
            else:
                return
            self._changed.clear()
            with suppress(asyncio.TimeoutError):
                await asyncio.wait_for(self._changed.wait(), timeout)

    async def _next_frame(self) -> tuple[FrameRequest, RenderedFrame] | None:
        """Draw from the newest camera; None if something changed while a still frame was drawn."""
        with suppress(Cancelled):
            request, work, rendered = await self.service.draw(self._begin)
            while rendered is None and (request.moving or request.version == self._version):
                rendered = await self.service.draw(partial(self._part, request, work))
            return None if rendered is None else (request, rendered)
        return None

    def _begin(self) -> tuple[FrameRequest, Iterator[RenderedFrame | None], RenderedFrame | None]:
        """The first part of the next frame; runs in the drawing thread and changes nothing but the renderer."""
        self._cancel = Cancel()  # first: whatever changes from now on cancels this frame
        look, draw, version = self._look, self.draw, self._version
        if look is None:
            raise ViewError("there is no camera to draw from.")
        moving = self._still_frames == 0 and (self._held or time.monotonic() - self._moved_at < STILL_AFTER_S)
        step = self._pace.step if moving and draw.adapt else Step(1.0)
        between = not moving and draw.adapt and self._scale < BETWEEN_SCALE
        if between:  # soon after the stop, before the sharp frame is there
            step = Step(BETWEEN_SCALE)
        self._scale = step.scale
        if self._last is not None and self._last.depth is None:
            self._find_depth(look.camera)
        camera = _fitting(look.camera, step.scale, MAX_PIXELS)
        each = bytes_per_px(draw, self.entry.scene.has_payload)
        granted = self.service.memory.grant(self, each * camera.width * camera.height)
        fitting = _fitting(camera, 1.0, granted // each)
        work = self._renderer.render(fitting, draw, self._frames, turns=not moving, spacing_px=step.spacing_px)
        request = FrameRequest(look, draw, version, step, moving or between)
        return request, work, self._part(request, work)

    def _part(self, request: FrameRequest, work: Iterator[RenderedFrame | None]) -> RenderedFrame | None:
        """A piece of a frame; a new camera ends it early, unless it is one of a camera that moves on and on."""
        if request.moving:
            return next(work)
        with self._cancel:
            return next(work)

    def _find_depth(self, camera: Camera) -> None:
        """The depth in the middle of the picture, every now and then, where frames have none: the page flies by it."""
        now = time.monotonic()
        if now - self._probed_at > DEPTH_EVERY_S:
            self._depth, self._probed_at = self.entry.middle_depth(camera, self.service.render_options(self.entry)), now


def _encoded(frame: OutgoingFrame) -> list[bytes]:
    return [jpeg(color, sharp=not frame.request.moving) for color in frame.rendered.pictures]


def _still_limit(draw: Draw) -> int:
    """Frames of a still camera: a blended picture is finished at once."""
    most = {"blended": 1, "active": ACTIVE_STILL_FRAMES, "streaming": STILL_FRAMES}
    return max(most[METHODS[side.method].kind] for side in draw.sides)


def _size(camera: Camera) -> tuple[int, int]:
    return camera.width, camera.height


def _same_camera(first: Camera, second: Camera) -> bool:
    lenses = [(*_size(camera), camera.fx) for camera in (first, second)]
    return lenses[0] == lenses[1] and bool((first.world_from_camera == second.world_from_camera).all())


def _fitting(camera: Camera, scale: float, most_px: int) -> Camera:
    """The camera at this scale, with at most so many pixels."""
    scale = min(scale, (most_px / (camera.width * camera.height)) ** 0.5)
    if scale == 1:
        return camera
    width, height = max(1, round(camera.width * scale)), max(1, round(camera.height * scale))
    return camera.resized(width, height)
