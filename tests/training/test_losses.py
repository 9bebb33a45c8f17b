"""The losses against plain PyTorch, and the regularisers on surfaces whose answer is known."""

from types import SimpleNamespace

import numpy as np
import pytest
import torch
from torch import Tensor
from torch.nn.functional import conv2d

from hushsplat.engines.torch import ops
from hushsplat.engines.torch.ops import ssim
from hushsplat.training.losses import depth_normals, distortion, normal_consistency, photometric_loss
from hushsplat.types.camera import Camera


def plain_ssim(first: Tensor, second: Tensor) -> Tensor:
    """As everybody writes it: an 11×11 window of a Gaussian of sigma 1.5, zeros around the pictures."""
    places = torch.arange(-5, 6, dtype=first.dtype)
    line = torch.exp(-(places**2) / (2 * 1.5**2))
    line = line / line.sum()
    window = torch.outer(line, line).expand(3, 1, 11, 11)
    x, y = (picture.permute(2, 0, 1)[None] for picture in (first, second))

    def blur(picture: Tensor) -> Tensor:
        return conv2d(picture, window, padding=5, groups=3)

    mean_x, mean_y = blur(x), blur(y)
    xx, yy, xy = blur(x * x) - mean_x**2, blur(y * y) - mean_y**2, blur(x * y) - mean_x * mean_y
    top = (2 * mean_x * mean_y + 0.01**2) * (2 * xy + 0.03**2)
    return (top / ((mean_x**2 + mean_y**2 + 0.01**2) * (xx + yy + 0.03**2))).mean()


def pictures(height: int = 19, width: int = 23) -> tuple[Tensor, Tensor]:
    rng = torch.Generator().manual_seed(0)
    target = torch.rand(height, width, 3, generator=rng)
    return (target + 0.3 * torch.rand(height, width, 3, generator=rng)).requires_grad_(), target


@pytest.mark.parametrize("size", [(19, 23), (3, 4), (1, 1), (40, 2)])
def test_ssim_and_its_gradient_are_the_plain_ones(size: tuple[int, int]) -> None:
    color, target = pictures(*size)
    exact = color.detach().double().requires_grad_()
    expected = plain_ssim(exact, target.double())
    expected.backward()
    got = ssim(color, target)
    (3 * got).backward()
    assert float(got) == pytest.approx(float(expected), abs=1e-5)
    np.testing.assert_allclose(color.grad, 3 * exact.grad, atol=1e-4 * float(exact.grad.abs().max()) + 1e-6)


def test_ssim_of_equals_is_one() -> None:
    _, target = pictures()
    assert float(ssim(target, target)) == pytest.approx(1, abs=1e-5)


def test_ssim_uses_the_threads_it_is_given(monkeypatch: pytest.MonkeyPatch) -> None:
    color, target = pictures()
    asked, native = [], ops._engine.ssim
    monkeypatch.setattr(ops, "_engine", SimpleNamespace(ssim=lambda *args: asked.append(args[2]) or native(*args)))
    ssim(color, target, threads=3)
    photometric_loss(color, target, 0.2, threads=5)
    assert asked == [3, 5]


def test_photometric_loss_is_the_mix() -> None:
    color, target = pictures()
    difference = float((color - target).abs().mean())
    assert float(photometric_loss(color, target, 0.0)) == pytest.approx(difference)
    mixed = 0.8 * difference + 0.2 * (1 - float(plain_ssim(color, target)))
    assert float(photometric_loss(color, target, 0.2)) == pytest.approx(mixed, abs=1e-5)


def test_distortion_is_the_sum_over_pairs() -> None:
    weights, depths = torch.tensor([0.3, 0.5, 0.1]), torch.tensor([1.0, 2.0, 4.0])
    near, far = 0.2, 100.0
    places = far / (far - near) * (1 - near / depths)
    pairs = [(i, j) for i in range(3) for j in range(i)]
    expected = sum(weights[i] * weights[j] * (places[i] - places[j]) ** 2 for i, j in pairs)
    geometry = torch.zeros(1, 1, 6)
    geometry[0, 0, 1], geometry[0, 0, 2] = (weights / depths).sum(), (weights / depths**2).sum()
    assert float(distortion(geometry, weights.sum().reshape(1, 1, 1), near, far)) == pytest.approx(
        float(expected), rel=1e-4
    )


def slanted_plane(camera: Camera) -> tuple[Tensor, Tensor]:
    """Depth of the plane through (0, 0, 3) with a known normal (world, towards the camera)."""
    normal = torch.tensor([0.3, -0.2, -1.0], dtype=torch.float64)
    normal = normal / normal.norm()
    pose = torch.tensor(camera.camera_from_world)
    inside = pose[:3, :3] @ normal
    point = pose[:3, :3] @ torch.tensor([0.0, 0.0, 3.0], dtype=torch.float64) + pose[:3, 3]
    y = (torch.arange(camera.height) + 0.5 - camera.cy) / camera.fy
    x = (torch.arange(camera.width) + 0.5 - camera.cx) / camera.fx
    rays = torch.stack(
        [x.expand(len(y), -1), y[:, None].expand(-1, len(x)), torch.ones(len(y), len(x))], dim=-1
    ).double()
    return (inside @ point) / (rays @ inside), normal


def test_normals_of_a_plane() -> None:
    camera = Camera.look_at((0.5, -0.3, 0.1), (0.0, 0.1, 3.0), width=15, height=11)
    depth, normal = slanted_plane(camera)
    normals = depth_normals(depth, camera)
    np.testing.assert_allclose(normals[1:-1, 1:-1], normal.expand(9, 13, 3), atol=1e-6)
    assert not normals[0].any() and not normals[:, -1].any()


def test_normals_that_agree_cost_nothing() -> None:
    camera = Camera.look_at((0.5, -0.3, 0.1), (0.0, 0.1, 3.0), width=15, height=11)
    depth, normal = slanted_plane(camera)
    alpha = torch.full((11, 15, 1), 0.8, dtype=torch.float64)
    geometry = torch.cat([alpha * depth[..., None], torch.zeros(11, 15, 2), alpha * normal.expand(11, 15, 3)], dim=-1)
    assert float(normal_consistency(geometry, alpha, camera)) == pytest.approx(0, abs=1e-6)
    turned = torch.cat([geometry[..., :3], -geometry[..., 3:]], dim=-1)
    assert float(normal_consistency(turned, alpha, camera)) == pytest.approx(2 * 0.8**2, rel=1e-5)
