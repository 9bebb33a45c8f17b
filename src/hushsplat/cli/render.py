"""`hushsplat render`: a scene and a camera in, pictures or a video out."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Literal

from hushsplat.cli.console import progress_bar, status
from hushsplat.cli.engine import choose_instruction_set
from hushsplat.cli.flags import Color, Flag, MaybeInt, MaybeText, OutputPath, SceneName
from hushsplat.cli.scene_argument import scene_argument
from hushsplat.cli.views import Views
from hushsplat.core.camera import Camera
from hushsplat.files.frames import frame_writer, output_kind
from hushsplat.files.video import DEFAULT_CRF
from hushsplat.render import METHODS, SAMPLERS, RenderOptions, render
from hushsplat.render.engine import NEAR

DESCRIPTION = """Draw a scene, as a picture or along a track.

Three methods draw the same scene:
  reference  Gaussians sorted by their centres and blended: the picture every viewer shows
  exact      sorted anew in every pixel: what `raw` is on average
  raw        no sorting: each fragment is kept or not by chance, the nearest kept one is seen; --samples per pixel

Where to look from: nothing (a camera is guessed), --capture, --track, --orbit, and --walk for our own scene.

What to write: .png .jpg .webp .npy for a picture; .mp4, or a pattern such as frames/%04d.png, for a track.

Examples of use:
  hushsplat render synth:500k -o room.png --method raw
  hushsplat render garden.ply -o garden.jpg --width 1600 --background white --up z
  hushsplat render bonsai.splat -o view.png --capture bonsai/ --view 12
  hushsplat render garden.ply -o orbit.mp4 --orbit --seconds 10
  hushsplat render synth:500k -o frames/%04d.png --walk --method raw --samples 4
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
    views: Views = field(default_factory=Views)
    method: Method = "reference"  # how to draw, see above
    samples: int = 1  # of raw: samples per pixel and frame
    sampler: Sampler = "independent"  # of raw: how the samples of many frames relate
    seed: int = 0  # of raw: another seed, another noise
    frame: int = 0  # of raw: number of the (first) frame, each frame has its own noise
    background: Color = "black"  # behind the scene, RGB 0..1
    near: float = NEAR  # world units: nothing nearer than this is drawn
    threads: int = 0  # 0: all cores; the picture is the same for any number
    lod: MaybeInt = None  # level of detail of a streamed SOG, 0 is the finest
    isa: MaybeText = None  # instruction set of the engine; the best one if not said
    crf: int = DEFAULT_CRF  # of a video: 0 is lossless, 51 the worst
    quiet: Flag = False  # no progress bar

    def run(self) -> None:
        """Load, look, draw, write."""
        output_kind(self.output)  # a wrong name is said before anything is loaded
        choose_instruction_set(self.isa)
        background = BACKGROUNDS[self.background] if isinstance(self.background, str) else self.background
        options = RenderOptions(background, self.near, self.threads)
        with status(f"reading {self.scene}", self.quiet):
            scene = scene_argument(self.scene, self.lod)
        seen = self.views.track_or_camera(scene)
        frames = 1 if isinstance(seen, Camera) else len(seen)
        progress = progress_bar(f"drawing {self.method}", frames, self.quiet)
        with frame_writer(self.output, seen, self.crf) as write, progress as bar:
            for index in range(frames):
                picture = render(
                    scene.gaussians,
                    seen if isinstance(seen, Camera) else seen.camera(index),
                    self.method,
                    samples=self.samples,
                    seed=self.seed,
                    frame=self.frame + index,
                    sampler=self.sampler,
                    options=options,
                )
                write(picture.color)
                bar.advance()
