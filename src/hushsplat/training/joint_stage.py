"""Stage 4: payload and denoiser together, the scene frozen (paper, "Joint optimisation" and its appendix).

Each step makes one chain of cameras, plays it through a `Stream` of the CPU engine up to its last frame, and takes the
gradient of that frame through the torch passes. All randomness comes from the seed and the number of the step.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
import torch
from jaxtyping import Bool, Float, Float32
from numpy import ndarray as Array
from numpy.random import Generator
from torch import Tensor

from hushsplat.engines.base import engine
from hushsplat.engines.torch.decode import neural_view
from hushsplat.engines.torch.filter import binomial_blur
from hushsplat.engines.torch.lpips import Lpips
from hushsplat.engines.torch.networks import DenoiserNetworks
from hushsplat.engines.torch.pipeline import step as denoise
from hushsplat.engines.torch.tensors import TensorImage, TensorObservation, TensorState
from hushsplat.io.scenes.scene import save
from hushsplat.io.weights import write_weights
from hushsplat.methods import configure, weights_of
from hushsplat.spec.denoisers import ConfiguredDenoiser
from hushsplat.spec.settings import PAPER, DenoiserSettings
from hushsplat.spec.state import TEMPORAL, State
from hushsplat.spec.weights import DenoiserWeights
from hushsplat.stream import Stream
from hushsplat.training.chain_cameras import chain_cameras, chain_kind, paced
from hushsplat.training.joint_loss import CleanPicture, JointLoss, disocclusion
from hushsplat.training.settings import Stage4, TrainSettings
from hushsplat.types import colour
from hushsplat.types.camera import Camera
from hushsplat.types.gaussians import PAYLOAD_FLOATS, Gaussians
from hushsplat.types.metrics import psnr
from hushsplat.types.observation import Observation, Visibility
from hushsplat.types.options import Noise, RenderOptions

STAGE4_PLY, DENOISER = "stage4.ply", "denoiser.safetensors"
FIRST_LONGEST = 2  # frames; paper: the curriculum begins with pairs
# Ours: how the held-out views are measured and previewed.
MEASURED_VIEWS, MEASURED_FRAMES, PREVIEW_FRAMES = 6, 24, 5
HELD_OUT_STEP = -1  # the noise of held-out chains is that of no step


@dataclass(frozen=True)
class Subject:
    """A scene to train on, and the views of it."""

    gaussians: Gaussians
    views: Sequence[Camera]
    held_out: Sequence[Camera]
    radius: float  # world units, > 0: of the scene
    reference: Gaussians | None = None  # the vanilla scene, whose pictures are the target; None: the scene itself


@dataclass(frozen=True)
class NoisyFrame:
    """A stochastic frame of a chain."""

    camera: Camera
    visibility: Visibility
    observation: Observation
    disoccluded: Bool[Tensor, "h w"] | None  # the mask, where there is a frame before


@dataclass(frozen=True)
class Chain:
    """The end of a chain, of which a step takes the gradient."""

    state: State | None  # before its frames
    frames: tuple[NoisyFrame, ...]  # that the gradient goes through; the loss is that of the last
    target: CleanPicture  # of the last
    near_static: bool


class JointStage:
    """Stage 4 as the runner drives it."""

    def __init__(
        self,
        subject: Subject,
        settings: TrainSettings,
        lpips: Lpips | None = None,
        start: DenoiserWeights | None = None,  # weights to begin with; None: those of the package, or new ones
    ) -> None:
        self.subject, self.settings, self.seed = subject, settings.stage4, settings.seed
        base = PAPER if self.settings.method == "paper" else DenoiserSettings()
        self.base = replace(base, zero_shot=not self.settings.payload)
        self.loss = JointLoss(settings.stage4, self.base, lpips, settings.threads)
        self.options = RenderOptions(settings.background, threads=settings.threads)
        self.engine = engine("cpu")
        self.scene = self.engine.upload(replace(subject.gaussians, payload=None), self.options)
        vanilla = subject.reference
        self.reference = (
            self.scene if vanilla is None else self.engine.upload(replace(vanilla, payload=None), self.options)
        )
        torch.manual_seed(self.seed)
        if start is None and self.settings.transfer:
            start = weights_of(None, self.settings.method)
        self.networks = DenoiserNetworks() if start is None else DenoiserNetworks.from_weights(start)
        self.payload = torch.nn.Parameter(first_payload(len(subject.gaussians), self.settings, self.seed))
        groups: list[dict[str, Any]] = [
            {"params": [*self.networks.accumulated.parameters(), *self.networks.denoised.parameters()]},
            {"params": [self.networks.gate.gamma], "lr": self.settings.gamma_rate},
        ]
        if self.settings.payload:
            groups.append({"params": [self.payload], "lr": self.settings.payload_rate})
        self.optimiser = torch.optim.Adam(groups, lr=self.settings.network_rate)
        self.rates = [group["lr"] for group in self.optimiser.param_groups]

    def step(self, index: int) -> dict[str, float]:
        """One chain, one gradient."""
        for group, rate in zip(self.optimiser.param_groups, self.rates, strict=True):
            group["lr"] = rate * rate_share(index, self.settings)
        chain = self.play(index)
        frame, terms = self.forward(chain, index)
        loss = torch.stack(list(terms.values())).sum()
        self.optimiser.zero_grad(set_to_none=True)
        loss.backward()
        torch.nn.utils.clip_grad_norm_(self.networks.parameters(), self.settings.clip_gradient)
        self.optimiser.step()
        reached = psnr(frame.views["composite"].detach().numpy(), chain.target.color)
        parts = {name: term.item() for name, term in terms.items()}
        return {"loss": loss.item(), "psnr": reached, "trust": frame.trusts[0].mean().item(), **parts}

    def play(self, index: int) -> Chain:
        """The chain of a step up to the frames of the gradient: clean history first, then real noise, as in use."""
        settings, subject, rng = self.settings, self.subject, np.random.default_rng([self.seed, index])
        frames = chain_length(index, settings, rng)
        flies = frames > 1 and rng.random() < settings.flight_share
        if flies:
            frames = int(rng.integers(settings.longest_chain // 2, settings.longest_chain + 1))
        view = windowed(subject.views[int(rng.integers(len(subject.views)))], settings.window, rng)
        kind, cameras = self._cameras(view, frames, flies, rng)
        configured, noisy = self._configured(index), min(settings.suffix_frames, frames)
        stream, before = self._stream(configured, index), None
        if flies:
            rest = self._clean(cameras[0]), cameras[0], settings.longest_chain
            stream.states[0] = clean_state(*rest, configured.name, self.denoiser_settings(index))
            for camera in cameras[:-noisy]:
                stream.step(camera)
        if frames > noisy:
            start = cameras[-noisy - 1]
            before = self._clean(start)
            if not flies:
                history = before, start, frames - noisy
                stream.states[0] = clean_state(*history, configured.name, self.denoiser_settings(index))
        followed = min(settings.gradient_frames, noisy)
        for camera in cameras[frames - noisy : frames - followed]:
            picture = self._clean(camera)
            self._noisy_step(stream, camera, picture, before)
            before = picture
        state, last = stream.states[0], cameras[max(0, frames - followed - 1)]
        ends = []
        for camera in cameras[frames - followed :]:
            picture = self._clean(camera)
            hidden = None if before is None else disocclusion(picture, camera, before, last, settings)
            observation = stream.observe(camera).numpy()
            ends.append(NoisyFrame(camera, stream.visibility.numpy(), observation, hidden))
            stream.number += 1
            before, last = picture, camera
        return Chain(None if state is None else state.numpy(), tuple(ends), picture, kind == "near-static")

    def _noisy_step(self, stream: Stream, camera: Camera, picture: CleanPicture, before: CleanPicture | None) -> None:
        """One frame of the suffix; disoccluded pixels begin anew, as if both trusts were 0."""
        state = stream.states[0]
        hidden = None
        if before is not None and state is not None:
            hidden = disocclusion(picture, camera, before, state.camera, self.settings).numpy()
        begins = hidden is not None and bool(hidden.any())
        image = stream.step(camera, with_views=[begins])
        if not begins:
            return
        after, views = stream.states[0].numpy(), image.images[0].numpy().views
        color = colour.ycocg_from_rgb(image.observation.numpy().color)
        after.accumulated[hidden], after.squared_luma[hidden] = color[hidden], color[hidden][:, 0] ** 2
        after.denoised[hidden] = colour.ycocg_from_rgb(views["filtered"])[hidden]
        after.accumulated_frames[hidden] = after.denoised_frames[hidden] = 1
        after.accumulated_trust[hidden] = after.denoised_trust[hidden] = 0
        stream.states[0] = after

    def forward(self, chain: Chain, index: int) -> tuple[TensorImage, dict[str, Float[Tensor, ""]]]:
        """The last frame, differentiable, and the terms of its loss."""
        settings = self.denoiser_settings(index)
        state = None if chain.state is None else TensorState.from_numpy(chain.state)
        for each in chain.frames:
            observation = TensorObservation.from_numpy(each.observation)
            if self.settings.payload:
                observation = replace(observation, neural_view=neural_view(self.payload, each.visibility, each.camera))
            frame, state = denoise(
                self.networks, observation, each.camera, state, settings, each.disoccluded, through_time=True
            )
        target = torch.tensor(chain.target.color)
        return frame, self.loss.terms(frame, observation, target, each.disoccluded, chain.near_static)

    def denoiser_settings(self, index: int) -> DenoiserSettings:
        """While untrained networks warm up, the gate shows the denoised path only."""
        warming = 0 <= index < self.settings.gate_warmup and not self.settings.transfer
        return replace(self.base, gate=1 if warming else "learned")

    def _configured(self, index: int) -> ConfiguredDenoiser:
        name = self.settings.method if self.settings.payload else f"{self.settings.method}-zero-shot"
        return configure(name, weights=self.networks.to_weights(), settings=self.denoiser_settings(index))

    def _stream(self, configured: ConfiguredDenoiser, index: int) -> Stream:
        """A new stream of the scene with the payload as it is; the noise of each step is its own."""
        payload = self.payload.detach().numpy() if self.settings.payload else None
        scene = self.engine.with_payload(self.scene, payload)
        return Stream(self.engine, scene, [configured], noise=Noise(seed=self.seed + index), options=self.options)

    def _cameras(self, view: Camera, frames: int, flies: bool, rng: Generator) -> tuple[str, list[Camera]]:
        sizes, radius = self.settings.chains, self.subject.radius
        if not flies and rng.random() >= sizes.pace_share:
            kind = chain_kind(sizes, rng)
            return kind, chain_cameras(view, kind, frames, sizes, radius, rng)
        depth = self._clean(view).depth
        seen = float(np.median(depth[depth > 0])) if np.any(depth > 0) else radius
        pixels = float(np.exp(rng.uniform(*np.log(sizes.pace_px))))
        return "paced", paced(view, frames, pixels, seen, rng)

    def _clean(self, camera: Camera) -> CleanPicture:
        return CleanPicture.of(self.engine.render(self.reference, camera, self.settings.target, self.options).numpy())

    def preview(self) -> Float32[Array, "h w 3"]:
        """A noisy frame of a slow flight, denoised, beside the clean one."""
        return np.concatenate(self._held_out_flight(self.subject.held_out[0], PREVIEW_FRAMES), axis=1)

    def measure(self) -> dict[str, float]:
        """PSNR of the last of 24 moving frames at held-out views."""
        pairs = [self._held_out_flight(view, MEASURED_FRAMES) for view in self.subject.held_out[:MEASURED_VIEWS]]
        return {"held_out_psnr": float(np.mean([psnr(shown, clean) for shown, clean in pairs]))}

    def _held_out_flight(self, view: Camera, frames: int) -> tuple[Float32[Array, "h w 3"], Float32[Array, "h w 3"]]:
        rng = np.random.default_rng(self.seed)
        cameras = chain_cameras(view, "drift", frames, self.settings.chains, self.subject.radius, rng)
        stream = self._stream(self._configured(HELD_OUT_STEP), HELD_OUT_STEP)
        *_, last = (stream.step(camera) for camera in cameras)
        return last.images[0].numpy().color, self._clean(cameras[-1]).color

    def state(self) -> dict[str, Tensor]:
        """Networks, payload and the moments of Adam."""
        tensors = {f"denoiser.{name}": tensor for name, tensor in self.networks.state_dict().items()}
        if self.settings.payload:
            tensors["payload"] = self.payload.detach()
        for number, memory in self.optimiser.state_dict()["state"].items():
            tensors |= {f"adam.{number}.{name}": torch.as_tensor(value) for name, value in memory.items()}
        return tensors

    def load(self, state: Mapping[str, Tensor]) -> None:
        """Go on from there."""
        prefix = "denoiser."
        self.networks.load_state_dict({k.removeprefix(prefix): v for k, v in state.items() if k.startswith(prefix)})
        if self.settings.payload:
            with torch.no_grad():
                self.payload.copy_(state["payload"])
        memory: dict[int, dict[str, Tensor]] = {}
        for name, value in state.items():
            if name.startswith("adam."):
                _, number, field = name.split(".", 2)
                memory.setdefault(int(number), {})[field] = value
        self.optimiser.load_state_dict({**self.optimiser.state_dict(), "state": memory})

    def finish(self, folder: Path) -> None:
        """The networks, and the scene with the payload in it."""
        write_weights(self.networks.to_weights(), folder / DENOISER)
        if self.settings.payload:
            payload = self.payload.detach().numpy().copy()
            save(replace(self.subject.gaussians, payload=payload), folder / STAGE4_PLY)


def rate_share(index: int, settings: Stage4) -> float:
    """What is left of the rates at a step: from 1 to `end_share` along a cosine."""
    wave = np.cos(np.pi * index / max(settings.steps, 1))
    return float((1 + settings.end_share) / 2 + (1 - settings.end_share) / 2 * wave)


def chain_length(index: int, settings: Stage4, rng: Generator) -> int:
    """Frames of a chain; the longest possible grows exponentially over the curriculum."""
    done = min(1.0, index / max(1, settings.curriculum_share * settings.steps))
    longest = FIRST_LONGEST * (settings.longest_chain / FIRST_LONGEST) ** done
    if rng.random() >= settings.temporal_share:
        return 1
    return int(rng.integers(FIRST_LONGEST, max(FIRST_LONGEST, round(longest)) + 1))


def first_payload(count: int, settings: Stage4, seed: int) -> Float[Tensor, "n 10"]:
    """Small view vectors, and a blur as wide as the zero-shot kernel."""
    random = torch.Generator().manual_seed(seed)
    payload = settings.first_vectors * torch.randn(count, PAYLOAD_FLOATS, generator=random)
    payload[:, 9] = settings.first_blur
    return payload


def clean_state(picture: CleanPicture, camera: Camera, frames: int, method: str, settings: DenoiserSettings) -> State:
    """The state that this many frames without noise leave (paper: the first frames of a chain are not rendered)."""
    mean = colour.ycocg_from_rgb(picture.color)
    values = np.zeros((*picture.depth.shape, TEMPORAL.floats), dtype=np.float32)
    state = State(method, values, camera)
    state.accumulated[:], state.squared_luma[:] = mean, mean[..., 0] ** 2
    state.denoised[:] = binomial_blur(torch.from_numpy(mean)).numpy()  # about as soft as the filter leaves it
    state.accumulated_frames[:] = min(frames, settings.accumulated_cap_frames)
    state.denoised_frames[:] = min(frames, settings.denoised_cap_frames)
    state.accumulated_trust[:] = state.denoised_trust[:] = 1
    state.stabilised[:] = picture.color
    state.depth[:] = np.where(picture.depth > 0, picture.depth, settings.far_depth)
    return state


def windowed(view: Camera, window: tuple[int, int], rng: Generator) -> Camera:
    """The same view, of which only a part is drawn."""
    width, height = (
        min(side, most) if side else most for side, most in zip(window, (view.width, view.height), strict=True)
    )
    left, top = int(rng.integers(view.width - width + 1)), int(rng.integers(view.height - height + 1))
    return replace(view, width=width, height=height, cx=view.cx - left, cy=view.cy - top)
