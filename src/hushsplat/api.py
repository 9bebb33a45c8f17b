"""The functions that most programs need: upload, render, play."""

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator, Sequence

from hushsplat.engines.base import ENGINES, Engine, Scene, engine
from hushsplat.engines.base import Image as Handle
from hushsplat.home import frame_scene
from hushsplat.methods import method
from hushsplat.scenes import scene_argument
from hushsplat.spec.denoisers import ConfiguredDenoiser
from hushsplat.stream import MethodLike, Stream
from hushsplat.types.camera import Camera
from hushsplat.types.errors import RenderError
from hushsplat.types.framing import fitting_near
from hushsplat.types.gaussians import Gaussians
from hushsplat.types.image import Image
from hushsplat.types.options import Noise, RenderOptions
from hushsplat.types.track import Track

STILL_FRAMES = 64  # of a still camera: after these a denoiser has hardly any noise left
SceneLike = Gaussians | Scene | str | os.PathLike[str]
EngineLike = str | Engine


def upload(scene: Gaussians | str | os.PathLike[str], *, on: EngineLike = "cpu") -> Scene:
    """Prepare a scene for drawing many times; `render` and `play` take it in place of the Gaussians.

    Args:
        scene: Gaussians, a file, `synth:500k` or `demo:`.
        on: the engine, or its name.

    Returns:
        The engine's scene. It shares the arrays of the Gaussians, which are read-only.
    """
    return _engine_of(on).upload(_gaussians(scene))


def render(
    scene: SceneLike,
    camera: Camera | None = None,
    method: MethodLike = "reference",
    *,
    frames: int | None = None,
    noise: Noise | None = None,
    options: RenderOptions | None = None,
    with_views: bool = False,
    on: EngineLike = "cpu",
) -> Image:
    """Draw one picture with any method.

    Args:
        scene: Gaussians, an uploaded scene, a file, `synth:500k` or `demo:`.
        camera: to look from; None frames the scene (800×532 px; needs Gaussians or a file).
        method: a name of `hushsplat.methods.METHODS`, or a denoiser with settings of your own.
        frames: how many noisy frames a denoiser sees of the still camera; 64 if not given, 1 for renderers.
        noise: samples, seed, first frame and sampler of what is stochastic.
        options: background, near plane, threads, order of fragments.
        with_views: also give a learned denoiser's intermediate results.
        on: the engine, or its name.

    Returns:
        The image as numpy arrays.
    """
    count = _still_frames(method) if frames is None else frames
    if count < 1:
        raise RenderError(f"frames must be at least 1, got {count}.")
    if isinstance(scene, (str, os.PathLike)):
        scene = _gaussians(scene)
    drawing = _engine_of(on)
    if camera is None:
        if isinstance(scene, Gaussians):
            options = fitting_near(scene, options or RenderOptions())
        camera = frame_scene(scene, on=drawing, options=options)
    stream = Stream(drawing, _uploaded(scene, drawing), [method], noise=noise, options=options)
    for _ in range(count - 1):
        stream.step(camera)
    return stream.step(camera, with_views=with_views).images[0].numpy()


def play(
    scene: SceneLike,
    cameras: Track | Iterable[Camera],
    method: MethodLike = "hush",
    *,
    noise: Noise | None = None,
    options: RenderOptions | None = None,
    with_views: bool = False,
    on: EngineLike = "cpu",
) -> Iterator[Image]:
    """One image for each camera of a track.

    Args:
        scene: Gaussians, an uploaded scene, a file, `synth:500k` or `demo:`. One without payload is drawn zero-shot by
            methods that need one.
        cameras: a track, or cameras one after the other.
        method: a name of `hushsplat.methods.METHODS`, or a denoiser with settings of your own.
        noise: samples, seed, first frame and sampler of the stream.
        options: background, near plane, threads, order of fragments.
        with_views: also give a learned denoiser's intermediate results.
        on: the engine, or its name.

    Returns:
        An iterator over the images as numpy arrays.
    """
    played = play_side_by_side(scene, cameras, [method], noise=noise, options=options, with_views=with_views, on=on)
    return (image for (image,) in played)


def play_side_by_side(
    scene: SceneLike,
    cameras: Track | Iterable[Camera],
    methods: Sequence[MethodLike],
    *,
    noise: Noise | None = None,
    options: RenderOptions | None = None,
    with_views: bool = False,
    on: EngineLike = "cpu",
) -> Iterator[list[Image]]:
    """One image of each method for each camera; all denoisers see the same noisy frames. See `play`."""
    drawn = draw_side_by_side(scene, cameras, methods, noise=noise, options=options, with_views=with_views, on=on)
    return ([image.numpy() for image in images] for images in drawn)


def draw_side_by_side(
    scene: SceneLike,
    cameras: Track | Iterable[Camera],
    methods: Sequence[MethodLike],
    *,
    noise: Noise | None = None,
    options: RenderOptions | None = None,
    with_views: bool = False,
    on: EngineLike = "cpu",
) -> Iterator[tuple[Handle, ...]]:
    """The same as handles of the engine: nothing is read back before `.numpy()` or `.pixels()`."""
    drawing = _engine_of(on)
    stream = Stream(drawing, _uploaded(scene, drawing), methods, noise=noise, options=options)  # now: errors come first
    if isinstance(cameras, Track):
        cameras = map(cameras.camera, range(len(cameras)))
    return (stream.step(camera, with_views=with_views).images for camera in cameras)


def _engine_of(on: EngineLike) -> Engine:
    return engine(on) if isinstance(on, str) else on


def _gaussians(scene: Gaussians | str | os.PathLike[str]) -> Gaussians:
    return scene if isinstance(scene, Gaussians) else scene_argument(os.fspath(scene)).gaussians


def _uploaded(scene: SceneLike, drawing: Engine) -> Scene:
    """The scene on the engine; one that is there already is used as it is."""
    if isinstance(scene, (Gaussians, str, os.PathLike)):
        return drawing.upload(_gaussians(scene))
    return scene


def _still_frames(chosen: MethodLike) -> int:
    if isinstance(chosen, str):
        return STILL_FRAMES if method(chosen).is_denoiser else 1
    if isinstance(chosen, ConfiguredDenoiser):
        return STILL_FRAMES if method(chosen.name).is_denoiser else 1
    return STILL_FRAMES


__all__ = ["ENGINES", "STILL_FRAMES", "draw_side_by_side", "play", "play_side_by_side", "render", "upload"]
