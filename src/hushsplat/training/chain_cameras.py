"""Synthetic chains of consecutive cameras around single views.

The five classes are the paper's (appendix, "Synthetic temporal chains"), with the sizes of its table; how a class moves
within its size is ours. `paced` is ours: it moves by a given number of pixels per frame, whatever the scene's unit.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

import numpy as np
from jaxtyping import Float64
from numpy import ndarray as Array
from numpy.random import Generator

from hushsplat.training.settings import ChainSizes
from hushsplat.types.camera import Camera
from hushsplat.types.rotations import matrix_from_quaternion, normalized
from hushsplat.types.splines import curve

# Ours: a paced chain's velocity is a wandering part and a constant one (0.6² + 0.8² = 1), scaled so that the median
# pixel moves at about the pace; it rolls half as fast as it turns.
PACE_WANDER, PACE_CONSTANT, PACE_SCALE, ROLL_SHARE = 0.6, 0.8, 1.3, 0.5


Offsets = tuple[Float64[Array, "n 3"], Float64[Array, "n 3"]]  # in camera axes: world units, and radians


def chain_kind(sizes: ChainSizes, rng: Generator) -> str:
    """One of the classes, by their shares."""
    rest = (1 - sizes.drift_share - sizes.dolly_share) / 3
    return str(rng.choice(list(KINDS), p=[sizes.dolly_share, sizes.drift_share, rest, rest, rest]))


def chain_cameras(
    view: Camera, kind: str, frames: int, sizes: ChainSizes, radius: float, rng: Generator
) -> list[Camera]:
    """Consecutive cameras that begin near a view; `radius` is the scene's, in world units."""
    shifts, angles = KINDS[kind](frames, sizes, radius, rng)
    return moved(view, shifts, angles)


def paced(
    view: Camera,
    frames: int,
    pixels: float,  # a frame, >= 0: about how far the picture moves
    depth: float,  # world units, > 0: of what is seen
    rng: Generator,
) -> list[Camera]:
    """A mixture of moving and turning that wanders, at an even pace."""
    velocity = PACE_WANDER * _wander(frames, ChainSizes().knot_frames, rng) + PACE_CONSTANT * rng.normal(size=6)
    path = np.cumsum(PACE_SCALE * pixels / view.fx * velocity, axis=0)
    moving = rng.random()
    return moved(view, moving * depth * path[:, :3], (1 - moving) * path[:, 3:] * [1, 1, ROLL_SHARE])


def moved(view: Camera, shifts: Float64[Array, "n 3"], angles: Float64[Array, "n 3"]) -> list[Camera]:
    """The view, shifted along its own axes and turned about them."""
    quaternions = normalized(np.concatenate([np.ones((len(angles), 1)), angles / 2], axis=1))
    poses = np.tile(view.world_from_camera, (len(shifts), 1, 1))
    poses[:, :3, 3] += shifts @ view.world_from_camera[:3, :3].T
    poses[:, :3, :3] = poses[:, :3, :3] @ matrix_from_quaternion(quaternions)
    return [replace(view, world_from_camera=pose) for pose in poses]


def _dolly(frames: int, sizes: ChainSizes, radius: float, rng: Generator) -> Offsets:
    length = rng.uniform(*sizes.dolly_m) * sizes.meter * rng.choice([-1, 1])
    shifts = np.arange(frames)[:, None] * length / (sizes.dolly_frames - 1) * [[1.0, 0.0, 0.0]]
    return shifts, np.zeros((frames, 3))


def _drift(frames: int, sizes: ChainSizes, radius: float, rng: Generator) -> Offsets:
    steps = np.arange(frames)[:, None] / sizes.drift_frames
    directions = normalized(rng.normal(size=(2, 3)))
    amount = rng.uniform(sizes.least_drift, 1.0, 2) * [sizes.position_share * radius, np.radians(sizes.angle_deg)]
    return steps * amount[0] * directions[0], steps * amount[1] * directions[1]


def _wandering(scale: Callable[[ChainSizes], float]) -> Callable[[int, ChainSizes, float, Generator], Offsets]:
    def offsets(frames: int, sizes: ChainSizes, radius: float, rng: Generator) -> Offsets:
        path = np.clip(_wander(frames, sizes.knot_frames, rng), -1, 1) * scale(sizes)
        return path[:, :3] * sizes.position_share * radius, path[:, 3:] * np.radians(sizes.angle_deg)

    return offsets


def _wander(frames: int, knot_frames: int, rng: Generator) -> Float64[Array, "n 6"]:
    """Six channels of smooth noise of about unit strength."""
    knots = np.arange(frames // knot_frames + 4, dtype=np.float64)
    return curve(knots, rng.normal(size=(len(knots), 6)), np.arange(frames) / knot_frames)


KINDS: dict[str, Callable[[int, ChainSizes, float, Generator], Offsets]] = {
    "dolly": _dolly,
    "drift": _drift,
    "large": _wandering(lambda sizes: 1.0),
    "small": _wandering(lambda sizes: sizes.small_scale),
    "near-static": _wandering(lambda sizes: sizes.near_static_scale),
}
