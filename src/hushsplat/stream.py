"""A scene and a moving camera in, pictures out: any method, or several side by side on the identical noisy stream."""

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Any

from hushsplat.engines.cpu.denoise_names import LEARNED, Denoiser, HushConfig
from hushsplat.engines.cpu.denoise_names import METHODS as DENOISERS
from hushsplat.engines.cpu.denoise_names import denoiser as denoiser_by_name
from hushsplat.engines.cpu.render_names import METHODS as RENDERERS
from hushsplat.engines.cpu.render_names import RenderOptions, decode, render, sample_visibility
from hushsplat.io.weights import default_weights, read_weights
from hushsplat.spec.weights import HushWeights
from hushsplat.types.camera import Camera
from hushsplat.types.errors import RenderError
from hushsplat.types.frame import Frame
from hushsplat.types.gaussians import Gaussians
from hushsplat.types.observation import Observation
from hushsplat.types.track import Track

METHODS = (*RENDERERS, *DENOISERS)
BLENDED = ("reference", "exact")  # renderers that take no samples


@dataclass(frozen=True)
class Noise:
    """How the samples of the stream are drawn."""

    samples: int = 1  # per pixel and frame
    seed: int = 0  # another seed, another noise
    frame: int = 0  # number of the first frame; each has its own noise
    sampler: str = "independent"  # or stratified: how the samples of many frames relate


def play(
    scene: Gaussians,
    cameras: Track | Iterable[Camera],
    method: str | Denoiser = "hush",  # a name of METHODS, or a denoiser with weights and settings of your own
    *,
    noise: Noise | None = None,
    options: RenderOptions | None = None,
    with_views: bool = False,  # of hush: also give what lies behind each picture
) -> Iterator[Frame]:
    """One frame for each camera, by a denoiser that remembers the frames before, or by a renderer."""
    frames = play_side_by_side(scene, cameras, [method], noise=noise, options=options, with_views=with_views)
    return (frame for (frame,) in frames)


def play_side_by_side(
    scene: Gaussians,
    cameras: Track | Iterable[Camera],
    methods: Sequence[str | Denoiser],
    *,
    noise: Noise | None = None,
    options: RenderOptions | None = None,
    with_views: bool = False,
) -> Iterator[list[Frame]]:
    """One frame of each method for each camera; all denoisers see the same noisy frames."""
    options = options or RenderOptions()
    chosen = [_chosen(method, options.threads) for method in methods]  # now, not when the first frame is asked for
    return _frames(scene, cameras, chosen, noise or Noise(), options, with_views)


def denoiser(
    name: str,
    *,
    weights: HushWeights | str | os.PathLike[str] | None = None,  # of hush; None: those of the package
    config: HushConfig | None = None,  # of hush
    threads: int = 0,  # workers, 0: all cores
) -> Denoiser:
    """A denoiser for any stochastic renderer: `frame, state = it.step(observation, camera, state)`."""
    if name not in LEARNED:
        return denoiser_by_name(name, config=config, threads=threads)
    return denoiser_by_name(name, weights=weights_of(weights), config=config, threads=threads)


def weights_of(weights: HushWeights | str | os.PathLike[str] | None) -> HushWeights:
    """Weights as they are, from a file, or those of the package."""
    if weights is None:
        return default_weights()
    return weights if isinstance(weights, HushWeights) else read_weights(weights)


def observe(scene: Gaussians, camera: Camera, noise: Noise, options: RenderOptions) -> Observation:
    """One noisy frame of the stream."""
    visibility = sample_visibility(
        scene,
        camera,
        samples=noise.samples,
        seed=noise.seed,
        frame=noise.frame,
        sampler=noise.sampler,
        options=options,
    )
    return decode(visibility, scene, camera, options)


class Raw:
    """The stream as it is, behind the same door as the denoisers."""

    def step(self, observation: Observation, camera: Camera, state: Any, with_views: bool = False) -> tuple[Frame, Any]:
        """The frame's own colour; nothing is kept."""
        return Frame(observation.color), None


def _chosen(method: str | Denoiser, threads: int) -> str | Denoiser:
    """Renderers that blend stay names, everything that takes the stream becomes a denoiser."""
    if not isinstance(method, str) or method in BLENDED:
        return method
    if method not in METHODS:
        raise RenderError(f"method must be one of {', '.join(METHODS)}, got '{method}'.")
    return Raw() if method == "raw" else denoiser(method, threads=threads)


def _frames(
    scene: Gaussians,
    cameras: Track | Iterable[Camera],
    methods: Sequence[str | Denoiser],  # as _chosen gives them
    noise: Noise,
    options: RenderOptions,
    with_views: bool,
) -> Iterator[list[Frame]]:
    if isinstance(cameras, Track):
        cameras = map(cameras.camera, range(len(cameras)))
    streaming = {which: method for which, method in enumerate(methods) if not isinstance(method, str)}
    states: dict[int, Any] = dict.fromkeys(streaming)
    for index, camera in enumerate(cameras):
        frames: dict[int, Frame] = {}
        if streaming:
            observation = observe(scene, camera, replace(noise, frame=noise.frame + index), options)
        for which, method in streaming.items():
            frames[which], states[which] = method.step(observation, camera, states[which], with_views)
        for which, name in enumerate(methods):
            if isinstance(name, str):
                frames[which] = Frame(render(scene, camera, name, options=options).color)
        yield [frames[which] for which in range(len(methods))]
