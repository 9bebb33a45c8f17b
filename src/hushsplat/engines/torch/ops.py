"""Training operations as PyTorch custom ops, registered by device: SSIM with its gradient, and a step of Adam.

The kernels here are those of the CPU engine; the rasterizers are in raster.py. An implementation for another device
registers a kernel of each op (`torch.library.register_kernel`) and adds the device to DEVICES; nothing above changes.
A tensor on any other device is refused: nothing is copied silently.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import torch
from jaxtyping import Float
from torch import Tensor

from hushsplat.engines.cpu import _engine
from hushsplat.types.errors import TrainingError

DEVICES = {"cpu"}  # that every op of training has a kernel for


def check_device(device: torch.device | str) -> torch.device:
    """The device, if training can run there."""
    try:
        found = torch.device(device)
    except RuntimeError:
        found = None
    if found is None or found.type not in DEVICES:
        raise TrainingError(f"device '{device}': training runs on {', '.join(sorted(DEVICES))}; choose one of them.")
    return found


def check_tensors(op: str, tensors: Sequence[Tensor]) -> None:
    """All lie on one device that has a kernel."""
    devices = {str(tensor.device) for tensor in tensors}
    if len(devices) > 1:
        raise TrainingError(f"{op}: tensors lie on {' and '.join(sorted(devices))}; move them to one device.")
    check_device(tensors[0].device)


def ssim(color: Float[Tensor, "h w 3"], target: Float[Tensor, "h w 3"], threads: int = 0) -> Float[Tensor, ""]:
    """Mean SSIM (11 px Gaussian window of sigma 1.5); the gradient goes to `color` alone."""
    check_tensors("ssim", (color, target))
    return torch.ops.hushsplat.ssim(color.float(), target.float(), threads)[0]


SSIM = "(Tensor color, Tensor target, int threads) -> (Tensor, Tensor)"


@torch.library.custom_op("hushsplat::ssim", mutates_args=(), device_types="cpu", schema=SSIM)
def _ssim(color: Tensor, target: Tensor, threads: int) -> tuple[Tensor, Tensor]:
    """The mean, and its gradient."""
    by_color = torch.empty(color.shape, dtype=torch.float32)
    first, second = (tensor.detach().contiguous().numpy() for tensor in (color, target))
    return torch.tensor(_engine.ssim(first, second, threads, by_color.numpy()), dtype=torch.float32), by_color


def _keep_gradient(ctx: Any, inputs: tuple[Tensor, Tensor, int], output: tuple[Tensor, Tensor]) -> None:
    ctx.save_for_backward(output[1])


def _ssim_backward(ctx: Any, by_mean: Tensor, _: Tensor) -> tuple[Tensor, None, None]:
    (by_color,) = ctx.saved_tensors
    return by_mean * by_color, None, None


_ssim.register_autograd(_ssim_backward, setup_context=_keep_gradient)


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
        shares: Sequence[float],  # of the rate, for each column
        updates: int,  # this one included, >= 1
        threads: int = 0,
    ) -> None:
        """Update values and moments in place, with the corrections for the first steps."""
        check_tensors("adam", (values, gradient, *moments))
        first_scale = 1 / (1 - self.beta1**updates)
        second_scale = (1 - self.beta2**updates) ** -0.5
        constants = [self.beta1, self.beta2, second_scale, self.epsilon]
        rates = torch.tensor(shares, dtype=torch.float32) * torch.tensor(rate * first_scale, dtype=torch.float32)
        torch.ops.hushsplat.adam(values, gradient, *moments, rates.tolist(), constants, threads)


MOMENTS = "Tensor(a!) values, Tensor gradient, Tensor(b!) first, Tensor(c!) second"
ADAM = f"({MOMENTS}, float[] rates, float[] constants, int threads) -> ()"


@torch.library.custom_op("hushsplat::adam", mutates_args=("values", "first", "second"), device_types="cpu", schema=ADAM)
def _adam(
    values: Tensor,
    gradient: Tensor,
    first: Tensor,
    second: Tensor,
    rates: Sequence[float],  # of each trained column
    constants: Sequence[float],  # both betas, the second moment's correction, epsilon
    threads: int,
) -> None:
    beta1, beta2, second_scale, epsilon = constants
    _engine.adam(
        values.numpy(),
        gradient.numpy(),
        first.numpy(),
        second.numpy(),
        torch.tensor(rates, dtype=torch.float32).numpy(),
        beta1,
        beta2,
        second_scale,
        epsilon,
        threads,
    )
