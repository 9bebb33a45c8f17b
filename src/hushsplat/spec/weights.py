"""The trained part of the denoiser: two small networks and one scalar, a few kilobytes (docs/denoiser.md)."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np
from jaxtyping import Float32
from numpy import ndarray as Array

from hushsplat.types.errors import WeightsError

WIDTH = 8  # channels of every hidden layer (paper, "History Trust Predictors")
MIN_GAMMA = 1e-4  # paper, "Stage-4 training configuration": gate scalar minimum scale

_POINTWISE, _DEPTHWISE, _HEAD = (WIDTH, WIDTH, 1, 1), (WIDTH, 1, 3, 3), (1, WIDTH, 1, 1)
_CONVOLUTIONS: dict[str, tuple[int, ...]] = {
    "accumulated.0": _POINTWISE,
    "accumulated.1": _DEPTHWISE,
    "accumulated.2": _POINTWISE,
    "accumulated.3": _POINTWISE,
    "accumulated.4": _DEPTHWISE,
    "accumulated.5": _POINTWISE,
    "accumulated.head": _HEAD,
    "denoised.depthwise": _DEPTHWISE,
    "denoised.head": _HEAD,
}
SHAPES: dict[str, tuple[int, ...]] = {  # of every tensor; a weight is [out, in / groups, height, width]
    **{f"{name}.weight": shape for name, shape in _CONVOLUTIONS.items()},
    **{f"{name}.bias": shape[:1] for name, shape in _CONVOLUTIONS.items()},
    "gate.gamma": (),
}


@dataclass(frozen=True)
class DenoiserWeights:
    """All tensors of the denoiser by name; whatever is in here has the right shape and is finite."""

    tensors: Mapping[str, Float32[Array, "*_"]]

    def __post_init__(self) -> None:
        for name in SHAPES:
            if name not in self.tensors:
                raise WeightsError(f"tensor '{name}' is missing.")
        for name, tensor in self.tensors.items():
            check_tensor(name, tuple(tensor.shape), str(tensor.dtype))
            if not np.isfinite(tensor).all():
                raise WeightsError(f"tensor '{name}' holds values that are not finite; train again from better ones.")
        if self.gamma < np.float32(MIN_GAMMA):
            raise WeightsError(f"tensor 'gate.gamma' is {self.gamma:g}; it must be at least {MIN_GAMMA:g}.")

    def __getitem__(self, name: str) -> Float32[Array, "*_"]:
        return self.tensors[name]

    @property
    def gamma(self) -> float:
        """The gate's scalar: how strongly the standard error of the accumulated path calls for the denoised one."""
        return float(self.tensors["gate.gamma"])


def check_tensor(name: str, shape: tuple[int, ...], dtype: str) -> None:
    """Refuse by name a tensor that this denoiser does not have, or has otherwise."""
    if name not in SHAPES:
        raise WeightsError(f"tensor '{name}' is unknown to this version.")
    if shape != SHAPES[name]:
        raise WeightsError(f"tensor '{name}' has shape {list(shape)}, expected {list(SHAPES[name])}.")
    if dtype != "float32":
        raise WeightsError(f"tensor '{name}' is of type {dtype}, expected float32.")


# Tensors in the order in which engines take them as one array of floats. A pointwise weight is [input][output], a
# depthwise one [tap][channel]: eight outputs or channels side by side.
PACKED: tuple[tuple[str, str], ...] = (  # name in the engine's struct, tensor
    ("encode", "accumulated.0"),
    ("depthwise1", "accumulated.1"),
    ("point1", "accumulated.2"),
    ("point2", "accumulated.3"),
    ("depthwise2", "accumulated.4"),
    ("point3", "accumulated.5"),
    ("head", "accumulated.head"),
    ("denoised_depthwise", "denoised.depthwise"),
    ("denoised_head", "denoised.head"),
)


def packed(weights: DenoiserWeights) -> Float32[Array, " n"]:
    """All weights as one array: each layer's weight, then its bias, in the order of PACKED; gamma last."""
    parts: list[Array] = []
    for _, tensor in PACKED:
        weight = weights[f"{tensor}.weight"]
        parts += [weight.reshape(len(weight), -1).T.ravel(), weights[f"{tensor}.bias"]]
    return np.concatenate([*parts, np.array([weights.gamma])]).astype(np.float32)
