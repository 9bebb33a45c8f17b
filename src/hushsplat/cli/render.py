"""`hushsplat render`: a scene and a camera in, pictures or a video out."""

from __future__ import annotations

import shutil
import time
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Annotated, Literal

import numpy as np
import tyro

from hushsplat.api import STILL_FRAMES, draw_side_by_side
from hushsplat.cli.cameras import Cameras
from hushsplat.cli.console import bytes_text, print_error, progress_bar, say, status
from hushsplat.cli.flags import (
    BACKGROUNDS,
    Color,
    EngineName,
    Flag,
    Force,
    MaybeInt,
    MaybeOrder,
    MaybePath,
    MaybeText,
    OutputPath,
    SceneName,
    choose_instruction_set,
    chosen_engine,
)
from hushsplat.engines.base import Engine, Image
from hushsplat.evaluation.frame_jobs import FrameJob, frame_jobs, side_by_side
from hushsplat.evaluation.shots import SceneSource
from hushsplat.io.frames import check_frames_output, frame_writer
from hushsplat.io.legend import BAR_HEIGHT, BAR_WIDTH, with_label, with_scale
from hushsplat.io.video import DEFAULT_CRF
from hushsplat.io.weights import read_weights
from hushsplat.jobs import executor, run_jobs
from hushsplat.methods import DENOISERS, LEARNED, METHODS, adjusted, configure, drawn_by
from hushsplat.scenes import NamedScene, scene_argument, scene_stamp
from hushsplat.spec.denoisers import ConfiguredDenoiser
from hushsplat.spec.sampling import SAMPLERS
from hushsplat.spec.settings import DenoiserSettings
from hushsplat.spec.views import SHOWN, view_picture
from hushsplat.types.camera import Camera
from hushsplat.types.errors import HushsplatError
from hushsplat.types.framing import fitting_near
from hushsplat.types.image import Pixels
from hushsplat.types.options import NEAR, Noise, RenderOptions
from hushsplat.types.track import Track
from hushsplat.types.up import guess_up, up_text

DESCRIPTION = f"""Draw a scene, as a picture or along a track.

Methods:

{chr(10).join(f"  {name:<14}  {method.summary}" for name, method in METHODS.items())}

`raw` and what denoises it draw --samples per pixel and frame. Denoisers accumulate previous frames; of a still camera
they see --frames.

Where to look from: nothing (the best of many small pictures), --capture, --track, --walk or --orbit.

What to write: .png .jpg .webp .npy for a picture; .mp4, or a pattern such as frames/%04d.png, for a track.

Examples of use:
  hushsplat render synth:500k -o room.png --method raw
  hushsplat render garden.ply -o garden.jpg --width 1600 --background white --up z
  hushsplat render bonsai.splat -o view.png --capture bonsai/ --view 12
  hushsplat render garden.ply -o orbit.mp4 --orbit --seconds 10 --method temporal
  hushsplat render synth:500k -o walk.mp4 --walk --compare raw,temporal,reference
  hushsplat render synth:500k -o trust.mp4 --walk --method temporal --show trust_s
"""
if TYPE_CHECKING:
    MethodName = str
    Sampler = str
    Show = str
else:  # the names become the choices that --help lists
    MethodName, Sampler, Show = Literal[tuple(METHODS)], Literal[SAMPLERS], Literal[("picture", *SHOWN)]


@dataclass(frozen=True)
class Render:
    """Draw a scene, as a picture or along a track."""

    scene: SceneName  # the scene; or synth:500k for a scene made by code
    output: OutputPath  # what to write, see above
    cameras: Annotated[Cameras, tyro.conf.arg(name="")] = field(default_factory=Cameras)
    method: MethodName = "reference"  # how to draw, see above
    compare: MaybeText = None  # methods with commas between: draw all of them on the same noise, side by side
    frames: MaybeInt = None  # from a still camera: how many frames the denoiser sees; 64 if not said
    show: Show = "picture"  # of paper and temporal: an intermediate result instead of the picture
    weights: MaybePath = None  # of paper and temporal: a .safetensors file; the package's own if not said
    denoiser: DenoiserSettings = field(default_factory=DenoiserSettings)
    samples: int = 1  # of raw and what denoises it: samples per pixel and frame
    sampler: Sampler = "stratified"  # how the samples of many frames relate
    seed: int = 0  # another seed, another noise
    frame: int = 0  # number of the (first) frame, each frame has its own noise
    background: Color = "black"  # behind the scene, RGB 0..1
    near: float = NEAR  # world units: nothing nearer than this is drawn; small scenes have a nearer one if not said
    threads: int = 0  # 0: all cores; the picture is the same for any number
    order: MaybeOrder = None  # what is in front: by depth in each pixel (raw's own), or of the centres (hush's own)
    lod: MaybeInt = None  # level of detail of a streamed SOG, 0 is the finest
    engine: EngineName = "cpu"  # gpu needs hushsplat[gpu]; auto: gpu if there is one that is no software
    adapter: MaybeText = None  # of the gpu engine: number or part of the name, see hushsplat info --engines
    isa: MaybeText = None  # instruction set of the engine; the best one if not said
    crf: int = DEFAULT_CRF  # of a video: 0 is lossless, 51 the worst
    workers: MaybeInt = None  # of a track: draw in so many processes, 0: one for each core; a stopped run goes on
    cluster: MaybeText = None  # of a track: auto or HOST:PORT, draw on the nodes of a Ray cluster (docs/cluster.md)
    force: Force = False
    quiet: Flag = False  # print nothing, no progress bar

    def run(self) -> None:
        """Load, draw, write."""
        check_frames_output(self.output, self.force)  # what is wrong is said before anything is loaded
        begun = time.monotonic()
        asked = self._names()
        self._refuse_settings_for(asked)
        choose_instruction_set(self.isa)
        background = BACKGROUNDS[self.background] if isinstance(self.background, str) else self.background
        options = RenderOptions(background, self.near, self.threads, self.order)
        noise = Noise(self.samples, self.seed, self.frame, self.sampler)
        with status(f"reading {self.scene}", self.quiet):
            scene = scene_argument(self.scene, self.lod)
        options = fitting_near(scene.framing, options)
        seen = self.cameras.track_or_camera(scene, options)
        cameras = self._frames(seen, denoised=any(name in DENOISERS for name in asked))
        names = [drawn_by(name, scene.gaussians.payload is not None).name for name in asked]
        methods = [self._configured(name) for name in names]
        for name, by in dict.fromkeys(zip(asked, names, strict=True)):  # after all that may be refused
            if name != by:
                print_error(f"{scene.name} has no payload for {name}; {by} draws it.")
        by_jobs = self.workers is not None or self.cluster is not None
        drawing = chosen_engine(self.engine, self.adapter, fixed=by_jobs)
        canvas = seen if len(names) == 1 else seen.resized(len(names) * seen.width, seen.height)
        steps = len(cameras) * (len(names) if by_jobs else 1)
        progress = progress_bar(f"drawing {', '.join(names)}", steps, self.quiet)
        if by_jobs:
            tracks = self._jobs(scene, seen, names, drawing, noise, options)
            folder = self.output.with_suffix(".files")
            with progress as bar:
                jobs = [job for track in tracks for job in frame_jobs(track)]
                run_jobs(jobs, folder, executor(self.workers or 0, self.cluster), bar.advance)
            with frame_writer(self.output, canvas, self.crf) as write:
                for picture in side_by_side(tracks, folder):
                    write(picture)
            shutil.rmtree(folder)
        else:
            drawn = draw_side_by_side(
                scene.gaussians,
                cameras,
                methods,
                noise=noise,
                options=options,
                with_views=self.show != "picture",
                on=drawing,
            )
            with frame_writer(self.output, canvas, self.crf) as write, progress as bar:
                for index, images in enumerate(drawn):
                    if not isinstance(seen, Camera) or index == len(cameras) - 1:
                        write(self._picture(names, images))
                    bar.advance()
        if not self.quiet:
            say(self._summary(names, canvas, scene, time.monotonic() - begun))

    def _jobs(
        self,
        scene: NamedScene,
        seen: Camera | Track,
        names: Sequence[str],
        drawn_on: Engine,
        noise: Noise,
        options: RenderOptions,
    ) -> list[FrameJob]:
        """The whole track by each method."""
        if not isinstance(seen, Track) or self.show != "picture" or self.output.suffix.lower() == ".npy":
            raise HushsplatError("--workers and --cluster are for pictures of 8 bits along a track; leave them out.")
        adapter = self.adapter if drawn_on.name == "gpu" else None
        stamp = scene_stamp(scene)
        source = SceneSource(self.scene, self.lod, scene.name, stamp, drawn_on.name, adapter)
        cameras = tuple(seen.camera(index) for index in range(len(seen)))
        weights = None if self.weights is None else read_weights(self.weights)
        jobs = []
        for name in dict.fromkeys(names):
            settings = adjusted(name, self.denoiser) if name in LEARNED else None
            own = weights if name in LEARNED else None
            label = name if len(names) > 1 else ""
            jobs.append(FrameJob(source, name, cameras, 0, noise, options, label, settings, own))
        return [next(job for job in jobs if job.method == name) for name in names]

    def _summary(self, names: Sequence[str], canvas: Camera | Track, scene: NamedScene, seconds: float) -> str:
        """What was written, in a line."""
        frames = f", {len(canvas)} frames" if isinstance(canvas, Track) else ""
        guessed = self.cameras.is_guessed(scene)
        up = ""
        if guessed and self.cameras.up is None:
            direction = guess_up(scene.framing) if scene.known_up is None else up_text(scene.known_up)
            up = f", up {direction} ({scene.up_by})"
        size = f", {bytes_text(self.output.stat().st_size)}" if self.output.is_file() else ""
        picture = f"{canvas.width}×{canvas.height}{frames}"
        return f"{self.output}: {picture}, {', '.join(names)}{up}{size}, {seconds:.1f} s"

    def _names(self) -> list[str]:
        if self.compare is None:
            return [self.method]
        names = self.compare.split(",")
        unknown = [name for name in names if name not in METHODS]
        if unknown:
            raise HushsplatError(f"--compare takes of {', '.join(METHODS)}, with commas between, got '{unknown[0]}'.")
        if self.show != "picture":
            raise HushsplatError("--show and --compare do not go together; leave one of them out.")
        return names

    def _refuse_settings_for(self, names: Sequence[str]) -> None:
        """Settings of a learned denoiser where no method takes them are a mistake."""
        given = {
            "--show": self.show != "picture",
            "--weights": self.weights is not None,
            "--denoiser.*": self.denoiser != DenoiserSettings(),
        }
        useless = [flag for flag, was_given in given.items() if was_given]
        if useless and not set(names) & set(LEARNED):
            raise HushsplatError(f"{useless[0]} is for {', '.join(LEARNED)}, not for {names[0]}; leave it out.")

    def _configured(self, name: str) -> str | ConfiguredDenoiser:
        if name not in LEARNED:
            return name
        return configure(name, weights=self.weights, settings=adjusted(name, self.denoiser))

    def _frames(self, seen: Camera | Track, denoised: bool) -> Track | list[Camera]:
        """One camera for each frame; a still one again and again, as long as a denoiser needs."""
        if isinstance(seen, Track):
            if self.frames is not None:
                raise HushsplatError("--frames is for a still camera; a track has frames of its own, leave it out.")
            return seen
        if self.frames is not None and not denoised:
            raise HushsplatError("--frames is for denoisers, which see many; renderers draw one, leave it out.")
        count = self.frames if self.frames is not None else STILL_FRAMES if denoised else 1
        if count < 1:
            raise HushsplatError(f"--frames must be at least 1, got {count}.")
        return [seen] * count

    def _picture(self, names: Sequence[str], images: Sequence[Image]) -> Pixels:
        if len(names) == 1:
            return self._shown(images[0])
        labelled = [with_label(image.pixels(), name) for name, image in zip(names, images, strict=True)]
        return np.concatenate(labelled, axis=1)

    def _shown(self, image: Image) -> Pixels:
        """The picture, or the intermediate result that was asked for with its scale in the corner."""
        if self.show == "picture":
            return image.numpy().color if self.output.suffix.lower() == ".npy" else image.pixels()
        view = view_picture(image.numpy(), self.show, self.denoiser)
        if view.scale is None:
            return view.color
        height = 3 * BAR_HEIGHT if view.scale.wheel else BAR_HEIGHT
        return with_scale(view.color, view.scale.title, view.scale.bar(BAR_WIDTH, height), view.scale.value)
