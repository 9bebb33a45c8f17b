"""`hushsplat bench`: how fast the methods are on this machine."""

from __future__ import annotations

import json
import re
from collections.abc import Sequence
from dataclasses import asdict, dataclass, replace
from typing import TYPE_CHECKING, Annotated, Literal

import tyro
from rich.table import Table

from hushsplat import __version__
from hushsplat.cli.console import Bar, print_error, progress_bar, results, status
from hushsplat.cli.flags import (
    EngineName,
    Flag,
    MaybeInt,
    MaybePath,
    MaybeText,
    SceneNames,
    choose_instruction_set,
    chosen_engine,
)
from hushsplat.engines.base import engine
from hushsplat.evaluation.bench import (
    METHODS,
    BenchPlan,
    Case,
    Ratio,
    Row,
    machine,
    ratios,
    spread,
    time_methods,
    torch_denoisers,
    with_levels,
    with_random_payload,
)
from hushsplat.evaluation.roofline import Roofline, measure_peak, passes, rooflines
from hushsplat.home import orbit_scene
from hushsplat.io.captures.capture import load_capture
from hushsplat.methods import BLENDED, DENOISERS, LEARNED, drawn_by
from hushsplat.scenes import NamedScene, scene_argument
from hushsplat.synth import walk_track
from hushsplat.types.camera import Camera
from hushsplat.types.errors import HushsplatError

DESCRIPTION = """Time the methods side by side.

One frame of each in turn, all over again in every round.
`raw` draws one sample per pixel: primitive, depth and colour, of a camera that turns. `reference` blends the colour.
`temporal` is one step of that denoiser while the camera turns, `raw+temporal` the same with the frame it takes.
A time is the median over the rounds, averaged over the cameras: those of the walk through our own scene, those of
a capture, or those of an orbit. Ratios are what to trust; times depend on what else the machine does.
With --levels the rows of `raw, levels` draw levels of detail, and dB is how near `reference` of what a row draws is to
a picture of three times the pixels on each side.
Beside a step of `temporal` stands its roofline: what its arithmetic and its bytes would take at this machine's peak.

Examples of use:
  hushsplat bench                                   our scene at 200k, 500k and 2M surfels
  hushsplat bench synth:500k --methods raw exact reference --sizes 640x360
  hushsplat bench bonsai.splat --capture bonsai/    from the capture's own cameras
  hushsplat bench synth:500k --denoisers            every denoiser beside raw and reference
  hushsplat bench bonsai.splat --methods raw reference raw+temporal --payload
  hushsplat bench synth:500k --methods temporal-zero-shot --against torch --threads 0
  hushsplat bench synth:500k --engine gpu --denoisers --json > gpu.json     a GPU beside the CPU
  hushsplat bench synth:20M --levels 20             raw with levels of detail, as the viewer moves
  hushsplat bench --json > bench.json               rows as flat records, and the machine
"""
if TYPE_CHECKING:
    Method = str
else:  # the names become the choices that --help lists
    Method = Literal[METHODS]


@dataclass(frozen=True)
class Bench:
    """Time the methods side by side."""

    scenes: SceneNames = ("synth:200k", "synth:500k", "synth:2M")  # files; or synth:500k, our own scene
    sizes: tuple[str, ...] = ("800x532", "1600x1064")  # picture sizes in px
    methods: tuple[Method, ...] = ("raw", "reference")  # what to time
    denoisers: Flag = False  # time every denoiser that fits the scene too, alone and with raw
    weights: MaybePath = None  # of paper and temporal: a .safetensors file; the package's own if not said
    payload: Flag = False  # give scenes without a payload a random one, so that temporal can be timed
    # also time the same step by the torch engine, eager and compiled (a few minutes); needs hushsplat[learn]
    against: Annotated[Literal["torch"] | None, tyro.conf.arg(metavar="{torch}", help_behavior_hint="")] = None
    threads: tuple[int, ...] = (1, 0)  # thread counts, 0: all cores
    rounds: int = 7  # >= 1: how often each camera is drawn by each method
    cameras: int = 6  # >= 1: how many, spread over the walk, the capture or the orbit
    capture: MaybePath = None  # cameras for scenes that are files: a capture, or a .json list of cameras
    lod: MaybeInt = None  # level of detail of a streamed SOG, 0 is the finest
    # > 0: also draw levels of detail, Gaussians so many px apart, as the viewer does while the camera moves (15 to 70)
    levels: float = 0.0
    engine: EngineName = "cpu"  # gpu: its rows beside those of the cpu engine, in turn; auto: if there is a GPU
    adapter: MaybeText = None  # of the gpu engine: number or part of the name, see hushsplat info --engines
    isa: MaybeText = None  # instruction set of the engine; the best one if not said
    json: Flag = False  # print one JSON object: rows, ratios, version and machine
    quiet: Flag = False  # no progress bar

    def run(self) -> None:
        """Time every scene at every size, then print."""
        choose_instruction_set(self.isa)
        if self.adapter is not None and self.engine == "cpu":
            raise HushsplatError("--adapter is for the gpu engine, not for cpu; leave it out.")
        sizes = [_size(text) for text in self.sizes]
        if not 0 <= self.levels < float("inf"):
            raise HushsplatError(f"--levels must be at least 0, got {self.levels}.")
        if self.cameras < 1 or self.rounds < 1:
            raise HushsplatError(f"--cameras and --rounds must be at least 1, got {self.cameras} and {self.rounds}.")
        rows: list[Row] = []
        own: list[str] = []
        for text in self.scenes:
            with status(f"reading {text}", self.quiet):
                scene = scene_argument(text, None if text.startswith("synth:") else self.lod)
            if self.payload:
                scene = replace(scene, gaussians=with_random_payload(scene.gaussians))
            rows += self._rows(scene, sizes)
            own += [scene.name] * scene.is_own
        found = ratios(rows, own)
        with status("measuring the machine's peak", self.quiet):
            learned = [row for row in rows if row.method in LEARNED and row.engine == "cpu"]
            peaks = {count: measure_peak(count) for count in {row.threads for row in learned}}
        bounds = rooflines(learned, peaks)
        if self.json:
            flat = [asdict(row) for row in rows]
            bound = [{**asdict(each), "bound_ms": each.bound_ms, "ratio": each.ratio} for each in bounds]
            print(json.dumps({"rows": flat, "ratios": list(map(asdict, found)), "rooflines": bound, **_about()}))
        else:
            _print_tables(rows, found)
            if bounds:
                _print_rooflines(bounds)

    def _rows(self, scene: NamedScene, sizes: Sequence[tuple[int, int]]) -> list[Row]:
        methods = self._methods(scene)
        compared = [name for name in LEARNED if name in methods] or ["temporal-zero-shot"]
        if self.against == "torch":
            methods = list(dict.fromkeys([*methods, *compared]))
        drawn_on, seen, rows = engine("cpu"), self._cameras(scene), list[Row]()
        uploaded = drawn_on.upload(scene.gaussians)
        other = None if self.engine == "cpu" else chosen_engine(self.engine, self.adapter, fixed=True)
        beside = None if other is None or other.name == "cpu" else (other, other.upload(scene.gaussians))
        leveled = None
        if self.levels > 0:
            with status(f"merging {scene.name}", self.quiet):
                leveled = with_levels(Case(scene.name, drawn_on, uploaded, seen), scene.gaussians, self.levels)
        for size in sizes:
            case = Case(scene.name, drawn_on, uploaded, spread(seen, self.cameras, *size))
            cases = [] if beside is None else [Case(scene.name, *beside, case.cameras)]
            others = torch_denoisers(compared, self.weights) if self.against == "torch" else {}
            coarse = None if leveled is None else replace(leveled, cameras=case.cameras)
            plan = BenchPlan(methods, self.threads, self.rounds, self.weights, others, cases, coarse)
            timed_twice = 0 if leveled is None else sum(name not in BLENDED for name in methods)
            on_cpu = (len(methods) + len(others) + timed_twice) * len(set(self.threads))
            variants = on_cpu + len(methods) * len(cases)
            text = f"timing {scene.name}, {case.cameras[0].width}×{case.cameras[0].height}"
            with progress_bar(text, len(case.cameras) * self.rounds * variants, self.quiet) as bar:

                def warm_up(name: str, bar: Bar = bar) -> None:
                    bar.describe(f"warming up {name}" + (", compiling takes a while" if "compile" in name else ""))

                def timed(bar: Bar = bar, text: str = text) -> None:
                    bar.describe(text)
                    bar.advance()

                rows += time_methods(case, plan, timed, warm_up)
        return rows

    def _methods(self, scene: NamedScene) -> list[str]:
        """The rows that are timed; a method that needs a payload is replaced where the scene has none."""
        asked = list(self.methods)
        if self.denoisers:
            asked += [*DENOISERS, *(f"raw+{name}" for name in DENOISERS)]
        rows, replaced = dict[str, None](), dict[str, str]()
        for row in asked:
            name = row.removeprefix("raw+")
            by = drawn_by(name, scene.gaussians.payload is not None).name
            if by != name and row in self.methods:
                replaced[name] = by
            rows[row.removesuffix(name) + by] = None
        for name, by in replaced.items():
            print_error(f"{scene.name} has no payload for {name}; {by} draws it.")
        return list(rows)

    def _cameras(self, scene: NamedScene) -> list[Camera]:
        if scene.is_own:
            track = walk_track()
        elif self.capture is not None:
            return [view.camera for view in load_capture(self.capture, require_photographs=False).views]
        else:
            track = orbit_scene(scene.framing, 800, 532, seconds=float(self.cameras), fps=1.0)
        return [track.camera(index) for index in range(len(track))]


def _size(text: str) -> tuple[int, int]:
    match = re.fullmatch(r"(\d{1,5})[x×](\d{1,5})", text)
    if match is None:
        raise HushsplatError(f"--sizes {text}: write width x height in px, such as 800x532.")
    return int(match[1]), int(match[2])


def _about() -> dict[str, str | int]:
    return {"version": __version__, **machine()}


def _print_tables(rows: Sequence[Row], found: Sequence[Ratio]) -> None:
    about = _about()
    title = "hushsplat {version} on {cpu}, {cores} cores, {instruction_set}".format(**about)
    columns = ("scene", "Gaussians", "size", "method", "on", "ms per frame", "bytes per Gaussian", "per pixel")
    coarse = any(row.finer_psnr for row in rows)
    times = Table(*columns, *["dB"] * coarse, title=title)
    for row in rows:
        size, held = f"{row.width}×{row.height}", f"{row.engine_bytes_per_gaussian:.1f}"
        kept = f"{row.bytes_per_pixel:.0f}" if row.bytes_per_pixel else ""
        time_ms = f"{row.median_ms:.1f}"
        on = row.adapter or f"{row.threads} thread{'s' * (row.threads > 1)}"
        near = [f"{row.finer_psnr:.1f}" if row.finer_psnr else ""] * coarse
        times.add_row(row.scene, f"{row.gaussians:,}", size, row.method, on, time_ms, held, kept, *near)
    compared = Table("ratio", "scene", "size", "method", "threads", "value")
    for ratio in found:
        size, threads = f"{ratio.width}×{ratio.height}", str(ratio.threads or "")
        compared.add_row(ratio.name, ratio.scene, size, ratio.method, threads, f"{ratio.value:.2f}")
    shown = [times, compared]
    if any(row.fragments_per_pixel for row in rows):
        shown.append(_fragments_table(rows))
    results().print(*shown)


def _fragments_table(rows: Sequence[Row]) -> Table:
    columns = ("scene", "size", "method", "on", "pass", "tested", "shaded")
    table = Table(*columns, title="fragments per pixel, counted in one frame")
    for row in rows:
        for name, (tested, shaded) in row.fragments_per_pixel.items():
            size = f"{row.width}×{row.height}"
            table.add_row(row.scene, size, row.method, row.adapter, name, f"{tested:.1f}", f"{shaded:.1f}")
    return table


def _print_rooflines(bounds: Sequence[Roofline]) -> None:
    columns = ("scene", "size", "method", "threads", "GFLOP/s", "GB/s", "compute", "memory", "measured, ms", "ratio")
    table = Table(*columns, title="roofline of the step, and the ratio of the measured time to it")
    for row in bounds:
        times = (row.peak_gflops, row.peak_gbytes, row.compute_ms, row.memory_ms, row.measured_ms)
        numbers = [*(f"{value:.1f}" for value in times), f"{row.ratio:.2f}"]
        table.add_row(row.scene, f"{row.width}×{row.height}", row.method, str(row.threads), *numbers)
    names = [part.name for part in passes(zero_shot=True)]
    work = Table("a pixel of", *names, "together", title="work of the passes per pixel")
    for method in dict.fromkeys(row.method for row in bounds):
        parts = passes(method == "temporal-zero-shot")
        flops, moved = [part.flops for part in parts], [part.bytes for part in parts]
        work.add_row(f"{method}: operations", *(f"{count:.0f}" for count in (*flops, sum(flops))))
        work.add_row(f"{method}: bytes", *(f"{count:.0f}" for count in (*moved, sum(moved))))
    results().print(work, table)
