"""The denoiser as a list of its passes (docs/denoiser.md)."""

from __future__ import annotations

from dataclasses import replace

import torch
from jaxtyping import Bool, Float
from torch import Tensor

from hushsplat.engines.torch.accumulate import accumulate
from hushsplat.engines.torch.colour import rgb_from_ycocg, ycocg_from_rgb
from hushsplat.engines.torch.filter import filter_color, learned_ellipse, zero_shot_ellipse
from hushsplat.engines.torch.gate import luma_variance, pooled, standard_error
from hushsplat.engines.torch.networks import DenoiserNetworks
from hushsplat.engines.torch.reproject import reproject
from hushsplat.engines.torch.smooth import smoothed
from hushsplat.engines.torch.stabilise import stabilise
from hushsplat.engines.torch.tensors import TensorImage, TensorObservation, TensorState
from hushsplat.engines.torch.trust import accumulated_trust, denoised_trust, least_frames, used_trust
from hushsplat.spec.settings import DenoiserSettings
from hushsplat.types.camera import Camera
from hushsplat.types.errors import DenoiseError


def step(
    denoiser: DenoiserNetworks,
    observation: TensorObservation,
    camera: Camera,
    state: TensorState | None,  # None on the first frame
    config: DenoiserSettings,
    disoccluded: Bool[Tensor, "h w"] | None = None,  # training knows where nothing was seen before: trusts are 0 there
    *,
    through_time: bool = False,  # the gradient goes on into the frames before
) -> tuple[TensorImage, TensorState]:
    """One frame: the picture to show, and the state for the next one.

    Differentiable in the denoiser's parameters, the payload and the colour; the state is detached on both sides, but
    for `through_time`. The picture that was shown before is detached then, too: only what is shown depends on it.
    """
    observation = observation.checked(camera)
    neural_view = _payload(observation, config)
    color = ycocg_from_rgb(observation.color)
    moments = torch.cat([color, color[..., :1] ** 2], dim=-1)  # the mean of Y² follows the accumulated path

    # 1. Reproject
    if state is not None and not through_time:
        state = replace(state, values=state.values.detach())
    history = reproject(observation.depth, camera, state, config)
    moments_before = torch.cat([history.accumulated, history.squared_luma[..., None]], dim=-1)

    # 2. Trust
    trust_s = accumulated_trust(denoiser.accumulated, color, neural_view, history, config)
    trust_h = denoised_trust(denoiser.denoised, color, history, config)

    # 3. Filter
    ellipse = (
        zero_shot_ellipse(color[..., 0]) if neural_view is None else learned_ellipse(neural_view, config.filter_lean)
    )
    filtered = filter_color(color, ellipse) if config.spatial_filter else color

    # 4. Accumulate
    least = least_frames(history.compressed_motion(config.motion_scale_px), config)
    used_s = used_trust(trust_s, history.accumulated_frames, least, config)
    used_h = used_trust(trust_h, history.denoised_frames, torch.zeros_like(trust_h), config)
    hidden = ~history.valid if disoccluded is None else ~history.valid | disoccluded
    used_s, used_h = torch.where(hidden, 0, used_s), torch.where(hidden, 0, used_h)
    cap_s, cap_h = config.accumulated_cap_frames, config.denoised_cap_frames
    moments, frames_s = accumulate(moments_before, history.accumulated_frames, used_s, moments, cap_s)
    denoised, frames_h = accumulate(history.denoised, history.denoised_frames, used_h, filtered, cap_h)
    accumulated, squared_luma = moments[..., :3], moments[..., 3]

    # 5. Smooth and gate
    variance = luma_variance(squared_luma, accumulated[..., 0])
    earlier = frames_s - 1  # frames of the mean before this one
    error = standard_error(pooled(variance, squared_luma, accumulated[..., 0], earlier, config), earlier, config)
    smooth = smoothed(accumulated, error, config)
    gate = denoiser.gate(error, earlier, config)
    composite = rgb_from_ycocg(smooth + gate[..., None] * (denoised - smooth))

    # 6. Stabilise
    shown = stabilise(composite, history, config)

    views = {
        "composite": composite,
        "filtered": rgb_from_ycocg(filtered),
        "accumulated": rgb_from_ycocg(accumulated),
        "smoothed": rgb_from_ycocg(smooth),
        "denoised": rgb_from_ycocg(denoised),
        "accumulated_trust": used_s[..., None],
        "denoised_trust": used_h[..., None],
        "accumulated_frames": frames_s[..., None],
        "denoised_frames": frames_h[..., None],
        "gate": gate[..., None],
        "variance": variance[..., None],
        "motion_px": history.motion_px,
        "relative_depth": history.relative_depth[..., None],
        "ellipse": ellipse.stacked(),
    }
    depth, spare = history.filled_depth, torch.zeros_like(trust_s)
    values = _stack(moments, frames_s, used_s, denoised, frames_h, used_h, shown.detach(), depth, spare)
    method = "temporal" if state is None else state.method
    after = TensorState(values if through_time else values.detach(), camera, method)
    return TensorImage(shown, views, history, (trust_s, trust_h)), after


def _payload(observation: TensorObservation, config: DenoiserSettings) -> Float[Tensor, "h w 4"] | None:
    if config.zero_shot:
        return None
    if observation.neural_view is None:
        raise DenoiseError("the observation has no neural_view: its scene has no payload; set zero_shot=True.")
    return observation.neural_view


def _stack(*channels: Tensor) -> Float[Tensor, "h w 16"]:
    """Pictures of one or more channels, in the order of the temporal layout."""
    return torch.cat([channel if channel.ndim == 3 else channel[..., None] for channel in channels], dim=-1)
