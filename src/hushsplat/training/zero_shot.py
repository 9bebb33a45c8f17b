"""Zero-shot weights: trained on many scenes and paces, without a payload.

The loop is DAgger (Ross et al. 2011): in each round the engine plays recorded chains with the current weights and keeps
the inputs of the networks at some frames (training samples), and the networks are fitted to the samples of all rounds.
The histories are thus those that the networks themselves cause, while a step costs no more than the tiny networks.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial
from typing import ClassVar

import numpy as np
import torch
from jaxtyping import Float, Float16, Float32
from numpy import ndarray as Array
from numpy.random import Generator
from torch import Tensor

from hushsplat.engines.base import Engine, Scene, engine
from hushsplat.engines.torch.accumulate import accumulate
from hushsplat.engines.torch.colour import rgb_from_ycocg, ycocg_from_rgb
from hushsplat.engines.torch.filter import filter_color, zero_shot_ellipse
from hushsplat.engines.torch.gate import luma_variance, pooled, standard_error
from hushsplat.engines.torch.networks import DenoiserNetworks
from hushsplat.engines.torch.reproject import reproject
from hushsplat.engines.torch.smooth import mixed, neighbour_weights
from hushsplat.engines.torch.tensors import TensorObservation, TensorState
from hushsplat.engines.torch.trust import accumulated_features, denoised_features, least_frames, used_trust
from hushsplat.methods import configure
from hushsplat.spec.settings import DenoiserSettings
from hushsplat.spec.weights import DenoiserWeights
from hushsplat.stream import Stream
from hushsplat.training.trust_loss import trust_loss
from hushsplat.types.camera import Camera
from hushsplat.types.errors import HushsplatError, TrainingError
from hushsplat.types.observation import Observation
from hushsplat.types.options import Noise, RenderOptions
from hushsplat.types.settings import Settings, documented, setting

DENOISER = DenoiserSettings(zero_shot=True)
TARGET_EVERY = 5  # frames: exact pictures cost more than the noise
LATE_SHARE = 0.3  # ours: of the chains that begin in the middle, for short histories of fast motion
# Ours, colour²: the loss of a sample is relative to its noise, so that no scene outweighs the others.
MEAN_NOISE, LEAST_NOISE = 0.02, 2e-3
# Ours: step sizes of the denoised path's network and of gamma (about 5, where weights are about 1), of the rate.
DENOISED_RATE, GAMMA_RATE = 2.0, 10.0
END_SHARE = 0.1  # ours: of the rate in the last round, and of a round's own rate in its last step
BETAS = (0.9, 0.98)  # ours: Adam's; a round is short
MOTION_FEATURE = 4  # of both paths: the compressed motion
# Ours: what features are multiplied by while the networks are fitted, so that all are of about unit size; the weights
# take the factors over at the end.
FEATURE_SCALES = (4.0, 1.0, 40.0, 4.0, 8.0, 2.0, 16.0, 1.0), (4.0, 2.0, 1.0, 1.0, 8.0, 3.0, 2.0, 40.0)
STATE_CHANNELS = 11  # the first of the temporal state, up to the denoised path's trust: what samples keep


@dataclass(frozen=True)
class RecordedChain:
    """Consecutive noisy frames of one scene, and the clean pictures of some of them."""

    cameras: Sequence[Camera]
    colors: Float16[Array, "n h w 3"]
    depths: Float32[Array, "n h w"]
    targets: Float16[Array, "m h w 3"]  # of frames 4, 9, 14 ...

    def observation(self, frame: int) -> Observation:
        """As the engine takes it."""
        depth = self.depths[frame]
        return Observation(self.colors[frame].astype(np.float32), depth, (depth > 0).astype(np.float32))


@documented
@dataclass(frozen=True)
class ZeroShotSettings(Settings):
    """How long and how to train."""

    error: ClassVar[type[HushsplatError]] = TrainingError

    rounds: int = setting(6, "of playing all chains and fitting.", low=1)
    steps: int = setting(400, "of Adam in a round.", low=1)
    batch: int = setting(8, "training samples in a step.", low=1)
    sample_share: float = setting(0.2, "of the frames with targets that become samples, in each round.", low=0, high=1)
    rate: float = setting(3e-3, "Adam's step size in the first round; falls to a tenth in the last.", low=0)
    clip_gradient: float = setting(0.05, "largest norm of the gradient.", low=0, above=True, source="Ours")
    seed: int = setting(0, "of the samples and the first weights.", low=0)
    threads: int = setting(0, "workers of the CPU engine, 0: all cores.", low=0)


@dataclass(frozen=True)
class TrainingSample:
    """The inputs of the networks at one frame and what they are judged by, in half precision."""

    features: Float16[Tensor, "h w 16"]  # of the accumulated path, then of the denoised one
    history: Float16[Tensor, "h w 11"]  # the first channels of the reprojected state
    valid: Tensor
    colors: Float16[Tensor, "h w 12"]  # YCoCg: this frame, filtered, target, filtered target
    static: bool


Report = Callable[[int, int, float, DenoiserWeights], None]  # round, step, loss


def record(
    drawing: Engine, scene: Scene, cameras: Sequence[Camera], seed: int, options: RenderOptions | None = None
) -> RecordedChain:
    """Draw a chain."""
    if len(cameras) < TARGET_EVERY:
        raise TrainingError(f"a chain needs at least {TARGET_EVERY} cameras, got {len(cameras)}.")
    options = options or RenderOptions()
    stream = Stream(drawing, scene, ["raw"], noise=Noise(seed=seed), options=options)
    colors, depths, targets = [], [], []
    for frame, camera in enumerate(cameras):
        observation = stream.step(camera).observation.numpy()
        colors.append(observation.color.astype(np.float16))
        depths.append(observation.depth.copy())
        if frame % TARGET_EVERY == TARGET_EVERY - 1:
            targets.append(drawing.render(scene, camera, "exact", options).numpy().color.astype(np.float16))
    return RecordedChain(cameras, np.stack(colors), np.stack(depths), np.stack(targets))


def train_zero_shot(
    chains: Sequence[RecordedChain],
    settings: ZeroShotSettings,
    start: DenoiserWeights | None = None,
    report: Report = lambda round_, step, loss, weights: None,
) -> DenoiserWeights:
    """Weights for all these chains; the same for the same arguments, on one machine and one thread of PyTorch."""
    rng = np.random.default_rng(settings.seed)
    torch.manual_seed(settings.seed)
    denoiser = DenoiserNetworks() if start is None else DenoiserNetworks.from_weights(rescaled(start, -1))
    samples: list[TrainingSample] = []
    for number in range(settings.rounds):
        weights = rescaled(denoiser.to_weights())
        for chain in chains:
            samples += play(chain, weights, settings, rng)
        if not samples:
            raise TrainingError("no frame became a training sample; give longer chains or a larger sample_share.")
        _fit(denoiser, samples, round_rate(settings, number), settings, rng, partial(report, number))
    return rescaled(denoiser.to_weights())


def rescaled(weights: DenoiserWeights, power: int = 1) -> DenoiserWeights:
    """Weights that were fitted to scaled features as engines take them, for features as they are; -1: back."""
    accumulated, denoised = (np.array(scales, np.float32) ** power for scales in FEATURE_SCALES)
    first = {
        "accumulated.0.weight": weights["accumulated.0.weight"] * accumulated[None, :, None, None],
        "denoised.depthwise.weight": weights["denoised.depthwise.weight"] * denoised[:, None, None, None],
    }
    return DenoiserWeights({**weights.tensors, **first})


def round_rate(settings: ZeroShotSettings, number: int) -> float:
    """Step size at the beginning of a round: falls linearly to a tenth in the last one."""
    return settings.rate * (1 - (1 - END_SHARE) * number / max(1, settings.rounds - 1))


@torch.no_grad()
def play(
    chain: RecordedChain, weights: DenoiserWeights, settings: ZeroShotSettings, rng: Generator
) -> list[TrainingSample]:
    """Training samples from some of the frames that have a target."""
    frames, samples = len(chain.targets) * TARGET_EVERY, []
    start = int(rng.integers(frames // 2 + 1)) if rng.random() < LATE_SHARE else 0
    configured = configure("temporal-zero-shot", weights=weights, settings=DENOISER)
    stream = Stream(engine("cpu"), None, [configured], options=RenderOptions(threads=settings.threads))
    for frame in range(start, frames):
        observation, camera, state = chain.observation(frame), chain.cameras[frame], stream.states[0]
        has_target = frame % TARGET_EVERY == TARGET_EVERY - 1 and state is not None
        if has_target and rng.random() < settings.sample_share:
            target = torch.from_numpy(chain.targets[frame // TARGET_EVERY].astype(np.float32))
            samples.append(_sample(observation, camera, TensorState.from_numpy(state.numpy()), target))
        stream.feed(observation, camera)
    return samples


def _sample(
    observation: Observation, camera: Camera, state: TensorState, target: Float[Tensor, "h w 3"]
) -> TrainingSample:
    frame = TensorObservation.from_numpy(observation)
    color, clean = ycocg_from_rgb(frame.color), ycocg_from_rgb(target)
    history = reproject(frame.depth, camera, state, DENOISER)
    soft, soft_clean = filter_color(torch.cat([color, clean], -1), zero_shot_ellipse(color[..., 0])).split(3, -1)
    features = [accumulated_features(color, None, history, DENOISER), denoised_features(color, history, DENOISER)]
    return TrainingSample(
        torch.cat(features, -1).half(),
        history.values[..., :STATE_CHANNELS].half(),
        history.valid,
        torch.cat([color, soft, clean, soft_clean], -1).half(),
        history.static,
    )


def _fit(
    denoiser: DenoiserNetworks,
    samples: Sequence[TrainingSample],
    rate: float,
    settings: ZeroShotSettings,
    rng: Generator,
    report: Callable[[int, float, DenoiserWeights], None],
) -> None:
    groups = [
        {"params": [*denoiser.accumulated.parameters()], "lr": rate},
        {"params": [*denoiser.denoised.parameters()], "lr": DENOISED_RATE * rate},
        {"params": [denoiser.gate.gamma], "lr": GAMMA_RATE * rate},
    ]
    optimiser = torch.optim.Adam(groups, betas=BETAS)
    schedule = torch.optim.lr_scheduler.CosineAnnealingLR(optimiser, settings.steps, eta_min=END_SHARE * rate)
    for step in range(settings.steps):
        optimiser.zero_grad()
        chosen = rng.choice(len(samples), settings.batch)
        loss = torch.stack([sample_loss(denoiser, samples[place]) for place in chosen]).mean()
        loss.backward()
        torch.nn.utils.clip_grad_norm_(denoiser.parameters(), settings.clip_gradient)
        optimiser.step()
        schedule.step()
        report(step, loss.item(), rescaled(denoiser.to_weights()))


def sample_loss(denoiser: DenoiserNetworks, sample: TrainingSample) -> Float[Tensor, ""]:
    """The trust losses of both paths, and the squared error of the picture before stabilisation.

    The networks take scaled features here.
    """
    features, history, colors = sample.features.float(), sample.history.float(), sample.colors.float()
    color, soft, clean, soft_clean = colors.split(3, -1)
    mean, frames_s, denoised, frames_h = history[..., :4], history[..., 4], history[..., 6:9], history[..., 9]
    scales_s, scales_h = (features.new_tensor(scales) for scales in FEATURE_SCALES)
    trust_s = torch.where(sample.valid, denoiser.accumulated(features[..., :8] * scales_s), 0)
    trust_h = torch.where(sample.valid, denoiser.denoised(features[..., 8:] * scales_h), 0)
    moments = torch.cat([color, color[..., :1] ** 2], -1)
    # On a static camera 1, whatever the network predicts.
    least = least_frames(features[..., MOTION_FEATURE], DENOISER)
    used = sample.valid.float() if sample.static else used_trust(trust_s, frames_s, least, DENOISER)
    used = torch.where(sample.valid, used, 0)
    new, frames = accumulate(mean, frames_s, used, moments, DENOISER.accumulated_cap_frames)
    earlier = frames - 1
    variance = luma_variance(new[..., 3], new[..., 0])
    uncertain = standard_error(pooled(variance, new[..., 3], new[..., 0], earlier, DENOISER), earlier, DENOISER)
    weights = neighbour_weights(new[..., 0], uncertain, DENOISER)

    loss = trust_loss(
        frames_h, trust_h, _error(denoised, soft_clean), _error(soft, soft_clean), sample.valid, DENOISER.history
    )
    if not sample.static:
        # Errors are compared after smoothing, which removes most of a sample's noise and nothing of a wrong history.
        smooth_history, smooth_sample, goal = (
            mixed(value, weights.detach()) for value in (mean[..., :3], color, clean)
        )
        errors = _error(smooth_history, goal), _error(smooth_sample, goal)
        loss = loss + trust_loss(frames_s, trust_s, *errors, sample.valid, DENOISER.history)
    smooth = mixed(new[..., :3], weights)
    used_h = torch.where(sample.valid, used_trust(trust_h, frames_h, torch.zeros_like(trust_h), DENOISER), 0)
    denoised, _ = accumulate(denoised, frames_h, used_h, soft, DENOISER.denoised_cap_frames)
    composite = smooth + denoiser.gate(uncertain, earlier, DENOISER)[..., None] * (denoised - smooth)
    noise = _error(color, clean).mean().clamp(min=LEAST_NOISE)
    return MEAN_NOISE / noise * (loss + _error(composite, clean).mean())


def _error(one: Float[Tensor, "h w 3"], other: Float[Tensor, "h w 3"]) -> Float[Tensor, "h w"]:
    """Squared, mean over RGB, of colours in YCoCg."""
    return rgb_from_ycocg(one - other).square().mean(-1)  # the transform is linear
