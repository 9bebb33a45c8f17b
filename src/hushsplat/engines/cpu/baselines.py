"""The denoisers that the paper's is compared with, on the identical stream and with its signature.

`mean` (Ref. N of the paper): the mean over all frames of a camera that stands still; it restarts when the camera
moves.

`st-taa`: temporal accumulation as StochasticSplats does it, the baseline of that name in the paper. StochasticSplats'
paper names TAA without constants; its published viewer shows them, and the numbers here follow it: each pixel keeps
the running means of its colour and of the 3D position it saw, and a count up to 128. When the camera moves, every
pixel of the previous frame is thrown forward to the pixel that its mean position now falls into; a pixel that nothing
lands on, or something more than 100 world units away from what it sees itself, starts again. There is no
neighbourhood clamping, no resampling and no filter. Why forward and not by the denoiser's reprojection: the warp is
this method. It leaves holes and lets pixels collide, so that history is lost all over the picture; that is what the
paper calls "the generic TAA warp fails to accumulate reliably". Ours: of several pixels that land on one the nearest
to the camera wins (the viewer leaves it to chance), a hit-less pixel stands at the hole-filled depth of
docs/denoiser.md, and positions are kept in the space of the frame's camera, where float32 has its digits.

`taa`: TAA as games have it, with the denoiser's reprojection. Not in the paper; here because it is hard to beat.
While the camera moves, history is clipped to the mean ± gamma standard deviations of the 3×3 neighbourhood of the new
frame (variance clipping, Salvi 2016). There is no test of depth: the depth of one sample jumps between surfaces, and
rejecting by it loses more history than the clipping does harm.

`svgf` and `svgf-tuned`: spatiotemporal variance-guided filtering (Schied et al. 2017). `svgf` is what the paper
adapted (its appendix "SVGF Baseline Details"). `svgf-tuned` is SVGF with what it normally has and the adaptation
lacks: a running mean while history is short, its own weight for the moments, variance from the 7×7 neighbourhood for
histories under 4 frames, several à-trous passes, the variance filtered along, and the first pass fed back: all
settings, of which its tuning left one pass and no feedback. Normals are dropped (there are none); edges are stopped
by depth smoothed with the 3×3 binomial kernel. Reprojection is that of docs/denoiser.md; only the adaptation fills
holes from the nearest neighbour (beside before diagonal, then as one reads), as the paper has it.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from hushsplat.engines.cpu import _engine
from hushsplat.engines.cpu.arrays import checked_observation, empty_float32, native_motion, native_settings
from hushsplat.spec.denoisers import ConfiguredDenoiser
from hushsplat.spec.settings import MeanSettings, StTaaSettings, SvgfSettings, TaaSettings
from hushsplat.spec.state import State
from hushsplat.types.camera import Camera
from hushsplat.types.errors import DenoiseError
from hushsplat.types.image import Image
from hushsplat.types.motion import CameraMotion
from hushsplat.types.observation import Observation


def step(
    denoiser: ConfiguredDenoiser,
    observation: Observation,
    camera: Camera,
    state: State | None,
    threads: int,
    with_views: bool,
) -> tuple[Image, State]:
    """One frame of a baseline."""
    if with_views:
        raise DenoiseError(f"{denoiser.name} has no views behind its picture.")
    observation = checked_observation(observation, camera)
    if state is not None and state.values.shape[:2] != (camera.height, camera.width):
        state = None
    settings = denoiser.settings
    if isinstance(settings, MeanSettings):
        return _mean_step(denoiser, settings, observation, camera, state, threads)
    history = empty_float32(camera.height, camera.width, denoiser.layout.floats)
    shown = empty_float32(camera.height, camera.width, 3)
    before, previous = (camera, None) if state is None else (state.camera, np.ascontiguousarray(state.values))
    run: Callable[..., None]
    if isinstance(settings, StTaaSettings):
        run, motion = _engine.baseline_st_taa, native_motion(camera, before, settings.static_tolerance)
    elif isinstance(settings, TaaSettings):
        run, motion = _engine.baseline_taa, native_motion(before, camera, settings.static_tolerance)
    elif isinstance(settings, SvgfSettings):
        run, motion = _engine.baseline_svgf, native_motion(before, camera, settings.static_tolerance)
    else:
        raise DenoiseError(f"the cpu engine does not run {denoiser.name} with {type(settings).__name__}.")
    run(observation.color, observation.depth, previous, motion, native_settings(settings), threads, history, shown)
    return Image(shown), State(denoiser.name, history, camera, denoiser.layout)


def _mean_step(
    denoiser: ConfiguredDenoiser,
    settings: MeanSettings,
    observation: Observation,
    camera: Camera,
    state: State | None,
    threads: int,
) -> tuple[Image, State]:
    """The mean of this frame and all before it since the camera stopped."""
    if state is not None and not CameraMotion.between(state.camera, camera, settings.static_tolerance).static:
        state = None
    frames = 1 if state is None else state.frames + 1
    mean, shown = empty_float32(*observation.color.shape), empty_float32(*observation.color.shape)
    previous = None if state is None else np.ascontiguousarray(state.values)
    _engine.baseline_mean(observation.color, observation.depth, previous, frames, threads, mean, shown)
    # The camera of the first frame stays: many steps below the tolerance must not add up to a moving camera.
    first = camera if state is None else state.camera
    return Image(shown), State(denoiser.name, mean, first, denoiser.layout, frames)
