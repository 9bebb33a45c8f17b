"""Densification and pruning: the rules of 3DGS and 2DGS."""

from __future__ import annotations

from collections.abc import Mapping

import torch
from jaxtyping import Bool, Float
from torch import Tensor
from torch.nn.functional import normalize

from hushsplat.engines.torch.raster import ScreenGradients
from hushsplat.engines.torch.raster_twin import matrices
from hushsplat.training.settings import Densification
from hushsplat.training.surfel_model import SurfelModel
from hushsplat.types.camera import Camera

SPLIT_INTO = 2  # 3DGS
SPLIT_SHRINK = 0.8 * SPLIT_INTO  # scales of the parts are divided by this; 3DGS


class Density:
    """Collects screen-space gradients, and clones, splits, prunes and resets surfels by them."""

    def __init__(self, settings: Densification, extent: float, seed: int, device: torch.device | str = "cpu") -> None:
        self.settings, self.extent, self.seed, self.device = settings, extent, seed, device
        self.gradients, self.views = self._zeros(0), self._zeros(0)  # sums, since the last time

    def observe(self, screen: ScreenGradients, camera: Camera, count: int) -> None:
        """Add the gradients of one picture."""
        if len(self.gradients) != count:
            self.gradients, self.views = self._zeros(count), self._zeros(count)
        if screen.by_center is None or screen.seen is None:
            return
        half = torch.tensor([camera.width / 2, camera.height / 2], device=self.device)
        scaled = screen.by_center * half  # per half picture, as 3DGS
        self.gradients += scaled.norm(dim=1)
        self.views += screen.seen

    def after_step(self, model: SurfelModel, step: int) -> None:
        """Do what is due after step number `step` (the first is 1)."""
        s = self.settings
        if step > s.last_step:
            return
        if step > s.first_step and step % s.every == 0:
            self._grow_and_prune(model, step)
        if step % s.reset_every == 0:
            least = torch.logit(torch.tensor(s.reset_opacity))
            model.set_logits(model.values["logits"].clamp(max=float(least)))

    def _grow_and_prune(self, model: SurfelModel, step: int) -> None:
        s = self.settings
        mean = self.gradients / self.views.clamp(min=1)
        wanted = _strongest(mean, s.gradient, self._room(model, step))
        large = model.values["log_scales"].exp().max(dim=1).values > s.dense_share * self.extent
        clones = {name: tensor[wanted & ~large] for name, tensor in model.values.items()}
        parts = _split({name: tensor[wanted & large] for name, tensor in model.values.items()}, self._rng(step))
        model.take((~(wanted & large)).nonzero().flatten())
        model.append(clones)
        model.append(parts)
        doomed = model.opacities < s.prune_opacity
        if step > s.reset_every:
            doomed |= model.values["log_scales"].exp().max(dim=1).values > s.prune_share * self.extent
        if not doomed.all():
            model.take((~doomed).nonzero().flatten())
        self.gradients, self.views = self._zeros(len(model)), self._zeros(len(model))

    def _room(self, model: SurfelModel, step: int) -> int:
        s = self.settings
        if not s.even_growth:
            return s.most_surfels - len(model)
        left = max(s.last_step - step, 0) // s.every + 1  # times to grow, this one included
        return (s.most_surfels - len(model)) // left

    def _rng(self, step: int) -> torch.Generator:
        """Of the host: the same numbers on every device."""
        return torch.Generator().manual_seed(self.seed * 1_000_003 + step)

    def _zeros(self, count: int) -> Tensor:
        return torch.zeros(count, device=self.device)

    def state(self) -> dict[str, Tensor]:
        """What was observed since the last time."""
        return {"density.gradients": self.gradients, "density.views": self.views}

    def load(self, state: Mapping[str, Tensor]) -> None:
        """Go on from there."""
        self.gradients, self.views = (
            state[f"density.{name}"].clone().to(self.device) for name in ("gradients", "views")
        )


def _strongest(gradients: Float[Tensor, " n"], least: float, room: int) -> Bool[Tensor, " n"]:
    """Those that reach `least`; the strongest of them where there is not room for one more of each."""
    wanted = gradients >= least
    if int(wanted.sum()) <= room:
        return wanted
    chosen = torch.zeros_like(wanted)
    if room > 0:
        chosen[torch.argsort(gradients, descending=True, stable=True)[:room]] = True
    return chosen & wanted


def _split(rows: Mapping[str, Tensor], rng: torch.Generator) -> dict[str, Tensor]:
    """Each surfel as smaller ones, placed at random by its own Gaussian."""
    parts = {name: tensor.repeat(SPLIT_INTO, *[1] * (tensor.ndim - 1)) for name, tensor in rows.items()}
    scales = parts["log_scales"].exp()
    places = torch.randn(scales.shape, generator=rng).to(scales.device) * scales
    axes = matrices(normalize(parts["quaternions"], dim=1))[..., :2]
    parts["means"] = parts["means"] + (axes @ places[..., None])[..., 0]
    parts["log_scales"] = (scales / SPLIT_SHRINK).log()
    return parts
