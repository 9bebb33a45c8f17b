"""Pass 4: the running means (docs/denoiser.md, "Accumulate")."""

from __future__ import annotations

import torch
from jaxtyping import Float
from torch import Tensor


def accumulate(
    previous_mean: Float[Tensor, "h w c"],  # X_prev, already reprojected
    history_frames: Float[Tensor, "h w"],  # n
    trust: Float[Tensor, "h w"],  # t, 0..1
    sample: Float[Tensor, "h w c"],  # x, this frame's value
    cap_frames: float,  # n_max
) -> tuple[Float[Tensor, "h w c"], Float[Tensor, "h w"]]:
    """Trust-weighted running mean (paper, "EMA path update"): the new mean and history length.

    Written as a step from the sample, so that a constant stays exactly constant and trust 0 gives exactly the sample.
    """
    kept = history_frames * trust
    total = kept + 1
    mean = sample + (previous_mean - sample) * (kept / total)[..., None]
    return mean, torch.clamp(total, max=cap_frames)
