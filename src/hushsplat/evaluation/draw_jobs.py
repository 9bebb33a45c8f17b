"""The first half of an evaluation: draw the scored frames, compare each with its target, store it as PNG."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import lru_cache
from pathlib import Path
from typing import Any

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
from hushsplat.jobs import store
from hushsplat.methods import configure
from hushsplat.scenes import scene_argument
from hushsplat.spec.views import view_picture
from hushsplat.spec.weights import DenoiserWeights
from hushsplat.stream import MethodLike, Stream
from hushsplat.types.camera import Camera
from hushsplat.types.image import Image, to_bytes
from hushsplat.types.metrics import psnr
from hushsplat.types.options import Noise, RenderOptions

Values = dict[str, list[float | None]]  # metric: one value for each frame
EXPECTED = Method("expected", "expected")  # the target, stored like the frames of a method
TEMPORAL_METRICS = ("tpsnr", "flicker")  # that also look at the frame before
DRAWN_METRICS = ("psnr", "ssim", "gradient_energy", *TEMPORAL_METRICS)
VIEWS = ("trust_s", "frames_s", "gate", "motion", "variance", "ellipse")  # that reports show of a learned denoiser
# Paper, figure of the two paths and their composition: after so many frames.
PATHS = {f"{view}-{count}": (view, count) for count in (4, 64) for view in ("accumulated", "denoised", "composite")}
BYTES_STORED = 16  # a pixel of a target, with its depth
MOST_STORED_BYTES = 2**31  # of one shot; every job of longer ones draws the targets anew
METHODS_PER_JOB = 6  # that share noisy frames: more would leave cores without work
BLOCK = 64  # samples of `mean` that are drawn at once


@dataclass(frozen=True)
class Drawing:
    """An uploaded scene and how it is drawn."""

    engine: Engine
    scene: Scene
    options: RenderOptions

    def stream(self, *methods: MethodLike, noise: Noise) -> Stream:
        """A stream of these methods, which see the same noisy frames."""
        scene = self.engine.with_payload(self.scene, None) if methods == ("raw",) else self.scene  # denoisers only
        return Stream(self.engine, scene, methods, noise=noise, options=self.options)

    def frame(self, method: MethodLike, camera: Camera, noise: Noise) -> Image:
        """One frame by itself."""
        return self.stream(method, noise=noise).step(camera).images[0].numpy()


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

    def run(self, folder: Path, threads: int) -> Values:
        """Each metric's values, one for each frame."""
        drawing = Drawing(*uploaded(self.shot.scene), RenderOptions(threads=threads, order=self.method.order))
        targets = Targets(self.shot, drawing, folder)
        if self.method == EXPECTED:
            for frame in self.frames:
                targets.store(frame)
                save_frame(picture_path(folder, self.shot, EXPECTED, frame), targets.at(frame).color)
            return {}
        if not self.method.is_independent:
            return drawn_together([self], folder, threads)[0]
        scored = _Scored(self, targets, folder)
        for frame, color in self._independent(drawing):
            scored.add(frame, color)
        return scored.values

    @property
    def configured(self) -> MethodLike:
        """What a stream takes."""
        return configure(
            self.method.name, weights=self.weights if self.method.is_learned else None, settings=self.method.settings
        )

    def shown_views(self, frame: int) -> dict[str, str]:
        """Intermediate results that reports show of this frame: name and view."""
        if not self.method.is_learned:
            return {}
        shown = dict(zip(VIEWS, VIEWS, strict=True)) if frame == self.shot.showcase else {}
        return shown | {name: view for name, (view, count) in PATHS.items() if count == frame + 1}

    def _independent(self, drawing: Drawing) -> Iterator[tuple[int, Array]]:
        """The scored frames and those before them that temporal metrics look at."""
        needed = set(self.frames)
        if set(TEMPORAL_METRICS) & set(self.metrics) and not self.method.samples:  # Ref. N would take as long again
            needed |= {frame - 1 for frame in self.frames if frame > 0}
        stream = None if self.method.samples else drawing.stream(self.method.name, noise=self.noise)
        for frame in sorted(needed):
            camera = self.shot.cameras[frame]
            if stream is None:
                yield frame, mean_of(drawing, camera, self.method.samples, self.noise.seed + frame, self.method.sampler)
            else:
                stream.number = frame
                yield frame, stream.step(camera).images[0].numpy().color


@dataclass(frozen=True)
class StreamsJob:
    """Jobs of several denoisers along one shot: each noisy frame is drawn once; outcomes are those of each alone."""

    parts: tuple[DrawJob, ...]  # of one shot, noise, order and length

    @property
    def cost(self) -> int:
        """Frames to draw, for a progress bar."""
        return sum(part.cost for part in self.parts)

    @property
    def group(self) -> SceneSource:
        """A worker keeps the scene that it drew last."""
        return self.parts[0].group

    @property
    def takes_all_cores(self) -> bool:
        """Several run side by side."""
        return False

    def files(self, folder: Path) -> list[Path]:
        """Those of all parts."""
        return [path for part in self.parts for path in part.files(folder)]

    def run(self, folder: Path, threads: int) -> dict[str, Any]:
        """Store the outcome of each part under its own name."""
        for part, values in zip(self.parts, drawn_together(self.parts, folder, threads), strict=True):
            store(part, folder, values)
        return {}


def joined(jobs: Sequence[DrawJob]) -> list[DrawJob | StreamsJob]:
    """The same work, with denoisers of the same noisy frames together."""
    alone: list[DrawJob | StreamsJob] = []
    groups: dict[tuple[Any, ...], list[DrawJob]] = {}
    for job in jobs:
        if job.method.takes_noisy_frames:
            groups.setdefault((id(job.shot), job.noise, job.method.order, max(job.frames)), []).append(job)
        else:
            alone.append(job)
    parts = []
    for group in groups.values():
        count = -(-len(group) // METHODS_PER_JOB)  # as few as needed, of nearly equal sizes
        parts += [tuple(group[len(group) * i // count : len(group) * (i + 1) // count]) for i in range(count)]
    return [*alone, *(StreamsJob(part) if len(part) > 1 else part[0] for part in parts)]


def drawn_together(jobs: Sequence[DrawJob], folder: Path, threads: int) -> list[Values]:
    """Every frame of the shot up to the last one that is scored, by methods with a state; the values of each job."""
    shot, noise, order = jobs[0].shot, jobs[0].noise, jobs[0].method.order
    drawing = Drawing(*uploaded(shot.scene), RenderOptions(threads=threads, order=order))
    targets = Targets(shot, drawing, folder)
    stream = drawing.stream(*(job.configured for job in jobs), noise=noise)
    scored = [_Scored(job, targets, folder) for job in jobs]
    for frame, camera in enumerate(shot.cameras[: max(jobs[0].frames) + 1]):
        shown = [job.shown_views(frame) for job in jobs]
        images = stream.step(camera, with_views=[bool(views) for views in shown]).images
        for job, one, handle, views in zip(jobs, scored, images, shown, strict=True):
            image = handle.numpy()
            if views:
                _save_views(folder, job, image, views)
            one.add(frame, image.color)
    return [one.values for one in scored]


class _Scored:
    """The values of a job, frame by frame as they are drawn."""

    def __init__(self, job: DrawJob, targets: Targets, folder: Path) -> None:
        self._job, self._targets, self._folder = job, targets, folder
        self._wanted = set(job.frames)
        self._previous: tuple[int, Float32[Array, "h w 3"]] | None = None
        self.values: Values = {metric: [] for metric in job.metrics}

    def add(self, frame: int, color: Float32[Array, "h w 3"]) -> None:
        """A frame that is scored is stored, too; others are what temporal metrics look back at."""
        if frame in self._wanted:
            save_frame(picture_path(self._folder, self._job.shot, self._job.method, frame), color)
            known = self._previous is not None and self._previous[0] == frame - 1
            before = self._previous[1] if known and self._previous is not None else None
            for metric, values in self.values.items():
                values.append(self._targets.compared(metric, frame, color, before))
        self._previous = (frame, color)


def _save_views(folder: Path, job: DrawJob, image: Image, shown: Mapping[str, str]) -> None:
    for name, of in shown.items():
        view = view_picture(image, of, job.method.settings)
        color = view.color
        if view.scale is not None:
            bar = view.scale.bar(BAR_WIDTH, 3 * BAR_HEIGHT if view.scale.wheel else BAR_HEIGHT)
            color = with_scale(color, view.scale.title, bar, view.scale.value)
        save_frame(view_path(folder, job.shot, job.method, name), color)


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
