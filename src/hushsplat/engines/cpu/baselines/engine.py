"""The native engine's view of an observation and of a moving camera, and what every baseline checks at the door."""

from __future__ import annotations

import math

import numpy as np
from jaxtyping import Float32
from numpy import ndarray as Array

from hushsplat.engines.cpu import _engine
from hushsplat.types.camera import Camera
from hushsplat.types.errors import DenoiseError
from hushsplat.types.motion import CameraMotion
from hushsplat.types.observation import Observation

STATIC_TOLERANCE = 1e-6  # of the entries of previous-from-current: docs/denoiser.md, "Static camera"
FAR_DEPTH = 1000.0  # world units, where neither a pixel nor its neighbours hit anything: docs/denoiser.md
HISTORY_CHANNELS = 8
MAX_THREADS = 256

History = Float32[Array, "h w 8"]
Color = Float32[Array, "h w 3"]


def engine_observation(observation: Observation, camera: Camera) -> tuple[Color, Float32[Array, "h w"]]:
    """Colour and depth as the engine takes them."""
    size = (camera.height, camera.width)
    if observation.color.shape[:2] != size or observation.depth.shape != size:
        height, width = observation.color.shape[:2]
        raise DenoiseError(
            f"the observation has {width}×{height} px, its camera {camera.width}×{camera.height}; "
            "pass the camera it was drawn with."
        )
    return np.ascontiguousarray(observation.color), np.ascontiguousarray(observation.depth)


def same_size(camera: Camera, other: Camera) -> bool:
    """Whether history of one camera can be used for the other at all."""
    return (camera.width, camera.height) == (other.width, other.height)


def is_static(previous: Camera, current: Camera) -> bool:
    """Whether the camera stands still."""
    return CameraMotion.between(previous, current, STATIC_TOLERANCE).static


def engine_motion(to: Camera, source: Camera) -> _engine.CameraMotion:
    """What takes points of one camera to the other, as the engine takes it."""
    motion = CameraMotion.between(to, source, STATIC_TOLERANCE)
    change = np.concatenate([motion.rotation_change, motion.translation[:, None]], axis=1)
    return _engine.CameraMotion(motion.static, _lens(source), _lens(to), change.astype(np.float32))


def engine_threads(threads: int) -> int:
    """The number of workers, checked."""
    if not 0 <= threads <= MAX_THREADS:
        raise DenoiseError(f"threads must lie in 0 (all cores) .. {MAX_THREADS}, got {threads}.")
    return threads


def check_range(name: str, value: float | int, least: float | int, largest: float | int) -> None:
    """A setting that a user can give."""
    if not (math.isfinite(value) and least <= value <= largest):
        raise DenoiseError(f"{name} must be a number from {least:g} to {largest:g}, got {value!r}.")


def _lens(camera: Camera) -> Float32[Array, " 4"]:
    return np.array([camera.fx, camera.fy, camera.cx, camera.cy], dtype=np.float32)
