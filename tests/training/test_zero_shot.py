"""Training without a payload: lessons are what the twin sees, and they teach."""

from dataclasses import replace
from functools import partial

import numpy as np
import pytest
import torch
from hushsplat.engines.cpu.pipeline import step as engine_step
from made_capture import made_scene

from hushsplat.engines.torch.colour import rgb_from_ycocg
from hushsplat.engines.torch.networks import DenoiserNetworks
from hushsplat.engines.torch.pipeline import step as twin_step
from hushsplat.engines.torch.tensors import TensorObservation, TensorState
from hushsplat.training.chain_cameras import paced
from hushsplat.training.trust_loss import trust_votes
from hushsplat.training.zero_shot import (
    CONFIG,
    RecordedChain,
    ZeroShotSettings,
    lesson_loss,
    play,
    record,
    train_zero_shot,
)
from hushsplat.types.camera import Camera
from hushsplat.types.errors import TrainingError

VIEW = Camera.look_at([0.0, -0.3, -2.2], [0.0, 0.0, 0.0], width=48, height=36)


@pytest.fixture(scope="module")
def chain() -> RecordedChain:
    return record(made_scene(), paced(VIEW, 30, 0.4, 2.0, np.random.default_rng(1)), seed=4)


def test_a_lesson_is_the_frame_that_the_twin_sees(chain: RecordedChain) -> None:
    """The loss of a lesson against the whole twin's composite and votes put together by hand, of the last frame."""
    torch.manual_seed(0)
    denoiser = DenoiserNetworks()
    weights = denoiser.to_weights()
    state = None
    for frame in range(29):
        _, state = engine_step(chain.observation(frame), chain.cameras[frame], state, weights=weights, config=CONFIG)
    observation = TensorObservation.from_numpy(chain.observation(29))
    seen, after = twin_step(denoiser, observation, chain.cameras[29], TensorState.from_numpy(state), CONFIG)
    target = torch.from_numpy(chain.targets[-1].astype(np.float32))
    noise = (observation.color - target).square().mean().item()
    assert noise > 0.01  # there is something to see
    rng = np.random.default_rng(0)  # its first number is not below LATE_SHARE: the chain is played from the start
    lesson = play(chain, weights, 1.0, rng)[-1]

    _, soft, _, soft_target = (rgb_from_ycocg(part) for part in lesson.colors.float().split(3, -1))
    history, kernel = seen.history, partial(_smoothed, *_kernel(after))
    goal = kernel(target.numpy())
    votes = trust_votes(
        history.denoised_frames,
        seen.views["denoised_trust"][..., 0],
        (rgb_from_ycocg(history.denoised) - soft_target).square().mean(-1),
        (soft - soft_target).square().mean(-1),
        history.valid,
    )
    votes += trust_votes(
        history.accumulated_frames,
        seen.views["accumulated_trust"][..., 0],
        torch.from_numpy((kernel(rgb_from_ycocg(history.accumulated).numpy()) - goal) ** 2).mean(-1),
        torch.from_numpy((kernel(observation.color.numpy()) - goal) ** 2).mean(-1),
        history.valid,
    )
    composite = (seen.views["composite"] - target).square().mean()
    found = lesson_loss(denoiser, lesson).item() * noise / 0.02
    assert found == pytest.approx((votes + composite).item(), rel=0.01)


def _kernel(state: TensorState) -> tuple[np.ndarray, np.ndarray]:
    """Luma and what a neighbour's may differ by, of the mean after the frame."""
    luma, frames = state.accumulated[..., 0].numpy(), state.accumulated_frames.numpy()
    variance = np.maximum(state.squared_luma.numpy() - luma**2, 0)
    return luma, 2 * variance / np.sqrt((variance + 1e-4) * (frames + 1e-4)) + 0.01


def _smoothed(luma: np.ndarray, width: np.ndarray, values: np.ndarray) -> np.ndarray:
    total, weights = np.zeros_like(values), np.zeros_like(luma)
    around = np.pad(luma, 1, mode="edge"), np.pad(values, ((1, 1), (1, 1), (0, 0)), mode="edge")
    for y in range(3):
        for x in range(3):
            there = np.s_[y : y + luma.shape[0], x : x + luma.shape[1]]
            weight = np.maximum(1 - np.abs(around[0][there] - luma) / width / 8, 0) ** 8
            total, weights = total + weight[..., None] * around[1][there], weights + weight
    return total / weights[..., None]


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
