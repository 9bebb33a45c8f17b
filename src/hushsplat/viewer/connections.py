"""The connections of the server: their number, the time that a request may take, and what every response carries."""

from __future__ import annotations

import asyncio
import logging
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, Protocol, runtime_checkable

from aiohttp import web
from aiohttp.abc import AbstractStreamWriter

from hushsplat.viewer.request_checks import RateLimit

HEADER_S = 10.0  # from the connection, or the response before, to the end of the next request's header
SLOW_S, SLOWEST_BYTES_PER_S = 30.0, 1 << 14  # that a body may take in any case, and then for its bytes
MAX_CONNECTIONS = 256  # at once; and at most a quarter of the process's file descriptors
WARNINGS_PER_S, WARNINGS_AT_ONCE = 0.1, 3.0  # lines in the log about connections
HEADERS = {
    "Content-Security-Policy": (
        "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' blob: data:; connect-src 'self'; "
        "base-uri 'none'; form-action 'none'; "
        # Notebooks show it in a frame: those of this machine, and behind a proxy those of the same site.
        "frame-ancestors 'self' http://localhost:* http://127.0.0.1:*"
    ),
    "X-Frame-Options": "DENY",  # for browsers that do not know frame-ancestors
    "X-Content-Type-Options": "nosniff",
    "Referrer-Policy": "no-referrer",  # the link may hold a token
    "Cache-Control": "no-cache",
    "Server": "hushsplat",  # no versions
}
log = logging.getLogger("hushsplat.viewer")


class Connections:
    """All connections, oldest first; a new one above the limit takes the place of the oldest without a request.

    A client that sends half a request holds a connection for HEADER_S at most, and loses it earlier when others come.
    """

    def __init__(self, limit: int) -> None:
        self._limit = limit
        self._idle: dict[web.RequestHandler, None] = {}
        self._busy: set[web.RequestHandler] = set()
        self._warnings = RateLimit(WARNINGS_PER_S, WARNINGS_AT_ONCE)

    def opened(self, handler: web.RequestHandler) -> None:
        """Count a connection; make room for it."""
        if len(self._idle) + len(self._busy) >= self._limit:
            oldest = next(iter(self._idle), handler)
            self.closed(oldest)
            oldest.force_close()
            self.warn(f"more than {self._limit} connections at once; the oldest without a request was closed.")
        if handler.transport is not None:
            self._idle[handler] = None

    def closed(self, handler: web.RequestHandler) -> None:
        """A connection has ended."""
        self._idle.pop(handler, None)
        self._busy.discard(handler)

    @contextmanager
    def request(self, handler: web.RequestHandler) -> Iterator[None]:
        """While a request is handled, its connection keeps its place."""
        known = handler in self._idle
        if known:
            del self._idle[handler]
            self._busy.add(handler)
        try:
            yield
        finally:
            if known and handler in self._busy:
                self._busy.discard(handler)
                self._idle[handler] = None

    def warn(self, message: str, error: BaseException | None = None) -> None:
        """A line in the log, unless there were many."""
        if self._warnings.allows():
            log.warning(message, exc_info=error)

    def on_loop_error(self, loop: asyncio.AbstractEventLoop, context: dict[str, Any]) -> None:
        """What asyncio would log with a traceback for every connection, such as a lack of file descriptors."""
        error = context.get("exception")
        if isinstance(error, OSError):
            self.warn(f"a connection failed: {error.strerror or error}.")
        else:
            loop.default_exception_handler(context)


class Handler(web.RequestHandler):
    """Speaks HTTP on one connection."""

    __slots__ = ("_connections",)

    def __init__(self, manager: web.Server, connections: Connections, loop: asyncio.AbstractEventLoop) -> None:
        super().__init__(
            manager,
            loop=loop,
            keepalive_timeout=HEADER_S,  # counts from the connection on
            access_log=None,  # type: ignore[arg-type]  # aiohttp's own way to have none
            auto_decompress=False,  # a compressed body could be a bomb; the page sends none
        )
        self._connections = connections

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        """Count it."""
        super().connection_made(transport)
        self._connections.opened(self)

    def connection_lost(self, exc: BaseException | None) -> None:
        """Count it no more."""
        self._connections.closed(self)
        super().connection_lost(exc)

    def handle_error(
        self, request: web.BaseRequest, status: int = 500, exc: BaseException | None = None, message: str | None = None
    ) -> web.StreamResponse:
        """The response to what is not HTTP, and to a failure of ours; only the latter is logged."""
        if status >= 500:
            self._connections.warn("a request failed; this is a bug of hushsplat.", exc)
        if request.writer.output_size > 0:
            raise ConnectionError("the response has begun already")  # aiohttp closes the connection
        text = "the viewer failed." if status >= 500 else "this is not a request that the viewer knows."
        response = web.Response(status=status, text=f"hushsplat: {text}\n", headers=HEADERS)
        response.force_close()
        return response


@runtime_checkable
class Downloaded(Protocol):
    """A file, and how often it is being sent."""

    path: Path | None
    downloads: int


class Download(web.FileResponse):
    """A video that may take long to send: aiohttp sends it after the request was handled."""

    def __init__(self, connections: Connections, file: Downloaded) -> None:
        assert file.path is not None
        headers = {"Content-Disposition": 'attachment; filename="hushsplat.mp4"', "Content-Type": "video/mp4"}
        super().__init__(file.path, headers=headers)
        self._connections, self._file = connections, file
        self._seconds = SLOW_S + file.path.stat().st_size / SLOWEST_BYTES_PER_S

    async def prepare(self, request: web.BaseRequest) -> AbstractStreamWriter | None:
        """Send the file; its connection keeps its place, unless it is read too slowly."""
        self._file.downloads += 1
        try:
            with self._connections.request(request.protocol):
                return await asyncio.wait_for(super().prepare(request), self._seconds)
        except asyncio.TimeoutError:
            request.protocol.force_close()
            raise ConnectionResetError("the video was read too slowly") from None
        finally:
            self._file.downloads -= 1


def connection_limit() -> int:
    """MAX_CONNECTIONS, or a quarter of the file descriptors that the process may have."""
    if sys.platform == "win32":
        return MAX_CONNECTIONS
    import resource

    descriptors, _ = resource.getrlimit(resource.RLIMIT_NOFILE)
    return MAX_CONNECTIONS if descriptors < 0 else max(8, min(MAX_CONNECTIONS, descriptors // 4))


async def add_headers(request: web.Request, response: web.StreamResponse) -> None:
    """Every response carries them, errors included."""
    response.headers.update(HEADERS)
