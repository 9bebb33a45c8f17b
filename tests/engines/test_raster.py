"""Drawing with gradients: the same picture as the renderers, the same gradients as the twin in plain PyTorch."""

import gc

import numpy as np
import pytest
import torch
from jaxtyping import Float
from torch import Tensor

from hushsplat.api import render
from hushsplat.engines.cpu import _engine
from hushsplat.engines.torch import ops
from hushsplat.engines.torch.ops import Adam, check_device, ssim
from hushsplat.engines.torch.raster import CALLS, Drawing, Rasterizer, SurfelTensors
from hushsplat.engines.torch.raster_twin import Region, TwinOptions, draw_twin
from hushsplat.types.camera import Camera
from hushsplat.types.errors import RenderError, TrainingError
from hushsplat.types.gaussians import Gaussians
from hushsplat.types.options import RenderOptions

BACKGROUND = (0.2, 0.5, 0.7)
ORDERS = ("center", "pixel")


def cloud(count: int = 60, seed: int = 0, degree: int = 3) -> SurfelTensors:
    """Surfels of any size and direction about the origin, some of them behind the camera; float64."""
    rng = np.random.default_rng(seed)
    rotations = rng.normal(size=(count, 4))
    arrays = (
        rng.normal(0, 0.7, (count, 3)),
        rng.uniform(0.004, 0.4, (count, 2)),
        rotations / np.linalg.norm(rotations, axis=1, keepdims=True),
        rng.uniform(0.05, 0.97, count),
        rng.normal(0, 0.3, (count, (degree + 1) ** 2, 3)),
    )
    return SurfelTensors(*(torch.tensor(array) for array in arrays))


def camera(width: int = 41, height: int = 29, **changes: float) -> Camera:
    seen = Camera.look_at((0.3, -0.4, -2.2), (0, 0, 0), width=width, height=height)
    return Camera(**{**seen.__dict__, **changes})


def leaves(surfels: SurfelTensors, dtype: torch.dtype) -> SurfelTensors:
    return SurfelTensors(*(tensor.to(dtype).clone().requires_grad_() for tensor in surfels))


def unit(surfels: SurfelTensors) -> SurfelTensors:
    """Quaternions at length 1: gradients along their length mean nothing and differ."""
    return surfels._replace(rotations=torch.nn.functional.normalize(surfels.rotations, dim=1))


def loss_of(color: Tensor, alpha: Tensor, geometry: Tensor | None) -> Float[Tensor, ""]:
    """Some number that depends on every value of the picture."""
    total = torch.zeros(()).to(color)
    for index, picture in enumerate((color, alpha, geometry)):
        if picture is not None:
            rng = torch.Generator().manual_seed(index)
            total = total + (picture * (torch.rand(picture.shape, generator=rng).to(picture) - 0.3)).sum()
    return total


def loss_of_drawing(drawing: Drawing) -> Float[Tensor, ""]:
    return loss_of(drawing.color, drawing.alpha, drawing.geometry)


def as_gaussians(surfels: SurfelTensors) -> Gaussians:
    return Gaussians(*(tensor.detach().float().numpy() for tensor in surfels))


@pytest.mark.parametrize("geometry", [False, True])
def test_center_order_is_the_reference(geometry: bool) -> None:
    surfels, options = leaves(cloud(200), torch.float32), RenderOptions(BACKGROUND)
    drawn = Rasterizer("center", options).draw(surfels, camera(200, 150), geometry=geometry)
    reference = render(as_gaussians(surfels), camera(200, 150), "reference", options=options)
    np.testing.assert_array_equal(drawn.color.detach().numpy(), reference.color)
    np.testing.assert_array_equal(drawn.alpha.detach().numpy()[..., 0], reference.alpha)


@pytest.mark.parametrize("geometry", [False, True])
def test_pixel_order_is_exact(geometry: bool) -> None:
    surfels, options = leaves(cloud(200), torch.float32), RenderOptions(BACKGROUND)
    exact = render(as_gaussians(surfels), camera(200, 150), "exact", options=options)
    drawn = Rasterizer("pixel", options, stop=1e-8).draw(surfels, camera(200, 150), geometry=geometry)
    np.testing.assert_array_equal(drawn.color.detach().numpy(), exact.color)
    stopped = Rasterizer("pixel", options).draw(surfels, camera(200, 150))
    np.testing.assert_allclose(stopped.color.detach().numpy(), exact.color, atol=2e-4)  # light behind STOP, colours ~1


@pytest.mark.parametrize("order", ORDERS)
@pytest.mark.parametrize("geometry", [False, True])
def test_pictures_and_gradients_are_the_twins(order: str, geometry: bool) -> None:
    surfels = cloud()
    slow, fast = leaves(surfels, torch.float64), leaves(surfels, torch.float32)
    color, alpha, extra = draw_twin(unit(slow), camera(), TwinOptions(order, BACKGROUND))
    loss_of(color, alpha, extra if geometry else None).backward()
    drawn = Rasterizer(order, RenderOptions(BACKGROUND)).draw(unit(fast), camera(), geometry=geometry)
    loss_of_drawing(drawn).backward()
    np.testing.assert_allclose(drawn.color.detach(), color.detach(), atol=2e-5)
    np.testing.assert_allclose(drawn.alpha.detach(), alpha.detach(), atol=2e-5)
    if geometry:
        np.testing.assert_allclose(drawn.geometry.detach(), extra.detach(), atol=1e-4)
    for name, expected, got in zip(surfels._fields, slow, fast, strict=True):
        scale = expected.grad.abs().max()  # float32 in, so that sums of large opposite numbers lose digits
        assert (got.grad - expected.grad).abs().max() < 2e-3 * scale, name


@pytest.mark.parametrize("order", ORDERS)
@pytest.mark.parametrize("degree", [0, 1, 2])
def test_fewer_harmonics(order: str, degree: int) -> None:
    surfels = cloud(20, degree=degree)
    slow, fast = leaves(surfels, torch.float64), leaves(surfels, torch.float32)
    loss_of(*draw_twin(slow, camera(), TwinOptions(order))[:2], None).backward()
    loss_of_drawing(Rasterizer(order).draw(fast, camera())).backward()
    for name in ("means", "sh"):
        expected, got = getattr(slow, name).grad, getattr(fast, name).grad
        assert (got - expected).abs().max() < 2e-3 * expected.abs().max(), name


@pytest.mark.parametrize("order", ORDERS)
def test_the_twin_by_finite_differences(order: str) -> None:
    """In float64 and without cut-offs, which are steps."""
    surfels = cloud(4, seed=1, degree=1)
    options = TwinOptions(order, BACKGROUND, sharp=False)

    def draw(*tensors: Tensor) -> Tensor:
        return torch.cat([part.flatten() for part in draw_twin(unit(SurfelTensors(*tensors)), camera(7, 5), options)])

    assert torch.autograd.gradcheck(draw, tuple(leaves(surfels, torch.float64)), atol=1e-5)


@pytest.mark.parametrize("order", ORDERS)
def test_centres_move_with_the_principal_point(order: str) -> None:
    """Moving every footprint by a pixel is moving the principal point; the twin's difference says what that does."""
    surfels = cloud(40)
    drawn = Rasterizer(order).draw(leaves(surfels, torch.float32), camera())
    drawn.color.square().sum().backward()
    step = 1e-4
    for axis, name in enumerate(("cx", "cy")):
        there, back = (
            draw_twin(surfels, camera(**{name: getattr(camera(), name) + s}), TwinOptions(order, sharp=False))[0]
            .square()
            .sum()
            for s in (step, -step)
        )
        expected = float(there - back) / (2 * step)
        assert float(drawn.screen.by_center[:, axis].sum()) == pytest.approx(expected, rel=0.03, abs=0.5)


@pytest.mark.parametrize("order", ORDERS)
def test_threads_and_memory_order_change_no_bit(order: str) -> None:
    surfels = cloud(3000, seed=2, degree=1)
    surfels = surfels._replace(scales=surfels.scales / 8)
    found = []
    for threads in (1, 3):
        raster = Rasterizer(order, RenderOptions(threads=threads))
        if threads == 3:  # ordered for other places, then refreshed
            raster.draw(surfels._replace(means=surfels.means.flip(0).contiguous()), camera())
        tensors = leaves(surfels, torch.float32)
        loss_of_drawing(raster.draw(tensors, camera(150, 140))).backward()
        found.append(tensors)
    for name, first, second in zip(surfels._fields, *found, strict=True):
        assert torch.equal(first.grad, second.grad), name


@pytest.mark.parametrize("order", ORDERS)
def test_two_pictures_before_one_backward(order: str) -> None:
    surfels, raster = cloud(30), Rasterizer(order)
    one, other = leaves(surfels, torch.float32), leaves(surfels._replace(means=surfels.means + 0.3), torch.float32)
    together = loss_of_drawing(raster.draw(one, camera())) + loss_of_drawing(raster.draw(other, camera(33, 37)))
    together.backward()
    alone = leaves(surfels, torch.float32)
    loss_of_drawing(Rasterizer(order).draw(alone, camera())).backward()
    for name, got, expected in zip(surfels._fields, one, alone, strict=True):
        assert torch.equal(got.grad, expected.grad), name


@pytest.mark.parametrize("order", ORDERS)
@pytest.mark.parametrize("geometry", [False, True])
def test_every_instruction_set_gives_the_same_gradients(order: str, geometry: bool) -> None:
    surfels, chosen = cloud(300, seed=3, degree=2), _engine.instruction_set()
    found = []
    try:
        for name in _engine.instruction_sets():
            _engine.choose_instruction_set(name)
            tensors = leaves(surfels, torch.float32)
            loss_of_drawing(Rasterizer(order).draw(tensors, camera(), geometry=geometry)).backward()
            found.append(tensors)
    finally:
        _engine.choose_instruction_set(chosen)
    for name, first, last in zip(surfels._fields, found[0], found[-1], strict=True):
        assert (first.grad - last.grad).abs().max() <= 2e-3 * first.grad.abs().max(), name


def test_seen_says_who_took_part() -> None:
    surfels = cloud(3)
    places = torch.tensor([[0.1, 0.0, 0.0], [0.0, 0.0, -5.0], [-0.1, 0.1, 0.2]])  # the second is behind the camera
    tensors = leaves(surfels._replace(means=places), torch.float32)
    drawn = Rasterizer("center").draw(tensors, camera())
    drawn.color.sum().backward()
    assert not drawn.screen.seen[1] and drawn.screen.seen[[0, 2]].all()
    assert all(not tensor.grad[1].any() for tensor in tensors)


def test_a_region_of_the_twin_is_a_part_of_its_picture() -> None:
    surfels = cloud(80)._replace(scales=cloud(80).scales / 5)
    whole = draw_twin(surfels, camera(), TwinOptions())[0]
    part = draw_twin(surfels, camera(), TwinOptions(), Region(8, 4, 20, 16))[0]
    torch.testing.assert_close(part, whole[4:16, 8:20])


def test_errors() -> None:
    surfels = as_gaussians(cloud(3))
    ellipsoids = Gaussians(surfels.means, np.ones((3, 3), np.float32), surfels.rotations, surfels.opacities, surfels.sh)
    with pytest.raises(RenderError, match=r"only surfels \(two scales\) can be drawn with gradients"):
        SurfelTensors.from_gaussians(ellipsoids)


def test_a_tensor_on_a_device_without_kernels_is_refused_and_not_copied() -> None:
    surfels = cloud(3)
    elsewhere = SurfelTensors(*(tensor.to("meta") for tensor in surfels))
    picture = torch.zeros(16, 16, 3, device="meta")
    values = torch.zeros(3, 2, device="meta")
    with pytest.raises(TrainingError, match="device 'meta': training runs on cpu; choose one of them"):
        Rasterizer("center").draw(elsewhere, camera())
    with pytest.raises(TrainingError, match="device 'meta': training runs on cpu"):
        ssim(picture, picture)
    with pytest.raises(TrainingError, match="device 'meta': training runs on cpu"):
        Adam().step(values, values, (values, values), 0.1, [1.0, 1.0], 1)
    with pytest.raises(TrainingError, match="the rasterizer: tensors lie on cpu and meta; move them to one device"):
        Rasterizer("center").draw(surfels._replace(sh=elsewhere.sh), camera())
    with pytest.raises(TrainingError, match="device 'toaster': training runs on cpu"):
        check_device("toaster")


def test_ops_are_chosen_by_the_device_of_their_tensors(monkeypatch: pytest.MonkeyPatch) -> None:
    """A kernel for another device needs no change above the op; `meta` stands for that device."""
    picture = torch.zeros(16, 16, 3)
    asked: list[torch.device] = []

    def elsewhere(color: torch.Tensor, target: torch.Tensor, threads: int) -> tuple[torch.Tensor, torch.Tensor]:
        asked.append(color.device)
        return color.new_empty(()), torch.empty_like(color)

    monkeypatch.setattr(ops, "DEVICES", {"cpu", "meta"})
    with torch.library._scoped_library("hushsplat", "FRAGMENT") as library:
        library.impl("ssim", elsewhere, "Meta")
        found = ssim(picture.to("meta"), picture.to("meta"))
        assert found.device.type == "meta" and asked == [torch.device("meta")]
    assert ssim(picture, picture).device.type == "cpu"


def test_a_drawing_is_forgotten_with_its_graph() -> None:
    surfels = cloud(3)
    before = len(CALLS)
    Rasterizer("pixel").draw(surfels, camera())
    assert len(CALLS) == before  # no gradient can be asked for
    drawing = Rasterizer("pixel").draw(leaves(surfels, torch.float32), camera())
    assert len(CALLS) == before + 1
    drawing.color.sum().backward()
    del drawing
    gc.collect()
    assert len(CALLS) == before
