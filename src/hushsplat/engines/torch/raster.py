"""Differentiable surfel rasterizers: the renderers of the CPU engine, with gradients.

Order `center` sorts by the depth of the centres (`reference`, vanilla 2DGS), order `pixel` by the depth of the
fragments in every pixel (`exact`). Forward and backward are custom ops with kernels by device (see ops.py); those here
are the CPU engine's, and `raster_twin.py` is the same in plain PyTorch. Gradients are the same bits for any number of
threads.
"""

from __future__ import annotations

import itertools
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any, Literal, NamedTuple

import numpy as np
import torch
from jaxtyping import Bool, Float
from torch import Tensor

from hushsplat.engines.cpu import _engine
from hushsplat.engines.cpu.arrays import native_background, native_camera
from hushsplat.engines.torch.ops import check_tensors
from hushsplat.types.camera import Camera
from hushsplat.types.errors import RenderError, SceneError, TrainingError
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
        check_tensors("the rasterizer", surfels)
        call = Call(self, camera, geometry)
        number = next(_NUMBERS)
        CALLS[number] = call
        try:
            color, alpha, extra = torch.ops.hushsplat.draw(*(tensor.float() for tensor in surfels), number)
        except BaseException:
            CALLS.pop(number, None)
            raise
        if not color.requires_grad:  # nobody will ask for gradients
            del CALLS[number]
        return Drawing(color, alpha, extra if geometry else None, call.screen)

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


@dataclass
class Call:
    """What a kernel needs besides tensors, from a drawing to its gradient."""

    raster: Rasterizer
    camera: Camera
    geometry: bool
    screen: ScreenGradients = field(default_factory=ScreenGradients)
    scene: _engine.TrainedScene | None = None
    tape: _engine.FragmentTape | None = None  # of order `pixel`


CALLS: dict[int, Call] = {}  # those whose gradient may still be asked for, by the number that ops are given
_NUMBERS = itertools.count()


SURFELS = "Tensor means, Tensor scales, Tensor rotations, Tensor opacities, Tensor sh"
DRAW = f"({SURFELS}, int number) -> (Tensor, Tensor, Tensor)"
GRADIENT = "(Tensor[] surfels, Tensor[] drawn, Tensor[] by_drawn, int number) -> Tensor[]"


@torch.library.custom_op("hushsplat::draw", mutates_args=(), device_types="cpu", schema=DRAW)
def _draw(
    means: Tensor, scales: Tensor, rotations: Tensor, opacities: Tensor, sh: Tensor, number: int
) -> tuple[Tensor, Tensor, Tensor]:
    """Colour, alpha and geometry (without channels if it is not asked for)."""
    call = CALLS[number]
    raster, camera = call.raster, call.camera
    shape = (camera.height, camera.width)
    color, alpha = torch.empty(*shape, 3), torch.empty(*shape, 1)
    extra = torch.empty(*shape, GEOMETRY_CHANNELS if call.geometry else 0)
    call.tape = _engine.FragmentTape() if raster.order == "pixel" else None
    arrays = _arrays((means, scales, rotations, opacities, sh))
    call.scene = raster.scene_to_draw(arrays, len(means), call)
    call.scene.draw(
        native_camera(camera, raster.options.near),
        arrays,
        native_background(raster.options),
        raster.options.threads,
        _engine.Drawing(color.numpy(), alpha.numpy(), extra.numpy() if call.geometry else None),
        call.tape,
        raster.stop,
    )
    return color, alpha, extra


@torch.library.custom_op("hushsplat::draw_gradient", mutates_args=(), device_types="cpu", schema=GRADIENT)
def _draw_gradient(
    surfels: Sequence[Tensor], drawn: Sequence[Tensor], by_drawn: Sequence[Tensor], number: int
) -> list[Tensor]:
    """Gradients of the five parameters, dL per px of the projected centres, and whether any fragment took part."""
    call = CALLS[number]
    raster, scene = call.raster, call.scene
    if scene is None:
        raise TrainingError("a gradient was asked of a picture that was not drawn; this is a bug of hushsplat.")
    gradients = [torch.zeros_like(tensor) for tensor in surfels]
    count = len(surfels[0])
    by_center, seen = torch.zeros(count, 2), torch.zeros(count, dtype=torch.uint8)
    arrays = _arrays(surfels)
    raster.restore(scene, arrays, call)
    scene.gradient(
        native_camera(call.camera, raster.options.near),
        arrays,
        raster.options.threads,
        _drawn(drawn, call.geometry),
        _drawn(by_drawn, call.geometry),
        call.tape,
        _engine.SurfelGradients(*(gradient.numpy() for gradient in gradients)),
        by_center.numpy(),
        seen.numpy(),
    )
    return [*gradients, by_center, seen]


def _keep(ctx: Any, inputs: tuple[Any, ...], output: tuple[Tensor, Tensor, Tensor]) -> None:
    *surfels, ctx.number = inputs
    ctx.save_for_backward(*surfels, *output)
    ctx.call = _Kept(ctx.number)


def _backward(ctx: Any, *by_drawn: Tensor) -> tuple[Any, ...]:
    saved = [tensor.detach() for tensor in ctx.saved_tensors]
    surfels, drawn = saved[:-3], saved[-3:]
    found = torch.ops.hushsplat.draw_gradient(surfels, drawn, list(by_drawn), ctx.number)
    *gradients, by_center, seen = found
    screen = CALLS[ctx.number].screen
    screen.by_center, screen.seen = by_center, seen.bool()
    return *gradients, None


_draw.register_autograd(_backward, setup_context=_keep)


class _Kept:
    """Keeps a call as long as its graph lives."""

    def __init__(self, number: int) -> None:
        self._number = number

    def __del__(self) -> None:
        CALLS.pop(self._number, None)


def _arrays(surfels: Sequence[Tensor]) -> _engine.Surfels:
    return _engine.Surfels(*(tensor.detach().contiguous().numpy() for tensor in surfels))


def _drawn(pictures: Sequence[Tensor], geometry: bool) -> _engine.Drawn:
    color, alpha, extra = (picture.detach().contiguous().numpy() for picture in pictures)
    return _engine.Drawn(color, alpha, extra if geometry else None)
