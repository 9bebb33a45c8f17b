"""What a trust should have been, told by the errors of what it weighs.

The new mean is w · history + (1 - w) · sample with w = n t / (n t + 1). With errors e of the history and s of the
sample, both known in training and independent of each other, w = s² / (e² + s²) is best. The error of the mean itself
teaches that badly: with n = 100, t = 1 and t = 0.5 differ by nothing, and its gradient never finds the t = 0.01 that a
disoccluded pixel needs. So history and sample vote instead: over u = log(n t), e² softplus(u) + s² softplus(-u) is
convex, its least value is at that very w, and since it is linear in e² and s² single noisy pixels may vote.
"""

from __future__ import annotations

import torch
from jaxtyping import Bool, Float
from torch import Tensor
from torch.nn import functional

# Ours. log t stops falling where t nears 1, and a trust that got there by mistake must come back: a little of the
# gradient always reaches the logit, which in turn is kept from running away.
LEAK = 0.05
LARGEST_LOGIT = 6.0
LOGIT_WEIGHT = 3e-5
FEWEST_FRAMES = 1e-3  # shorter histories weigh nothing, whatever their trust


def trust_votes(
    frames: Float[Tensor, "h w"],  # n, of the reprojected history
    trust: Float[Tensor, "h w"],  # t as predicted, 0..1
    history_error: Float[Tensor, "h w"],  # e², no gradient
    sample_error: Float[Tensor, "h w"],  # s², no gradient
    counts: Bool[Tensor, "h w"],  # who may vote: pixels with history
) -> Float[Tensor, ""]:
    """Mean over all pixels; its least value has every n t at s² / e²."""
    counts = counts & (frames > FEWEST_FRAMES)
    logit = torch.logit(torch.where(counts, trust, 0.5), eps=1e-6)
    weight = torch.log(frames.clamp(min=FEWEST_FRAMES)) + functional.logsigmoid(logit)  # u
    weight = weight + LEAK * (logit - logit.detach())
    votes = history_error * functional.softplus(weight) + sample_error * functional.softplus(-weight)
    beyond = functional.relu(logit.abs() - LARGEST_LOGIT) ** 2
    return torch.where(counts, votes + LOGIT_WEIGHT * beyond, 0).mean()
