"""Stage 4: payload and denoiser together, the scene frozen (paper, "Joint optimisation" and its appendix).

Each step makes one chain of cameras, lets the engine play it up to its last frame, and takes the gradient of that frame
through the twin. All that is random comes from the seed and the number of the step.
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

from hushsplat.engines.cpu.decode import decode_neural_view
from hushsplat.engines.cpu.pipeline import step as engine_step
from hushsplat.engines.cpu.render_names import decode, render_ordered, render_sorted, sample_visibility
from hushsplat.engines.torch.colour import rgb_from_ycocg, ycocg_from_rgb
from hushsplat.engines.torch.filter import Ellipse, binomial_blur, filter_color
from hushsplat.engines.torch.gate import standard_error
from hushsplat.engines.torch.lpips import Lpips
from hushsplat.engines.torch.networks import DenoiserNetworks
from hushsplat.engines.torch.pipeline import step as twin_step
from hushsplat.engines.torch.reproject import move_pixels, relative_difference
from hushsplat.engines.torch.smooth import mixed, neighbour_weights
from hushsplat.engines.torch.tensors import TensorImage, TensorObservation, TensorState
from hushsplat.io.scenes.scene import save
from hushsplat.io.weights import default_weights, write_weights
from hushsplat.spec.settings import DenoiserSettings
from hushsplat.spec.state import CHANNELS, TemporalState
from hushsplat.training.chain_cameras import chain_cameras, chain_kind, paced
from hushsplat.training.losses import similarity
from hushsplat.training.photographs import psnr
from hushsplat.training.stage4_settings import Stage4
from hushsplat.training.trust_loss import trust_votes
from hushsplat.types import colour
from hushsplat.types.camera import Camera
from hushsplat.types.gaussians import PAYLOAD_FLOATS, Gaussians
from hushsplat.types.motion import CameraMotion
from hushsplat.types.observation import Observation, Visibility
from hushsplat.types.image import Image

STAGE4_PLY, DENOISER = "stage4.ply", "denoiser.safetensors"
FIRST_BLUR = 1.854  # softplus of it is 2: training begins with the zero-shot kernel
FIRST_VECTORS = 0.1  # standard deviation: |vector · axis| has no gradient at 0
FADE_SHARE = 0.8  # of the steps: ours; from there on the curriculum has its longest chains
CUT_GRADIENT = 1.0  # norm: ours


@dataclass(frozen=True)
class Subject:
    """A scene to train on, and where to look from."""

    gaussians: Gaussians
    views: Sequence[Camera]
    held_out: Sequence[Camera]
    radius: float  # world units, > 0: of the scene


@dataclass(frozen=True)
class LastFrame:
    """What a step takes its gradient of."""

    camera: Camera
    visibility: Visibility
    observation: Observation
    state: TemporalState | None
    target: Image
    before: Image | None  # the clean picture of the frame before, for the disocclusion mask
    near_static: bool


class JointStage:
    """Stage 4 as the runner drives it."""

    def __init__(self, subject: Subject, settings: Stage4, seed: int, lpips: Lpips | None = None) -> None:
        self.subject, self.settings, self.seed, self.lpips = subject, settings, seed, lpips
        torch.manual_seed(seed)
        self.denoiser = DenoiserNetworks.from_weights(default_weights()) if settings.transfer else DenoiserNetworks()
        self.payload = torch.nn.Parameter(first_payload(len(subject.gaussians), seed))
        groups: list[dict[str, Any]] = [
            {"params": [*self.denoiser.accumulated.parameters(), *self.denoiser.denoised.parameters()]},
            {"params": [self.denoiser.gate.gamma], "lr": settings.gamma_rate},
        ]
        if settings.payload:
            groups.append({"params": [self.payload], "lr": settings.payload_rate})
        self.optimiser = torch.optim.Adam(groups, lr=settings.network_rate)
        self.rates = [group["lr"] for group in self.optimiser.param_groups]

    def step(self, index: int) -> dict[str, float]:
        """One chain, one gradient."""
        settings, config = self.settings, self._config(index)
        rng = np.random.default_rng([self.seed, index])
        fade = 0.505 + 0.495 * np.cos(np.pi * index / max(settings.steps, 1))
        for group, rate in zip(self.optimiser.param_groups, self.rates, strict=True):
            group["lr"] = rate * fade
        last = self._play(index, rng, config)
        observation = TensorObservation.from_numpy(last.observation)
        if settings.payload:
            view = neural_view(self.payload, last.visibility, last.camera)
            observation = replace(observation, neural_view=view)
        state = None if last.state is None else TensorState.from_numpy(last.state)
        hidden = self._disoccluded(last)
        frame, _ = twin_step(self.denoiser, observation, last.camera, state, config, hidden)
        terms = self._terms(frame, observation, torch.tensor(last.target.color), hidden, last.near_static)
        loss = torch.stack(list(terms.values())).sum()
        self.optimiser.zero_grad(set_to_none=True)
        loss.backward()
        torch.nn.utils.clip_grad_norm_(self.denoiser.parameters(), CUT_GRADIENT)
        self.optimiser.step()
        reached = psnr(frame.views["composite"].detach().numpy(), np.clip(last.target.color, 0, 1))
        return {"loss": loss.item(), "psnr": reached, **{name: term.item() for name, term in terms.items()}}

    def _config(self, index: int) -> DenoiserSettings:
        warming = index < self.settings.gate_warmup and not self.settings.transfer
        return DenoiserSettings(zero_shot=not self.settings.payload, gate=1 if warming else "learned")

    def _play(self, index: int, rng: Generator, config: DenoiserSettings) -> LastFrame:
        """A chain up to its last frame: clean history first, then real noise, as the engine sees it."""
        settings, subject = self.settings, self.subject
        longest = 2 * (settings.longest_chain / 2) ** min(1.0, index / max(1, FADE_SHARE * settings.steps))
        frames = int(rng.integers(2, max(2, round(longest)) + 1)) if rng.random() < settings.temporal_share else 1
        view = windowed(subject.views[int(rng.integers(len(subject.views)))], settings.window, rng)
        kind, cameras = self._cameras(view, frames, rng)
        weights, payload = self.denoiser.to_weights(), self.payload.detach().numpy() if settings.payload else None
        noisy = min(settings.suffix_frames, frames)
        state = None
        if frames > noisy:
            clean = self._clean(cameras[-noisy - 1])
            state = clean_state(clean, cameras[-noisy - 1], frames - noisy, config)
        for place, camera in enumerate(cameras[-noisy:-1]):
            _, observation = self._observe(camera, index, place, payload)
            _, state = engine_step(observation, camera, state, weights=weights, config=config)
        visibility, observation = self._observe(cameras[-1], index, noisy, payload)
        masked = frames > 1 and settings.disocclusion > 0
        before = self._clean(cameras[-2]) if masked else None
        return LastFrame(
            cameras[-1], visibility, observation, state, self._clean(cameras[-1]), before, kind == "near-static"
        )

    def _cameras(self, view: Camera, frames: int, rng: Generator) -> tuple[str, list[Camera]]:
        sizes, radius = self.settings.chains, self.subject.radius
        if rng.random() >= sizes.pace_share:
            kind = chain_kind(sizes, rng)
            return kind, chain_cameras(view, kind, frames, sizes, radius, rng)
        depth = self._clean(view).depth
        seen = float(np.median(depth[depth > 0])) if (depth > 0).any() else radius
        pixels = float(np.exp(rng.uniform(*np.log(sizes.pace_px))))
        return "paced", paced(view, frames, pixels, seen, rng)

    def _observe(
        self, camera: Camera, index: int, place: int, payload: Float32[Array, "n 10"] | None
    ) -> tuple[Visibility, Observation]:
        visibility = sample_visibility(self.subject.gaussians, camera, seed=self.seed + index, frame=place)
        observation = decode(visibility, self.subject.gaussians, camera)
        view = None if payload is None else decode_neural_view(visibility, payload, camera)
        return visibility, replace(observation, neural_view=view)

    def _clean(self, camera: Camera) -> Image:
        draw = render_sorted if self.settings.target == "reference" else render_ordered
        return draw(self.subject.gaussians, camera)

    def _disoccluded(self, last: LastFrame) -> Bool[Tensor, "h w"] | None:
        if last.before is None or last.state is None:
            return None
        return disocclusion(last.target, last.camera, last.before, last.state.camera, self.settings)

    def _terms(
        self,
        frame: TensorImage,
        observation: TensorObservation,
        target: Float[Tensor, "h w 3"],
        hidden: Bool[Tensor, "h w"] | None,
        near_static: bool,
    ) -> dict[str, Float[Tensor, ""]]:
        """All parts of the loss, weighted."""
        settings, views = self.settings, frame.views
        composite, trusts = views["composite"], (views["accumulated_trust"], views["denoised_trust"])
        terms = {"l1": (composite - target).abs().mean()}
        if settings.ssim:
            terms["ssim"] = settings.ssim * (1 - similarity(composite, target))
        if settings.lpips and self.lpips is not None:
            terms["lpips"] = settings.lpips * self.lpips(*(x.permute(2, 0, 1)[None] for x in (composite, target)))[0]
        if settings.accumulated:
            terms["accumulated"] = settings.accumulated * (views["accumulated"] - target).abs().mean()
        if settings.symmetry and settings.payload:
            terms["symmetry"] = settings.symmetry * (views["ellipse"][..., 0] - views["ellipse"][..., 1]).mean()
        if settings.votes and frame.history.valid.any():
            terms["votes"] = settings.votes * self._votes(frame, observation, target)
        if near_static and frame.history.valid.any():
            weight = settings.near_static / 2 if settings.transfer else settings.near_static
            terms["near_static"] = weight * (2 - trusts[0].mean() - trusts[1].mean())
        if hidden is not None and hidden.any():
            weight = settings.disocclusion + (0.05 if settings.transfer else 0)
            terms["disocclusion"] = weight * ((trusts[0] + trusts[1])[..., 0] * hidden).mean()
        return terms

    def _votes(
        self, frame: TensorImage, observation: TensorObservation, target: Float[Tensor, "h w 3"]
    ) -> Float[Tensor, ""]:
        """Both trusts; the denoised path against the filtered target, for its blur is common to all it weighs."""
        history, views = frame.history, frame.views
        ellipse = Ellipse(*views["ellipse"].detach().unbind(-1))
        soft = rgb_from_ycocg(filter_color(ycocg_from_rgb(target), ellipse))
        votes = trust_votes(
            history.denoised_frames,
            views["denoised_trust"][..., 0],
            squared(rgb_from_ycocg(history.denoised) - soft),
            squared(views["filtered"].detach() - soft),
            history.valid,
        )
        if history.static:  # its trust is 1, whatever the network says
            return votes
        # What smoothing leaves of an error is what counts: of the noise of a sample little, of a wrong place all.
        luma = ycocg_from_rgb(views["accumulated"].detach())[..., 0]
        error = standard_error(views["variance"][..., 0].detach(), views["accumulated_frames"][..., 0].detach())
        weights = neighbour_weights(luma, error, DenoiserSettings())
        return votes + trust_votes(
            history.accumulated_frames,
            views["accumulated_trust"][..., 0],
            squared(mixed(rgb_from_ycocg(history.accumulated) - target, weights)),
            squared(mixed(observation.color - target, weights)),
            history.valid,
        )

    def preview(self) -> Float32[Array, "h w 3"]:
        """The fifth noisy frame of a slow flight, denoised, beside the clean one."""
        shown, clean = self._held_out_flight(self.subject.held_out[0], frames=5)
        return np.concatenate([shown, clean], axis=1)

    def measure(self) -> dict[str, float]:
        """PSNR of the last of 24 moving frames at held-out views."""
        pairs = [self._held_out_flight(view, frames=24) for view in self.subject.held_out[:6]]
        return {"held_out_psnr": float(np.mean([psnr(shown, np.clip(clean, 0, 1)) for shown, clean in pairs]))}

    def _held_out_flight(self, view: Camera, frames: int) -> tuple[Float32[Array, "h w 3"], Float32[Array, "h w 3"]]:
        sizes, rng = self.settings.chains, np.random.default_rng(self.seed)
        cameras = chain_cameras(view, "drift", frames, sizes, self.subject.radius, rng)
        weights, payload = self.denoiser.to_weights(), self.payload.detach().numpy() if self.settings.payload else None
        state, config = None, DenoiserSettings(zero_shot=not self.settings.payload)
        for place, camera in enumerate(cameras):
            _, observation = self._observe(camera, -1, place, payload)
            frame, state = engine_step(observation, camera, state, weights=weights, config=config)
        return frame.color, self._clean(cameras[-1]).color

    def state(self) -> dict[str, Tensor]:
        """Networks, payload and what Adam remembers."""
        tensors = {f"denoiser.{name}": tensor for name, tensor in self.denoiser.state_dict().items()}
        if self.settings.payload:
            tensors["payload"] = self.payload.detach()
        for number, memory in self.optimiser.state_dict()["state"].items():
            tensors |= {f"adam.{number}.{name}": torch.as_tensor(value) for name, value in memory.items()}
        return tensors

    def load(self, state: Mapping[str, Tensor]) -> None:
        """Go on from there."""
        prefix = "denoiser."
        self.denoiser.load_state_dict({k.removeprefix(prefix): v for k, v in state.items() if k.startswith(prefix)})
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
        write_weights(self.denoiser.to_weights(), folder / DENOISER)
        if self.settings.payload:
            payload = self.payload.detach().numpy().copy()
            save(replace(self.subject.gaussians, payload=payload), folder / STAGE4_PLY)


def first_payload(count: int, seed: int) -> Float[Tensor, "n 10"]:
    """Small view vectors, and a blur as wide as the zero-shot kernel."""
    random = torch.Generator().manual_seed(seed)
    payload = FIRST_VECTORS * torch.randn(count, PAYLOAD_FLOATS, generator=random)
    payload[:, 9] = FIRST_BLUR
    return payload


def neural_view(payload: Float[Tensor, "n 10"], visibility: Visibility, camera: Camera) -> Float[Tensor, "h w 4"]:
    """V0..V3 of one sample, differentiable in the payload: the twin of `decode_neural_view`."""
    plane, depth = torch.from_numpy(visibility.primitive_id[0]).long(), torch.from_numpy(visibility.depth[0])
    hit = plane >= 0
    seen = payload[plane[hit]]
    right, down, forward = torch.from_numpy(camera.world_from_camera[:3, :3].T.astype(np.float32))
    values = torch.stack(
        [
            (seen[:, 0:3] @ -down).abs() / depth[hit],
            (seen[:, 3:6] @ right).abs() / depth[hit],
            (seen[:, 6:9] @ forward).abs(),
            seen[:, 9],
        ],
        dim=1,
    )
    return torch.zeros(*plane.shape, 4).index_put((hit,), values)


def clean_state(picture: Image, camera: Camera, frames: int, config: DenoiserSettings) -> TemporalState:
    """The paper's fake start: what so many frames without noise leave behind."""
    mean = colour.ycocg_from_rgb(picture.color)
    state = TemporalState(np.zeros((*picture.depth.shape, CHANNELS), dtype=np.float32), camera)
    state.accumulated[:], state.squared_luma[:] = mean, mean[..., 0] ** 2
    state.denoised[:] = binomial_blur(torch.from_numpy(mean)).numpy()  # about as soft as the filter leaves it
    state.accumulated_frames[:] = min(frames, config.accumulated_cap_frames)
    state.denoised_frames[:] = min(frames, config.denoised_cap_frames)
    state.accumulated_trust[:] = state.denoised_trust[:] = 1
    state.stabilised[:] = picture.color
    state.depth[:] = np.where(picture.depth > 0, picture.depth, config.far_depth)
    return state


@torch.no_grad()
def disocclusion(
    picture: Image, camera: Camera, before: Image, camera_before: Camera, settings: Stage4
) -> Bool[Tensor, "h w"]:
    """Where the clean pictures say that something else was seen before: by depth and by colour, where it is opaque."""
    motion = CameraMotion.between(camera_before, camera, 0.0)
    depth = torch.from_numpy(np.where(picture.depth > 0, picture.depth, DenoiserSettings().far_depth))
    motion_px, depth_before = move_pixels(depth, camera_before, camera, motion)
    height, width = depth.shape
    column = torch.arange(width) + torch.floor(motion_px[..., 0] + 0.5).long()
    row = torch.arange(height)[:, None] + torch.floor(motion_px[..., 1] + 0.5).long()
    inside = (column >= 0) & (column < width) & (row >= 0) & (row < height)
    place = row.clamp(0, height - 1), column.clamp(0, width - 1)
    seen = torch.from_numpy(before.depth)[place].clamp(min=1e-6)
    apart = relative_difference(depth_before.clamp(min=1e-6), seen) > settings.disocclusion_depth
    colors = (torch.from_numpy(picture.color) - torch.from_numpy(before.color)[place]).abs().amax(-1)
    opaque = torch.from_numpy(picture.alpha) >= settings.disocclusion_opacity
    return inside & apart & opaque & (colors > settings.disocclusion_color)


def windowed(view: Camera, window: tuple[int, int], rng: Generator) -> Camera:
    """The same view, of which only a part is drawn."""
    width, height = (
        min(side, most) if side else most for side, most in zip(window, (view.width, view.height), strict=True)
    )
    left, top = int(rng.integers(view.width - width + 1)), int(rng.integers(view.height - height + 1))
    return replace(view, width=width, height=height, cx=view.cx - left, cy=view.cy - top)


def squared(difference: Float[Tensor, "h w 3"]) -> Float[Tensor, "h w"]:
    """Mean over the channels."""
    return difference.square().mean(-1)
