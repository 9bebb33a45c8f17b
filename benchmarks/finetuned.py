"""What stage 4 brings on its own scene: PSNR along flights through the capture's cameras, beside zero-shot and SVGF.

    python benchmarks/finetuned.py RUN CAPTURE

RUN is a run of `hushsplat train` with its stage4.ply and denoiser.safetensors. Two flights of 2.7 s at 30 and at 300
frames per second, 400 px wide; mean over about 15 frames of the last three quarters, against `reference` and `exact`.
What `exact` reaches against `reference` is what no denoiser of this stream can pass.
"""

from __future__ import annotations

import argparse
from pathlib import Path

import numpy as np

import hushsplat
from hushsplat.engines.cpu.denoise_names import denoiser
from hushsplat.engines.cpu.pipeline import step
from hushsplat.engines.cpu.render_names import decode, render_ordered, render_sorted, sample_visibility
from hushsplat.io.captures.capture import load_capture
from hushsplat.io.weights import default_weights, read_weights
from hushsplat.spec.settings import DenoiserSettings
from hushsplat.types.paths import track_from_cameras

WIDTH_PX, SECONDS = 400, 80 / 30
FRAMES = {30: (80, 4), 300: (240, 20)}  # by frames per second: how many, and every how many are measured
FLIGHTS = ((20, 2), (120, 4))  # first camera, and how many


def psnr(pictures: list[np.ndarray], expected: list[np.ndarray]) -> float:
    errors = [np.mean((np.clip(a, 0, 1) - np.clip(b, 0, 1)) ** 2) for a, b in zip(pictures, expected, strict=True)]
    return float(np.mean([-10 * np.log10(max(error, 1e-10)) for error in errors]))


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("run", type=Path)
    parser.add_argument("capture", type=Path)
    arguments = parser.parse_args()
    scene = hushsplat.load(arguments.run / "stage4.ply")
    tuned = read_weights(arguments.run / "denoiser.safetensors")
    views = [view.camera for view in load_capture(arguments.capture).views]
    learned = {
        "hush-zero-shot": (default_weights(), DenoiserSettings(zero_shot=True)),
        "hush": (tuned, DenoiserSettings()),
    }
    print("| flight | method | reference | exact |\n| --- | --- | ---: | ---: |")
    for fps, (count, every) in FRAMES.items():
        for first, number in FLIGHTS:
            track = track_from_cameras(views[first : first + number], SECONDS, fps).resized(WIDTH_PX)
            cameras = [track.camera(frame) for frame in range(len(track) - count, len(track))]
            samples = [sample_visibility(scene, camera, frame=k) for k, camera in enumerate(cameras)]
            frames = [decode(sample, scene, camera) for sample, camera in zip(samples, cameras, strict=True)]
            measured = range(count - 1, count // 4, -every)
            exact = [render_ordered(scene, cameras[k]).color for k in measured]
            reference = [render_sorted(scene, cameras[k], with_depth=False).color for k in measured]
            shown = {"raw": [frames[k].color for k in measured], "exact": exact}
            for name in ("svgf", "svgf-tuned", *learned):
                state, drawn = None, []
                for frame, camera in zip(frames, cameras, strict=True):
                    if name in learned:
                        weights, config = learned[name]
                        picture, state = step(frame, camera, state, weights=weights, config=config)
                    else:
                        picture, state = denoiser(name).step(frame, camera, state)
                    drawn.append(picture.color)
                shown[name] = [drawn[k] for k in measured]
            for name, pictures in shown.items():
                numbers = f"{psnr(pictures, reference):.2f} | {psnr(pictures, exact):.2f}"
                print(f"| {first}+{number}, {fps} fps | {name} | {numbers} |", flush=True)


if __name__ == "__main__":
    main()
