"""PSNR frame by frame when a camera that rested begins to move slowly, 0.06 px a frame unless told.

    python benchmarks/restart.py synth:200k
    python benchmarks/restart.py showroom/meta.json --frames 16

`resampled` is the control: the clean picture of the rest, resampled from frame to frame as the denoiser resamples its
history. It has no noise and is never wrong about trust, so that its fall is the price of keeping colours at all;
`limit` adds to it what the last method's own picture lacked at rest. PSNR is against the limit of each method:
`exact`, the mean of the stream, for those that denoise it; `reference` for `hush`.
"""

from __future__ import annotations

import argparse
from collections.abc import Sequence
from dataclasses import replace

import numpy as np
import torch

from hushsplat.engines.base import Scene, engine
from hushsplat.engines.torch.reproject import fill_holes, move_pixels, resample
from hushsplat.home import frame_scene
from hushsplat.methods import ACTIVE, configure
from hushsplat.scenes import scene_argument
from hushsplat.spec.denoisers import ConfiguredDenoiser
from hushsplat.spec.settings import DenoiserSettings
from hushsplat.stream import Stream
from hushsplat.synth import home_camera
from hushsplat.types.camera import Camera
from hushsplat.types.metrics import psnr
from hushsplat.types.motion import CameraMotion
from hushsplat.types.options import RenderOptions

LIMITS = ("exact", "reference")
METHODS = ("hush", "svgf-tuned", "paper-zero-shot", "temporal-zero-shot")


def sideways(camera: Camera, depth: float, frames: int, pixels: float) -> list[Camera]:
    """The camera moving to the right: things at this depth move by so many pixels a frame."""
    poses = np.tile(camera.world_from_camera, (frames, 1, 1))
    poses[:, :3, 3] += np.arange(1, frames + 1)[:, None] * pixels * depth / camera.fx * poses[0, :3, 0]
    return [replace(camera, world_from_camera=pose) for pose in poses]


def fall(
    scene: Scene,
    camera: Camera,
    denoisers: Sequence[ConfiguredDenoiser],
    rest: int = 128,
    frames: int = 12,
    pixels: float = 0.06,
    threads: int = 0,
) -> dict[str, list[float]]:
    """PSNR of the last frame at rest and of the moving ones, by denoiser, and of the control."""
    drawing, options = engine("cpu"), RenderOptions(threads=threads)
    clean = drawing.render(scene, camera, "exact", options).numpy()
    cameras = [camera, *sideways(camera, float(np.median(clean.depth[clean.depth > 0])), frames, pixels)]
    stream = Stream(drawing, scene, denoisers, options=options)
    for _ in range(rest - 1):
        stream.step(camera)
    far, history = DenoiserSettings().far_depth, torch.tensor(clean.color)
    found: dict[str, list[float]] = {each.name: [] for each in denoisers} | {"resampled": []}
    for before, here in zip([camera, *cameras], cameras, strict=False):
        frame = stream.step(here)
        target, centers = (drawing.render(scene, here, limit, options).numpy().color for limit in LIMITS)
        for each, image in zip(denoisers, frame.images, strict=True):
            found[each.name].append(psnr(image.numpy().color, centers if each.name in ACTIVE else target))
        if before is not here:
            depth = fill_holes(torch.tensor(frame.observation.numpy().depth), far)
            motion = CameraMotion.between(before, here, 0.0)
            history = resample(history, move_pixels(depth, before, here, motion)[0])
        found["resampled"].append(psnr(history.numpy(), target) if before is not here else np.inf)
    return found


def limit(at_rest: float, resampled: Sequence[float]) -> list[float]:
    """PSNR of a picture that has the error of its rest and that of resampling."""
    return [float(-10 * np.log10(10 ** (-at_rest / 10) + 10 ** (-value / 10))) for value in resampled]


def main() -> None:
    """Print the table."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("scene")
    parser.add_argument("--methods", nargs="+", default=METHODS)
    parser.add_argument("--rest", type=int, default=128)
    parser.add_argument("--frames", type=int, default=12)
    parser.add_argument("--pixels", type=float, default=0.06)
    parser.add_argument("--width", type=int, default=400)
    arguments = parser.parse_args()
    named = scene_argument(arguments.scene)
    size = arguments.width, round(arguments.width * 2 / 3)
    camera = home_camera(*size) if named.is_own else frame_scene(named.gaussians, *size)
    scene = engine("cpu").upload(named.gaussians)
    denoisers = [configure(name) for name in arguments.methods]
    columns = fall(scene, camera, denoisers, arguments.rest, arguments.frames, arguments.pixels)
    columns["limit of " + denoisers[-1].name] = limit(columns[denoisers[-1].name][0], columns["resampled"])
    print("| frame | " + " | ".join(columns) + " |")
    print("| --- |" + " ---: |" * len(columns))
    for frame, values in enumerate(zip(*columns.values(), strict=True)):
        print(f"| {frame or 'rest'} | " + " | ".join(f"{value:.2f}" for value in values) + " |")


if __name__ == "__main__":
    main()
