"""The web server: the page, its WebSocket, uploads of scenes and tracks, and videos."""

from __future__ import annotations

import asyncio
import json
import time
from collections.abc import Callable
from contextlib import suppress
from dataclasses import replace
from importlib.resources import files
from pathlib import Path
from typing import Any

from aiohttp import WSCloseCode, WSMsgType, web

from hushsplat.types.camera import Camera
from hushsplat.types.errors import HushsplatError, ViewError
from hushsplat.viewer import protocol
from hushsplat.viewer.connections import Connections, Download, add_headers, connection_limit
from hushsplat.viewer.request_checks import RateLimit, refusal
from hushsplat.viewer.scene_entry import THUMBNAIL_PX, SceneEntry
from hushsplat.viewer.scene_info import hello_message
from hushsplat.viewer.service import RenderService
from hushsplat.viewer.session import Session
from hushsplat.viewer.uploads import (
    parsed_json,
    read_dropped_environment,
    read_dropped_scene,
    read_dropped_track,
    received,
)
from hushsplat.viewer.videos import Video, VideoRequest

MAX_FRAME_BYTES = 16 << 20  # of a WebSocket message: longer ones are refused by closing the connection
MESSAGES_PER_S, MESSAGES_AT_ONCE = 600.0, 1200.0  # a page on a fast screen sends two for each of 240 frames
ERRORS_PER_S, ERRORS_AT_ONCE = 10.0, 50.0
MOST_DOWNLOADS = 2  # of a video at once: each holds a connection
PROGRESS_EVERY_S = 0.1
HEARTBEAT_S = 20.0  # a client that does not answer for so long is disconnected
MAX_PHOTOGRAPH_PX = 1920  # width as it is sent to the page
NO_MEMORY = "there is not enough memory for this."
STATIC = Path(str(files("hushsplat").joinpath("viewer", "static")))


class PageConnection:
    """Sends messages to a page."""

    def __init__(self, socket: web.WebSocketResponse) -> None:
        self._socket = socket

    async def send_json(self, message: dict[str, Any]) -> None:
        """Send a text message, unless the page has disconnected."""
        with suppress(ConnectionError):  # it may do so at this moment
            if not self._socket.closed:
                await self._socket.send_str(json.dumps(message))

    async def send_bytes(self, message: bytes) -> None:
        """Send a binary message, unless the page has disconnected."""
        with suppress(ConnectionError):
            if not self._socket.closed:
                await self._socket.send_bytes(message)


class Server:
    """Routes and open sessions."""

    def __init__(self, service: RenderService, token: str | None, is_proxied: bool = False) -> None:
        self._service = service
        self._token, self._is_proxied = token, is_proxied
        self._sessions: dict[str, Session] = {}
        self._videos: dict[str, Video] = {}  # by session
        self._sockets: set[web.WebSocketResponse] = set()
        self._telling: list[asyncio.Future[None]] = []  # messages to all clients that are being sent
        self.connections = Connections(connection_limit())
        service.drawing.on_stuck = self._on_stuck

    @property
    def clients(self) -> int:
        """How many sessions are open."""
        return len(self._sessions)

    async def show(self, entry: SceneEntry) -> None:
        """Show the scene that was being read to all who wait for it."""
        self._service.loading = None
        # At the same time: a page that reads slowly keeps no other one waiting.
        await asyncio.gather(*(session.send_scene() for session in self._replace(entry)))

    async def refine(self, entry: SceneEntry) -> None:
        """Go on with another level of detail of the scene."""
        message = {"type": "refined", "gaussians": len(entry.gaussians), "levels": entry.has_levels}
        await asyncio.gather(*(session.send(message) for session in self._replace(entry)))

    def _replace(self, entry: SceneEntry) -> list[Session]:
        before, self._service.entry = self._service.entry, entry
        showing = [session for session in self._sessions.values() if session.entry is before]
        for session in showing:
            session.refine(entry)
        return showing

    def resting_camera(self) -> Camera | None:
        """Of a client whose picture of the scene is finished."""
        resting = (session for session in self._sessions.values() if session.entry is self._service.entry)
        return next((session.camera for session in resting if session.rests), None)

    async def tell_progress(self, share: float) -> None:
        """How much of the scene is read."""
        await self.tell({"type": "progress", "share": round(share, 3)})

    async def tell(self, message: dict[str, Any]) -> None:
        """Send a message to all pages."""
        await asyncio.gather(*(session.send(message) for session in self._sessions.values()))

    def app(self) -> web.Application:
        """The application for aiohttp."""
        app = web.Application(middlewares=[self._check], client_max_size=1 << 20)
        app.router.add_get("/", self._page)
        app.router.add_get("/ws", self._socket)
        app.router.add_post("/scene", self._open_scene)
        app.router.add_post("/track", self._open_track)
        app.router.add_post("/environment", self._open_environment)
        app.router.add_post("/video", self._start_video)
        app.router.add_get("/video/{id}", self._fetch_video)
        app.router.add_get(r"/place/{index:\d{1,4}}", self._fetch_place)
        app.router.add_get(r"/photograph/{index:\d{1,4}}", self._fetch_photograph)
        app.router.add_static("/static/", STATIC)
        app.on_response_prepare.append(add_headers)
        app.on_shutdown.append(self._close)
        return app

    async def _close(self, app: web.Application) -> None:
        for socket in list(self._sockets):
            await socket.close(code=WSCloseCode.GOING_AWAY, message=b"the viewer has ended")

    def _on_stuck(self) -> None:
        message = {"type": "error", "message": "drawing was stuck and goes on now; frames were late."}
        self._telling = [asyncio.ensure_future(session.send(message)) for session in self._sessions.values()]

    @web.middleware
    async def _check(self, request: web.Request, handler: Any) -> web.StreamResponse:
        # The page's scripts and styles are public; their URLs have no token.
        problem = None if request.path.startswith("/static/") else refusal(request, self._token, self._is_proxied)
        if problem is not None:
            return web.Response(status=403, text=f"hushsplat: {problem}\n")
        with self.connections.request(request.protocol):
            try:
                response: web.StreamResponse = await handler(request)
            except HushsplatError as error:
                response = web.json_response({"error": str(error)}, status=400)
            except MemoryError:
                response = web.json_response({"error": NO_MEMORY}, status=400)
            return response

    async def _page(self, request: web.Request) -> web.StreamResponse:
        return web.FileResponse(STATIC / "index.html")

    async def _socket(self, request: web.Request) -> web.StreamResponse:
        socket = web.WebSocketResponse(max_msg_size=MAX_FRAME_BYTES, heartbeat=HEARTBEAT_S, compress=False)
        await socket.prepare(request)
        connection = PageConnection(socket)
        if len(self._sessions) >= self._service.options.max_clients:
            await connection.send_json({"type": "full", "message": "too many pages are open; try again in a moment."})
            await socket.close(code=WSCloseCode.TRY_AGAIN_LATER)
            return socket
        session = Session(self._service, connection)
        self._sessions[session.id] = session
        session.show_file_again(request.query.get("file", ""))
        self._sockets.add(socket)
        try:
            await connection.send_json(hello_message(self._service, session.draw))
            await session.send_scene()
            session.start(on_failure=lambda: asyncio.ensure_future(socket.close(code=WSCloseCode.INTERNAL_ERROR)))
            await self._listen(socket, connection, session)
        finally:
            self._sockets.discard(socket)
            del self._sessions[session.id]
            video = self._videos.pop(session.id, None)
            if video is not None:
                await video.discard()
            await session.close()
            self._service.dropped.forget_old()
            if not self._sessions:
                await self._service.release_memory()
        return socket

    async def _listen(self, socket: web.WebSocketResponse, connection: PageConnection, session: Session) -> None:
        rate, errors = RateLimit(MESSAGES_PER_S, MESSAGES_AT_ONCE), RateLimit(ERRORS_PER_S, ERRORS_AT_ONCE)
        async for message in socket:
            try:
                if not rate.allows():
                    raise ViewError(f"more than {MESSAGES_PER_S:.0f} messages a second came; this one was refused.")
                if message.type != WSMsgType.TEXT:
                    raise ViewError("a binary message was refused; the viewer takes JSON.")
                parsed = protocol.parse_message(message.data)
                if isinstance(parsed, protocol.CancelVideo):
                    self._cancel_video(session)
                else:
                    await session.handle(parsed)
            except (HushsplatError, MemoryError) as error:
                if errors.allows():  # error replies are limited, too
                    text = NO_MEMORY if isinstance(error, MemoryError) else str(error)
                    await connection.send_json({"type": "error", "message": text})

    def _session(self, request: web.Request) -> Session:
        session = self._sessions.get(request.query.get("session", ""))
        if session is None:
            raise ViewError("there is no such session; load the page again.")
        return session

    async def _open_scene(self, request: web.Request) -> web.StreamResponse:
        session = self._session(request)
        with session.uploading():
            entry = await read_dropped_scene(request, self._service, _teller(session))
        if session.id in self._sessions:  # it may have disconnected while the file was uploaded
            session.show_file(entry)
            await session.send_scene()
        else:
            self._service.memory.release(entry)
        return web.json_response({})

    async def _open_track(self, request: web.Request) -> web.StreamResponse:
        with self._session(request).uploading():
            track = await read_dropped_track(request, self._service)
        return web.Response(text=track, content_type="application/json")

    async def _fetch_place(self, request: web.Request) -> web.StreamResponse:
        session, index = self._session(request), int(request.match_info["index"])
        entry = session.entry
        async with session.fetching():
            if index < len(entry.photographs):
                body = await self._service.read(lambda: entry.photograph(index, THUMBNAIL_PX))
            else:
                body = await self._service.draw(lambda: entry.thumbnail(index, self._service.render_options(entry)))
        return web.Response(body=body, content_type="image/jpeg")

    async def _fetch_photograph(self, request: web.Request) -> web.StreamResponse:
        session, index = self._session(request), int(request.match_info["index"])
        entry = session.entry
        async with session.fetching():
            body = await self._service.read(lambda: entry.photograph(index, MAX_PHOTOGRAPH_PX))
        return web.Response(body=body, content_type="image/jpeg")

    async def _open_environment(self, request: web.Request) -> web.StreamResponse:
        session = self._session(request)
        with session.uploading():
            session.set_environment(await read_dropped_environment(request, self._service))
        return web.json_response({})

    async def _start_video(self, request: web.Request) -> web.StreamResponse:
        session = self._session(request)
        with session.uploading():
            body = await received(request)
        entry, draw = session.entry, session.draw
        wanted = await self._service.read(lambda: VideoRequest.parse(parsed_json(body, "the video"), entry, draw))
        before = self._videos.get(session.id)
        if before is not None and not before.done:
            raise ViewError("a video is being made already; cancel it first.")
        if session.id not in self._sessions:  # nobody would remove the video
            raise ViewError("the page has gone; load it again.")
        if before is not None:
            before.remove()
        wanted = replace(wanted, environment=session.environment)
        video = self._videos[session.id] = Video(self._service, wanted, session.send)
        return web.json_response({"id": video.id, "frames": len(wanted.track)})

    def _cancel_video(self, session: Session) -> None:
        video = self._videos.get(session.id)
        if video is not None:
            video.cancel()

    async def _fetch_video(self, request: web.Request) -> web.StreamResponse:
        video = next((v for v in self._videos.values() if v.id == request.match_info["id"]), None)
        if video is None or video.path is None:
            return web.Response(status=404, text="hushsplat: there is no such video any more.\n")
        if video.downloads >= MOST_DOWNLOADS:
            raise ViewError(f"this video is being downloaded {MOST_DOWNLOADS} times already; wait until one has ended.")
        return Download(self.connections, video)


def _teller(session: Session) -> Callable[[float], None]:
    """Tells a page, from any thread, how much of its file is read: a few times a second."""
    loop, told = asyncio.get_running_loop(), -PROGRESS_EVERY_S

    def tell(share: float) -> None:
        nonlocal told
        if time.monotonic() - told >= PROGRESS_EVERY_S:
            told = time.monotonic()
            message = {"type": "progress", "share": round(share, 3)}
            asyncio.run_coroutine_threadsafe(session.send(message), loop)

    return tell
