"""Scenes by name, as every command takes them: a file, `synth:500k` (procedural) or `demo:` (in the package)."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path

import numpy as np
from jaxtyping import Float64
from numpy import ndarray as Array

from hushsplat.io.captures.camera_list import INRIA_CAMERAS, cameras_beside
from hushsplat.io.content import levels_of_detail
from hushsplat.io.scenes.scene import STREAMED, load, scene_file
from hushsplat.io.scenes.sog_members import bytes_on_disk
from hushsplat.io.scenes.sog_stream import StreamedSog
from hushsplat.synth import room_and_garden
from hushsplat.types.camera import Camera
from hushsplat.types.errors import SceneError
from hushsplat.types.gaussians import Gaussians
from hushsplat.types.paths import up_of_cameras
from hushsplat.types.surfaces import scene_bulk
from hushsplat.types.up import UP_AXES, up_by_cameras

PREFIX = "synth:"
DEMO = "demo:"
DEMO_FILE = Path(__file__).parent / "data" / "demo.sog"  # made by tools/make_demo_scene.py
FRAMING_GAUSSIANS = 20_000  # ours: the coarsest level with so many still shows what there is to see
# Ours: half a million Gaussians take a second or more. At SH degree 3 a PLY has 236 bytes for each, others 10 to 60.
LARGE_BYTES, LARGE_PACKED_BYTES = 100 << 20, 16 << 20
CAMERA_RADII = 5.0  # ours: of a scene's bulk; those who walk about an object are as near
MULTIPLES = {"": 1, "k": 1_000, "m": 1_000_000}


@dataclass(frozen=True)
class NamedScene:
    """A scene and its name.

    Attributes:
        name: in tables: the name of its file, or `synth:500k`.
        gaussians: the scene.
        is_own: `synth:` and `demo:`, which `home_camera` and `walk_track` fit.
        file: that it was read from.
        lod: level of detail that was asked for.
    """

    name: str
    gaussians: Gaussians
    is_own: bool
    file: Path | None = None
    lod: int | None = None

    @cached_property
    def framing(self) -> Gaussians:
        """What cameras and up are chosen by: one level of detail, the same for all levels of a file."""
        levels = None if self.file is None else levels_of_detail(self.file)
        if not levels or self.file is None:
            return self.gaussians
        level = framing_level(levels)
        return self.gaussians if level == (self.lod or 0) else load(self.file, lod=level)

    @cached_property
    def known_up(self) -> Float64[Array, " 3"] | None:
        """Which way is up by who made the scene, or by the cameras that are listed beside its file; None: a guess."""
        if self.is_own:
            return np.array(UP_AXES["-y"])
        cameras = [] if self.file is None else cameras_beside(scene_file(self.file))
        return self.up_of(cameras) if _look_at(cameras, self.framing) else None

    @property
    def up_by(self) -> str:
        """Who says which way is up."""
        if self.known_up is None:
            return "a guess"
        return "known" if self.is_own else f"by {INRIA_CAMERAS}"

    def up_of(self, cameras: Sequence[Camera]) -> Float64[Array, " 3"]:
        """Which way was up for those who took its pictures."""
        return up_by_cameras(self.framing, up_of_cameras(np.stack([camera.world_from_camera for camera in cameras])))


def _look_at(cameras: Sequence[Camera], scene: Gaussians) -> bool:
    """Whether these may be cameras of the scene: most are not far from it."""
    if not cameras or len(scene) == 0:
        return False
    middle, radius = scene_bulk(scene)
    distances = np.linalg.norm([camera.position - middle for camera in cameras], axis=1)
    return bool(np.median(distances) < CAMERA_RADII * radius)


def demo_scene() -> NamedScene:
    """The scene in the package: trained on pictures of the procedural scene."""
    if not DEMO_FILE.is_file():
        raise SceneError(f"{DEMO_FILE}: the scene of the package is not there; install it again.")
    return NamedScene("demo", load(DEMO_FILE), is_own=True)


def scene_argument(text: str, lod: int | None = None) -> NamedScene:
    """The scene of a file, of `synth:` and a number of surfels, or of `demo:`."""
    if text == DEMO:
        return demo_scene()
    if not text.startswith(PREFIX):
        return NamedScene(scene_name(text), load(text, lod=lod), False, Path(text), lod)
    if lod is not None:
        raise SceneError(f"{text}: has no levels of detail; say how many surfels instead, such as synth:200k.")
    return NamedScene(text, room_and_garden(_count(text)), is_own=True)


def framing_level(levels: Mapping[int, int]) -> int:
    """The coarsest level of detail that still shows what there is to see, of these with so many Gaussians each."""
    return max((level for level, count in levels.items() if count >= FRAMING_GAUSSIANS), default=min(levels))


def streamed_file(text: str) -> Path | None:
    """The lod-meta.json of a scene with several levels of detail, if it is one."""
    path = Path(text)
    levels = None if text == DEMO or text.startswith(PREFIX) or not path.exists() else levels_of_detail(path)
    if levels is None or len(levels) < 2:
        return None
    return path / STREAMED if path.is_dir() else path


def coarse_scene(text: str, streamed: StreamedSog) -> NamedScene:
    """A streamed scene in its coarsest level."""
    coarsest = streamed.coarsest
    return NamedScene(scene_name(text), streamed.read(coarsest), False, streamed.path, max(coarsest))


def is_large(text: str) -> bool:
    """Whether a scene takes long to read; a folder without one is refused."""
    path = Path(text)
    if not path.exists():
        return False
    file = scene_file(path)
    return bytes_on_disk(file) > (LARGE_BYTES if file.suffix.lower() == ".ply" else LARGE_PACKED_BYTES)


def scene_name(text: str) -> str:
    """In tables: the file's name; of a streamed scene its folder's, of a piece that is only numbered (3_0) both."""
    path = Path(text)
    if text == DEMO or text.startswith(PREFIX):
        return text.removesuffix(":")
    if path.name == STREAMED:
        return path.resolve().parent.name
    return path.name if any(map(str.isalpha, path.name)) else "/".join(path.parts[-2:])


def scene_stamp(scene: NamedScene) -> str:
    """Size and time of a scene's file, so that another one of the same name is another scene; empty of our own."""
    if scene.file is None:
        return ""
    facts = scene.file.stat()
    return f"{facts.st_size} {facts.st_mtime_ns}"


def _count(text: str) -> int:
    match = re.fullmatch(r"(\d{1,9}(?:\.\d{1,6})?)([kKmM]?)", text.removeprefix(PREFIX))
    if match is None:
        raise SceneError(f"{text}: is no scene of ours; write synth: and a number of surfels, such as synth:500k.")
    return round(float(match[1]) * MULTIPLES[match[2].lower()])
