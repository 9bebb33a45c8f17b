"""What stage 4 brings on its own scene: PSNR along flights through the capture's cameras, beside zero-shot and SVGF.

    python benchmarks/finetuned.py RUN CAPTURE

RUN is a run of `hushsplat train` with its stage4.ply and denoiser.safetensors. Two flights of 2.7 s at 30 and at 300
frames per second, 400 px wide; mean over about 15 frames of the last three quarters, against `reference` and `exact`.
What `exact` reaches against `reference` is the most that a denoiser of this stream can.
"""

from __future__ import annotations

import argparse
from pathlib import Path

import numpy as np

import hushsplat
from hushsplat.engines.base import engine
from hushsplat.io.captures.capture import load_capture
from hushsplat.methods import configure
from hushsplat.stream import Stream
from hushsplat.types.metrics import psnr
from hushsplat.types.options import RenderOptions
from hushsplat.types.paths import track_from_cameras

WIDTH_PX, SECONDS = 400, 80 / 30
FRAMES = {30: (80, 4), 300: (240, 20)}  # by frames per second: how many, and every how many are measured
FLIGHTS = ((20, 2), (120, 4))  # first camera, and how many


def mean_psnr(pictures: list[np.ndarray], expected: list[np.ndarray]) -> float:
    return float(np.mean([psnr(picture, e) for picture, e in zip(pictures, expected, strict=True)]))


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("run", type=Path)
    parser.add_argument("capture", type=Path)
    arguments = parser.parse_args()
    drawing, options = engine("cpu"), RenderOptions()
    scene = drawing.upload(hushsplat.load(arguments.run / "stage4.ply"))
    tuned = configure("temporal", weights=arguments.run / "denoiser.safetensors")
    methods = {name: configure(name) for name in ("svgf", "svgf-tuned", "temporal-zero-shot")} | {"temporal": tuned}
    views = [view.camera for view in load_capture(arguments.capture).views]
    print("| flight | method | reference | exact |\n| --- | --- | ---: | ---: |")
    for fps, (count, every) in FRAMES.items():
        for first, number in FLIGHTS:
            track = track_from_cameras(views[first : first + number], SECONDS, fps).resized(WIDTH_PX)
            cameras = [track.camera(frame) for frame in range(len(track) - count, len(track))]
            stream = Stream(drawing, scene, ["raw", *methods.values()], options=options)
            frames = [[image.color for image in stream.step(camera).images] for camera in cameras]
            measured = range(count - 1, count // 4, -every)
            reference, exact = (
                [drawing.render(scene, cameras[k], name, options, with_depth=False).numpy().color for k in measured]
                for name in ("reference", "exact")
            )
            shown = {"exact": exact}
            for place, name in enumerate(["raw", *methods]):
                shown[name] = [frames[k][place] for k in measured]
            for name, pictures in shown.items():
                numbers = f"{mean_psnr(pictures, reference):.2f} | {mean_psnr(pictures, exact):.2f}"
                print(f"| {first}+{number}, {fps} fps | {name} | {numbers} |", flush=True)


if __name__ == "__main__":
    main()
