"""The registry of methods: names, kinds, settings and the payload policy, the same in every command, table and page."""

from __future__ import annotations

import os
from collections.abc import Iterable
from dataclasses import dataclass, fields, replace
from typing import Any, Literal, Protocol, runtime_checkable

from hushsplat.engines.base import Engine, engine
from hushsplat.io.weights import default_weights, read_weights
from hushsplat.spec.denoisers import ConfiguredDenoiser
from hushsplat.spec.settings import (
    LITERAL_SVGF,
    PAPER,
    QUALITY,
    SORTED,
    TUNED_SVGF,
    ActiveSetSettings,
    DenoiserSettings,
    MeanSettings,
    StTaaSettings,
    SvgfSettings,
    TaaSettings,
)
from hushsplat.spec.state import ACTIVE_SET, MEAN, ST_TAA, SVGF, TAA, TEMPORAL, StateLayout
from hushsplat.spec.weights import DenoiserWeights
from hushsplat.types.camera import Camera
from hushsplat.types.errors import DenoiseError, RenderError
from hushsplat.types.options import RenderOptions
from hushsplat.types.settings import Settings

WeightsLike = DenoiserWeights | str | os.PathLike[str]


@dataclass(frozen=True)
class Method:
    """What is known about a method.

    Attributes:
        name: as every command, table and page calls it.
        kind: blended (each frame by itself, no noise), streaming (takes the stochastic stream), or active (finds and
            blends the Gaussians that matter, frame after frame).
        summary: one line for menus and help.
        settings: its defaults; None where there is nothing to set.
        layout: of its state; None where it keeps nothing.
        weights: those of the package that it takes if no others are given; None where nothing is learned.
        fallback: what draws a scene without payload, for a method that needs one.
    """

    name: str
    kind: Literal["blended", "streaming", "active"]
    summary: str
    settings: Settings | None = None
    layout: StateLayout | None = None
    weights: str | None = None
    fallback: str | None = None

    @property
    def is_denoiser(self) -> bool:
        """It takes noisy frames and keeps a state from frame to frame."""
        return self.kind == "streaming" and self.layout is not None

    @property
    def learned(self) -> bool:
        """It takes weights and has views."""
        return self.weights is not None

    @property
    def needs_payload(self) -> bool:
        """Without a payload its fallback draws."""
        return self.fallback is not None


METHODS: dict[str, Method] = {
    method.name: method
    for method in (
        Method(
            "hush",
            "active",
            "only the Gaussians that were seen and still matter are sorted and blended; limit: reference",
            ActiveSetSettings(),
            ACTIVE_SET,
        ),
        Method("hush-fast", "active", "hush, a little less exact and faster", QUALITY["fast"], ACTIVE_SET),
        Method("hush-best", "active", "hush, no difference to reference that can be seen", QUALITY["best"], ACTIVE_SET),
        Method("raw", "streaming", "one stochastic sample per pixel, no sorting, no denoising"),
        Method("exact", "blended", "sorted in every pixel: the expectation of raw"),
        Method("reference", "blended", "sorted by the depth of the centres and blended: vanilla 2DGS and 3DGS"),
        Method(
            "sorted",
            "active",
            "reference with a bounded error: all Gaussians, less what the last frame says is hidden",
            SORTED,
            ACTIVE_SET,
        ),
        Method("mean", "streaming", "mean over the frames of a still camera (Ref. N)", MeanSettings(), MEAN),
        Method("st-taa", "streaming", "forward-warped running mean of StochasticSplats", StTaaSettings(), ST_TAA),
        Method("taa", "streaming", "temporal anti-aliasing with variance clipping", TaaSettings(), TAA),
        Method("svgf", "streaming", "SVGF as the paper adapted it, short histories averaged", SvgfSettings(), SVGF),
        Method(
            "svgf-literal", "streaming", "SVGF in the paper's words: alpha is 0.02 at any length", LITERAL_SVGF, SVGF
        ),
        Method("svgf-tuned", "streaming", "SVGF with constants tuned for the stream", TUNED_SVGF, SVGF),
        Method(
            "paper",
            "streaming",
            "the paper's denoiser, for scenes with a payload; others are drawn zero-shot",
            PAPER,
            TEMPORAL,
            weights="paper",
            fallback="paper-zero-shot",
        ),
        Method(
            "paper-zero-shot",
            "streaming",
            "the paper's denoiser for any scene",
            replace(PAPER, zero_shot=True),
            TEMPORAL,
            weights="paper",
        ),
        Method(
            "temporal",
            "streaming",
            "the paper's denoiser improved for low frame rates, for scenes with a payload; others are drawn zero-shot",
            DenoiserSettings(),
            TEMPORAL,
            weights="temporal",
            fallback="temporal-zero-shot",
        ),
        Method(
            "temporal-zero-shot",
            "streaming",
            "temporal for any scene",
            DenoiserSettings(zero_shot=True),
            TEMPORAL,
            weights="temporal",
        ),
    )
}
BLENDED = tuple(name for name, method in METHODS.items() if method.kind == "blended")
DENOISERS = tuple(name for name, method in METHODS.items() if method.is_denoiser)
ACTIVE = tuple(name for name, method in METHODS.items() if method.kind == "active")
LEARNED = tuple(name for name, method in METHODS.items() if method.learned)


@runtime_checkable
class Denoiser(Protocol):
    """What every denoiser does; each has a state of its own, None on the first frame."""

    def step(self, observation: Any, camera: Camera, state: Any, with_views: bool = False) -> tuple[Any, Any]:
        """One frame of the stream, denoised, and the state for the next one; a pure function of its inputs."""


@dataclass(frozen=True)
class EngineDenoiser:
    """A configured denoiser on an engine."""

    configured: ConfiguredDenoiser
    engine: Engine
    options: RenderOptions

    def step(self, observation: Any, camera: Camera, state: Any, with_views: bool = False) -> tuple[Any, Any]:
        """One frame: the image and the state for the next one.

        Args:
            observation: the noisy frame: an engine's, or `hushsplat.Observation` of your own arrays.
            camera: that it was drawn with.
            state: what the frame before returned; None to start.
            with_views: also give the intermediate results (learned denoisers only).

        Returns:
            The denoised `Image` and the state to pass with the next frame.
        """
        configured = for_payload(self.configured, observation.neural_view is not None)
        return self.engine.denoise(configured, observation, camera, state, self.options, with_views)


def method(name: str) -> Method:
    """The method of that name."""
    if name not in METHODS:
        raise RenderError(f"method must be one of {', '.join(METHODS)}, got '{name}'.")
    return METHODS[name]


def drawn_by(name: str, has_payload: bool) -> Method:
    """The method that draws a scene when `name` is asked for: its fallback where a payload is needed and missing."""
    asked = method(name)
    return METHODS[asked.fallback] if asked.fallback is not None and not has_payload else asked


def for_payload(configured: ConfiguredDenoiser, has_payload: bool) -> ConfiguredDenoiser:
    """The same denoiser, zero-shot where the scene has no payload."""
    settings = configured.settings
    if has_payload or not isinstance(settings, DenoiserSettings) or settings.zero_shot:
        return configured
    return replace(configured, settings=replace(settings, zero_shot=True))


def configure(name: str, *, weights: WeightsLike | None = None, settings: Settings | None = None) -> ConfiguredDenoiser:
    """A denoiser with its weights and settings, ready for an engine.

    Args:
        name: of a denoiser.
        weights: of a learned one: as they are, or a file; None takes those of the package.
        settings: of its own kind; None takes its defaults.
    """
    if name not in (*DENOISERS, *ACTIVE):
        raise DenoiseError(f"a denoiser is one of {', '.join(DENOISERS)}, got '{name}'.")
    found = METHODS[name]
    if found.layout is None or found.settings is None:
        raise DenoiseError(f"{name} keeps no state.")
    chosen = found.settings if settings is None else settings
    if type(chosen) is not type(found.settings):
        raise DenoiseError(
            f"{name} takes {type(found.settings).__name__}, got {type(chosen).__name__}; "
            f"those belong to {', '.join(_methods_with(type(chosen))) or 'no method'}."
        )
    if weights is not None and not found.learned:
        raise DenoiseError(f"{name} has no weights; they belong to {', '.join(LEARNED)}.")
    if isinstance(chosen, DenoiserSettings) and not found.needs_payload:
        chosen = replace(chosen, zero_shot=True)
    return ConfiguredDenoiser(name, found.layout, chosen, weights_of(weights, name) if found.learned else None)


def adjusted(name: str, changes: DenoiserSettings) -> DenoiserSettings:
    """A learned method's own settings, but for what differs from the defaults in `changes`."""
    own = METHODS[name].settings
    if not isinstance(own, DenoiserSettings):
        raise DenoiseError(f"{name} has no settings of the denoiser; they belong to {', '.join(LEARNED)}.")
    defaults = DenoiserSettings()
    differing = {each.name: getattr(changes, each.name) for each in fields(changes)}
    return replace(own, **{key: value for key, value in differing.items() if value != getattr(defaults, key)})


def denoiser(
    name: str,
    *,
    weights: WeightsLike | None = None,
    settings: Settings | None = None,
    options: RenderOptions | None = None,
    on: str | Engine = "cpu",
) -> Denoiser:
    """A denoiser for any stochastic renderer: `image, state = it.step(observation, camera, state)`.

    Args:
        name: mean, st-taa, taa, svgf, svgf-literal, svgf-tuned, paper, paper-zero-shot, temporal or temporal-zero-shot.
        weights: of a learned one: `DenoiserWeights` or a .safetensors file; None takes those of the package.
        settings: of its kind, such as `DenoiserSettings`; None takes its defaults.
        options: `threads` is used.
        on: the engine, or its name.
    """
    if name in ACTIVE:
        raise DenoiseError(
            f"{name} draws from the scene, not from noisy frames; use hushsplat.play or hushsplat.Stream."
        )
    configured = configure(name, weights=weights, settings=settings)
    return EngineDenoiser(configured, engine(on) if isinstance(on, str) else on, options or RenderOptions())


def weights_of(weights: WeightsLike | None, name: str) -> DenoiserWeights:
    """Weights as they are, from a file, or the package's own for the learned method of that name."""
    if weights is None:
        own = method(name).weights
        if own is None:
            raise DenoiseError(f"{name} has no weights; they belong to {', '.join(LEARNED)}.")
        return default_weights(own)
    return weights if isinstance(weights, DenoiserWeights) else read_weights(weights)


def _methods_with(kind: type[Settings]) -> Iterable[str]:
    return [name for name, found in METHODS.items() if type(found.settings) is kind]
