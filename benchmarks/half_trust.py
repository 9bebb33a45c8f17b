"""What trust at half resolution brings and costs: PSNR along a moving track, and the time of a step, side by side.

    python benchmarks/half_trust.py --splat bonsai.splat --cameras cameras.json

Our own scene along its walk, and with --splat a real one along its cameras. PSNR is the mean over every fourth frame
after the first 16, zero-shot, against `exact`, which the noise is about. Times are medians of interleaved steps at
1600×1064.
"""

from __future__ import annotations

import argparse
from collections.abc import Sequence
from pathlib import Path
from time import perf_counter

import numpy as np

import hushsplat
from hushsplat.engines.cpu.denoise_names import HushConfig
from hushsplat.engines.cpu.render_names import RenderOptions, render_ordered
from hushsplat.evaluation.denoiser_timing import continued_stream
from hushsplat.io.captures.capture import load_capture
from hushsplat.stream import denoiser, play_side_by_side
from hushsplat.synth import room_and_garden, walk_track
from hushsplat.types.camera import Camera
from hushsplat.types.gaussians import Gaussians
from hushsplat.types.paths import track_from_cameras

FRAMES, WARM_UP, EVERY = 64, 16, 4
SMALL, LARGE = (400, 266), (1600, 1064)  # px
CONFIGS = {"full": HushConfig(zero_shot=True), "half": HushConfig(zero_shot=True, trust_at_half=True)}


def psnr_db(scene: Gaussians, cameras: Sequence[Camera]) -> dict[str, float]:
    """Mean PSNR of each config along the cameras."""
    methods = [denoiser("hush-zero-shot", config=config) for config in CONFIGS.values()]
    found: dict[str, list[float]] = {name: [] for name in CONFIGS}
    for index, frames in enumerate(play_side_by_side(scene, cameras, methods)):
        if index < WARM_UP or index % EVERY:
            continue
        exact = render_ordered(scene, cameras[index]).color
        for name, frame in zip(CONFIGS, frames, strict=True):
            error = np.mean((np.clip(frame.color, 0, 1) - np.clip(exact, 0, 1)) ** 2)
            found[name].append(float(-10 * np.log10(error)))
    return {name: float(np.mean(values)) for name, values in found.items()}


def step_ms(scene: Gaussians, camera: Camera, rounds: int = 9) -> dict[str, float]:
    """Median time of a step, in turn."""
    steps = {name: denoiser("hush-zero-shot", config=config) for name, config in CONFIGS.items()}
    observation, state = continued_stream(steps["full"], scene, camera, RenderOptions(), 0)
    times: dict[str, list[float]] = {name: [] for name in steps}
    for _ in range(rounds):
        for name, each in steps.items():
            start = perf_counter()
            each.step(observation, camera, state)
            times[name].append(1000 * (perf_counter() - start))
    return {name: float(np.median(values[1:])) for name, values in times.items()}


def main() -> None:
    """Print a row for each scene."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--splat", type=Path)
    parser.add_argument("--cameras", type=Path)
    parser.add_argument("--only-speed", action="store_true")
    given = parser.parse_args()
    walk = walk_track()
    scenes = {"our scene, 300k": (room_and_garden(300_000), [walk.camera(index) for index in range(100, 100 + FRAMES)])}
    if given.splat and given.cameras:
        views = load_capture(given.cameras, require_photographs=False).views
        track = track_from_cameras([view.camera for view in views[:24]], seconds=8.0)
        scenes[given.splat.stem] = (hushsplat.load(given.splat), [track.camera(index) for index in range(FRAMES)])
    for name, (scene, cameras) in scenes.items():
        times = step_ms(scene, cameras[0].resized(*LARGE))
        text = f"{name}: full {times['full']:.1f} ms, half {times['half']:.1f} ms ({times['half'] / times['full']:.2f})"
        if not given.only_speed:
            quality = psnr_db(scene, [camera.resized(*SMALL) for camera in cameras])
            text += f"; full {quality['full']:.2f} dB, half {quality['half']:.2f} dB"
        print(text, flush=True)


if __name__ == "__main__":
    main()
