"""The trust loss: a convex surrogate whose minimum is the inverse-variance weight.

The new mean is w · history + (1 - w) · sample with w = n t / (n t + 1). With squared errors e² of the history and s² of
the sample, known in training and independent of each other, the best weight is w = s² / (e² + s²). The error of the
mean itself has almost no gradient: with n = 100, t = 1 and t = 0.5 give nearly the same mean, so gradient descent never
reaches the t = 0.01 that a disoccluded pixel needs. Over u = log(n t), e² softplus(u) + s² softplus(-u) is convex and
has its minimum at that w; since it is linear in e² and s², it is unbiased when these come from single noisy pixels.
Where trust is a length N = t / (1 - t), u = log(min(n, N)), and its gradient reaches log N, the logit, on either side.
"""

from __future__ import annotations

import torch
from jaxtyping import Bool, Float
from torch import Tensor
from torch.nn import functional

from hushsplat.spec.settings import HistoryMode

# Ours. The gradient of log t vanishes as t approaches 1, and a trust that is wrongly there must come back: a small part
# of the gradient always reaches the logit, whose size is penalised beyond LARGEST_LOGIT.
LEAK = 0.05
LARGEST_LOGIT = 6.0
LOGIT_WEIGHT = 3e-5
FEWEST_FRAMES = 1e-3  # shorter histories have no weight, whatever their trust


def trust_loss(
    frames: Float[Tensor, "h w"],  # n, of the reprojected history
    trust: Float[Tensor, "h w"],  # t as predicted, 0..1
    history_error: Float[Tensor, "h w"],  # e², no gradient
    sample_error: Float[Tensor, "h w"],  # s², no gradient
    valid: Bool[Tensor, "h w"],  # pixels with history
    history: HistoryMode,  # what trust means
) -> Float[Tensor, ""]:
    """Mean over all pixels; at its minimum every n t, or min(n, N), is s² / e²."""
    valid = valid & (frames > FEWEST_FRAMES)
    logit = torch.logit(torch.where(valid, trust, 0.5), eps=1e-6)
    frames_log = torch.log(frames.clamp(min=FEWEST_FRAMES))
    if history == "length":
        weight = torch.minimum(logit, frames_log).detach() + (logit - logit.detach())  # u
    else:
        weight = frames_log + functional.logsigmoid(logit) + LEAK * (logit - logit.detach())
    surrogate = history_error * functional.softplus(weight) + sample_error * functional.softplus(-weight)
    beyond = functional.relu(logit.abs() - LARGEST_LOGIT) ** 2
    return torch.where(valid, surrogate + LOGIT_WEIGHT * beyond, 0).mean()
