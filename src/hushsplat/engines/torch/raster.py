"""Differentiable surfel rasterizers: the renderers of the CPU engine, with gradients.

Order `center` sorts by the depth of the centres (`reference`, vanilla 2DGS), order `pixel` by the depth of the
fragments in every pixel (`exact`). Forward and backward run on the CPU engine; `raster_twin.py` is the same in plain
PyTorch. Gradients are the same bits for any number of threads.
"""

from __future__ import annotations

import warnings
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any, Literal, NamedTuple

import numpy as np
import torch
from jaxtyping import Bool, Float
from torch import Tensor

from hushsplat.engines.cpu import _engine
from hushsplat.engines.cpu.arrays import native_background, native_camera
from hushsplat.types.camera import Camera
from hushsplat.types.errors import RenderError, SceneError
from hushsplat.types.gaussians import Gaussians
from hushsplat.types.options import RenderOptions

Order = Literal["center", "pixel"]
GEOMETRY_CHANNELS = 6  # of Drawing.geometry: depth, 1 / depth, (1 / depth)², normal x y z
STOP = 1e-4  # transmittance below which a pixel takes no more fragments; as `reference`
REORDER_EVERY = 200  # drawings; ours: surfels that have moved lose their memory locality, which costs only time


class SurfelTensors(NamedTuple):
    """The parameters of surfels as they are drawn; see `Gaussians`."""

    means: Float[Tensor, "n 3"]
    scales: Float[Tensor, "n 2"]
    rotations: Float[Tensor, "n 4"]  # unit quaternions
    opacities: Float[Tensor, " n"]
    sh: Float[Tensor, "n k 3"]

    @staticmethod
    def from_gaussians(gaussians: Gaussians) -> SurfelTensors:
        """Copies, without gradients."""
        if not gaussians.is_surfels:
            raise RenderError("only surfels (two scales) can be drawn with gradients; flatten ellipsoids first.")
        names = SurfelTensors._fields
        return SurfelTensors(*(torch.from_numpy(np.array(getattr(gaussians, name))) for name in names))


class ScreenGradients:
    """Screen-space gradients of the centres, filled by the backward pass."""

    by_center: Float[Tensor, "n 2"] | None = None  # dL per px of the projected centre
    seen: Bool[Tensor, " n"] | None = None  # some fragment took part


@dataclass(frozen=True)
class Drawing:
    """A differentiable picture."""

    color: Float[Tensor, "h w 3"]
    alpha: Float[Tensor, "h w 1"]
    geometry: Float[Tensor, "h w 6"] | None  # Σ weight · value of GEOMETRY_CHANNELS, only if asked for
    screen: ScreenGradients = field(default_factory=ScreenGradients)  # filled by the backward pass


class Rasterizer:
    """Draws one set of surfels again and again while its values change; another number of them is another set."""

    def __init__(self, order: Order, options: RenderOptions | None = None, *, stop: float = STOP) -> None:
        self.order, self.options, self.stop = order, options or RenderOptions(), stop
        self._scene: _engine.TrainedScene | None = None
        self._drawn = 0  # since the scene was ordered
        self._holder: object = None  # whose values the scene has

    def draw(self, surfels: SurfelTensors, camera: Camera, *, geometry: bool = False) -> Drawing:
        """One picture; `geometry` adds depth and normals, for regularisers."""
        if surfels.means.is_cuda:
            warnings.warn("the rasterizers run on the CPU: surfels are copied from the GPU and back.", stacklevel=2)
        screen = ScreenGradients()
        color, alpha, extra = _Draw.apply(self, camera, geometry, screen, *surfels)
        return Drawing(color, alpha, extra if geometry else None, screen)

    def scene_to_draw(self, arrays: _engine.Surfels, count: int, holder: object) -> _engine.TrainedScene:
        """The engine's scene with these values."""
        if self._scene is None or self._scene.count != count or self._drawn >= REORDER_EVERY:
            self._scene, self._drawn = _new_scene(arrays, self.options.threads), 0
        else:
            self._scene.refresh(arrays, self.options.threads)
        self._holder = holder
        self._drawn += 1
        return self._scene

    def restore(self, scene: _engine.TrainedScene, arrays: _engine.Surfels, holder: object) -> None:
        """Give a scene that was drawn the values it was drawn with: a tape is of that very scene."""
        if scene is not self._scene or self._holder is not holder:
            scene.refresh(arrays, self.options.threads)
        if scene is self._scene:
            self._holder = holder
            self._drawn += 1


def _new_scene(arrays: _engine.Surfels, threads: int) -> _engine.TrainedScene:
    try:
        return _engine.TrainedScene(arrays, threads)
    except ValueError as error:
        raise SceneError(f"{error}; a surfel that is trained must stay finite, try lower rates.") from None


class _Draw(torch.autograd.Function):
    @staticmethod
    def forward(
        ctx: Any, raster: Rasterizer, camera: Camera, geometry: bool, screen: ScreenGradients, *surfels: Tensor
    ) -> tuple[Tensor, Tensor, Tensor]:
        hosts = tuple(_on_host(tensor) for tensor in surfels)
        shape = (camera.height, camera.width)
        color, alpha = torch.empty(*shape, 3), torch.empty(*shape, 1)
        extra = torch.empty(*shape, GEOMETRY_CHANNELS if geometry else 0)
        tape = _engine.FragmentTape() if raster.order == "pixel" else None
        holder = object()
        arrays = _engine.Surfels(*(host.numpy() for host in hosts))
        drawing = _engine.Drawing(color.numpy(), alpha.numpy(), extra.numpy() if geometry else None)
        scene = raster.scene_to_draw(arrays, len(hosts[0]), holder)
        scene.draw(
            native_camera(camera, raster.options.near),
            arrays,
            native_background(raster.options),
            raster.options.threads,
            drawing,
            tape,
            raster.stop,
        )
        ctx.save_for_backward(*hosts, color, alpha, extra)
        ctx.drawn = (raster, scene, camera, geometry, screen, tape, holder)
        device = surfels[0].device
        return color.to(device), alpha.to(device), extra.to(device)

    @staticmethod
    def backward(ctx: Any, *by_drawn: Tensor) -> tuple[Any, ...]:
        raster, scene, camera, geometry, screen, tape, holder = ctx.drawn
        *hosts, color, alpha, extra = ctx.saved_tensors
        device = by_drawn[0].device
        gradients = [torch.zeros_like(host) for host in hosts]
        count = len(hosts[0])
        by_center, seen = torch.zeros(count, 2), torch.zeros(count, dtype=torch.uint8)
        arrays = _engine.Surfels(*(host.numpy() for host in hosts))
        raster.restore(scene, arrays, holder)
        scene.gradient(
            native_camera(camera, raster.options.near),
            arrays,
            raster.options.threads,
            _drawn([color, alpha, extra], geometry),
            _drawn([_on_host(tensor) for tensor in by_drawn], geometry),
            tape,
            _engine.SurfelGradients(*(gradient.numpy() for gradient in gradients)),
            by_center.numpy(),
            seen.numpy(),
        )
        screen.by_center, screen.seen = by_center, seen.bool()
        return None, None, None, None, *(gradient.to(device) for gradient in gradients)


def _drawn(pictures: Sequence[Tensor], geometry: bool) -> _engine.Drawn:
    color, alpha, extra = pictures
    return _engine.Drawn(color.numpy(), alpha.numpy(), extra.numpy() if geometry else None)


def _on_host(tensor: Tensor) -> Tensor:
    return tensor.detach().to("cpu", torch.float32).contiguous()
