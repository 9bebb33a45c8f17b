"""Pass 2: the features in the paper's order, the networks layer by layer, the overrides."""

import numpy as np
import pytest
import torch
from made_frames import camera_at, random_observation, random_state

from hushsplat.engines.torch.colour import ycocg_from_rgb
from hushsplat.engines.torch.networks import DenoiserNetworks
from hushsplat.engines.torch.reproject import reproject
from hushsplat.engines.torch.trust import accumulated_features, accumulated_trust, denoised_features, denoised_trust
from hushsplat.spec.settings import DenoiserSettings

CONFIG = DenoiserSettings()


@pytest.fixture
def moving():
    """An observation, its YCoCg colour, and history of which some pixels are not valid."""
    current = camera_at(width=7, height=5, x=0.15)
    observation = random_observation()
    history = reproject(observation.depth, current, random_state(camera_at(width=7, height=5)), CONFIG)
    assert 0 < history.valid.float().mean() < 1
    return observation, ycocg_from_rgb(observation.color), history


def test_accumulated_features_are_the_papers(moving):
    observation, color, history = moving
    features = accumulated_features(color, observation.neural_view, history, CONFIG)
    row, column = 2, 3
    before = history.values[row, column]
    length = np.hypot(*history.motion_px[row, column].tolist())
    motion, r = length / (length + 20), history.relative_depth[row, column].item()
    luma = color[row, column, 0].item()
    view = observation.neural_view[row, column, 2].item()
    expected = [abs(luma - before[0]), before[5], motion**2, before[4] / 128, motion, r, motion * r, view]
    np.testing.assert_allclose(features[row, column], expected)
    blind = accumulated_features(color, None, history, CONFIG)
    assert (blind[..., 7] == 0).all()
    assert torch.equal(blind[..., :7], features[..., :7])


def test_denoised_features_are_the_papers(moving):
    _, color, history = moving
    features = denoised_features(color, history, CONFIG)
    row, column = 2, 3
    before = history.values[row, column].numpy()
    length = np.hypot(*history.motion_px[row, column].tolist())
    motion, r = length / (length + 20), history.relative_depth[row, column].item()
    here = color[row, column].numpy()
    distance = np.sqrt(((here - before[6:9]) ** 2).sum())
    expected = [abs(here[0] - before[6]), before[6], before[10], before[9] / 24, motion, distance, r, motion**2]
    np.testing.assert_allclose(features[row, column], expected)


def silu(x):
    return x / (1 + np.exp(-x))


def pointwise(x, conv):
    weight, bias = conv.weight.detach().numpy(), conv.bias.detach().numpy()
    return np.einsum("hwi,oi->hwo", x, weight[:, :, 0, 0]) + bias


def depthwise(x, conv):
    weight, bias = conv.weight.detach().numpy(), conv.bias.detach().numpy()
    padded = np.pad(x, ((1, 1), (1, 1), (0, 0)))
    height, width, _ = x.shape
    taps = [padded[j : j + height, i : i + width] * weight[:, 0, j, i] for j in range(3) for i in range(3)]
    return sum(taps) + bias


def test_networks_are_the_layers_of_the_paper():
    torch.manual_seed(1)
    denoiser = DenoiserNetworks().double()
    features = torch.randn(6, 9, 8, dtype=torch.float64)
    layer = denoiser.accumulated
    hidden = silu(pointwise(features.numpy(), layer[0]))
    hidden = silu(pointwise(depthwise(hidden, layer[1]), layer[2]))
    hidden = silu(pointwise(hidden, layer[3]))
    hidden = silu(pointwise(depthwise(hidden, layer[4]), layer[5]))
    expected = 1 / (1 + np.exp(-pointwise(hidden, layer.head)[..., 0]))
    np.testing.assert_allclose(denoiser.accumulated(features).detach(), expected)

    head = denoiser.denoised
    expected = 1 / (1 + np.exp(-pointwise(silu(depthwise(features.numpy(), head.depthwise)), head.head)[..., 0]))
    np.testing.assert_allclose(denoiser.denoised(features).detach(), expected)


def test_heads_start_at_the_papers_biases():
    torch.manual_seed(2)
    denoiser = DenoiserNetworks()
    assert denoiser.accumulated.head.bias.item() == 0
    assert denoiser.denoised.head.bias.item() == -4
    none = torch.zeros(4, 4, 8)
    assert (denoiser.denoised(none) < 0.05).all()


def test_trust_is_0_without_history_and_1_on_a_static_camera(moving):
    observation, color, history = moving
    denoiser = DenoiserNetworks().double()
    trust_s = accumulated_trust(denoiser.accumulated, color, observation.neural_view, history, CONFIG)
    trust_h = denoised_trust(denoiser.denoised, color, history, CONFIG)
    for trust in (trust_s, trust_h):
        assert (trust[~history.valid] == 0).all()
        assert ((trust[history.valid] > 0) & (trust[history.valid] < 1)).all()

    camera = camera_at(width=7, height=5)
    still = reproject(observation.depth, camera, random_state(camera), CONFIG)
    for mode in ("learned", "one", "heuristic"):
        config = DenoiserSettings(trust=mode)
        assert (accumulated_trust(denoiser.accumulated, color, observation.neural_view, still, config) == 1).all()
    assert (denoised_trust(denoiser.denoised, color, still, CONFIG) < 1).all()


def test_trust_switches(moving):
    observation, color, history = moving
    network = DenoiserNetworks().double().accumulated
    one = accumulated_trust(network, color, observation.neural_view, history, DenoiserSettings(trust="one"))
    assert torch.equal(one, history.valid.double())
    config = DenoiserSettings(trust="heuristic", sigma=3.0)
    heuristic = accumulated_trust(network, color, observation.neural_view, history, config)
    expected = np.exp(-3 * history.relative_depth.numpy()) * history.valid.numpy()
    np.testing.assert_allclose(heuristic, expected)
