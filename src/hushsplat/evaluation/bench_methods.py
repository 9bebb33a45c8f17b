"""The timing experiment: every method's frame in turn along a track, and what each part of the denoiser costs."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from itertools import product
from time import perf_counter

import numpy as np

from hushsplat.engines.cpu.denoise_names import DenoiserSettings
from hushsplat.engines.cpu.render_names import RenderOptions
from hushsplat.evaluation.bench import Case
from hushsplat.evaluation.bench import measure as measure_times
from hushsplat.evaluation.denoiser_timing import prepared_step
from hushsplat.evaluation.results import Row
from hushsplat.spec.weights import DenoiserWeights
from hushsplat.stream import denoiser
from hushsplat.types.camera import Camera
from hushsplat.types.gaussians import Gaussians

METHODS = {  # row: what `hushsplat bench` calls it; a denoiser's frame includes drawing the noisy one
    "reference": "reference",
    "raw": "raw",
    "st-taa": "raw+st-taa",
    "svgf": "raw+svgf",
    "svgf-tuned": "raw+svgf-tuned",
    "hush": "raw+hush",
    "hush-zero-shot": "raw+hush-zero-shot",
}
# What a part costs is what leaving it out saves. The paper's own reference is the sorted renderer.
PARTS: dict[str, dict[str, object]] = {
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
    timed = measure_times(case, [METHODS[method] for method in methods], (0,), rounds, on_frame)
    times = {method: row.median_ms for method, row in zip(methods, timed, strict=True)}
    return [
        {
            "experiment": "timing",
            "scene": case.scene,
            "track": track,
            "method": method,
            "frames": len(case.cameras) * rounds,
            "gaussians": len(case.gaussians),
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
    """What the denoiser's step takes without the drawing, and what each part of it saves when left out."""
    zero_shot = case.gaussians.payload is None
    times = _part_times_ms(case.gaussians, case.cameras, weights, zero_shot, rounds, on_frame)
    whole = times[0]
    costs = [whole, *(whole - without for without in times[1:])]  # by camera and round: all saw the same moment
    return [
        {
            "experiment": "timing",
            "scene": case.scene,
            "track": track,
            "method": f"{'hush-zero-shot' if zero_shot else 'hush'}: {part}",
            "frames": len(case.cameras) * rounds,
            "gaussians": len(case.gaussians),
            "time_ms": float(np.median(cost)),
        }
        for part, cost in zip(PARTS, costs, strict=True)
    ]


def _part_times_ms(
    gaussians: Gaussians,
    cameras: Sequence[Camera],
    weights: DenoiserWeights,
    zero_shot: bool,
    rounds: int,
    on_frame: Callable[[], None],
) -> np.ndarray:
    """[part, camera · round], one of each in turn."""
    options = RenderOptions()
    base = DenoiserSettings(zero_shot=zero_shot)
    variants = [denoiser("hush", weights=weights, config=replace(base, **change)) for change in PARTS.values()]  # type: ignore[arg-type]
    times_ms = np.empty((len(variants), rounds * len(cameras)))
    for column, (turn, camera) in enumerate(product(range(rounds), cameras)):
        for which in np.roll(np.arange(len(variants)), turn):
            step = prepared_step("hush", variants[which], gaussians, camera, options, turn)
            start = perf_counter()
            step()
            times_ms[which, column] = 1000 * (perf_counter() - start)
            on_frame()
    return times_ms
