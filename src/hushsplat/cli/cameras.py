"""The options for cameras: one of a capture, a track, an orbit, or none and then a guess."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Any

from hushsplat.cli.flags import Flag, MaybeFloat, MaybeInt, MaybePath, MaybeUp
from hushsplat.home import frame_scene, orbit_scene, tour
from hushsplat.io.captures.capture import load_capture
from hushsplat.io.frames import frame_rate
from hushsplat.io.tracks import load_track
from hushsplat.scenes import NamedScene
from hushsplat.synth import home_camera, walk_track
from hushsplat.types.camera import Camera
from hushsplat.types.capture import Capture, View
from hushsplat.types.errors import CameraError, HushsplatError
from hushsplat.types.options import RenderOptions
from hushsplat.types.paths import reanchored
from hushsplat.types.track import Track
from hushsplat.types.up import up_direction

WIDTH, HEIGHT, FOV_Y_DEG = 800, 532, 50.0
SECONDS, FPS = 8.0, 30.0


@dataclass(frozen=True)
class Cameras:
    """Where the pictures are taken from, and how large they are."""

    capture: MaybePath = None  # look from a camera of this capture (folder) or list of cameras (.json)
    view: str = "0"  # which camera of the capture: its number in the order of names, or its name
    track: MaybePath = None  # fly along this track: .json, .csv of EyeNavGS, or a capture
    walk: Flag = False  # walk through the scene, from place to place
    orbit: Flag = False  # fly a circle about the scene
    width: MaybeInt = None  # px; alone it keeps the camera's aspect ratio
    height: MaybeInt = None  # px; alone it keeps the camera's aspect ratio
    fov: MaybeFloat = None  # degrees from top to bottom, where no camera or track is given; 50 if not said
    up: MaybeUp = None  # which way is up; a guess if not said
    seconds: MaybeFloat = None  # how long a walk, an orbit or a flight through a capture takes
    fps: MaybeFloat = None  # frames a second; a track keeps its own unless this is said
    speed: float = 1.0  # > 0: move this much faster
    reanchor: MaybeFloat = None  # > 0: begin the track at the scene's own camera, its moves times this

    def track_or_camera(self, scene: NamedScene, options: RenderOptions) -> Track | Camera:
        """A single camera, unless a track, a walk or an orbit was asked for."""
        self._refuse_contradictions()
        seconds = SECONDS if self.seconds is None else self.seconds
        fps = FPS if self.fps is None else self.fps
        if self.walk and not self.is_guessed(scene):
            return walk_track(seconds / self.speed, fps, *self._guessed_size())
        if self.walk or self.orbit:
            fov, size, seconds = self._guessed_fov(), self._guessed_size(), seconds / self.speed
            path = tour if self.walk else orbit_scene
            up = self.upward(scene)
            return path(scene.framing, *size, up=up, seconds=seconds, fps=fps, fov_y_deg=fov, options=options)
        if self.track is None:
            return self.camera(scene, options)
        track = self._resampled(self._anchored(load_track(self.track, seconds=self.seconds, fps=fps), scene, options))
        return track.resized(*self._size(track.width, track.height))

    def is_guessed(self, scene: NamedScene) -> bool:
        """Whether the camera is neither given nor known for the scene."""
        known = scene.is_own and self.fov is None and self.up is None and not self.orbit
        return self.capture is None and self.track is None and not known

    def camera(self, scene: NamedScene, options: RenderOptions) -> Camera:
        """A camera of the capture, our scene's own camera, or one that frames the scene."""
        if self.capture is not None:
            camera = view_named(load_capture(self.capture, require_photographs=False), self.view).camera
            return camera.resized(*self._size(camera.width, camera.height))
        if not self.is_guessed(scene):
            return home_camera(*self._guessed_size())
        up = self.upward(scene)
        return frame_scene(scene.framing, *self._guessed_size(), up, self._guessed_fov(), options=options)

    def upward(self, scene: NamedScene) -> Any:
        """Which way is up: as was asked for, or as far as it is known; None: a guess."""
        return scene.known_up if self.up is None else self.up

    def _anchored(self, track: Track, scene: NamedScene, options: RenderOptions) -> Track:
        if self.reanchor is None:
            return track
        anchor = Cameras(fov=self.fov, up=self.up).camera(scene, options)
        return reanchored(track, anchor, self.reanchor, up=up_direction(scene.framing, self.upward(scene)))

    def _resampled(self, track: Track) -> Track:
        if self.fps is None and self.speed == 1:
            return track
        return track.resampled(frame_rate(track) if self.fps is None else self.fps, self.speed)

    def _refuse_contradictions(self) -> None:
        chosen = [flag for flag in ("capture", "track", "walk", "orbit") if getattr(self, flag)]
        if len(chosen) > 1:
            raise HushsplatError(f"--{chosen[0]} and --{chosen[1]} both say where to look from; give one of them.")
        if self.fov is not None and (self.capture or (self.track and self.reanchor is None)):
            raise HushsplatError(f"--fov has no effect beside --{chosen[0]}, which has its own lens; leave it out.")
        if not 0 < self.speed < float("inf"):
            raise HushsplatError(f"--speed must be a number > 0, got {self.speed}.")
        if self.reanchor is not None and self.track is None:
            raise HushsplatError("--reanchor moves a track, but there is none; give one with --track.")

    def _guessed_fov(self) -> float:
        return FOV_Y_DEG if self.fov is None else self.fov

    def _guessed_size(self) -> tuple[int, int]:
        return self._size(WIDTH, HEIGHT)

    def _size(self, width: int, height: int) -> tuple[int, int]:
        """The size that was asked for, with the aspect ratio of this one where only one side was."""
        wide, high = self.width, self.height
        if wide is not None:
            return wide, max(1, round(height * wide / width)) if high is None else high
        return (width, height) if high is None else (max(1, round(width * high / height)), high)


def view_named(capture: Capture, which: str) -> View:
    """A view of a capture by number or by name."""
    named = [view for view in capture.views if which in (view.name, Path(view.name).stem)]
    if named:
        return named[0]
    if which.isascii() and which.isdigit() and int(which) < len(capture.views):
        return capture.views[int(which)]
    last = len(capture.views) - 1
    raise CameraError(
        f"{capture.folder}: has no view {which!r}; give a number 0..{last} or a name such as {capture.views[0].name!r}."
    )
