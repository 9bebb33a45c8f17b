"""Which jobs a measurement takes, and what their values say about each method on each shot."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path

from hushsplat.evaluation.draw_jobs import DRAWN_METRICS, EXPECTED, DrawJob
from hushsplat.evaluation.jobs import Job, Values, digest, run_jobs
from hushsplat.evaluation.score_jobs import SCORED_METRICS, ScoreJob
from hushsplat.evaluation.shots import Method, Shot
from hushsplat.spec.weights import DenoiserWeights
from hushsplat.stream import Noise

METRICS = (*DRAWN_METRICS, *SCORED_METRICS)
FRAMES_PER_JOB = 10  # of methods whose frames are independent: small enough to share out and to lose
SAMPLES_PER_JOB = 2048  # of Ref. N


@dataclass(frozen=True)
class Task:
    """A method on a shot, and which of the frames count for it."""

    shot: Shot
    method: Method
    frames: tuple[int, ...]


@dataclass(frozen=True)
class Measuring:
    """How everything is measured."""

    metrics: tuple[str, ...] = DRAWN_METRICS  # of METRICS
    noise: Noise = field(default_factory=Noise)
    weights: DenoiserWeights | None = None  # of hush
    lpips_weights: Path | None = None
    zero_shot_weights: DenoiserWeights | None = None  # of hush-zero-shot


@dataclass(frozen=True)
class Reading:
    """All values of a method on a shot."""

    task: Task
    values: Values  # metric: one value for each frame
    video: dict[str, float]  # metric: one value for the whole


@dataclass(frozen=True)
class Plan:
    """All jobs of a measurement."""

    tasks: tuple[Task, ...]
    how: Measuring

    @cached_property
    def draws(self) -> list[list[DrawJob]]:
        """For each task its jobs."""
        metrics = tuple(metric for metric in self.how.metrics if metric in DRAWN_METRICS)
        return [self._draws(task, metrics) for task in self.tasks]

    @cached_property
    def expected(self) -> list[DrawJob]:
        """The jobs that draw what should be seen."""
        expected: dict[int, tuple[Shot, set[int]]] = {}
        for task in self.tasks:
            expected.setdefault(id(task.shot), (task.shot, set()))[1].update(task.frames)
        tasks = [Task(s, EXPECTED, (0,) if s.is_still else tuple(sorted(frames))) for s, frames in expected.values()]
        return [job for task in tasks for job in self._draws(task, ())]

    @cached_property
    def scores(self) -> list[list[ScoreJob]]:
        """For each task the jobs that look at its frames."""
        return [self._scores(task, draws) for task, draws in zip(self.tasks, self.draws, strict=True)]

    @property
    def cost(self) -> int:
        """Frames to draw and to look at, for a progress bar."""
        draws = sum(job.cost for jobs in (self.expected, *self.draws) for job in jobs)
        return draws + sum(job.cost for jobs in self.scores for job in jobs)

    def run(self, folder: Path, workers: int = 0, on_done: Callable[[int], None] = lambda cost: None) -> list[Reading]:
        """Do all jobs; what is done already in this folder is not done again."""

        def run(groups: Sequence[Sequence[Job]]) -> list[list[Values]]:
            outcomes = iter(run_jobs([job for group in groups for job in group], folder, workers, on_done))
            return [[next(outcomes) for _ in group] for group in groups]

        run([self.expected])  # first: the others look at them
        drawn, scored = run(self.draws), run(self.scores)
        return [
            _reading(task, drawn[index], self.scores[index], scored[index]) for index, task in enumerate(self.tasks)
        ]

    def _draws(self, task: Task, metrics: tuple[str, ...]) -> list[DrawJob]:
        size = len(task.frames)
        if task.method.is_independent or task.method == EXPECTED:
            size = max(1, SAMPLES_PER_JOB // task.method.samples) if task.method.samples else FRAMES_PER_JOB
        weights = {"hush": self.how.weights, "hush-zero-shot": self.how.zero_shot_weights}.get(task.method.name)
        return [
            DrawJob(task.shot, task.method, frames, metrics, self.how.noise, weights)
            for frames in _parts(task.frames, size)
        ]

    def _scores(self, task: Task, draws: Sequence[DrawJob]) -> list[ScoreJob]:
        drawn = digest(draws)
        jobs = []
        if "lpips" in self.how.metrics:
            jobs += [
                ScoreJob(task.shot, task.method, frames, "lpips", self.how.lpips_weights, drawn)
                for frames in _parts(task.frames, FRAMES_PER_JOB)
            ]
        if "cvvdp" in self.how.metrics and not task.shot.is_still:
            jobs.append(ScoreJob(task.shot, task.method, task.frames, "cvvdp", drawn=drawn))
        return jobs


def _reading(task: Task, drawn: list[Values], scores: list[ScoreJob], scored: list[Values]) -> Reading:
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
    return Reading(task, by_frame, video)


def _parts(frames: tuple[int, ...], size: int) -> list[tuple[int, ...]]:
    return [frames[start : start + size] for start in range(0, len(frames), size)]
