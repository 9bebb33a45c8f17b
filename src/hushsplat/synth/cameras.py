"""Places to look from: one good view, a walk through room and garden, and many photographs' positions."""

from __future__ import annotations

import numpy as np
from jaxtyping import Float64
from numpy import ndarray as Array
from numpy.random import PCG64, Generator

from hushsplat.synth.plan import GARDEN, ROOM, WALL
from hushsplat.types.camera import Camera, look_at_pose
from hushsplat.types.errors import CameraError, TrackError
from hushsplat.types.track import Track

UP = np.array([0.0, -1.0, 0.0])
HOME_EYE, HOME_TARGET = np.array([1.5, -1.5, -4.8]), np.array([-0.62, -0.98, -0.6])
HOME_FOV_DEG = 58.0
WALK_FOV_DEG = 58.0
# Where one walks and what one looks at: (x, height, z) pairs at even times.
WALK = (
    ((0.55, 1.50, -4.60), (-0.35, 1.05, 0.0)),
    ((0.05, 1.48, -3.50), (-0.80, 0.95, 0.2)),
    ((-0.15, 1.50, -2.20), (-0.60, 1.05, 2.5)),
    ((-0.55, 1.52, -0.70), (-0.30, 1.10, 4.0)),
    ((-0.75, 1.53, 0.90), (0.60, 1.00, 5.5)),
    ((-0.10, 1.50, 2.60), (1.60, 0.70, 6.2)),
    ((0.55, 1.47, 4.30), (2.60, 0.45, 6.6)),
    ((0.45, 1.50, 6.00), (0.90, 1.10, 9.5)),
    ((-0.60, 1.55, 7.10), (-3.40, 1.60, 7.2)),
    ((-1.70, 1.56, 6.70), (-3.30, 1.90, 3.6)),
    ((-1.55, 1.54, 5.20), (-1.30, 1.60, 1.4)),
    ((-0.65, 1.52, 3.60), (0.10, 1.35, 0.0)),
    ((-0.45, 1.50, 2.20), (0.50, 1.20, -2.4)),
)


def home_camera(width: int = 800, height: int = 532) -> Camera:
    """The view on the cover: the room from its back corner, the garden behind the glass door."""
    return Camera.look_at(HOME_EYE, HOME_TARGET, UP, width=width, height=height, fov_y_deg=HOME_FOV_DEG)


def walk_track(seconds: float | int = 10, fps: float | int = 30, width: int = 800, height: int = 532) -> Track:
    """A walk through the room, into the garden, past the tree and back towards the house, held by hand.

    Args:
        seconds: that it takes.
        fps: frames per second.
        width: of the picture, px.
        height: of the picture, px.
    """
    if not (0 < seconds < 3600 and 0 < fps <= 1000):
        raise TrackError(f"a walk takes 0 to 3600 seconds at 0 to 1000 fps, got {seconds} s at {fps} fps.")
    frames = max(1, round(seconds * fps))
    times = np.arange(frames) / fps
    place = times / seconds * (len(WALK) - 1)
    knots = np.array(WALK) * [1, -1, 1]
    eyes, targets = _through(knots[:, 0], place), _through(knots[:, 1], place)
    eyes, targets = eyes + _sway(times, 0.012, 31), targets + _sway(times, 0.03, 32)
    poses = np.stack([look_at_pose(eye, target, UP) for eye, target in zip(eyes, targets, strict=True)])
    first = Camera.look_at(eyes[0], targets[0], UP, width=width, height=height, fov_y_deg=WALK_FOV_DEG)
    return Track(width, height, first.fx, first.fy, first.cx, first.cy, times, poses)


def _through(knots: Float64[Array, "k 3"], place: Float64[Array, " n"]) -> Float64[Array, "n 3"]:
    """A smooth curve through the knots (Catmull-Rom); `place` counts knots from 0."""
    padded = np.concatenate([[2 * knots[0] - knots[1]], knots, [2 * knots[-1] - knots[-2]]])
    first = np.clip(place.astype(int), 0, len(knots) - 2)
    t = (place - first)[:, None]
    a, b, c, d = (padded[first + k] for k in range(4))
    return b + 0.5 * t * (c - a + t * (2 * a - 5 * b + 4 * c - d + t * (3 * (b - c) + d - a)))


def _sway(times: Float64[Array, " n"], amount_m: float, key: int) -> Float64[Array, "n 3"]:
    """The slow tremor of a hand and the bob of steps."""
    rng = Generator(PCG64(key))
    rates_hz = np.array([0.43, 0.97, 1.8])
    phases = rng.uniform(0, 2 * np.pi, (3, 3))
    return amount_m * np.sum(
        np.sin(2 * np.pi * rates_hz[:, None] * times[:, None, None] + phases) * (1 / (1 + rates_hz))[:, None], axis=1
    )


def view_cameras(count: int = 80, width: int = 800, height: int = 532) -> list[Camera]:
    """Where somebody who photographs the place might stand: three fifths indoors, the rest in the garden."""
    if not 1 <= count <= 100_000:
        raise CameraError(f"count must lie between 1 and 100000 cameras, got {count}.")
    rng = Generator(PCG64(33))
    cameras = []
    for index in range(count):
        turn = (index * 0.6180339887498949) % 1  # even in every prefix
        eye, target = _indoor_view(rng, turn) if index % 5 < 3 else _outdoor_view(rng, turn)
        cameras.append(Camera.look_at(eye, target, UP, width=width, height=height, fov_y_deg=60.0))
    return cameras


def _indoor_view(rng: Generator, turn: float) -> tuple[Float64[Array, 3], Float64[Array, 3]]:
    """From a ring between the furniture and the walls across the room, sometimes out of the door."""
    angle = 2 * np.pi * turn
    ring = rng.uniform(0.5, 0.85)
    eye = np.array(
        [ring * ROOM.x * np.sin(angle), -rng.uniform(1.15, 1.85), -ROOM.z / 2 + ring * ROOM.z / 2 * np.cos(angle)]
    )
    target = np.array([-0.45 * eye[0], -rng.uniform(0.6, 1.2), -ROOM.z / 2 - 0.5 * (eye[2] + ROOM.z / 2)])
    return eye, target + rng.normal(0, [0.5, 0.15, 0.5])


def _outdoor_view(rng: Generator, turn: float) -> tuple[Float64[Array, 3], Float64[Array, 3]]:
    """From the path, the lawn and the terrace to the middle of the garden or back to the house."""
    angle = 2 * np.pi * turn
    middle, reach = np.array([0.3, 0.0, 5.2]), rng.uniform(0.5, 0.8)
    around = np.array([(GARDEN.x - 0.9) * np.sin(angle), 0, 4.6 * np.cos(angle)])
    eye = middle + reach * around - np.array([0, rng.uniform(1.2, 1.8), 0])
    eye[2] = max(eye[2], WALL + 0.5)
    target = middle - 0.4 * (eye - middle) * [1, 0, 1]
    target[1] = -rng.uniform(0.5, 1.3)
    return eye, target + rng.normal(0, [0.6, 0.1, 0.6])
