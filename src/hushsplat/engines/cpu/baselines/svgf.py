"""`svgf` and `svgf-tuned`: spatiotemporal variance-guided filtering (Schied et al. 2017) on the stochastic stream.

`svgf` is what the paper adapted (its appendix "SVGF Baseline Details"), constant by constant. `svgf-tuned` is SVGF with
what it normally has and the adaptation lacks: a running mean while history is short, its own weight for the moments,
variance from the 7×7 neighbourhood for histories under 4 frames, several à-trous passes with the 5×5 B3-spline kernel
at strides 1, 2, 4 ..., the variance filtered along, and the first pass fed back: settings all, of which its tuning left
one pass and no feedback. Normals are dropped (there are none); edges are stopped by depth smoothed with the 3×3
binomial kernel. Reprojection is that of docs/denoiser.md; only the adaptation fills holes from the nearest neighbour
(beside before diagonal, then as one reads), as the paper has it.
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
from hushsplat.types.errors import DenoiseError
from hushsplat.types.frame import Frame
from hushsplat.types.observation import Observation


@dataclass(frozen=True)
class SvgfConfig:
    """Settings of both; the defaults are the paper's, all from its appendix "SVGF Baseline Details"."""

    alpha: float = 0.02  # 0..1: least weight of a new colour
    moments_alpha: float = 0.02  # 0..1: least weight of a new luminance and its square
    running_mean: bool = True  # short histories: the new sample weighs 1 / length, if that is more
    depth_threshold: float = 0.4  # relative, > 0: history is dropped unless 2 of the 4 nearest depths differ by less
    sigma_depth: float = 0.3  # relative, > 0: depth difference at which a tap weighs 1/e
    sigma_luma: float = 8.0  # standard deviations, > 0: luminance difference at which a tap weighs 1/e
    passes: int = 0  # 0: the paper's one 3×3 pass and what belongs to it; 1..5: à-trous passes of SVGF
    kernel: int = 5  # taps a side of an à-trous pass: 5 (B3 spline, SVGF's own) or 3 (binomial)
    feedback: bool = True  # the result of the first à-trous pass becomes the history; no effect where passes is 0

    def __post_init__(self) -> None:
        check_range("alpha", self.alpha, 0, 1)
        check_range("moments_alpha", self.moments_alpha, 0, 1)
        check_range("depth_threshold", self.depth_threshold, 0, 1e6)
        check_range("sigma_depth", self.sigma_depth, 1e-6, 1e6)
        check_range("sigma_luma", self.sigma_luma, 1e-6, 1e6)
        check_range("passes", self.passes, 0, 5)
        if self.kernel not in (3, 5):
            raise DenoiseError(f"kernel must be 3 or 5, got {self.kernel!r}.")


ADAPTED = SvgfConfig()
LITERAL = SvgfConfig(running_mean=False)
# Found on our own scene by benchmarks/tune_svgf.py, and frozen: 28.46 dB there, where `svgf` has 27.73. (In two goes:
# with alpha up to 0.1 first, then from the best of that with more choices.) In the first go the best with several
# passes and the first fed back, as SVGF is known, had 26.48: what is fed back is blurred again in every frame.
TUNED = SvgfConfig(
    alpha=0.3,
    moments_alpha=0.2,
    depth_threshold=0.7,
    sigma_depth=1.0,
    sigma_luma=2.0,
    passes=1,
    kernel=5,
    feedback=False,
)


@dataclass(frozen=True)
class SvgfState:
    """What SVGF keeps of a frame."""

    camera: Camera
    history: Float32[Array, "h w 8"]  # RGB, mean luminance, mean squared luminance, frames, hole-filled depth, 0


def step(
    observation: Observation,
    camera: Camera,
    state: SvgfState | None = None,
    *,
    config: SvgfConfig = ADAPTED,
    threads: int = 0,
) -> tuple[Frame, SvgfState]:
    """Integrate over time, then filter over space."""
    color, depth = engine_observation(observation, camera)
    kept = state if state is not None and same_size(state.camera, camera) else None
    history, shown = empty_float32(*depth.shape, HISTORY_CHANNELS), empty_float32(*color.shape)
    settings = _engine.SvgfSettings(
        config.alpha,
        config.moments_alpha,
        config.running_mean,
        config.depth_threshold,
        config.sigma_depth,
        config.sigma_luma,
        config.passes,
        config.kernel,
        config.feedback,
    )
    _engine.baseline_svgf(
        color,
        depth,
        None if kept is None else kept.history,
        engine_motion(camera if kept is None else kept.camera, camera),
        FAR_DEPTH,
        settings,
        engine_threads(threads),
        history,
        shown,
    )
    return Frame(shown), SvgfState(camera, history)


def step_tuned(
    observation: Observation, camera: Camera, state: SvgfState | None = None, *, threads: int = 0
) -> tuple[Frame, SvgfState]:
    """SVGF with its usual parts and the frozen constants of `TUNED`."""
    return step(observation, camera, state, config=TUNED, threads=threads)
