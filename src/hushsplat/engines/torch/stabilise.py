"""Pass 6: against what still flickers (docs/denoiser.md, "Stabilise")."""

from __future__ import annotations

import torch
from jaxtyping import Float
from torch import Tensor
from torch.nn import functional

from hushsplat.engines.torch.tensors import History
from hushsplat.spec.settings import DenoiserSettings


def stabilise(composite: Float[Tensor, "h w 3"], history: History, config: DenoiserSettings) -> Float[Tensor, "h w 3"]:
    """The composite blended with the frame shown before, within what its neighbourhood allows; never negative."""
    if history.static or not config.stabilise:
        return composite.clamp(min=0)
    tolerance = neighbourhood_range(composite) / 2 + config.stabilise_slack
    before = torch.minimum(torch.maximum(history.stabilised, composite - tolerance), composite + tolerance)
    close = (composite - before).abs().amax(-1) < config.stabilise_rescue
    kept = history.valid & ((history.relative_depth <= config.stabilise_depth) | close)
    slow = 1 - history.compressed_motion(config.stabilise_motion_px)  # 1 at rest, one half at that motion
    weight = torch.where(kept, config.stabilise_weight * slow, 0.0).to(composite.dtype)[..., None]
    return (composite + (before - composite) * weight).clamp(min=0)


def neighbourhood_range(color: Float[Tensor, "h w c"]) -> Float[Tensor, "h w c"]:
    """Largest less least of each channel over 3×3 pixels; what lies outside the picture does not count."""
    planes = color.permute(2, 0, 1)[None]
    largest = functional.max_pool2d(planes, 3, stride=1, padding=1)
    least = -functional.max_pool2d(-planes, 3, stride=1, padding=1)
    return (largest - least)[0].permute(1, 2, 0)
