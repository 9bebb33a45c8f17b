"""The first half of measuring: draw the frames that count, compare each with what should be seen, keep it as PNG."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from functools import lru_cache
from pathlib import Path
from typing import Any

import numpy as np
from jaxtyping import Float32
from numpy import ndarray as Array
from PIL import Image as Pillow

from hushsplat.engines.cpu.denoise_names import Denoiser, view_picture
from hushsplat.engines.cpu.render_names import RenderOptions, decode_color, render, render_sorted, sample_visibility
from hushsplat.evaluation.flicker import Warp, flicker
from hushsplat.evaluation.metrics import ssim
from hushsplat.evaluation.shots import Method, SceneSource, Shot
from hushsplat.io.atomic import atomic_write
from hushsplat.io.captures.capture import load_photograph
from hushsplat.io.images import to_bytes
from hushsplat.io.legend import BAR_HEIGHT, BAR_WIDTH, with_scale
from hushsplat.scenes import scene_argument
from hushsplat.spec.weights import DenoiserWeights
from hushsplat.stream import Noise, denoiser, observe
from hushsplat.types.camera import Camera
from hushsplat.types.gaussians import Gaussians
from hushsplat.types.image import Image
from hushsplat.types.metrics import psnr

EXPECTED = Method("expected", "expected")  # what should be seen, drawn like a method
DRAWN_METRICS = ("psnr", "ssim", "flicker")
VIEWS = ("trust_s", "frames_s", "gate", "motion", "variance", "ellipse")  # that reports show of a learned denoiser
BYTES_KEPT = 16  # a pixel of what should be seen, with its depth
MOST_KEPT_BYTES = 2**31  # of one shot; of longer ones every job draws anew what should be seen
BLOCK = 64  # samples of `mean` that are drawn at once


@dataclass(frozen=True)
class DrawJob:
    """One method on one shot, or on some frames of it; can be done by any worker in any order."""

    shot: Shot
    method: Method
    frames: tuple[int, ...]  # that count
    metrics: tuple[str, ...]  # of DRAWN_METRICS
    noise: Noise
    weights: DenoiserWeights | None = None  # of the learned methods

    @property
    def cost(self) -> int:
        """Frames to draw, for a progress bar."""
        return len(self.frames) if self.method.is_independent or self.method == EXPECTED else max(self.frames) + 1

    def pictures(self, folder: Path) -> list[Path]:
        """Where its frames are kept."""
        return [picture_path(folder, self.shot, self.method, frame) for frame in self.frames]

    def run(self, folder: Path, threads: int) -> dict[str, list[float | None]]:
        """Each metric's values, one for each frame."""
        scene = _scene(self.shot.scene)
        options = RenderOptions(threads=threads)
        truth = Truth(self.shot, scene, options, folder)
        if self.method == EXPECTED:
            for frame in self.frames:
                truth.keep(frame)
                _save(picture_path(folder, self.shot, EXPECTED, frame), truth.at(frame).color)
            return {}
        values: dict[str, list[float | None]] = {metric: [] for metric in self.metrics}
        previous: tuple[int, Float32[Array, "h w 3"]] | None = None
        for frame, color in self._drawn(folder, scene, options):
            if frame in self.frames:
                _save(picture_path(folder, self.shot, self.method, frame), color)
                before = previous[1] if previous is not None and previous[0] == frame - 1 else None
                for metric in self.metrics:
                    values[metric].append(truth.compared(metric, frame, color, before))
            previous = (frame, color)
        return values

    def _drawn(self, folder: Path, scene: Gaussians, options: RenderOptions) -> Iterator[tuple[int, Array]]:
        """The frames that count and those that flicker is measured against."""
        if self.method.is_independent:
            needed = set(self.frames)
            if "flicker" in self.metrics and not self.method.samples:  # Ref. N would cost as much again
                needed |= {frame - 1 for frame in self.frames if frame > 0}
            for frame in sorted(needed):
                yield frame, self._alone(scene, frame, options)
            return
        chosen, weights = self.method, self.weights if self.method.is_learned else None
        method = denoiser(chosen.name, weights=weights, config=chosen.config, threads=options.threads)
        yield from self._streamed(folder, scene, method, options)

    def _alone(self, scene: Gaussians, frame: int, options: RenderOptions) -> Float32[Array, "h w 3"]:
        camera = self.shot.cameras[frame]
        if self.method.samples:
            return mean_of(scene, camera, self.method.samples, self.noise.seed + frame, options)
        noise = replace(self.noise, frame=frame)
        if self.method.name == "raw":
            return observe(scene, camera, noise, options).color
        return render(scene, camera, self.method.name, options=options).color

    def _streamed(
        self, folder: Path, scene: Gaussians, method: Denoiser, options: RenderOptions
    ) -> Iterator[tuple[int, Array]]:
        state: Any = None
        for frame, camera in enumerate(self.shot.cameras[: max(self.frames) + 1]):
            observation = observe(scene, camera, replace(self.noise, frame=frame), options)
            with_views = self.method.is_learned and frame == self.shot.showcase
            found, state = method.step(observation, camera, state, with_views)
            if with_views:
                for name in VIEWS:
                    view = view_picture(found, name, self.method.config)
                    color = view.color
                    if view.scale is not None:
                        bar = view.scale.bar(BAR_WIDTH, 3 * BAR_HEIGHT if view.scale.wheel else BAR_HEIGHT)
                        color = with_scale(color, view.scale.title, bar, view.scale.value)
                    _save(view_path(folder, self.shot, self.method, name), color)
            yield frame, found.color


class Truth:
    """What should be seen: the photograph, or `reference` from the same camera."""

    def __init__(self, shot: Shot, scene: Gaussians, options: RenderOptions, folder: Path) -> None:
        self._shot, self._scene, self._options, self._folder = shot, scene, options, folder
        self._known: dict[int, tuple[Camera, Image]] = {}
        pixels = shot.cameras[0].width * shot.cameras[0].height
        self._is_kept = not shot.is_still and 2 * len(shot.measured) * pixels * BYTES_KEPT <= MOST_KEPT_BYTES

    def at(self, frame: int) -> Image:
        """The picture and its depth; of a photograph the depth is not known."""
        camera = self._shot.cameras[frame]
        known = self._known.get(id(camera))
        if known is None:
            while len(self._known) > 1:
                del self._known[next(iter(self._known))]
            known = self._known[id(camera)] = (camera, self._kept(frame) or self._drawn(camera))
        return known[1]

    def keep(self, frame: int) -> None:
        """Write a frame and the one before it for the methods that are compared with them, if there is room."""
        for index in {max(frame - 1, 0), frame} if self._is_kept else ():
            picture, path = self.at(index), self._path(index)
            path.parent.mkdir(parents=True, exist_ok=True)
            with atomic_write(path) as temporary:
                np.save(temporary, np.dstack([picture.color, picture.depth]), allow_pickle=False)

    def _kept(self, frame: int) -> Image | None:
        """A frame that was written, exactly as it would be drawn; None if it was not."""
        camera = self._shot.cameras[frame]
        if not self._is_kept or not self._path(frame).is_file():
            return None
        values = np.load(self._path(frame), allow_pickle=False)
        if values.shape != (camera.height, camera.width, 4) or values.dtype != np.float32:
            return None
        depth = np.ascontiguousarray(values[..., 3])
        return Image(np.ascontiguousarray(values[..., :3]), np.zeros_like(depth), depth)

    def _path(self, frame: int) -> Path:
        return picture_path(self._folder, self._shot, EXPECTED, frame).with_suffix(".npy")

    def compared(
        self, metric: str, frame: int, color: Float32[Array, "h w 3"], before: Float32[Array, "h w 3"] | None
    ) -> float | None:
        """One metric of one frame; `before` is the frame before it, if there is one."""
        expected = self.at(frame).color
        if metric == "psnr":
            return psnr(color, expected)
        if metric == "ssim":
            return ssim(color, expected)
        if before is None:
            return None
        was, now = self._shot.cameras[frame - 1], self._shot.cameras[frame]
        previous = self.at(frame - 1)
        if was is now:
            warp = Warp.still(*color.shape[:2])
        else:
            warp = Warp.between(was, now, previous.depth, self.at(frame).depth)
        return flicker(_error(color, expected), _error(before, previous.color), warp)

    def _drawn(self, camera: Camera) -> Image:
        if self._shot.photograph is None:
            return render_sorted(self._scene, camera, self._options)
        color, _ = load_photograph(self._shot.photograph, width=camera.width)
        empty = np.zeros(color.shape[:2], dtype=np.float32)
        return Image(color, empty, empty)


def mean_of(
    scene: Gaussians, camera: Camera, samples: int, seed: int, options: RenderOptions
) -> Float32[Array, "h w 3"]:
    """Ref. N: the mean of many independent samples at one pose."""
    total = np.zeros((camera.height, camera.width, 3))
    for block, start in enumerate(range(0, samples, BLOCK)):
        count = min(BLOCK, samples - start)
        visibility = sample_visibility(scene, camera, samples=count, seed=seed, frame=block, options=options)
        total += count * decode_color(visibility, scene, camera, options).astype(np.float64)
    return (total / samples).astype(np.float32)


def picture_path(folder: Path, shot: Shot, method: Method, frame: int) -> Path:
    """Where a frame is kept; what should be seen by a still camera is one picture for all of its frames."""
    number = 0 if method == EXPECTED and shot.is_still else frame
    return folder / "frames" / plain(shot.scene.name) / plain(shot.track) / plain(method.label) / f"{number:06d}.png"


def view_path(folder: Path, shot: Shot, method: Method, view: str) -> Path:
    """Where a view behind the showcase is kept."""
    return folder / "frames" / plain(shot.scene.name) / plain(shot.track) / plain(method.label) / f"{view}.png"


def plain(text: str) -> str:
    """A name that every file system takes."""
    return "".join(letter if letter.isalnum() or letter in "-_." else "_" for letter in text).lstrip(".") or "_"


@lru_cache(maxsize=1)
def _scene(source: SceneSource) -> Gaussians:
    """The scene that this worker measured last."""
    return scene_argument(source.text, source.lod).gaussians


def _error(color: Float32[Array, "h w 3"], expected: Float32[Array, "h w 3"]) -> Float32[Array, "h w 3"]:
    return np.clip(color, 0, 1) - np.clip(expected, 0, 1)


def _save(path: Path, color: Float32[Array, "h w 3"]) -> None:
    """Quickly rather than small: they are deleted in the end."""
    path.parent.mkdir(parents=True, exist_ok=True)
    with atomic_write(path) as temporary:
        Pillow.fromarray(to_bytes(color)).save(temporary, compress_level=1)
