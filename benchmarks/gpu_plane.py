"""Winners by the plane of a quad, which the gpu engine's depth test sees, beside those by each fragment's own depth.

    python benchmarks/gpu_plane.py bonsai.splat flowers wall demo: --views 3 --size 800x532

Each scene as it is and, if it has ellipsoids, flattened to surfels. The views lie evenly along the track. Exact winners
are those of the cpu engine, which reads the same scene in float32. `gap` is the median of how much farther the plane's
winner is where they differ, as a share of the depth.
"""

from __future__ import annotations

import argparse

import numpy as np

from hushsplat.engines.base import engine
from hushsplat.engines.webgpu.engine import GpuEngine
from hushsplat.evaluation.motions import named_track
from hushsplat.scenes import scene_argument
from hushsplat.training.first_surfels import flattened
from hushsplat.types.camera import Camera
from hushsplat.types.gaussians import Gaussians
from hushsplat.types.options import Noise, RenderOptions


def winners(gpu: GpuEngine, gaussians: Gaussians, cameras: list[Camera]) -> list[tuple[float, float]]:
    """Share of the pixels with the exact winner, and the gap of the others."""
    exact, options, found = engine("cpu"), RenderOptions(), []
    on_gpu, on_cpu = gpu.upload(gaussians), exact.upload(gaussians, options)
    for camera in cameras:
        plane = gpu.sample(on_gpu, camera, Noise(), options).numpy()
        own = exact.sample(on_cpu, camera, Noise(), options).numpy()
        other = plane.primitive_id != own.primitive_id
        gap = (plane.depth - own.depth)[other] / np.maximum(own.depth[other], 1e-6)
        found.append((1 - float(other.mean()), float(np.median(gap)) if gap.size else 0.0))
    return found


def main() -> None:
    """Print a row for each scene and kind."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("scenes", nargs="+")
    parser.add_argument("--track", default="walk")
    parser.add_argument("--size", default="800x532", help="px")
    parser.add_argument("--views", type=int, default=3)
    arguments = parser.parse_args()
    size, gpu = tuple(map(int, arguments.size.split("x"))), GpuEngine()
    for text in arguments.scenes:
        named = scene_argument(text)
        track = named_track(arguments.track, named)
        places = (np.arange(arguments.views) + 0.5) / arguments.views * len(track)
        cameras = [track.camera(int(place)).resized(*size) for place in places]
        kinds = {"surfels" if named.gaussians.is_surfels else "ellipsoids": named.gaussians}
        if not named.gaussians.is_surfels:
            kinds["flattened"] = flattened(named.gaussians)
        for kind, gaussians in kinds.items():
            rows = winners(gpu, gaussians, cameras)
            shares, gaps = (" ".join(f"{value:.4f}" for value in column) for column in zip(*rows, strict=True))
            degree = int(np.sqrt(gaussians.sh.shape[1])) - 1
            print(f"{named.name:24} {kind:10} {len(gaussians):9,} degree {degree}  {shares}  gap {gaps}", flush=True)


if __name__ == "__main__":
    main()
