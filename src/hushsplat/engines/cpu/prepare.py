"""The native engine's view of a scene and of a camera: prepared once, found again while the scene lives."""

from __future__ import annotations

from dataclasses import dataclass
from weakref import WeakKeyDictionary

import numpy as np
from jaxtyping import Float32
from numpy import ndarray as Array

from hushsplat.engines.cpu import _engine
from hushsplat.types.camera import Camera
from hushsplat.types.errors import RenderError, SceneError
from hushsplat.types.gaussians import Gaussians

NEAR = 0.2  # world units: what 3DGS and 2DGS were trained with
MAX_THREADS = 256


@dataclass(frozen=True)
class RenderOptions:
    """How to draw; every renderer takes the same options."""

    background: tuple[float, float, float] = (0.0, 0.0, 0.0)  # RGB behind the scene, 0..1
    near: float = NEAR  # world units, > 0: nothing nearer than this is drawn
    threads: int = 0  # workers, 0: all cores; the picture is the same for any number

    def __post_init__(self) -> None:
        if not np.isfinite(self.background).all() or len(self.background) != 3:
            raise RenderError(f"background must be three finite numbers, got {self.background}.")
        if not (np.isfinite(self.near) and self.near > 0):
            raise RenderError(f"near must be a distance > 0, got {self.near}.")
        if not 0 <= self.threads <= MAX_THREADS:
            raise RenderError(f"threads must lie in 0 (all cores) .. {MAX_THREADS}, got {self.threads}.")


_prepared: WeakKeyDictionary[Gaussians, _engine.Scene] = WeakKeyDictionary()


def prepare(gaussians: Gaussians, threads: int = 0) -> _engine.Scene:
    """The engine's own form of a scene (spatially ordered chunks); made once, kept as long as the scene is."""
    scene = _prepared.get(gaussians)
    if scene is None:
        scene = _prepared[gaussians] = _upload(gaussians, threads)
    return scene


def _upload(gaussians: Gaussians, threads: int) -> _engine.Scene:
    try:
        _engine.require_finite(np.ascontiguousarray(gaussians.sh), "sh", threads)
        return _engine.Scene(
            np.ascontiguousarray(gaussians.means),
            np.ascontiguousarray(gaussians.scales),
            np.ascontiguousarray(gaussians.rotations),
            np.ascontiguousarray(gaussians.opacities),
            threads,
        )
    except ValueError as error:
        raise SceneError(f"{error}; remove those Gaussians first.") from None


def engine_camera(camera: Camera, near: float) -> _engine.Camera:
    """The camera as the engine takes it."""
    return _engine.Camera(
        np.ascontiguousarray(camera.world_from_camera[:3, :3].T, dtype=np.float32),
        camera.position.astype(np.float32),
        np.array([camera.fx, camera.fy, camera.cx, camera.cy], dtype=np.float32),
        camera.width,
        camera.height,
        near,
    )


def engine_background(options: RenderOptions) -> Float32[Array, " 3"]:
    """The background as the engine takes it."""
    return np.array(options.background, dtype=np.float32)
