"""Stages 1 to 3: photographs to surfels that are drawn in per-pixel order (paper, "Minimal host model")."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import NamedTuple

import numpy as np
import torch
from jaxtyping import Float, Float32
from numpy import ndarray as Array
from torch import Tensor

from hushsplat.engines.cpu.prepare import NEAR
from hushsplat.engines.cpu.render_names import RenderOptions, render_ordered, render_sorted
from hushsplat.engines.torch.raster import Drawing, Order, Rasterizer, SurfelTensors
from hushsplat.io.scenes.scene import save
from hushsplat.training.densify import Density
from hushsplat.training.losses import distortion, normal_consistency, photometric_loss, similarity
from hushsplat.training.photographs import Photographs, TargetView, psnr
from hushsplat.training.settings import Rates, TrainConfig
from hushsplat.training.surfel_model import SurfelModel, as_drawn
from hushsplat.types.gaussians import Gaussians

FAR = 100.0  # world units; 2DGS's far plane, of the depth distortion only
Draw = Callable[[Gaussians, TargetView], Float32[Array, "h w 3"]]
STAGE1_PLY, STAGE2_PLY, STAGE3_PLY = "stage1.ply", "stage2.ply", "stage3.ply"


class _Moment(NamedTuple):
    """One step of one stage: what was drawn, and what it should have been."""

    number: int
    view: TargetView
    drawing: Drawing
    surfels: SurfelTensors


class HostStage:
    """Surfels, photographs, a rasterizer; what is learned, and how fast, is up to each stage."""

    order: Order = "sorted"
    result = ""  # name of the file that is written at the end
    geometry = False  # whether the loss looks at depth and normals

    def __init__(self, model: SurfelModel, photographs: Photographs, config: TrainConfig) -> None:
        self.model, self.photographs, self.config = model, photographs, config
        self.options = RenderOptions(config.background, threads=config.threads)
        self.raster = Rasterizer(self.order, self.options)
        self.extent = photographs.extent

    def step(self, index: int) -> dict[str, float]:
        """One view: draw, compare, learn."""
        view = self.photographs.at_step(index, self.config.seed)
        leaves = self.model.leaves(self.coefficients(index))
        surfels = as_drawn(leaves)
        drawing = self.raster.draw(surfels, view.camera, geometry=self.geometry)
        target = view.target()
        color = view.compared(drawing.color, target)
        loss = photometric_loss(color, target, self.dssim) + self.extra_loss(_Moment(index, view, drawing, surfels))
        loss.backward()
        self.model.update(leaves, self.rates(index), self.config.threads)
        self.after_step(index, view, drawing)
        shown = psnr(color.detach().numpy(), target.numpy())
        return {"loss": float(loss.detach()), "psnr": shown, "surfels": float(len(self.model))}

    @property
    def dssim(self) -> float:
        """Share of 1 - SSIM in the loss."""
        return 0.2

    def coefficients(self, index: int) -> int:
        """How many harmonics are trained."""
        return self.model.sh_coefficients

    def rates(self, index: int) -> dict[str, float]:
        """What is learned, and how fast."""
        return {}

    def extra_loss(self, moment: _Moment) -> Float[Tensor, ""]:
        """Beside the photometric loss."""
        return torch.zeros(())

    def after_step(self, index: int, view: TargetView, drawing: Drawing) -> None:
        """When the parameters have moved."""

    def draw(self, gaussians: Gaussians, view: TargetView) -> Float32[Array, "h w 3"]:
        """Without gradients."""
        if self.order == "sorted":
            return render_sorted(gaussians, view.camera, self.options, with_depth=False).color
        return render_ordered(gaussians, view.camera, self.options).color

    def preview(self) -> Float32[Array, "h w 3"]:
        """The first held-out view beside its photograph."""
        view = self.photographs.held_out[0]
        return np.concatenate([self.draw(self.model.gaussians(), view), view.target().numpy()], axis=1)

    def measure(self) -> dict[str, float]:
        """Means over the held-out views."""
        return measure(self.draw, self.model.gaussians(), self.photographs.held_out)

    def state(self) -> dict[str, Tensor]:
        """Of the surfels."""
        return self.model.state()

    def load(self, state: Mapping[str, Tensor]) -> None:
        """Of the surfels."""
        self.model = SurfelModel.from_state(state)

    def finish(self, folder: Path) -> None:
        """Write the surfels."""
        save(self.model.gaussians(), folder / self.result)


class VanillaStage(HostStage):
    """Stage 1: vanilla 2DGS."""

    result = STAGE1_PLY

    def __init__(self, model: SurfelModel, photographs: Photographs, config: TrainConfig) -> None:
        super().__init__(model, photographs, config)
        self.settings = config.stage1
        self.geometry = self.settings.normal_weight > 0 or self.settings.distortion_weight > 0
        self.density = Density(self.settings.densification, self.extent, config.seed)

    @property
    def dssim(self) -> float:
        """As set."""
        return self.settings.dssim

    def coefficients(self, index: int) -> int:
        """One band more every thousand steps."""
        return min((index // self.settings.sh_every + 1) ** 2, self.model.sh_coefficients)

    def rates(self, index: int) -> dict[str, float]:
        """Of everything."""
        return all_rates(self.settings.rates, index, self.settings.steps, self.extent)

    def extra_loss(self, moment: _Moment) -> Float[Tensor, ""]:
        """The regularisers of 2DGS, where they are wanted."""
        s, drawing, total = self.settings, moment.drawing, torch.zeros(())
        if drawing.geometry is None:
            return total
        if s.normal_weight and moment.number >= s.normal_from:
            total = total + s.normal_weight * normal_consistency(drawing.geometry, drawing.alpha, moment.view.camera)
        if s.distortion_weight and moment.number >= s.distortion_from:
            total = total + s.distortion_weight * distortion(drawing.geometry, drawing.alpha, NEAR, FAR)
        return total

    def after_step(self, index: int, view: TargetView, drawing: Drawing) -> None:
        """More surfels, fewer surfels."""
        if index < self.settings.densification.last_step:
            self.density.observe(drawing.screen, view.camera, len(self.model))
            self.density.after_step(self.model, index + 1)

    def state(self) -> dict[str, Tensor]:
        """Of the surfels, and what is known about where more are wanted."""
        return {**super().state(), **self.density.state()}

    def load(self, state: Mapping[str, Tensor]) -> None:
        """Of both."""
        super().load(state)
        self.density.load(state)


class OpacityStage(HostStage):
    """Stage 2: opacities only; every surfel pays for its own, and those that are of no use fade."""

    result = STAGE2_PLY

    @property
    def dssim(self) -> float:
        """As set."""
        return self.config.stage2.dssim

    def rates(self, index: int) -> dict[str, float]:
        """Of the opacities."""
        return {"logits": self.config.stage2.rate}

    def extra_loss(self, moment: _Moment) -> Float[Tensor, ""]:
        """The paper does not say what its weight multiplies; ours is the mean opacity."""
        return self.config.stage2.penalty * moment.surfels.opacities.mean()

    def finish(self, folder: Path) -> None:
        """Write the surfels that are left."""
        keep = self.model.opacities >= self.config.stage2.prune_opacity
        save(self.model.gaussians(keep if keep.any() else None), folder / self.result)


class PerPixelStage(HostStage):
    """Stage 3: everything, through the per-pixel renderer."""

    order: Order = "per-pixel"
    result = STAGE3_PLY

    @property
    def dssim(self) -> float:
        """As set."""
        return self.config.stage3.dssim

    def rates(self, index: int) -> dict[str, float]:
        """Of everything."""
        return all_rates(self.config.stage3.rates, index, self.config.stage3.steps, self.extent)

    def finish(self, folder: Path) -> None:
        """Write the surfels that can be seen."""
        keep = self.model.opacities >= self.config.stage3.least_opacity
        save(self.model.gaussians(keep if keep.any() else None), folder / self.result)


def all_rates(rates: Rates, index: int, steps: int, extent: float) -> dict[str, float]:
    """The rates of all parameters at a step; positions fall exponentially, as in 3DGS."""
    share = index / max(steps, 1)
    others = rates.end_share**share if rates.end_share > 0 else 1 - share
    return {
        "means": extent * rates.position ** (1 - share) * rates.position_end**share,
        "log_scales": others * rates.scale,
        "quaternions": others * rates.rotation,
        "logits": others * rates.opacity,
        "sh": others * rates.harmonics,
    }


def measure(draw: Draw, gaussians: Gaussians, views: Sequence[TargetView]) -> dict[str, float]:
    """Mean PSNR and SSIM over views; what photographs do not show is left out."""
    found = []
    for view in views:
        target = view.target()
        color = view.compared(torch.from_numpy(draw(gaussians, view)).clamp(0, 1), target)
        found.append((psnr(color.numpy(), target.numpy()), float(similarity(color, target))))
    mean = np.mean(found, axis=0)
    return {"held_out_psnr": float(mean[0]), "held_out_ssim": float(mean[1])}
