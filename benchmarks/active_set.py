"""`hush` and `sorted` beside `raw` and `reference`: milliseconds and PSNR to `reference`, frame by frame in one run.

    python benchmarks/active_set.py bonsai.splat --track bonsai-walk --fps 10 30 --size 1600x1064
    python benchmarks/active_set.py flowers/lod-meta.json --presets fast balanced best
    python benchmarks/active_set.py synth:2M --frames 12

Every frame is drawn by each method in turn, so that other programs disturb all of them alike; what to trust are the
ratios. Times are medians from --first on; PSNR is shown for the first frames, since each track begins with a cut.
"""

from __future__ import annotations

import argparse
import time
from collections.abc import Callable
from dataclasses import replace
from statistics import median

import numpy as np
from hushsplat.engines.cpu.prepare import RenderOptions
from hushsplat.engines.cpu.sorted import render_sorted
from hushsplat.engines.cpu.stochastic import sample_visibility

from hushsplat.engines.cpu.active_set import PRESETS, draw_active_set
from hushsplat.evaluation.motions import named_track
from hushsplat.scenes import NamedScene, scene_argument
from hushsplat.types.camera import Camera

SHOWN_FRAMES = 6  # after the cut


def psnr(picture: np.ndarray, reference: np.ndarray) -> float:
    """In dB, of colours as they are shown."""
    return float(-10 * np.log10(np.mean((picture.clip(0, 1) - reference.clip(0, 1)) ** 2) + 1e-12))


def cameras(
    scene: NamedScene, track: str, fps: float, size: tuple[int, int], frames: int, skip_s: float
) -> list[Camera]:
    """The first frames of a track at a frame rate and size."""
    resampled = named_track(track, scene).resampled(fps)
    begin = min(round(skip_s * fps), max(len(resampled) - frames, 0))
    return [resampled.camera(k).resized(*size) for k in range(begin, min(begin + frames, len(resampled)))]


class Stream:
    """One setting of the set, frame after frame."""

    def __init__(self, settings, options):
        self.settings, self.options, self.state = settings, options, None

    def draw(self, scene, camera):
        """The next frame."""
        picture, self.state = draw_active_set(
            scene, camera, self.state, settings=self.settings, options=self.options, with_depth=False
        )
        return picture.color


def play(scene: NamedScene, views: list[Camera], names: list[str], arguments: argparse.Namespace) -> None:
    """All methods on one track, a line each."""
    options = RenderOptions(threads=arguments.threads)
    streams = {name: Stream(settings_named(name), options) for name in names}
    times: dict[str, list[float]] = {name: [] for name in ("raw", "reference", *names)}
    quality: dict[str, list[float]] = {name: [] for name in names}

    def timed(name: str, draw: Callable):
        start = time.perf_counter()
        result = draw()
        times[name].append(1e3 * (time.perf_counter() - start))
        return result

    for frame, camera in enumerate(views):
        timed("raw", lambda: sample_visibility(scene.gaussians, camera, frame=frame, options=options))  # noqa: B023
        reference = timed("reference", lambda: render_sorted(scene.gaussians, camera, options, with_depth=False).color)  # noqa: B023
        for name, stream in streams.items():
            picture = timed(name, lambda: stream.draw(scene.gaussians, camera))  # noqa: B023
            quality[name].append(psnr(picture, reference))
    steady = {name: median(values[arguments.first :]) for name, values in times.items()}
    print(f"  {'raw':30} {steady['raw']:7.1f} ms   {steady['raw'] / steady['reference']:.2f} of reference")
    print(f"  {'reference':30} {steady['reference']:7.1f} ms")
    for name, stream in streams.items():
        dB, state = quality[name], stream.state
        early = " ".join(f"{value:.1f}" for value in dB[:SHOWN_FRAMES])
        print(
            f"  {name:30} {steady[name]:7.1f} ms   {steady[name] / steady['reference']:.2f} of reference"
            f"   {np.mean(dB[arguments.first :]):.2f} dB (least {min(dB[arguments.first :]):.2f}), at first {early}"
            f"   members {state.members:,}, new {state.fresh:,}, entries {state.entries:,}, rays {state.rays:,},"
            f" pairs per px {16 * state.pairs / reference[..., 0].size:.1f}",
            flush=True,
        )


def settings_named(name: str):
    """A preset, and what is changed in it: `balanced/discovery=stream/period=4`."""
    name, *changes = name.split("/")
    parse = {"discovery": str, "period": int, "first_samples": int}
    pairs = (change.split("=") for change in changes)
    return replace(PRESETS[name], **{key: parse.get(key, float)(value) for key, value in pairs})


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("scene")
    parser.add_argument("--track", default="walk")
    parser.add_argument("--fps", type=float, nargs="+", default=[30.0, 10.0])
    parser.add_argument("--size", default="1600x1064")
    parser.add_argument("--frames", type=int, default=16)
    parser.add_argument("--first", type=int, default=4, help="frame from which on time and PSNR count")
    parser.add_argument("--skip-s", type=float, default=1.0, help="seconds of the track to leave out")
    parser.add_argument(
        "--presets", nargs="+", default=["balanced", "balanced/discovery=everything", "balanced/discovery=stream"]
    )
    parser.add_argument("--threads", type=int, default=2)
    parser.add_argument("--lod", type=int)
    arguments = parser.parse_args()
    scene = scene_argument(arguments.scene, arguments.lod)
    width, height = map(int, arguments.size.split("x"))
    for fps in arguments.fps:
        views = cameras(scene, arguments.track, fps, (width, height), arguments.frames, arguments.skip_s)
        print(f"{scene.name}, {len(scene.gaussians):,} Gaussians, {arguments.track} at {fps:g} fps, {width}×{height}")
        play(scene, views, arguments.presets, arguments)


if __name__ == "__main__":
    main()
