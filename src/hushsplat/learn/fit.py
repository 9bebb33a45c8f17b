"""Fit θ and γ to recorded chains of frames.

The engine runs the chains on with the weights as they are, so that histories are those of real use; from there the twin
unrolls a few frames with gradients through time. The paper detaches every frame's history. One frame hardly moves a
long history, so that the gradient of its trust is small; whether that alone would do at a low rate was not measured.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import torch
from jaxtyping import Float, Float32
from numpy import ndarray as Array
from torch import Tensor
from torch.nn import functional

from hushsplat.core import colour
from hushsplat.core.camera import Camera
from hushsplat.core.errors import HushsplatError
from hushsplat.core.state import CHANNELS, TemporalState
from hushsplat.core.stream import Observation
from hushsplat.core.weights import HushWeights
from hushsplat.denoise.config import HushConfig
from hushsplat.denoise.pipeline import step as engine_step
from hushsplat.learn.accumulate import accumulate
from hushsplat.learn.colour import rgb_from_ycocg, ycocg_from_rgb
from hushsplat.learn.denoiser import Denoiser
from hushsplat.learn.filter import filter_color, zero_shot_ellipse
from hushsplat.learn.gate import luma_variance
from hushsplat.learn.reproject import catmull_rom, reproject
from hushsplat.learn.tensors import TensorObservation, TensorState
from hushsplat.learn.trust import accumulated_trust, denoised_trust

LUMA_DIFFERENCE, RELATIVE_DEPTH = 0, 5  # places among the features of the accumulated path


@dataclass(frozen=True)
class Chain:
    """Consecutive frames of one scene: what the renderer gave, and what it should have given."""

    cameras: Sequence[Camera]
    observations: Sequence[Observation]
    targets: Sequence[Float32[Array, "h w 3"]]  # RGB without noise

    def __post_init__(self) -> None:
        counts = {len(self.cameras), len(self.observations), len(self.targets)}
        if len(counts) != 1 or counts.pop() < 2:
            raise HushsplatError("a chain needs at least two frames, each with camera, observation and target.")


@dataclass(frozen=True)
class FitSettings:
    """How long and how to fit."""

    steps: int = 600  # of Adam, >= 1
    batch: int = 1  # chains per step, >= 1
    unroll_frames: int = 12  # >= 1: with gradients through time
    # > 0, of the accumulated path's network at the start; falls along a cosine. Ours: 1e-2 drives trust to 1 at once,
    # from where a sigmoid does not come back.
    learning_rate: float = 2.5e-3
    skip_frames: int = 24  # >= 1: the engine runs a chain on by 0 to this many frames between two gradients
    fake_share: float = 0.15  # 0..1: chains that start with a long history made from the target (paper: fake start)
    accumulated_weight: float = 0.25  # >= 0: of the accumulated path's own loss beside the composite's
    quadratic_below: float = 0.5  # colour, > 0: errors up to here count as squares, larger ones as they are
    accumulated_trust: float = 0.9  # 0..1: about the trusts at the start. Ours: the paper's 0.5 and 0.02 learn slower
    denoised_trust: float = 0.7
    seed: int = 0


class Player:
    """A place in a chain and what the denoiser remembers there; begins another chain where one ends."""

    def __init__(self, chains: Sequence[Chain], settings: FitSettings, rng: np.random.Generator) -> None:
        self.chains, self.settings, self.rng = chains, settings, rng
        self.chain, self.place = chains[0], 0
        self.state: TemporalState | None = None
        self._begin()

    def advance(self, frames: int, weights: HushWeights, config: HushConfig) -> None:
        """Run on with the engine; at least one frame is left for the gradient."""
        if self.place >= len(self.chain.cameras) - 1:
            self._begin()
        for _ in range(min(frames, len(self.chain.cameras) - 1 - self.place)):
            observation, camera = self.chain.observations[self.place], self.chain.cameras[self.place]
            _, self.state = engine_step(observation, camera, self.state, weights=weights, config=config, threads=1)
            self.place += 1

    def loss(self, denoiser: Denoiser, config: HushConfig) -> Float[Tensor, ""]:
        """Mean over the next frames, unrolled with gradients; the player goes on behind them."""
        state = None if self.state is None else TensorState.from_numpy(self.state)
        below, weight = self.settings.quadratic_below, self.settings.accumulated_weight
        last = min(self.place + self.settings.unroll_frames, len(self.chain.cameras))
        losses = []
        for place in range(self.place, last):
            observation = TensorObservation.from_numpy(self.chain.observations[place])
            target = torch.tensor(self.chain.targets[place])
            composite, accumulated, state = unrolled_step(
                denoiser, observation, self.chain.cameras[place], state, config
            )
            losses.append(functional.smooth_l1_loss(composite, target, beta=below))
            losses.append(weight * functional.smooth_l1_loss(accumulated, target, beta=below))
        self.place = last
        if state is not None:
            self.state = TemporalState(state.values.detach().numpy(), state.camera)
        return torch.stack(losses).sum() / (len(losses) // 2)

    def _begin(self) -> None:
        self.chain = self.chains[int(self.rng.integers(len(self.chains)))]
        self.place = int(self.rng.integers(len(self.chain.cameras) // 4))
        self.state = None
        if self.rng.random() < self.settings.fake_share:
            self.state = fake_state(self.chain, self.place, self.rng)
            self.place += 1


def unrolled_step(
    denoiser: Denoiser,
    observation: TensorObservation,
    camera: Camera,
    state: TensorState | None,
    config: HushConfig,  # zero-shot
) -> tuple[Float[Tensor, "h w 3"], Float[Tensor, "h w 3"], TensorState]:
    """Composite, accumulated mean (both RGB) and next state, as `step` has them, but not stabilised, nor detached."""
    color = ycocg_from_rgb(observation.color)
    moments = torch.cat([color, color[..., :1] ** 2], dim=-1)
    history = reproject(observation.depth, camera, state, config)
    if state is not None and history.static:
        history = replace(history, values=state.values)
    elif state is not None:
        moved = catmull_rom(state.values, history.motion_px)
        history = replace(history, values=torch.where(history.valid[..., None], moved, 0))
    trust_s = accumulated_trust(denoiser.accumulated, color, None, history, config)
    trust_h = denoised_trust(denoiser.denoised, color, history, config)
    filtered = filter_color(color, zero_shot_ellipse(color[..., 0]))
    before = history.values[..., 0:4]
    moments, frames_s = accumulate(before, history.accumulated_frames, trust_s, moments, config.accumulated_cap_frames)
    denoised, frames_h = accumulate(
        history.denoised, history.denoised_frames, trust_h, filtered, config.denoised_cap_frames
    )
    accumulated = moments[..., :3]
    gate = denoiser.gate(luma_variance(moments[..., 3], accumulated[..., 0]), frames_s, config)
    composite = rgb_from_ycocg(accumulated + gate[..., None] * (denoised - accumulated))
    parts = [moments, frames_s, trust_s, denoised, frames_h, trust_h, composite.detach().clamp(min=0)]
    parts += [history.filled_depth, torch.zeros_like(trust_s)]
    values = torch.cat([part if part.ndim == 3 else part[..., None] for part in parts], dim=-1)
    return composite, rgb_from_ycocg(accumulated), TensorState(values, camera)


def fake_state(chain: Chain, place: int, rng: np.random.Generator) -> TemporalState:
    """A history as long as one likes: the target with as much of this frame's noise as the length leaves over."""
    config = HushConfig()
    target, observation = colour.ycocg_from_rgb(chain.targets[place]), chain.observations[place]
    noise = colour.ycocg_from_rgb(observation.color) - target
    frames_s = config.accumulated_cap_frames ** rng.uniform(0, 1)
    frames_h = min(frames_s, config.denoised_cap_frames)
    values = np.zeros((*observation.depth.shape, CHANNELS), dtype=np.float32)
    state = TemporalState(values, chain.cameras[place])
    state.accumulated[:] = target + noise / np.sqrt(frames_s)
    state.squared_luma[:] = state.accumulated[..., 0] ** 2 + _box_blur(noise[..., 0] ** 2)
    state.denoised[:] = _box_blur(
        target + noise / np.float32(np.sqrt(frames_h))
    )  # about as soft as the zero-shot filter
    state.accumulated_frames[:], state.denoised_frames[:] = frames_s, frames_h
    state.accumulated_trust[:], state.denoised_trust[:] = rng.uniform(0.7, 1, 2)
    state.stabilised[:] = chain.targets[place]
    state.depth[:] = np.where(observation.depth > 0, observation.depth, config.far_depth)
    return state


def fit(
    chains: Sequence[Chain],
    config: HushConfig,
    settings: FitSettings | None = None,
    report: Callable[[int, float, Denoiser], None] = lambda step, loss, denoiser: None,
) -> HushWeights:
    """Weights for these chains; the same for the same arguments, on one machine and one thread of PyTorch."""
    settings = settings or FitSettings()
    rng = np.random.default_rng(settings.seed)
    torch.manual_seed(settings.seed)
    denoiser = _initial(settings)
    groups: list[dict[str, Any]] = [
        {"params": [*denoiser.accumulated.parameters()]},
        {"params": [*denoiser.denoised.parameters()], "lr": 4 * settings.learning_rate},  # has fewer layers
        {"params": [denoiser.gate.gamma], "lr": 10 * settings.learning_rate},  # γ is about 10, the others about 1
    ]
    optimiser = torch.optim.Adam(groups, lr=settings.learning_rate)
    schedule = torch.optim.lr_scheduler.CosineAnnealingLR(
        optimiser, settings.steps, eta_min=settings.learning_rate / 100
    )
    players = [Player(chains, settings, rng) for _ in range(8 * settings.batch)]
    for player in players:  # not all at the start of a chain at once
        player.advance(int(rng.integers(len(player.chain.cameras))), denoiser.to_weights(), config)
    for index in range(settings.steps):
        weights, total = denoiser.to_weights(), 0.0
        optimiser.zero_grad()
        for chosen in rng.choice(len(players), settings.batch, replace=False):
            players[chosen].advance(int(rng.integers(settings.skip_frames + 1)), weights, config)
            loss = players[chosen].loss(denoiser, config) / settings.batch
            loss.backward()
            total += loss.item()
        torch.nn.utils.clip_grad_norm_(denoiser.parameters(), 1.0)
        optimiser.step()
        schedule.step()
        report(index, total, denoiser)
    return denoiser.to_weights()


def _initial(settings: FitSettings) -> Denoiser:
    """Random networks, but t_s already falls with the differences of depth, as the heuristic does, and of luma."""
    denoiser = Denoiser()
    tensors = denoiser.state_dict()  # the parameters themselves, without gradients
    for layer in ("accumulated.0", "accumulated.2", "accumulated.3", "accumulated.5"):
        tensors[f"{layer}.weight"][0] *= 0.2
        tensors[f"{layer}.weight"][0, 0] = 1.0
        tensors[f"{layer}.bias"][0] = 1.0  # where SiLU is nearly linear
    for layer in ("accumulated.1", "accumulated.4"):
        tensors[f"{layer}.weight"][0] = 0.05
        tensors[f"{layer}.weight"][0, 0, 1, 1] = 0.6
    tensors["accumulated.0.weight"][0, [LUMA_DIFFERENCE, RELATIVE_DEPTH], 0, 0] = torch.tensor([2.0, 4.0])
    tensors["accumulated.head.weight"] *= 0.5
    tensors["accumulated.head.weight"][0, 0] = -3.0
    typical = torch.tensor([0.1, 0.9, 0.0, 0.1, 0.05, 0.0, 0.0, 0.0])  # features where history fits
    with torch.no_grad():
        fits = torch.special.logit(denoiser.accumulated(typical.expand(9, 9, 8))[4, 4])
    tensors["accumulated.head.bias"] += _logit(settings.accumulated_trust) - fits
    tensors["denoised.head.bias"].fill_(_logit(settings.denoised_trust))
    return denoiser


def _logit(share: float) -> float:
    return float(np.log(share / (1 - share)))


def _box_blur(values: Float32[Array, "h w *c"]) -> Float32[Array, "h w *c"]:
    """Mean of 3×3 pixels, edges repeated."""
    padded = np.pad(values, [(1, 1), (1, 1)] + [(0, 0)] * (values.ndim - 2), mode="edge")
    rows = padded[:-2] + padded[1:-1] + padded[2:]
    return (rows[:, :-2] + rows[:, 1:-1] + rows[:, 2:]) / np.float32(9)
