"""`taa`: TAA as games have it, with the denoiser's reprojection. Not in the paper; here because it is hard to beat.

History is reprojected as docs/denoiser.md says (hole-filled depth, Catmull-Rom within the central taps) and, while the
camera moves, clipped to the mean ± GAMMA standard deviations of the 3×3 neighbourhood of the new frame, colour by
colour (variance clipping, Salvi 2016). Then the running mean, up to 128 frames. There is no test of depth: the depth of
one sample jumps between surfaces, and rejecting by it loses more history than the clipping does harm.
"""

from __future__ import annotations

from dataclasses import dataclass

from jaxtyping import Float32
from numpy import ndarray as Array

from hushsplat.engines.cpu import _engine
from hushsplat.engines.cpu.arrays import empty_float32
from hushsplat.engines.cpu.baselines.engine import (
    FAR_DEPTH,
    HISTORY_CHANNELS,
    check_range,
    engine_motion,
    engine_observation,
    engine_threads,
    same_size,
)
from hushsplat.types.camera import Camera
from hushsplat.types.frame import Frame
from hushsplat.types.observation import Observation


@dataclass(frozen=True)
class TaaConfig:
    """Settings of `taa`."""

    cap_frames: float = 128.0  # frames, >= 1: longest history; the same as the other running means
    gamma: float = (
        1.0  # standard deviations, >= 0: how far history may leave the neighbourhood; Salvi 2016: 0.75 to 1.25
    )

    def __post_init__(self) -> None:
        check_range("cap_frames", self.cap_frames, 1, 1e6)
        check_range("gamma", self.gamma, 0, 1e6)


@dataclass(frozen=True)
class TaaState:
    """What taa keeps of a frame."""

    camera: Camera
    history: Float32[Array, "h w 8"]  # mean RGB, frames, 0 0 0 0


def step(
    observation: Observation,
    camera: Camera,
    state: TaaState | None = None,
    *,
    config: TaaConfig | None = None,
    threads: int = 0,
) -> tuple[Frame, TaaState]:
    """The running mean of the reprojected, clipped history and of this frame."""
    config = config or TaaConfig()
    color, depth = engine_observation(observation, camera)
    kept = state if state is not None and same_size(state.camera, camera) else None
    history, shown = empty_float32(*depth.shape, HISTORY_CHANNELS), empty_float32(*color.shape)
    _engine.baseline_taa(
        color,
        depth,
        None if kept is None else kept.history,
        engine_motion(camera if kept is None else kept.camera, camera),
        FAR_DEPTH,
        config.cap_frames,
        config.gamma,
        engine_threads(threads),
        history,
        shown,
    )
    return Frame(shown), TaaState(camera, history)
