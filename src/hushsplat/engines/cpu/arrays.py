"""Arrays, cameras and settings as the native module takes them."""

from __future__ import annotations

from dataclasses import fields
from functools import lru_cache
from typing import Any, Literal, get_args, get_origin, get_type_hints

import numpy as np
from jaxtyping import Float32, Int32
from numpy import ndarray as Array

from hushsplat.engines.cpu import _engine
from hushsplat.types.camera import Camera
from hushsplat.types.errors import DenoiseError
from hushsplat.types.motion import CameraMotion
from hushsplat.types.observation import Observation
from hushsplat.types.options import RenderOptions
from hushsplat.types.settings import Settings


def empty_float32(*shape: int) -> Float32[Array, " ..."]:
    """An uninitialised array from a pool: its memory is used again once nobody holds it."""
    return _engine.empty_float32(shape)


def empty_int32(*shape: int) -> Int32[Array, " ..."]:
    """The same for 32-bit integers."""
    return _engine.empty_int32(shape)


def native_camera(camera: Camera, near: float) -> _engine.Camera:
    """A camera with its near plane."""
    return _engine.Camera(
        np.ascontiguousarray(camera.world_from_camera[:3, :3].T, dtype=np.float32),
        camera.position.astype(np.float32),
        intrinsics(camera),
        camera.width,
        camera.height,
        near,
    )


def intrinsics(camera: Camera) -> Float32[Array, " 4"]:
    """fx, fy, cx, cy."""
    return np.array([camera.fx, camera.fy, camera.cx, camera.cy], dtype=np.float32)


def native_background(options: RenderOptions) -> Float32[Array, " 3"]:
    """The background."""
    return np.array(options.background, dtype=np.float32)


def native_settings(settings: Settings) -> Any:
    """The native struct of the same name and fields; a choice is passed by its number."""
    kind: Any = type(settings)
    native = getattr(_engine, kind.__name__)()
    for name, choices in _choices(kind).items():
        value = getattr(settings, name)
        setattr(native, name, choices.index(value) if choices else value)
    return native


@lru_cache
def _choices(kind: type[Settings]) -> dict[str, tuple[Any, ...]]:
    """The choices of each field that has names for them, nothing for numbers and switches."""
    found = {}
    for name, hint in get_type_hints(kind).items():
        choices = get_args(hint) if get_origin(hint) is Literal else ()
        found[name] = choices if any(isinstance(choice, str) for choice in choices) else ()
    return {each.name: found[each.name] for each in fields(kind)}


def motion_rows(motion: CameraMotion) -> Float32[Array, "3 4"]:
    """[R - I, t]."""
    return np.concatenate([motion.rotation_change, motion.translation[:, None]], axis=1).astype(np.float32)


def native_motion(to: Camera, source: Camera, tolerance: float) -> _engine.CameraMotion:
    """What takes points of one camera to the other."""
    motion = CameraMotion.between(to, source, tolerance)
    return _engine.CameraMotion(motion.static, intrinsics(source), intrinsics(to), motion_rows(motion))


def checked_observation(observation: Observation, camera: Camera) -> Observation:
    """The observation with contiguous arrays; refused if it has not the camera's size."""
    size = (camera.height, camera.width)
    if observation.color.shape[:2] != size or observation.depth.shape != size:
        height, width = observation.color.shape[:2]
        raise DenoiseError(
            f"the observation has {width}×{height} px, its camera {camera.width}×{camera.height}; "
            "pass the camera it was drawn with."
        )
    view = observation.neural_view
    return Observation(
        np.ascontiguousarray(observation.color),
        np.ascontiguousarray(observation.depth),
        observation.alpha,
        None if view is None else np.ascontiguousarray(view),
    )
