"""The surfels under training: raw parameters and the moments of Adam, which grow and shrink together."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np
import torch
from jaxtyping import Bool, Float, Int
from numpy import ndarray as Array
from torch import Tensor
from torch.nn.functional import normalize

from hushsplat.engines.torch.ops import Adam
from hushsplat.engines.torch.raster import SurfelTensors
from hushsplat.types.errors import TrainingError
from hushsplat.types.gaussians import Gaussians

ADAM = Adam()
SH_REST_SHARE = 1 / 20  # of the constant band's rate; 3DGS
MOST_OPAQUE = 0.9999  # ours: a logit must be finite, and what lies behind must keep a gradient
COLUMNS = {"means": 3, "log_scales": 2, "quaternions": 4, "logits": 1}
MOMENTS = ("first", "second")


class SurfelModel:
    """Raw parameters: positions, logarithms of scales, quaternions of any length, logits of opacities, harmonics."""

    def __init__(self, values: Mapping[str, Float[Tensor, ...]]) -> None:
        self.values = {name: tensor.detach().float().contiguous() for name, tensor in values.items()}
        self.moments = {kind: {n: torch.zeros_like(t) for n, t in self.values.items()} for kind in MOMENTS}
        self.updates = 0

    @staticmethod
    def from_gaussians(gaussians: Gaussians) -> SurfelModel:
        """The model that draws these surfels."""
        tensors = SurfelTensors.from_gaussians(gaussians)
        opacities = tensors.opacities.clamp(1e-6, MOST_OPAQUE)
        return SurfelModel(
            {
                "means": tensors.means,
                "log_scales": tensors.scales.log(),
                "quaternions": tensors.rotations,
                "logits": torch.logit(opacities)[:, None],
                "sh": tensors.sh,
            }
        )

    def to(self, device: torch.device) -> SurfelModel:
        """The same model on a device."""
        self.values = {name: tensor.to(device) for name, tensor in self.values.items()}
        self.moments = {k: {n: tensor.to(device) for n, tensor in table.items()} for k, table in self.moments.items()}
        return self

    def __len__(self) -> int:
        return len(self.values["means"])

    @property
    def sh_coefficients(self) -> int:
        """All of them, trained or not yet."""
        return self.values["sh"].shape[1]

    def leaves(self, coefficients: int) -> dict[str, Tensor]:
        """The parameters as PyTorch follows them; of the harmonics only the first coefficients."""
        shown = {**self.values, "sh": self.values["sh"][:, :coefficients].contiguous()}
        return {name: tensor.detach().requires_grad_() for name, tensor in shown.items()}

    def update(self, leaves: Mapping[str, Tensor], rates: Mapping[str, float], threads: int) -> None:
        """One step of Adam on the parameters that have a rate."""
        self.updates += 1
        for name, rate in rates.items():
            gradient = leaves[name].grad
            if gradient is None:
                raise TrainingError(f"{name} has no gradient; this is a bug of hushsplat.")
            trained = gradient.flatten(1).contiguous()
            rest = SH_REST_SHARE if name == "sh" else 1.0
            shares = [1.0 if column < 3 else rest for column in range(trained.shape[1])]
            first, second = (self.moments[kind][name].flatten(1) for kind in MOMENTS)
            ADAM.step(self.values[name].flatten(1), trained, (first, second), rate, shares, self.updates, threads)

    def take(self, index: Int[Tensor, " m"]) -> None:
        """Only these surfels are left, in this order."""
        for table in (self.values, *self.moments.values()):
            for name in table:
                table[name] = table[name][index].contiguous()

    def append(self, rows: Mapping[str, Float[Tensor, ...]]) -> None:
        """More surfels, with moments of 0."""
        for name, fresh in rows.items():
            self.values[name] = torch.cat([self.values[name], fresh])
            for kind in MOMENTS:
                self.moments[kind][name] = torch.cat([self.moments[kind][name], torch.zeros_like(fresh)])

    def set_logits(self, logits: Float[Tensor, "n 1"]) -> None:
        """Other opacities, with moments of 0."""
        self.values["logits"] = logits.contiguous()
        for kind in MOMENTS:
            self.moments[kind]["logits"] = torch.zeros_like(logits)

    @property
    def opacities(self) -> Float[Tensor, " n"]:
        """0..1."""
        return torch.sigmoid(self.values["logits"])[:, 0]

    def gaussians(self, keep: Bool[Tensor, " n"] | None = None) -> Gaussians:
        """The surfels as a scene (those to keep)."""
        shown = as_drawn(self.values)
        arrays = [tensor if keep is None else tensor[keep] for tensor in shown]
        return Gaussians(*(_array(tensor) for tensor in arrays))

    def state(self) -> dict[str, Tensor]:
        """All there is to know, by name."""
        state = {f"values.{name}": tensor for name, tensor in self.values.items()}
        for kind in MOMENTS:
            state |= {f"{kind}.{name}": tensor for name, tensor in self.moments[kind].items()}
        return {**state, "updates": torch.tensor([self.updates])}

    @staticmethod
    def from_state(state: Mapping[str, Tensor]) -> SurfelModel:
        """The model that `state` was taken of."""
        names = [*COLUMNS, "sh"]
        model = SurfelModel({name: state[f"values.{name}"] for name in names})
        model.moments = {kind: {name: state[f"{kind}.{name}"].clone() for name in names} for kind in MOMENTS}
        model.updates = int(state["updates"])
        return model


def as_drawn(leaves: Mapping[str, Tensor]) -> SurfelTensors:
    """Raw parameters as they are drawn."""
    return SurfelTensors(
        leaves["means"],
        leaves["log_scales"].exp(),
        normalize(leaves["quaternions"], dim=1),
        torch.sigmoid(leaves["logits"])[:, 0],
        leaves["sh"],
    )


def _array(tensor: Tensor) -> Array:
    """For drawing, measuring and saving, which the host does."""
    return np.ascontiguousarray(tensor.detach().cpu().numpy())
