"""Between the means and the gate: neighbours that agree calm the accumulated mean (docs/denoiser.md, "Smooth")."""

from __future__ import annotations

from collections.abc import Iterator

import torch
from jaxtyping import Float
from torch import Tensor
from torch.nn import functional

from hushsplat.spec.settings import DenoiserSettings

LEAST_DIFFERENCE = 0.01  # ours: luma; a neighbour that differs by this weighs 1/e even if the mean is certain
NEIGHBOURS = [(y, x) for y in range(3) for x in range(3) if (y, x) != (1, 1)]


def smoothed(
    accumulated: Float[Tensor, "h w 3"],  # YCoCg
    error: Float[Tensor, "h w"],  # standard error of its luma
    config: DenoiserSettings,
) -> Float[Tensor, "h w 3"]:
    """Mean over 3×3 pixels, of which one counts less the more standard errors its luma is away."""
    if not config.smooth:
        return accumulated
    return mixed(accumulated, neighbour_weights(accumulated[..., 0], error, config))


def neighbour_weights(
    luma: Float[Tensor, "h w"], error: Float[Tensor, "h w"], config: DenoiserSettings
) -> Float[Tensor, "8 h w"]:
    """Of each pixel's NEIGHBOURS; its own weight is 1."""
    scale = 1 / (config.smooth_errors * error + LEAST_DIFFERENCE)
    distances = torch.stack([there[..., 0].abs() * scale for there in _differences(luma[..., None])])
    return (1 - distances / 8).clamp(min=0) ** 8  # nearly exp(-distance), at a third of its cost


def mixed(values: Float[Tensor, "h w c"], weights: Float[Tensor, "8 h w"]) -> Float[Tensor, "h w c"]:
    """Each pixel's mean with its neighbours."""
    change = sum(weight[..., None] * there for weight, there in zip(weights, _differences(values), strict=True))
    return values + change / (1 + weights.sum(0))[..., None]


def _differences(values: Float[Tensor, "h w c"]) -> Iterator[Float[Tensor, "h w c"]]:
    """What each of NEIGHBOURS has more; outside the picture its edge counts again."""
    height, width, _ = values.shape
    padded = functional.pad(values.permute(2, 0, 1)[None], (1, 1, 1, 1), mode="replicate")[0].permute(1, 2, 0)
    for y, x in NEIGHBOURS:
        yield padded[y : y + height, x : x + width] - values
