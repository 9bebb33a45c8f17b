"""Pass 5: which of the two means is shown (docs/denoiser.md, "Gate")."""

from __future__ import annotations

import torch
from jaxtyping import Float
from torch import Tensor, nn

from hushsplat.spec.settings import DenoiserSettings
from hushsplat.spec.weights import MIN_GAMMA

INITIAL_GAMMA = 10.0  # ours: a standard error of 0.1 is shown from the denoised path alone
UNSEEN = 1e-4  # ours: variance of the luma that nobody sees; below, float32 knows it badly, and roots are steep
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
        frames: Float[Tensor, "h w"],  # n_s, after this frame
        config: DenoiserSettings,
    ) -> Float[Tensor, "h w"]:
        """The gate of each pixel, 0..1 (paper, equation of the gate)."""
        if config.gate != "learned":
            return torch.full_like(error, float(config.gate))
        uncertain = (self.scale() * error).clamp(0, 1)
        ripe = 1 - torch.exp(-frames / config.tau_frames)
        return 1 - ripe * (1 - uncertain)


def luma_variance(
    squared_luma: Float[Tensor, "h w"],  # mean of Y²
    luma: Float[Tensor, "h w"],  # mean of Y
) -> Float[Tensor, "h w"]:
    """Of the raw luma over the history."""
    return (squared_luma - luma * luma).clamp(min=0)


def standard_error(variance: Float[Tensor, "h w"], frames: Float[Tensor, "h w"]) -> Float[Tensor, "h w"]:
    """Of the accumulated mean: √(variance / frames), but linear in the variance where that is below `UNSEEN`."""
    return variance / torch.sqrt((variance + UNSEEN) * (frames + FRAMES_EPSILON))
