"""Pass 5: which of the two means is shown (docs/denoiser.md, "Gate")."""

from __future__ import annotations

import torch
from jaxtyping import Float
from torch import Tensor, nn
from torch.nn import functional

from hushsplat.spec.settings import DenoiserSettings
from hushsplat.spec.weights import MIN_GAMMA

INITIAL_GAMMA = 3.0  # ours: larger ones show the mean only where histories are long, and so teach trust 1
TINY = 1e-12  # ours: variance of the luma; keeps the root differentiable at 0
FRAMES_EPSILON = 1e-4  # ε in the paper's standard error; its size is ours


class Gate(nn.Module):
    """g, the share of the denoised path: from how uncertain the accumulated mean is."""

    def __init__(self) -> None:
        super().__init__()
        self.gamma = nn.Parameter(torch.tensor(INITIAL_GAMMA))

    def scale(self) -> Float[Tensor, ""]:
        """γ, at least 1e-4; below, its gradient still leads back up."""
        lifted = MIN_GAMMA + (self.gamma - self.gamma.detach())
        return torch.where(self.gamma < MIN_GAMMA, lifted, self.gamma)

    def forward(
        self,
        error: Float[Tensor, "h w"],  # standard error of the accumulated mean
        earlier: Float[Tensor, "h w"],  # frames of that mean before this one, n_s - 1
        config: DenoiserSettings,
    ) -> Float[Tensor, "h w"]:
        """The gate of each pixel, 0..1 (paper, equation of the gate)."""
        if config.gate != "learned":
            return torch.full_like(error, float(config.gate))
        uncertain = (self.scale() * error).clamp(0, 1)
        ripe = 1 - torch.exp(-earlier / config.tau_frames)
        return 1 - ripe * (1 - uncertain)


def luma_variance(
    squared_luma: Float[Tensor, "h w"],  # mean of Y²
    luma: Float[Tensor, "h w"],  # mean of Y
) -> Float[Tensor, "h w"]:
    """Of the raw luma over the history."""
    return (squared_luma - luma * luma).clamp(min=0)


def pooled(
    variance: Float[Tensor, "h w"],  # of a pixel's own history
    squared_luma: Float[Tensor, "h w"],
    luma: Float[Tensor, "h w"],
    earlier: Float[Tensor, "h w"],  # frames before this one
    config: DenoiserSettings,
) -> Float[Tensor, "h w"]:
    """The variance, of short histories in part that of 3×3 pixels: one frame has none of its own."""
    if config.pooled_frames == 0:
        return variance
    moments = torch.stack([squared_luma, luma])[None]
    mean_square, mean = functional.avg_pool2d(functional.pad(moments, (1, 1, 1, 1), mode="replicate"), 3, 1)[0]
    share = (1 - earlier / config.pooled_frames).clamp(0, 1)
    return variance + share * (luma_variance(mean_square, mean) - variance)


def standard_error(
    variance: Float[Tensor, "h w"], earlier: Float[Tensor, "h w"], config: DenoiserSettings
) -> Float[Tensor, "h w"]:
    """Of the accumulated mean: √(variance / earlier), but linear in the variance where that is below `error_floor`."""
    return variance / torch.sqrt((variance + max(config.error_floor, TINY)) * (earlier + FRAMES_EPSILON))
