"""Passes 4 to 6 by hand: running means, gate, stabilisation."""

import math
from dataclasses import replace

import numpy as np
import pytest
import torch
from made_frames import camera_at, random_state

from hushsplat.engines.torch.accumulate import accumulate
from hushsplat.engines.torch.gate import Gate, luma_variance, pooled, standard_error
from hushsplat.engines.torch.reproject import reproject
from hushsplat.engines.torch.smooth import smoothed
from hushsplat.engines.torch.stabilise import neighbourhood_range, stabilise
from hushsplat.engines.torch.tensors import History
from hushsplat.engines.torch.trust import least_frames, used_trust
from hushsplat.spec.settings import PAPER, DenoiserSettings

CONFIG = DenoiserSettings()


def picture(*values, width=1):
    return torch.tensor(values, dtype=torch.float64).reshape(-1, width)


def test_trust_one_is_a_running_mean():
    samples = torch.rand(40, 2, 3, 1, dtype=torch.float64)
    mean, frames = torch.zeros(2, 3, 1, dtype=torch.float64), torch.zeros(2, 3, dtype=torch.float64)
    for sample in samples:
        mean, frames = accumulate(mean, frames, torch.ones_like(frames), sample, 128.0)
    torch.testing.assert_close(mean, samples.mean(0))
    assert (frames == 40).all()


def test_trust_zero_restarts():
    mean, frames = accumulate(picture(1e6)[..., None], picture(77), picture(0), picture(0.123)[..., None], 128.0)
    assert mean.item() == 0.123
    assert frames.item() == 1


def test_fractional_trust_discounts_the_history():
    mean, frames = accumulate(picture(2)[..., None], picture(10), picture(0.3), picture(6)[..., None], 128.0)
    assert frames.item() == pytest.approx(4)
    assert mean.item() == pytest.approx((2 * 3 + 6) / 4)


def test_history_length_is_capped():
    _, frames = accumulate(picture(0)[..., None], picture(24), picture(1), picture(0)[..., None], 24.0)
    assert frames.item() == 24


def test_a_constant_stays_exactly_constant():
    value = torch.rand(5, 5, 3)
    mean, frames = value.clone(), torch.ones(5, 5)
    for trust in torch.rand(200, 5, 5):
        mean, frames = accumulate(mean, frames, trust, value, 128.0)
    assert torch.equal(mean, value)


def test_ten_thousand_frames_do_not_drift():
    """Float32 against float64: means, squared luma, variance and gate of one static pixel stream each."""
    torch.manual_seed(0)
    gate = Gate()
    samples = torch.rand(10_000, 4, 8, 1) * torch.linspace(0.01, 4, 8)[:, None]  # dark to bright
    results = []
    for dtype in (torch.float32, torch.float64):
        mean, frames = torch.zeros(4, 8, 2, dtype=dtype), torch.zeros(4, 8, dtype=dtype)
        one = torch.ones_like(frames)
        for sample in samples.to(dtype):
            mean, frames = accumulate(mean, frames, one, torch.cat([sample, sample * sample], -1), 128.0)
        variance = luma_variance(mean[..., 1], mean[..., 0])
        with torch.no_grad():
            results.append((mean, variance, gate.to(dtype)(variance, frames, CONFIG)))
    for single, double in zip(*results, strict=True):
        assert single.isfinite().all()
        assert (single - double).abs().max() < 1e-4


def test_gate_by_hand():
    gate = Gate()
    with torch.no_grad():
        gate.gamma.fill_(4.0)
    frames, variance = picture(16, 1, 128), picture(0.04, 0.04, 0.0)
    g = gate(standard_error(variance, frames, PAPER), frames, PAPER).flatten().tolist()
    assert g[0] == pytest.approx(1 - (1 - math.exp(-2)) * (1 - 4 * math.sqrt(0.04 / 16.0001)))
    assert g[1] == pytest.approx(1 - (1 - math.exp(-1 / 8)) * (1 - 4 * math.sqrt(0.04 / 1.0001)))
    assert g[2] == pytest.approx(math.exp(-16))
    unsure = gate(picture(1.4), picture(50), PAPER)  # γ · err beyond 1
    assert unsure.item() == 1


def test_gate_switches_and_tau():
    gate = Gate()
    frames, error = picture(16), picture(0.0)
    assert gate(error, frames, DenoiserSettings(gate=0)).item() == 0
    assert gate(error, frames, DenoiserSettings(gate=1)).item() == 1
    assert gate(error, frames, DenoiserSettings(tau_frames=2.0)).item() == pytest.approx(math.exp(-8))


def test_smoothing_by_hand():
    """Against loops over pixels in numpy: what lies outside repeats the edge, and only lumas are compared."""
    rng = np.random.default_rng(2)
    color, error = rng.normal(size=(5, 4, 3)), rng.uniform(0, 0.5, (5, 4))
    found = smoothed(torch.from_numpy(color), torch.from_numpy(error), DenoiserSettings(smooth_errors=1.5)).numpy()
    for y in range(5):
        for x in range(4):
            pixels = [color[min(max(y + j, 0), 4), min(max(x + i, 0), 3)] for j in (-1, 0, 1) for i in (-1, 0, 1)]
            distances = [abs(p[0] - color[y, x, 0]) / (1.5 * error[y, x] + 0.01) for p in pixels]
            weights = [max(0, 1 - distance / 8) ** 8 for distance in distances]
            np.testing.assert_allclose(found[y, x], np.average(pixels, axis=0, weights=weights), atol=1e-12)


def test_smoothing_keeps_what_is_certain_and_means_what_is_not():
    color = torch.rand(9, 9, 3)
    assert torch.equal(smoothed(color, torch.zeros(9, 9), DenoiserSettings(smooth=False)), color)
    constant = torch.full((4, 6, 3), 0.3)
    assert torch.equal(smoothed(constant, torch.rand(4, 6), CONFIG), constant)
    edge = torch.zeros(6, 6, 3)
    edge[:, 3:] = 1.0
    torch.testing.assert_close(smoothed(edge, torch.full((6, 6), 1e-3), CONFIG), edge)
    middle = smoothed(color, torch.full((9, 9), 1e4), CONFIG)[4, 4]
    torch.testing.assert_close(middle, color[3:6, 3:6].mean((0, 1)), atol=1e-4, rtol=0)


def test_gamma_has_a_minimum_but_can_leave_it():
    gate = Gate()
    with torch.no_grad():
        gate.gamma.fill_(-3.0)
    assert gate.scale().item() == pytest.approx(1e-4)
    gate.scale().backward()
    assert gate.gamma.grad.item() == 1


def test_the_error_of_a_constant_is_nothing_in_float32():
    luma = torch.rand(100, 100) * 3
    for rounding in (-1e-7, 0, 1e-7):  # what another order of operations may leave
        error = standard_error(luma_variance(luma * luma * (1 + rounding), luma), torch.ones(100, 100), CONFIG)
        assert (error < 3e-4).all()
    assert luma_variance(torch.tensor([[0.29]]), torch.tensor([[0.5]])).item() == pytest.approx(0.04, abs=1e-6)


def test_standard_error_is_the_usual_one_and_its_slope_has_a_limit():
    variance = picture(0.04, 1e-4, 1e-12, 0).requires_grad_()
    error = standard_error(variance, picture(4, 4, 4, 4), CONFIG)
    error.sum().backward()
    assert error[0].item() == pytest.approx(math.sqrt(0.04 / 4), rel=2e-3)
    assert error[1].item() == pytest.approx(math.sqrt(1e-4 / 4 / 2), rel=1e-4)
    assert error[3].item() == 0
    assert variance.grad[0].item() == pytest.approx(0.5 / math.sqrt(0.04 * 4), rel=3e-3)
    assert variance.grad.max().item() == pytest.approx(1 / math.sqrt(1e-4 * 4), rel=1e-4)


@pytest.fixture
def history():
    """Valid history of a moving camera with fitting depth; the frame shown before is 0.5."""
    camera = camera_at(width=5, height=5)
    made = reproject(torch.ones(5, 5, dtype=torch.float64), camera, random_state(camera), CONFIG)
    values = made.values.clone()
    values[..., 11:14] = 0.5
    return replace(made, values=values, static=False, relative_depth=torch.zeros(5, 5, dtype=torch.float64))


def shown(composite, history: History, config=CONFIG):
    return stabilise(composite, history, config)[2, 2].tolist()


def test_stabilise_blends_within_the_tolerance(history):
    flat = torch.full((5, 5, 3), 0.52, dtype=torch.float64)
    assert shown(flat, history) == pytest.approx([0.9 * 0.5 + 0.1 * 0.52] * 3)
    far = torch.full((5, 5, 3), 0.7, dtype=torch.float64)  # history is clamped to 0.7 - 0.04
    assert shown(far, history) == pytest.approx([0.9 * 0.66 + 0.1 * 0.7] * 3)


def test_stabilise_tolerance_is_half_the_neighbourhoods_range_per_channel(history):
    composite = torch.full((5, 5, 3), 0.8, dtype=torch.float64)
    composite[1, 1, 0] = 0.6  # range 0.2 in red, around (2, 2) only
    tolerance = 0.1 + 0.04
    assert shown(composite, history) == pytest.approx(
        [0.9 * (0.8 - tolerance) + 0.08, 0.9 * 0.76 + 0.08, 0.9 * 0.76 + 0.08]
    )
    spread = neighbourhood_range(composite)
    assert spread[0, 0, 0].item() == pytest.approx(0.2)
    assert spread[3, 3, 0].item() == 0
    assert spread[2, 2, 1].item() == 0


def test_stabilise_reseeds_where_the_depth_changed_unless_the_colour_is_close(history):
    composite = torch.full((5, 5, 3), 0.9, dtype=torch.float64)
    composite[1, 2] = 0.4  # tolerance 0.29: history 0.5 becomes 0.61, 0.29 from 0.9
    changed = replace(history, relative_depth=torch.full_like(history.relative_depth, 0.11))
    assert shown(composite, changed) == pytest.approx([0.9] * 3)
    hardly = replace(history, relative_depth=torch.full_like(history.relative_depth, 0.1))
    assert shown(composite, hardly) == pytest.approx([0.9 * 0.61 + 0.09] * 3)
    near = torch.full((5, 5, 3), 0.59, dtype=torch.float64)
    near[1, 2] = 0.19  # tolerance 0.24: history stays 0.5, 0.09 from 0.59
    assert shown(near, changed) == pytest.approx([0.9 * 0.5 + 0.059] * 3)
    near[2, 2, 1] = 0.61  # one channel differs by 0.11
    assert shown(near, changed) == pytest.approx([0.59, 0.61, 0.59])


def test_stabilise_starts_anew_without_history(history):
    nothing = replace(history, valid=torch.zeros_like(history.valid))
    composite = torch.full((5, 5, 3), 0.51, dtype=torch.float64)
    assert shown(composite, nothing) == pytest.approx([0.51] * 3)


def test_stabilise_is_bypassed_when_static_or_switched_off(history):
    composite = torch.rand(5, 5, 3, dtype=torch.float64) - 0.3
    expected = composite.clamp(min=0)
    assert torch.equal(stabilise(composite, replace(history, static=True), CONFIG), expected)
    assert torch.equal(stabilise(composite, history, DenoiserSettings(stabilise=False)), expected)
    assert not torch.equal(stabilise(composite, history, CONFIG), expected)
    assert (stabilise(composite, history, CONFIG) >= 0).all()


def test_variance_of_short_histories_is_pooled_by_hand():
    """Against loops over pixels: one frame has no variance of its own, after `pooled_frames` it has nothing else."""
    rng = np.random.default_rng(3)
    luma, spread = rng.normal(size=(4, 5)), rng.uniform(0, 0.2, (4, 5))
    squared, earlier = luma**2 + spread, np.tile([0.0, 2.0, 4.0, 8.0, 100.0], (4, 1))
    found = pooled(*map(torch.from_numpy, (spread, squared, luma, earlier)), DenoiserSettings(pooled_frames=8.0))
    for y in range(4):
        for x in range(5):
            near = [(min(max(y + j, 0), 3), min(max(x + i, 0), 4)) for j in (-1, 0, 1) for i in (-1, 0, 1)]
            around = np.mean([squared[at] for at in near]) - np.mean([luma[at] for at in near]) ** 2
            share = max(0.0, 1 - earlier[y, x] / 8)
            assert found[y, x].item() == pytest.approx(share * around + (1 - share) * spread[y, x])
    assert torch.equal(
        pooled(*map(torch.from_numpy, (spread, squared, luma, earlier)), PAPER), torch.from_numpy(spread)
    )


def test_trust_as_a_share_and_as_a_length():
    trust, frames = picture(0.9, 0.9, 0.5, 1.0, 0.0), picture(128, 4, 128, 50, 50)
    assert torch.equal(used_trust(trust, frames, picture(5, 5, 5, 5, 5), PAPER), trust)
    kept = frames * used_trust(trust, frames, picture(0, 0, 0, 0, 0), CONFIG)  # min(n, t / (1 - t))
    assert kept.flatten().tolist() == pytest.approx([9, 4, 1, 50, 0], rel=1e-4)
    kept = frames * used_trust(trust, frames, picture(20, 20, 20, 20, 20), CONFIG)
    assert kept.flatten().tolist() == pytest.approx([20, 4, 20, 50, 20], rel=1e-4)


@pytest.mark.parametrize(("motion_px", "frames"), [(0.0, 128.0), (0.06, 1 / (1 / 128 + 0.03)), (4.0, 0.498)])
def test_slow_motion_keeps_a_history_of_some_pixels(motion_px, frames):
    compressed = picture(motion_px / (motion_px + 20))
    assert least_frames(compressed, DenoiserSettings(history_px=2.0)).item() == pytest.approx(frames, rel=1e-3)
    assert least_frames(compressed, DenoiserSettings(history_px=0.0)).item() == 0
