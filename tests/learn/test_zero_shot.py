"""Training without a payload: lessons are what the twin sees, and they teach."""

from dataclasses import replace
from functools import partial

import numpy as np
import pytest
import torch
from made_capture import made_scene
from scipy.ndimage import uniform_filter

from hushsplat.core.camera import Camera
from hushsplat.core.errors import TrainingError
from hushsplat.denoise.pipeline import step as engine_step
from hushsplat.learn import Denoiser, TensorObservation, TensorState
from hushsplat.learn import step as twin_step
from hushsplat.learn.chain_cameras import paced
from hushsplat.learn.colour import rgb_from_ycocg
from hushsplat.learn.votes import trust_votes
from hushsplat.learn.zero_shot import (
    CONFIG,
    Lesson,
    RecordedChain,
    ZeroShotSettings,
    lesson_loss,
    play,
    record,
    train_zero_shot,
)

VIEW = Camera.look_at([0.0, -0.3, -2.2], [0.0, 0.0, 0.0], width=48, height=36)


@pytest.fixture(scope="module")
def chain() -> RecordedChain:
    return record(made_scene(), paced(VIEW, 30, 1.5, 2.0, np.random.default_rng(1)), seed=4)


def test_a_lesson_is_the_frame_that_the_twin_sees(chain: RecordedChain) -> None:
    """The composite's error from a lesson against the whole twin's, of the last frame."""
    torch.manual_seed(0)
    denoiser = Denoiser()
    weights = denoiser.to_weights()
    state = None
    for frame in range(29):
        _, state = engine_step(chain.observation(frame), chain.cameras[frame], state, weights=weights, config=CONFIG)
    observation = TensorObservation.from_numpy(chain.observation(29))
    seen, _ = twin_step(denoiser, observation, chain.cameras[29], TensorState.from_numpy(state), CONFIG)
    target = torch.from_numpy(chain.targets[-1].astype(np.float32))
    composite = (seen.views["composite"] - target).square().mean().item()
    rng = np.random.default_rng(0)  # its first number is not below LATE_SHARE: the chain is played from the start
    lesson = play(chain, weights, 1.0, rng)[-1]
    noise = np.mean((chain.colors[29].astype(np.float32) - target.numpy()) ** 2)
    history = seen.history
    votes = 0.0
    found = lesson_loss(denoiser, lesson).item() * max(noise, 2e-3) / 0.02
    errors = _errors(lesson)
    for (frames, trust), (history_error, sample_error) in zip(
        (
            (history.denoised_frames, seen.views["denoised_trust"][..., 0]),
            (history.accumulated_frames, seen.views["accumulated_trust"][..., 0]),
        ),
        errors,
        strict=True,
    ):
        votes += trust_votes(frames, trust, history_error, sample_error, history.valid).item()
    assert found == pytest.approx(votes + composite, rel=0.02)


def _errors(lesson: Lesson) -> tuple[tuple[torch.Tensor, torch.Tensor], ...]:
    """Of history and sample, of the denoised and of the accumulated path."""
    color, soft, clean, soft_clean = (rgb_from_ycocg(part) for part in lesson.colors.float().split(3, -1))
    mean, denoised = (rgb_from_ycocg(lesson.history.float()[..., part]) for part in (slice(0, 3), slice(6, 9)))
    error, noise = (mean - clean).square().mean(-1), (color - clean).square().mean(-1)
    around = partial(uniform_filter, size=7, mode="constant")  # zeros outside, so that only the inside is a mean
    whole = around(np.ones(error.shape))
    frames = np.maximum(lesson.history[..., 4].float().numpy(), 1)
    wrong = around(error.numpy()) / whole - 2 * around(noise.numpy()) / whole / frames
    return (
        ((denoised - soft_clean).square().mean(-1), (soft - soft_clean).square().mean(-1)),
        (error + 0.5 * torch.from_numpy(np.maximum(wrong, 0)), noise),
    )


def test_it_learns_and_repeats(chain: RecordedChain) -> None:
    settings = ZeroShotSettings(rounds=2, steps=40, batch=4, lesson_share=1.0, rate=1e-2)
    losses: list[float] = []
    first = train_zero_shot([chain], settings, report=lambda round_, step, loss, denoiser: losses.append(loss))
    second = train_zero_shot([chain], settings)
    other = train_zero_shot([chain], replace(settings, seed=1))
    assert all(np.array_equal(first.tensors[name], second.tensors[name]) for name in first.tensors)
    assert not all(np.array_equal(first.tensors[name], other.tensors[name]) for name in first.tensors)
    assert np.mean(losses[-10:]) < 0.8 * np.mean(losses[:10])
    assert len(losses) == 80


def test_too_little_to_learn_from_is_said(chain: RecordedChain) -> None:
    with pytest.raises(TrainingError, match="at least 5 cameras, got 3"):
        record(made_scene(), [VIEW] * 3, seed=0)
    with pytest.raises(TrainingError, match="no frame became a lesson"):
        train_zero_shot([chain], ZeroShotSettings(lesson_share=0.0))
