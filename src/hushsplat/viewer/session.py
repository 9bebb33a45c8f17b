"""One client: its camera, its denoisers' memory, and the frames on their way to it."""

from __future__ import annotations

import asyncio
import logging
import secrets
import time
from collections.abc import Callable, Iterator
from contextlib import suppress
from dataclasses import dataclass
from functools import partial
from typing import Any, Protocol, runtime_checkable

from hushsplat.stream import BLENDED
from hushsplat.types.camera import Camera
from hushsplat.types.errors import HushsplatError, ViewError
from hushsplat.viewer import protocol
from hushsplat.viewer.frame_renderer import Drawn, Painter, jpeg, probe
from hushsplat.viewer.pace import Pace
from hushsplat.viewer.protocol import Draw, Look, Message, Side
from hushsplat.viewer.scene_entry import Exhibit, framed, legend, told
from hushsplat.viewer.screenshot import png
from hushsplat.viewer.service import Studio, StudioClosed

IN_FLIGHT = 2  # frames that are drawn or on their way before the page has shown them
STILL_FRAMES = 128  # after so many from one place the picture is as good as it gets
STILL_AFTER_S = 0.15  # without a new camera, the next frames are sharp
MAX_PIXELS = 2560 * 1600  # of one frame; a larger canvas gets fewer than it has. hush keeps 128 bytes for each


log = logging.getLogger("hushsplat.viewer")


@runtime_checkable
class Connection(Protocol):
    """How a session talks to its page."""

    async def tell(self, message: dict[str, Any]) -> None:
        """Send JSON."""

    async def send(self, message: bytes) -> None:
        """Send pictures."""


@dataclass(frozen=True)
class Order:
    """What a frame is asked for with."""

    look: Look
    draw: Draw
    version: int  # of what is to be drawn
    scale: float  # of the canvas' sides
    moving: bool


@dataclass(frozen=True)
class Shown:
    """A frame that is drawn."""

    drawn: Drawn
    order: Order
    number: int  # of all frames that this client gets
    still_frames: int  # how many sharp ones there are of this view

    def header(self) -> dict[str, Any]:
        """What the page is told beside the pictures."""
        return {
            "kind": "frame",
            "frame": self.number,
            "sequence": self.order.look.sequence,
            "width": self.drawn.camera.width,
            "height": self.drawn.camera.height,
            "scale": round(self.order.scale, 3),
            "moving": self.order.moving,
            "still_frames": self.still_frames,
            "still_limit": _enough(self.order.draw),
            "sides": [{"method": side.method, "show": side.show} for side in self.order.draw.sides],
            "legends": [legend(scale) for scale in self.drawn.scales],
        }


class Session:
    """Draws for one client while there is something to draw, and sleeps otherwise."""

    def __init__(self, studio: Studio, connection: Connection) -> None:
        self.id = secrets.token_urlsafe(24)
        self.studio = studio
        self.exhibit = studio.exhibit
        self.draw = Draw((Side(_first_method(studio)),))
        self._connection = connection
        self._painter = Painter(studio.weights, studio.options.render)
        self._pace = Pace()
        self._look: Look | None = None
        self._moved_at = -STILL_AFTER_S
        self._version = 0  # counts the changes of what is to be drawn
        self._drawn_version = self._failed_version = -1  # the last ones that were drawn, or could not be
        self._still_frames = 0  # sharp ones of this version
        self._frames = 0
        self._last: Drawn | None = None
        self._changed = asyncio.Event()
        self._slots = asyncio.Semaphore(IN_FLIGHT)
        self._unacknowledged: set[int] = set()
        self._outbox: asyncio.Queue[Shown] = asyncio.Queue(1)
        self._tasks: list[asyncio.Task[None]] = []

    def start(self, on_failure: Callable[[], object]) -> None:
        """Begin to draw; what nobody foresaw is logged, and ends the session."""

        def look_after(task: asyncio.Task[None]) -> None:
            if not task.cancelled() and not isinstance(task.exception(), (StudioClosed, type(None))):
                log.error("a session failed", exc_info=task.exception())
                on_failure()

        self._tasks = [asyncio.create_task(self._draw_frames()), asyncio.create_task(self._send_frames())]
        for task in self._tasks:
            task.add_done_callback(look_after)

    async def close(self) -> None:
        """Stop, and let go of everything."""
        for task in self._tasks:
            task.cancel()
        await asyncio.gather(*self._tasks, return_exceptions=True)
        self._tasks = []
        self.show(self.studio.exhibit)
        self._last = None

    @property
    def camera(self) -> Camera | None:
        """Of the canvas, None before the page has said."""
        return None if self._look is None else self._look.camera

    def show(self, exhibit: Exhibit) -> None:
        """Show another scene from now on."""
        if self.exhibit is not self.studio.exhibit:
            self.studio.files_open -= 1
        if exhibit is not self.studio.exhibit:
            self.studio.files_open += 1
        self.exhibit = exhibit
        self._painter = Painter(self.studio.weights, self.studio.options.render)
        self._restart()

    async def hear(self, message: Message) -> None:
        """Do what the page asks for."""
        if isinstance(message, Look):
            self._hear_look(message)
        elif isinstance(message, Draw):
            self._hear_draw(message)
        elif isinstance(message, protocol.Acknowledge):
            if message.frame in self._unacknowledged:
                self._unacknowledged.discard(message.frame)
                self._slots.release()
        elif isinstance(message, protocol.Probe):
            await self._answer_probe(message)
        elif isinstance(message, protocol.Shot):
            await self._answer_shot(message)
        elif isinstance(message, protocol.Home):
            scene = self.exhibit.gaussians
            place = await self.studio.read(lambda: framed(scene, message.up))
            await self.tell({"type": "home", "place": told(place, self.exhibit)})
        elif isinstance(message, protocol.CloseFile):
            self.show(self.studio.exhibit)
            await self.tell_scene()

    async def tell(self, message: dict[str, Any]) -> None:
        """Send JSON to the page."""
        await self._connection.tell(message)

    async def tell_scene(self) -> None:
        """Tell the page what it sees."""
        exhibit, options = self.exhibit, self.studio.options.render
        described = await self.studio.draw(lambda: exhibit.described(options))
        own = exhibit is self.studio.exhibit
        await self.tell({"type": "scene", "session": self.id, "own": own, **described})

    def _hear_look(self, look: Look) -> None:
        before = self._look
        self._look = look
        if before is None or not _same_view(before.camera, look.camera):
            self._moved_at = time.monotonic() if before is not None else self._moved_at
            if before is None or _size(before.camera) != _size(look.camera):
                self._pace = Pace()
            self._restart()

    def _hear_draw(self, draw: Draw) -> None:
        if self.exhibit.gaussians.payload is None and any(side.method == "hush" for side in draw.sides):
            raise ViewError("hush needs a scene with a payload, and this one has none; choose hush-zero-shot.")
        if draw != self.draw:
            self.draw, self._pace = draw, Pace()
            self._restart()

    def _restart(self) -> None:
        self._version += 1
        self._still_frames = 0
        self._changed.set()

    async def _answer_probe(self, message: protocol.Probe) -> None:
        exhibit, camera, options = self.exhibit, self.camera, self.studio.options.render
        if camera is None:
            raise ViewError("the message 'probe' was refused: send a 'look' first.")
        point = await self.studio.draw(lambda: probe(exhibit.gaussians, camera, message.x, message.y, options))
        await self.tell({"type": "probe", "request": message.request, "point": point})

    async def _answer_shot(self, message: protocol.Shot) -> None:
        drawn = self._last
        if drawn is None:
            raise ViewError("the message 'shot' was refused: there is no picture yet.")
        picture = await self.studio.encode(lambda: png(drawn, message.divider))
        await self._connection.send(protocol.pack({"kind": "shot", "request": message.request}, [picture]))

    async def _draw_frames(self) -> None:
        while True:
            await self._something_to_draw()
            asked, version = time.monotonic(), self._version
            await self._slots.acquire()
            try:
                order, drawn = await self._next_frame()
            except (HushsplatError, MemoryError) as error:
                self._slots.release()
                self._failed_version = version  # what cannot be drawn once cannot be drawn again
                message = "not enough memory for this frame." if isinstance(error, MemoryError) else str(error)
                await self.tell({"type": "error", "message": message})
                continue
            if drawn is None:
                self._slots.release()
                continue
            self._learn(order, 1000 * (time.monotonic() - asked))
            self._frames += 1
            self._drawn_version, self._last = order.version, drawn
            await self._outbox.put(Shown(drawn, order, self._frames, self._still_frames))

    def _learn(self, order: Order, time_ms: float) -> None:
        if order.moving:
            self._pace.took(order.scale, time_ms)
        elif order.version == self._version:
            self._still_frames += 1

    async def _send_frames(self) -> None:
        while True:
            shown = await self._outbox.get()
            start = time.monotonic()
            parts = await self.studio.encode(partial(_encoded, shown))
            encoded_ms = round(1000 * (time.monotonic() - start), 2)
            header = {**shown.header(), "passes_ms": {**shown.drawn.passes_ms, "encode": encoded_ms}}
            self._unacknowledged.add(shown.number)
            await self._connection.send(protocol.pack(header, parts))

    async def _something_to_draw(self) -> None:
        while True:
            moving_s = STILL_AFTER_S - (time.monotonic() - self._moved_at)
            finished = self._failed_version == self._version or self._still_frames >= _enough(self.draw)
            if self._look is None or finished:
                timeout = None
            elif moving_s > 0 and self._drawn_version == self._version and _enough(self.draw) == 1:
                timeout = moving_s  # a blended picture gets no better until it may be sharp
            else:
                return
            self._changed.clear()
            with suppress(asyncio.TimeoutError):
                await asyncio.wait_for(self._changed.wait(), timeout)

    async def _next_frame(self) -> tuple[Order, Drawn | None]:
        """Draw from the newest camera there is; None if it moved on while a slow sharp frame was at it."""
        order, work, drawn = await self.studio.draw(self._begin)
        while drawn is None and (order.moving or order.version == self._version):
            drawn = await self.studio.draw(partial(next, work))
        return order, drawn

    def _begin(self) -> tuple[Order, Iterator[Drawn | None], Drawn | None]:
        """The first part of the next frame; runs in the drawing thread and changes nothing but the painter."""
        look, draw, version = self._look, self.draw, self._version
        if look is None:
            raise ViewError("there is no camera to draw from.")
        moving = time.monotonic() - self._moved_at < STILL_AFTER_S
        scale = self._pace.scale if moving and draw.adapt else 1.0
        work = self._painter.paint(self.exhibit.gaussians, _fitting(look.camera, scale), draw, self._frames)
        return Order(look, draw, version, scale, moving), work, next(work)


def _encoded(shown: Shown) -> list[bytes]:
    return [jpeg(color, sharp=not shown.order.moving) for color in shown.drawn.pictures]


def _enough(draw: Draw) -> int:
    """How many sharp frames of one view: a blended picture is finished at once."""
    return 1 if all(side.method in BLENDED for side in draw.sides) else STILL_FRAMES


def _first_method(studio: Studio) -> str:
    method = studio.options.method
    return "hush-zero-shot" if method == "hush" and studio.exhibit.gaussians.payload is None else method


def _size(camera: Camera) -> tuple[int, int]:
    return camera.width, camera.height


def _same_view(first: Camera, second: Camera) -> bool:
    lenses = [(*_size(camera), camera.fx) for camera in (first, second)]
    return lenses[0] == lenses[1] and bool((first.world_from_camera == second.world_from_camera).all())


def _fitting(camera: Camera, scale: float) -> Camera:
    """The camera at a share of its size, and never with more pixels than a frame may have."""
    scale = min(scale, (MAX_PIXELS / (camera.width * camera.height)) ** 0.5)
    if scale == 1:
        return camera
    width, height = max(1, round(camera.width * scale)), max(1, round(camera.height * scale))
    return camera.resized(width, height)
