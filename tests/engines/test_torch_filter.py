"""Pass 3: the kernel's shape, the pyramid, the probes."""

import math

import numpy as np
import pytest
import torch

from hushsplat.engines.torch.filter import (
    Ellipse,
    binomial_blur,
    build_pyramid,
    ellipse_of,
    filter_color,
    learned_ellipse,
    zero_shot_ellipse,
)
from hushsplat.spec.settings import DenoiserSettings

LEAN = DenoiserSettings().filter_lean


def ellipse(scale_x, scale_y, correlation, lean=LEAN):
    shape = (torch.tensor([[float(v)]], dtype=torch.float64) for v in (scale_x, scale_y, correlation))
    made = ellipse_of(*shape, lean)
    return made.major_px.item(), made.minor_px.item(), made.cosine.item(), made.sine.item()


@pytest.mark.parametrize(
    "shape",
    [(3.0, 1.0, 0.0), (1.0, 3.0, 0.0), (2.0, 2.0, 0.7), (2.0, 2.0, -0.7), (1.0, 4.0, 0.9), (0.1, 0.6, -0.5)],
)
def test_axes_are_the_eigenvectors(shape):
    scale_x, scale_y, correlation = shape
    covariance = correlation * math.sqrt(scale_x * scale_y)
    values, vectors = np.linalg.eigh([[scale_x, covariance], [covariance, scale_y]])
    major, minor, cosine, sine = ellipse(*shape)
    assert (minor, major) == pytest.approx(tuple(values), abs=2e-6)
    assert math.hypot(cosine, sine) == pytest.approx(1)
    # The lean towards x turns the axis by at most asin(mean / 32 / radius) / 2.
    mean, radius = (scale_x + scale_y) / 2, (values[1] - values[0]) / 2
    turned = math.acos(min(1.0, abs(np.dot(vectors[:, 1], [cosine, sine]))))
    assert turned <= math.asin(mean / 32 / radius) / 2 + 1e-6
    major, minor, cosine, sine = ellipse(*shape, lean=0.0)  # the paper's
    assert abs(np.dot(vectors[:, 1], [cosine, sine])) == pytest.approx(1, abs=1e-9)


def test_upright_kernels_stand_upright_and_isotropic_ones_lie_along_x():
    assert ellipse(1, 3, 0) == pytest.approx((3, 1, 0, 1), abs=2e-6)
    assert ellipse(3, 1, 0) == pytest.approx((3, 1, 1, 0), abs=2e-6)
    assert ellipse(2, 2, 0) == pytest.approx((2, 2, 1, 0), abs=2e-6)
    assert ellipse(2, 2, 0, lean=0.0) == pytest.approx((2, 2, 1, 0), abs=2e-6)


def test_the_direction_is_continuous_around_the_isotropic_kernel():
    """Lines, not arrows: only the sign of both may jump. A jump would be a seam in the picture and in training."""
    angle = torch.linspace(0, 2 * math.pi, 20001, dtype=torch.float64)
    for radius in (0.2, 0.05):  # around 2, the singular point at 2 / 32 being inside of the first circle only
        scale_x, scale_y = 2 + radius * angle.cos(), 2 - radius * angle.cos()
        made = ellipse_of(scale_x[None], scale_y[None], (radius * angle.sin() / (scale_x * scale_y).sqrt())[None], LEAN)
        line = torch.stack([made.cosine**2 - made.sine**2, 2 * made.cosine * made.sine])  # of the doubled angle
        assert line.diff(dim=-1).abs().max() < 0.01


@pytest.mark.parametrize(
    "view", [(0.0, 0.0, 0.0, -50.0), (1e4, 1e4, 1e4, 1e4), (-1e4, 1e4, -1e4, -1e4), (0, 1e4, 9, -9)]
)
def test_no_payload_breaks_the_kernel(view):
    for dtype in (torch.float32, torch.float64):
        made = learned_ellipse(torch.tensor(view, dtype=dtype).expand(3, 3, 4), LEAN)
        assert (made.minor_px >= 1e-4).all()
        assert (made.major_px >= made.minor_px).all()
        torch.testing.assert_close(made.cosine**2 + made.sine**2, torch.ones(3, 3, dtype=dtype))
        color = torch.rand(3, 3, 3, dtype=dtype)
        filtered = filter_color(color, made)
        assert (filtered >= color.amin() - 1e-6).all() and (filtered <= color.amax() + 1e-6).all()


def test_the_payload_sets_the_axes():
    view = torch.tensor([1.5, 0.5, 0.3, -1.0], dtype=torch.float64)
    made = learned_ellipse(view.expand(4, 5, 4), LEAN)
    floor = math.log1p(math.exp(-1))
    expected = ellipse(0.5 + floor, 1.5 + floor, math.tanh(0.3))
    assert tuple(made.stacked()[2, 3].tolist()) == pytest.approx(expected)
    below = learned_ellipse(torch.tensor([-2.0, -3.0, 0.0, 1.0], dtype=torch.float64).expand(4, 5, 4), LEAN)
    assert below.minor_px[0, 0].item() == pytest.approx(math.log1p(math.e), abs=2e-6)


def test_blur_by_hand():
    picture = torch.zeros(5, 5, 1, dtype=torch.float64)
    picture[2, 2] = 16
    expected = torch.zeros(5, 5, dtype=torch.float64)
    expected[1:4, 1:4] = torch.tensor([[1, 2, 1], [2, 4, 2], [1, 2, 1]])
    torch.testing.assert_close(binomial_blur(picture)[..., 0], expected)
    corner = torch.zeros(3, 3, 1, dtype=torch.float64)
    corner[0, 0] = 16
    torch.testing.assert_close(binomial_blur(corner)[0, 0, 0].item(), 9.0)  # (2 + 1)²: the edge is repeated


@pytest.mark.parametrize("height, width", [(1, 1), (1, 7), (2, 2), (5, 3), (8, 16), (9, 17), (266, 400)])
def test_pyramid_sizes_and_means(height, width):
    color = torch.rand(height, width, 3, dtype=torch.float64)
    pyramid = build_pyramid(color)
    level = color.numpy()
    for k in range(4):
        assert (pyramid.heights[k], pyramid.widths[k]) == level.shape[:2]
        start, count = int(pyramid.starts[k]), level.shape[0] * level.shape[1]
        np.testing.assert_allclose(pyramid.texels[start : start + count], level.reshape(-1, 3))
        even = np.pad(level, ((0, level.shape[0] % 2), (0, level.shape[1] % 2), (0, 0)), mode="edge")
        level = (even[::2, ::2] + even[1::2, ::2] + even[::2, 1::2] + even[1::2, 1::2]) / 4
    assert len(pyramid.texels) == start + count


@pytest.mark.parametrize("height, width", [(1, 1), (3, 2), (11, 13)])
def test_a_constant_picture_is_unchanged(height, width):
    torch.manual_seed(0)
    color = torch.tensor([0.3, -0.2, 0.7]).expand(height, width, 3)
    made = learned_ellipse(torch.randn(height, width, 4) * 4, LEAN)
    torch.testing.assert_close(filter_color(color, made), color)


def test_zero_shot_kernel_by_hand_on_an_impulse():
    height, width = 12, 16
    color = torch.zeros(height, width, 1, dtype=torch.float64)
    color[5, 7] = 1  # level 1: texel (row 2, column 3) is 1/4
    response = filter_color(color, zero_shot_ellipse(color[..., 0]))[..., 0]
    outer, inner = math.exp(-0.5 * 1.5**2), math.exp(-0.5 * 0.5**2)
    a, b = outer / (2 * (outer + inner)), inner / (2 * (outer + inner))
    # Probes at -3, -1, 1, 3 px are at -1.75, -0.75, 0.25, 1.25 texels of an even column's own; an odd one mirrors.
    even = {-2: 0.75 * a, -1: 0.25 * a + 0.75 * b, 0: b, 1: 0.25 * b + 0.75 * a, 2: 0.25 * a}
    expected = torch.zeros(height, width, dtype=torch.float64)
    for row in range(height):
        own_row = 2 - row // 2
        vertical = {0: 0.75, -1: 0.25}.get(own_row if row % 2 == 0 else -own_row, 0)
        for column in range(width):
            own_column = 3 - column // 2
            horizontal = even.get(own_column if column % 2 == 0 else -own_column, 0)
            expected[row, column] = vertical * horizontal / 4
    torch.testing.assert_close(response, expected, atol=1e-7, rtol=0)
    assert response.sum().item() == pytest.approx(1, abs=1e-6)


def filtered_by_hand(color, x, y, scale_x, scale_y, correlation):
    """One pixel by the definition, in plain Python, with an angle."""
    z = correlation * math.sqrt(scale_x * scale_y + 1e-8)
    mean, half = (scale_x + scale_y) / 2, (scale_x - scale_y) / 2
    radius = math.sqrt(half**2 + z**2 + 1e-12) - 1e-6
    minor = max(mean - radius, 1e-4)
    major = max(mean + radius, minor)
    angle = math.atan2(z, half + mean / 32) / 2
    level = min(max(math.log2(minor), 0), 3)
    levels = [color]
    for _ in range(3):
        fine = levels[-1]
        height, width = -(-fine.shape[0] // 2), -(-fine.shape[1] // 2)
        last_row, last_column = fine.shape[0] - 1, fine.shape[1] - 1
        coarse = np.empty((height, width, 3))
        for j in range(height):
            for i in range(width):
                rows, columns = (2 * j, min(2 * j + 1, last_row)), (2 * i, min(2 * i + 1, last_column))
                coarse[j, i] = sum(fine[r, c] for r in rows for c in columns) / 4
        levels.append(coarse)

    def bilinear(index, px, py):
        picture = levels[index]
        u, v = px / 2**index - 0.5, py / 2**index - 0.5
        i, j = math.floor(u), math.floor(v)
        total = 0
        for row, weight_y in ((j, 1 - (v - j)), (j + 1, v - j)):
            for column, weight_x in ((i, 1 - (u - i)), (i + 1, u - i)):
                inside = (min(max(row, 0), picture.shape[0] - 1), min(max(column, 0), picture.shape[1] - 1))
                total = total + weight_x * weight_y * picture[inside]
        return total

    total, weights = 0, 0
    for o in (-1.5, -0.5, 0.5, 1.5):
        px, py = x + 0.5 + o * minor * math.cos(angle), y + 0.5 + o * minor * math.sin(angle)
        low = min(int(level), 2)
        value = bilinear(low, px, py) * (1 - (level - low)) + bilinear(low + 1, px, py) * (level - low)
        weight = math.exp(-0.5 * (o * minor / major) ** 2)
        total, weights = total + weight * value, weights + weight
    return total / weights


def test_the_filter_is_its_definition():
    rng = np.random.default_rng(3)
    height, width = 13, 18
    color = rng.random((height, width, 3))
    scale_x, scale_y = rng.uniform(0.05, 14, (2, height, width))
    correlation = rng.uniform(-0.99, 0.99, (height, width))
    made = ellipse_of(*(torch.tensor(v) for v in (scale_x, scale_y, correlation)), LEAN)
    filtered = filter_color(torch.tensor(color), made).numpy()
    for y in range(height):
        for x in range(0, width, 3):
            expected = filtered_by_hand(color, x, y, scale_x[y, x], scale_y[y, x], correlation[y, x])
            np.testing.assert_allclose(filtered[y, x], expected, atol=1e-9)


def test_float32_positions_do_not_lose_digits_on_the_right_of_a_wide_picture():
    torch.manual_seed(0)
    color = torch.rand(3, 3000, 3, dtype=torch.float64)
    made = learned_ellipse(torch.rand(3, 3000, 4, dtype=torch.float64) * 2, LEAN)
    rounded = Ellipse(*(value.float() for value in vars(made).values()))
    difference = filter_color(color.float(), rounded) - filter_color(color, made)
    assert difference.abs().max() < 1e-6  # 7e-6 if places were kept as one number
