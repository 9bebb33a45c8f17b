"""One evaluation from start to finish: run the plan, write the results and what reports show."""

from __future__ import annotations

import importlib.metadata
import shutil
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from hashlib import sha256
from pathlib import Path

import numpy as np

from hushsplat import __version__
from hushsplat.evaluation.assets import write_assets
from hushsplat.evaluation.bench import machine
from hushsplat.evaluation.experiments import best_of_searched, still_rows, track_rows
from hushsplat.evaluation.perceptual import LPIPS, cvvdp_problem, lpips_problem
from hushsplat.evaluation.plan import METRICS, EvaluationOptions, Plan, Task
from hushsplat.evaluation.results import Results, Row, write_results
from hushsplat.jobs import Executor
from hushsplat.spec.weights import DenoiserWeights
from hushsplat.types.errors import EvaluationError


@dataclass(frozen=True)
class AvailableMetrics:
    """The metrics that can run, and for the others what is missing."""

    metrics: tuple[str, ...]
    missing: dict[str, str]


def usable_metrics(asked: Sequence[str] | None, lpips_weights: Path | None, moving: bool) -> AvailableMetrics:
    """The metrics that were asked for, which have to run; if none were, all that can."""
    problems = {**dict.fromkeys(LPIPS, lpips_problem(lpips_weights)), "cvvdp": cvvdp_problem()}
    if not moving:
        problems["cvvdp"] = None
    missing = {metric: problem for metric, problem in problems.items() if problem is not None}
    if asked is not None:
        for metric in asked:
            if metric not in METRICS:
                raise EvaluationError(f"--metrics takes of {', '.join(METRICS)}, got '{metric}'.")
            if metric in missing:
                raise EvaluationError(f"{missing[metric]}.")
        return AvailableMetrics(tuple(metric for metric in METRICS if metric in asked), {})
    offered = [metric for metric in METRICS if metric not in missing and (moving or metric != "cvvdp")]
    return AvailableMetrics(tuple(offered), missing)


def evaluate(
    experiment: str,
    tasks: Sequence[Task],
    options: EvaluationOptions,
    output: Path,  # .json
    *,
    command: str,
    protocol: Row,
    missing: dict[str, str],
    notes: Sequence[str] = (),
    executor: Executor,
    keep: bool = False,  # frames and outcomes stay: a later run with more methods or metrics computes only what is new
    on_plan: Callable[[int], Callable[[int], None]] = lambda cost: lambda done: None,  # total cost in, progress out
) -> Results:
    """Run all jobs, write the results to `output` and what reports show to the folder beside it."""
    started = time.monotonic()
    folder = output.with_suffix(".files")
    plan = Plan(tuple(tasks), options)
    scores = plan.run(folder, executor, on_plan(plan.cost))
    said = list(dict.fromkeys(notes))
    if experiment in ("static", "convergence"):
        rows, series = still_rows(experiment, scores), list[Row]()
    else:
        rows, series = track_rows(experiment, scores)
    if experiment == "ablation":
        rows, series = best_of_searched(rows, series, said)
    results = Results(
        experiment=experiment,
        command=command,
        rows=rows,
        series=series,
        assets=write_assets(plan, folder, {row["method"] for row in rows}),
        protocol={**protocol, "seed": options.noise.seed, **_of_weights(options)},
        versions=versions(options.metrics),
        machine=machine(),
        missing=missing,
        notes=said,
        seconds=round(time.monotonic() - started, 1),
        folder=output.parent,
    )
    write_results(results, output)
    for name in () if keep else ("frames", "parts"):  # kept until here, so that a run that was killed can go on
        shutil.rmtree(folder / name, ignore_errors=True)
    return results


def versions(metrics: Sequence[str]) -> Row:
    """Of the package and of what its numbers depend on."""
    packages = ["numpy", "pillow"]
    packages += ["torch"] if {*LPIPS, "cvvdp"} & set(metrics) else []
    packages += ["cvvdp"] if "cvvdp" in metrics else []
    return {"hushsplat": __version__, **{name: importlib.metadata.version(name) for name in packages}}


def weights_digest(weights: DenoiserWeights) -> str:
    """A short name for weights."""
    total = sha256()
    for name in sorted(weights.tensors):
        total.update(name.encode() + np.ascontiguousarray(weights[name]).tobytes())
    return total.hexdigest()[:16]


def _of_weights(options: EvaluationOptions) -> Row:
    record: Row = {}
    for name, given in (("weights", options.weights), ("zero_shot_weights", options.zero_shot_weights)):
        named = [f"{scene}: {weights_digest(weights)}" for scene, weights in given.items()]
        record[name] = named or "of the package"
    if set(LPIPS) & set(options.metrics) and options.lpips_weights is not None:
        record["lpips"] = f"VGG16, v0.1, {options.lpips_weights.name}"
    if "cvvdp" in options.metrics:
        record["cvvdp_display"] = options.display
    return record
