"""The jobs of an evaluation, and their values collected by method and shot."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from itertools import chain
from pathlib import Path

from hushsplat.evaluation.draw_jobs import DRAWN_METRICS, EXPECTED, DrawJob, Values, joined
from hushsplat.evaluation.perceptual import DISPLAY, LPIPS
from hushsplat.evaluation.score_jobs import SCORED_METRICS, ScoreJob
from hushsplat.evaluation.shots import Method, Shot
from hushsplat.jobs import Executor, Job, digest, run_jobs, stored
from hushsplat.methods import METHODS as KNOWN
from hushsplat.spec.weights import DenoiserWeights
from hushsplat.types.options import Noise

METRICS = (*DRAWN_METRICS, *SCORED_METRICS)  # results.METRIC_FIELDS
FRAMES_PER_JOB = 10  # of methods whose frames are independent: small enough to distribute and to repeat
SAMPLES_PER_JOB = 2048  # of Ref. N


@dataclass(frozen=True)
class Task:
    """A method on a shot, and which of the frames are scored."""

    shot: Shot
    method: Method
    frames: tuple[int, ...]


@dataclass(frozen=True)
class EvaluationOptions:
    """Metrics, noise and weights: the same for all tasks."""

    metrics: tuple[str, ...] = DRAWN_METRICS  # of METRICS
    noise: Noise = field(default_factory=Noise)
    lpips_weights: Path | None = None
    display: str = DISPLAY  # of ColorVideoVDP
    # By scene; what is not there is drawn with the weights of the package.
    weights: Mapping[str, DenoiserWeights] = field(default_factory=dict)  # of methods with a payload
    zero_shot_weights: Mapping[str, DenoiserWeights] = field(default_factory=dict)  # of the others
    scored_seeds: int | None = None  # LPIPS and ColorVideoVDP of so many noises only: they are dear; None: of all


@dataclass(frozen=True)
class Scores:
    """All metrics of a method on a shot."""

    task: Task
    values: Values  # metric: one value for each frame
    video: dict[str, float]  # metric: one value for the whole


@dataclass(frozen=True)
class Plan:
    """All jobs of an evaluation."""

    tasks: tuple[Task, ...]
    options: EvaluationOptions

    @cached_property
    def draws(self) -> list[list[DrawJob]]:
        """For each task its jobs."""
        metrics = tuple(metric for metric in self.options.metrics if metric in DRAWN_METRICS)
        return [self._draws(task, metrics) for task in self.tasks]

    @cached_property
    def expected(self) -> list[DrawJob]:
        """The jobs that draw the targets."""
        expected: dict[int, tuple[Shot, set[int]]] = {}
        for task in self.tasks:
            expected.setdefault(id(task.shot), (task.shot, set()))[1].update(task.frames)
        tasks = [Task(s, EXPECTED, (0,) if s.is_still else tuple(sorted(frames))) for s, frames in expected.values()]
        return [job for task in tasks for job in self._draws(task, ())]

    @cached_property
    def scores(self) -> list[list[ScoreJob]]:
        """For each task the jobs that score its stored frames."""
        return [self._scores(task, draws) for task, draws in zip(self.tasks, self.draws, strict=True)]

    @property
    def cost(self) -> int:
        """Frames to draw and to score, for a progress bar."""
        draws = sum(job.cost for jobs in (self.expected, *self.draws) for job in jobs)
        return draws + sum(job.cost for jobs in self.scores for job in jobs)

    def run(self, folder: Path, executor: Executor, on_done: Callable[[int], None] = lambda cost: None) -> list[Scores]:
        """Do all jobs; what is done already in this folder is not done again."""

        run_jobs(self.expected, folder, executor, on_done)  # first: the others are compared with them
        draws, scores = list(chain.from_iterable(self.draws)), list(chain.from_iterable(self.scores))
        left = [job for job in draws if stored(job, folder) is None]
        on_done(sum(job.cost for job in draws) - sum(job.cost for job in left))
        run_jobs(joined(left), folder, executor, on_done)
        drawn = _as_grouped(self.draws, run_jobs(draws, folder, executor))  # reads what is stored
        scored = _as_grouped(self.scores, run_jobs(scores, folder, executor, on_done))
        return [
            _collected(task, drawn[index], self.scores[index], scored[index]) for index, task in enumerate(self.tasks)
        ]

    def _draws(self, task: Task, metrics: tuple[str, ...]) -> list[DrawJob]:
        size = len(task.frames)
        if task.method.is_independent or task.method == EXPECTED:
            size = max(1, SAMPLES_PER_JOB // task.method.samples) if task.method.samples else FRAMES_PER_JOB
        weights = None
        if task.method.is_learned:
            own = KNOWN[task.method.name].needs_payload
            weights = (self.options.weights if own else self.options.zero_shot_weights).get(task.shot.scene.name)
        noise = replace(self.options.noise, seed=self.options.noise.seed + task.method.seed)
        return [
            DrawJob(task.shot, task.method, frames, metrics, noise, weights) for frames in _parts(task.frames, size)
        ]

    def _scores(self, task: Task, draws: Sequence[DrawJob]) -> list[ScoreJob]:
        if self.options.scored_seeds is not None and task.method.seed >= self.options.scored_seeds:
            return []
        drawn = digest(draws)
        jobs = []
        for metric in LPIPS:
            if metric in self.options.metrics:
                jobs += [
                    ScoreJob(task.shot, task.method, frames, metric, self.options.lpips_weights, drawn)
                    for frames in _parts(task.frames, FRAMES_PER_JOB)
                ]
        if "cvvdp" in self.options.metrics and not task.shot.is_still:
            jobs.append(ScoreJob(task.shot, task.method, task.frames, "cvvdp", None, drawn, self.options.display))
        return jobs


def _as_grouped(groups: Sequence[Sequence[Job]], outcomes: Sequence[Values]) -> list[list[Values]]:
    left = iter(outcomes)
    return [[next(left) for _ in group] for group in groups]


def _collected(task: Task, drawn: list[Values], scores: list[ScoreJob], scored: list[Values]) -> Scores:
    by_frame: Values = {}
    video: dict[str, float] = {}
    for part in drawn:
        for metric, values in part.items():
            by_frame.setdefault(metric, []).extend(values)
    for job, part in zip(scores, scored, strict=True):
        values = part[job.metric]
        if job.metric == "cvvdp":
            video["cvvdp"] = float(values[0] or 0.0)
        else:
            by_frame.setdefault(job.metric, []).extend(values)
    return Scores(task, by_frame, video)


def _parts(frames: tuple[int, ...], size: int) -> list[tuple[int, ...]]:
    return [frames[start : start + size] for start in range(0, len(frames), size)]
