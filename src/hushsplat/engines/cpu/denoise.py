"""The paper's denoiser on the CPU: native/denoise.cpp runs all passes of docs/denoiser.md as one sweep."""

from __future__ import annotations

import numpy as np
from jaxtyping import Float32
from numpy import ndarray as Array

from hushsplat.engines.cpu import _engine
from hushsplat.engines.cpu.arrays import checked_observation, empty_float32, intrinsics, motion_rows, native_settings
from hushsplat.spec.denoisers import ConfiguredDenoiser
from hushsplat.spec.passes import WRITTEN_VIEWS
from hushsplat.spec.settings import DenoiserSettings
from hushsplat.spec.state import TEMPORAL, State
from hushsplat.spec.weights import packed
from hushsplat.types.camera import Camera
from hushsplat.types.colour import rgb_from_ycocg
from hushsplat.types.errors import DenoiseError
from hushsplat.types.image import Image
from hushsplat.types.motion import CameraMotion
from hushsplat.types.observation import Observation

ZERO_SHOT_SCALE_PX = 2.0  # paper, "Zero-Shot Transfer": a_x = a_y
LARGEST_VIEW = 1e4  # docs/denoiser.md: every V is limited to this


def step(
    denoiser: ConfiguredDenoiser,
    observation: Observation,
    camera: Camera,
    state: State | None,  # None on the first frame
    threads: int,
    with_views: bool,
) -> tuple[Image, State]:
    """One frame of the stream, denoised, and the state for the next one."""
    settings, weights = denoiser.settings, denoiser.weights
    if not isinstance(settings, DenoiserSettings) or weights is None:
        raise DenoiseError(f"{denoiser.name} needs weights and DenoiserSettings.")
    size = (camera.height, camera.width)
    observation = checked_observation(observation, camera)
    if observation.neural_view is None and not settings.zero_shot:
        raise DenoiseError("the observation has no neural_view: its scene has no payload; set zero_shot=True.")
    if state is not None and state.values.shape[:2] != size:
        state = None  # another picture size starts anew
    before = camera if state is None else state.camera
    motion = CameraMotion.between(before, camera, settings.static_tolerance)
    values = empty_float32(*size, TEMPORAL.floats)
    shown = empty_float32(*size, 3)
    written = empty_float32(*size, _engine.VIEW_FLOATS) if with_views else None
    _engine.denoise(
        observation.color,
        observation.depth,
        observation.neural_view,
        None if state is None else np.ascontiguousarray(state.values),
        state is not None and motion.static,
        intrinsics(camera),
        intrinsics(before),
        motion_rows(motion),
        packed(weights),
        native_settings(settings),
        threads,
        values,
        shown,
        written,
    )
    after = State(denoiser.name, values, camera)
    if written is None:
        return Image(shown), after
    ellipse = filter_ellipse(None if settings.zero_shot else observation.neural_view, size, settings.filter_lean)
    return Image(shown, views={**_views(after, written), "ellipse": ellipse}), after


def _views(state: State, written: Float32[Array, "h w c"]) -> dict[str, Float32[Array, "h w _"]]:
    """The views by name: those that the engine wrote, and those that follow from the state."""
    views, start = {}, 0
    for view in WRITTEN_VIEWS:
        views[view.name] = written[..., start : start + view.floats]
        start += view.floats
    luma = state.accumulated[..., :1]
    variance = np.maximum(state.squared_luma[..., None] - luma * luma, 0).astype(np.float32)
    means = {name: rgb_from_ycocg(getattr(state, name)) for name in ("accumulated", "denoised")}
    paths = [f"{path}_{what}" for what in ("trust", "frames") for path in ("accumulated", "denoised")]
    return {**views, **means, **{name: getattr(state, name)[..., None] for name in paths}, "variance": variance}


def filter_ellipse(
    neural_view: Float32[Array, "h w 4"] | None,  # None: zero-shot
    size: tuple[int, int],  # height, width
    lean: float,
) -> Float32[Array, "h w 4"]:
    """The filter's kernel of each pixel, for the view: the native sweep computes the same where it filters.

    Major and minor axis in px, cosine and sine of the major one's angle (docs/denoiser.md, "Filter").
    """
    if neural_view is None:
        scale_x = scale_y = np.full(size, ZERO_SHOT_SCALE_PX)
        correlation = np.zeros(size)
    else:
        finite = np.where(np.isfinite(neural_view), neural_view, 0).clip(-LARGEST_VIEW, LARGEST_VIEW)
        up, right, forward, blur = np.moveaxis(_binomial_blur(finite.astype(np.float64)), -1, 0)
        floor = np.logaddexp(0, blur)  # softplus
        scale_x, scale_y, correlation = np.maximum(right, 0) + floor, np.maximum(up, 0) + floor, np.tanh(forward)
    covariance = correlation * np.sqrt(scale_x * scale_y + 1e-8)
    mean, half_difference = (scale_x + scale_y) / 2, (scale_x - scale_y) / 2
    radius = np.sqrt(half_difference**2 + covariance**2 + 1e-12) - 1e-6
    minor = np.maximum(mean - radius, 1e-4)
    major = np.maximum(mean + radius, minor)
    along_x = half_difference + lean * mean
    angle = np.arctan2(covariance, along_x) / 2
    sign = np.where((along_x < 0) & (covariance < 0), -1, 1)  # an axis that is rather along y points down
    return np.stack([major, minor, sign * np.cos(angle), sign * np.sin(angle)], axis=-1).astype(np.float32)


def _binomial_blur(values: Array) -> Array:
    """[1 2 1]ᵀ[1 2 1] / 16, edges repeated."""
    padded = np.pad(values, ((1, 1), (1, 1), (0, 0)), mode="edge")
    rows = (padded[:-2] + 2 * padded[1:-1] + padded[2:]) / 4
    return (rows[:, :-2] + 2 * rows[:, 1:-1] + rows[:, 2:]) / 4
