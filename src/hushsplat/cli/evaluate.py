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
    equal_time_frames,
    methods_of,
    static_frames,
    static_tasks,
    still_shots,
    track_shot,
    track_tasks,
    with_seeds,
)
from hushsplat.evaluation.motions import MOTIONS, named_track, viewpoint_in
from hushsplat.evaluation.perceptual import DISPLAY
from hushsplat.evaluation.plan import EvaluationOptions, Task
from hushsplat.evaluation.results import EXPERIMENTS, Results, write_results
from hushsplat.evaluation.runner import evaluate, usable_metrics, versions
from hushsplat.evaluation.shots import SceneSource, Shot
from hushsplat.evaluation.tables import Table, tables_of
from hushsplat.evaluation.timing import METHODS as TIMED
from hushsplat.evaluation.timing import PARTS, TimeJob, part_rows, timing_rows
from hushsplat.io.atomic import check_output
from hushsplat.io.captures.capture import load_capture
from hushsplat.io.weights import read_weights
from hushsplat.jobs import executor, run_jobs
from hushsplat.scenes import DEMO, NamedScene, scene_argument, scene_name, scene_stamp
from hushsplat.spec.weights import DenoiserWeights
from hushsplat.synth import home_camera
from hushsplat.types.camera import Camera
from hushsplat.types.capture import Capture
from hushsplat.types.errors import EvaluationError, printable
from hushsplat.types.options import Noise
from hushsplat.types.paths import reanchored
from hushsplat.types.track import Track

DESCRIPTION = f"""Evaluate quality and speed as the paper does, on any scene.

  static       still views: after 16 and 128 frames and in equal time, ST-TAA and SVGF after 128, the mean of 1024
  navigation   along whole tracks: 30 of 300 frames a second against `reference`
  ablation     the same with parts of the denoiser removed, and with its gate fixed
  convergence  still views: quality over the number of frames
  zero-shot    navigation with the weights of a scene beside those of others
  timing       milliseconds per frame of every method, interleaved, and of each pass

Scenes are files or synth:500k. Tracks are files (.json, .csv of EyeNavGS, captures) or names: {", ".join(MOTIONS)}.
A capture, track or weights of one of several scenes only: NAME=PATH, NAME being the scene's in the tables without
suffix: its file's, or where several files have the same name its folder's.

The results are one JSON file (docs/evaluation.md), with pictures and videos in the folder beside it;
`hushsplat report` makes a page of them. A run that was stopped goes on where it stopped: give the same command again.

Examples of use:
  hushsplat evaluate navigation synth:500k --track walk orbit -o walk.json
  hushsplat evaluate static bonsai.splat --capture bonsai/cameras.json --views 6
  hushsplat evaluate navigation a.ply b.ply --track a=a.json b=b.json --lpips-weights vgg16_lpips.npz
  hushsplat evaluate navigation synth:500k --methods raw svgf hush --fps 10 30 60 --seeds 3
"""
if TYPE_CHECKING:
    Experiment = str
else:  # the names become the choices that --help lists
    Experiment = Annotated[Literal[EXPERIMENTS], tyro.conf.Positional]
Scenes = Annotated[tuple[str, ...], tyro.conf.Positional, tyro.conf.arg(metavar="SCENE [SCENE ...]")]
Names = Annotated[tuple[str, ...], tyro.conf.arg(metavar="NAME [NAME ...]", help_behavior_hint="")]
Rates = Annotated[tuple[float, ...], tyro.conf.arg(metavar="FPS [FPS ...]")]
MaybeNames = Annotated[tuple[str, ...] | None, tyro.conf.arg(metavar="NAME [NAME ...]", help_behavior_hint="")]
STILL = ("static", "convergence")
NOT_RESULTS = ("quiet", "workers", "cluster", "keep")  # options that change no number


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
    metrics: MaybeNames = None  # which (docs/evaluation.md); all that can run if not said
    lpips_weights: MaybePath = None  # VGG16 with the heads of LPIPS v0.1, a .npz
    width: int = 800  # px
    height: int = 532  # px; with a capture its own aspect ratio counts
    display: str = DISPLAY  # of ColorVideoVDP
    fps: Rates = (300.0,)  # of a track: frames a second, one or several; 0 keeps the track's own
    every: MaybeInt = None  # of a track: every so many-th frame is scored; 30 a second if not said
    frames: MaybeInt = None  # of a track: at most so many frames are scored; all if not said
    split: Literal["held-out", "all"] = "held-out"  # still views of a capture: every 8th, or all
    views: MaybeInt = None  # still views: at most so many, spread over these
    against: Literal["either", "photographs", "reference"] = "either"  # still views: photographs if there are any
    ref_samples: int = 1024  # of mean along a track: samples at each pose
    reference_scene: Names = ()  # of tracks: what `reference` draws as the target, such as stage1.ply of a training run
    reanchor: MaybeFloat = None  # > 0: tracks from files begin at the scene's own camera, their moves times this
    rounds: int = 5  # of timing: how often each camera is drawn by each method
    cameras: int = 6  # of timing: how many, spread over each track
    seed: int = 0  # another seed, another noise
    seeds: int = 1  # so many noises, from seed on: means and 95 % confidence intervals
    weights: Names = ()  # of paper and temporal: .safetensors files; the package's own if not said
    zero_shot_weights: Names = ()  # the same of paper-zero-shot and temporal-zero-shot, which have not seen the scene
    lod: MaybeInt = None  # level of detail of a streamed SOG, 0 is the finest
    engine: EngineName = "cpu"  # gpu needs hushsplat[gpu]; auto: gpu if there is one that is no software
    adapter: MaybeText = None  # of the gpu engine: number or part of the name, see hushsplat info --engines
    workers: int = 0  # processes; 0: one for each core; the results are the same for any number
    cluster: MaybeText = None  # auto or HOST:PORT: on the nodes of a Ray cluster instead (docs/cluster.md)
    keep: Flag = False  # keep all frames: the same command with more methods or metrics then does only what is new
    quiet: Flag = False  # no progress bar

    def run(self) -> None:
        """Plan, run, write, print."""
        self._check()
        if self.experiment == "timing":
            self._time()
            return
        wanted = usable_metrics(self.metrics, self.lpips_weights, self.experiment not in STILL)
        notes: list[str] = []
        tasks: list[Task] = []
        drawn_on = chosen_engine(self.engine, self.adapter, fixed=True)  # its errors come before anything is loaded
        names = scene_names(self.scenes)
        own, foreign = (self._weights(texts, names) for texts in (self.weights, self.zero_shot_weights))
        for text, name in zip(self.scenes, names, strict=True):
            named = self._scene(text, name)
            adapter = self.adapter if drawn_on.name == "gpu" else None
            source = replace(_source(text, named, self.lod), engine=drawn_on.name, adapter=adapter)
            tasks += self._tasks(named, source, notes)
        noise = Noise(seed=self.seed)
        options = EvaluationOptions(wanted.metrics, noise, self.lpips_weights, self.display, own, foreign)
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
                executor=executor(self.workers, self.cluster),
                keep=self.keep,
                on_plan=plan_bar(stack, f"evaluating {self.experiment}", self.quiet),
            )
        print_results(found, self.output)

    def _time(self) -> None:
        """One scene after the other, in this process: nothing else may run beside it."""
        started = time.monotonic()
        rows, notes = list[dict[str, Any]](), list[str]()
        drawn_on = chosen_engine(self.engine, self.adapter, fixed=True)
        names = scene_names(self.scenes)
        own = self._weights(self.weights, names)
        for text, scene in zip(self.scenes, names, strict=True):
            named = self._scene(text, scene)
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
                    rows += part_rows(case, name, own.get(scene), self.rounds, bar.advance)
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
        for name in ("ref_samples", "views", "rounds", "cameras", "seeds"):
            value = getattr(self, name)
            if value is not None and value < 1:
                raise EvaluationError(f"--{name.replace('_', '-')} must be at least 1, got {value}.")
        if not self.fps or len(set(self.fps)) < len(self.fps):
            raise EvaluationError("--fps takes frame rates, each once, such as --fps 10 30 300.")
        if self.workers < 0:
            raise EvaluationError(f"--workers must be 0 (one for each core) or more, got {self.workers}.")

    def _tasks(self, named: NamedScene, source: SceneSource, notes: list[str]) -> list[Task]:
        if self.experiment in STILL:
            return self._still_tasks(named, source, notes)
        tracks = _for_scene(self.track, named.name)
        shots = [self._track_shot(source, named, text, fps) for text in tracks for fps in self.fps]
        if self.experiment == "ablation":
            names = DEFAULT_METHODS[self.experiment] if self.methods is None else self.methods
            if len(names) != 1 or names[0] not in ("temporal", "paper"):
                raise EvaluationError("ablation takes one of --methods temporal and --methods paper.")
            methods = ablation_methods(named, notes, names[0])
        else:
            names = DEFAULT_METHODS[self.experiment] if self.methods is None else self.methods
            methods = methods_of(names, named, self.ref_samples, notes)
        target = self._target(named.name)
        return track_tasks([replace(shot, target=target) for shot in shots], with_seeds(methods, self.seeds))

    def _still_tasks(self, named: NamedScene, source: SceneSource, notes: list[str]) -> list[Task]:
        names = DEFAULT_METHODS[self.experiment] if self.methods is None else self.methods
        methods = methods_of(names, named, 0, notes)
        static = self.experiment == "static"
        longest = max(max(static_frames(method.name)) for method in methods) if static else 128
        capture = self._capture(named)
        size = self.width, self.height
        shots = still_shots(source, named, capture, *size, self.views, self.against, longest, self.split)
        if shots[0].photograph is None:  # then it would be compared with itself
            methods = [method for method in methods if method.name != "reference"]
        methods = with_seeds(methods, self.seeds)
        if not static:
            return convergence_tasks(shots, methods)
        return static_tasks(shots, methods, self._equal_time(shots, [method.name for method in methods], notes))

    def _equal_time(self, shots: Sequence[Shot], names: Sequence[str], notes: list[str]) -> dict[str, int]:
        """How many frames take as long as 128 of ST-TAA, as measured on these views now, or when the run began."""
        timed = tuple(name for name in ("st-taa", "paper", "temporal") if name in names)
        if len(timed) < 2 or "st-taa" not in timed:
            return {}
        cameras = tuple(shot.cameras[0] for shot in shots[: self.cameras])
        job = TimeJob(shots[0].scene, "views", cameras, timed, self.rounds)
        (found,) = run_jobs([job], self.output.with_suffix(".files"), executor(1))
        times = {row["method"]: row["time_ms"] for row in found["rows"]}
        counts = equal_time_frames(times)
        notes += [
            f"{shots[0].scene.name}: {count} frames of {name} take as long as 128 of st-taa "
            f"({times[name]:.1f} and {times['st-taa']:.1f} ms a frame)."
            for name, count in counts.items()
        ]
        return counts

    def _capture(self, named: NamedScene) -> Capture | None:
        found = list(_for_scene(self.capture, named.name))
        return load_capture(found[0], require_photographs=False) if found else None

    def _target(self, name: str) -> SceneSource | None:
        """The scene that targets are drawn of, where it is another one."""
        found = list(_for_scene(self.reference_scene, name))
        return None if not found else _source(found[-1], self._scene(found[-1], scene_name(found[-1])), self.lod)

    def _scene(self, text: str, name: str) -> NamedScene:
        """The scene, under the name that tables give it."""
        with status(f"reading {text}", self.quiet):
            return replace(scene_argument(text, None if text.startswith(("synth:", DEMO)) else self.lod), name=name)

    def _weights(self, texts: Sequence[str], names: Sequence[str]) -> dict[str, DenoiserWeights]:
        """By scene; of several for one scene the last."""
        chosen = {name: list(_for_scene(texts, name)) for name in names}
        return {name: read_weights(files[-1]) for name, files in chosen.items() if files}

    def _track_shot(self, source: SceneSource, named: NamedScene, text: str, fps: float) -> Shot:
        track = named_track(text, named)
        if self.reanchor is not None and Path(text).exists():
            track = self._anchored(track, named, self.reanchor)
        selection = FrameSelection(fps or None, self.every, self.frames)
        name = text if not Path(text).exists() else Path(text).stem
        if len(self.fps) > 1:
            name += f", {fps:g} fps" if fps else ", own fps"
        return track_shot(source, name, track.resized(self.width, self.height), selection)

    def _anchored(self, track: Track, named: NamedScene, scale: float) -> Track:
        viewpoint = viewpoint_in(named)
        anchor = home_camera() if named.is_own else Camera.look_at(viewpoint.eye, viewpoint.target, viewpoint.up)
        return reanchored(track, anchor, scale, up=viewpoint.up)

    def _protocol(self) -> dict[str, Any]:
        size = {"width": self.width, "height": self.height}
        if self.seeds > 1:
            size["seeds"] = self.seeds
        if self.experiment in STILL:
            return {**size, "against": self.against, "views": self.views, "split": self.split}
        return {
            **size,
            "against": "reference",
            "fps": list(self.fps),
            "every": self.every,
            "most_frames": self.frames,
            "ref_samples": self.ref_samples,
        }

    def command_line(self) -> str:
        """The command that computes the same again, with what differs from the defaults."""
        words = ["hushsplat", "evaluate", self.experiment, *self.scenes]
        for field in fields(self)[2:]:
            value = getattr(self, field.name)
            if field.name in NOT_RESULTS or value == field.default or field.default is MISSING:
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
    return SceneSource(text, None if named.is_own else lod, named.name, scene_stamp(named))


def scene_names(texts: Sequence[str]) -> list[str]:
    """What tables call these scenes: the file's name, or where names are equal the folder's, both, or the path."""
    names = [scene_name(text) for text in texts]
    paths = [Path(text).resolve() for text in texts]
    for longer in ([path.parent.name for path in paths], ["/".join(path.parts[-2:]) for path in paths], texts):
        names = [new if names.count(old) > 1 else old for old, new in zip(names, longer, strict=True)]
    if len(set(names)) < len(names):
        raise EvaluationError(f"{max(names, key=names.count)}: is given twice; give each scene once.")
    return names


def _for_scene(texts: Sequence[str], scene: str) -> Iterator[str]:
    """Those for all scenes, and those that begin with this scene's name and =."""
    for text in texts:
        name, mark, rest = text.partition("=")
        if not mark:
            yield text
        elif name == scene.split(".")[0]:
            yield rest
