"""Where the time of a step of stage 1 goes.

    python benchmarks/stage1.py [--count 1000000] [--width 1600] [--steps 4]

Surfels of our own scene, photographed by the sorted renderer; processor time of all cores, mean over the steps.
"""

from __future__ import annotations

import argparse
import time
from collections import defaultdict
from collections.abc import Callable
from typing import Any

import torch

from hushsplat.api import render, upload
from hushsplat.engines.torch import ops
from hushsplat.engines.torch.raster import Rasterizer
from hushsplat.io.images import to_bytes
from hushsplat.synth import room_and_garden
from hushsplat.synth.cameras import view_cameras
from hushsplat.training.photographs import Photographs, TargetView
from hushsplat.training.settings import PRESETS
from hushsplat.training.surfel_model import SurfelModel
from hushsplat.training.surfel_stages import VanillaStage

SPENT: dict[str, float] = defaultdict(float)


def timed(name: str, call: Callable[..., Any]) -> Callable[..., Any]:
    """The same, with its processor time added up."""

    def run(*arguments: Any, **options: Any) -> Any:
        start = time.process_time()
        try:
            return call(*arguments, **options)
        finally:
            SPENT[name] += time.process_time() - start

    return run


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("--count", type=int, default=1_000_000)
    parser.add_argument("--width", type=int, default=1600)
    parser.add_argument("--steps", type=int, default=4)
    arguments = parser.parse_args()
    torch.set_num_threads(1)  # as in training
    scene = room_and_garden(arguments.count)
    uploaded = upload(scene)
    cameras = view_cameras(arguments.steps + 1, arguments.width, arguments.width * 2 // 3)
    views = [TargetView(str(i), c, to_bytes(render(uploaded, c).color)) for i, c in enumerate(cameras)]
    stage = VanillaStage(SurfelModel.from_gaussians(scene), Photographs(views, views[:1]), PRESETS["paper"])
    stage.step(0)  # orders the surfels in memory
    Rasterizer.scene_to_draw = timed("refresh", Rasterizer.scene_to_draw)  # type: ignore[method-assign]
    Rasterizer.draw = timed("forward, with refresh", Rasterizer.draw)  # type: ignore[method-assign]
    torch.Tensor.backward = timed("backward", torch.Tensor.backward)  # type: ignore[method-assign]
    ops.Adam.step = timed("Adam", ops.Adam.step)  # type: ignore[method-assign]
    stage.after_step = timed("densification", stage.after_step)  # type: ignore[method-assign]
    step = timed("all", stage.step)
    for index in range(1, arguments.steps + 1):
        step(index)
    print(f"{arguments.count} surfels, {arguments.width} px; ms of processor time a step")
    for name, seconds in SPENT.items():
        print(f"{name:22} {1e3 * seconds / arguments.steps:8.0f}  {100 * seconds / SPENT['all']:5.0f} %")


if __name__ == "__main__":
    main()
