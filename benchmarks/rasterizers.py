"""Time of the differentiable rasterizers: both orders on the engine, and order `center` in plain PyTorch.

    python benchmarks/rasterizers.py [--count 100000] [--width 400] [--height 266] [--no-twin]

Forward and backward of one picture of our own scene, median over views, in processor time, which other programs disturb
least. The twin draws the whole of one view, tile by tile, which takes minutes.
"""

from __future__ import annotations

import argparse
import time
from collections.abc import Callable
from statistics import median

import torch

from hushsplat.engines.torch.raster import Rasterizer, SurfelTensors
from hushsplat.engines.torch.raster_twin import Region, TwinOptions, draw_twin
from hushsplat.synth import room_and_garden
from hushsplat.synth.cameras import view_cameras
from hushsplat.types.camera import Camera

TWIN_TILE_PX = 16  # as 2DGS; larger tiles have more surfels that miss most of their pixels


def timed(draw: Callable[[], torch.Tensor]) -> tuple[float, float]:
    """Milliseconds of a forward and a backward pass, of all cores together."""
    start = time.process_time()
    color = draw()
    middle = time.process_time()
    color.mean().backward()
    return 1e3 * (middle - start), 1e3 * (time.process_time() - middle)


def twin_times(surfels: SurfelTensors, camera: Camera) -> tuple[float, float]:
    """One whole picture, tile by tile: all pixels at once would not fit in memory."""
    side = TWIN_TILE_PX
    corners = [(x, y) for y in range(0, camera.height, side) for x in range(0, camera.width, side)]
    regions = [Region(x, y, min(x + side, camera.width), min(y + side, camera.height)) for x, y in corners]
    times = [timed(lambda: draw_twin(surfels, camera, TwinOptions(), region)[0]) for region in regions]  # noqa: B023
    forward, backward = (sum(column) for column in zip(*times, strict=True))
    return forward, backward


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("--count", type=int, default=100_000)
    parser.add_argument("--width", type=int, default=400)
    parser.add_argument("--height", type=int, default=266)
    parser.add_argument("--views", type=int, default=8)
    parser.add_argument("--no-twin", action="store_true")
    arguments = parser.parse_args()
    surfels = SurfelTensors.from_gaussians(room_and_garden(arguments.count))
    for tensor in surfels:
        tensor.requires_grad_()
    cameras = view_cameras(arguments.views, arguments.width, arguments.height)
    totals, threads = {}, torch.get_num_threads()
    torch.set_num_threads(1)  # as in training: PyTorch's threads spin beside those of the engine
    print(f"{arguments.count} surfels, {arguments.width}×{arguments.height} px; ms of {threads} threads together")
    for order in ("center", "pixel"):
        raster = Rasterizer(order)
        raster.draw(surfels, cameras[0])  # orders the surfels in memory
        times = [timed(lambda: raster.draw(surfels, camera).color) for camera in cameras for _ in range(3)]  # noqa: B023
        forward, backward = (median(column) for column in zip(*times, strict=True))
        totals[order] = forward + backward
        print(f"{order:10} forward {forward:8.1f}  backward {backward:8.1f}  both {totals[order]:8.1f}")
    print(f"pixel / center: {totals['pixel'] / totals['center']:.2f}")
    if not arguments.no_twin:
        forward, backward = twin_times(surfels, cameras[0])
        print(f"{'PyTorch':10} forward {forward:8.1f}  backward {backward:8.1f}  both {forward + backward:8.1f}")
        print(f"PyTorch / center: {(forward + backward) / totals['center']:.0f}")


if __name__ == "__main__":
    main()
