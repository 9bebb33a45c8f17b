"""A reproduction from start to finish: train all scenes, evaluate them, write the tables beside the paper's numbers."""

from __future__ import annotations

import json
from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass, replace
from functools import cached_property
from pathlib import Path

import numpy as np

from hushsplat.evaluation.bench import machine, spread
from hushsplat.evaluation.experiments import (
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
from hushsplat.evaluation.motions import named_track
from hushsplat.evaluation.plan import EvaluationOptions, Task
from hushsplat.evaluation.report import table_html, write_report
from hushsplat.evaluation.results import Results, Row, read_results, write_results
from hushsplat.evaluation.runner import AvailableMetrics, evaluate, usable_metrics, versions
from hushsplat.evaluation.shots import Method, SceneSource, Shot
from hushsplat.evaluation.tables import to_markdown
from hushsplat.evaluation.timing import TimeJob
from hushsplat.io.atomic import atomic_write, make_folder
from hushsplat.io.captures.capture import load_capture
from hushsplat.io.strict_json import read_json_object
from hushsplat.io.weights import read_weights
from hushsplat.jobs import Executor, Processes, digest, run_jobs, stored
from hushsplat.reproduce.tables import comparisons
from hushsplat.reproduce.training_jobs import (
    CONVERTED,
    DENOISERS,
    FINAL,
    SURFELS,
    VANILLA,
    WEIGHTS,
    Size,
    TrainJob,
)
from hushsplat.scenes import NamedScene, scene_argument
from hushsplat.training.settings import TrainSettings
from hushsplat.types.capture import Capture
from hushsplat.types.errors import CaptureError, EvaluationError
from hushsplat.types.paths import up_of_cameras
from hushsplat.types.track import Track

SOURCE = "room"  # the paper's source scene, where the dataset has it
VANILLA_LABEL = "2dgs"  # the scene of stage 1, sorted by centres: the paper's reference
STREAMED = ("mean", "exact", "raw", "st-taa", "svgf", "svgf-literal", "svgf-tuned", "paper", "paper-zero-shot")
STILL = ("mean", "st-taa", "svgf", "paper", "paper-zero-shot")
TIMED = ("reference", "raw", "st-taa", "svgf", "paper", "paper-zero-shot", "hush")
TIMED_CAMERAS = 6
NOTES = ("ss-1, ss-4 and hush draw the scene of stage 1, the others that of stage 4; the target is that of stage 1.",)
EXPERIMENTS = ("timing", "static", "convergence", "navigation", "zero-shot", "ablation")


@dataclass(frozen=True)
class Reproduction:
    """What is reproduced, and where."""

    dataset: Path  # a folder with a capture in each of its folders
    folder: Path
    size: Size
    scenes: tuple[str, ...]
    source: str  # whose denoiser is trained at length and deployed on the others
    tracks: tuple[str, ...] = ("walk",)
    images: str | None = None  # folder of the photographs in each capture
    lpips: Path | None = None
    seeds: int = 1  # noises of random methods along tracks, for confidence intervals
    keep: bool = False  # all frames and outcomes of evaluation stay, for more seeds or metrics later

    def check(self) -> None:
        """A folder that was trained otherwise is refused; the first time, remember how."""
        path = self.folder / "reproduce.json"
        trained = {"training": asdict(self.size.training), "transfer_steps": self.size.transfer_steps}
        given = {name: getattr(self, name) for name in ("dataset", "scenes", "source", "images", "lpips")}
        mine = json.loads(json.dumps({**given, "size": trained}, default=str))
        if not path.is_file():
            make_folder(self.folder)
            with atomic_write(path) as temporary:
                temporary.write_text(json.dumps(mine, indent=1) + "\n", encoding="utf-8")
            return
        theirs = read_json_object(path, EvaluationError)
        differing = sorted(key for key in mine if mine[key] != theirs.get(key))
        if differing:
            raise EvaluationError(
                f"{self.folder}: was begun with another {differing[0]}; give the same, or choose another folder."
            )

    @cached_property
    def training(self) -> list[list[TrainJob]]:
        """Jobs of training: those of a list need all lists before it."""
        surfels = {
            name: TrainJob(
                f"{SURFELS}/{name}",
                str((self.dataset / name).absolute()),
                self.size.surfels(),
                (VANILLA, CONVERTED),
                images=self.images,
            )
            for name in self.scenes
        }
        first = self._denoiser(surfels[self.source], self.source, self.size.only_stage4(), None)
        others = [
            self._denoiser(surfels[name], name, self.size.transfer(), first)
            for name in self.scenes
            if name != self.source
        ]
        return [list(surfels.values()), [first], others]

    def run(
        self,
        executor: Executor,
        command: str,
        on_plan: Callable[[str, int], Callable[[int], None]] = lambda text, cost: lambda done: None,
    ) -> list[Results]:
        """Everything that is not done yet; the results of each experiment, the tables and a page in the folder."""
        self.check()
        for jobs in self.training:
            run_jobs(jobs, self.folder, executor, on_plan("training", sum(job.cost for job in jobs)))
        found: list[Results] = []
        for experiment in EXPERIMENTS:
            found.append(self._evaluated(experiment, executor, command, on_plan, found))
        tables = comparisons(found, self.scenes)
        with atomic_write(self.folder / "tables.md") as temporary:
            temporary.write_text("\n".join(map(to_markdown, tables)), encoding="utf-8")
        top = f'<section class="beside"><h2>beside the paper</h2>{"".join(map(table_html, tables))}</section>'
        write_report(found, self.folder / "report.html", top)
        return found

    def listed(self) -> list[tuple[str, str]]:
        """Every job of training, every experiment, and whether it is done."""
        jobs = [
            (f"train {job.output}: {job.cost} steps", "done" if stored(job, self.folder) is not None else "to do")
            for jobs in self.training
            for job in jobs
        ]
        return jobs + [
            (f"evaluate {name}: {', '.join(self.scenes)}", "done" if self._path(name).is_file() else "to do")
            for name in EXPERIMENTS
        ]

    def _denoiser(self, surfels: TrainJob, name: str, settings: TrainSettings, source: TrainJob | None) -> TrainJob:
        return replace(
            surfels,
            output=f"{DENOISERS}/{name}",
            settings=settings,
            results=(FINAL, WEIGHTS),
            scene=f"{surfels.output}/{CONVERTED}",
            reference=f"{surfels.output}/{VANILLA}",
            start=None if source is None else f"{source.output}/{WEIGHTS}",
            lpips=self.lpips,
            after=tuple(digest(job) for job in (surfels, source) if job is not None),
        )

    def _path(self, experiment: str) -> Path:
        return self.folder / f"{experiment}.json"

    def _evaluated(
        self,
        experiment: str,
        executor: Executor,
        command: str,
        on_plan: Callable[[str, int], Callable[[int], None]],
        before: Sequence[Results],
    ) -> Results:
        if experiment == "timing":
            return self._timed(command)
        tasks, options = self._tasks(experiment, before)
        taken = [one.protocol for one in before if (experiment, one.experiment) == ("zero-shot", "navigation")]
        plan = digest((tasks, options, *(protocol.get("plan") for protocol in taken)))
        if self._path(experiment).is_file():
            known = read_results(self._path(experiment))
            if known.protocol.get("plan") == plan:
                return known
        wanted = self._metrics(experiment)
        found = evaluate(
            experiment,
            tasks,
            options,
            self._path(experiment),
            command=command,
            protocol={"width": self.size.width, "fps": self.size.fps, "source": self.source, "plan": plan},
            missing=wanted.missing,
            notes=NOTES,
            executor=executor,
            keep=self.keep,
            on_plan=lambda cost: on_plan(f"evaluating {experiment}", cost),
        )
        if experiment == "zero-shot":
            found = _with_navigation(found, next(one for one in before if one.experiment == "navigation"))
            write_results(found, self._path(experiment))
        return found

    def _metrics(self, experiment: str) -> AvailableMetrics:
        """Those of the size, as far as they can be computed here."""
        moving = experiment not in ("static", "convergence")
        found = usable_metrics(None, self.lpips, moving)
        asked = self.size.figure_metrics if experiment in ("ablation", "convergence") else self.size.metrics
        if asked is None:
            return found
        missing = {name: why for name, why in found.missing.items() if name in asked}
        return AvailableMetrics(tuple(name for name in found.metrics if name in asked), missing)

    @cached_property
    def _trained(self) -> list[_Trained]:
        return [_Trained(self, name) for name in self.scenes]

    def _tasks(self, experiment: str, before: Sequence[Results]) -> tuple[list[Task], EvaluationOptions]:
        scenes = self._trained
        source = read_weights(self.folder / DENOISERS / self.source / WEIGHTS)
        options = EvaluationOptions(
            self._metrics(experiment).metrics,
            lpips_weights=self.lpips,
            weights={scene.name: scene.weights for scene in scenes},
            zero_shot_weights={scene.name: source for scene in scenes},
            scored_seeds=1,
        )
        if experiment == "zero-shot":  # the others' networks on the source; the source's on all is in navigation
            reverse = [scene for scene in scenes if scene.name != self.source]
            at_source = next(scene for scene in scenes if scene.name == self.source)
            named = {f"{self.source}, network of {scene.name}": scene.weights for scene in reverse}
            options = replace(options, zero_shot_weights={**options.zero_shot_weights, **named})
            return [task for name in named for task in at_source.navigation(("paper-zero-shot",), name)], options
        if experiment == "navigation":
            return [task for scene in scenes for task in [*scene.navigation(STREAMED), *scene.sorted()]], options
        if experiment == "ablation":
            return [task for scene in scenes for task in scene.ablation()], options
        if experiment == "convergence":
            return [task for scene in scenes for task in scene.still(None)], options
        times = {(row["scene"], row["method"]): row["time_ms"] for row in before[0].rows}
        counts = {
            scene.name: equal_time_frames({name: times[scene.name, name] for name in ("st-taa", "paper")})
            for scene in scenes
        }
        return [task for scene in scenes for task in scene.still(counts[scene.name])], options

    def _timed(self, command: str) -> Results:
        """One scene after the other on this machine."""
        jobs = [scene.time_job() for scene in self._trained]
        rows = [row for found in run_jobs(jobs, self.folder, Processes(1)) for row in found["rows"]]
        found = Results(
            "timing",
            command,
            rows,
            protocol={"width": self.size.width, "cameras": TIMED_CAMERAS, "rounds": self.size.rounds},
            versions=versions(()),
            machine=machine(),
            folder=self.folder,
        )
        write_results(found, self._path("timing"))
        return found


class _Trained:
    """A trained scene, and the tasks on it."""

    def __init__(self, parent: Reproduction, name: str) -> None:
        self.name, self._size, self._names, self._seeds = name, parent.size, parent.tracks, parent.seeds
        self._vanilla = parent.folder.absolute() / SURFELS / name / VANILLA
        self._final = parent.folder.absolute() / DENOISERS / name / FINAL
        self.weights = read_weights(self._final.parent / WEIGHTS)
        self._capture: Capture = load_capture(parent.dataset / name, images=parent.images)
        first = self._capture.views[0].camera.resized(parent.size.width)
        self._height = first.height

    @cached_property
    def _scene(self) -> NamedScene:
        return replace(scene_argument(str(self._final)), name=self.name)

    @cached_property
    def _tracks(self) -> dict[str, Track]:
        """By name; to find a viewpoint takes a while."""
        size = self._size.width, self._height
        called = [Path(text).stem if Path(text).exists() else text for text in self._names]
        up = up_of_cameras(np.stack([view.camera.world_from_camera for view in self._capture.views]))
        tracks = (named_track(text, self._scene, up) for text in self._names)
        return {name: track.resized(*size) for name, track in zip(called, tracks, strict=True)}

    def _source(self, path: Path, name: str = "") -> SceneSource:
        facts = path.stat()  # as scene_stamp, without reading the scene
        return SceneSource(str(path), None, name or self.name, f"{facts.st_size} {facts.st_mtime_ns}")

    def _shots(self, path: Path, name: str = "") -> list[Shot]:
        """Along the tracks, compared with the scene of stage 1."""
        vanilla = self._source(self._vanilla)
        selection = FrameSelection(self._size.fps, self._size.every, self._size.frames)
        shots = []
        for called, track in self._tracks.items():
            shot = track_shot(self._source(path, name), called, track, selection)
            shots.append(replace(shot, target=None if path == self._vanilla else vanilla))
        return shots

    def navigation(self, names: Sequence[str], name: str = "") -> list[Task]:
        """Methods of the stream on the scene that was trained for them."""
        methods = methods_of(names, self._scene, self._size.samples, [])
        seeded = [m for method in methods for m in with_seeds([method], 1 if method.samples else self._seeds)]  # Ref. N
        return track_tasks(self._shots(self._final, name), seeded)

    def sorted(self) -> list[Task]:
        """Methods in the order of centres, on the scene of stage 1."""
        methods = methods_of(("ss-1", "ss-4", "hush"), self._scene, 0, [])
        return track_tasks(self._shots(self._vanilla), with_seeds(methods, self._seeds))

    def ablation(self) -> list[Task]:
        """Without each part of the paper's denoiser."""
        methods = ablation_methods(self._scene, [], "paper", self._size.sigmas, self._size.constants)
        return track_tasks(self._shots(self._final), methods)

    def still(self, equal_time: dict[str, int] | None) -> list[Task]:
        """The held-out views, static with the numbers of frames in equal time, or convergence without."""
        methods = methods_of(STILL, self._scene, 0, [])
        longest = max(max(static_frames(method.name)) for method in methods) if equal_time is not None else 128

        def shots(path: Path) -> list[Shot]:
            size = self._size.width, self._height
            return still_shots(
                self._source(path), self._scene, self._capture, *size, self._size.views, "either", longest
            )

        vanilla = [Method(VANILLA_LABEL, "reference")]
        converted = [Method("exact", "exact")]
        if equal_time is None:
            return convergence_tasks(shots(self._final), methods) + convergence_tasks(shots(self._vanilla), vanilla)
        found = static_tasks(shots(self._vanilla), vanilla) + static_tasks(shots(self._final), converted)
        return found + static_tasks(shots(self._final), methods, equal_time)

    def time_job(self) -> TimeJob:
        """Milliseconds of each method along the first track."""
        name, track = next(iter(self._tracks.items()))
        seen = spread([track.camera(i) for i in range(len(track))], TIMED_CAMERAS, self._size.width, self._height)
        return TimeJob(self._source(self._final), name, tuple(seen), TIMED, self._size.rounds)


def _with_navigation(found: Results, navigation: Results) -> Results:
    """The rows of the denoiser and its zero-shot form along the same tracks, which were drawn there, before these."""

    def of(rows: Sequence[Row]) -> list[Row]:
        return [row for row in rows if row["method"] in ("paper", "paper-zero-shot")]

    rows = [{**row, "experiment": found.experiment} for row in of(navigation.rows)]
    return replace(found, rows=[*rows, *found.rows], series=[*of(navigation.series), *found.series])


def scenes_in(dataset: Path, images: str | None) -> list[str]:
    """The folders of a dataset that are captures."""
    if not dataset.is_dir():
        raise CaptureError(f"{dataset}: is no folder; give one with a capture in each of its folders.")
    found = []
    for folder in sorted(path for path in dataset.iterdir() if path.is_dir()):
        try:
            load_capture(folder, images=images)
        except CaptureError:
            continue
        found.append(folder.name)
    if not found:
        raise CaptureError(f"{dataset}: none of its folders is a capture with photographs and poses.")
    return found
