"""Pass 2: how far the history of each path can be trusted (docs/denoiser.md, "Trust")."""

from __future__ import annotations

from collections import OrderedDict

import torch
from jaxtyping import Float
from torch import Tensor, nn
from torch.nn import functional

from hushsplat.engines.torch.tensors import History
from hushsplat.spec.settings import DenoiserSettings
from hushsplat.spec.weights import WIDTH

FEWEST_FRAMES = 1e-6  # of a history: shorter ones have no weight, whatever their trust
LEAST_DISTRUST = 1e-6  # 1 - t: longer histories than a million frames are cut anyway


class AccumulatedTrust(nn.Sequential):
    """t_s: two separable 3×3 blocks of width 8 (paper, "History Trust Predictors" and appendix)."""

    def __init__(self) -> None:
        layers = [_pointwise(), _depthwise(), _pointwise(), _pointwise(), _depthwise(), _pointwise()]
        named = OrderedDict((str(index), layer) for index, layer in enumerate(layers))
        super().__init__(OrderedDict(**named, head=_head(bias=0.0)))  # the paper's: 0.5 when training starts

    def forward(self, features: Float[Tensor, "h w 8"]) -> Float[Tensor, "h w"]:
        """Trust of each pixel's accumulated history, 0..1."""
        encode, depthwise1, pointwise1, pointwise2, depthwise2, pointwise3, head = self
        hidden = functional.silu(encode(_planes(features)))
        hidden = functional.silu(pointwise1(depthwise1(hidden)))
        hidden = functional.silu(pointwise2(hidden))
        hidden = functional.silu(pointwise3(depthwise2(hidden)))
        return torch.sigmoid(head(hidden))[0, 0]


class DenoisedTrust(nn.Module):
    """t_h: one depthwise 3×3 layer and a head (paper, "History Trust Predictors")."""

    def __init__(self) -> None:
        super().__init__()
        self.depthwise = _depthwise()
        self.head = _head(bias=-4.0)  # the paper's: about 0.02 when training starts

    def forward(self, features: Float[Tensor, "h w 8"]) -> Float[Tensor, "h w"]:
        """Trust of each pixel's denoised history, 0..1."""
        return torch.sigmoid(self.head(functional.silu(self.depthwise(_planes(features)))))[0, 0]


def accumulated_features(
    color_ycocg: Float[Tensor, "h w 3"],
    neural_view: Float[Tensor, "h w 4"] | None,
    history: History,
    config: DenoiserSettings,
) -> Float[Tensor, "h w 8"]:
    """What t_s is predicted from, in the order of the paper's first table of inputs."""
    motion = history.compressed_motion(config.motion_scale_px)
    forward_view = torch.zeros_like(motion) if neural_view is None else neural_view[..., 2]
    features = [
        (color_ycocg[..., 0] - history.accumulated[..., 0]).abs(),
        history.accumulated_trust,
        motion * motion,
        history.accumulated_frames / config.accumulated_cap_frames,
        motion,
        history.relative_depth,
        motion * history.relative_depth,
        forward_view,
    ]
    return torch.stack(features, dim=-1)


def denoised_features(
    color_ycocg: Float[Tensor, "h w 3"],
    history: History,
    config: DenoiserSettings,
) -> Float[Tensor, "h w 8"]:
    """What t_h is predicted from, in the order of the paper's second table of inputs."""
    motion = history.compressed_motion(config.motion_scale_px)
    difference = color_ycocg - history.denoised
    features = [
        difference[..., 0].abs(),
        history.denoised[..., 0],
        history.denoised_trust,
        history.denoised_frames / config.denoised_cap_frames,
        motion,
        torch.linalg.vector_norm(difference, dim=-1),
        history.relative_depth,
        motion * motion,
    ]
    return torch.stack(features, dim=-1)


def accumulated_trust(
    network: AccumulatedTrust,
    color_ycocg: Float[Tensor, "h w 3"],
    neural_view: Float[Tensor, "h w 4"] | None,
    history: History,
    config: DenoiserSettings,
) -> Float[Tensor, "h w"]:
    """t_s: 1 on a static camera, where samples are alike and the plain mean is best; 0 where there is no history."""
    if history.static or config.trust == "one":
        trust = torch.ones_like(history.relative_depth)
    elif config.trust == "heuristic":
        trust = torch.exp(-config.sigma * history.relative_depth)
    elif config.trust == "constant":
        trust = torch.full_like(history.relative_depth, config.constant_trust)
    else:
        trust = network(accumulated_features(color_ycocg, neural_view, history, config))
    return torch.where(history.valid, trust, 0)


def denoised_trust(
    network: DenoisedTrust,
    color_ycocg: Float[Tensor, "h w 3"],
    history: History,
    config: DenoiserSettings,
) -> Float[Tensor, "h w"]:
    """t_h, 0 where there is no history."""
    trust = network(denoised_features(color_ycocg, history, config))
    return torch.where(history.valid, trust, 0)


def used_trust(
    trust: Float[Tensor, "h w"],  # t, 0..1
    frames: Float[Tensor, "h w"],  # n
    least: Float[Tensor, "h w"],  # frames: of a history that is kept by its length
    config: DenoiserSettings,
) -> Float[Tensor, "h w"]:
    """The share of a history that is kept: t itself, or what leaves min(n, N) frames of n, N = t / (1 - t)."""
    if config.history == "share":
        return trust
    length = torch.maximum(trust / (1 - trust).clamp(min=LEAST_DISTRUST), least)
    return length / torch.maximum(frames, length).clamp(min=FEWEST_FRAMES)


def least_frames(
    motion: Float[Tensor, "h w"],  # c, compressed
    config: DenoiserSettings,
) -> Float[Tensor, "h w"]:
    """How many frames make up `history_px` at this motion, at most the cap: 1 / (1 / cap + m / history_px)."""
    cap = config.accumulated_cap_frames
    steady = (1 - motion) * config.history_px
    return cap * steady / (steady + cap * config.motion_scale_px * motion).clamp(min=FEWEST_FRAMES)


def _planes(features: Float[Tensor, "h w 8"]) -> Float[Tensor, "1 8 h w"]:
    return features.permute(2, 0, 1)[None]


def _pointwise() -> nn.Conv2d:
    return nn.Conv2d(WIDTH, WIDTH, 1)


def _depthwise() -> nn.Conv2d:
    return nn.Conv2d(WIDTH, WIDTH, 3, padding=1, groups=WIDTH)  # zeros outside


def _head(bias: float) -> nn.Conv2d:
    head = nn.Conv2d(WIDTH, 1, 1)
    head.bias = nn.Parameter(torch.tensor([bias]))
    return head
