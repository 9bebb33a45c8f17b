"""The twin as a thing to time beside the engine: step by step in eager PyTorch, or compiled by it."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import torch

from hushsplat.engines.cpu.denoise_names import DenoiserSettings
from hushsplat.engines.cpu.render_names import RenderOptions
from hushsplat.engines.torch.networks import DenoiserNetworks
from hushsplat.engines.torch.pipeline import step
from hushsplat.engines.torch.tensors import TensorObservation, TensorState
from hushsplat.evaluation.bench import Frames
from hushsplat.evaluation.denoiser_timing import continued_stream
from hushsplat.stream import denoiser as engine
from hushsplat.stream import weights_of
from hushsplat.types.camera import Camera
from hushsplat.types.gaussians import Gaussians


def twin_frames(method: str, weights: Any = None) -> dict[str, Frames]:
    """Rows for `measure`: a step of `hush` or `hush-zero-shot` in PyTorch, on the engine's own stream and state."""
    return {
        f"torch:{method}": _frames(method, weights, step),
        f"torch.compile:{method}": _frames(method, weights, torch.compile(step)),
    }


def _frames(method: str, weights: Any, run: Callable[..., Any]) -> Frames:
    twin = DenoiserNetworks.from_weights(weights_of(weights))
    config = DenoiserSettings(zero_shot=method == "hush-zero-shot")

    def ready(gaussians: Gaussians, camera: Camera, options: RenderOptions, frame: int) -> Callable[[], Any]:
        before = engine(method, weights=weights, threads=options.threads)
        observation, state = continued_stream(before, gaussians, camera, options, frame)
        seen, history = TensorObservation.from_numpy(observation), TensorState.from_numpy(state)

        def one_step() -> None:
            in_use = torch.get_num_threads()
            torch.set_num_threads(options.threads)
            with torch.no_grad():
                run(twin, seen, camera, history, config)
            torch.set_num_threads(in_use)

        return one_step

    return ready
