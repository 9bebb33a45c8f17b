"""Gradients against finite differences in float64, for every operator and for the whole step."""

from dataclasses import replace

import pytest
import torch
from made_frames import camera_at, random_observation, random_state
from torch.autograd import gradcheck
from torch.func import functional_call

from hushsplat.engines.torch.accumulate import accumulate
from hushsplat.engines.torch.colour import rgb_from_ycocg, ycocg_from_rgb
from hushsplat.engines.torch.filter import Ellipse, binomial_blur, ellipse_of, filter_color, learned_ellipse
from hushsplat.engines.torch.gate import Gate, luma_variance, pooled, standard_error
from hushsplat.engines.torch.networks import DenoiserNetworks
from hushsplat.engines.torch.pipeline import step
from hushsplat.engines.torch.reproject import reproject
from hushsplat.engines.torch.smooth import smoothed
from hushsplat.engines.torch.stabilise import stabilise
from hushsplat.engines.torch.tensors import TensorState
from hushsplat.engines.torch.trust import accumulated_features, denoised_features
from hushsplat.spec.settings import PAPER, DenoiserSettings

CONFIG = DenoiserSettings()
HEIGHT, WIDTH = 5, 7


def leaf(*shape, low=0.0, high=1.0, seed=0):
    generator = torch.Generator().manual_seed(seed)
    return (low + (high - low) * torch.rand(*shape, dtype=torch.float64, generator=generator)).requires_grad_()


def constant(value, *shape):
    return torch.full(shape or (1, 1), float(value), dtype=torch.float64, requires_grad=True)


@pytest.fixture
def denoiser():
    torch.manual_seed(3)
    return DenoiserNetworks().double()


@pytest.fixture
def moving():
    """A camera, an observation, and the state of the frame before, all of it valid history or not."""
    return (
        camera_at(width=WIDTH, height=HEIGHT, x=0.1),
        random_observation(),
        random_state(camera_at(width=WIDTH, height=HEIGHT)),
    )


@pytest.mark.parametrize("name", ["accumulated", "denoised"])
def test_networks(denoiser, name):
    network = getattr(denoiser, name)
    names, parameters = zip(*network.named_parameters(), strict=True)

    def run(features, *values):
        return functional_call(network, dict(zip(names, values, strict=True)), (features,))

    assert gradcheck(run, (leaf(4, 5, 8, low=-1), *parameters), fast_mode=True)


def test_features(moving):
    camera, observation, state = moving
    history = reproject(observation.depth, camera, state, CONFIG)
    color, view = leaf(HEIGHT, WIDTH, 3, seed=1), leaf(HEIGHT, WIDTH, 4)
    assert gradcheck(lambda c, v: accumulated_features(c, v, history, CONFIG), (color, view))
    assert gradcheck(lambda c: denoised_features(c, history, CONFIG), (color,))


def test_colours():
    assert gradcheck(ycocg_from_rgb, (leaf(2, 3, 3),))
    assert gradcheck(rgb_from_ycocg, (leaf(2, 3, 3),))


def parts(ellipse: Ellipse):
    return ellipse.stacked()


@pytest.mark.parametrize(
    "scale_x, scale_y, correlation",
    [
        (2.3, 2.3, 0.0),  # isotropic: the eigen-angle is singular
        (0.4, 0.4, 0.0),
        (7.0, 7.0, 0.0),
        (1.0, 3.0, 0.0),  # upright: the angle's cut
        (3.0, 1.0, 0.0),
        (2.0, 2.0, 0.6),
        (2.0, 2.0, -0.6),
        (1.0, 3.0, -0.9),
        (2.0, 2.0, 0.99999),  # the minor axis is at its floor
    ],
)
def test_ellipse(scale_x, scale_y, correlation):
    shape = tuple(constant(value) for value in (scale_x, scale_y, correlation))
    assert gradcheck(lambda *values: parts(ellipse_of(*values, CONFIG.filter_lean)), shape)


def test_ellipse_at_random_places():
    shape = (leaf(4, 5, low=0.1, high=8), leaf(4, 5, low=0.1, high=8, seed=1), leaf(4, 5, low=-0.95, high=0.95, seed=2))
    assert gradcheck(lambda *values: parts(ellipse_of(*values, CONFIG.filter_lean)), shape)


def test_blur():
    assert gradcheck(binomial_blur, (leaf(3, 4, 2),))


def test_filter_at_random_places():
    view = leaf(HEIGHT, WIDTH, 4, low=0.1, high=4.0, seed=4)
    assert gradcheck(
        lambda c, v: filter_color(c, learned_ellipse(v, CONFIG.filter_lean)),
        (leaf(HEIGHT, WIDTH, 3), view),
        fast_mode=True,
    )
    small = leaf(3, 4, 4, low=0.1, high=4.0, seed=5)
    assert gradcheck(lambda v: filter_color(leaf(3, 4, 1).detach(), learned_ellipse(v, CONFIG.filter_lean)), (small,))


def test_filter_at_the_isotropic_kernel():
    """V0 = V1 and V2 = 0: probes lie on pixel rows, so the level must be above 0, whose bilinear kinks are there."""
    view = torch.tensor([0.7, 0.7, 0.0, 1.1], dtype=torch.float64).repeat(3, 4, 1).requires_grad_()
    color = leaf(3, 4, 1).detach()
    minor = learned_ellipse(view, CONFIG.filter_lean).minor_px
    assert (minor > 2).all() and (minor < 4).all()
    assert gradcheck(lambda v: filter_color(color, learned_ellipse(v, CONFIG.filter_lean)), (view,))


def test_gradients_at_the_isotropic_kernel_are_of_ordinary_size():
    view = torch.tensor([0.0, 0.0, 0.0, 1.85], dtype=torch.float64).repeat(24, 24, 1).requires_grad_()
    filter_color(leaf(24, 24, 3), learned_ellipse(view, CONFIG.filter_lean)).sum().backward()
    assert view.grad.isfinite().all()
    assert view.grad.abs().max() < 100


def test_accumulate():
    inputs = (leaf(3, 4, 2), leaf(3, 4, low=1, high=20), leaf(3, 4, seed=1, low=0.1, high=0.9), leaf(3, 4, 2, seed=2))
    assert gradcheck(lambda *values: accumulate(*values, 12.0), inputs)


def test_smoothing():
    inputs = (leaf(4, 5, 3), leaf(4, 5, low=0.05, high=0.3, seed=1))
    assert gradcheck(lambda *values: smoothed(*values, CONFIG), inputs)


def test_gate():
    gate = Gate().double()

    def run(squared, luma, frames, gamma):
        variance = luma_variance(squared, luma)
        error = standard_error(pooled(variance, squared, luma, frames, CONFIG), frames, CONFIG)
        return functional_call(gate, {"gamma": gamma}, (error, frames, CONFIG)), error

    luma = leaf(3, 4, low=0.2, high=0.6)
    squared = (luma.detach() ** 2 + torch.linspace(-0.03, 0.2, 12, dtype=torch.float64).view(3, 4)).requires_grad_()
    gamma = torch.tensor(3.0, dtype=torch.float64, requires_grad=True)
    assert gradcheck(run, (squared, luma, leaf(3, 4, low=1, high=100), gamma))


def test_stabilise(moving):
    camera, observation, state = moving
    history = reproject(observation.depth, camera, state, CONFIG)
    assert gradcheck(lambda c: stabilise(c, history, CONFIG), (leaf(HEIGHT, WIDTH, 3, low=0.2),))


@pytest.mark.parametrize("settings", [{}, {"zero_shot": True}, {"trust": "heuristic"}, {"spatial_filter": False}])
def test_whole_step(denoiser, moving, settings):
    camera, observation, state = moving
    config = DenoiserSettings(**settings)
    names, parameters = zip(*denoiser.named_parameters(), strict=True)

    class Step(torch.nn.Module):
        def __init__(self):
            super().__init__()
            self.denoiser = denoiser

        def forward(self, color, view):
            made = type(observation)(color, observation.depth, view)
            frame, _ = step(self.denoiser, made, camera, state, config)
            return frame.color, frame.views["composite"], frame.views["accumulated_trust"]

    module = Step()

    def run(color, view, *values):
        return functional_call(module, {f"denoiser.{n}": v for n, v in zip(names, values, strict=True)}, (color, view))

    view = leaf(HEIGHT, WIDTH, 4, low=0.1, high=2.0, seed=6)
    assert gradcheck(run, (leaf(HEIGHT, WIDTH, 3, seed=7), view, *parameters), fast_mode=True)


def test_every_parameter_and_the_payload_get_a_gradient(denoiser, moving):
    camera, observation, state = moving
    observation.neural_view.requires_grad_()
    config = DenoiserSettings(history="share")  # a length that is longer than the history has no gradient
    frame, _ = step(denoiser, observation, camera, state, config)
    frame.views["composite"].square().sum().backward()
    for name, parameter in denoiser.named_parameters():
        assert parameter.grad.abs().max() > 0, name
    assert (observation.neural_view.grad.abs().amax(dim=(0, 1)) > 0).all()


def test_the_history_is_detached_on_both_sides(denoiser, moving):
    camera, observation, state = moving
    state = TensorState(state.values.clone().requires_grad_(), state.camera)
    observation.neural_view.requires_grad_()
    for here in (camera, state.camera):  # moving and static
        frame, after = step(denoiser, observation, here, state, CONFIG)
        frame.color.sum().backward()
        assert state.values.grad is None
        assert not after.values.requires_grad


@pytest.mark.parametrize("settings", [PAPER, replace(PAPER, zero_shot=True)])
def test_the_gradient_goes_through_time(denoiser, moving, settings):
    """Three frames: that of the composite of the last in the colours, the payload and the parameters of all."""
    _, observation, state = moving
    cameras = [camera_at(width=WIDTH, height=HEIGHT, x=0.013 * (frame + 1)) for frame in range(3)]
    names, parameters = zip(*denoiser.named_parameters(), strict=True)

    class Chain(torch.nn.Module):
        def __init__(self):
            super().__init__()
            self.denoiser = denoiser

        def forward(self, colors, views, through_time=True):
            after = state
            for color, view, camera in zip(colors, views, cameras, strict=True):
                made = type(observation)(color, observation.depth, view)
                frame, after = step(self.denoiser, made, camera, after, settings, through_time=through_time)
            return frame.views["composite"], frame.views["accumulated"], frame.views["accumulated_trust"]

    module = Chain()

    def run(colors, views, *values):
        changed = {f"denoiser.{n}": v for n, v in zip(names, values, strict=True)}
        return functional_call(module, changed, (colors, views))

    colors, views = leaf(3, HEIGHT, WIDTH, 3, seed=7), leaf(3, HEIGHT, WIDTH, 4, low=0.1, high=2.0, seed=6)
    assert gradcheck(run, (colors, views, *parameters), fast_mode=True)
    for through_time in (True, False):
        colors.grad = None
        module(colors, views, through_time)[0].square().sum().backward()
        assert bool(colors.grad[0].abs().max() > 0) == through_time  # of the first frame
        assert colors.grad[2].abs().max() > 0


def test_a_first_frame_of_one_colour_has_finite_gradients(denoiser):
    """Variance 0, distances 0, equal axes: every root at once."""
    camera = camera_at(width=WIDTH, height=HEIGHT)
    color = torch.zeros(HEIGHT, WIDTH, 3, dtype=torch.float64, requires_grad=True)
    view = torch.zeros(HEIGHT, WIDTH, 4, dtype=torch.float64, requires_grad=True)
    observation = type(random_observation())(color, torch.ones(HEIGHT, WIDTH, dtype=torch.float64), view)
    state = None
    for here in (camera, camera, camera_at(width=WIDTH, height=HEIGHT, x=0.01)):
        frame, state = step(denoiser, observation, here, state, CONFIG)
        (frame.color.sum() + frame.views["composite"].square().sum()).backward()
    for tensor in (color, view, *denoiser.parameters()):
        assert tensor.grad.isfinite().all()
