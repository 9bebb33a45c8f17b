"""`hushsplat bench`: how fast the methods are on this machine."""

from __future__ import annotations

import json
import re
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from typing import TYPE_CHECKING, Literal

from rich.table import Table

import hushsplat
from hushsplat.cli.console import progress_bar, results, status
from hushsplat.cli.engine import choose_instruction_set
from hushsplat.cli.flags import Flag, MaybeInt, MaybePath, MaybeText, SceneNames
from hushsplat.cli.scene_argument import NamedScene, scene_argument
from hushsplat.core.camera import Camera
from hushsplat.core.errors import HushsplatError
from hushsplat.core.framing import orbit_scene
from hushsplat.denoise import METHODS as DENOISERS
from hushsplat.files.capture import load_capture
from hushsplat.measure.timing import METHODS, Case, Ratio, Row, machine, measure, ratios, spread
from hushsplat.synth import walk_track

DESCRIPTION = """Time the methods side by side.

One frame of each in turn, all over again in every round.
`raw` draws one sample per pixel: primitive, depth and colour. `reference` blends the colour.
`hush` is one step of that denoiser while the camera turns, `raw+hush` the same with the frame it takes.
A time is the median over the rounds, averaged over the cameras: those of the walk through our own scene, those of
a capture, or those of an orbit. Ratios are what to trust; times depend on what else the machine does.

Examples of use:
  hushsplat bench                                   our scene at 200k, 500k and 2M surfels
  hushsplat bench synth:500k --methods raw exact reference --sizes 640x360
  hushsplat bench bonsai.splat --capture bonsai/    from the capture's own cameras
  hushsplat bench synth:500k --denoisers            every denoiser beside raw and reference
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
    weights: MaybePath = None  # of hush: a .safetensors file; the package's own if not said
    threads: tuple[int, ...] = (1, 0)  # thread counts, 0: all cores
    rounds: int = 7  # >= 1: how often each camera is drawn by each method
    cameras: int = 6  # >= 1: how many, spread over the walk, the capture or the orbit
    capture: MaybePath = None  # cameras for scenes that are files: a capture, or a .json list of cameras
    lod: MaybeInt = None  # level of detail of a streamed SOG, 0 is the finest
    isa: MaybeText = None  # instruction set of the engine; the best one if not said
    json: Flag = False  # print one JSON object: rows, ratios, version and machine
    quiet: Flag = False  # no progress bar

    def run(self) -> None:
        """Measure every scene at every size, then print."""
        choose_instruction_set(self.isa)
        sizes = [_size(text) for text in self.sizes]
        if self.cameras < 1 or self.rounds < 1:
            raise HushsplatError(f"--cameras and --rounds must be at least 1, got {self.cameras} and {self.rounds}.")
        rows: list[Row] = []
        own: list[str] = []
        for text in self.scenes:
            with status(f"reading {text}", self.quiet):
                scene = scene_argument(text, None if text.startswith("synth:") else self.lod)
            rows += self._measure(scene, sizes)
            own += [scene.name] * scene.is_own
        found = ratios(rows, own)
        if self.json:
            flat = [asdict(row) for row in rows]
            print(json.dumps({"rows": flat, "ratios": list(map(asdict, found)), **_about()}))
        else:
            _print_tables(rows, found)

    def _measure(self, scene: NamedScene, sizes: Sequence[tuple[int, int]]) -> list[Row]:
        views = self._views(scene)
        cases = [Case(scene.name, scene.gaussians, spread(views, self.cameras, *size)) for size in sizes]
        methods = self.methods
        if self.denoisers:
            fitting = [name for name in DENOISERS if name != "hush" or scene.gaussians.payload is not None]
            methods = tuple(dict.fromkeys([*methods, *fitting, *(f"raw+{name}" for name in fitting)]))
        steps = sum(len(case.cameras) for case in cases) * self.rounds * len(methods) * len(set(self.threads))
        with progress_bar(f"timing {scene.name}", steps, self.quiet) as bar:
            measured = [measure(case, methods, self.threads, self.rounds, bar.advance, self.weights) for case in cases]
        return [row for rows in measured for row in rows]

    def _views(self, scene: NamedScene) -> list[Camera]:
        if scene.is_own:
            track = walk_track()
        elif self.capture is not None:
            return [view.camera for view in load_capture(self.capture, require_photographs=False).views]
        else:
            track = orbit_scene(scene.gaussians, 800, 532, seconds=float(self.cameras), fps=1.0)
        return [track.camera(index) for index in range(len(track))]


def _size(text: str) -> tuple[int, int]:
    match = re.fullmatch(r"(\d{1,5})[x×](\d{1,5})", text)
    if match is None:
        raise HushsplatError(f"--sizes {text}: write width x height in px, such as 800x532.")
    return int(match[1]), int(match[2])


def _about() -> dict[str, str | int]:
    return {"version": hushsplat.__version__, **machine()}


def _print_tables(rows: Sequence[Row], found: Sequence[Ratio]) -> None:
    about = _about()
    title = "hushsplat {version} on {cpu}, {cores} cores, {instruction_set}".format(**about)
    columns = ("scene", "Gaussians", "size", "method", "threads", "ms per frame", "bytes per Gaussian", "per pixel")
    times = Table(*columns, title=title)
    for row in rows:
        size, held = f"{row.width}×{row.height}", f"{row.engine_bytes_per_gaussian:.1f}"
        kept = f"{row.bytes_per_pixel:.0f}" if row.bytes_per_pixel else ""
        time_ms = f"{row.median_ms:.1f}"
        times.add_row(row.scene, f"{row.gaussians:,}", size, row.method, str(row.threads), time_ms, held, kept)
    compared = Table("ratio", "scene", "size", "method", "threads", "value")
    for ratio in found:
        size, threads = f"{ratio.width}×{ratio.height}", str(ratio.threads or "")
        compared.add_row(ratio.name, ratio.scene, size, ratio.method, threads, f"{ratio.value:.2f}")
    results().print(times, compared)
