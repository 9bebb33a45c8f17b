"""Stages 1 to 3: from photographs to surfels that are sorted in every pixel (paper, "Minimal host model")."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import NamedTuple

import numpy as np
import torch
from jaxtyping import Float, Float32
from numpy import ndarray as Array
from torch import Tensor

from hushsplat.engines.base import engine
from hushsplat.engines.torch.ops import check_device, ssim
from hushsplat.engines.torch.raster import Drawing, Order, Rasterizer, SurfelTensors
from hushsplat.io.scenes.scene import save
from hushsplat.training.densify import Density
from hushsplat.training.losses import distortion, normal_consistency, photometric_loss
from hushsplat.training.photographs import Photographs, TargetView
from hushsplat.training.settings import Rates, TrainSettings
from hushsplat.training.surfel_model import SurfelModel, as_drawn
from hushsplat.types.metrics import BEST_DB, psnr
from hushsplat.types.options import NEAR, RenderOptions

FAR = 100.0  # world units; 2DGS's far plane, of the depth distortion only
STAGE1_PLY, STAGE2_PLY, STAGE3_PLY = "stage1.ply", "stage2.ply", "stage3.ply"


class _Drawn(NamedTuple):
    """What a step has drawn, and the view it was drawn from."""

    number: int
    view: TargetView
    drawing: Drawing
    surfels: SurfelTensors


class SurfelStage:
    """Surfels, photographs, a rasterizer; each stage chooses what is trained and how fast."""

    order: Order = "center"
    result = ""  # name of the file that is written at the end
    geometry = False  # whether the loss looks at depth and normals

    def __init__(self, model: SurfelModel, photographs: Photographs, settings: TrainSettings) -> None:
        self.device = check_device(settings.device)
        self.model, self.photographs, self.settings = model.to(self.device), photographs, settings
        self.options = RenderOptions(settings.background, threads=settings.threads)
        self.engine = engine("cpu")
        self.raster = Rasterizer(self.order, self.options)
        self.extent = photographs.extent

    def step(self, index: int) -> dict[str, float]:
        """One view: draw, compare, update."""
        view = self.photographs.at_step(index, self.settings.seed)
        leaves = self.model.leaves(self.coefficients(index))
        surfels = as_drawn(leaves)
        drawing = self.raster.draw(surfels, view.camera, geometry=self.geometry)
        target = view.target(self.device)
        color = view.compared(drawing.color, target)
        loss = photometric_loss(color, target, self.dssim, self.settings.threads)
        loss = loss + self.extra_loss(_Drawn(index, view, drawing, surfels))
        loss.backward()
        self.model.update(leaves, self.rates(index), self.settings.threads)
        self.after_step(index, view, drawing)
        error = (color.detach().clamp(0, 1) - target).double().square().mean()
        found = torch.stack([loss.detach().double(), error]).tolist()  # the only numbers that the host sees of a step
        shown = -10 * np.log10(found[1]) if found[1] > 0 else BEST_DB
        return {"loss": found[0], "psnr": min(float(shown), BEST_DB), "surfels": float(len(self.model))}

    @property
    def dssim(self) -> float:
        """Share of 1 - SSIM in the loss."""
        return 0.2

    def coefficients(self, index: int) -> int:
        """Number of harmonics that are trained."""
        return self.model.sh_coefficients

    def rates(self, index: int) -> dict[str, float]:
        """Step sizes of what is trained."""
        return {}

    def extra_loss(self, drawn: _Drawn) -> Float[Tensor, ""]:
        """Beside the photometric loss."""
        return torch.zeros((), device=self.device)

    def after_step(self, index: int, view: TargetView, drawing: Drawing) -> None:
        """When the parameters have moved."""

    def draw(self, views: Sequence[TargetView]) -> Iterator[Float32[Array, "h w 3"]]:
        """The surfels from each view, without gradients."""
        method = "reference" if self.order == "center" else "exact"
        scene = self.engine.upload(self.model.gaussians(), self.options)
        for view in views:
            yield self.engine.render(scene, view.camera, method, self.options, with_depth=False).numpy().color

    def preview(self) -> Float32[Array, "h w 3"]:
        """The first held-out view beside its photograph."""
        view = self.photographs.held_out[0]
        return np.concatenate([*self.draw([view]), view.target().numpy()], axis=1)

    def measure(self) -> dict[str, float]:
        """Mean PSNR and SSIM over the held-out views, of the pixels that photographs show."""
        found, views = [], self.photographs.held_out
        for view, drawn in zip(views, self.draw(views), strict=True):
            target = view.target()
            color = view.compared(torch.from_numpy(drawn).clamp(0, 1), target)
            found.append((psnr(color.numpy(), target.numpy()), float(ssim(color, target, self.settings.threads))))
        mean = np.mean(found, axis=0)
        return {"held_out_psnr": float(mean[0]), "held_out_ssim": float(mean[1])}

    def state(self) -> dict[str, Tensor]:
        """Of the surfels."""
        return self.model.state()

    def load(self, state: Mapping[str, Tensor]) -> None:
        """Of the surfels."""
        self.model = SurfelModel.from_state(state).to(self.device)

    def finish(self, folder: Path) -> None:
        """Write the surfels."""
        save(self.model.gaussians(), folder / self.result)


class VanillaStage(SurfelStage):
    """Stage 1: vanilla 2DGS."""

    result = STAGE1_PLY

    def __init__(self, model: SurfelModel, photographs: Photographs, settings: TrainSettings) -> None:
        super().__init__(model, photographs, settings)
        self.stage = settings.stage1
        self.geometry = self.stage.normal_weight > 0 or self.stage.distortion_weight > 0
        self.density = Density(self.stage.densification, self.extent, settings.seed, self.device)

    @property
    def dssim(self) -> float:
        """As set."""
        return self.stage.dssim

    def coefficients(self, index: int) -> int:
        """One band more every `sh_every` steps."""
        return min((index // self.stage.sh_every + 1) ** 2, self.model.sh_coefficients)

    def rates(self, index: int) -> dict[str, float]:
        """Of everything."""
        return all_rates(self.stage.rates, index, self.stage.steps, self.extent)

    def extra_loss(self, drawn: _Drawn) -> Float[Tensor, ""]:
        """The regularisers of 2DGS, from their first steps on."""
        s, drawing, total = self.stage, drawn.drawing, torch.zeros((), device=self.device)
        if drawing.geometry is None:
            return total
        if s.normal_weight and drawn.number >= s.normal_from:
            total = total + s.normal_weight * normal_consistency(drawing.geometry, drawing.alpha, drawn.view.camera)
        if s.distortion_weight and drawn.number >= s.distortion_from:
            total = total + s.distortion_weight * distortion(drawing.geometry, drawing.alpha, NEAR, FAR)
        return total

    def after_step(self, index: int, view: TargetView, drawing: Drawing) -> None:
        """Densify and prune."""
        if index < self.stage.densification.last_step:
            self.density.observe(drawing.screen, view.camera, len(self.model))
            self.density.after_step(self.model, index + 1)

    def state(self) -> dict[str, Tensor]:
        """Of the surfels and their screen-space gradients."""
        return {**super().state(), **self.density.state()}

    def load(self, state: Mapping[str, Tensor]) -> None:
        """Of both."""
        super().load(state)
        self.density.load(state)


class OpacityStage(SurfelStage):
    """Stage 2: opacities only, with a penalty on their mean: surfels that no photograph needs fade."""

    result = STAGE2_PLY

    @property
    def dssim(self) -> float:
        """As set."""
        return self.settings.stage2.dssim

    def rates(self, index: int) -> dict[str, float]:
        """Of the opacities."""
        return {"logits": self.settings.stage2.rate}

    def extra_loss(self, drawn: _Drawn) -> Float[Tensor, ""]:
        """The mean opacity; the paper does not say what its weight multiplies."""
        return self.settings.stage2.penalty * drawn.surfels.opacities.mean()

    def finish(self, folder: Path) -> None:
        """Write the surfels that are left."""
        keep = self.model.opacities >= self.settings.stage2.prune_opacity
        save(self.model.gaussians(keep if keep.any() else None), folder / self.result)


class PixelOrderStage(SurfelStage):
    """Stage 3: everything, sorted in every pixel."""

    order: Order = "pixel"
    result = STAGE3_PLY

    @property
    def dssim(self) -> float:
        """As set."""
        return self.settings.stage3.dssim

    def rates(self, index: int) -> dict[str, float]:
        """Of everything."""
        return all_rates(self.settings.stage3.rates, index, self.settings.stage3.steps, self.extent)

    def finish(self, folder: Path) -> None:
        """Write the surfels that can be seen."""
        keep = self.model.opacities >= self.settings.stage3.least_opacity
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
