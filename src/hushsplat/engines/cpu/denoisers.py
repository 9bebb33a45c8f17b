"""One door to all denoisers, by the names that every command, table and page uses."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from typing import Any, Protocol, runtime_checkable

from hushsplat.engines.cpu import pipeline
from hushsplat.engines.cpu.baselines import BASELINES
from hushsplat.spec.settings import HushConfig
from hushsplat.spec.weights import HushWeights
from hushsplat.types.camera import Camera
from hushsplat.types.errors import DenoiseError
from hushsplat.types.frame import Frame
from hushsplat.types.observation import Observation

LEARNED = ("hush", "hush-zero-shot")  # these take weights and settings, and have views
METHODS = (*BASELINES, *LEARNED)


@runtime_checkable
class Denoiser(Protocol):
    """What every denoiser does; each has a state of its own, None on the first frame."""

    def step(self, observation: Observation, camera: Camera, state: Any, with_views: bool = False) -> tuple[Frame, Any]:
        """One frame of the stream, denoised, and the state for the next one; a pure function of its inputs."""


def denoiser(
    name: str,
    *,
    weights: HushWeights | None = None,  # of the learned ones, which cannot do without
    config: HushConfig | None = None,  # of the learned ones
    threads: int = 0,  # workers, 0: all cores
) -> Denoiser:
    """A denoiser by its name; `hush` needs scenes with a payload, `hush-zero-shot` takes any."""
    if name in BASELINES:
        if config is not None:
            raise DenoiseError(f"{name} has no settings; they belong to {' and '.join(LEARNED)}.")
        return Baseline(name, threads)
    if name not in LEARNED:
        raise DenoiseError(f"a denoiser is one of {', '.join(METHODS)}, got '{name}'.")
    if weights is None:
        raise DenoiseError(f"{name} needs weights; hushsplat.denoiser('{name}') brings those of the package.")
    config = config or HushConfig()
    return Hush(weights, replace(config, zero_shot=True) if name == "hush-zero-shot" else config, threads)


@dataclass(frozen=True)
class Hush:
    """The learned denoiser."""

    weights: HushWeights = field(repr=False)
    config: HushConfig
    threads: int

    def step(self, observation: Observation, camera: Camera, state: Any, with_views: bool = False) -> tuple[Frame, Any]:
        """One frame, see docs/denoiser.md."""
        if observation.neural_view is None and not self.config.zero_shot:
            raise DenoiseError("hush needs a scene with a payload, and this one has none; use hush-zero-shot.")
        return pipeline.step(
            observation,
            camera,
            state,
            weights=self.weights,
            config=self.config,
            threads=self.threads,
            with_views=with_views,
        )


@dataclass(frozen=True)
class Baseline:
    """One of the denoisers that ours is compared with."""

    name: str
    threads: int

    def step(self, observation: Observation, camera: Camera, state: Any, with_views: bool = False) -> tuple[Frame, Any]:
        """One frame, see denoise/baselines/."""
        if with_views:
            raise DenoiseError(f"{self.name} has no views behind its picture; {' and '.join(LEARNED)} have.")
        return BASELINES[self.name](observation, camera, state, threads=self.threads)
