"""Training operations of the CPU engine as PyTorch sees them: SSIM with its gradient, and a step of Adam."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import torch
from jaxtyping import Float, Float32
from numpy import ndarray as Array
from torch import Tensor

from hushsplat.engines.cpu import _engine


def ssim(color: Float[Tensor, "h w 3"], target: Float[Tensor, "h w 3"], threads: int = 0) -> Float[Tensor, ""]:
    """Mean SSIM (11 px Gaussian window of sigma 1.5); the gradient goes to `color` alone."""
    return _Ssim.apply(color, target, threads)


class _Ssim(torch.autograd.Function):
    @staticmethod
    def forward(ctx: Any, color: Tensor, target: Tensor, threads: int) -> Tensor:
        first, second = (tensor.detach().to("cpu", torch.float32).contiguous() for tensor in (color, target))
        by_first = torch.empty_like(first)
        mean = _engine.ssim(first.numpy(), second.numpy(), threads, by_first.numpy())
        ctx.save_for_backward(by_first)
        return torch.tensor(mean, dtype=color.dtype, device=color.device)

    @staticmethod
    def backward(ctx: Any, by_mean: Tensor) -> tuple[Tensor, None, None]:
        (by_first,) = ctx.saved_tensors
        return by_mean * by_first.to(by_mean.device), None, None


@dataclass(frozen=True)
class Adam:
    """Constants of Adam."""

    beta1: float = 0.9
    beta2: float = 0.999
    epsilon: float = 1e-15  # 3DGS

    def step(
        self,
        values: Float[Tensor, "n c"],
        gradient: Float[Tensor, "n t"],  # of the first columns; the others stay
        moments: tuple[Float[Tensor, "n c"], Float[Tensor, "n c"]],
        rate: float,  # step size
        shares: Float32[Array, " t"],  # of the rate, for each column
        updates: int,  # this one included, >= 1
        threads: int = 0,
    ) -> None:
        """Update values and moments in place, with the corrections for the first steps."""
        first_scale = 1 / (1 - self.beta1**updates)
        second_scale = (1 - self.beta2**updates) ** -0.5
        first, second = (moment.numpy() for moment in moments)
        _engine.adam(
            values.numpy(),
            gradient.numpy(),
            first,
            second,
            np.full(len(shares), rate * first_scale, dtype=np.float32) * shares,
            self.beta1,
            self.beta2,
            second_scale,
            self.epsilon,
            threads,
        )
