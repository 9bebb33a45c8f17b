"""CPU time of raw and reference on scenes of different sizes: unlike wall time it also holds on a busy machine.

python benchmarks/cpu_time.py synth:200k synth:2M --levels 15 20 30 45
python benchmarks/cpu_time.py synth:20M --methods raw --levels 20 30
python benchmarks/cpu_time.py bonsai.splat --capture cameras.json --levels 15 20 30 45

With levels of detail also the PSNR of reference, with them and without (0 px), to a picture of three times the pixels
on each side.
"""

from __future__ import annotations

import argparse
from statistics import median
from time import process_time

import hushsplat
from hushsplat.engines.cpu.engine import CpuEngine, CpuScene
from hushsplat.evaluation.bench import Case, finer_psnr
from hushsplat.io.captures.capture import load_capture
from hushsplat.scenes import scene_argument
from hushsplat.synth import view_cameras
from hushsplat.types.camera import Camera
from hushsplat.types.levels import Levels

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
            method = arguments.methods[0]
            for spacing_px in arguments.levels:
                times[f"{method} at {spacing_px:g} px"] = cpu_ms(scene, seen, method, spacing_px)
            told = ", ".join(f"{name} {ms:.1f} ms" for name, ms in times.items())
            print(f"{label}, {count:,} Gaussians, {width}×{height}: {told}", flush=True)
            if arguments.levels:
                cases = [Case(label, on, scene, seen, spacing_px) for spacing_px in (0.0, *arguments.levels)]
                near = zip(cases, finer_psnr(cases[0], cases), strict=True)
                told = ", ".join(f"at {case.spacing_px:g} px {psnr_db:.1f} dB" for case, psnr_db in near)
                print(f"    reference to a finer picture: {told}", flush=True)


def cpu_ms(scene: CpuScene, cameras: list[Camera], method: str, spacing_px: float) -> float:
    """Of a frame on all threads together: the median over cameras of the shortest of some rounds."""
    return median(min(once_ms(scene, camera, method, spacing_px) for _ in range(ROUNDS)) for camera in cameras)


def once_ms(scene: CpuScene, camera: Camera, method: str, spacing_px: float) -> float:
    begin = process_time()
    hushsplat.render(scene.seen_by(camera, spacing_px), camera, method)
    return 1000 * (process_time() - begin)


if __name__ == "__main__":
    main()
