"""Ways to move through any scene, as people do: hand-held walk, orbit, fast turn, dolly, stop-and-go, head motion.

A motion begins at a viewpoint: eye, target, up direction and length of a metre; `viewpoint_in` guesses one for a scene.
For our own scene and for one of bonsai the motions come as JSON in `tracks/`.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from importlib.resources import as_file, files
from pathlib import Path

import numpy as np
from jaxtyping import Float64
from numpy import ndarray as Array

from hushsplat.home import find_places, tour
from hushsplat.io.tracks import load_track, read_track
from hushsplat.scenes import NamedScene
from hushsplat.types.camera import Camera, look_at_pose
from hushsplat.types.errors import TrackError
from hushsplat.types.paths import dolly, orbit, walk
from hushsplat.types.splines import curve
from hushsplat.types.track import Track
from hushsplat.types.up import up_direction

FOV_Y_DEG = 55.0
WIDTH, HEIGHT = 800, 532  # px
KEYS_PER_S = 30.0  # poses a second; `Track.resampled` makes as many frames of them as are wanted
DISTANCE_M = 3.0  # ours: distance from eye to target, where a scene does not say how long a metre is


@dataclass(frozen=True)
class Viewpoint:
    """Where a motion begins."""

    eye: Float64[Array, " 3"]
    target: Float64[Array, " 3"]  # what is looked at
    up: Float64[Array, " 3"]  # of length 1
    unit: float  # world units per metre

    @property
    def way(self) -> Float64[Array, " 3"]:
        """From the eye to the target."""
        return self.target - self.eye

    @property
    def right(self) -> Float64[Array, " 3"]:
        """Of length 1, level."""
        across = np.cross(self.way, self.up)
        return across / np.linalg.norm(across)


def hand_held_walk(viewpoint: Viewpoint, seconds: float) -> Track:
    """A person walks a slow curve and keeps looking at the target."""
    reach = np.linalg.norm(viewpoint.way)
    steps = ((0.0, 0.0), (0.12, 0.12), (0.3, 0.1), (0.38, -0.08))  # shares of the way: ahead, to the right
    places = [viewpoint.eye + ahead * viewpoint.way + aside * reach * viewpoint.right for ahead, aside in steps]
    track = walk(
        places, viewpoint.target, up=viewpoint.up, unit=viewpoint.unit, seconds=seconds, fps=KEYS_PER_S, seed=5
    )
    return _lens(track)


def slow_orbit(viewpoint: Viewpoint, seconds: float) -> Track:
    """A sixth of a circle about the target."""
    height = float(-viewpoint.way @ viewpoint.up)
    level = -viewpoint.way - height * viewpoint.up
    first = np.cross(viewpoint.up, np.eye(3)[np.argmin(np.abs(viewpoint.up))])
    first /= np.linalg.norm(first)
    start = np.degrees(np.arctan2(level @ np.cross(viewpoint.up, first), level @ first))
    track = orbit(
        viewpoint.target,
        float(np.linalg.norm(level)),
        elevation=height,
        up=viewpoint.up,
        turns=1 / 6,
        start_deg=float(start),
        seconds=seconds,
        fps=KEYS_PER_S,
    )
    return _lens(track)


def fast_turn(viewpoint: Viewpoint, seconds: float) -> Track:
    """Look, turn away by 70 degrees in half a second, look, and turn back."""
    marks = np.array([0.0, 0.2, 0.33, 0.6, 0.73, 1.0]) * seconds
    times = _times(seconds)
    yaw = _eased(times, marks, np.radians([0, 0, 70, 70, 0, 0]))
    eyes = viewpoint.eye + viewpoint.unit * _tremor(times, 0.004, 11)
    return _turned(viewpoint, times, eyes, yaw, np.radians(0.5) * _tremor(times, 1.0, 12)[:, 0])


def dolly_in(viewpoint: Viewpoint, seconds: float) -> Track:
    """Straight at the target, as far as three quarters of the way: near things pass by."""
    end = viewpoint.eye + 0.75 * viewpoint.way + 0.05 * np.linalg.norm(viewpoint.way) * viewpoint.right
    return _lens(dolly(viewpoint.eye, end, viewpoint.target, up=viewpoint.up, seconds=seconds, fps=KEYS_PER_S))


def stop_and_go(viewpoint: Viewpoint, seconds: float) -> Track:
    """The hand-held walk in three moves with rests between, where the camera stands perfectly still."""
    times = _times(seconds)
    moved = hand_held_walk(viewpoint, seconds)
    last = moved.times_s[-1]
    marks = np.array([0.0, 0.1, 0.3, 0.45, 0.6, 0.75, 0.9, 1.0]) * seconds
    progress = _eased(times, marks, last * np.array([0, 0, 0.3, 0.3, 0.65, 0.65, 1, 1]))
    distinct, which = np.unique(progress, return_inverse=True)  # a track's times must grow, and here some rest
    return replace(moved, times_s=times, world_from_camera=moved.interpolate(distinct).world_from_camera[which])


def head_motion(viewpoint: Viewpoint, seconds: float) -> Track:
    """A person in a headset: gaze jumps from place to place with the head behind it, the body sways."""
    rng = np.random.default_rng(23)
    times = _times(seconds)
    yaw, pitch = np.zeros_like(times), np.zeros_like(times)
    time, at_yaw, at_pitch = 0.3, 0.0, 0.0
    while time < seconds:
        length = rng.uniform(0.25, 0.55)  # s, of a turn of the head
        to_yaw, to_pitch = np.clip(rng.normal(0, 22), -45, 45), np.clip(rng.normal(0, 7), -12, 12)  # degrees
        part = _smooth((times - time) / length)
        yaw += np.radians(to_yaw - at_yaw) * part
        pitch += np.radians(to_pitch - at_pitch) * part
        time, at_yaw, at_pitch = time + length + rng.uniform(0.3, 1.1), to_yaw, to_pitch
    eyes = viewpoint.eye + viewpoint.unit * _tremor(times, 0.025, 24) + 0.1 * (times / seconds)[:, None] * viewpoint.way
    return _turned(viewpoint, times, eyes, yaw, pitch)


MOTIONS: dict[str, Callable[[Viewpoint, float], Track]] = {
    "walk": hand_held_walk,
    "orbit": slow_orbit,
    "turn": fast_turn,
    "dolly": dolly_in,
    "stop-and-go": stop_and_go,
    "head": head_motion,
}
SECONDS = {"walk": 5.0, "orbit": 5.0, "turn": 4.0, "dolly": 5.0, "stop-and-go": 5.0, "head": 5.0}
TOUR_S = 16.0  # through the places of any scene


def named_track(text: str, scene: NamedScene, up: Float64[Array, " 3"] | None = None) -> Track:
    """The track of a name in MOTIONS, of a name in `tracks/`, of a tour of the scene, or of a file; `up` if known."""
    if text in MOTIONS:
        return bundled_track(f"own-{text}") if scene.is_own else MOTIONS[text](viewpoint_in(scene, up), SECONDS[text])
    if text == "tour":
        upward = scene.known_up if up is None else up
        return tour(scene.framing, WIDTH, HEIGHT, up=upward, fov_y_deg=FOV_Y_DEG, seconds=TOUR_S)
    if text in bundled_tracks():
        return bundled_track(text)
    if not Path(text).exists():
        known = ", ".join((*MOTIONS, "tour", *bundled_tracks()))
        raise TrackError(f"{text}: is neither a file nor one of {known}.")
    return load_track(text)


def viewpoint_in(scene: NamedScene, up: Float64[Array, " 3"] | None = None) -> Viewpoint:
    """Where `hushsplat render` would look from, and a metre by how far that is."""
    up = up_direction(scene.framing, scene.known_up if up is None else up)
    home = find_places(scene.framing, WIDTH, HEIGHT, up=up, fov_y_deg=FOV_Y_DEG, count=1)[0]
    reach = float(np.linalg.norm(home.target - home.camera.position))
    return Viewpoint(home.camera.position, home.target, up, reach / DISTANCE_M)


def bundled_tracks() -> list[str]:
    """The tracks that come with the package."""
    folder = files("hushsplat").joinpath("evaluation", "tracks")
    return sorted(entry.name.removesuffix(".json") for entry in folder.iterdir() if entry.name.endswith(".json"))


def bundled_track(name: str) -> Track:
    """A track that comes with the package."""
    with as_file(files("hushsplat").joinpath("evaluation", "tracks", f"{name}.json")) as path:
        return read_track(path)


def _times(seconds: float) -> Float64[Array, " n"]:
    return np.arange(round(seconds * KEYS_PER_S)) / KEYS_PER_S


def _eased(
    times: Float64[Array, " n"], marks: Float64[Array, " k"], values: Float64[Array, " k"]
) -> Float64[Array, " n"]:
    """From value to value, starting and stopping softly."""
    segment = np.clip(np.searchsorted(marks, times, side="right") - 1, 0, len(marks) - 2)
    part = (times - marks[segment]) / (marks[segment + 1] - marks[segment])
    return values[segment] + (values[segment + 1] - values[segment]) * _smooth(part)


def _smooth(part: Float64[Array, " n"]) -> Float64[Array, " n"]:
    """0 to 1 with least jerk, as arms and heads move."""
    t = np.clip(part, 0, 1)
    return t * t * t * (10 + t * (6 * t - 15))


def _tremor(times: Float64[Array, " n"], strength: float, seed: int) -> Float64[Array, "n 3"]:
    """Smooth noise that begins at 0."""
    knots = np.arange(int(times[-1] * 0.9) + 4) / 0.9
    noise = curve(knots, np.random.default_rng(seed).normal(size=(len(knots), 3)), times)
    return strength * (noise - noise[0])


def _turned(
    viewpoint: Viewpoint,
    times: Float64[Array, " n"],
    eyes: Float64[Array, "n 3"],
    yaw: Float64[Array, " n"],  # rad, to the right
    pitch: Float64[Array, " n"],  # rad, up
) -> Track:
    """A camera that looks from each place in a direction relative to the target."""
    level = viewpoint.way - (viewpoint.way @ viewpoint.up) * viewpoint.up
    reach = np.linalg.norm(level)
    rise = np.arctan2(viewpoint.way @ viewpoint.up, reach) + pitch
    forward = np.cos(yaw)[:, None] * level / reach + np.sin(yaw)[:, None] * viewpoint.right
    forward = np.cos(rise)[:, None] * forward + np.sin(rise)[:, None] * viewpoint.up
    poses = np.stack([look_at_pose(eye, eye + way, viewpoint.up) for eye, way in zip(eyes, forward, strict=True)])
    lens = Camera.look_at(np.zeros(3), np.eye(3)[2], np.eye(3)[1], width=WIDTH, height=HEIGHT, fov_y_deg=FOV_Y_DEG)
    return Track(WIDTH, HEIGHT, lens.fx, lens.fy, lens.cx, lens.cy, times, poses)


def _lens(track: Track) -> Track:
    """All motions look through the same lens."""
    focal = 0.5 * HEIGHT / np.tan(np.radians(FOV_Y_DEG) / 2)
    return replace(track, width=WIDTH, height=HEIGHT, fx=focal, fy=focal, cx=WIDTH / 2, cy=HEIGHT / 2)
