"""`hushsplat train`: photographs with poses in, a scene of surfels out."""

from __future__ import annotations

import sys
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import MISSING, dataclass, field, fields
from typing import TYPE_CHECKING, Annotated, Literal

import tyro
from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, TaskID, TextColumn, TimeRemainingColumn
from rich.progress import Progress as RichProgress

from hushsplat.cli.flags import AnyPath, Flag, MaybeText, OutputPath, choose_instruction_set
from hushsplat.io.atomic import new_folder
from hushsplat.training.api import train
from hushsplat.training.log import OnProgress, TrainProgress
from hushsplat.training.settings import PRESETS, TrainSettings

DESCRIPTION = """Train a scene: photographs with poses in, surfels with payload and denoiser out.

  stage1  vanilla 2DGS from the capture's points        -> stage1.ply
  stage2  opacities only: floaters fade and are removed -> stage2.ply
  stage3  everything, sorted in every pixel             -> stage3.ply
  stage4  payload and denoiser, the scene frozen        -> stage4.ply, denoiser.safetensors

See it with: hushsplat render RUN/stage4.ply --method temporal --weights RUN/denoiser.safetensors --orbit -o out.mp4

Every 8th view is held out for measuring. RUN gets the scenes, config.json, previews/ and log.jsonl.

A scene that is trained already (.ply, .splat, .spz, .sog) enters at stage 3: with --scene beside the photographs it was
trained on, or in place of CAPTURE without any; then it is trained on its own sorted pictures.

Presets: `small` is what two CPU cores do in under an hour per scene, `paper` what the paper did. A flag changes a
setting: --stage1.steps 2000.

Examples of use:
  hushsplat train bonsai/ -o runs/bonsai
  hushsplat train bonsai/ -o runs/bonsai --resume
  hushsplat train garden/ -o runs/garden --preset paper --width 800 --images images_4
  hushsplat train bonsai/ -o runs/bonsai --scene bonsai-30k.ply
  hushsplat train showroom.sog -o runs/showroom
"""
RARELY = (  # options that the short --help leaves out
    *("--lpips", "--reference-scene", "--start", "--isa", "--background", "--seed", "--device", "--threads"),
    *("--no-hold-out", "--checkpoint-every", "--measure-every", "--preview-every", "--log-every"),
)
REPORT_EVERY_S = 10.0  # where there is no terminal
if TYPE_CHECKING:
    Preset = str
else:
    Preset = Literal[tuple(PRESETS)]


@dataclass(frozen=True)
class Train:
    """Train a scene from photographs."""

    capture: AnyPath  # folder of the capture; or a scene that is trained already
    output: OutputPath  # folder of the run
    preset: Preset = "small"  # where the settings below begin
    scene: MaybeText = None  # begin at stage 3 with this scene
    images: MaybeText = None  # folder of the photographs, such as images_4
    lpips: MaybeText = None  # .npz of LPIPS' weights for stage 4's loss (docs/evaluation.md); it does without
    reference_scene: MaybeText = None  # vanilla scene that stage 4 draws after; stage 1's if not said
    start: MaybeText = None  # .safetensors of weights that stage 4 begins with
    resume: Flag = False  # go on with the run of that folder, as it was begun
    isa: MaybeText = None  # instruction set of the engine; the best one if not said
    quiet: Flag = False  # no progress
    settings: Annotated[TrainSettings, tyro.conf.arg(name="")] = field(default_factory=lambda: PRESETS["small"])

    def run(self) -> None:
        """Begin or resume."""
        choose_instruction_set(self.isa)
        with new_folder(self.output), show_progress(self.quiet) as on_progress:  # before the photographs are read
            train(
                self.capture,
                self.output,
                settings=self.settings,
                scene=self.scene,
                images=self.images,
                lpips=self.lpips,
                reference_scene=self.reference_scene,
                start=self.start,
                resume=self.resume,
                on_progress=on_progress,
            )


def with_preset(arguments: Sequence[str]) -> Train:
    """The defaults of the command: those of the preset that the arguments name."""
    name = "small"
    for place, word in enumerate(arguments):
        if word == "--preset" and place + 1 < len(arguments):
            name = arguments[place + 1]
        elif word.startswith("--preset="):
            name = word.removeprefix("--preset=")
    return _with_defaults(PRESETS.get(name, PRESETS["small"]))


def _with_defaults(settings: TrainSettings) -> Train:
    """The command with these settings, and what has no default marked as missing for tyro."""
    command = object.__new__(Train)  # its __init__ would refuse the marks
    for each in fields(Train):
        value = tyro.MISSING if each.default is MISSING else each.default
        object.__setattr__(command, each.name, settings if each.name == "settings" else value)
    return command


@contextmanager
def show_progress(quiet: bool) -> Iterator[OnProgress]:
    """What shows progress on stderr: a bar on a terminal, a line every few seconds elsewhere, nothing if quiet."""
    console = Console(stderr=True)
    if quiet:
        yield lambda progress: None
    elif console.is_terminal:
        columns = (TextColumn("{task.description}"), BarColumn(), MofNCompleteColumn(), TimeRemainingColumn())
        with RichProgress(*columns, console=console) as bars:
            yield _Bars(bars).show
    else:
        yield _Lines().show


class _Bars:
    def __init__(self, bars: RichProgress) -> None:
        self.bars, self.tasks = bars, dict[str, TaskID]()

    def show(self, progress: TrainProgress) -> None:
        if progress.stage not in self.tasks:
            self.tasks[progress.stage] = self.bars.add_task(progress.stage, total=progress.steps)
        text = f"{progress.stage} {_metrics(progress.metrics)}"
        self.bars.update(self.tasks[progress.stage], completed=progress.step, description=text)


class _Lines:
    def __init__(self) -> None:
        self.last = 0.0

    def show(self, progress: TrainProgress) -> None:
        if time.monotonic() - self.last > REPORT_EVERY_S or progress.step == progress.steps:
            self.last = time.monotonic()
            left = time.strftime("%H:%M:%S", time.gmtime(min(progress.seconds_left, 86399)))
            line = f"{progress.stage} {progress.step}/{progress.steps} {_metrics(progress.metrics)}, {left} left"
            print(line, file=sys.stderr, flush=True)


def _metrics(metrics: Mapping[str, float]) -> str:
    words = [f"loss {metrics['loss']:.4f}"]
    words += [f"{name.replace('_', '-')} {metrics[name]:.2f}" for name in ("psnr", "held_out_psnr") if name in metrics]
    words += [f"{metrics['surfels']:.0f} surfels"] if "surfels" in metrics else []
    return ", ".join(words)
