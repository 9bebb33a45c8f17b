"""`hush` and `sorted` beside `raw`, `reference` and the denoisers: milliseconds and PSNR to `reference` in one run.

    python benchmarks/hush.py bonsai.splat --track bonsai-walk --fps 10 30
    python benchmarks/hush.py flowers/lod-meta.json --methods raw sorted hush:fast hush hush:best
    python benchmarks/hush.py synth:100k synth:1M synth:10M --methods sorted hush --frames 12
    python benchmarks/hush.py bonsai.splat --counts 100k 1M 10M --methods sorted hush --frames 12
    python benchmarks/hush.py synth:500k --methods hush --frames 2000 --every 200 --fps 30
    python benchmarks/hush.py synth:500k --methods raw hush --order pixel
    python benchmarks/hush.py synth:500k --methods svgf-tuned hush --cut 16

With --counts each scene is drawn with about so many Gaussians: neighbours are merged to have fewer, copies of the scene
stand around it to have more; the track stays that of the scene as it is.

A method may have changes after a colon: a preset (hush:fast) or settings (hush:discovery=stream/period=4).
Every frame is drawn by each method in turn, so that other programs disturb all of them alike; trust the ratios. `cpu`
is the time of all threads together, which a busy machine changes less than the wall time. Times are medians and PSNR
is the mean from --first on, to `reference`, with --order pixel to `exact`; PSNR of the first frames is shown too.
They are those of a method that knows nothing yet, or with --cut N that has drawn N frames at the end of the track.
"""

from __future__ import annotations

import argparse
from collections.abc import Iterable, Iterator
from dataclasses import replace
from statistics import median
from time import perf_counter, process_time
from typing import Any

import numpy as np

from hushsplat.engines.base import engine
from hushsplat.evaluation.motions import named_track
from hushsplat.methods import ACTIVE, configure, method
from hushsplat.scenes import NamedScene, scene_argument
from hushsplat.spec.settings import QUALITY, ActiveSetSettings
from hushsplat.stream import MethodLike, Stream
from hushsplat.types.camera import Camera
from hushsplat.types.gaussians import Gaussians
from hushsplat.types.merge import joined, merged
from hushsplat.types.options import RenderOptions

SHOWN_FRAMES = 6  # after the cut


def psnr(picture: np.ndarray, reference: np.ndarray) -> float:
    """In dB, of colours as they are shown."""
    return float(-10 * np.log10(np.mean((picture.clip(0, 1) - reference.clip(0, 1)) ** 2) + 1e-12))


def cameras(scene: NamedScene, fps: float, arguments: argparse.Namespace) -> tuple[list[Camera], Iterator[Camera]]:
    """Some frames of the track's end, and those that count, forth and back if there are not enough."""
    size = tuple(map(int, arguments.size.split("x")))
    track = named_track(arguments.track, scene).resampled(fps)
    first = min(round(arguments.skip_s * fps), max(len(track) - arguments.frames, 0))
    there = list(range(first, len(track)))
    path = (there + there[-2:0:-1]) * (1 + arguments.frames // max(len(there), 1))
    end = [track.camera(index).resized(*size) for index in range(len(track) - arguments.cut, len(track))]
    return end, (track.camera(index).resized(*size) for index in path[: arguments.frames])


def chosen(text: str) -> MethodLike:
    """`hush:fast` or `hush:prune=0.01/period=4`; without a colon the name itself."""
    name, _, changes = text.partition(":")
    if not changes:
        return name
    if changes in QUALITY:
        return configure(name, settings=QUALITY[changes])
    settings = method(name).settings
    assert isinstance(settings, ActiveSetSettings), f"{name} has no such settings"
    pairs = (change.split("=") for change in changes.split("/"))
    return configure(name, settings=replace(settings, **{key: _value(value) for key, value in pairs}))


def _value(text: str) -> Any:
    try:
        return float(text)
    except ValueError:
        return text


def resized(gaussians: Gaussians, count: int) -> Gaussians:
    """About so many: neighbours merged, or copies beside and behind the scene, in the plane of its two longer sides."""
    while len(gaussians) > 1.5 * count:
        gaussians = merged(gaussians)
    copies = round(count / len(gaussians))
    if copies < 2:
        return gaussians
    side = np.subtract(*np.percentile(gaussians.means, [98, 2], axis=0))
    across, along = np.argsort(side)[:0:-1]
    reach = range(-copies, copies + 1)
    places = sorted(((x, y) for x in reach for y in reach), key=lambda at: (at[0] ** 2 + at[1] ** 2, at))[:copies]
    parts = []
    for x, y in places:
        shift = np.zeros(3, np.float32)
        shift[across], shift[along] = x * side[across], y * side[along]
        parts.append(replace(gaussians, means=gaussians.means + shift))
    return joined(parts)


def number(text: str) -> int:
    """100k or 3M as a number."""
    return round(float(text.rstrip("kM")) * {"k": 1e3, "M": 1e6}.get(text[-1], 1))


class Row:
    """A method on a track."""

    def __init__(self, text: str, drawn_on: Any, scene: Any, options: RenderOptions) -> None:
        self.name = text
        self.stream = Stream(drawn_on, scene, [chosen(text)], options=options)
        self.wall_ms: list[float] = []
        self.cpu_ms: list[float] = []
        self.dB: list[float] = []
        self.members: list[int] = []

    def draw(self, camera: Camera) -> np.ndarray:
        """The next frame, timed."""
        wall, cpu = perf_counter(), process_time()
        image = self.stream.step(camera).images[0]
        self.wall_ms.append(1e3 * (perf_counter() - wall))
        self.cpu_ms.append(1e3 * (process_time() - cpu))
        state = self.stream.states[0]
        self.members.append(getattr(getattr(state, "native", None), "members", 0))
        return image.numpy().color

    def line(self, against: Row, first: int) -> str:
        """As printed."""
        text = f"  {self.name:28} {median(self.wall_ms[first:]):7.1f} ms {median(self.cpu_ms[first:]):7.1f} cpu"
        text += f"  {median(self.wall_ms[first:]) / median(against.wall_ms[first:]):5.2f}"
        text += f" {median(self.cpu_ms[first:]) / median(against.cpu_ms[first:]):5.2f} of {against.name}"
        if self is against:
            return text
        early = " ".join(f"{value:.1f}" for value in self.dB[:SHOWN_FRAMES])
        text += f"  {np.mean(self.dB[first:]):6.2f} dB (least {min(self.dB[first:]):.2f}; at first {early})"
        state = self.stream.states[0]
        if self.name.partition(":")[0] in ACTIVE:
            native = state.native
            stages = " ".join(f"{stage} {ms:.1f}" for stage, ms in native.stage_ms.items())
            text += f"  members {native.members:,}, new {native.fresh:,}, {native.bytes / 1e6:.1f} MB; {stages}"
        return text


def play(
    gaussians: Gaussians, before: Iterable[Camera], views: Iterator[Camera], arguments: argparse.Namespace
) -> None:
    """All methods on one track, a line each, after frames that do not count."""
    drawn_on, options = engine("cpu"), RenderOptions(threads=arguments.threads, order=arguments.order)
    uploaded = drawn_on.upload(gaussians)
    limit = "exact" if arguments.order == "pixel" else "reference"
    rows = [Row(text, drawn_on, uploaded, options) for text in dict.fromkeys((limit, *arguments.methods))]
    for camera in before:
        for row in rows:
            row.stream.step(camera)
    for frame, camera in enumerate(views):
        reference = rows[0].draw(camera)
        for row in rows[1:]:
            row.dB.append(psnr(row.draw(camera), reference))
        if arguments.every and frame and frame % arguments.every == 0:
            for row in rows[1:]:
                late = slice(-arguments.every, None)
                print(
                    f"  frame {frame:6} {row.name:20} {median(row.cpu_ms[late]):7.1f} cpu ms"
                    f"  {np.mean(row.dB[late]):.2f} dB (least {min(row.dB[late]):.2f})  members {row.members[-1]:,}",
                    flush=True,
                )
    for row in rows:
        print(row.line(rows[0], arguments.first), flush=True)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("scenes", nargs="+")
    parser.add_argument("--counts", type=number, nargs="+", help="Gaussians; see above")
    parser.add_argument("--track", default="walk")
    parser.add_argument("--fps", type=float, nargs="+", default=[30.0, 10.0])
    parser.add_argument("--size", default="1600x1064")
    parser.add_argument("--frames", type=int, default=16)
    parser.add_argument("--first", type=int, default=4, help="frame from which on time and PSNR count")
    parser.add_argument("--cut", type=int, default=0, help="frames of the track's end that are drawn before")
    parser.add_argument("--skip-s", type=float, default=1.0, help="seconds of the track to leave out")
    parser.add_argument("--methods", nargs="+", default=["raw", "sorted", "hush"])
    parser.add_argument("--every", type=int, default=0, help="also print a line after so many frames")
    parser.add_argument("--threads", type=int, default=0)
    parser.add_argument("--lod", type=int)
    parser.add_argument("--order", choices=["center", "pixel"])
    arguments = parser.parse_args()
    for name in arguments.scenes:
        scene = scene_argument(name, arguments.lod)
        for count in arguments.counts or [len(scene.gaussians)]:
            drawn = resized(scene.gaussians, count)
            for fps in arguments.fps:
                print(
                    f"{name}, {len(drawn):,} Gaussians, {arguments.track} at {fps:g} fps, {arguments.size}", flush=True
                )
                play(drawn, *cameras(scene, fps, arguments), arguments)


if __name__ == "__main__":
    main()
