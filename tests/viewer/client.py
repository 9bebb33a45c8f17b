"""A client without a browser: speaks the viewer's protocol."""

from __future__ import annotations

import asyncio
import io
import json
import struct
import threading
from collections.abc import AsyncIterator, Coroutine
from contextlib import asynccontextmanager
from typing import Any, TypeVar

import aiohttp
import numpy as np
from PIL import Image

from hushsplat.types.camera import Camera

Result = TypeVar("Result")
PATIENCE_S = 60.0


def run(work: Coroutine[Any, Any, Result]) -> Result:
    """Run a coroutine in a thread of its own: Playwright keeps an event loop in the main one."""
    results: list[Result] = []
    errors: list[BaseException] = []

    def target() -> None:
        try:
            results.append(asyncio.run(asyncio.wait_for(work, PATIENCE_S)))
        except BaseException as error:
            errors.append(error)

    thread = threading.Thread(target=target)
    thread.start()
    thread.join()
    if errors:
        raise errors[0]
    return results[0]


class Page:
    """One connection."""

    def __init__(self, url: str, web: aiohttp.ClientSession, socket: aiohttp.ClientWebSocketResponse) -> None:
        self.url = url
        self.web = web
        self.socket = socket
        self.session = ""
        self.hello: dict[str, Any] = {}
        self.scene: dict[str, Any] = {}

    async def send(self, kind: str, **fields: Any) -> None:
        await self.socket.send_str(json.dumps({"type": kind, **fields}))

    async def look(self, camera: Camera, sequence: int = 0, **changes: Any) -> None:
        fov = float(np.degrees(2 * np.arctan(camera.height / 2 / camera.fy)))
        pose = camera.world_from_camera.tolist()
        message = {"world_from_camera": pose, "fov_y_deg": fov, "width": camera.width, "height": camera.height}
        await self.send("look", **{**message, "sequence": sequence, **changes})

    async def draw(self, *methods: str, **settings: Any) -> None:
        sides = [dict(zip(("method", "show"), method.split("~"), strict=False)) for method in methods]
        await self.send("draw", sides=sides, **settings)

    async def next(self, kind: str) -> tuple[dict[str, Any], list[bytes]]:
        """The next message of this kind; frames that come before it are acknowledged."""
        while True:
            message = await asyncio.wait_for(self.socket.receive(), PATIENCE_S)
            if message.type == aiohttp.WSMsgType.TEXT:
                content, parts = json.loads(message.data), []
                name = content["type"]
            elif message.type == aiohttp.WSMsgType.BINARY:
                content, parts = unpacked(message.data)
                name = content["kind"]
            else:
                raise ConnectionError(f"the connection has ended: {message}")
            if name == kind:
                return content, parts
            if name == "frame":
                await self.acknowledge(content)

    async def acknowledge(self, frame: dict[str, Any]) -> None:
        await self.send("ack", frame=frame["frame"])

    async def sharp_frame(self, at_least: int = 1) -> tuple[dict[str, Any], list[bytes]]:
        """A frame of the canvas' full size, the first one after so many from one place."""
        while True:
            frame, parts = await self.next("frame")
            await self.acknowledge(frame)
            if not frame["moving"] and frame["still_frames"] >= at_least:
                return frame, parts

    async def quiet_for(self, seconds: float) -> list[dict[str, Any]]:
        """The frames that come in so long; none is acknowledged."""
        frames = []
        try:
            while True:
                frame, _ = await asyncio.wait_for(self.next("frame"), seconds)
                frames.append(frame)
        except asyncio.TimeoutError:
            return frames

    async def post(self, path: str, body: bytes, **query: str) -> tuple[int, dict[str, Any]]:
        query = {"session": self.session, **query}
        async with self.web.post(self.url + path, params=query, data=body) as answer:
            return answer.status, await answer.json()


@asynccontextmanager
async def page(url: str) -> AsyncIterator[Page]:
    """Connect, and receive the first messages."""
    base, _, query = url.partition("?")
    async with aiohttp.ClientSession() as web, web.ws_connect(f"{base}ws?{query}", max_msg_size=0) as socket:
        one = Page(base, web, socket)
        one.hello, _ = await one.next("hello")
        one.scene, _ = await one.next("scene")
        one.session = one.scene["session"]
        yield one


def unpacked(message: bytes) -> tuple[dict[str, Any], list[bytes]]:
    (size,) = struct.unpack("<I", message[:4])
    header = json.loads(message[4 : 4 + size])
    at, parts = 4 + size, []
    for length in header["lengths"]:
        parts.append(message[at : at + length])
        at += length
    assert at == len(message)
    return header, parts


def pixels(picture: bytes) -> np.ndarray:
    return np.asarray(Image.open(io.BytesIO(picture)).convert("RGB"))


def psnr(first: np.ndarray, second: np.ndarray) -> float:
    return float(10 * np.log10(255**2 / np.mean((first.astype(float) - second.astype(float)) ** 2)))
