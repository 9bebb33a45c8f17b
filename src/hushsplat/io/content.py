"""Tell scenes, captures and tracks apart without reading them in full."""

from __future__ import annotations

from enum import Enum
from pathlib import Path

from hushsplat.io.captures.camera_list import INRIA_CAMERAS, INRIA_LIST
from hushsplat.io.captures.capture import CAPTURE_NAMES, capture_parts
from hushsplat.io.scenes import sog_stream
from hushsplat.io.scenes.scene import MAGIC, STREAMED, scenes_in
from hushsplat.io.strict_json import read_json_object
from hushsplat.io.tracks import FORMAT as TRACK_FORMAT
from hushsplat.types.errors import HushsplatError
from hushsplat.types.gaussians import Gaussians

PLY_HEADER_START = 4096  # bytes: enough to see whether the PLY is a compressed one


class ContentKind(Enum):
    """What a path holds."""

    SCENE = "scene"
    CAPTURE = "capture"
    TRACK = "track"


def content_kind(path: Path) -> ContentKind:
    """Scene, capture or track, by name and first content; anything unknown counts as a scene."""
    if not path.exists():
        raise HushsplatError(f"{path}: no such file or folder; check the path.")
    if path.is_dir():
        if any((path / name).is_file() for name in (STREAMED, "meta.json")):
            return ContentKind.SCENE
        trained = capture_parts(path) <= {INRIA_CAMERAS}  # 3DGS writes it beside its scenes
        return ContentKind.SCENE if trained and scenes_in(path) else ContentKind.CAPTURE
    suffix = path.suffix.lower()
    if suffix == ".csv":
        return ContentKind.TRACK
    if suffix == ".npy" or path.name in CAPTURE_NAMES:
        return ContentKind.CAPTURE
    if suffix == ".json" and not path.name.endswith(STREAMED):
        content = read_json_object(path, HushsplatError, INRIA_LIST)
        if content.get("format") == TRACK_FORMAT:
            return ContentKind.TRACK
        return ContentKind.CAPTURE if {"frames", INRIA_LIST} & set(content) else ContentKind.SCENE
    return ContentKind.SCENE


def scene_format(path: Path, gaussians: Gaussians) -> str:
    """The name of the format of a scene that was read from `path`."""
    if path.is_dir():
        return "SOG, streamed" if (path / STREAMED).is_file() else "SOG, in a folder"
    if path.name.endswith(STREAMED):
        return "SOG, streamed"
    with path.open("rb") as file:
        start = file.read(PLY_HEADER_START)
    suffix = next((suffix for magic, suffix in MAGIC.items() if start.startswith(magic)), path.suffix.lower())
    if suffix == ".ply":
        if b"element chunk" in start:
            return "PLY, compressed"
        return "PLY, 2DGS" if gaussians.is_surfels else "PLY, 3DGS"
    return {".splat": "splat", ".spz": "SPZ", ".sog": "SOG, bundled", ".json": "SOG, in a folder"}[suffix]


def levels_of_detail(path: Path) -> dict[int, int] | None:
    """How many Gaussians each level of detail has; None for a scene without levels."""
    described = path / STREAMED if path.is_dir() else path
    if not (described.name.endswith(STREAMED) and described.is_file()):
        return None
    return sog_stream.levels_of_detail(described)
