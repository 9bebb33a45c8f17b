"""What all clients share: the first scene, the threads that draw, encode and read, and a folder of temporary files."""

from __future__ import annotations

import asyncio
import secrets
import tempfile
from collections.abc import Callable
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import suppress
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import TypeVar

from hushsplat.io.atomic import own_tag, sweep
from hushsplat.methods import method as method_named
from hushsplat.spec.weights import DenoiserWeights
from hushsplat.types.errors import ViewError
from hushsplat.types.options import RenderOptions
from hushsplat.viewer.drawing import Drawing, ServiceClosed
from hushsplat.viewer.dropped import DroppedScenes
from hushsplat.viewer.frame_renderer import FrameRenderer
from hushsplat.viewer.memory import MemoryBudget, default_budget
from hushsplat.viewer.scene_entry import SceneEntry

Result = TypeVar("Result")


@dataclass(frozen=True)
class ViewerOptions:
    """How the viewer draws and what it allows; the same for all clients.

    Attributes:
        method: that a page begins with; zero-shot where it needs a payload and the scene has none.
        render: background, near plane, threads.
        weights: of the learned denoisers; None takes those of the package.
        max_upload_bytes: of a file that is dropped on the page; 0: none are taken.
        max_clients: pages that may be open at once.
        max_files: dropped scenes that may be open at once, over all clients.
        max_memory_bytes: of all clients' states and pictures, videos and dropped scenes; 0: a quarter of the machine's.
    """

    method: str = "hush"
    render: RenderOptions = field(default_factory=RenderOptions)
    weights: DenoiserWeights | None = None
    max_upload_bytes: int = 2 << 30
    max_clients: int = 32
    max_files: int = 4
    max_memory_bytes: int = 0

    def __post_init__(self) -> None:
        method_named(self.method)  # refuses unknown names
        for name, least in (("max_upload_bytes", 0), ("max_clients", 1), ("max_files", 0), ("max_memory_bytes", 0)):
            if getattr(self, name) < least:
                raise ViewError(f"{name} must be at least {least}, got {getattr(self, name)}.")


class RenderService:
    """One engine for all clients, first come, first served.

    A client asks for its next frame, or the next piece of a slow one, when it has the one before, so the queue of the
    drawing thread holds at most one piece of each: clients take turns. Within a piece the engine uses all cores.
    """

    def __init__(self, entry: SceneEntry, options: ViewerOptions) -> None:
        self.entry = entry  # the scene that the viewer was started with
        self.loading: str | None = None  # its name while it is read; `entry` is empty then
        self.loaded = 0.0  # how much of it is read, 0..1
        self.options = options
        self._closing = False
        self.videos_running = 0  # pages do not refine their pictures beside one
        self.memory = MemoryBudget(options.max_memory_bytes or default_budget())
        self.dropped = DroppedScenes(self.memory, options.max_files)
        self.drawing = Drawing()
        self._encoding = ThreadPoolExecutor(2, "hushsplat-encode")
        self._reading = ThreadPoolExecutor(1, "hushsplat-read")
        self._preparing = ThreadPoolExecutor(1, "hushsplat-levels")
        self._videos = ThreadPoolExecutor(2, "hushsplat-video")
        sweep(Path(tempfile.gettempdir()))  # half uploads of viewers that were killed
        self._folder = tempfile.TemporaryDirectory(prefix=f"hushsplat-view-{own_tag()}-")

    def new_renderer(self, entry: SceneEntry) -> FrameRenderer:
        """A renderer without history; its work runs in the drawing thread."""
        return FrameRenderer(entry, self.options.weights, self.render_options(entry))

    def render_options(self, entry: SceneEntry) -> RenderOptions:
        """How a scene is drawn."""
        return replace(self.options.render, near=entry.near)

    async def draw(self, work: Callable[[], Result]) -> Result:
        """Run work that uses the engine."""
        return await self.drawing.run(work)

    def submit(self, work: Callable[[], Result]) -> Future[Result]:
        """The same, called from a thread."""
        return self.drawing.submit(work)

    async def encode(self, work: Callable[[], Result]) -> Result:
        """Run work that turns pictures into bytes."""
        return await _result_of(self._encoding, work)

    async def read(self, work: Callable[[], Result]) -> Result:
        """Run work that reads files; one at a time, because it may take much memory."""
        return await _result_of(self._reading, work)

    async def prepare(self, work: Callable[[], Result]) -> Result:
        """Run work that makes moving pictures of the scene faster; nobody waits for it."""
        return await _result_of(self._preparing, work)

    async def make_video(self, work: Callable[[], Result]) -> Result:
        """Run work that makes a video; two at a time, others wait."""
        self.videos_running += 1
        try:
            return await _result_of(self._videos, work)
        finally:
            self.videos_running -= 1

    async def release_memory(self) -> None:
        """No clients: release pooled frame buffers."""
        with suppress(ServiceClosed):
            await self.draw(self.entry.engine.release_memory)

    def check_open(self) -> None:
        """Raises when the viewer is closing: for long work in a thread."""
        if self._closing:
            raise ServiceClosed

    def new_file(self, suffix: str) -> Path:
        """A random name in the service's folder; nothing of it comes from a page."""
        return Path(self._folder.name) / f"{secrets.token_hex(16)}{suffix}"

    def close(self) -> None:
        """Wait for running work, drop what is queued, and remove all files."""
        self._closing = True
        self.drawing.close()  # first: a video waits for frames
        for pool in (self._videos, self._encoding, self._reading, self._preparing):
            pool.shutdown(wait=True, cancel_futures=True)
        self._folder.cleanup()


async def _result_of(pool: ThreadPoolExecutor, work: Callable[[], Result]) -> Result:
    try:
        future = pool.submit(work)
    except RuntimeError as error:  # the pool has been shut down
        raise ServiceClosed from error
    return await asyncio.wrap_future(future)
