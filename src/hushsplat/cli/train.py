"""`hushsplat train`: photographs with poses in, a scene of surfels out."""

from __future__ import annotations

import sys
import time
from collections.abc import Callable, Sequence
from dataclasses import MISSING, dataclass, field, fields
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Literal

import tyro
from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, TextColumn, TimeRemainingColumn
from rich.progress import Progress as RichProgress

from hushsplat.cli.engine import choose_instruction_set
from hushsplat.cli.flags import AnyPath, Flag, MaybeText, OutputPath
from hushsplat.io.captures.capture import load_capture
from hushsplat.io.scenes.scene import load
from hushsplat.training.settings import PRESETS, TrainConfig, checked
from hushsplat.types.errors import TrainingError

DESCRIPTION = """Train a scene: photographs with poses in, surfels for the per-pixel renderer out.

  stage1  vanilla 2DGS from the capture's points, sorted           -> stage1.ply
  stage2  opacities only: floaters fade and are removed            -> stage2.ply
  stage3  everything, through the per-pixel renderer               -> stage3.ply
  stage4  payload and denoiser, the scene frozen        -> stage4.ply, denoiser.safetensors

See it with: hushsplat render RUN/stage4.ply --method hush --weights RUN/denoiser.safetensors --orbit -o out.mp4

Every 8th view is held out for measuring. RUN gets config.json, the scenes, previews/, log.jsonl and events for
TensorBoard. Kill it at any moment: `hushsplat train CAPTURE -o RUN --resume` goes on as if nothing had happened.

A scene that is trained already (.ply, .splat, .spz, .sog) enters at stage 3: with --scene beside the photographs it was
trained on, or in place of CAPTURE without any; then its own sorted pictures are what it learns from.

Presets: `small` is what two CPU cores do in under an hour per scene, `paper` what the paper did; every setting can be
changed by its flag, such as --stage1.steps 2000.

Examples of use:
  hushsplat train bonsai/ -o runs/bonsai
  hushsplat train bonsai/ -o runs/bonsai --resume
  hushsplat train garden/ -o runs/garden --preset paper --width 800 --images images_4
  hushsplat train bonsai/ -o runs/bonsai --scene bonsai-30k.ply
  hushsplat train showroom.sog -o runs/showroom
"""
REPORT_EVERY_S = 10.0  # where there is no terminal
SCENE_SUFFIXES = (".ply", ".splat", ".spz", ".sog")
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
    scene: MaybeText = None  # begin at stage 3 with this scene, in the capture's frame
    images: MaybeText = None  # folder of the photographs, such as images_4
    lpips: MaybeText = None  # .npz of LPIPS' weights for stage 4's loss (docs/measuring.md); it does without
    resume: Flag = False  # go on with the run in the folder; its own settings count
    isa: MaybeText = None  # instruction set of the engine; the best one if not said
    quiet: Flag = False  # no progress
    config: Annotated[TrainConfig, tyro.conf.arg(name="")] = field(default_factory=lambda: PRESETS["small"])

    def run(self) -> None:
        """Begin or go on."""
        choose_instruction_set(self.isa)
        from hushsplat.training.runner import begin_run, read_run, run_stages  # only training needs PyTorch

        source = self._source()
        if self.resume:
            config, begun_with = read_run(self.output)
            if begun_with != source:
                raise TrainingError(f"{self.output}: was begun with {_words(begun_with)}, not with {_words(source)}.")
        else:
            config = checked(self.config)
        plans = self._plans(config)
        if not self.resume:
            begin_run(self.output, config, source)
        with watching(self.quiet) as watch:
            run_stages(self.output, plans, config, watch)

    def _source(self) -> dict[str, str]:
        given = {"capture": self.capture, "scene": self.scene, "images": self.images, "lpips": self.lpips}
        return {name: str(value) for name, value in given.items() if value is not None}

    def _plans(self, config: TrainConfig) -> list[Any]:
        from hushsplat.engines.torch.lpips import load_lpips
        from hushsplat.training import photographs
        from hushsplat.training import plans as host_run

        lpips = None if self.lpips is None else load_lpips(self.lpips)
        if Path(self.capture).suffix.lower() in SCENE_SUFFIXES:
            if self.scene is not None or self.images is not None:
                raise TrainingError(f"{self.capture}: is a scene; --scene and --images belong to a capture.")
            gaussians = load(self.capture)
            return host_run.plans_from_scene(
                gaussians, photographs.made_up_photographs(gaussians, config), config, lpips
            )
        capture = load_capture(self.capture, images=self.images)
        pictures = photographs.load_photographs(capture, config)
        if self.scene is not None:
            return host_run.plans_from_scene(load(self.scene), pictures, config, lpips)
        return host_run.plans_from_capture(capture, pictures, config, lpips)


def _words(source: dict[str, str]) -> str:
    return ", ".join(f"{name} {value}" for name, value in source.items())


def with_preset(arguments: Sequence[str]) -> Train:
    """The defaults of the command: those of the preset that the arguments name."""
    name = "small"
    for place, word in enumerate(arguments):
        if word == "--preset" and place + 1 < len(arguments):
            name = arguments[place + 1]
        elif word.startswith("--preset="):
            name = word.removeprefix("--preset=")
    return _with_defaults(PRESETS.get(name, PRESETS["small"]))


def _with_defaults(config: TrainConfig) -> Train:
    """The command with what has no default marked as missing; only tyro can make sense of it."""
    command = object.__new__(Train)  # its __init__ would be right to refuse the marks
    for each in fields(Train):
        value = tyro.MISSING if each.default is MISSING else each.default
        object.__setattr__(command, each.name, config if each.name == "config" else value)
    return command


class watching:
    """Tells how far a run is: a bar on a terminal, a line every few seconds elsewhere, nothing if quiet."""

    def __init__(self, quiet: bool) -> None:
        self.quiet = quiet
        self.console = Console(stderr=True)
        self.bars: RichProgress | None = None
        self.tasks: dict[str, Any] = {}
        self.last = 0.0

    def __enter__(self) -> Callable[[Any], None]:
        if self.console.is_terminal and not self.quiet:
            columns = (TextColumn("{task.description}"), BarColumn(), MofNCompleteColumn(), TimeRemainingColumn())
            self.bars = RichProgress(*columns, console=self.console)
            self.bars.start()
        return self._told

    def __exit__(self, *_: object) -> None:
        if self.bars is not None:
            self.bars.stop()

    def _told(self, progress: Any) -> None:
        if self.bars is not None:
            if progress.stage not in self.tasks:
                self.tasks[progress.stage] = self.bars.add_task(progress.stage, total=progress.steps)
            text = f"{progress.stage} {_metrics(progress.metrics)}"
            self.bars.update(self.tasks[progress.stage], completed=progress.step, description=text)
        elif not self.quiet and (time.monotonic() - self.last > REPORT_EVERY_S or progress.step == progress.steps):
            self.last = time.monotonic()
            left = time.strftime("%H:%M:%S", time.gmtime(min(progress.seconds_left, 86399)))
            line = f"{progress.stage} {progress.step}/{progress.steps} {_metrics(progress.metrics)}, {left} left"
            print(line, file=sys.stderr, flush=True)


def _metrics(metrics: dict[str, float]) -> str:
    words = [f"loss {metrics['loss']:.4f}"]
    words += [f"{name.replace('_', '-')} {metrics[name]:.2f}" for name in ("psnr", "held_out_psnr") if name in metrics]
    words += [f"{metrics['surfels']:.0f} surfels"] if "surfels" in metrics else []
    return ", ".join(words)
