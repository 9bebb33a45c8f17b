"""The timing experiment: frame times of every method along a track, and what each pass of the denoiser costs."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import numpy as np

from hushsplat.evaluation.bench import BenchPlan, Case, denoiser_frames, interleaved_times_ms, time_methods
from hushsplat.evaluation.draw_jobs import uploaded
from hushsplat.evaluation.results import Row
from hushsplat.evaluation.shots import SceneSource
from hushsplat.methods import EngineDenoiser, configure, drawn_by
from hushsplat.spec.settings import DenoiserSettings
from hushsplat.spec.weights import DenoiserWeights
from hushsplat.types.camera import Camera
from hushsplat.types.options import RenderOptions

DENOISED = (
    *("st-taa", "svgf", "svgf-literal", "svgf-tuned"),
    *("paper", "paper-zero-shot", "temporal", "temporal-zero-shot"),
)
METHODS = {  # row: what `hushsplat bench` calls it; a denoiser's frame includes drawing the noisy one
    "reference": "reference",
    "raw": "raw",
    **{name: f"raw+{name}" for name in DENOISED},
    "hush": "hush",
}
# The cost of a pass is what leaving it out saves. The paper's own reference is the sorted renderer.
PARTS: dict[str, dict[str, Any]] = {
    "all of the denoiser": {},
    "trust networks (t = 1)": {"trust": "one"},
    "spatial filter": {"spatial_filter": False},
    "smoothing": {"smooth": False},
    "stabilisation": {"stabilise": False},
}


@dataclass(frozen=True)
class TimeJob:
    """Times of methods on a scene; the outcome is stored, so that a run that goes on has the same."""

    scene: SceneSource
    track: str
    cameras: tuple[Camera, ...] = field(repr=False)
    methods: tuple[str, ...]  # of METHODS
    rounds: int

    @property
    def group(self) -> SceneSource:
        """In the order of the scenes."""
        return self.scene

    @property
    def cost(self) -> int:
        """Frames to draw, for a progress bar."""
        return len(self.cameras) * len(self.methods) * self.rounds

    @property
    def takes_all_cores(self) -> bool:
        """What is timed runs alone."""
        return True

    def files(self, folder: Path) -> list[Path]:
        """It stores none."""
        return []

    def run(self, folder: Path, threads: int) -> dict[str, Any]:
        """The rows of `timing_rows`."""
        case = Case(self.scene.name, *uploaded(self.scene), self.cameras)
        return {"rows": timing_rows(case, self.track, self.methods, self.rounds)}


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
    weights: DenoiserWeights | None,  # None: those of the package
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
