"""`st-taa`: temporal accumulation as StochasticSplats does it, the baseline of that name in the paper.

StochasticSplats' paper names TAA without constants; its published viewer shows them, and the numbers here follow it:
each pixel keeps the running means of its colour and of the 3D position it saw, and a count up to 128. When the camera
moves, every pixel of the previous frame is thrown forward to the pixel that its mean position now falls into; a pixel
that nothing lands on, or something more than 100 world units away from what it sees itself, starts again. There is no
neighbourhood clamping, no resampling and no filter. On a static camera that is the plain mean.

Why forward and not by the denoiser's reprojection: the warp is this method. It leaves holes and lets pixels collide, so
that history is lost all over the picture; that is what the paper calls "the generic TAA warp fails to accumulate
reliably", and only so are its numbers met. Ours: of several pixels that land on one the nearest to the camera wins (the
viewer leaves it to chance), a hit-less pixel stands at the hole-filled depth of docs/denoiser.md, and positions are
kept in the space of the frame's camera, where float32 has its digits.
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
    engine_motion,
    engine_observation,
    engine_threads,
    same_size,
)
from hushsplat.types.camera import Camera
from hushsplat.types.frame import Frame
from hushsplat.types.observation import Observation

CAP_FRAMES = 128.0  # paper, "ST-TAA (128)"; StochasticSplats' viewer: 128
REACH = 100.0  # world units, StochasticSplats' viewer: history farther than this from what is seen is not used


@dataclass(frozen=True)
class StTaaState:
    """What st-taa keeps of a frame."""

    camera: Camera
    history: Float32[Array, "h w 8"]  # mean RGB, frames, mean position x y z in the camera's space, 0


def step(
    observation: Observation, camera: Camera, state: StTaaState | None = None, *, threads: int = 0
) -> tuple[Frame, StTaaState]:
    """The running mean of what landed on each pixel and of this frame."""
    color, depth = engine_observation(observation, camera)
    kept = state if state is not None and same_size(state.camera, camera) else None
    history, shown = empty_float32(*depth.shape, HISTORY_CHANNELS), empty_float32(*color.shape)
    _engine.baseline_st_taa(
        color,
        depth,
        None if kept is None else kept.history,
        engine_motion(camera, camera if kept is None else kept.camera),
        FAR_DEPTH,
        CAP_FRAMES,
        REACH,
        engine_threads(threads),
        history,
        shown,
    )
    return Frame(shown), StTaaState(camera, history)
