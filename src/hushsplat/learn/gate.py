"""Pass 5: which of the two means is shown (docs/denoiser.md, "Gate")."""

from __future__ import annotations

import torch
from jaxtyping import Float
from torch import Tensor, nn

from hushsplat.core.weights import MIN_GAMMA
from hushsplat.denoise.config import HushConfig

INITIAL_GAMMA = 10.0  # ours: a standard error of 0.1 is shown from the denoised path alone
ROUNDING = 1e-6  # ours: relative; what a constant's variance is in float32, and a little more
TINY = 1e-12  # ours: squared standard error, colour²; below, it is seen by nobody and has no gradient
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
        variance: Float[Tensor, "h w"],
        frames: Float[Tensor, "h w"],  # n_s, after this frame
        config: HushConfig,
    ) -> Float[Tensor, "h w"]:
        """The gate of each pixel, 0..1 (paper, equation of the gate)."""
        if config.gate != "learned":
            return torch.full_like(variance, float(config.gate))
        uncertain = (self.scale() * standard_error(variance, frames)).clamp(0, 1)
        ripe = 1 - torch.exp(-frames / config.tau_frames)
        return 1 - ripe * (1 - uncertain)


def luma_variance(
    squared_luma: Float[Tensor, "h w"],  # mean of Y²
    luma: Float[Tensor, "h w"],  # mean of Y
) -> Float[Tensor, "h w"]:
    """Of the raw luma over the history; 0 where it is only rounding."""
    return (squared_luma * (1 - ROUNDING) - luma * luma).clamp(min=0)


def standard_error(variance: Float[Tensor, "h w"], frames: Float[Tensor, "h w"]) -> Float[Tensor, "h w"]:
    """Of the accumulated mean. Where it is 0 the root has no gradient, and nearly so a useless one: none is given."""
    squared = variance / (frames + FRAMES_EPSILON)
    noisy = squared > TINY
    return torch.where(noisy, torch.sqrt(torch.where(noisy, squared, 1)), torch.sqrt(squared.detach()))
