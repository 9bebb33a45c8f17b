"""Fitting: unrolled frames are the denoiser's own, histories can be made up, and the result is repeatable."""

import numpy as np
import pytest
import torch

from hushsplat import synth
from hushsplat.core.errors import HushsplatError
from hushsplat.denoise.config import HushConfig
from hushsplat.learn import Denoiser, TensorObservation, TensorState, step
from hushsplat.learn.fit import Chain, FitSettings, fake_state, fit, unrolled_step
from hushsplat.render import decode, render_ordered, sample_visibility

CONFIG = HushConfig(zero_shot=True, stabilise=False)


@pytest.fixture(scope="module")
def chain() -> Chain:
    scene, track = synth.room_and_garden(20_000), synth.walk_track(20, 30, 40, 28)
    cameras = [track.camera(frame) for frame in range(8)]
    samples = [sample_visibility(scene, camera, frame=frame) for frame, camera in enumerate(cameras)]
    observations = [decode(sample, scene, camera) for sample, camera in zip(samples, cameras, strict=True)]
    return Chain(cameras, observations, [render_ordered(scene, camera).color for camera in cameras])


def test_unrolled_frames_are_those_of_the_denoiser(chain):
    torch.manual_seed(0)
    denoiser, state, unrolled = Denoiser(), None, None
    for camera, observation in zip(chain.cameras, chain.observations, strict=True):
        tensors = TensorObservation.from_numpy(observation)
        frame, state = step(denoiser, tensors, camera, state, CONFIG)
        composite, accumulated, unrolled = unrolled_step(denoiser, tensors, camera, unrolled, CONFIG)
        torch.testing.assert_close(composite, frame.views["composite"])
        torch.testing.assert_close(accumulated, frame.views["accumulated"])
        torch.testing.assert_close(unrolled.values, state.values)


def test_gradients_reach_earlier_frames(chain):
    torch.manual_seed(0)
    denoiser = Denoiser()
    start = TensorState.from_numpy(fake_state(chain, 0, np.random.default_rng(0)))
    start.values.requires_grad_()
    state = start
    for place in (1, 2, 3):
        observation = TensorObservation.from_numpy(chain.observations[place])
        composite, _, state = unrolled_step(denoiser, observation, chain.cameras[place], state, CONFIG)
    composite.sum().backward()
    assert start.values.grad[..., :5].abs().sum() > 0


def test_made_up_history_has_the_noise_of_its_length(chain):
    state = fake_state(chain, 0, np.random.default_rng(3))
    frames = state.accumulated_frames[0, 0]
    assert 1 <= frames <= 128
    luma = chain.targets[0] @ [0.25, 0.5, 0.25]
    noise = chain.observations[0].color @ [0.25, 0.5, 0.25] - luma
    np.testing.assert_allclose(state.accumulated[..., 0] - luma, noise / np.sqrt(frames), atol=1e-5)


def test_the_same_seed_gives_the_same_weights(chain):
    settings = FitSettings(steps=2, unroll_frames=3, skip_frames=2)
    first, second = (fit([chain], HushConfig(zero_shot=True), settings) for _ in range(2))
    other = fit([chain], HushConfig(zero_shot=True), FitSettings(steps=2, unroll_frames=3, skip_frames=2, seed=1))
    for name, tensor in first.tensors.items():
        np.testing.assert_array_equal(tensor, second[name])
    assert any((tensor != other[name]).any() for name, tensor in first.tensors.items())


def test_short_chain_is_refused(chain):
    with pytest.raises(HushsplatError, match="at least two frames"):
        Chain(chain.cameras[:1], chain.observations[:1], chain.targets[:1])
    with pytest.raises(HushsplatError, match="each with camera, observation and target"):
        Chain(chain.cameras, chain.observations, chain.targets[:3])
