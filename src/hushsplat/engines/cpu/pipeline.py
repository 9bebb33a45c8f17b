"""The denoiser on the CPU engine: `step` takes a noisy frame and what is remembered, and gives back a calm one.

The passes are those of docs/denoiser.md, in its order; native/denoise.cpp runs them as one sweep over the picture.
"""

from __future__ import annotations

import numpy as np
from jaxtyping import Float32
from numpy import ndarray as Array

from hushsplat.engines.cpu import _engine
from hushsplat.engines.cpu.arrays import empty_float32
from hushsplat.engines.cpu.ellipse import filter_ellipse
from hushsplat.spec.settings import HushConfig
from hushsplat.spec.state import CHANNELS, TemporalState
from hushsplat.spec.weights import HushWeights
from hushsplat.types.camera import Camera
from hushsplat.types.colour import rgb_from_ycocg
from hushsplat.types.errors import DenoiseError
from hushsplat.types.frame import Frame
from hushsplat.types.motion import CameraMotion
from hushsplat.types.observation import Observation


def step(
    observation: Observation,
    camera: Camera,
    state: TemporalState | None,  # None on the first frame
    *,
    weights: HushWeights,
    config: HushConfig | None = None,
    threads: int = 0,  # workers, 0: all cores
    with_views: bool = False,  # also give back what lies behind the picture, by the names of core.frame.VIEWS
) -> tuple[Frame, TemporalState]:
    """One frame of the stream, denoised, and the state for the next one. A pure function of its inputs."""
    config = config or HushConfig()
    size = (camera.height, camera.width)
    if observation.color.shape[:2] != size:
        raise DenoiseError(f"an observation of {observation.color.shape[:2]} does not fit a camera of {size} (h, w).")
    if observation.neural_view is None and not config.zero_shot:
        raise DenoiseError("the observation has no neural_view: its scene has no payload; set zero_shot=True.")
    if state is not None and state.values.shape[:2] != size:
        state = None  # a resize starts anew
    before = camera if state is None else state.camera
    motion = CameraMotion.between(before, camera, config.static_tolerance)
    values = empty_float32(*size, CHANNELS)
    shown = empty_float32(*size, 3)
    behind = empty_float32(*size, _engine.VIEW_FLOATS) if with_views else None
    _engine.denoise(
        np.ascontiguousarray(observation.color),
        np.ascontiguousarray(observation.depth),
        None if observation.neural_view is None else np.ascontiguousarray(observation.neural_view),
        None if state is None else np.ascontiguousarray(state.values),
        state is not None and motion.static,
        _intrinsics(camera),
        _intrinsics(before),
        np.concatenate([motion.rotation_change, motion.translation[:, None]], axis=1).astype(np.float32),
        packed(weights),
        engine_settings(config),
        threads,
        values,
        shown,
        behind,
    )
    after = TemporalState(values, camera)
    if behind is None:
        return Frame(shown), after
    kernel = filter_ellipse(None if config.zero_shot else observation.neural_view, size)
    return Frame(shown, {**_views(after, behind), "ellipse": kernel}), after


def engine_settings(config: HushConfig) -> _engine.DenoiserSettings:
    """The settings as the engine takes them."""
    settings = _engine.DenoiserSettings()
    settings.accumulated_cap = config.accumulated_cap_frames
    settings.denoised_cap = config.denoised_cap_frames
    settings.tau_frames = config.tau_frames
    settings.smooth = config.smooth
    settings.smooth_errors = config.smooth_errors
    settings.motion_scale_px = config.motion_scale_px
    settings.far = config.far_depth
    settings.stabilise_weight = config.stabilise_weight
    settings.stabilise_motion = config.stabilise_motion_px / config.motion_scale_px
    settings.stabilise_slack = config.stabilise_slack
    settings.stabilise_depth = config.stabilise_depth
    settings.stabilise_rescue = config.stabilise_rescue
    settings.sigma = config.sigma
    settings.trust = getattr(_engine.Trust, config.trust)
    gates = {"learned": _engine.Gate.learned, 0: _engine.Gate.accumulated, 1: _engine.Gate.denoised}
    settings.gate = gates[config.gate]
    settings.filter = config.spatial_filter
    settings.stabilise = config.stabilise
    settings.zero_shot = config.zero_shot
    return settings


def packed(weights: HushWeights) -> Float32[Array, " floats"]:
    """The weights in the engine's order (native/denoise.h): inputs before outputs, taps before channels."""

    def pointwise(name: str) -> list[Array]:
        return [weights[f"{name}.weight"][:, :, 0, 0].T.ravel(), weights[f"{name}.bias"]]

    def depthwise(name: str) -> list[Array]:
        return [weights[f"{name}.weight"][:, 0].reshape(-1, 9).T.ravel(), weights[f"{name}.bias"]]

    parts = pointwise("accumulated.0")
    parts += depthwise("accumulated.1") + pointwise("accumulated.2") + pointwise("accumulated.3")
    parts += depthwise("accumulated.4") + pointwise("accumulated.5") + pointwise("accumulated.head")
    parts += depthwise("denoised.depthwise") + pointwise("denoised.head")
    parts.append(np.array([weights.gamma]))
    return np.concatenate(parts).astype(np.float32)


def _intrinsics(camera: Camera) -> Float32[Array, " 4"]:
    return np.array([camera.fx, camera.fy, camera.cx, camera.cy], dtype=np.float32)


def _views(state: TemporalState, behind: Float32[Array, "h w 13"]) -> dict[str, Float32[Array, "h w _"]]:
    luma = state.accumulated[..., :1]
    variance = np.maximum(state.squared_luma[..., None] - luma * luma, 0)
    return {
        "composite": behind[..., 0:3],
        "filtered": behind[..., 3:6],
        "accumulated": rgb_from_ycocg(state.accumulated),
        "denoised": rgb_from_ycocg(state.denoised),
        "accumulated_trust": state.accumulated_trust[..., None],
        "denoised_trust": state.denoised_trust[..., None],
        "accumulated_frames": state.accumulated_frames[..., None],
        "denoised_frames": state.denoised_frames[..., None],
        "gate": behind[..., 6:7],
        "variance": variance.astype(np.float32),
        "relative_depth": behind[..., 7:8],
        "motion_px": behind[..., 8:10],
        "smoothed": behind[..., 10:13],
    }
