"""How the baselines do along a track: PSNR against `reference` at every tenth frame, and milliseconds per frame.

    python benchmarks/baselines.py --splat bonsai.splat --cameras cameras.json

Our scene (300,000 surfels; a piece of the walk in the room, at the door and in the garden) and, with --splat, a
flight through neighbouring cameras of a capture, both at 60 frames a second and 400×266. All see the same stream.
`svgf-literal` is the adaptation of the paper as its text has it; `mean` is the mean of 1024 frames at each pose
(Ref. 1024), and `exact` what that tends to. --times measures frames of 800×532 and 1600×1064 on two threads instead.
"""

from __future__ import annotations

import argparse
import time
from collections.abc import Callable
from functools import partial
from pathlib import Path

import numpy as np
from hushsplat.engines.cpu.render_names import decode, decode_color, render_ordered, render_sorted, sample_visibility

import hushsplat
from hushsplat import synth
from hushsplat.engines.cpu.baselines import BASELINES, svgf
from hushsplat.io.captures.capture import load_capture
from hushsplat.types.paths import track_from_cameras

FRAMES = 100
REFERENCE_SAMPLES = 1024
METHODS: dict[str, Callable] = {name: step for name, step in BASELINES.items() if name != "mean"}
METHODS["svgf-literal"] = partial(svgf.step, config=svgf.LITERAL)


def psnr(picture: np.ndarray, reference: np.ndarray) -> float:
    return float(-10 * np.log10(np.mean((np.clip(picture, 0, 1) - np.clip(reference, 0, 1)) ** 2)))


def tracks(arguments: argparse.Namespace, width: int, height: int) -> list[tuple[str, hushsplat.Gaussians, list]]:
    walk = synth.walk_track(seconds=10, fps=60, width=width, height=height)
    ours = synth.room_and_garden(300_000)
    places = {"room": 0, "door": 220, "garden": 440}
    found = [(f"ours, {name}", ours, [walk.camera(at + k) for k in range(FRAMES)]) for name, at in places.items()]
    if arguments.splat:
        views = load_capture(arguments.cameras, require_photographs=False).views
        scene = hushsplat.load(arguments.splat)
        for first in (0, 100):
            cameras = [view.camera.resized(width, height) for view in views[first : first + 4]]
            flight = track_from_cameras(cameras, FRAMES / 60 - 1e-6, 60.0)
            name = f"{arguments.splat.stem}, from camera {first}"
            found.append((name, scene, [flight.camera(k) for k in range(FRAMES)]))
    return found


def mean_of_many(scene: hushsplat.Gaussians, camera: hushsplat.Camera) -> np.ndarray:
    block = 64
    parts = [
        decode_color(sample_visibility(scene, camera, samples=block, frame=k), scene, camera)
        for k in range(REFERENCE_SAMPLES // block)
    ]
    return np.mean(parts, axis=0)


def quality(scene: hushsplat.Gaussians, cameras: list) -> dict[str, float]:
    states: dict[str, object] = dict.fromkeys(METHODS)
    values: dict[str, list[float]] = {name: [] for name in ("raw", *METHODS, "mean", "exact")}
    for index, camera in enumerate(cameras):
        observation = decode(sample_visibility(scene, camera, frame=index), scene, camera)
        frames = {}
        for name, step in METHODS.items():
            frame, states[name] = step(observation, camera, states[name])
            frames[name] = frame.color
        if index % 10 == 9:
            frames |= {"raw": observation.color, "exact": render_ordered(scene, camera).color}
            frames["mean"] = mean_of_many(scene, camera)
            reference = render_sorted(scene, camera).color
            for name, color in frames.items():
                values[name].append(psnr(color, reference))
    return {name: float(np.mean(found)) for name, found in values.items()}


def times_ms(scene: hushsplat.Gaussians, cameras: list, rounds: int = 5) -> dict[str, float]:
    """The fastest of a few rounds, per method: other programs only ever add."""
    stream = [(decode(sample_visibility(scene, c, frame=k), scene, c), c) for k, c in enumerate(cameras)]
    best = dict.fromkeys(("mean", *METHODS), np.inf)
    for _ in range(rounds):
        for name in best:
            state = None
            for observation, camera in stream:
                start = time.perf_counter()
                _, state = BASELINES.get(name, METHODS.get(name))(observation, camera, state, threads=2)
                took = 1000 * (time.perf_counter() - start)
                best[name] = min(best[name], took) if camera is not cameras[0] else best[name]
    return best


def said(title: str, rows: dict[str, dict[str, float]]) -> None:
    names = list(next(iter(rows.values())))
    print(f"| {title} | " + " | ".join(names) + " |\n| --- |" + " --- |" * len(names))
    for row, values in rows.items():
        print(f"| {row} | " + " | ".join(f"{values[name]:.2f}" for name in names) + " |", flush=True)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--splat", type=Path)
    parser.add_argument("--cameras", type=Path)
    parser.add_argument("--times", action="store_true")
    arguments = parser.parse_args()
    if arguments.times:
        rows = {}
        for width, height in ((800, 532), (1600, 1064)):
            _, scene, cameras = tracks(argparse.Namespace(splat=None), width, height)[0]
            rows[f"{width}×{height}"] = times_ms(scene, cameras[:6])
        said("ms per frame, 2 threads", rows)
        return
    said("PSNR, dB", {name: quality(scene, cameras) for name, scene, cameras in tracks(arguments, 400, 266)})


if __name__ == "__main__":
    main()
