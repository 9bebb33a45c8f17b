"""A running viewer: the server in a thread of its own."""

from __future__ import annotations

import asyncio
import atexit
import secrets
import socket
import threading
import time
import webbrowser
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from types import TracebackType
from typing import Any

import numpy as np
from aiohttp import web

from hushsplat.engines.base import Engine
from hushsplat.scenes import NamedScene
from hushsplat.types.camera import Camera
from hushsplat.types.capture import View
from hushsplat.types.errors import HushsplatError, ViewError
from hushsplat.types.gaussians import Gaussians
from hushsplat.viewer.connections import Handler
from hushsplat.viewer.refine import Refiner, make_levels
from hushsplat.viewer.request_checks import is_loopback
from hushsplat.viewer.scene_entry import SceneEntry
from hushsplat.viewer.server import Server
from hushsplat.viewer.service import RenderService, ViewerOptions

FIRST_PORT, PORTS = 8128, 32  # tried one after the other if none is asked for
PROGRESS_EVERY_S = 0.2
FRAME_PX = 600  # height of the viewer in a notebook
BACKLOG = 128  # connections that wait to be accepted
ANY_ADDRESS = ("0.0.0.0", "::", "")


class Viewer:
    """A running viewer; `hushsplat.view` starts one. It ends with `close()`, a `with` block or the program.

    Attributes:
        url: the link to open, with the token if there is one.
        port: that it listens on.
    """

    def __init__(
        self, entry: SceneEntry, host: str, port: int | None, options: ViewerOptions, proxy: str | None = None
    ) -> None:
        self._proxy = proxy
        self._token = None if is_loopback(host) and proxy is None else secrets.token_urlsafe(16)
        self._listening = _listen(host, port)
        self._service = RenderService(entry, options)
        self.port: int = self._listening.getsockname()[1]
        query = "" if self._token is None else f"?token={self._token}"
        self.url = f"http://{_reachable(host)}:{self.port}/{query}"
        self._server = Server(self._service, self._token, is_proxied=proxy is not None)
        self._loop = asyncio.new_event_loop()
        self._closing = asyncio.Event()
        self._ended = threading.Event()
        self._told = 0.0
        self._thread = threading.Thread(target=self._run, name="hushsplat-view", daemon=True)
        self._thread.start()
        # The interpreter would end its threads wherever they are, and inside of C++ that ends the process (SIGABRT).
        atexit.register(self.close)

    def __repr__(self) -> str:
        return f"<hushsplat viewer at {self.url}>"

    def _repr_html_(self) -> str:
        url = self.url
        if self._proxy is not None:  # the browser is on another machine and reaches ports of this one by it
            url = f"{self._proxy.rstrip('/')}/{self.port}/?token={self._token}"
        frame = f'<iframe src="{url}" width="100%" height="{FRAME_PX}" style="border:0" allowfullscreen></iframe>'
        return f'{frame}<br><a href="{url}" target="_blank" rel="noopener">{url}</a>'

    def __enter__(self) -> Viewer:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    @property
    def clients(self) -> int:
        """How many pages are open."""
        return self._server.clients

    def open_browser(self) -> None:
        """Show the page in the user's browser, if there is one."""
        webbrowser.open(self.url)

    def wait(self) -> None:
        """Block until the viewer is closed, or Ctrl-C."""
        while not self._ended.wait(0.5):  # in steps: a wait without end cannot be interrupted everywhere
            pass

    def close(self) -> None:
        """Close all connections, end the threads and release all memory."""
        if self._thread.is_alive():
            self._loop.call_soon_threadsafe(self._closing.set)
            self._thread.join()
        atexit.unregister(self.close)

    def _run(self) -> None:
        asyncio.set_event_loop(self._loop)
        try:
            self._loop.run_until_complete(self._serve())
        finally:
            left = asyncio.all_tasks(self._loop)  # of clients that are disconnecting
            for task in left:
                task.cancel()
            self._loop.run_until_complete(asyncio.gather(*left, return_exceptions=True))
            self._service.close()
            self._loop.run_until_complete(self._loop.shutdown_asyncgens())
            self._loop.close()
            self._listening.close()
            self._ended.set()

    async def _serve(self) -> None:
        runner = web.AppRunner(self._server.app(), access_log=None, shutdown_timeout=5.0)
        await runner.setup()
        manager, connections = runner.server, self._server.connections
        assert manager is not None  # there is one after setup
        self._loop.set_exception_handler(connections.on_loop_error)
        accepting = await self._loop.create_server(
            lambda: Handler(manager, connections, self._loop), sock=self._listening, backlog=BACKLOG
        )
        await self._closing.wait()
        accepting.close()
        await runner.cleanup()


def waiting(name: str, host: str, port: int | None, options: ViewerOptions, drawing: Engine) -> Viewer:
    """A viewer whose pages wait for the scene of this name until `fill`."""
    empty = Gaussians(*(np.zeros((0, *shape), np.float32) for shape in ((3,), (3,), (4,), (), (1, 3))))
    viewer = Viewer(SceneEntry.of(empty, name, drawing, options.render), host, port, options)
    service_of(viewer).loading = name
    return viewer


def service_of(viewer: Viewer) -> RenderService:
    """What all clients of a viewer share."""
    return viewer._service


def tell_progress(viewer: Viewer, share: float) -> None:
    """Tell the pages how much of the scene is read."""
    service_of(viewer).loaded = share
    now = time.monotonic()
    if now - viewer._told >= PROGRESS_EVERY_S or share >= 1:
        viewer._told = now
        asyncio.run_coroutine_threadsafe(viewer._server.tell_progress(share), viewer._loop)


@contextmanager
def telling_failures(viewer: Viewer, path: str) -> Iterator[None]:
    """Pages that wait for the scene learn why it does not come, before the viewer ends."""
    try:
        yield
    except HushsplatError as error:
        text = str(error).replace(path, service_of(viewer).entry.name)
        telling = viewer._server.tell({"type": "error", "message": text})
        asyncio.run_coroutine_threadsafe(telling, viewer._loop).result()
        raise


def fill(viewer: Viewer, entry: SceneEntry, refiner: Refiner | None = None) -> None:
    """Show the scene that the pages of `waiting` wait for; the refiner reads finer levels of it from now on."""
    asyncio.run_coroutine_threadsafe(viewer._server.show(entry), viewer._loop).result()
    _while_resting(viewer, refiner)


def _while_resting(viewer: Viewer, refiner: Refiner | None = None) -> None:
    """Begin what happens while clients rest."""
    server = viewer._server
    if refiner is not None:
        work = refiner.run(server.resting_camera, server.refine)
    else:
        work = make_levels(viewer._service, server.resting_camera, server.refine)
    asyncio.run_coroutine_threadsafe(work, viewer._loop)


def show(
    scene: NamedScene,
    cameras: Sequence[tuple[str, Camera]] | Sequence[View],
    up: Any,
    host: str,
    port: int | None,
    options: ViewerOptions,
    drawing: Engine,
    proxy: str | None = None,
) -> Viewer:
    """A viewer of this scene; without cameras it finds places. A notebook shows it by the proxy."""
    entry = SceneEntry.of(scene.gaussians, scene.name, drawing, options.render, cameras, up, scene.framing)
    viewer = Viewer(entry, host, port, options, proxy)
    _while_resting(viewer)
    return viewer


def _listen(host: str, port: int | None) -> socket.socket:
    """A socket that already listens when the link is printed."""
    wanted = range(FIRST_PORT, FIRST_PORT + PORTS) if port is None else [port]
    family = socket.AF_INET6 if ":" in host else socket.AF_INET
    problem: OSError | None = None
    for number in wanted:
        listening = socket.socket(family, socket.SOCK_STREAM)
        listening.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            listening.bind((host, number))
            listening.listen(BACKLOG)
            return listening
        except (OSError, OverflowError) as error:
            listening.close()
            if isinstance(error, OverflowError):
                raise ViewError(f"port {number} does not exist; give one from 0 (any) to 65535.") from error
            problem = error
    which = f"ports {FIRST_PORT} to {FIRST_PORT + PORTS - 1}" if port is None else f"port {port}"
    reason = problem.strerror if problem is not None else ""
    raise ViewError(f"cannot listen on {host}, {which}: {reason}; give another --host or --port.")


def _reachable(host: str) -> str:
    """The host in the link; for "any address", the address of this machine on its default route."""
    if host in ANY_ADDRESS:
        with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as probe:
            try:
                probe.connect(("192.0.2.1", 9))  # an address for documentation: nothing is sent
                return str(probe.getsockname()[0])
            except OSError:
                return socket.gethostname()
    return f"[{host}]" if ":" in host else host
