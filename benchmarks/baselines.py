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
from pathlib import Path

import numpy as np

import hushsplat
from hushsplat import synth
from hushsplat.io.captures.capture import load_capture
from hushsplat.methods import DENOISERS, LEARNED, configure
from hushsplat.types.metrics import psnr
from hushsplat.types.paths import track_from_cameras

FRAMES = 100
REFERENCE_SAMPLES = 1024
BASELINES = {name: configure(name) for name in DENOISERS if name not in LEARNED}
METHODS = {name: denoiser for name, denoiser in BASELINES.items() if name != "mean"}


def tracks(arguments: argparse.Namespace, width: int, height: int) -> list[tuple[str, hushsplat.Scene, list]]:
    walk = synth.walk_track(seconds=10, fps=60, width=width, height=height)
    ours = hushsplat.upload("synth:300k")
    places = {"room": 0, "door": 220, "garden": 440}
    found = [(f"ours, {name}", ours, [walk.camera(at + k) for k in range(FRAMES)]) for name, at in places.items()]
    if arguments.splat:
        views = load_capture(arguments.cameras, require_photographs=False).views
        scene = hushsplat.upload(arguments.splat)
        for first in (0, 100):
            cameras = [view.camera.resized(width, height) for view in views[first : first + 4]]
            flight = track_from_cameras(cameras, FRAMES / 60 - 1e-6, 60.0)
            name = f"{arguments.splat.stem}, from camera {first}"
            found.append((name, scene, [flight.camera(k) for k in range(FRAMES)]))
    return found


def mean_of_many(scene: hushsplat.Scene, camera: hushsplat.Camera) -> np.ndarray:
    block = 64
    noises = [hushsplat.Noise(block, frame=k) for k in range(REFERENCE_SAMPLES // block)]
    return np.mean([hushsplat.render(scene, camera, "raw", noise=noise).color for noise in noises], axis=0)


def quality(scene: hushsplat.Scene, cameras: list) -> dict[str, float]:
    names = ("raw", *METHODS)
    values: dict[str, list[float]] = {name: [] for name in (*names, "mean", "exact")}
    played = hushsplat.play_side_by_side(scene, cameras, ["raw", *METHODS.values()])
    for index, (camera, images) in enumerate(zip(cameras, played, strict=True)):
        if index % 10 == 9:
            colors = {name: image.color for name, image in zip(names, images, strict=True)}
            colors |= {"exact": hushsplat.render(scene, camera, "exact").color, "mean": mean_of_many(scene, camera)}
            reference = hushsplat.render(scene, camera, "reference").color
            for name, color in colors.items():
                values[name].append(psnr(color, reference))
    return {name: float(np.mean(found)) for name, found in values.items()}


def times_ms(scene: hushsplat.Scene, cameras: list, rounds: int = 5) -> dict[str, float]:
    """The fastest of a few rounds, per method: other programs only ever add."""
    on, options = hushsplat.engine("cpu"), hushsplat.RenderOptions(threads=2)
    drawn, frames = hushsplat.Stream(on, scene, []), []
    for drawn.number, camera in enumerate(cameras):
        frames.append((drawn.observe(camera), camera))
    best = dict.fromkeys(("mean", *METHODS), np.inf)
    for _ in range(rounds):
        for name in best:
            stream = hushsplat.Stream(on, scene, [{**BASELINES, **METHODS}[name]], options=options)
            for observation, camera in frames:
                start = time.perf_counter()
                stream.feed(observation, camera)
                took = 1000 * (time.perf_counter() - start)
                best[name] = min(best[name], took) if camera is not cameras[0] else best[name]
    return best


def print_table(title: str, rows: dict[str, dict[str, float]]) -> None:
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
        print_table("ms per frame, 2 threads", rows)
        return
    print_table("PSNR, dB", {name: quality(scene, cameras) for name, scene, cameras in tracks(arguments, 400, 266)})


if __name__ == "__main__":
    main()
