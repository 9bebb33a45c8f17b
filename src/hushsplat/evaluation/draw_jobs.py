"""The first half of an evaluation: draw the scored frames, compare each with its target, store it as PNG."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from functools import lru_cache
from pathlib import Path

import numpy as np
from jaxtyping import Float32
from numpy import ndarray as Array
from PIL import Image as Pillow

from hushsplat.engines.base import Engine, Scene, engine
from hushsplat.evaluation.metrics import Warp, flicker, gradient_energy, ssim, tpsnr
from hushsplat.evaluation.shots import Method, SceneSource, Shot
from hushsplat.io.atomic import atomic_write
from hushsplat.io.captures.capture import load_photograph
from hushsplat.io.legend import BAR_HEIGHT, BAR_WIDTH, with_scale
from hushsplat.methods import configure
from hushsplat.scenes import scene_argument
from hushsplat.spec.views import view_picture
from hushsplat.spec.weights import DenoiserWeights
from hushsplat.stream import MethodLike, Stream
from hushsplat.types.camera import Camera
from hushsplat.types.image import Image, to_bytes
from hushsplat.types.metrics import psnr
from hushsplat.types.options import Noise, RenderOptions

EXPECTED = Method("expected", "expected")  # the target, stored like the frames of a method
TEMPORAL_METRICS = ("tpsnr", "flicker")  # that also look at the frame before
DRAWN_METRICS = ("psnr", "ssim", "gradient_energy", *TEMPORAL_METRICS)
VIEWS = ("trust_s", "frames_s", "gate", "motion", "variance", "ellipse")  # that reports show of a learned denoiser
# Paper, figure of the two paths and their composition: after so many frames.
PATHS = {f"{view}-{count}": (view, count) for count in (4, 64) for view in ("accumulated", "denoised", "composite")}
BYTES_STORED = 16  # a pixel of a target, with its depth
MOST_STORED_BYTES = 2**31  # of one shot; every job of longer ones draws the targets anew
BLOCK = 64  # samples of `mean` that are drawn at once


@dataclass(frozen=True)
class Drawing:
    """An uploaded scene and how it is drawn."""

    engine: Engine
    scene: Scene
    options: RenderOptions

    def stream(self, method: MethodLike, noise: Noise) -> Stream:
        """A stream of one method."""
        scene = self.engine.with_payload(self.scene, None) if method == "raw" else self.scene  # V0..V3: denoisers only
        return Stream(self.engine, scene, [method], noise=noise, options=self.options)

    def frame(self, method: MethodLike, camera: Camera, noise: Noise) -> Image:
        """One frame by itself."""
        return self.stream(method, noise).step(camera).images[0].numpy()


@dataclass(frozen=True)
class DrawJob:
    """One method on one shot, or on some frames of it; can run on any worker in any order."""

    shot: Shot
    method: Method
    frames: tuple[int, ...]  # that are scored
    metrics: tuple[str, ...]  # of DRAWN_METRICS
    noise: Noise
    weights: DenoiserWeights | None = None  # of the learned methods

    @property
    def cost(self) -> int:
        """Frames to draw, for a progress bar."""
        return len(self.frames) if self.method.is_independent or self.method == EXPECTED else max(self.frames) + 1

    @property
    def group(self) -> SceneSource:
        """A worker keeps the scene that it drew last."""
        return self.shot.scene

    @property
    def takes_all_cores(self) -> bool:
        """Several run side by side."""
        return False

    def files(self, folder: Path) -> list[Path]:
        """Where its frames are stored."""
        return [picture_path(folder, self.shot, self.method, frame) for frame in self.frames]

    def run(self, folder: Path, threads: int) -> dict[str, list[float | None]]:
        """Each metric's values, one for each frame."""
        drawing = Drawing(*uploaded(self.shot.scene), RenderOptions(threads=threads, order=self.method.order))
        targets = Targets(self.shot, drawing, folder)
        if self.method == EXPECTED:
            for frame in self.frames:
                targets.store(frame)
                save_frame(picture_path(folder, self.shot, EXPECTED, frame), targets.at(frame).color)
            return {}
        values: dict[str, list[float | None]] = {metric: [] for metric in self.metrics}
        previous: tuple[int, Float32[Array, "h w 3"]] | None = None
        for frame, color in self._drawn(folder, drawing):
            if frame in self.frames:
                save_frame(picture_path(folder, self.shot, self.method, frame), color)
                before = previous[1] if previous is not None and previous[0] == frame - 1 else None
                for metric in self.metrics:
                    values[metric].append(targets.compared(metric, frame, color, before))
            previous = (frame, color)
        return values

    def _drawn(self, folder: Path, drawing: Drawing) -> Iterator[tuple[int, Array]]:
        """The scored frames and those before them that temporal metrics look at."""
        return self._independent(drawing) if self.method.is_independent else self._streamed(folder, drawing)

    def _independent(self, drawing: Drawing) -> Iterator[tuple[int, Array]]:
        needed = set(self.frames)
        if set(TEMPORAL_METRICS) & set(self.metrics) and not self.method.samples:  # Ref. N would take as long again
            needed |= {frame - 1 for frame in self.frames if frame > 0}
        stream = None if self.method.samples else drawing.stream(self.method.name, self.noise)
        for frame in sorted(needed):
            camera = self.shot.cameras[frame]
            if stream is None:
                yield frame, mean_of(drawing, camera, self.method.samples, self.noise.seed + frame, self.method.sampler)
            else:
                stream.number = frame
                yield frame, stream.step(camera).images[0].numpy().color

    def _streamed(self, folder: Path, drawing: Drawing) -> Iterator[tuple[int, Array]]:
        """Every frame of the shot up to the last one that is scored."""
        weights = self.weights if self.method.is_learned else None
        stream = drawing.stream(configure(self.method.name, weights=weights, settings=self.method.settings), self.noise)
        for frame, camera in enumerate(self.shot.cameras[: max(self.frames) + 1]):
            shown = dict(zip(VIEWS, VIEWS, strict=True)) if frame == self.shot.showcase else {}
            shown |= {name: view for name, (view, count) in PATHS.items() if count == frame + 1}
            with_views = self.method.is_learned and bool(shown)
            image = stream.step(camera, with_views=with_views).images[0].numpy()
            if with_views:
                self._save_views(folder, image, shown)
            yield frame, image.color

    def _save_views(self, folder: Path, image: Image, shown: Mapping[str, str]) -> None:
        for name, of in shown.items():
            view = view_picture(image, of, self.method.settings)
            color = view.color
            if view.scale is not None:
                bar = view.scale.bar(BAR_WIDTH, 3 * BAR_HEIGHT if view.scale.wheel else BAR_HEIGHT)
                color = with_scale(color, view.scale.title, bar, view.scale.value)
            save_frame(view_path(folder, self.shot, self.method, name), color)


class Targets:
    """What the frames of a shot are compared with: the photograph, or `reference` from the same camera."""

    def __init__(self, shot: Shot, drawing: Drawing, folder: Path) -> None:
        self._shot, self._drawing, self._folder = shot, drawing, folder
        self._known: dict[int, tuple[Camera, Image]] = {}
        pixels = shot.cameras[0].width * shot.cameras[0].height
        self._is_stored = not shot.is_still and 2 * len(shot.scored) * pixels * BYTES_STORED <= MOST_STORED_BYTES

    def at(self, frame: int) -> Image:
        """The picture and its depth; of a photograph the depth is not known."""
        camera = self._shot.cameras[frame]
        known = self._known.get(id(camera))
        if known is None:
            while len(self._known) > 1:
                del self._known[next(iter(self._known))]
            known = self._known[id(camera)] = (camera, self._stored(frame) or self._drawn(camera))
        return known[1]

    def store(self, frame: int) -> None:
        """Write a target and the one before it for the other jobs, if they fit."""
        for index in {max(frame - 1, 0), frame} if self._is_stored else ():
            picture, path = self.at(index), self._path(index)
            path.parent.mkdir(parents=True, exist_ok=True)
            with atomic_write(path) as temporary:
                np.save(temporary, np.dstack([picture.color, _depth(picture)]), allow_pickle=False)

    def compared(
        self, metric: str, frame: int, color: Float32[Array, "h w 3"], before: Float32[Array, "h w 3"] | None
    ) -> float | None:
        """One metric of one frame; `before` is the frame before it, if there is one."""
        expected = self.at(frame).color
        if metric == "psnr":
            return psnr(color, expected)
        if metric == "ssim":
            return ssim(color, expected)
        if metric == "gradient_energy":
            return gradient_energy(color, expected)
        if before is None:
            return None
        was, now = self._shot.cameras[frame - 1], self._shot.cameras[frame]
        previous = self.at(frame - 1)
        errors = _error(color, expected), _error(before, previous.color)
        if metric == "tpsnr":
            return tpsnr(*errors)
        if was is now:
            warp = Warp.still(*color.shape[:2])
        else:
            warp = Warp.between(was, now, _depth(previous), _depth(self.at(frame)))
        return flicker(*errors, warp)

    def _stored(self, frame: int) -> Image | None:
        """A target that was written, exactly as it would be drawn; None if it was not."""
        camera = self._shot.cameras[frame]
        if not self._is_stored or not self._path(frame).is_file():
            return None
        values = np.load(self._path(frame), allow_pickle=False)
        if values.shape != (camera.height, camera.width, 4) or values.dtype != np.float32:
            return None
        return Image(np.ascontiguousarray(values[..., :3]), depth=np.ascontiguousarray(values[..., 3]))

    def _drawn(self, camera: Camera) -> Image:
        if self._shot.photograph is None:
            drawing = self._drawing
            if self._shot.target is not None:
                drawing = replace(drawing, scene=uploaded(self._shot.target)[1])
            return drawing.frame("reference", camera, Noise())
        return Image(load_photograph(self._shot.photograph, width=camera.width)[0])

    def _path(self, frame: int) -> Path:
        return picture_path(self._folder, self._shot, EXPECTED, frame).with_suffix(".npy")


def mean_of(
    drawing: Drawing, camera: Camera, samples: int, seed: int, sampler: str = "stratified"
) -> Float32[Array, "h w 3"]:
    """Ref. N: the mean of many independent samples at one pose."""
    total = np.zeros((camera.height, camera.width, 3))
    for block, start in enumerate(range(0, samples, BLOCK)):
        count = min(BLOCK, samples - start)
        total += count * drawing.frame("raw", camera, Noise(count, seed, block, sampler)).color.astype(np.float64)
    return (total / samples).astype(np.float32)


def picture_path(folder: Path, shot: Shot, method: Method, frame: int) -> Path:
    """Where a frame is stored; the target of a still camera is one picture for all of its frames."""
    number = 0 if method == EXPECTED and shot.is_still else frame
    return _method_folder(folder, shot, method) / f"{number:06d}.png"


def view_path(folder: Path, shot: Shot, method: Method, view: str) -> Path:
    """Where an intermediate result of the showcase frame is stored."""
    return _method_folder(folder, shot, method) / f"{view}.png"


def plain(text: str) -> str:
    """A name that every file system takes."""
    return "".join(letter if letter.isalnum() or letter in "-_." else "_" for letter in text).lstrip(".") or "_"


def _method_folder(folder: Path, shot: Shot, method: Method) -> Path:
    label = f"{method.label} seed {method.seed}" if method.seed else method.label
    return folder / "frames" / plain(shot.scene.name) / plain(shot.track) / plain(label)


@lru_cache(maxsize=2)
def uploaded(source: SceneSource) -> tuple[Engine, Scene]:
    """The scene that this worker drew last stays uploaded, and the one that it is compared with."""
    drawn_on = engine(source.engine, source.adapter)
    return drawn_on, drawn_on.upload(scene_argument(source.text, source.lod).gaussians)


def _depth(target: Image) -> Float32[Array, "h w"]:
    return np.zeros(target.color.shape[:2], dtype=np.float32) if target.depth is None else target.depth


def _error(color: Float32[Array, "h w 3"], expected: Float32[Array, "h w 3"]) -> Float32[Array, "h w 3"]:
    return np.clip(color, 0, 1) - np.clip(expected, 0, 1)


def save_frame(path: Path, color: Float32[Array, "h w 3"]) -> None:
    """Compressed quickly rather than well: most are deleted in the end."""
    path.parent.mkdir(parents=True, exist_ok=True)
    with atomic_write(path) as temporary:
        Pillow.fromarray(to_bytes(color)).save(temporary, compress_level=1)
