"""What a scene takes of the GPU's memory: every buffer and texture that the gpu engine has made, added up.

    python benchmarks/gpu_memory.py 20000000 --size 1600x1064

Each method draws two frames, so that the state before and after a frame count; what the methods before it have left in
the pools is freed first. With a software adapter the memory of the GPU is that of the process.
"""

from __future__ import annotations

import argparse
from resource import RUSAGE_SELF, getrusage
from time import perf_counter

from hushsplat.engines.webgpu.engine import GpuEngine
from hushsplat.stream import Stream
from hushsplat.synth import room_and_garden, walk_track

METHODS = ("raw", "hush", "reference", "temporal-zero-shot")


def main() -> None:
    """Print a row for the scene and one for each method."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("gaussians", type=int, help="how many, of degree 3")
    parser.add_argument("--size", default="1600x1064", help="px")
    parser.add_argument("--methods", nargs="+", default=METHODS, help="to draw two frames by each")
    parser.add_argument("--adapter", help="number or part of the name")
    chosen = parser.parse_args()
    width, height = map(int, chosen.size.split("x"))
    gaussians = room_and_garden(chosen.gaussians, sh_degree=3)
    drawing, count, start = GpuEngine(chosen.adapter), len(gaussians), perf_counter()
    before = _most_resident()
    scene = drawing.upload(gaussians)
    drawing.finish()
    print(f"{drawing.adapter}, {count:,} Gaussians of {gaussians.sh.shape[1]} coefficients, {len(scene.pages)} pages")
    _print("scene", scene.bytes, count, perf_counter() - start)
    print(f"{'':20} {(_most_resident() - before) / 1e9:7.3f} GB more of the process at most while it is uploaded")
    track = walk_track(width=width, height=height)
    for method in chosen.methods:
        drawing.release_memory()
        start, stream = perf_counter(), Stream(drawing, scene, [method])
        for place in (100, 101):
            stream.step(track.camera(place))
        drawing.finish()
        _print(method, drawing.held_bytes, count, perf_counter() - start)
        del stream


def _print(name: str, held: int, count: int, seconds: float) -> None:
    print(f"{name:20} {held / 1e9:7.3f} GB {held / count:7.1f} B a Gaussian {seconds:8.1f} s", flush=True)


def _most_resident() -> int:
    """Bytes of the process so far."""
    return 1024 * getrusage(RUSAGE_SELF).ru_maxrss


if __name__ == "__main__":
    main()
