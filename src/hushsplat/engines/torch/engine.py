"""The torch engine behind the protocol of engines/base.py: slow and obvious, for small pictures."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import torch
from jaxtyping import Float32
from numpy import ndarray as Array

from hushsplat.engines.base import GaussianScene
from hushsplat.engines.torch import baselines, renderers
from hushsplat.engines.torch.decode import decode
from hushsplat.engines.torch.networks import DenoiserNetworks
from hushsplat.engines.torch.pipeline import step
from hushsplat.engines.torch.tensors import TensorImage, TensorObservation, TensorState, resized
from hushsplat.spec.denoisers import ConfiguredDenoiser
from hushsplat.spec.settings import DenoiserSettings
from hushsplat.spec.state import check_state_of
from hushsplat.types.camera import Camera
from hushsplat.types.errors import DenoiseError, RenderError, SceneError
from hushsplat.types.gaussians import Gaussians
from hushsplat.types.image import Image
from hushsplat.types.observation import Observation, Visibility
from hushsplat.types.options import Noise, RenderOptions


@dataclass(frozen=True, eq=False)
class TorchScene(GaussianScene):
    """Gaussians as they are."""

    @property
    def bytes(self) -> int:
        """Nothing beside the Gaussians."""
        return 0


class TorchEngine:
    """Renderers in float64 numpy, denoisers in float32 torch (or as `dtype` says); every pass written for reading."""

    name = "torch"

    def __init__(self, *, compiled: bool = False, dtype: torch.dtype = torch.float32) -> None:
        self._step: Callable[..., tuple[TensorImage, TensorState]] = torch.compile(step) if compiled else step
        self._dtype = dtype
        self._networks: tuple[Any, DenoiserNetworks] | None = None  # of the weights used last

    def upload(self, gaussians: Gaussians, options: RenderOptions | None = None) -> TorchScene:
        """Nothing to prepare; values that are not finite are refused."""
        for name in ("means", "scales", "rotations", "opacities", "sh"):
            if not np.isfinite(getattr(gaussians, name)).all():
                raise SceneError(f"{name} holds values that are not finite; remove those Gaussians first.")
        return TorchScene(gaussians)

    def with_payload(self, scene: TorchScene, payload: Float32[Array, "n 10"] | None) -> TorchScene:
        """The same scene with another payload."""
        return TorchScene(replace(scene.gaussians, payload=payload))

    def sample(self, scene: TorchScene, camera: Camera, noise: Noise, options: RenderOptions) -> Visibility:
        """Every fragment of every pixel against its random level."""
        return renderers.raw(
            scene.gaussians,
            camera,
            samples=noise.samples,
            seed=int(noise.seed),
            frame=int(noise.frame),
            sampler=noise.sampler,
            order=options.order or "pixel",
            near=options.near,
        )

    def decode(self, visibility: Visibility, scene: TorchScene, camera: Camera, options: RenderOptions) -> Observation:
        """Means over the samples."""
        return decode(visibility, scene.gaussians, camera, options)

    def denoise(
        self,
        denoiser: ConfiguredDenoiser,
        observation: Any,
        camera: Camera,
        state: Any,
        options: RenderOptions,
        with_views: bool = False,
    ) -> tuple[Any, Any]:
        """The passes of pipeline.py, or a baseline of baselines.py."""
        check_state_of(state, denoiser.name)
        if denoiser.layout.name != "temporal":
            if with_views:
                raise DenoiseError(f"{denoiser.name} has no views behind its picture.")
            return baselines.step(denoiser, observation.numpy(), camera, state)
        settings = denoiser.settings
        if not isinstance(settings, DenoiserSettings) or denoiser.weights is None:
            raise DenoiseError(f"{denoiser.name} needs weights and DenoiserSettings.")
        if not isinstance(observation, TensorObservation):
            observation = TensorObservation.from_numpy(observation.numpy(), self._dtype)
        with torch.no_grad(), _threads(options.threads):
            run = step if state is None else self._step  # a first frame comes once: not worth compiling
            image, after = run(self._with(denoiser), observation, camera, state, settings)
        return image, replace(after, method=denoiser.name)

    def draw_active_set(
        self,
        denoiser: ConfiguredDenoiser,
        scene: TorchScene,
        camera: Camera,
        noise: Noise,
        state: Any,
        options: RenderOptions,
    ) -> tuple[Any, Any]:
        """Not here: its limit is `reference`, and tests/engines/twin_active_set.py is its twin."""
        raise RenderError(f"the torch engine does not draw {denoiser.name}; use the cpu engine, or method reference.")

    def resize(self, state: Any, camera: Camera) -> Any:
        """A temporal state at another picture size with a short history; baselines start anew."""
        if (camera.height, camera.width) == tuple(state.values.shape[:2]):
            return state
        if state.layout.name != "temporal":
            return None
        return resized(state, camera)

    def render(
        self, scene: TorchScene, camera: Camera, method: str, options: RenderOptions, with_depth: bool = True
    ) -> Image:
        """`reference` or `exact`, every fragment held in memory."""
        if method not in ("reference", "exact"):
            raise RenderError(f"the torch engine blends reference and exact, not '{method}'.")
        draw = renderers.reference if method == "reference" else renderers.exact
        image = draw(scene.gaussians, camera, background=options.background, near=options.near)
        return image if with_depth else replace(image, depth=None)

    def finish(self) -> None:
        """Everything is done when a call returns."""

    def release_memory(self) -> None:
        """Nothing is pooled."""

    def _with(self, denoiser: ConfiguredDenoiser) -> DenoiserNetworks:
        """The networks with the weights of the denoiser."""
        if self._networks is None or self._networks[0] is not denoiser.weights:
            if denoiser.weights is None:
                raise DenoiseError(f"{denoiser.name} needs weights.")
            self._networks = denoiser.weights, DenoiserNetworks.from_weights(denoiser.weights).to(self._dtype)
        return self._networks[1]


@contextmanager
def _threads(count: int) -> Iterator[None]:
    """Let torch use this many threads in the block; 0 leaves its own choice."""
    before = torch.get_num_threads()
    torch.set_num_threads(count or before)
    try:
        yield
    finally:
        torch.set_num_threads(before)


ENGINE = TorchEngine
