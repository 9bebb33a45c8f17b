"""Single drawings with the CPU engine, of Gaussians that are uploaded for the call or of an uploaded scene."""

from __future__ import annotations

import numpy as np

from hushsplat.engines.cpu import engine as cpu
from hushsplat.engines.cpu.engine import CpuEngine, CpuScene
from hushsplat.spec.denoisers import ConfiguredDenoiser
from hushsplat.spec.settings import DenoiserSettings
from hushsplat.spec.state import TEMPORAL, State
from hushsplat.spec.weights import DenoiserWeights
from hushsplat.types.camera import Camera
from hushsplat.types.gaussians import Gaussians
from hushsplat.types.image import Image
from hushsplat.types.observation import Observation, Visibility
from hushsplat.types.options import Noise, RenderOptions

ENGINE = CpuEngine()
DEFAULTS = RenderOptions()


def uploaded(scene: Gaussians | CpuScene, options: RenderOptions = DEFAULTS) -> CpuScene:
    return scene if isinstance(scene, CpuScene) else ENGINE.upload(scene, options)


def sample_visibility(
    scene: Gaussians | CpuScene,
    camera: Camera,
    *,
    samples: int = 1,
    seed: int = 0,
    frame: int = 0,
    sampler: str = "independent",
    options: RenderOptions = DEFAULTS,
) -> Visibility:
    return ENGINE.sample(uploaded(scene, options), camera, Noise(samples, seed, frame, sampler), options)


def decode(
    visibility: Visibility, scene: Gaussians | CpuScene, camera: Camera, options: RenderOptions = DEFAULTS
) -> Observation:
    return ENGINE.decode(visibility, uploaded(scene, options), camera, options)


def decode_color(
    visibility: Visibility, scene: Gaussians | CpuScene, camera: Camera, options: RenderOptions = DEFAULTS
) -> np.ndarray:
    return cpu.decode_color(visibility, uploaded(scene, options), camera, options)


def observe(
    scene: Gaussians | CpuScene, camera: Camera, frame: int = 0, options: RenderOptions = DEFAULTS
) -> Observation:
    drawn = uploaded(scene, options)
    return decode(sample_visibility(drawn, camera, frame=frame, options=options), drawn, camera, options)


def denoise_step(
    observation: Observation,
    camera: Camera,
    state: State | None,
    *,
    weights: DenoiserWeights,
    settings: DenoiserSettings = DenoiserSettings(),  # noqa: B008  (frozen)
    threads: int = 0,
    with_views: bool = False,
) -> tuple[Image, State]:
    configured = ConfiguredDenoiser("temporal", TEMPORAL, settings, weights)
    return ENGINE.denoise(configured, observation, camera, state, RenderOptions(threads=threads), with_views)


def render_reference(
    scene: Gaussians | CpuScene, camera: Camera, options: RenderOptions = DEFAULTS, *, with_depth: bool = True
) -> Image:
    return ENGINE.render(uploaded(scene, options), camera, "reference", options, with_depth)


def render_exact(
    scene: Gaussians | CpuScene, camera: Camera, options: RenderOptions = DEFAULTS, *, with_depth: bool = True
) -> Image:
    return ENGINE.render(uploaded(scene, options), camera, "exact", options, with_depth)
