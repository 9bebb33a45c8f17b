"""How long a frame takes: methods and thread counts side by side, frame by frame, so that a busy machine hurts all."""

from __future__ import annotations

import os
import platform
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from itertools import product
from pathlib import Path
from time import perf_counter
from typing import Any

import numpy as np

from hushsplat.engines.cpu import _engine
from hushsplat.engines.cpu.prepare import prepare
from hushsplat.engines.cpu.render_names import (
    RenderOptions,
    decode_color,
    render_ordered,
    render_sorted,
    sample_visibility,
)
from hushsplat.evaluation.denoiser_timing import STEPS, bytes_per_pixel, prepared_step
from hushsplat.stream import denoiser
from hushsplat.types.camera import Camera
from hushsplat.types.errors import RenderError
from hushsplat.types.gaussians import Gaussians


@dataclass(frozen=True)
class Case:
    """A scene at one picture size, and the cameras it is seen from."""

    scene: str  # what the tables call it
    gaussians: Gaussians
    cameras: Sequence[Camera]  # all of one size


@dataclass(frozen=True)
class Row:
    """One method on one case."""

    scene: str
    gaussians: int
    width: int  # px
    height: int  # px
    method: str
    threads: int
    median_ms: float  # per frame: for each camera the median over the rounds, then the mean over the cameras
    fastest_ms: float  # the same with the fastest round of each camera
    cameras: int
    rounds: int
    engine_bytes_per_gaussian: float  # what the engine holds beside the loaded scene
    bytes_per_pixel: float = 0.0  # of a denoiser: the state before and after a frame, and what the engine needs between


@dataclass(frozen=True)
class Ratio:
    """Two rows held against each other."""

    name: str  # such as "raw / reference"
    scene: str
    width: int
    height: int
    method: str  # empty where two methods are compared
    threads: int  # 0 where two thread counts are compared
    value: float


def _raw(gaussians: Gaussians, camera: Camera, options: RenderOptions, frame: int) -> None:
    """Identity, depth and colour of one sample per pixel."""
    visibility = sample_visibility(gaussians, camera, frame=frame, options=options)
    decode_color(visibility, gaussians, camera, options)


def _reference(gaussians: Gaussians, camera: Camera, options: RenderOptions, frame: int) -> None:
    """The blended colour alone: depth would cost it more, and nobody asked for it."""
    render_sorted(gaussians, camera, options, with_depth=False)


def _exact(gaussians: Gaussians, camera: Camera, options: RenderOptions, frame: int) -> None:
    render_ordered(gaussians, camera, options)


# Prepares a frame of a method, so that what comes back is all that is timed.
Frames = Callable[[Gaussians, Camera, RenderOptions, int], Callable[[], Any]]

FRAMES: dict[str, Callable[[Gaussians, Camera, RenderOptions, int], None]] = {
    "raw": _raw,
    "reference": _reference,
    "exact": _exact,
}
METHODS = (*FRAMES, *STEPS)  # renderers; denoisers alone and with the raw frame they take


def measure(
    case: Case,
    methods: Sequence[str],
    threads: Sequence[int],  # 0: all cores
    rounds: int,
    on_frame: Callable[[], None] = lambda: None,  # after each timed frame, for a progress bar
    weights: str | os.PathLike[str] | None = None,  # of hush; None: those of the package
    others: Mapping[str, Frames] | None = None,  # methods beside METHODS, timed too
    on_warm_up: Callable[[str], None] = lambda _: None,  # before the first frame of a method, which may take long
) -> list[Row]:
    """Time every method with every thread count, one frame of each in turn, all over again in every round."""
    others = others or {}
    unknown = [method for method in methods if method not in METHODS]
    if unknown:
        raise RenderError(f"methods must be of {', '.join(METHODS)}, got '{unknown[0]}'.")
    if rounds < 1 or not case.cameras or not methods or not threads:
        raise RenderError("a measurement needs at least one round, one camera, one method and one thread count.")
    counts = [count or _engine.default_threads() for count in threads]
    variants = list(dict.fromkeys(product([*methods, *others], counts)))
    engine_bytes = prepare(case.gaussians).bytes
    denoisers = {
        (method, count): denoiser(STEPS[method], weights=weights, threads=count)
        for method, count in variants
        if method in STEPS
    }

    def ready(variant: tuple[str, int], camera: Camera, frame: int) -> Callable[[], Any]:
        options = RenderOptions(threads=variant[1])
        if variant[0] in others:
            return others[variant[0]](case.gaussians, camera, options, frame)
        if variant in denoisers:
            return prepared_step(variant[0], denoisers[variant], case.gaussians, camera, options, frame)
        return partial(FRAMES[variant[0]], case.gaussians, camera, options, frame)

    first = case.cameras[0]
    for variant in variants:  # the first frame pays for memory that later ones find ready
        on_warm_up(variant[0])
        ready(variant, first, 0)()
    times_ms = np.empty((len(variants), len(case.cameras), rounds))
    for turn, (index, camera) in product(range(rounds), enumerate(case.cameras)):
        for which in np.roll(np.arange(len(variants)), turn):  # nobody is always first
            draw = ready(variants[which], camera, turn)
            start = perf_counter()
            draw()
            times_ms[which, index, turn] = 1000 * (perf_counter() - start)
            on_frame()
    held = {variant: bytes_per_pixel(STEPS[variant[0]], found, first) for variant, found in denoisers.items()}
    return [
        Row(
            scene=case.scene,
            gaussians=len(case.gaussians),
            width=first.width,
            height=first.height,
            method=method,
            threads=count,
            median_ms=float(np.median(times, axis=1).mean()),
            fastest_ms=float(times.min(axis=1).mean()),
            cameras=len(case.cameras),
            rounds=rounds,
            engine_bytes_per_gaussian=engine_bytes / max(len(case.gaussians), 1),
            bytes_per_pixel=held.get((method, count), 0.0),
        )
        for (method, count), times in zip(variants, times_ms, strict=True)
    ]


def ratios(rows: Sequence[Row], growing: Sequence[str] = ()) -> list[Ratio]:
    """What the rows say about each other: methods, thread counts, and scenes of one family (`growing`, by name)."""
    return [*_method_ratios(rows), *_torch_ratios(rows), *_thread_ratios(rows), *_growth_ratios(rows, growing)]


def _method_ratios(rows: Sequence[Row]) -> Iterator[Ratio]:
    reference = {(r.scene, r.width, r.height, r.threads): r.median_ms for r in rows if r.method == "reference"}
    for row in rows:
        key = (row.scene, row.width, row.height)
        if (row.method == "raw" or row.method.startswith("raw+")) and (*key, row.threads) in reference:
            value = row.median_ms / reference[(*key, row.threads)]
            yield Ratio(f"{row.method} / reference", *key, "", row.threads, value)


def _torch_ratios(rows: Sequence[Row]) -> Iterator[Ratio]:
    """How much longer the twin takes, rows of learn/timed_twin.py."""
    engine = {(r.scene, r.width, r.height, r.threads, r.method): r.median_ms for r in rows}
    for row in rows:
        key = (row.scene, row.width, row.height)
        kind, _, method = row.method.partition(":")
        if method and (*key, row.threads, method) in engine:
            value = row.median_ms / engine[(*key, row.threads, method)]
            yield Ratio(f"{kind} / engine", *key, method, row.threads, value)


def _thread_ratios(rows: Sequence[Row]) -> Iterator[Ratio]:
    alone = {(r.scene, r.width, r.height, r.method): r.median_ms for r in rows if r.threads == 1}
    for row in rows:
        key = (row.scene, row.width, row.height, row.method)
        if row.threads > 1 and key in alone:
            yield Ratio(f"1 thread / {row.threads} threads", *key, 0, alone[key] / row.median_ms)


def _growth_ratios(rows: Sequence[Row], growing: Sequence[str]) -> Iterator[Ratio]:
    family = sorted((row for row in rows if row.scene in growing), key=lambda row: row.gaussians)
    smallest: dict[tuple[int, int, str, int], Row] = {}
    for row in family:
        key = (row.width, row.height, row.method, row.threads)
        small = smallest.setdefault(key, row)
        if row.gaussians == family[-1].gaussians > small.gaussians:
            name = f"{row.gaussians / small.gaussians:.3g}× the Gaussians"
            yield Ratio(name, row.scene, *key, row.median_ms / small.median_ms)


def spread(cameras: Sequence[Camera], count: int, width: int, height: int) -> list[Camera]:
    """At most `count` of the cameras, evenly over all of them, at one picture size."""
    index = np.unique(np.linspace(0, len(cameras) - 1, count).round().astype(int))
    return [cameras[i].resized(width, height) for i in index]


def machine() -> dict[str, str | int]:
    """What the times depend on besides the code."""
    return {
        "cpu": _cpu_name(),
        "cores": _engine.default_threads(),
        "instruction_set": _engine.instruction_set(),
        "python": platform.python_version(),
        "platform": platform.platform(),
    }


def _cpu_name() -> str:
    try:
        lines = Path("/proc/cpuinfo").read_text(errors="replace").splitlines()
    except OSError:  # not Linux
        lines = []
    names = [line.partition(":")[2].strip() for line in lines if line.startswith("model name")]
    return names[0] if names else platform.processor() or platform.machine()
