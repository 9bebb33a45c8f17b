"""The thread that draws for all clients, and what happens when a piece of work does not end."""

from __future__ import annotations

import asyncio
import logging
import queue
import threading
import time
from collections.abc import Callable
from concurrent.futures import Future
from contextlib import suppress
from typing import Any, TypeVar

from hushsplat.types.errors import ViewError

STUCK_S = 60.0  # of one piece of work; pieces are bounded, the longest take a few seconds on a slow machine
Result = TypeVar("Result")
log = logging.getLogger("hushsplat.viewer")


class ServiceClosed(Exception):
    """The viewer or the interpreter is shutting down: nothing is drawn any more."""


class Worker:
    """One thread with a queue. It is a daemon: work that never ends does not keep the process alive."""

    def __init__(self) -> None:
        self.began: float | None = None  # when the present piece of work began
        self._jobs: queue.SimpleQueue[tuple[Future[Any], Callable[[], Any]] | None] = queue.SimpleQueue()
        self._ended = False
        self._thread = threading.Thread(target=self._run, name="hushsplat-draw", daemon=True)
        self._thread.start()

    def submit(self, work: Callable[[], Result]) -> Future[Result]:
        """Run work after what was submitted before."""
        if self._ended:
            raise ServiceClosed
        future: Future[Result] = Future()
        self._jobs.put((future, work))
        return future

    def end(self) -> None:
        """Cancel what is queued; the thread ends after its present work."""
        self._ended = True
        with suppress(queue.Empty):
            while True:
                job = self._jobs.get_nowait()
                if job is not None:
                    job[0].cancel()
        self._jobs.put(None)

    def join(self) -> None:
        """Wait until the thread has ended, but not for work that is stuck."""
        self._thread.join(STUCK_S)

    def _run(self) -> None:
        while (job := self._jobs.get()) is not None:
            future, work = job
            if not future.set_running_or_notify_cancel():
                continue
            self.began = time.monotonic()
            try:
                result = work()
            except BaseException as error:
                future.set_exception(error)
            else:
                future.set_result(result)
            self.began = None
            del job, future, work  # a frame must not live until the next one comes


class Drawing:
    """Runs work one after the other; if a piece is stuck, a new thread takes over what waits behind it."""

    def __init__(self) -> None:
        self._worker = Worker()
        self.on_stuck: Callable[[], object] = lambda: None  # called in the event loop

    def submit(self, work: Callable[[], Result]) -> Future[Result]:
        """Run work, called from a thread; cancelled if it waited behind work that was stuck."""
        worker = self._worker
        try:
            return worker.submit(work)
        except ServiceClosed:
            if worker is self._worker:
                raise
            return self._worker.submit(work)  # it was replaced just now

    async def run(self, work: Callable[[], Result]) -> Result:
        """Run work, called from the event loop; a ViewError if it is stuck itself."""
        while True:
            worker = self._worker
            future = worker.submit(work)
            waiting = asyncio.wrap_future(future)
            try:
                while not (await asyncio.wait([waiting], timeout=STUCK_S / 4))[0]:
                    self._check(worker)
                    if worker is not self._worker and future.running():
                        waiting.add_done_callback(_ignore)
                        raise ViewError(
                            f"a frame took more than {STUCK_S:.0f} s and was given up; choose a smaller picture, fewer "
                            "samples or another method."
                        )
            except asyncio.CancelledError:
                waiting.cancel()
                raise
            if waiting.cancelled() and worker is not self._worker:
                continue  # it waited behind work that was stuck
            return waiting.result()

    def close(self) -> None:
        """Drop what is queued, wait for what runs."""
        self._worker.end()
        self._worker.join()

    def _check(self, worker: Worker) -> None:
        """Replace a worker that is stuck."""
        began = worker.began
        if worker is self._worker and began is not None and time.monotonic() - began > STUCK_S:
            log.warning("drawing was stuck for %.0f s; a new thread goes on with the other clients.", STUCK_S)
            self._worker = Worker()
            worker.end()
            self.on_stuck()


def _ignore(waiting: asyncio.Future[Any]) -> None:
    """Nobody waits for this result any more."""
    if not waiting.cancelled():
        waiting.exception()
