"""CPU time of raw and reference on scenes of different sizes: unlike wall time it also holds on a busy machine.

python benchmarks/cpu_time.py synth:200k synth:2M
python benchmarks/cpu_time.py synth:20M --methods raw
python benchmarks/cpu_time.py bonsai.splat --capture cameras.json
"""

from __future__ import annotations

import argparse
from statistics import median
from time import process_time

import hushsplat
from hushsplat.io.captures.capture import load_capture
from hushsplat.scenes import scene_argument
from hushsplat.synth import view_cameras
from hushsplat.types.camera import Camera

SIZES = ((800, 532), (1600, 1064))
CAMERAS, ROUNDS = 4, 4


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("scenes", nargs="+", help="files, or synth:200k")
    parser.add_argument("--capture", help="cameras of the scenes; those of the procedural scene if not given")
    parser.add_argument("--methods", nargs="+", default=["raw", "reference"])
    arguments = parser.parse_args()
    cameras = view_cameras(24)
    if arguments.capture:
        cameras = [view.camera for view in load_capture(arguments.capture, require_photographs=False).views]
    chosen = cameras[:: len(cameras) // CAMERAS][:CAMERAS]
    for name in arguments.scenes:
        named = scene_argument(name)
        label, count, scene = named.name, len(named.gaussians), hushsplat.upload(named.gaussians)
        del named
        for width, height in SIZES:
            times = [cpu_ms(scene, [camera.resized(width, height) for camera in chosen], m) for m in arguments.methods]
            told = ", ".join(f"{method} {ms:.0f} ms" for method, ms in zip(arguments.methods, times, strict=True))
            print(f"{label}, {count:,} Gaussians, {width}×{height}: {told}; first / last {times[0] / times[-1]:.2f}")


def cpu_ms(scene: hushsplat.Scene, cameras: list[Camera], method: str) -> float:
    """Of a frame on all threads together: the median over cameras of the shortest of some rounds."""
    return median(min(once_ms(scene, camera, method) for _ in range(ROUNDS)) for camera in cameras)


def once_ms(scene: hushsplat.Scene, camera: Camera, method: str) -> float:
    begin = process_time()
    hushsplat.render(scene, camera, method)
    return 1000 * (process_time() - begin)


if __name__ == "__main__":
    main()
