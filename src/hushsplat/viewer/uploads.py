"""Files that are dropped on the page: received under random names with limits, read by the package's readers."""

from __future__ import annotations

import asyncio
import json
import time
from collections.abc import AsyncIterator, Callable
from functools import partial
from pathlib import Path
from typing import Any
from urllib.parse import unquote

from aiohttp import web
from jaxtyping import Float32
from numpy import ndarray as Array

from hushsplat.io.progress import listening
from hushsplat.io.scenes.scene import MAGIC, load
from hushsplat.io.tracks import load_track, track_from_json, track_json
from hushsplat.types.errors import HushsplatError, ViewError
from hushsplat.types.summary import bytes_in_memory
from hushsplat.viewer.backdrop import read_environment
from hushsplat.viewer.connections import SLOW_S, SLOWEST_BYTES_PER_S
from hushsplat.viewer.scene_entry import SceneEntry
from hushsplat.viewer.service import RenderService

MAX_TRACK_BYTES = 32 << 20
MAX_NAME = 120  # characters
PATIENCE_S = 20.0  # without a byte
ENGINE_COPIES = 2  # of a scene in memory: as it was read, and as the engine keeps it
MAX_CAMERAS = 10_000  # of a dropped capture: they take seconds to read
FLIGHT_POSES_PER_S = 2.0  # of a flight through a capture: as many as photographs, and few enough to edit
READING_SHARE = 0.7  # of the time that a dropped scene takes; the rest finds its places
SPLAT_BYTES = 32  # of each Gaussian of a .splat, the one format without a magic number


async def read_dropped_scene(
    request: web.Request, service: RenderService, on_progress: Callable[[float], None]
) -> SceneEntry:
    """The scene in the body of a request, read and uploaded to the engine; tells in any thread how much is read."""
    name = _name(request)
    limit = service.options.max_upload_bytes
    if limit == 0:
        raise ViewError("this viewer takes no files; start it with --max-upload-mb.")
    path = service.new_file("")
    with service.dropped.arriving(name):
        try:
            await _receive(request, path, limit, name)
            return await service.read(partial(_read_scene, path, name, service, on_progress))
        finally:
            path.unlink(missing_ok=True)
            path.with_suffix(".splat").unlink(missing_ok=True)


async def read_dropped_environment(request: web.Request, service: RenderService) -> Float32[Array, "h w 3"]:
    """The picture all around in the body of a request."""
    name = _name(request)
    path = service.new_file(".picture")
    try:
        await _receive(request, path, MAX_TRACK_BYTES, name)
        return await service.read(partial(read_environment, path, name))
    finally:
        path.unlink(missing_ok=True)


async def read_dropped_track(request: web.Request, service: RenderService) -> str:
    """The track in the body of a request, as our JSON."""
    name = _name(request)
    path = service.new_file(".csv" if name.lower().endswith(".csv") else ".json")
    try:
        await _receive(request, path, MAX_TRACK_BYTES, name)
        return await service.read(partial(_read_track, path, name))
    finally:
        path.unlink(missing_ok=True)


async def received(request: web.Request) -> bytes:
    """The body of a request, unless it is too long for a track."""
    return b"".join([chunk async for chunk in _chunks(request, MAX_TRACK_BYTES, "the video")])


async def _receive(request: web.Request, path: Path, limit: int, name: str) -> None:
    """Write the body to a file."""
    with path.open("wb") as file:
        async for chunk in _chunks(request, limit, name):
            file.write(chunk)


async def _chunks(request: web.Request, limit: int, name: str) -> AsyncIterator[bytes]:
    """The body of a request; refused when it is too long, stops coming, or comes too slowly."""
    announced = request.content_length
    if announced is not None and announced > limit:
        raise ViewError(f"{name}: {announced} bytes are more than the {limit} that this viewer takes.")
    received, begin = 0, time.monotonic()
    while True:
        try:
            chunk = await asyncio.wait_for(request.content.read(1 << 20), PATIENCE_S)
        except asyncio.TimeoutError as error:
            raise ViewError(f"{name}: nothing came for {PATIENCE_S:.0f} s; try again.") from error
        if not chunk:
            return
        received += len(chunk)
        if received > limit:
            raise ViewError(f"{name}: has more than the {limit} bytes that this viewer takes.")
        if time.monotonic() - begin > SLOW_S + received / SLOWEST_BYTES_PER_S:
            raise ViewError(f"{name}: came more slowly than {SLOWEST_BYTES_PER_S} bytes a second; try again.")
        yield chunk


def _read_scene(path: Path, name: str, service: RenderService, on_progress: Callable[[float], None]) -> SceneEntry:
    """The format is known by the first bytes of the file; only a .splat is known by its name."""
    with path.open("rb") as file:
        start = file.read(4)
    if not any(start.startswith(magic) for magic in MAGIC):
        size = path.stat().st_size
        if not name.lower().endswith(".splat") or size == 0 or size % SPLAT_BYTES:
            raise ViewError(f"{name}: is no scene; drop a .ply, .splat, .spz or .sog file, a track or a screenshot.")
        path = path.rename(path.with_suffix(".splat"))
    try:
        with listening(lambda share: on_progress(READING_SHARE * share)):
            gaussians = load(path)
        on_progress(READING_SHARE)
        needed = ENGINE_COPIES * bytes_in_memory(gaussians)
        entry = SceneEntry.of(gaussians, name, service.entry.engine, service.options.render)
        service.memory.pin(entry, needed, name)
        return entry
    except HushsplatError as error:
        raise ViewError(str(error).replace(str(path), name)) from error
    except MemoryError as error:
        raise ViewError(f"{name}: there is not enough memory for it.") from error


def _read_track(path: Path, name: str) -> str:
    """Our JSON, with the poses that the page edits if it has them; or anything else that is a track."""
    try:
        content = {} if path.suffix == ".csv" else parsed_json(path.read_bytes(), name)
        if not isinstance(content, dict) or "format" not in content:
            cameras = content.get("frames") if isinstance(content, dict) else content
            if isinstance(cameras, list) and len(cameras) > MAX_CAMERAS:
                raise ViewError(f"{name}: has {len(cameras)} cameras, at most {MAX_CAMERAS} are taken here.")
            return "".join(track_json(load_track(path, fps=FLIGHT_POSES_PER_S)))
        text = "".join(track_json(track_from_json(name, content)))
        if "keys" not in content:
            return text
        # In the same form as the frames.
        keys = "".join(track_json(track_from_json(f"{name}: keys", {**content, "frames": content["keys"]})))
        return json.dumps({**json.loads(text), "keys": json.loads(keys)["frames"]})
    except HushsplatError as error:
        raise ViewError(str(error).replace(str(path), name)) from error


def parsed_json(body: bytes, name: str) -> Any:
    """The JSON in bytes; errors name them `name`."""
    try:
        return json.loads(body)
    except (ValueError, RecursionError) as error:  # ValueError: syntax, encoding or endless digits
        raise ViewError(f"{name}: is not JSON: {error}.") from error


def _name(request: web.Request) -> str:
    """The page's name for the file: shown, never opened."""
    name = unquote(request.query.get("name", "")) or "the file"
    return "".join(letter for letter in name if letter.isprintable())[:MAX_NAME]
