"""`hushsplat render`: a scene and a camera in, pictures or a video out."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Annotated, Literal

import numpy as np
import tyro
from jaxtyping import Float32
from numpy import ndarray as Array

from hushsplat.cli.console import progress_bar, status
from hushsplat.cli.denoising import Denoising
from hushsplat.cli.engine import choose_instruction_set
from hushsplat.cli.flags import Color, Flag, MaybeInt, MaybeText, OutputPath, SceneName
from hushsplat.cli.views import Views
from hushsplat.engines.cpu.denoise_names import METHODS as DENOISERS
from hushsplat.engines.cpu.prepare import NEAR
from hushsplat.engines.cpu.render_names import SAMPLERS, RenderOptions
from hushsplat.io.frames import frame_writer, output_kind
from hushsplat.io.legend import with_label
from hushsplat.io.video import DEFAULT_CRF
from hushsplat.scenes import scene_argument
from hushsplat.stream import METHODS, Noise, play_side_by_side
from hushsplat.types.camera import Camera
from hushsplat.types.errors import HushsplatError
from hushsplat.types.image import Image

DESCRIPTION = """Draw a scene, as a picture or along a track.

Renderers draw every frame by itself:

  reference  Gaussians sorted by their centres and blended: the picture every viewer shows
  exact      sorted anew in every pixel: what `raw` is on average
  raw        no sorting: each fragment is kept or not by chance, the nearest kept one is seen; --samples per pixel

Denoisers take the stream of raw and remember the frames before; a still camera is looked at for --frames:

  hush       learned, for scenes with a payload; others are drawn zero-shot
  hush-zero-shot  learned, for any scene

Where to look from: nothing (a camera is guessed), --capture, --track, --orbit, and --walk for our own scene.

What to write: .png .jpg .webp .npy for a picture; .mp4, or a pattern such as frames/%04d.png, for a track.

Examples of use:
  hushsplat render synth:500k -o room.png --method raw
  hushsplat render garden.ply -o garden.jpg --width 1600 --background white --up z
  hushsplat render bonsai.splat -o view.png --capture bonsai/ --view 12
  hushsplat render garden.ply -o orbit.mp4 --orbit --seconds 10 --method hush
  hushsplat render synth:500k -o walk.mp4 --walk --compare raw,hush,reference
  hushsplat render synth:500k -o trust.mp4 --walk --method hush --show trust_s
"""
if TYPE_CHECKING:
    Method = str
    Sampler = str
else:  # the names become the choices that --help lists
    Method, Sampler = Literal[METHODS], Literal[SAMPLERS]

BACKGROUNDS = {"black": (0.0, 0.0, 0.0), "white": (1.0, 1.0, 1.0)}


@dataclass(frozen=True)
class Render:
    """Draw a scene, as a picture or along a track."""

    scene: SceneName  # the scene; or synth:500k for a scene made by code
    output: OutputPath  # what to write, see above
    views: Annotated[Views, tyro.conf.arg(name="")] = field(default_factory=Views)
    method: Method = "reference"  # how to draw, see above
    compare: MaybeText = None  # methods with commas between: draw all of them on the same noise, side by side
    denoising: Annotated[Denoising, tyro.conf.arg(name="")] = field(default_factory=Denoising)
    samples: int = 1  # of raw and what denoises it: samples per pixel and frame
    sampler: Sampler = "independent"  # how the samples of many frames relate
    seed: int = 0  # another seed, another noise
    frame: int = 0  # number of the (first) frame, each frame has its own noise
    background: Color = "black"  # behind the scene, RGB 0..1
    near: float = NEAR  # world units: nothing nearer than this is drawn
    threads: int = 0  # 0: all cores; the picture is the same for any number
    lod: MaybeInt = None  # level of detail of a streamed SOG, 0 is the finest
    isa: MaybeText = None  # instruction set of the engine; the best one if not said
    crf: int = DEFAULT_CRF  # of a video: 0 is lossless, 51 the worst
    quiet: Flag = False  # no progress bar

    def run(self) -> None:
        """Load, look, draw, write."""
        output_kind(self.output)  # what is wrong is said before anything is loaded
        names = self._names()
        self.denoising.refuse_settings_for(names)
        choose_instruction_set(self.isa)
        background = BACKGROUNDS[self.background] if isinstance(self.background, str) else self.background
        options = RenderOptions(background, self.near, self.threads)
        with status(f"reading {self.scene}", self.quiet):
            scene = scene_argument(self.scene, self.lod)
        seen = self.views.track_or_camera(scene)
        cameras = self.denoising.cameras(seen, denoised=any(name in DENOISERS for name in names))
        asked, names = names, [self.denoising.drawn_by(name, scene) for name in names]
        methods = [self.denoising.method(name, self.threads) for name in names]
        if names != asked:  # after all that may be refused
            print(f"hushsplat: {scene.name} has no payload for hush; hush-zero-shot draws it.", file=sys.stderr)
        noise = Noise(self.samples, self.seed, self.frame, self.sampler)
        with_views = self.denoising.show != "picture"
        played = play_side_by_side(
            scene.gaussians, cameras, methods, noise=noise, options=options, with_views=with_views
        )
        canvas = seen if len(names) == 1 else seen.resized(len(names) * seen.width, seen.height)
        progress = progress_bar(f"drawing {', '.join(names)}", len(cameras), self.quiet)
        with frame_writer(self.output, canvas, self.crf) as write, progress as bar:
            for index, frames in enumerate(played):
                if not isinstance(seen, Camera) or index == len(cameras) - 1:
                    write(self._picture(names, frames))
                bar.advance()

    def _names(self) -> list[str]:
        if self.compare is None:
            return [self.method]
        names = self.compare.split(",")
        unknown = [name for name in names if name not in METHODS]
        if unknown:
            raise HushsplatError(f"--compare takes of {', '.join(METHODS)}, with commas between, got '{unknown[0]}'.")
        if self.denoising.show != "picture":
            raise HushsplatError("--show and --compare do not go together; leave one of them out.")
        return names

    def _picture(self, names: Sequence[str], frames: Sequence[Image]) -> Float32[Array, "h w 3"]:
        if len(names) == 1:
            return self.denoising.shown(frames[0])
        labelled = [with_label(frame.color, name) for name, frame in zip(names, frames, strict=True)]
        return np.concatenate(labelled, axis=1)
