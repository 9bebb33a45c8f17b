"""CPU time of raw and reference on scenes of different sizes: unlike wall time it also holds on a busy machine.

python benchmarks/cpu_time.py synth:200k synth:2M --levels 15 20 30 45
python benchmarks/cpu_time.py synth:20M --methods raw --levels 20 30
python benchmarks/cpu_time.py bonsai.splat --capture cameras.json --levels 15 20 30 45

With levels of detail also the PSNR of reference with them to reference without.
"""

from __future__ import annotations

import argparse
from statistics import mean, median
from time import process_time

import hushsplat
from hushsplat.engines.cpu.engine import CpuEngine, CpuScene
from hushsplat.io.captures.capture import load_capture
from hushsplat.scenes import scene_argument
from hushsplat.synth import view_cameras
from hushsplat.types.camera import Camera
from hushsplat.types.levels import Levels
from hushsplat.types.metrics import psnr

SIZES = ((800, 532), (1600, 1064))
CAMERAS, ROUNDS = 4, 4


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("scenes", nargs="+", help="files, or synth:200k")
    parser.add_argument("--capture", help="cameras of the scenes; those of the procedural scene if not given")
    parser.add_argument("--methods", nargs="+", default=["raw", "reference"])
    parser.add_argument(
        "--levels", type=float, nargs="+", default=[], help="px: also the first method with levels of these spacings"
    )
    arguments = parser.parse_args()
    cameras = view_cameras(24)
    if arguments.capture:
        cameras = [view.camera for view in load_capture(arguments.capture, require_photographs=False).views]
    chosen = cameras[:: len(cameras) // CAMERAS][:CAMERAS]
    for name in arguments.scenes:
        named = scene_argument(name)
        label, count = named.name, len(named.gaussians)
        gaussians, on = named.gaussians, CpuEngine()
        scene = on.upload_levels(Levels.of(gaussians)) if arguments.levels else on.upload(gaussians)
        del named, gaussians
        for width, height in SIZES:
            seen = [camera.resized(width, height) for camera in chosen]
            times = {method: cpu_ms(scene, seen, method, 0) for method in arguments.methods}
            for spacing_px in arguments.levels:
                method = arguments.methods[0]
                lost = psnr_db(scene, seen, spacing_px)
                times[f"{method} at {spacing_px:g} px ({lost:.1f} dB)"] = cpu_ms(scene, seen, method, spacing_px)
            told = ", ".join(f"{name} {ms:.1f} ms" for name, ms in times.items())
            print(f"{label}, {count:,} Gaussians, {width}×{height}: {told}", flush=True)


def cpu_ms(scene: CpuScene, cameras: list[Camera], method: str, spacing_px: float) -> float:
    """Of a frame on all threads together: the median over cameras of the shortest of some rounds."""
    return median(min(once_ms(scene, camera, method, spacing_px) for _ in range(ROUNDS)) for camera in cameras)


def psnr_db(scene: CpuScene, cameras: list[Camera], spacing_px: float) -> float:
    """What levels of detail lose: the mean over the cameras."""
    pairs = [(scene.seen_by(camera, spacing_px), scene.seen_by(camera, 0), camera) for camera in cameras]
    drawn = [[hushsplat.render(each, camera, "reference").color for each in both] for *both, camera in pairs]
    return mean(psnr(leveled, plain) for leveled, plain in drawn)


def once_ms(scene: CpuScene, camera: Camera, method: str, spacing_px: float) -> float:
    begin = process_time()
    hushsplat.render(scene.seen_by(camera, spacing_px), camera, method)
    return 1000 * (process_time() - begin)


if __name__ == "__main__":
    main()
