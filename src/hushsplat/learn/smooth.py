"""Between the means and the gate: neighbours that agree calm the accumulated mean (docs/denoiser.md, "Smooth")."""

from __future__ import annotations

import torch
from jaxtyping import Float
from torch import Tensor
from torch.nn import functional

from hushsplat.denoise.config import HushConfig

LEAST_DIFFERENCE = 0.01  # ours: luma; a neighbour that differs by this weighs 1/e even if the mean is certain


def smoothed(
    accumulated: Float[Tensor, "h w 3"],  # YCoCg
    error: Float[Tensor, "h w"],  # standard error of its luma
    config: HushConfig,
) -> Float[Tensor, "h w 3"]:
    """Mean over 3×3 pixels, of which one counts less the more standard errors its luma is away."""
    if not config.smooth:
        return accumulated
    height, width = error.shape
    padded = functional.pad(accumulated.permute(2, 0, 1)[None], (1, 1, 1, 1), mode="replicate")[0].permute(1, 2, 0)
    scale = 1 / (config.smooth_errors * error + LEAST_DIFFERENCE)
    total, change = torch.ones_like(error), torch.zeros_like(accumulated)
    for y in range(3):
        for x in range(3):
            if (y, x) == (1, 1):
                continue
            difference = padded[y : y + height, x : x + width] - accumulated
            weight = torch.exp(-difference[..., 0].abs() * scale)
            total, change = total + weight, change + weight[..., None] * difference
    return accumulated + change / total[..., None]
