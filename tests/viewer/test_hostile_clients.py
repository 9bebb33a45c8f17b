"""Hostile clients: slow requests, floods of connections, broken headers, simultaneous uploads, greedy frames."""

from __future__ import annotations

import asyncio
import io
import json
import logging
import socket
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack, suppress
from pathlib import Path
from types import SimpleNamespace
from typing import Any
from urllib.parse import urlsplit

import aiohttp
import numpy as np
import pytest
from client import page, run

import hushsplat
from hushsplat.engines.base import engine
from hushsplat.io.scenes.dot_splat import write_splat
from hushsplat.io.tracks import track_json
from hushsplat.io.weights import default_weights
from hushsplat.types.camera import Camera
from hushsplat.types.gaussians import Gaussians
from hushsplat.types.options import Noise, RenderOptions
from hushsplat.viewer import connections, drawing, frame_renderer, server, session, uploads
from hushsplat.viewer.frame_renderer import FrameRenderer, bytes_per_px
from hushsplat.viewer.launch import Viewer
from hushsplat.viewer.protocol import Draw, Side
from hushsplat.viewer.scene_entry import SceneEntry
from hushsplat.viewer.service import ViewerOptions
from hushsplat.viewer.videos import VideoRequest

REQUIRED = {
    "X-Frame-Options": "DENY",
    "X-Content-Type-Options": "nosniff",
    "Referrer-Policy": "no-referrer",
    "Server": "hushsplat",
}


@pytest.fixture
def small_viewer(scene: Gaussians, monkeypatch: pytest.MonkeyPatch) -> Iterator[Viewer]:
    """A viewer that takes sixteen connections, and half a second for the header of a request."""
    monkeypatch.setattr(connections, "MAX_CONNECTIONS", 16)
    monkeypatch.setattr(connections, "HEADER_S", 0.5)
    with hushsplat.view(scene, port=0) as running:
        yield running


def half_request(port: int) -> socket.socket:
    opened = socket.create_connection(("127.0.0.1", port), timeout=30)
    opened.sendall(b"GET / HTTP/1.1\r\nHost: localhost\r\nX-Slow: ")
    return opened


def answer(port: int, request: bytes) -> bytes:
    """All that comes back for these bytes until the connection is closed."""
    with socket.create_connection(("127.0.0.1", port), timeout=30) as opened:
        opened.sendall(request)
        parts = []
        while part := opened.recv(1 << 16):
            parts.append(part)
    return b"".join(parts)


def get(port: int, path: str = "/", host: str = "localhost", more: str = "") -> tuple[int, dict[str, str]]:
    """Status and headers."""
    content = answer(port, f"GET {path} HTTP/1.1\r\nHost: {host}\r\nConnection: close\r\n{more}\r\n".encode())
    first, *lines = content.split(b"\r\n\r\n")[0].decode().split("\r\n")
    return int(first.split()[1]), dict(line.split(": ", 1) for line in lines)


def test_half_sent_requests_do_not_keep_others_out(small_viewer: Viewer, caplog: pytest.LogCaptureFixture) -> None:
    with caplog.at_level(logging.WARNING), ExitStack() as stack:
        for _ in range(60):
            stack.enter_context(half_request(small_viewer.port))
        begin = time.monotonic()
        assert get(small_viewer.port)[0] == 200
        assert time.monotonic() - begin < 3
    assert len(caplog.records) <= connections.WARNINGS_AT_ONCE + 1
    assert not any(record.exc_info for record in caplog.records)


@pytest.mark.skipif(sys.platform == "win32", reason="limits file descriptors")
def test_more_half_sent_requests_than_file_descriptors(tmp_path: Path) -> None:
    """300 of them at 256 descriptors: others are answered, and the log stays short."""
    limit = "import resource, sys; resource.setrlimit(resource.RLIMIT_NOFILE, (256, 256)); "
    command = "from hushsplat.cli.main import main; main(['view', 'synth:1k', '--no-browser', '--port', '0'])"
    said = tmp_path / "stderr"
    with said.open("wb") as errors, ExitStack() as stack:
        started = subprocess.Popen([sys.executable, "-c", limit + command], stdout=subprocess.PIPE, stderr=errors)
        stack.callback(started.wait)
        stack.callback(started.kill)
        assert started.stdout is not None
        port = urlsplit(started.stdout.readline().decode()).port
        assert port is not None
        for _ in range(300):
            stack.enter_context(half_request(port))
        for _ in range(3):
            begin = time.monotonic()
            assert get(port)[0] == 200
            assert time.monotonic() - begin < 20
    assert said.stat().st_size < 2000 and "Traceback" not in said.read_text()


def test_a_half_sent_request_is_closed(small_viewer: Viewer) -> None:
    with half_request(small_viewer.port) as opened:
        assert opened.recv(100) == b""
    with socket.create_connection(("127.0.0.1", small_viewer.port), timeout=30) as idle:
        assert idle.recv(100) == b""


def test_open_pages_keep_their_connections_in_a_flood(small_viewer: Viewer) -> None:
    async def visit() -> dict[str, Any]:
        async with page(small_viewer.url) as one:
            with ExitStack() as stack:
                for _ in range(40):
                    stack.enter_context(half_request(small_viewer.port))
                await asyncio.sleep(0.1)
                await one.look(hushsplat.home_camera(48, 32))
                return (await one.sharp_frame())[0]

    assert run(visit())["width"] == 48


@pytest.mark.parametrize(
    ("path", "host", "more", "status"),
    [
        ("/", "localhost", "", 200),
        ("/static/main.js", "localhost", "", 200),
        ("/nowhere", "localhost", "", 404),
        ("/static/nowhere.js", "localhost", "", 404),
        ("/video/x", "localhost", "", 404),
        ("/scene", "localhost", "", 405),
        ("/ws", "localhost", "", 400),
        ("/", "evil.example", "", 403),
        ("/", "[", "", 403),
        ("/", "[::1", "", 403),
        ("/", "localhost", "Origin: http://[\r\n", 403),
        ("/", "localhost", "Origin: //[\r\n", 403),
        ("/", "localhost", f"X-Long: {'a' * 20000}\r\n", 400),
        ("/", "localhost", "No colon\r\n", 400),
    ],
)
def test_every_response_carries_the_headers(
    viewer: Viewer, path: str, host: str, more: str, status: int, caplog: pytest.LogCaptureFixture
) -> None:
    found, headers = get(viewer.port, path, host, more)
    assert found == status
    assert {name: headers.get(name) for name in REQUIRED} == REQUIRED
    assert "frame-ancestors 'self' http://localhost:* http://127.0.0.1:*" in headers["Content-Security-Policy"]
    assert not any("aiohttp" in value or "Python" in value for value in headers.values())
    assert caplog.records == []


def test_what_is_not_http_is_answered_without_a_traceback(viewer: Viewer, caplog: pytest.LogCaptureFixture) -> None:
    content = answer(viewer.port, b"\x16\x03\x01 hello\r\n\r\n")
    assert content.startswith(b"HTTP/1.0 400") and b"Server: hushsplat" in content
    assert caplog.records == []


def splat_bytes(scene: Gaussians, folder: Any) -> bytes:
    write_splat(scene.take(np.arange(100)), folder / "a.splat")
    return (folder / "a.splat").read_bytes()


def test_simultaneous_uploads_count_each_other(scene: Gaussians, tmp_path: Any) -> None:
    body = splat_bytes(scene, tmp_path)

    async def upload(one: Any) -> int:
        address = f"{one.url}scene?session={one.session}&name=a.splat"
        async with one.web.post(address, data=slowly(body)) as response:
            return response.status

    async def visit(url: str) -> list[int]:
        async with page(url) as a, page(url) as b, page(url) as c, page(url) as d:
            return await asyncio.gather(*map(upload, (a, b, c, d)))

    with hushsplat.view(scene, port=0, options=ViewerOptions(max_files=2)) as running:
        assert sorted(run(visit(running.url))) == [200, 200, 400, 400]


async def slowly(body: bytes) -> Any:
    for start in range(0, len(body), 800):
        await asyncio.sleep(0.05)
        yield body[start : start + 800]


def test_one_upload_at_once_for_each_page(viewer: Viewer, scene: Gaussians, tmp_path: Any) -> None:
    body = splat_bytes(scene, tmp_path)

    async def visit() -> tuple[list[int], int]:
        async with page(viewer.url) as one:
            address = f"{one.url}scene?session={one.session}&name=a.splat"

            async def upload() -> int:
                async with one.web.post(address, data=slowly(body)) as response:
                    return response.status

            return sorted(await asyncio.gather(*(upload() for _ in range(4)))), await upload()

    assert run(visit()) == ([200, 400, 400, 400], 200)


@pytest.mark.parametrize("path", ["scene", "track", "video"])
def test_a_slow_body_is_refused(viewer: Viewer, path: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(uploads, "SLOW_S", 0.2)

    async def drip() -> Any:
        for _ in range(40):
            await asyncio.sleep(0.05)
            yield b" "

    async def visit() -> tuple[int, str]:
        async with page(viewer.url) as one:
            address = f"{one.url}{path}?session={one.session}&name=a.splat"
            async with one.web.post(address, data=drip()) as response:
                return response.status, await response.text()

    status, text = run(visit())
    assert status == 400 and "came more slowly than" in text


async def until(holds: Callable[[], object]) -> None:
    while not holds():
        await asyncio.sleep(0.01)


def test_pictures_of_one_page_keep_no_other_waiting(viewer: Viewer, monkeypatch: pytest.MonkeyPatch) -> None:
    drawn, go = list[int](), threading.Event()

    def thumbnail(entry: SceneEntry, index: int, options: RenderOptions) -> bytes:
        go.wait(30)
        drawn.append(index)
        return b""

    monkeypatch.setattr(SceneEntry, "thumbnail", thumbnail)

    async def fetch(one: Any, index: int) -> int:
        async with one.web.get(f"{one.url}place/{index}", params={"session": one.session}) as response:
            return response.status

    async def visit() -> list[int]:
        busy = viewer._server.connections._busy
        async with page(viewer.url) as greedy, page(viewer.url) as other:
            first = [asyncio.create_task(fetch(greedy, 0)) for _ in range(20)]
            await until(lambda: len(busy) >= 2 + session.MOST_FETCHING)
            second = asyncio.create_task(fetch(other, 1))
            await until(lambda: len(busy) >= 2 + session.MOST_FETCHING + 1)
            go.set()
            assert await second == 200
            return sorted(await asyncio.gather(*first))

    try:
        statuses = run(visit())
    finally:
        go.set()
    assert statuses == [200] * session.MOST_FETCHING + [400] * (20 - session.MOST_FETCHING)
    assert drawn.index(1) <= 2 and drawn.count(0) == session.MOST_FETCHING


def test_downloads_that_are_not_read_are_few_and_end(viewer: Viewer, tmp_path: Path, monkeypatch: Any) -> None:
    path = tmp_path / "a.mp4"
    with path.open("wb") as file:
        file.truncate(64 << 20)
    video: Any = SimpleNamespace(id="slow", path=path, downloads=0)
    monkeypatch.setitem(viewer._server._videos, "nobody", video)
    request = b"GET /video/slow HTTP/1.1\r\nHost: localhost\r\n\r\n"

    def waited(count: int) -> bool:
        end = time.monotonic() + 30
        while video.downloads != count and time.monotonic() < end:
            time.sleep(0.02)
        return video.downloads == count

    with ExitStack() as stack:
        for _ in range(server.MOST_DOWNLOADS):
            opened = stack.enter_context(socket.create_connection(("127.0.0.1", viewer.port), timeout=30))
            opened.sendall(request)
        assert waited(server.MOST_DOWNLOADS)
        assert get(viewer.port, "/video/slow")[0] == 400
    assert waited(0)
    monkeypatch.setattr(connections, "SLOW_S", 0.2)
    monkeypatch.setattr(connections, "SLOWEST_BYTES_PER_S", 1 << 40)
    with socket.create_connection(("127.0.0.1", viewer.port), timeout=30) as opened:
        opened.sendall(request)
        time.sleep(0.1)
        assert waited(0)
        received = 0
        with suppress(ConnectionError):
            while part := opened.recv(1 << 20):
                received += len(part)
    assert received < 64 << 20


def test_video_of_a_page_that_has_gone_is_not_made(viewer: Viewer, monkeypatch: pytest.MonkeyPatch) -> None:
    go, began = threading.Event(), threading.Event()
    parse = VideoRequest.parse

    def slow(*arguments: Any) -> VideoRequest:
        began.set()
        go.wait(30)
        return parse(*arguments)

    monkeypatch.setattr(VideoRequest, "parse", staticmethod(slow))
    track = json.loads("".join(track_json(hushsplat.walk_track(1, 2, 64, 48))))
    wanted = {"track": track, "fps": 2, "width": 64, "height": 48, "divider": 1}

    async def visit() -> tuple[int, str]:
        async with aiohttp.ClientSession() as web:
            async with page(viewer.url) as one:
                address = f"{one.url}video?session={one.session}"
                request = asyncio.create_task(web.post(address, json=wanted).__aenter__())
                await until(began.is_set)
            await until(lambda: viewer.clients == 0)
            go.set()
            answer = await request
            return answer.status, await answer.text()

    try:
        status, text = run(visit())
    finally:
        go.set()
    assert status == 400 and "the page has gone" in text and not viewer._server._videos


def test_a_page_that_reads_nothing_keeps_no_message_from_others(viewer: Viewer) -> None:
    heard = list[dict[str, Any]]()

    async def stuck(message: dict[str, Any]) -> None:
        await asyncio.sleep(60)

    async def hears(message: dict[str, Any]) -> None:
        heard.append(message)

    async def tell() -> None:
        crowd = server.Server(viewer._service, None)
        crowd._sessions = {str(at): SimpleNamespace(send=send) for at, send in enumerate((stuck, hears))}  # type: ignore[misc]
        telling = asyncio.create_task(crowd.tell_progress(0.5))
        await until(lambda: heard)
        telling.cancel()

    before = viewer._service.drawing.on_stuck
    try:
        run(tell())
    finally:
        viewer._service.drawing.on_stuck = before
    assert heard == [{"type": "progress", "share": 0.5}]


def test_a_compressed_body_stays_compressed(viewer: Viewer) -> None:
    """Deflate could make gigabytes of a megabyte."""

    async def visit() -> str:
        async with page(viewer.url) as one:
            address = f"{one.url}track?session={one.session}&name=a.json"
            body = io.BytesIO(b"\x78\x9c\xab\xae\x05\x00\x01\x75\x00\xf9").getvalue()  # zlib of {}
            headers = {"Content-Encoding": "deflate"}
            async with one.web.post(address, data=body, headers=headers) as response:
                return await response.text()

    assert "is not JSON" in run(visit())


def test_the_link_is_still_one(viewer: Viewer) -> None:
    async def visit() -> int:
        async with aiohttp.ClientSession() as web, web.get(viewer.url) as response:
            return response.status

    assert urlsplit(viewer.url).port == viewer.port and run(visit()) == 200


def test_a_greedy_frame_is_drawn_in_bounded_pieces(scene: Gaussians, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(frame_renderer, "PIECE_PX", 5000)
    monkeypatch.setattr(frame_renderer, "MAX_SAMPLED_PX", 60_000)
    entry = SceneEntry.of(scene, "room", engine(), RenderOptions())
    pieces: list[int] = []
    sample = type(entry.engine).sample

    def counted(self: Any, scene: Any, camera: Camera, noise: Noise, options: RenderOptions) -> Any:
        pieces.append(noise.samples * camera.width * camera.height)
        return sample(self, scene, camera, noise, options)

    monkeypatch.setattr(type(entry.engine), "sample", counted)
    renderer = FrameRenderer(entry, default_weights("temporal"), RenderOptions())
    camera = hushsplat.home_camera(96, 64)
    sides = (Side("raw"), Side("reference"))
    *turns, _ = renderer.render(camera, Draw(sides, samples=64), 0)
    assert sum(pieces) == 9 * 96 * 64  # of 64 samples, as many as the limit allows
    assert max(pieces) <= 5000 and len(turns) >= len(pieces) + 1


def test_clients_share_the_memory(scene: Gaussians) -> None:
    total = 4_000_000
    camera = hushsplat.home_camera(640, 400)

    async def size(one: Any) -> int:
        await one.look(camera)
        frame, _ = await one.sharp_frame()
        return frame["width"] * frame["height"]

    async def visit(viewer: Viewer) -> tuple[int, list[int], int, int]:
        memory = viewer._service.memory
        async with page(viewer.url) as first:
            await first.draw("svgf", "mean")
            alone = await size(first)
            async with page(viewer.url) as second:
                await second.draw("svgf", "mean")
                pixels = [await size(second)]
                frame = (await first.next("frame"))[0]
                while frame["width"] * frame["height"] == alone:  # one that was drawn before
                    await first.acknowledge(frame)
                    frame = (await first.next("frame"))[0]
                pixels.append(frame["width"] * frame["height"])
                held = memory.held
        while viewer.clients:
            await asyncio.sleep(0.01)
        return alone, pixels, held, memory.held

    with hushsplat.view(scene, port=0, options=ViewerOptions(max_memory_bytes=total)) as running:
        alone, pixels, held, left = run(visit(running))
    each = bytes_per_px(Draw((Side("svgf"), Side("mean"))), False)
    assert 0.95 * total < each * alone <= 1.01 * total
    assert all(0.45 * total < each * count <= 0.51 * total for count in pixels)
    assert held <= total and left == 0


def test_what_cannot_shrink_is_refused(scene: Gaussians, tmp_path: Path) -> None:
    body = splat_bytes(scene, tmp_path)
    track = "".join(track_json(hushsplat.walk_track(1, 2, 64, 48)))

    async def visit(url: str) -> tuple[str, str]:
        async with page(url) as one:
            address = f"{one.url}scene?session={one.session}&name=a.splat"
            async with one.web.post(address, data=body) as response:
                dropped = (await response.json())["error"]
            request = {"track": json.loads(track), "fps": 2, "width": 640, "height": 400, "divider": 1}
            async with one.web.post(f"{one.url}video?session={one.session}", json=request) as response:
                assert response.status == 200
            states = [(await one.next("video"))[0]]
            while states[-1]["state"] == "drawing":
                states.append((await one.next("video"))[0])
            return dropped, states[-1]["message"]

    with hushsplat.view(scene, port=0, options=ViewerOptions(max_memory_bytes=9_000)) as running:
        dropped, video = run(visit(running.url))
        assert running._service.memory.held == 0 and len(running._service.dropped) == 0
    assert "a.splat: needs 0 MB" in dropped and "the video: needs 20 MB" in video


def test_a_stuck_drawing_thread_is_replaced(
    scene: Gaussians, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setattr(drawing, "STUCK_S", 1.0)
    stuck, may_end = threading.Event(), threading.Event()
    render = type(engine()).render

    def block(self: Any, scene: Any, camera: Camera, *rest: Any) -> Any:
        if camera.width == 77:
            stuck.set()
            may_end.wait(30)
        return render(self, scene, camera, *rest)

    monkeypatch.setattr(type(engine()), "render", block)

    async def visit(url: str) -> tuple[str, str, int]:
        async with page(url) as bad, page(url) as good:
            for one in (bad, good):
                await one.draw("reference")
            await bad.look(hushsplat.home_camera(77, 50))
            await asyncio.to_thread(stuck.wait, 20)
            await good.look(hushsplat.home_camera(48, 32))
            frame, _ = await good.sharp_frame()
            told = [(await bad.next("error"))[0]["message"] for _ in range(2)]
            await bad.look(hushsplat.home_camera(50, 40))  # its next frame is drawn as ever
            after, _ = await bad.sharp_frame()
            assert after["width"] == 50
            return *sorted(told), frame["width"]

    with hushsplat.view(scene, port=0) as running:
        try:
            given_up, late, width = run(visit(running.url))
        finally:
            may_end.set()
    assert "a frame took more than 1 s and was given up" in given_up
    assert "drawing was stuck and goes on now" in late and width == 48
    assert sum("drawing was stuck for 1 s" in record.message for record in caplog.records) == 1
