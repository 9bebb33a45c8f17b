"""Zero-shot training: a training sample is what the torch passes see, and fitting to samples lowers the loss."""

from dataclasses import replace
from functools import partial

import numpy as np
import pytest
import torch
from made_capture import made_scene

from hushsplat.engines.base import engine
from hushsplat.engines.torch.colour import rgb_from_ycocg
from hushsplat.engines.torch.networks import DenoiserNetworks
from hushsplat.engines.torch.pipeline import step as twin_step
from hushsplat.engines.torch.tensors import TensorObservation, TensorState
from hushsplat.methods import configure
from hushsplat.spec.weights import DenoiserWeights
from hushsplat.stream import Stream
from hushsplat.training import zero_shot
from hushsplat.training.chain_cameras import paced
from hushsplat.training.trust_loss import trust_loss
from hushsplat.training.zero_shot import (
    DENOISER,
    RecordedChain,
    ZeroShotSettings,
    play,
    record,
    rescaled,
    round_rate,
    sample_loss,
    train_zero_shot,
)
from hushsplat.types.camera import Camera
from hushsplat.types.errors import TrainingError

VIEW = Camera.look_at([0.0, -0.3, -2.2], [0.0, 0.0, 0.0], width=48, height=36)


@pytest.fixture(scope="module")
def chain() -> RecordedChain:
    drawing = engine("cpu")
    cameras = paced(VIEW, 30, 0.4, 2.0, np.random.default_rng(1))
    return record(drawing, drawing.upload(made_scene()), cameras, seed=4)


def test_a_training_sample_is_the_frame_that_the_torch_passes_see(chain: RecordedChain) -> None:
    """The loss of a sample against composite and trust losses of the torch passes put together by hand, last frame."""
    torch.manual_seed(0)
    denoiser = DenoiserNetworks()
    weights = denoiser.to_weights()
    stream = Stream(engine("cpu"), None, [configure("temporal-zero-shot", weights=weights)])
    for frame in range(29):
        stream.feed(chain.observation(frame), chain.cameras[frame])
    state = stream.states[0]
    observation = TensorObservation.from_numpy(chain.observation(29))
    seen, after = twin_step(denoiser, observation, chain.cameras[29], TensorState.from_numpy(state), DENOISER)
    target = torch.from_numpy(chain.targets[-1].astype(np.float32))
    noise = (observation.color - target).square().mean().item()
    assert noise > 0.01  # there is something to see
    rng = np.random.default_rng(0)  # its first number is not below LATE_SHARE: the chain is played from the start
    sample = play(chain, weights, ZeroShotSettings(sample_share=1.0), rng)[-1]

    _, soft, _, soft_target = (rgb_from_ycocg(part) for part in sample.colors.float().split(3, -1))
    history, kernel = seen.history, partial(_smoothed, *_kernel(after))
    goal = kernel(target.numpy())
    trusts = trust_loss(
        history.denoised_frames,
        seen.trusts[1],
        (rgb_from_ycocg(history.denoised) - soft_target).square().mean(-1),
        (soft - soft_target).square().mean(-1),
        history.valid,
        "length",
    )
    trusts += trust_loss(
        history.accumulated_frames,
        seen.trusts[0],
        torch.from_numpy((kernel(rgb_from_ycocg(history.accumulated).numpy()) - goal) ** 2).mean(-1),
        torch.from_numpy((kernel(observation.color.numpy()) - goal) ** 2).mean(-1),
        history.valid,
        "length",
    )
    composite = (seen.views["composite"] - target).square().mean()
    found = sample_loss(DenoiserNetworks.from_weights(rescaled(weights, -1)), sample).item() * noise / 0.02
    assert found == pytest.approx((trusts + composite).item(), rel=0.01)


def _kernel(state: TensorState) -> tuple[np.ndarray, np.ndarray]:
    """Luma and what a neighbour's may differ by, of the mean after the frame."""
    luma, frames = state.accumulated[..., 0].numpy(), state.accumulated_frames.numpy()
    moments = np.pad(np.stack([state.squared_luma.numpy(), luma]), ((0, 0), (1, 1), (1, 1)), mode="edge")
    height, width = luma.shape
    square, mean = np.mean([moments[:, y : y + height, x : x + width] for y in range(3) for x in range(3)], axis=0)
    own, around = (np.maximum(value, 0) for value in (state.squared_luma.numpy() - luma**2, square - mean**2))
    variance = own + np.clip(1 - (frames - 1) / 8, 0, 1) * (around - own)
    return luma, 2 * variance / np.sqrt((variance + 1e-4) * (frames - 1 + 1e-4)) + 0.01


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
    settings = ZeroShotSettings(rounds=2, steps=25, batch=3, sample_share=1.0, rate=2e-2)
    losses: list[float] = []
    first = train_zero_shot([chain], settings, report=lambda round_, step, loss, denoiser: losses.append(loss))
    short = replace(settings, steps=2)
    once, again, other = (train_zero_shot([chain], each) for each in (short, short, replace(short, seed=1)))
    assert all(np.array_equal(once.tensors[name], again.tensors[name]) for name in first.tensors)
    assert not all(np.array_equal(once.tensors[name], other.tensors[name]) for name in first.tensors)
    assert np.mean(losses[-10:]) < 0.8 * np.mean(losses[:10])
    assert len(losses) == 50


def test_too_little_to_learn_from_is_said(chain: RecordedChain) -> None:
    with pytest.raises(TrainingError, match="at least 5 cameras, got 3"):
        record(engine("cpu"), engine("cpu").upload(made_scene()), [VIEW] * 3, seed=0)
    with pytest.raises(TrainingError, match="no frame became a training sample"):
        train_zero_shot([chain], ZeroShotSettings(sample_share=0.0))


def test_rounds_keep_the_samples_of_all_rounds_and_play_with_the_newest_weights(
    chain: RecordedChain, monkeypatch: pytest.MonkeyPatch
) -> None:
    """DAgger: aggregate, and let the current networks cause the histories."""
    seen, fitted = [], []
    original_play, original_fit = zero_shot.play, zero_shot._fit
    monkeypatch.setattr(zero_shot, "play", lambda c, w, *rest: seen.append(w) or original_play(c, w, *rest))
    monkeypatch.setattr(
        zero_shot,
        "_fit",
        lambda d, samples, rate, *rest: fitted.append((len(samples), rate)) or original_fit(d, samples, rate, *rest),
    )
    settings = ZeroShotSettings(rounds=3, steps=2, batch=1, sample_share=1.0, rate=1e-2)
    train_zero_shot([chain], settings)
    counts, rates = zip(*fitted, strict=True)
    assert counts[0] > 0 and counts[1] > counts[0] and counts[2] > counts[1]
    assert rates == pytest.approx([1e-2, 0.55e-2, 1e-3])
    assert not np.array_equal(seen[0]["gate.gamma"], seen[1]["gate.gamma"])


def test_a_single_round_has_the_full_rate() -> None:
    assert round_rate(ZeroShotSettings(rounds=1), 0) == ZeroShotSettings().rate


def test_gradients_are_clipped_and_rates_differ(chain: RecordedChain) -> None:
    """With a clip below Adam's epsilon nothing moves; else networks and gamma move by their own rates."""
    start = DenoiserNetworks().to_weights()
    still = train_zero_shot([chain], ZeroShotSettings(rounds=1, steps=1, sample_share=1.0, clip_gradient=1e-12), start)
    moved = train_zero_shot([chain], ZeroShotSettings(rounds=1, steps=1, sample_share=1.0, rate=1e-3), start)

    def steps(after: DenoiserWeights) -> dict[str, float]:
        fitted, before = rescaled(after, -1), rescaled(start, -1)  # as the optimiser sees them
        return {name: float(np.abs(fitted[name] - before[name]).max()) for name in before.tensors}

    assert max(steps(still).values()) < 1e-5
    largest = steps(moved)
    assert max(size for name, size in largest.items() if name.startswith("accumulated")) == pytest.approx(
        1e-3, rel=0.05
    )
    assert max(size for name, size in largest.items() if name.startswith("denoised")) == pytest.approx(2e-3, rel=0.05)
    assert largest["gate.gamma"] == pytest.approx(1e-2, rel=0.05)
