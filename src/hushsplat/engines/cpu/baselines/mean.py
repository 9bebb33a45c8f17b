"""`mean` (Ref. N of the paper): the mean over all frames of a camera that stands still; it restarts when it moves."""

from __future__ import annotations

from dataclasses import dataclass

from jaxtyping import Float32
from numpy import ndarray as Array

from hushsplat.engines.cpu import _engine
from hushsplat.engines.cpu.arrays import empty_float32
from hushsplat.engines.cpu.baselines.engine import engine_observation, engine_threads, is_static, same_size
from hushsplat.types.camera import Camera
from hushsplat.types.frame import Frame
from hushsplat.types.observation import Observation


@dataclass(frozen=True)
class MeanState:
    """The mean so far."""

    camera: Camera
    mean: Float32[Array, "h w 3"]  # RGB
    frames: int  # >= 1


def step(
    observation: Observation, camera: Camera, state: MeanState | None = None, *, threads: int = 0
) -> tuple[Frame, MeanState]:
    """The mean of this frame and all before it since the camera stands still."""
    color, depth = engine_observation(observation, camera)
    kept = state if state is not None and same_size(state.camera, camera) and is_static(state.camera, camera) else None
    frames = 1 if kept is None else kept.frames + 1
    mean, shown = empty_float32(*color.shape), empty_float32(*color.shape)
    previous = None if kept is None else kept.mean
    _engine.baseline_mean(color, depth, previous, frames, engine_threads(threads), mean, shown)
    # The camera of the first frame stays: many steps below the tolerance must not add up to a moving camera.
    return Frame(shown), MeanState(camera if kept is None else kept.camera, mean, frames)
