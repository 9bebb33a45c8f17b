"""Tracks made by code: orbit, dolly, walk, a flight through given cameras, and a recorded track moved elsewhere.

A track of `seconds` at `fps` has round(seconds · fps) frames, at least one, as a video of that length has.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any, Literal

import numpy as np
from jaxtyping import Float64
from numpy import ndarray as Array

from hushsplat.types.camera import Camera, look_at_pose
from hushsplat.types.errors import TrackError
from hushsplat.types.rotations import matrix_from_quaternion, normalized, quaternion_from_matrix, sign_continuous
from hushsplat.types.splines import EvenPace, curve
from hushsplat.types.track import MAX_FRAMES, Track

Vector = Sequence[Any] | Array  # three numbers in any form

# A hand-held walk, ours: amplitudes in metres and degrees as in hand-held recordings, frequencies in Hz.
STEPS_PER_S = 1.8  # the head rises once a step and sways once in two steps
BOB_M, SWAY_M = 0.022, 0.018
DRIFT_M, DRIFT_HZ = 0.012, 0.7
TREMOR_M, TREMOR_HZ = 0.0015, 4.0
LOOK_DEG, LOOK_HZ = (3.0, 2.0, 0.8), 0.4  # yaw, pitch, roll: slow changes of the viewing direction
SHAKE_DEG, SHAKE_HZ = (0.25, 0.25, 0.15), 3.0
TURN_S = 0.8  # the camera looks at the place of this much later, and turns this fast
PACE_M_PER_S = 1.2


def orbit(
    center: Vector,
    radius: float,
    *,
    elevation: float = 0.0,  # world units above the centre, along `up`
    up: Vector = (0.0, -1.0, 0.0),
    turns: float = 1.0,  # full circles; negative turns the other way
    start_deg: float = 0.0,
    seconds: float = 8.0,
    fps: float = 30.0,
    width: int = 800,
    height: int = 532,
    fov_y_deg: float = 50.0,
) -> Track:
    """A circle about `center`, looking at it; a whole number of turns loops without a seam."""
    if not (np.isfinite(radius) and radius > 0 and np.isfinite([elevation, turns, start_deg]).all()):
        raise TrackError(f"an orbit needs a radius > 0 and finite elevation, turns and start_deg, got radius {radius}.")
    middle, upward = _vector(center, "center"), _direction(up, "up")
    first = normalized(np.cross(upward, np.eye(3)[np.argmin(np.abs(upward))]))
    second = np.cross(upward, first)
    frames = _frame_count(seconds, fps)
    angle = np.radians(start_deg) + 2 * np.pi * turns * np.arange(frames) / frames
    circle = np.cos(angle)[:, None] * first + np.sin(angle)[:, None] * second
    eyes = middle + radius * circle + elevation * upward
    poses = np.stack([look_at_pose(eye, middle, upward) for eye in eyes])
    return _track(poses, fps, width, height, fov_y_deg)


def dolly(
    start: Vector,
    end: Vector,
    target: Vector | None = None,  # looked at all the way; None looks along the way
    *,
    up: Vector = (0.0, -1.0, 0.0),
    seconds: float = 4.0,
    fps: float = 30.0,
    width: int = 800,
    height: int = 532,
    fov_y_deg: float = 50.0,
) -> Track:
    """A straight line from `start` to `end`, both included, at constant speed."""
    first, last, upward = _vector(start, "start"), _vector(end, "end"), _direction(up, "up")
    frames = _frame_count(seconds, fps)
    eyes = first + np.linspace(0, 1, frames)[:, None] * (last - first)
    looked_at = eyes + (last - first) if target is None else np.tile(_vector(target, "target"), (frames, 1))
    poses = np.stack([look_at_pose(eye, at, upward) for eye, at in zip(eyes, looked_at, strict=True)])
    return _track(poses, fps, width, height, fov_y_deg)


def walk(
    waypoints: Sequence[Any] | Array,  # [n >= 2, 3]: where the eyes are, at eye height
    target: Vector | None = None,  # looked at all the way; None looks ahead along the way
    *,
    up: Vector = (0.0, -1.0, 0.0),
    unit: float = 1.0,  # world units per metre, > 0: how large a person is in this scene
    seconds: float | None = None,  # None: at a person's pace
    fps: float = 30.0,
    seed: int = 0,
    width: int = 800,
    height: int = 532,
    fov_y_deg: float = 60.0,
) -> Track:
    """A person with a camera in the hand, walking past the waypoints; the same seed gives the same walk."""
    places = np.asarray(waypoints, dtype=np.float64)
    if places.ndim != 2 or places.shape[1] != 3 or len(places) < 2 or not np.isfinite(places).all():
        raise TrackError(f"a walk needs at least two finite waypoints of 3 coordinates, got shape {places.shape}.")
    if not (np.isfinite(unit) and unit > 0):
        raise TrackError(f"unit is world units per metre and must be finite and > 0, got {unit}.")
    way = EvenPace(places)
    if not way.length > 0:
        raise TrackError("all waypoints of the walk are the same place; give at least two different ones.")
    upward = _direction(up, "up")
    frames = _frame_count(way.length / (unit * PACE_M_PER_S) if seconds is None else seconds, fps)
    times = np.arange(frames) / fps
    progress = np.linspace(0, 1, frames)
    ahead = _ahead_rotations(way, upward, times)
    rng = np.random.default_rng(seed)

    hurry, strength, _ = _noise(times, STEPS_PER_S / 3, rng).T  # steps vary in pace and strength
    step = 2 * np.pi * STEPS_PER_S * times + rng.uniform(0, 2 * np.pi) + 0.4 * hurry
    bob = BOB_M * np.cos(step)[:, None] * upward + SWAY_M * np.sin(step / 2)[:, None] * ahead[:, :, 0]
    bob *= (1 + 0.2 * strength)[:, None]
    drift = DRIFT_M * _noise(times, DRIFT_HZ, rng) + TREMOR_M * _noise(times, TREMOR_HZ, rng)
    wander = np.radians(LOOK_DEG * _noise(times, LOOK_HZ, rng) + SHAKE_DEG * _noise(times, SHAKE_HZ, rng))

    poses = np.tile(np.eye(4), (frames, 1, 1))
    poses[:, :3, 3] = way.at(progress) + unit * (bob + drift)
    if target is not None:
        seen = _vector(target, "target")
        ahead = np.stack([look_at_pose(eye, seen, upward)[:3, :3] for eye in poses[:, :3, 3]])
    poses[:, :3, :3] = ahead @ _small_rotations(wander)
    return _track(poses, fps, width, height, fov_y_deg)


def track_from_cameras(cameras: Sequence[Camera], seconds: float, fps: float = 30.0) -> Track:
    """A smooth flight through cameras in their order, from the first to the last, at an even pace.

    Pace counts both moving and turning, each relative to its mean between two cameras. Picture size and intrinsics
    are the first camera's.
    """
    if not cameras:
        raise TrackError("a track needs at least one camera, got none.")
    frames = _frame_count(seconds, fps)
    lens = cameras[0]
    keys = np.stack([camera.world_from_camera for camera in cameras])
    poses = np.tile(np.eye(4), (frames, 1, 1))
    quaternions = sign_continuous(quaternion_from_matrix(keys[:, :3, :3]))
    values = np.concatenate([keys[:, :3, 3], quaternions], axis=1)
    placed = EvenPace(values, weights=_pose_weights(values)).at(np.linspace(0, 1, frames))
    poses[:, :3, 3] = placed[:, :3]
    poses[:, :3, :3] = matrix_from_quaternion(placed[:, 3:])
    times = np.arange(frames) / fps
    return Track(lens.width, lens.height, lens.fx, lens.fy, lens.cx, lens.cy, times, poses)


def reanchored(
    track: Track,
    anchor: Camera,
    scale: float,  # > 0: displacements are multiplied by it
    *,
    at: Literal["first", "median"] = "first",  # which pose goes to the anchor: the first, or the most central one
    up: Vector | None = None,  # the new scene's up; None takes over the anchor's tilt with its direction
) -> Track:
    """The same motion in another place: one pose goes to the anchor camera, all others follow rigidly.

    With `up`, the ground stays level: the track's own up, as its poses tell it, goes to `up`, and only the compass
    direction follows the anchor. Relative rotations are kept in either case, and so are the intrinsics.
    """
    if not (np.isfinite(scale) and scale > 0):
        raise TrackError(f"scale must be finite and > 0, got {scale}.")
    positions = track.world_from_camera[:, :3, 3]
    origin = 0
    if at == "median":
        origin = int(np.argmin(np.linalg.norm(positions - np.median(positions, axis=0), axis=1)))
    here, there = track.world_from_camera[origin, :3, :3], anchor.world_from_camera[:3, :3]
    if up is not None:
        here, there = _level(here, up_of_cameras(track.world_from_camera)), _level(there, _direction(up, "up"))
    turn = there @ here.T
    poses = np.tile(np.eye(4), (len(track), 1, 1))
    poses[:, :3, :3] = turn @ track.world_from_camera[:, :3, :3]
    poses[:, :3, 3] = anchor.position + scale * (positions - positions[origin]) @ turn.T
    return replace(track, world_from_camera=poses)


def up_of_cameras(world_from_camera: Float64[Array, "n 4 4"]) -> Float64[Array, " 3"]:
    """The world direction that was up while these pictures were taken.

    Nobody tilts the head sideways for long, so up is across all the pictures' x axes: on two whole
    recordings of people this is off by 1.4 and 3.6 degrees, the mean up of the pictures by 7.0 and 5.2 (people look
    down). Excerpts tell less: the first 8 s of one were off by 11 degrees. It takes cameras that turn about; otherwise
    the mean up has to do.
    """
    aside, upward = world_from_camera[:, :3, 0], -world_from_camera[:, :3, 1].mean(axis=0)
    spread, axes = np.linalg.eigh(aside.T @ aside / len(aside))
    if spread[1] > 0.1 and spread[0] < 0.05:
        return axes[:, 0] * np.where(axes[:, 0] @ upward < 0, -1.0, 1.0)
    return _direction(upward, "the mean up of the cameras")


def _level(rotation: Float64[Array, "3 3"], upward: Float64[Array, " 3"]) -> Float64[Array, "3 3"]:
    """The upright camera with the same compass direction; of one that looks straight up or down, its picture's up."""
    forward = rotation[:, 2]
    if np.linalg.norm(np.cross(forward, upward)) < 1e-3:
        forward = -rotation[:, 1] * np.sign(-(forward @ upward))
    horizontal = forward - (forward @ upward) * upward
    return look_at_pose(np.zeros(3), horizontal, upward)[:3, :3]


def _pose_weights(values: Float64[Array, "n 7"]) -> Float64[Array, " 7"]:
    """What makes a mean move and a mean turn between keys count the same."""
    steps = np.abs(np.diff(values, axis=0))
    moving = np.linalg.norm(steps[:, :3], axis=1).mean() if len(steps) else 0.0
    turning = np.linalg.norm(steps[:, 3:], axis=1).mean() if len(steps) else 0.0
    # Less than a millionth is rounding: made to count, it would set the pace of a straight flight or of a pan.
    rounding = 1e-6 * (1 + np.abs(values[:, :3]).max())
    weight = [1 / moving if moving > rounding else 0.0, 1 / turning if turning > 1e-6 else 0.0]
    return np.repeat(weight, [3, 4])


def _ahead_rotations(
    way: EvenPace, upward: Float64[Array, " 3"], times: Float64[Array, " n"]
) -> Float64[Array, "n 3 3"]:
    """Upright cameras that look along the way; sharp turns are taken in TURN_S, as a person turns."""
    seconds = max(times[-1], TURN_S)
    knots = np.linspace(0, seconds, int(seconds / TURN_S) + 2)
    here = np.minimum(knots / seconds, 1 - 1e-3)  # at the very end there is nothing ahead
    there = np.minimum(here + TURN_S / seconds, 1.0)
    forward = way.at(there) - way.at(here)
    forward -= (forward @ upward)[:, None] * upward  # a walker on a slope or a stair still looks level
    still = np.linalg.norm(forward, axis=1) < 1e-6 * way.length  # a turning point just here: keep looking as before
    if still.all():
        raise TrackError("the waypoints of a walk lie on a line along up; give them some way to walk.")
    usable = np.flatnonzero(~still)
    last = usable[np.maximum(np.searchsorted(usable, np.arange(len(knots)), side="right") - 1, 0)]
    rotations = np.stack([look_at_pose(np.zeros(3), step, upward)[:3, :3] for step in normalized(forward[last])])
    turned = curve(knots, sign_continuous(quaternion_from_matrix(rotations)), times)
    return matrix_from_quaternion(turned)


def _noise(times: Float64[Array, " n"], hz: float, rng: np.random.Generator) -> Float64[Array, "n 3"]:
    """Three channels of smooth noise of about unit strength, with `hz` independent values a second."""
    knots = np.arange(int(times[-1] * hz) + 3) / hz
    return curve(knots, rng.normal(size=(len(knots), 3)), times)


def _small_rotations(yaw_pitch_roll: Float64[Array, "n 3"]) -> Float64[Array, "n 3 3"]:
    """Rotations within the camera: yaw about its y axis, pitch about x, roll about z, small enough to add."""
    half = yaw_pitch_roll[:, [1, 0, 2]] / 2
    return matrix_from_quaternion(np.concatenate([np.ones((len(half), 1)), half], axis=1))


def _frame_count(seconds: float, fps: float) -> int:
    if not (np.isfinite(seconds) and seconds > 0 and np.isfinite(fps) and fps > 0):
        raise TrackError(f"seconds and fps must be finite and > 0, got {seconds} and {fps}.")
    if not seconds * fps <= MAX_FRAMES:
        raise TrackError(f"{seconds * fps:.3g} frames are more than {MAX_FRAMES}; make the track shorter.")
    return max(1, round(seconds * fps))


def _vector(value: Vector, name: str) -> Float64[Array, " 3"]:
    vector = np.asarray(value, dtype=np.float64)
    if vector.shape != (3,) or not np.isfinite(vector).all():
        raise TrackError(f"{name} must be three finite numbers, got {value!r}.")
    return vector


def _direction(value: Vector, name: str) -> Float64[Array, " 3"]:
    vector = _vector(value, name)
    if not np.linalg.norm(vector) > 1e-9:
        raise TrackError(f"{name} must be a direction, but its length is 0.")
    return normalized(vector)


def _track(poses: Float64[Array, "n 4 4"], fps: float, width: int, height: int, fov_y_deg: float) -> Track:
    lens = Camera.look_at(np.zeros(3), np.eye(3)[2], np.eye(3)[1], width=width, height=height, fov_y_deg=fov_y_deg)
    times = np.arange(len(poses)) / fps
    return Track(width, height, lens.fx, lens.fy, lens.cx, lens.cy, times, poses)
