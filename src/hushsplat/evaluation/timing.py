"""The timing experiment: frame times of every method along a track, and what each pass of the denoiser costs."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Any

import numpy as np

from hushsplat.evaluation.bench import BenchPlan, Case, denoiser_frames, interleaved_times_ms, time_methods
from hushsplat.evaluation.results import Row
from hushsplat.methods import EngineDenoiser, configure, drawn_by
from hushsplat.spec.settings import DenoiserSettings
from hushsplat.spec.weights import DenoiserWeights
from hushsplat.types.options import RenderOptions

METHODS = {  # row: what `hushsplat bench` calls it; a denoiser's frame includes drawing the noisy one
    "reference": "reference",
    "raw": "raw",
    "st-taa": "raw+st-taa",
    "svgf": "raw+svgf",
    "svgf-literal": "raw+svgf-literal",
    "svgf-tuned": "raw+svgf-tuned",
    "temporal": "raw+temporal",
    "temporal-zero-shot": "raw+temporal-zero-shot",
}
# The cost of a pass is what leaving it out saves. The paper's own reference is the sorted renderer.
PARTS: dict[str, dict[str, Any]] = {
    "all of the denoiser": {},
    "trust networks (t = 1)": {"trust": "one"},
    "spatial filter": {"spatial_filter": False},
    "smoothing": {"smooth": False},
    "stabilisation": {"stabilise": False},
}


def timing_rows(
    case: Case,
    track: str,
    methods: Sequence[str],  # of METHODS
    rounds: int,
    on_frame: Callable[[], None] = lambda: None,
) -> list[Row]:
    """A row for each method: milliseconds per frame on all cores, and how many times faster than `reference`."""
    timed = time_methods(case, BenchPlan([METHODS[method] for method in methods], (0,), rounds), on_frame)
    times = {method: row.median_ms for method, row in zip(methods, timed, strict=True)}
    return [
        {
            **_head(case, track, method, rounds),
            "time_ms": time_ms,
            "speedup": times["reference"] / time_ms if "reference" in times else None,
        }
        for method, time_ms in times.items()
    ]


def part_rows(
    case: Case,
    track: str,
    weights: DenoiserWeights,
    rounds: int,
    on_frame: Callable[[], None] = lambda: None,
) -> list[Row]:
    """The time of the denoiser's step without drawing, and what each part of it saves when left out."""
    name, options = drawn_by("temporal", case.scene.has_payload).name, RenderOptions()
    variants = [
        configure(name, weights=weights, settings=replace(DenoiserSettings(), **change)) for change in PARTS.values()
    ]
    frames = [
        denoiser_frames(case, EngineDenoiser(variant, case.engine, options), options, with_raw=False)
        for variant in variants
    ]
    whole, *without = interleaved_times_ms(frames, case.cameras, rounds, on_frame)
    costs = [whole, *(whole - times for times in without)]  # by camera and round: all saw the same moment
    return [
        {**_head(case, track, f"{name}: {part}", rounds), "time_ms": float(np.median(cost))}
        for part, cost in zip(PARTS, costs, strict=True)
    ]


def _head(case: Case, track: str, method: str, rounds: int) -> Row:
    return {
        "experiment": "timing",
        "scene": case.name,
        "track": track,
        "method": method,
        "frames": len(case.cameras) * rounds,
        "gaussians": case.scene.count,
    }
