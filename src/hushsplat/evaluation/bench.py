"""Frame times: methods and thread counts interleaved frame by frame, so that a busy machine slows all of them."""

from __future__ import annotations

import platform
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from itertools import product
from pathlib import Path
from time import perf_counter
from typing import Any

import numpy as np
from jaxtyping import Float32, Float64
from numpy import ndarray as Array

from hushsplat.engines.base import Engine, Scene
from hushsplat.engines.cpu.engine import CpuEngine, CpuScene
from hushsplat.engines.cpu.machine import default_threads, instruction_set
from hushsplat.methods import (
    ACTIVE,
    BLENDED,
    DENOISERS,
    LEARNED,
    Denoiser,
    EngineDenoiser,
    WeightsLike,
    configure,
    method,
)
from hushsplat.stream import Stream
from hushsplat.types.camera import Camera
from hushsplat.types.errors import RenderError
from hushsplat.types.gaussians import PAYLOAD_FLOATS, Gaussians
from hushsplat.types.levels import Levels
from hushsplat.types.metrics import psnr
from hushsplat.types.options import Noise, RenderOptions

METHODS = (
    "raw",
    *BLENDED,
    *ACTIVE,
    *DENOISERS,
    *(f"raw+{name}" for name in DENOISERS),
)  # denoisers alone, and with raw
LEVELED = ", levels"  # ends the name of a row with levels of detail
FINER = 3  # times the pixels on each side, of the picture that levels of detail are compared with
ACTIVE_FRAMES = 4  # that an active set has seen before the timed one
TURN_DEG = 0.25  # between two frames: a few px in any scene, as when walking
PYRAMID_BYTES = 16 * (1 + 1 / 4 + 1 / 16 + 1 / 64)  # a pixel: four levels of three colours and a filled depth

# Everything before the timed part of a frame (camera, number of the frame); what comes back is timed.
Prepare = Callable[[Camera, int], Callable[[], Any]]


@dataclass(frozen=True)
class Case:
    """An uploaded scene at one picture size, and the cameras it is drawn from."""

    name: str  # of the scene, in tables
    engine: Engine
    scene: Scene
    cameras: Sequence[Camera]  # all of one size
    spacing_px: float = 0.0  # of the Gaussians that are drawn, of a scene with levels of detail; 0: all of them

    def seen_by(self, camera: Camera) -> Scene:
        """What is drawn from a camera."""
        return self.scene.seen_by(camera, self.spacing_px) if isinstance(self.scene, CpuScene) else self.scene

    @property
    def adapter(self) -> str:
        """The GPU that draws, empty for other engines."""
        return str(getattr(self.engine, "adapter", ""))


@dataclass(frozen=True)
class BenchPlan:
    """What is timed on each case."""

    methods: Sequence[str]  # of METHODS
    threads: Sequence[int]  # 0: all cores
    rounds: int
    weights: WeightsLike | None = None  # of the learned denoisers; None: those of the package
    others: Mapping[str, Callable[[RenderOptions], Denoiser]] = field(default_factory=dict)  # further denoisers, by row
    beside: Sequence[Case] = ()  # the same scene on other engines, timed in turn with the first; once, not per threads
    leveled: Case | None = None  # the same scene with levels of detail, timed in turn with the first


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
    engine: str = "cpu"
    adapter: str = ""  # of the gpu engine
    passes_ms: dict[str, float] = field(default_factory=dict)  # of one frame by the GPU's own clock, where it has one
    # counted in one frame of the gpu engine, by pass: [tested, shaded] per pixel
    fragments_per_pixel: dict[str, list[float]] = field(default_factory=dict)
    # dB of `reference` of what this row draws to a finer picture; where rows with levels of detail stand beside it
    finer_psnr: float = 0.0


@dataclass(frozen=True)
class Ratio:
    """The quotient of two rows."""

    name: str  # such as "raw / reference"
    scene: str
    width: int
    height: int
    method: str  # empty where two methods are compared
    threads: int  # 0 where two thread counts are compared
    value: float


def time_methods(
    case: Case,
    plan: BenchPlan,
    on_frame: Callable[[], None] = lambda: None,  # after each timed frame, for a progress bar
    on_warm_up: Callable[[str], None] = lambda _: None,  # before the first frame of a method, which may take long
) -> list[Row]:
    """A row for each method and thread count."""
    unknown = [name for name in plan.methods if name not in METHODS]
    if unknown:
        raise RenderError(f"methods must be of {', '.join(METHODS)}, got '{unknown[0]}'.")
    if plan.rounds < 1 or not case.cameras or not plan.methods or not plan.threads:
        raise RenderError("a benchmark needs at least one round, one camera, one method and one thread count.")
    counts = [count or default_threads() for count in plan.threads]
    variants = [(case, name, count) for name, count in dict.fromkeys(product([*plan.methods, *plan.others], counts))]
    near_finer = [0.0, 0.0]  # the scene itself, and with levels of detail
    if plan.leveled is not None:
        near_finer = finer_psnr(case, (case, plan.leveled))
        rows = dict.fromkeys(product((name for name in plan.methods if name not in BLENDED), counts))
        variants += [(plan.leveled, name, count) for name, count in rows]
    variants += [(other, name, 0) for other in plan.beside for name in dict.fromkeys(plan.methods)]
    frames = [_frames(drawn, plan, name, RenderOptions(threads=count)) for drawn, name, count in variants]
    first = case.cameras[0]
    for (_, name, _), prepare in zip(variants, frames, strict=True):  # the first frame allocates what later ones reuse
        on_warm_up(name)
        prepare(first, 0)()
    times_ms = interleaved_times_ms(frames, case.cameras, plan.rounds, on_frame)
    return [
        Row(
            scene=drawn.name,
            gaussians=case.scene.count,
            width=first.width,
            height=first.height,
            method=name + LEVELED if drawn is plan.leveled else name,
            threads=count,
            median_ms=float(np.median(times, axis=1).mean()),
            fastest_ms=float(times.min(axis=1).mean()),
            cameras=len(case.cameras),
            rounds=plan.rounds,
            engine_bytes_per_gaussian=drawn.scene.bytes / max(drawn.scene.count, 1),
            bytes_per_pixel=bytes_per_pixel(name.removeprefix("raw+")) if drawn is case else 0.0,
            engine=drawn.engine.name,
            adapter=drawn.adapter,
            passes_ms=_passes_ms(drawn, prepare),
            fragments_per_pixel=_fragments_per_pixel(drawn, prepare),
            finer_psnr=0.0 if drawn in plan.beside else near_finer[drawn is plan.leveled],
        )
        for (drawn, name, count), prepare, times in zip(variants, frames, times_ms, strict=True)
    ]


def with_levels(case: Case, gaussians: Gaussians, spacing_px: float) -> Case:
    """The same scene with levels of detail, Gaussians so far apart in the picture; of the cpu engine."""
    return replace(case, scene=CpuEngine().upload_levels(Levels.of(gaussians)), spacing_px=spacing_px)


def finer_psnr(case: Case, scenes: Sequence[Case]) -> list[float]:
    """PSNR of `reference` of each case to a picture of FINER times the pixels on each side: the mean over the cameras.

    The finer picture is averaged down; `case` draws it. What is smaller than a pixel is drawn as large as one, so that
    coarser levels of detail can be nearer to it than the scene itself.
    """
    found = []
    for camera in case.cameras:
        fine = _drawn(case, camera.resized(FINER * camera.width, FINER * camera.height))
        target = fine.reshape(camera.height, FINER, camera.width, FINER, 3).mean(axis=(1, 3))
        found.append([psnr(_drawn(one, camera), target) for one in scenes])
    return np.mean(found, axis=0).tolist()


def _drawn(case: Case, camera: Camera) -> Float32[Array, "h w 3"]:
    image = case.engine.render(case.seen_by(camera), camera, "reference", RenderOptions(), with_depth=False)
    return image.numpy().color


def _passes_ms(case: Case, prepare: Prepare) -> dict[str, float]:
    """The passes of one more frame, of an engine whose device has a clock."""
    timed_passes = getattr(case.engine, "timed_passes", None)
    if timed_passes is None:
        return {}
    draw = prepare(case.cameras[0], 0)
    with timed_passes() as passes_ms:
        draw()
    return {name: round(float(time_ms), 4) for name, time_ms in passes_ms.items()}


def _fragments_per_pixel(case: Case, prepare: Prepare) -> dict[str, list[float]]:
    """The fragments of one more frame, of an engine that counts them."""
    counted_fragments, camera = getattr(case.engine, "counted_fragments", None), case.cameras[0]
    if counted_fragments is None:
        return {}
    draw = prepare(camera, 0)
    with counted_fragments() as found:
        draw()
    return {name: [round(float(n) / (camera.width * camera.height), 3) for n in found[name]] for name in found}


def interleaved_times_ms(
    variants: Sequence[Prepare],
    cameras: Sequence[Camera],
    rounds: int,
    on_frame: Callable[[], None] = lambda: None,
) -> Float64[Array, "variants cameras rounds"]:
    """One frame of each variant in turn, for every camera, again in every round; the first variant rotates."""
    times_ms = np.empty((len(variants), len(cameras), rounds))
    for turn, (index, camera) in product(range(rounds), enumerate(cameras)):
        for which in np.roll(np.arange(len(variants)), turn).tolist():
            draw = variants[which](camera, turn)
            start = perf_counter()
            draw()
            times_ms[which, index, turn] = 1000 * (perf_counter() - start)
            on_frame()
    return times_ms


def denoiser_frames(case: Case, denoiser: Denoiser, options: RenderOptions, with_raw: bool) -> Prepare:
    """The second frame of a turning camera: the denoiser's step alone, or with the noisy frame that it takes."""

    def prepare(camera: Camera, frame: int) -> Callable[[], Any]:
        stream = Stream(case.engine, case.seen_by(camera), [denoiser], noise=Noise(frame=frame), options=options)
        stream.step(turned(camera, TURN_DEG))
        if with_raw:
            return partial(stream.step, camera)
        return partial(stream.feed, stream.observe(camera), camera)

    return prepare


def _raw_frame(case: Case, camera: Camera, frame: int, options: RenderOptions) -> Callable[[], Any]:
    """The second frame of a turning camera: those that won pixels in the first are drawn before the others."""
    plain = case.engine.with_payload(case.seen_by(camera), None)  # V0..V3 belong to the denoiser
    stream = Stream(case.engine, plain, ["raw"], noise=Noise(frame=frame), options=options)
    stream.step(turned(camera, TURN_DEG))
    return partial(stream.step, camera)


def _active_frame(case: Case, name: str, options: RenderOptions, camera: Camera) -> Callable[[], Any]:
    """A frame of a camera that has turned for a while: the set knows who is seen."""
    stream = Stream(case.engine, case.seen_by(camera), [name], options=options)
    for step in range(ACTIVE_FRAMES, 0, -1):
        stream.step(turned(camera, step * TURN_DEG))
    return partial(stream.step, camera)


def _frames(case: Case, plan: BenchPlan, name: str, options: RenderOptions) -> Prepare:
    """Of one row: nothing is under way when a frame begins, and a frame ends when its engine is done."""
    prepare = _submitted_frames(case, plan, name, options)

    def prepared(camera: Camera, frame: int) -> Callable[[], Any]:
        draw = prepare(camera, frame)
        case.engine.finish()

        def drawn() -> None:
            draw()
            case.engine.finish()

        return drawn

    return prepared


def _submitted_frames(case: Case, plan: BenchPlan, name: str, options: RenderOptions) -> Prepare:
    if name in plan.others:
        return denoiser_frames(case, plan.others[name](options), options, with_raw=False)
    if name in BLENDED:
        # `reference` blends the colour alone: its depth takes more time, and few ask for it.
        return lambda camera, frame: partial(
            case.engine.render, case.scene, camera, name, options, with_depth=name != "reference"
        )
    if name in ACTIVE:
        return lambda camera, frame: _active_frame(case, name, options, camera)
    if name == "raw":
        return lambda camera, frame: _raw_frame(case, camera, frame, options)
    alone = name.removeprefix("raw+")
    configured = configure(alone, weights=plan.weights if alone in LEARNED else None)
    return denoiser_frames(case, EngineDenoiser(configured, case.engine, options), options, with_raw=alone != name)


def torch_denoisers(
    names: Sequence[str], weights: WeightsLike | None
) -> dict[str, Callable[[RenderOptions], EngineDenoiser]]:
    """Rows of the torch engine, eager and compiled; new engines, so that each picture size is compiled for itself."""
    from hushsplat.engines.torch.engine import TorchEngine  # says how to install PyTorch if it is missing

    engines = {"torch": TorchEngine(), "torch.compile": TorchEngine(compiled=True)}
    return {
        f"{kind}:{name}": partial(EngineDenoiser, configure(name, weights=weights), engine)
        for name in names
        for kind, engine in engines.items()
    }


def with_random_payload(gaussians: Gaussians) -> Gaussians:
    """The scene, with a random payload if it has none (kernels of many sizes and directions) to time denoisers."""
    if gaussians.payload is not None:
        return gaussians
    payload = np.random.default_rng(0).standard_normal((len(gaussians), PAYLOAD_FLOATS)).astype(np.float32)
    payload[:, :9] *= 2  # px at a distance of 1: V0 and V1 are of the size of a pixel
    return replace(gaussians, payload=payload)


def turned(camera: Camera, degrees: float) -> Camera:
    """The camera turned to the right."""
    sine, cosine = np.sin(np.radians(degrees)), np.cos(np.radians(degrees))
    turn = np.eye(4)
    turn[0, 0], turn[0, 2], turn[2, 0], turn[2, 2] = cosine, sine, -sine, cosine
    return replace(camera, world_from_camera=camera.world_from_camera @ turn)


def spread(cameras: Sequence[Camera], count: int, width: int, height: int) -> list[Camera]:
    """At most `count` of the cameras, evenly over all of them, at one picture size."""
    index = np.unique(np.linspace(0, len(cameras) - 1, count).round().astype(int))
    return [cameras[i].resized(width, height) for i in index]


def bytes_per_pixel(name: str) -> float:
    """What a denoiser on the CPU holds while it works: the state it reads, the one it writes, and a learned pyramid."""
    layout = method(name).layout if name in DENOISERS else None
    if layout is None:
        return 0.0
    return 2.0 * 4 * layout.floats + (PYRAMID_BYTES if name in LEARNED else 0.0)


def ratios(rows: Sequence[Row], growing: Sequence[str] = ()) -> list[Ratio]:
    """Quotients of rows: methods, engines, thread counts, and scenes of one family (`growing`, by name)."""
    found = [*_method_ratios(rows), *_torch_ratios(rows), *_engine_ratios(rows), *_thread_ratios(rows)]
    return [*found, *_growth_ratios([row for row in rows if row.engine == "cpu"], growing)]


def _method_ratios(rows: Sequence[Row]) -> Iterator[Ratio]:
    times = {(r.scene, r.width, r.height, r.threads, r.engine): r.median_ms for r in rows if r.method == "reference"}
    for row in rows:
        key = (row.scene, row.width, row.height)
        reference = times.get((*key, row.threads, row.engine))
        if row.method.startswith("raw") and reference is not None:
            on = "" if row.engine == "cpu" else f", {row.engine}"
            yield Ratio(f"{row.method} / reference{on}", *key, "", row.threads, row.median_ms / reference)


def _torch_ratios(rows: Sequence[Row]) -> Iterator[Ratio]:
    """How much longer the rows of `torch_denoisers` take than the engine."""
    engine = {(r.scene, r.width, r.height, r.threads, r.method): r.median_ms for r in rows}
    for row in rows:
        key = (row.scene, row.width, row.height)
        kind, _, name = row.method.partition(":")
        if name and (*key, row.threads, name) in engine:
            value = row.median_ms / engine[(*key, row.threads, name)]
            yield Ratio(f"{kind} / engine", *key, name, row.threads, value)


def _engine_ratios(rows: Sequence[Row]) -> Iterator[Ratio]:
    """How long other engines take beside the cpu engine on most threads."""
    cpu: dict[tuple[str, int, int, str], Row] = {}
    for row in rows:
        key = (row.scene, row.width, row.height, row.method)
        if row.engine == "cpu" and (key not in cpu or row.threads > cpu[key].threads):
            cpu[key] = row
    for row in rows:
        key = (row.scene, row.width, row.height, row.method)
        if row.engine != "cpu" and key in cpu:
            yield Ratio(f"{row.engine} / cpu", *key, cpu[key].threads, row.median_ms / cpu[key].median_ms)


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


def machine() -> dict[str, str | int]:
    """What the times depend on besides the code."""
    return {
        "cpu": _cpu_name(),
        "cores": default_threads(),
        "instruction_set": instruction_set(),
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
