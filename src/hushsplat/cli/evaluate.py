"""`hushsplat evaluate`: the experiments of the paper on any scene."""

from __future__ import annotations

import shlex
import time
from collections.abc import Iterator, Sequence
from contextlib import ExitStack
from dataclasses import MISSING, dataclass, fields, replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Literal

import tyro
from rich.table import Table as RichTable
from rich.text import Text

from hushsplat.cli.console import plan_bar, progress_bar, results, say, status
from hushsplat.cli.flags import (
    EngineName,
    Flag,
    Force,
    MaybeFloat,
    MaybeInt,
    MaybePath,
    MaybeText,
    OutputPath,
    chosen_engine,
)
from hushsplat.engines.base import Engine
from hushsplat.evaluation.bench import Case, machine, spread
from hushsplat.evaluation.experiments import (
    DEFAULT_METHODS,
    FrameSelection,
    ablation_methods,
    convergence_tasks,
    methods_of,
    static_frames,
    static_tasks,
    still_shots,
    track_shot,
    track_tasks,
)
from hushsplat.evaluation.motions import MOTIONS, named_track, viewpoint_in
from hushsplat.evaluation.plan import EvaluationOptions, Task
from hushsplat.evaluation.results import EXPERIMENTS, Results, write_results
from hushsplat.evaluation.runner import evaluate, usable_metrics, versions
from hushsplat.evaluation.shots import SceneSource, Shot
from hushsplat.evaluation.tables import Table, tables_of
from hushsplat.evaluation.timing import METHODS as TIMED
from hushsplat.evaluation.timing import PARTS, part_rows, timing_rows
from hushsplat.io.atomic import check_output
from hushsplat.io.captures.capture import load_capture
from hushsplat.io.weights import default_weights, read_weights
from hushsplat.scenes import DEMO, NamedScene, scene_argument
from hushsplat.synth import home_camera
from hushsplat.types.camera import Camera
from hushsplat.types.capture import Capture
from hushsplat.types.errors import EvaluationError, printable
from hushsplat.types.options import Noise
from hushsplat.types.paths import reanchored
from hushsplat.types.track import Track

DESCRIPTION = f"""Evaluate quality and speed as the paper does, on any scene.

  static       still views: after 16, 98 and 128 frames, ST-TAA and SVGF after 128, the mean of 1024
  navigation   along tracks: every 10th frame at 300 frames a second against `reference`
  ablation     the same with parts of the denoiser removed, and with its gate fixed
  convergence  still views: quality over the number of frames
  zero-shot    navigation of temporal beside temporal-zero-shot
  timing       milliseconds per frame of every method, interleaved, and of each pass

Scenes are files or synth:500k. Tracks are files (.json, .csv of EyeNavGS, captures) or names: {", ".join(MOTIONS)}.
A capture or track of one of several scenes only: NAME=PATH, NAME being the scene file's without suffix.

The results are one JSON file (docs/evaluation.md), with pictures and videos in the folder beside it;
`hushsplat report` makes a page of them. A run that was stopped goes on where it stopped: give the same command again.

Examples of use:
  hushsplat evaluate navigation synth:500k --track walk orbit -o walk.json
  hushsplat evaluate static bonsai.splat --capture bonsai/cameras.json --views 6
  hushsplat evaluate navigation a.ply b.ply --track a=a.json b=b.json --lpips-weights vgg16_lpips.npz
"""
if TYPE_CHECKING:
    Experiment = str
else:  # the names become the choices that --help lists
    Experiment = Annotated[Literal[EXPERIMENTS], tyro.conf.Positional]
Scenes = Annotated[tuple[str, ...], tyro.conf.Positional, tyro.conf.arg(metavar="SCENE [SCENE ...]")]
Names = Annotated[tuple[str, ...], tyro.conf.arg(metavar="NAME [NAME ...]", help_behavior_hint="")]
MaybeNames = Annotated[tuple[str, ...] | None, tyro.conf.arg(metavar="NAME [NAME ...]", help_behavior_hint="")]
STILL = ("static", "convergence")


@dataclass(frozen=True)
class Evaluate:
    """Evaluate quality and speed as the paper does, on any scene."""

    experiment: Experiment  # which, see above
    scenes: Scenes  # which
    output: OutputPath = Path("results.json")  # where the results go
    force: Force = False
    track: Names = ("walk",)  # files or names; walk if not said
    capture: Names = ()  # still views: its held-out ones; a folder, or a .json list of cameras
    methods: MaybeNames = None  # which; those of the paper's table if not said
    metrics: MaybeNames = None  # of psnr ssim flicker lpips cvvdp; all that can run if not said
    lpips_weights: MaybePath = None  # VGG16 with the heads of LPIPS v0.1, a .npz
    width: int = 800  # px
    height: int = 532  # px; with a capture its own aspect ratio counts
    fps: float = 300.0  # of a track: frames a second; 0 keeps the track's own
    every: int = 10  # of a track: every so many-th frame is scored
    frames: MaybeInt = None  # of a track: at most so many frames are scored; all if not said
    views: MaybeInt = None  # still views: at most so many, spread over all
    against: Literal["either", "photographs", "reference"] = "either"  # still views: photographs if there are any
    ref_samples: int = 1024  # of mean along a track: samples at each pose
    reanchor: MaybeFloat = None  # > 0: tracks from files begin at the scene's own camera, their moves times this
    rounds: int = 5  # of timing: how often each camera is drawn by each method
    cameras: int = 6  # of timing: how many, spread over each track
    seed: int = 0  # another seed, another noise
    weights: MaybePath = None  # of paper and temporal: a .safetensors file; the package's own if not said
    zero_shot_weights: MaybePath = None  # the same of temporal-zero-shot, which has not seen the scene
    lod: MaybeInt = None  # level of detail of a streamed SOG, 0 is the finest
    engine: EngineName = "cpu"  # gpu needs hushsplat[gpu]; auto: gpu if there is one that is no software
    adapter: MaybeText = None  # of the gpu engine: number or part of the name, see hushsplat info --engines
    workers: int = 0  # processes; 0: one for each core; the results are the same for any number
    keep: Flag = False  # keep all frames: the same command with more methods or metrics then does only what is new
    quiet: Flag = False  # no progress bar

    def run(self) -> None:
        """Plan, run, write, print."""
        self._check()
        if self.experiment == "timing":
            self._time()
            return
        wanted = usable_metrics(self.metrics, self.lpips_weights, self.experiment not in STILL)
        weights, foreign = (
            default_weights() if path is None else read_weights(path) for path in (self.weights, self.zero_shot_weights)
        )
        options = EvaluationOptions(wanted.metrics, Noise(seed=self.seed), weights, self.lpips_weights, foreign)
        notes: list[str] = []
        tasks: list[Task] = []
        drawn_on = chosen_engine(
            self.engine, self.adapter, fixed=True
        )  # what is wrong with it is said before anything is loaded
        for text in self.scenes:
            with status(f"reading {text}", self.quiet):
                named = scene_argument(text, None if text.startswith(("synth:", DEMO)) else self.lod)
            adapter = self.adapter if drawn_on.name == "gpu" else None
            source = replace(_source(text, named, self.lod), engine=drawn_on.name, adapter=adapter)
            tasks += self._tasks(named, source, notes)
        with ExitStack() as stack:
            found = evaluate(
                self.experiment,
                tasks,
                options,
                self.output,
                command=self.command_line(),
                protocol={**self._protocol(), **_drawn_by(drawn_on)},
                missing=wanted.missing,
                notes=notes,
                workers=self.workers,
                keep=self.keep,
                on_plan=plan_bar(stack, f"evaluating {self.experiment}", self.quiet),
            )
        print_results(found, self.output)

    def _time(self) -> None:
        """One scene after the other, in this process: nothing else may run beside it."""
        started = time.monotonic()
        weights = default_weights() if self.weights is None else read_weights(self.weights)
        rows, notes, drawn_on = (
            list[dict[str, Any]](),
            list[str](),
            chosen_engine(self.engine, self.adapter, fixed=True),
        )
        for text in self.scenes:
            with status(f"reading {text}", self.quiet):
                named = scene_argument(text, None if text.startswith(("synth:", DEMO)) else self.lod)
            asked = tuple(TIMED) if self.methods is None else self.methods
            methods = [method.name for method in methods_of(asked, named, 0, notes) if method.name in TIMED]
            uploaded = drawn_on.upload(named.gaussians)
            for name in _for_scene(self.track, named.name):
                track = named_track(name, named)
                seen = spread([track.camera(i) for i in range(len(track))], self.cameras, self.width, self.height)
                case = Case(named.name, drawn_on, uploaded, seen)
                frames = len(seen) * self.rounds * (len(methods) + len(PARTS))
                with progress_bar(f"timing {named.name} {name}", frames, self.quiet) as bar:
                    rows += timing_rows(case, name, methods, self.rounds, bar.advance)
                    rows += part_rows(case, name, weights, self.rounds, bar.advance)
        protocol = {"width": self.width, "height": self.height, "cameras": self.cameras, "rounds": self.rounds}
        protocol |= _drawn_by(drawn_on)
        found = Results(
            "timing",
            self.command_line(),
            rows,
            protocol=protocol,
            versions=versions(()),
            machine=machine(),
            notes=list(dict.fromkeys(notes)),
            seconds=round(time.monotonic() - started, 1),
        )
        write_results(found, self.output)
        print_results(found, self.output)

    def _check(self) -> None:
        if not self.scenes:
            raise EvaluationError("give at least one scene, a file or synth:500k.")
        if self.output.suffix.lower() != ".json":
            raise EvaluationError(f"{self.output}: results are written as .json; end the name so.")
        check_output(self.output, self.force or self.keep)  # what was kept is added to
        counts = {"ref-samples": self.ref_samples, "views": self.views, "rounds": self.rounds, "cameras": self.cameras}
        for name, value in counts.items():
            if value is not None and value < 1:
                raise EvaluationError(f"--{name} must be at least 1, got {value}.")
        if self.workers < 0:
            raise EvaluationError(f"--workers must be 0 (one for each core) or more, got {self.workers}.")

    def _tasks(self, named: NamedScene, source: SceneSource, notes: list[str]) -> list[Task]:
        if self.experiment in STILL:
            return self._still_tasks(named, source, notes)
        shots = [self._track_shot(source, named, text) for text in _for_scene(self.track, named.name)]
        if self.experiment == "ablation":
            return track_tasks(shots, ablation_methods(named, notes))
        names = DEFAULT_METHODS[self.experiment] if self.methods is None else self.methods
        return track_tasks(shots, methods_of(names, named, self.ref_samples, notes))

    def _still_tasks(self, named: NamedScene, source: SceneSource, notes: list[str]) -> list[Task]:
        names = DEFAULT_METHODS[self.experiment] if self.methods is None else self.methods
        methods = methods_of(names, named, 0, notes)
        static = self.experiment == "static"
        longest = max(max(static_frames(method.name)) for method in methods) if static else 128
        capture = self._capture(named)
        shots = still_shots(source, named, capture, self.width, self.height, self.views, self.against, longest)
        if shots[0].photograph is None:  # then it would be compared with itself
            methods = [method for method in methods if method.name != "reference"]
        return (static_tasks if static else convergence_tasks)(shots, methods)

    def _capture(self, named: NamedScene) -> Capture | None:
        found = list(_for_scene(self.capture, named.name))
        return load_capture(found[0], require_photographs=False) if found else None

    def _track_shot(self, source: SceneSource, named: NamedScene, text: str) -> Shot:
        track = named_track(text, named)
        if self.reanchor is not None and Path(text).exists():
            track = self._anchored(track, named, self.reanchor)
        selection = FrameSelection(self.fps or None, self.every, self.frames)
        name = text if not Path(text).exists() else Path(text).stem
        return track_shot(source, name, track.resized(self.width, self.height), selection)

    def _anchored(self, track: Track, named: NamedScene, scale: float) -> Track:
        viewpoint = viewpoint_in(named)
        anchor = home_camera() if named.is_own else Camera.look_at(viewpoint.eye, viewpoint.target, viewpoint.up)
        return reanchored(track, anchor, scale, up=viewpoint.up)

    def _protocol(self) -> dict[str, Any]:
        size = {"width": self.width, "height": self.height}
        if self.experiment in STILL:
            return {**size, "against": self.against, "views": self.views}
        return {
            **size,
            "against": "reference",
            "fps": self.fps,
            "every": self.every,
            "most_frames": self.frames,
            "ref_samples": self.ref_samples,
        }

    def command_line(self) -> str:
        """The command that computes the same again, with what differs from the defaults."""
        words = ["hushsplat", "evaluate", self.experiment, *self.scenes]
        for field in fields(self)[2:]:
            value = getattr(self, field.name)
            if field.name in ("quiet", "workers", "keep") or value == field.default or field.default is MISSING:
                continue
            words += ["--" + field.name.replace("_", "-"), *(value if isinstance(value, tuple) else [value])]
        return shlex.join(map(str, words))


def print_results(found: Results, output: Path) -> None:
    """The tables, what is missing, and where to look."""
    console = results()
    for table in tables_of(found):
        console.print(terminal_table(table))
    for reason in found.missing.values():
        say(f"not computed: {reason}")
    for note in found.notes:
        say(f"note: {note}")
    say(f"{output}; hushsplat report {shlex.quote(str(output))} makes a page of it")


def terminal_table(table: Table) -> RichTable:
    """The table with lines around."""
    rich = RichTable(title=Text(table.title))
    for index, column in enumerate(table.columns):
        rich.add_column(Text(column), justify="left" if index < table.names else "right")
    for index, row in enumerate(table.rows):
        if index in table.rules:
            rich.add_section()
        rich.add_row(*(Text(printable(cell.text), style="bold" if cell.best else "") for cell in row))
    return rich


def _drawn_by(engine: Engine) -> dict[str, Any]:
    """The engine and adapter of another engine than the cpu engine, for the protocol."""
    adapter = getattr(engine, "adapter", None)
    return {} if adapter is None else {"engine": engine.name, "adapter": str(adapter)}


def _source(text: str, named: NamedScene, lod: int | None) -> SceneSource:
    if named.is_own:
        return SceneSource(text, None, named.name)
    facts = Path(text).stat()
    return SceneSource(text, lod, named.name, f"{facts.st_size} {facts.st_mtime_ns}")


def _for_scene(texts: Sequence[str], scene: str) -> Iterator[str]:
    """Those for all scenes, and those that begin with this scene's name and =."""
    for text in texts:
        name, mark, rest = text.partition("=")
        if not mark:
            yield text
        elif name == scene.split(".")[0]:
            yield rest
