"""One measurement from start to finish: a plan is run, its readings become results, what reports show is kept."""

from __future__ import annotations

import importlib.metadata
import shutil
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from hashlib import sha256
from pathlib import Path

import numpy as np

import hushsplat
from hushsplat.evaluation.assets import keep_assets
from hushsplat.evaluation.bench import machine
from hushsplat.evaluation.experiments import best_sigma, still_rows, track_rows
from hushsplat.evaluation.perceptual import DISPLAY, cvvdp_problem, lpips_problem
from hushsplat.evaluation.plan import METRICS, Measuring, Plan, Task
from hushsplat.evaluation.results import Results, Row, write_results
from hushsplat.spec.weights import DenoiserWeights
from hushsplat.types.errors import MeasureError


@dataclass(frozen=True)
class Wanted:
    """The metrics that can run, and why others cannot."""

    metrics: tuple[str, ...]
    missing: dict[str, str]


def usable_metrics(asked: Sequence[str] | None, lpips_weights: Path | None, moving: bool) -> Wanted:
    """All metrics if none are asked for, those that cannot run with a reason; one that is asked for has to run."""
    problems = {"lpips": lpips_problem(lpips_weights), "cvvdp": cvvdp_problem()}
    if not moving:
        problems["cvvdp"] = None
    missing = {metric: problem for metric, problem in problems.items() if problem is not None}
    if asked is not None:
        for metric in asked:
            if metric not in METRICS:
                raise MeasureError(f"--metrics takes of {', '.join(METRICS)}, got '{metric}'.")
            if metric in missing:
                raise MeasureError(f"{missing[metric]}.")
        return Wanted(tuple(metric for metric in METRICS if metric in asked), {})
    offered = [metric for metric in METRICS if metric not in missing and (moving or metric != "cvvdp")]
    return Wanted(tuple(offered), missing)


def measure(
    experiment: str,
    tasks: Sequence[Task],
    how: Measuring,
    output: Path,  # .json
    *,
    command: str,
    protocol: Row,
    missing: dict[str, str],
    notes: Sequence[str] = (),
    workers: int = 0,
    keep: bool = False,  # frames and outcomes stay: a later run with more methods or metrics does only what is new
    on_plan: Callable[[int], Callable[[int], None]] = lambda cost: lambda done: None,  # total cost in, progress out
) -> Results:
    """Do everything, write the results to `output` and what reports show to the folder beside it."""
    started = time.monotonic()
    folder = output.with_suffix(".files")
    plan = Plan(tuple(tasks), how)
    readings = plan.run(folder, workers, on_plan(plan.cost))
    said = list(dict.fromkeys(notes))
    if experiment in ("static", "convergence"):
        rows, series = still_rows(experiment, readings), list[Row]()
    else:
        rows, series = track_rows(experiment, readings)
    if experiment == "ablation":
        rows, series = best_sigma(rows, series, said)
    results = Results(
        experiment=experiment,
        command=command,
        rows=rows,
        series=series,
        assets=keep_assets(plan, folder, {row["method"] for row in rows}),
        protocol={**protocol, "seed": how.noise.seed, **_of_weights(how)},
        versions=versions(how.metrics),
        machine={**machine(), "workers": workers},
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
    packages += ["torch"] if {"lpips", "cvvdp"} & set(metrics) else []
    packages += ["cvvdp"] if "cvvdp" in metrics else []
    return {"hushsplat": hushsplat.__version__, **{name: importlib.metadata.version(name) for name in packages}}


def weights_digest(weights: DenoiserWeights) -> str:
    """A short name for weights."""
    total = sha256()
    for name in sorted(weights.tensors):
        total.update(name.encode() + np.ascontiguousarray(weights[name]).tobytes())
    return total.hexdigest()[:16]


def _of_weights(how: Measuring) -> Row:
    said: Row = {}
    if how.weights is not None:
        said["weights"] = weights_digest(how.weights)
    if how.zero_shot_weights is not None:
        said["zero_shot_weights"] = weights_digest(how.zero_shot_weights)
    if "lpips" in how.metrics and how.lpips_weights is not None:
        said["lpips"] = f"VGG16, v0.1, {how.lpips_weights.name}"
    if "cvvdp" in how.metrics:
        said["cvvdp_display"] = DISPLAY
    return said
