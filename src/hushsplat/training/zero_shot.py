"""Weights for scenes nobody has trained on: many scenes, many paces, no payload.

In rounds: the engine plays recorded chains with the weights as they are and keeps what the networks saw at some frames
(lessons); the networks learn from all lessons so far. Histories are thus those of real use, while a step costs no more
than the tiny networks themselves.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial

import numpy as np
import torch
from jaxtyping import Float, Float16, Float32
from numpy import ndarray as Array
from numpy.random import Generator
from torch import Tensor

from hushsplat.engines.cpu.pipeline import step as engine_step
from hushsplat.engines.cpu.render_names import decode, render_ordered, sample_visibility
from hushsplat.engines.torch.accumulate import accumulate
from hushsplat.engines.torch.colour import rgb_from_ycocg, ycocg_from_rgb
from hushsplat.engines.torch.filter import filter_color, zero_shot_ellipse
from hushsplat.engines.torch.gate import luma_variance, standard_error
from hushsplat.engines.torch.networks import DenoiserNetworks
from hushsplat.engines.torch.reproject import reproject
from hushsplat.engines.torch.smooth import mixed, neighbour_weights
from hushsplat.engines.torch.tensors import TensorObservation, TensorState
from hushsplat.engines.torch.trust import accumulated_features, denoised_features
from hushsplat.spec.settings import DenoiserSettings
from hushsplat.spec.weights import DenoiserWeights
from hushsplat.training.trust_loss import trust_votes
from hushsplat.types.camera import Camera
from hushsplat.types.errors import TrainingError
from hushsplat.types.gaussians import Gaussians
from hushsplat.types.observation import Observation

CONFIG = DenoiserSettings(zero_shot=True)
TARGET_EVERY = 5  # frames: exact pictures cost more than the noise
LATE_SHARE = 0.3  # of the chains begin in the middle: short histories of fast motion
MEAN_NOISE, LEAST_NOISE = 0.02, 2e-3  # colour²: lessons count relative to their noise; no scene drowns the others


@dataclass(frozen=True)
class RecordedChain:
    """Consecutive frames of one scene, and what some of them should have been."""

    cameras: Sequence[Camera]
    colors: Float16[Array, "n h w 3"]
    depths: Float32[Array, "n h w"]
    targets: Float16[Array, "m h w 3"]  # of frames 4, 9, 14 ...

    def observation(self, frame: int) -> Observation:
        """As the engine takes it."""
        depth = self.depths[frame]
        return Observation(self.colors[frame].astype(np.float32), depth, (depth > 0).astype(np.float32))


@dataclass(frozen=True)
class ZeroShotSettings:
    """How long and how to train."""

    rounds: int = 6  # >= 1
    steps: int = 400  # of Adam a round, >= 1
    batch: int = 8  # lessons a step, >= 1
    lesson_share: float = 0.2  # 0..1 of the frames with targets, each round
    rate: float = 3e-3  # > 0: Adam's in the first round; falls to a tenth in the last
    seed: int = 0


@dataclass(frozen=True)
class Lesson:
    """What one frame told the networks, in half precision."""

    features: Float16[Tensor, "h w 16"]  # of the accumulated path, then of the denoised one
    history: Float16[Tensor, "h w 11"]  # the first channels of the reprojected state
    valid: Tensor
    colors: Float16[Tensor, "h w 12"]  # YCoCg: this frame, filtered, target, filtered target
    static: bool


Report = Callable[[int, int, float, DenoiserNetworks], None]  # round, step, loss


def record(gaussians: Gaussians, cameras: Sequence[Camera], seed: int) -> RecordedChain:
    """Draw a chain."""
    if len(cameras) < TARGET_EVERY:
        raise TrainingError(f"a chain needs at least {TARGET_EVERY} cameras, got {len(cameras)}.")
    colors, depths, targets = [], [], []
    for frame, camera in enumerate(cameras):
        observation = decode(sample_visibility(gaussians, camera, seed=seed, frame=frame), gaussians, camera)
        colors.append(observation.color.astype(np.float16))
        depths.append(observation.depth.copy())
        if frame % TARGET_EVERY == TARGET_EVERY - 1:
            targets.append(render_ordered(gaussians, camera).color.astype(np.float16))
    return RecordedChain(cameras, np.stack(colors), np.stack(depths), np.stack(targets))


def train_zero_shot(
    chains: Sequence[RecordedChain],
    settings: ZeroShotSettings,
    start: DenoiserWeights | None = None,
    report: Report = lambda round_, step, loss, denoiser: None,
) -> DenoiserWeights:
    """Weights for all these chains; the same for the same arguments, on one machine and one thread of PyTorch."""
    rng = np.random.default_rng(settings.seed)
    torch.manual_seed(settings.seed)
    denoiser = DenoiserNetworks() if start is None else DenoiserNetworks.from_weights(start)
    lessons: list[Lesson] = []
    for number in range(settings.rounds):
        weights = denoiser.to_weights()
        for chain in chains:
            lessons += play(chain, weights, settings.lesson_share, rng)
        if not lessons:
            raise TrainingError("no frame became a lesson; give longer chains or a larger lesson_share.")
        rate = settings.rate * (1 - 0.9 * number / max(1, settings.rounds - 1))
        _teach(denoiser, lessons, rate, settings, rng, partial(report, number))
    return denoiser.to_weights()


@torch.no_grad()
def play(chain: RecordedChain, weights: DenoiserWeights, share: float, rng: Generator) -> list[Lesson]:
    """Lessons from some of the frames that have a target."""
    frames, state, lessons = len(chain.targets) * TARGET_EVERY, None, []
    start = int(rng.integers(frames // 2 + 1)) if rng.random() < LATE_SHARE else 0
    for frame in range(start, frames):
        observation, camera = chain.observation(frame), chain.cameras[frame]
        if frame % TARGET_EVERY == TARGET_EVERY - 1 and state is not None and rng.random() < share:
            target = torch.from_numpy(chain.targets[frame // TARGET_EVERY].astype(np.float32))
            lessons.append(_lesson(observation, camera, TensorState.from_numpy(state), target))
        _, state = engine_step(observation, camera, state, weights=weights, config=CONFIG)
    return lessons


def _lesson(observation: Observation, camera: Camera, state: TensorState, target: Float[Tensor, "h w 3"]) -> Lesson:
    frame = TensorObservation.from_numpy(observation)
    color, clean = ycocg_from_rgb(frame.color), ycocg_from_rgb(target)
    history = reproject(frame.depth, camera, state, CONFIG)
    soft, soft_clean = filter_color(torch.cat([color, clean], -1), zero_shot_ellipse(color[..., 0])).split(3, -1)
    features = [accumulated_features(color, None, history, CONFIG), denoised_features(color, history, CONFIG)]
    return Lesson(
        torch.cat(features, -1).half(),
        history.values[..., :11].half(),
        history.valid,
        torch.cat([color, soft, clean, soft_clean], -1).half(),
        history.static,
    )


def _teach(
    denoiser: DenoiserNetworks,
    lessons: Sequence[Lesson],
    rate: float,
    settings: ZeroShotSettings,
    rng: Generator,
    report: Callable[[int, float, DenoiserNetworks], None],
) -> None:
    groups = [
        {"params": [*denoiser.accumulated.parameters()], "lr": rate},
        {"params": [*denoiser.denoised.parameters()], "lr": 2 * rate},
        {"params": [denoiser.gate.gamma], "lr": 10 * rate},  # about 5, where the others are about 1
    ]
    optimiser = torch.optim.Adam(groups, betas=(0.9, 0.98))
    schedule = torch.optim.lr_scheduler.CosineAnnealingLR(optimiser, settings.steps, eta_min=rate / 10)
    for step in range(settings.steps):
        optimiser.zero_grad()
        chosen = rng.choice(len(lessons), settings.batch)
        loss = torch.stack([lesson_loss(denoiser, lessons[place]) for place in chosen]).mean()
        loss.backward()
        torch.nn.utils.clip_grad_norm_(denoiser.parameters(), 0.05)
        optimiser.step()
        schedule.step()
        report(step, loss.item(), denoiser)


def lesson_loss(denoiser: DenoiserNetworks, lesson: Lesson) -> Float[Tensor, ""]:
    """Votes for both trusts, and the error of what would be shown before stabilisation."""
    features, history, colors = lesson.features.float(), lesson.history.float(), lesson.colors.float()
    color, soft, clean, soft_clean = colors.split(3, -1)
    mean, frames_s, denoised, frames_h = history[..., :4], history[..., 4], history[..., 6:9], history[..., 9]
    trust_s = torch.where(lesson.valid, denoiser.accumulated(features[..., :8]), 0)
    trust_h = torch.where(lesson.valid, denoiser.denoised(features[..., 8:]), 0)
    moments = torch.cat([color, color[..., :1] ** 2], -1)
    used = lesson.valid.float() if lesson.static else trust_s  # on a static camera 1, whatever the network says
    new, frames = accumulate(mean, frames_s, used, moments, CONFIG.accumulated_cap_frames)
    uncertain = standard_error(luma_variance(new[..., 3], new[..., 0]), frames)
    weights = neighbour_weights(new[..., 0], uncertain, CONFIG)

    loss = trust_votes(frames_h, trust_h, _error(denoised, soft_clean), _error(soft, soft_clean), lesson.valid)
    if not lesson.static:
        # What smoothing leaves of an error is what counts: of the noise of a sample little, of a wrong place all.
        left_of_history, left_of_sample, goal = (
            mixed(value, weights.detach()) for value in (mean[..., :3], color, clean)
        )
        errors = _error(left_of_history, goal), _error(left_of_sample, goal)
        loss = loss + trust_votes(frames_s, trust_s, *errors, lesson.valid)
    smooth = mixed(new[..., :3], weights)
    denoised, _ = accumulate(denoised, frames_h, trust_h, soft, CONFIG.denoised_cap_frames)
    composite = smooth + denoiser.gate(uncertain, frames, CONFIG)[..., None] * (denoised - smooth)
    noise = _error(color, clean).mean().clamp(min=LEAST_NOISE)
    return MEAN_NOISE / noise * (loss + _error(composite, clean).mean())


def _error(one: Float[Tensor, "h w 3"], other: Float[Tensor, "h w 3"]) -> Float[Tensor, "h w"]:
    """Squared, mean over RGB, of colours in YCoCg."""
    return rgb_from_ycocg(one - other).square().mean(-1)  # the transform is linear
