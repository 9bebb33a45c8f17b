"""All passes together: what must hold over sequences of frames."""

from dataclasses import replace

import numpy as np
import pytest
import torch
from made_frames import camera_at, plane_observation, random_observation, random_state

from hushsplat.engines.torch.colour import rgb_from_ycocg, ycocg_from_rgb
from hushsplat.engines.torch.networks import DenoiserNetworks
from hushsplat.engines.torch.pipeline import step
from hushsplat.engines.torch.tensors import TensorObservation, TensorState
from hushsplat.spec.passes import VIEWS
from hushsplat.spec.settings import DenoiserSettings
from hushsplat.spec.state import State
from hushsplat.types.errors import DenoiseError
from hushsplat.types.observation import Observation

CONFIG = DenoiserSettings()


@pytest.fixture
def denoiser():
    torch.manual_seed(5)
    made = DenoiserNetworks().double()
    with torch.no_grad():
        made.accumulated.head.bias.fill_(2.0)  # histories that last for some frames
        made.denoised.head.bias.fill_(0.5)
    return made.requires_grad_(False)


def walk(frame: int, **size):
    """A camera that moves and turns a little with every frame."""
    return camera_at(x=0.03 * frame, y=0.02 * np.sin(frame), z=0.02 * frame, turn=0.01 * frame, **size)


def test_static_camera_accumulates_the_plain_mean_up_to_the_cap(denoiser):
    camera, state, config = camera_at(width=4, height=3), None, DenoiserSettings(spatial_filter=False)  # it costs most
    total = torch.zeros(3, 4, 3, dtype=torch.float64)
    for frame in range(1, 201):
        observation = random_observation(4, 3, seed=frame)
        shown, state = step(denoiser, observation, camera, state, config)
        if frame <= 128:
            total += observation.color
            expected = total / frame
        else:  # the mean counts as 128 frames, the new one as one more
            expected = (expected * 128 + observation.color) / 129
        torch.testing.assert_close(shown.views["accumulated"], expected)
        assert (state.accumulated_frames == min(frame + (frame > 128), 128)).all()
    assert torch.equal(shown.color, shown.views["composite"])


def test_a_constant_scene_stays_constant_under_any_motion(denoiser):
    rng = np.random.default_rng(0)
    color = torch.tensor([0.7, 0.2, 0.45])
    denoiser, state = denoiser.float(), None
    for frame in range(25):
        camera = camera_at(
            *rng.normal(0, 0.3, 3), turn=rng.normal(0, 0.2), zoom=rng.uniform(0.8, 1.2), width=13, height=9
        )
        noisy = random_observation(13, 9, seed=frame, dtype=torch.float32)
        shown, state = step(denoiser, replace(noisy, color=color.expand(9, 13, 3)), camera, state, CONFIG)
        for picture in (shown.color, *(shown.views[name] for name in ("accumulated", "denoised", "composite"))):
            torch.testing.assert_close(picture, color.expand(9, 13, 3), atol=2e-6, rtol=0)
        assert (shown.views["variance"] == 0).all()


def test_the_first_frame_shows_the_denoised_path(denoiser):
    camera, observation = camera_at(width=7, height=5), random_observation()
    shown, state = step(denoiser, observation, camera, None, CONFIG)
    color = ycocg_from_rgb(observation.color)
    torch.testing.assert_close(state.accumulated, color)
    torch.testing.assert_close(state.squared_luma, color[..., 0] ** 2)
    assert (state.accumulated_frames == 1).all() and (state.denoised_frames == 1).all()
    assert (state.accumulated_trust == 0).all() and (state.denoised_trust == 0).all()
    torch.testing.assert_close(rgb_from_ycocg(state.denoised), shown.views["filtered"])
    torch.testing.assert_close(shown.color, shown.views["filtered"].clamp(min=0))  # no earlier frame: g is 1
    torch.testing.assert_close(state.stabilised, shown.color)
    assert (state.values[..., 15] == 0).all()


def test_a_resize_and_a_cut_start_anew(denoiser):
    observation, camera = random_observation(), camera_at(width=7, height=5)
    first, first_state = step(denoiser, observation, camera, None, CONFIG)
    resized = random_state(camera_at(width=9, height=5))
    behind = random_state(camera_at(width=7, height=5, turn=np.pi))
    for state in (resized, behind):
        shown, new = step(denoiser, observation, camera, state, CONFIG)
        assert torch.equal(shown.color, first.color)
        assert torch.equal(new.values, first_state.values)


def test_step_is_a_pure_function(denoiser):
    observation, camera, state = (
        random_observation(),
        walk(1, width=7, height=5),
        random_state(walk(0, width=7, height=5)),
    )
    before = state.values.clone()
    first = step(denoiser, observation, camera, state, CONFIG)
    second = step(denoiser, observation, camera, state, CONFIG)
    assert torch.equal(state.values, before)
    assert torch.equal(first[0].color, second[0].color)
    assert torch.equal(first[1].values, second[1].values)
    assert first[1].camera is camera


@pytest.mark.parametrize("bad", [np.nan, np.inf, -np.inf, 1e30, -1e30, 3e38])
@pytest.mark.parametrize("moving", [False, True])
def test_nothing_that_is_not_finite_enters_the_state(denoiser, bad, moving):
    rng = np.random.default_rng(1)
    denoiser, state = denoiser.float(), None
    for frame in range(4):
        camera = walk(frame * moving, width=9, height=8)
        observation = random_observation(9, 8, seed=frame, dtype=torch.float32)
        for tensor in (observation.color, observation.depth, observation.neural_view):
            tensor[torch.tensor(rng.random(tensor.shape) < 0.2)] = bad
        shown, state = step(denoiser, observation, camera, state, CONFIG)
        assert state.values.isfinite().all()
        assert all(view.isfinite().all() for view in shown.views.values())
        assert (state.depth > 0).all()


def test_a_broken_pixel_counts_as_black_without_depth(denoiser):
    camera = camera_at(width=7, height=5)
    broken, black = random_observation(), random_observation()
    broken.color[2, 3, 1] = np.nan
    broken.depth[1, 1] = np.inf
    for row, column in ((2, 3), (1, 1)):
        black.color[row, column] = 0
        black.depth[row, column] = 0
    broken.neural_view[0, 0, 2] = np.nan
    black.neural_view[0, 0, 2] = 0
    first, second = (
        step(denoiser, frame, camera, random_state(walk(0, width=7, height=5)), CONFIG) for frame in (broken, black)
    )
    assert torch.equal(first[1].values, second[1].values)


def test_float32_stays_with_float64_on_a_walk(denoiser):
    states = {torch.float32: None, torch.float64: None}
    for frame in range(40):
        camera = walk(frame % 30, width=16, height=12)
        pictures = []
        for dtype, state in states.items():
            observation = plane_observation(camera, noise=0.2, seed=frame, dtype=dtype)
            shown, states[dtype] = step(denoiser.to(dtype), observation, camera, state, CONFIG)
            pictures.append(shown.color.double())
        assert (pictures[0] - pictures[1]).abs().max() < 1e-3
    assert (states[torch.float32].values.double() - states[torch.float64].values).abs()[..., :4].max() < 1e-3
    assert states[torch.float32].accumulated_frames.max() > 5


def test_bounds_hold_on_a_walk(denoiser):
    state = None
    for frame in range(30):
        camera = walk(frame, width=16, height=12)
        shown, state = step(denoiser, random_observation(16, 12, seed=frame), camera, state, CONFIG)
        assert (state.accumulated_frames >= 1).all() and (state.accumulated_frames <= 128).all()
        assert (state.denoised_frames >= 1).all() and (state.denoised_frames <= 24).all()
        for trust in (state.accumulated_trust, state.denoised_trust, shown.views["gate"]):
            assert (trust >= 0).all() and (trust <= 1).all()
        for mean in (state.accumulated, state.denoised):
            assert (mean[..., 0] >= 0).all() and (mean[..., 0] <= 1).all()  # of colours in 0..1
        assert (shown.color >= 0).all()


def test_noise_falls_while_walking_past_a_plane(denoiser):
    """The picture that is shown must be nearer to the truth than the samples are."""
    state, config = None, DenoiserSettings(zero_shot=True)
    for frame in range(30):
        camera = walk(frame * 0.2)
        noisy = plane_observation(camera, noise=0.3, seed=frame)
        shown, state = step(denoiser, noisy, camera, state, config)
    truth = plane_observation(camera).color
    error = (shown.color - truth).square().mean().sqrt().item()
    assert error < 0.3 / 3


SWITCHES = {
    "trust one": {"trust": "one"},
    "trust heuristic": {"trust": "heuristic", "sigma": 4.0},
    "no filter": {"spatial_filter": False},
    "no stabilisation": {"stabilise": False},
    "accumulated only": {"gate": 0},
    "denoised only": {"gate": 1},
    "zero-shot": {"zero_shot": True},
    "caps": {"accumulated_cap_frames": 2.0},
    "denoised cap": {"denoised_cap_frames": 2.0},
    "no smoothing": {"smooth": False},
    "smoothing": {"smooth_errors": 0.2},
    "tau": {"tau_frames": 8.0},
    "motion": {"motion_scale_px": 1.0},
    "weight": {"stabilise_weight": 0.5},
    "slack": {"stabilise_slack": 0.0},
    "depth": {"stabilise_depth": 0.9},
    "rescue": {"stabilise_rescue": 0.0},
    "far": {"far_depth": 2.0},
    "constant": {"trust": "constant", "constant_trust": 0.3},
    "length": {"history": "length"},
    "sharpness": {"resample_sharpness": 0.9},
    "clamp": {"resample_clamp": False},
    "lean": {"filter_lean": 0.2},
    "floor": {"error_floor": 0.1},
    "pooling": {"pooled_frames": 0.0},
    "tolerance": {"static_tolerance": 0.9},
}


@pytest.fixture
def noisy_walk(denoiser):
    def run(config):
        state, frames = None, []
        for frame in range(4):
            camera = walk(frame, width=12, height=10)
            observation = random_observation(12, 10, seed=frame)
            observation.depth[:4, :4] = 0  # nothing there, nor beside it
            shown, state = step(denoiser, observation, camera, state, config)
            frames.append((observation, shown))
        return frames

    return run


@pytest.mark.parametrize("switch", SWITCHES.values(), ids=SWITCHES.keys())
def test_every_switch_switches(noisy_walk, switch):
    config = DenoiserSettings(history="share")  # four frames are not longer than most predicted lengths
    plain, switched = noisy_walk(config)[-1][1], noisy_walk(replace(config, **switch))[-1][1]
    assert (plain.color - switched.color).abs().max() > 1e-4


def test_switches_do_what_they_say(noisy_walk):
    observation, shown = noisy_walk(DenoiserSettings(spatial_filter=False))[-1]
    torch.testing.assert_close(shown.views["filtered"], observation.color)
    _, shown = noisy_walk(DenoiserSettings(stabilise=False))[-1]
    assert torch.equal(shown.color, shown.views["composite"].clamp(min=0))
    _, shown = noisy_walk(DenoiserSettings(gate=0))[-1]
    torch.testing.assert_close(shown.views["composite"], shown.views["smoothed"])
    _, shown = noisy_walk(DenoiserSettings(gate=0, smooth=False))[-1]
    torch.testing.assert_close(shown.views["composite"], shown.views["accumulated"])
    _, shown = noisy_walk(DenoiserSettings(gate=1))[-1]
    torch.testing.assert_close(shown.views["composite"], shown.views["denoised"])
    _, shown = noisy_walk(DenoiserSettings(trust="one"))[-1]
    assert set(shown.views["accumulated_trust"].unique().tolist()) <= {0.0, 1.0}


def test_zero_shot_does_not_look_at_the_payload(denoiser):
    camera, state, config = (
        walk(1, width=7, height=5),
        random_state(walk(0, width=7, height=5)),
        DenoiserSettings(zero_shot=True),
    )
    observation = random_observation()
    with_payload, _ = step(denoiser, observation, camera, state, config)
    without, _ = step(denoiser, replace(observation, neural_view=None), camera, state, config)
    assert torch.equal(with_payload.color, without.color)
    torch.testing.assert_close(without.views["ellipse"][0, 0].tolist(), [2.0, 2.0, 1.0, 0.0], atol=1e-5, rtol=0)


def test_views_have_the_names_that_core_lists(denoiser):
    shown, _ = step(denoiser, random_observation(), camera_at(width=7, height=5), None, CONFIG)
    assert set(shown.views) == set(VIEWS)
    frame = shown.numpy()
    assert frame.color.dtype == np.float32
    assert frame.views["ellipse"].shape == (5, 7, 4)


def test_a_missing_payload_is_refused(denoiser):
    observation = replace(random_observation(), neural_view=None)
    with pytest.raises(DenoiseError, match=r"no neural_view.*zero_shot=True"):
        step(denoiser, observation, camera_at(width=7, height=5), None, CONFIG)


def test_an_observation_of_another_size_is_refused(denoiser):
    with pytest.raises(DenoiseError, match="7×5 px came with a camera of 48×36 px"):
        step(denoiser, random_observation(), camera_at(), None, CONFIG)


def test_numpy_and_back(denoiser):
    camera = camera_at(width=7, height=5)
    made = random_observation(dtype=torch.float32)
    arrays = Observation(made.color.numpy(), made.depth.numpy(), np.ones((5, 7), np.float32), made.neural_view.numpy())
    again = TensorObservation.from_numpy(arrays)
    for name in ("color", "depth", "neural_view"):
        assert torch.equal(getattr(again, name), getattr(made, name))
    assert TensorObservation.from_numpy(replace(arrays, neural_view=None), torch.float64).neural_view is None
    state = random_state(camera, dtype=torch.float32)
    numpy_state = state.numpy()
    assert isinstance(numpy_state, State)
    assert torch.equal(TensorState.from_numpy(numpy_state).values, state.values)
    np.testing.assert_array_equal(numpy_state.stabilised, state.stabilised)
