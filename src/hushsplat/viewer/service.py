"""What all clients share: the scene, the threads that draw and encode, and a folder for files that come and go."""

from __future__ import annotations

import asyncio
import secrets
import tempfile
from collections.abc import Callable
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import TypeVar

from hushsplat.engines.cpu import _engine
from hushsplat.engines.cpu.render_names import RenderOptions
from hushsplat.io.weights import default_weights
from hushsplat.spec.weights import DenoiserWeights
from hushsplat.viewer.scene_entry import Exhibit

Result = TypeVar("Result")


@dataclass(frozen=True)
class ViewerOptions:
    """How the viewer draws and what it allows; all clients have the same."""

    method: str = "hush"  # what a visit begins with; zero-shot where the scene has no payload
    render: RenderOptions = field(default_factory=RenderOptions)
    weights: DenoiserWeights | None = None  # of hush; None: those of the package
    max_upload_bytes: int = 2 << 30  # of a file that is dropped on the page; 0: none are taken
    max_clients: int = 32
    max_files: int = 4  # dropped scenes that are open at once, over all clients


class StudioClosed(Exception):
    """The viewer, or the whole program, is at its end: nothing is drawn any more."""


class Studio:
    """One engine for everybody: whoever waits longest draws next.

    A client asks for its next frame when it has the one before, so the queue of the drawing thread holds at most one
    frame of each, and first come, first served is turn by turn. Within a frame the engine uses all cores.
    """

    def __init__(self, exhibit: Exhibit, options: ViewerOptions) -> None:
        self.exhibit = exhibit
        self.options = options
        self.weights = default_weights() if options.weights is None else options.weights
        self.files_open = 0
        self._drawing = ThreadPoolExecutor(1, "hushsplat-draw")
        self._encoding = ThreadPoolExecutor(2, "hushsplat-encode")
        self._reading = ThreadPoolExecutor(1, "hushsplat-read")
        self._videos = ThreadPoolExecutor(2, "hushsplat-video")
        self._folder = tempfile.TemporaryDirectory(prefix="hushsplat-view-")

    async def draw(self, work: Callable[[], Result]) -> Result:
        """Run work that uses the engine."""
        return await _done(self._drawing, work)

    def submit(self, work: Callable[[], Result]) -> Future[Result]:
        """The same, asked for from a thread."""
        return self._drawing.submit(work)

    async def encode(self, work: Callable[[], Result]) -> Result:
        """Run work that turns pictures into bytes."""
        return await _done(self._encoding, work)

    async def read(self, work: Callable[[], Result]) -> Result:
        """Run work that reads files; one at a time, because it may take much memory."""
        return await _done(self._reading, work)

    async def make_video(self, work: Callable[[], Result]) -> Result:
        """Run work that makes a video; two at a time, others wait."""
        return await _done(self._videos, work)

    async def rest(self) -> None:
        """Nobody is here: give back the memory that frames were drawn in."""
        with suppress(StudioClosed):
            await self.draw(_engine.release_memory)

    def new_file(self, suffix: str) -> Path:
        """A name in the studio's folder that nobody can guess and no page has a say in."""
        return Path(self._folder.name) / f"{secrets.token_hex(16)}{suffix}"

    def close(self) -> None:
        """Let the threads finish what they are at, and remove all files."""
        for pool in (self._videos, self._drawing, self._encoding, self._reading):
            pool.shutdown(wait=True, cancel_futures=True)
        self._folder.cleanup()


async def _done(pool: ThreadPoolExecutor, work: Callable[[], Result]) -> Result:
    try:
        future = pool.submit(work)
    except RuntimeError as error:  # how a pool says that it takes no more
        raise StudioClosed from error
    return await asyncio.wrap_future(future)
