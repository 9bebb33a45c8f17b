"""`raw` on the gpu engine by the hardware's rasterizer, beside a compute raster of the same fragments.

    python benchmarks/gpu_raster.py bonsai.splat --track bonsai-walk --size 1600x1064
    python benchmarks/gpu_raster.py bonsai.splat --capture cameras.json --every 30

The compute raster is a thread a Gaussian that walks over its footprint: once for the nearest depth of each pixel
(32-bit atomicMax), once more for who has it, since WGSL has no 64-bit atomics. Both draw the same culled and bucketed
Gaussians, one after the other in every round; fragments are counted at last. Mesa's software driver ends the loops of a
shader after 65,535 turns: there the compute raster misses pixels of larger footprints.

With --capture: fragments alone, from the cameras of photographs.
"""

from __future__ import annotations

import argparse
from statistics import median
from time import perf_counter
from typing import Any

import numpy as np

from hushsplat.engines.webgpu.device import BINDING, Device, Indirect, Pass, source
from hushsplat.engines.webgpu.engine import GpuEngine
from hushsplat.engines.webgpu.raster import GROUPS_AT, NEAR_TO_FAR
from hushsplat.evaluation.motions import named_track
from hushsplat.io.captures.capture import load_capture
from hushsplat.scenes import scene_argument
from hushsplat.spec.sampling import key_salt
from hushsplat.types.camera import Camera
from hushsplat.types.options import Noise, RenderOptions

SPLAT = """
struct Sample {
    salt: u32,
}

override WHO: bool = false;

@group(0) @binding(0) var<uniform> view: View;
@group(0) @binding(1) var<uniform> page: Page;
@group(0) @binding(2) var<uniform> sample: Sample;
@group(0) @binding(3) var<storage, read> fixed: array<u32>;
@group(0) @binding(4) var<storage, read> ids: array<u32>;
@group(0) @binding(5) var<storage, read> order: array<u32>;
@group(0) @binding(6) var<storage, read> arguments: Arguments;
@group(0) @binding(7) var<storage, read> levels: array<f32>;
@group(0) @binding(8) var<storage, read_write> nearest: array<atomic<u32>>;  // bits of near / z
@group(0) @binding(9) var<storage, read_write> winner: array<atomic<u32>>;   // inverted id, 0: nothing

@compute @workgroup_size(256)
fn main(@builtin(global_invocation_id) thread: vec3u) {
    if (thread.x >= arguments.count) {
        return;
    }
    let index = order[arguments.first + thread.x] - page.base;
    var f: Footprint;
    _ = project(index, &f);
    let anchor = vec2i(floor(clamp(f.center, vec2f(-MAX_CENTER_PX), vec2f(MAX_CENTER_PX))));
    let first = mix32(ids[index] ^ sample.salt) - bitcast<u32>(anchor.x) - ROW_STEP * bitcast<u32>(anchor.y);
    let low = vec2u(f.low);
    let high = vec2u(f.high);
    for (var y = low.y; y < high.y; y++) {
        for (var x = low.x; x < high.x; x++) {
            let found = fragment_at(f, vec2f(f32(x), f32(y)) + 0.5);
            let level = levels[(first + x + ROW_STEP * y) & (TABLE_SIZE - 1u)];
            if (found.counts && found.q < (level + f.log_opacity) * found.s) {
                let at = y * view.width + x;
                let depth = bitcast<u32>(found.inverse_depth * view.near);
                if (!WHO) {
                    atomicMax(&nearest[at], depth);
                } else if (atomicLoad(&nearest[at]) == depth) {
                    atomicMax(&winner[at], ~ids[index]);
                }
            }
        }
    }
}
"""


class ComputePass(Pass):
    """A pass whose shader is no file of the package."""

    def __init__(self, device: Device, text: str, **constants: Any) -> None:
        module = device.native.create_shader_module(code=text)
        stage = {"module": module, "entry_point": "main", "constants": constants}
        self.device, self.shader = device.native, "splat"
        self.pipeline = device.native.create_compute_pipeline(layout="auto", compute=stage)
        self.bindings = [(int(place), name) for place, name, _ in BINDING.findall(text)]


class ComputeRaster:
    """The same sample without the hardware's rasterizer."""

    def __init__(self, engine: GpuEngine, scene: Any) -> None:
        libraries = source("lib_project") + source("lib_hash") + source("lib_arguments")
        self.engine, self.scene, self.raster = engine, scene, engine._rasterizer
        self.passes = [
            ComputePass(engine.device, libraries + SPLAT, WHO=who, **scene.constants) for who in (False, True)
        ]

    def sample(self, camera: Any, options: RenderOptions) -> np.ndarray:
        """Who is seen in each pixel."""
        device, scene = self.engine.device, self.scene
        view = self.raster._view(scene, camera, options, NEAR_TO_FAR)
        pixels = camera.width * camera.height
        nearest, winner = device.buffer(4 * pixels), device.buffer(4 * pixels)
        sample = device.uniform("raster", "Sample", salt=key_salt("stratified", 0, 0))
        with device.work() as work:
            work.clear(nearest)
            work.clear(winner)
            levels = self.raster._levels(work, "stratified", 0, 0)
            ordered = self.raster._ordered(work, scene, scene.pages, view, NEAR_TO_FAR, 1)
            (page,) = scene.pages
            for step in self.passes:
                bound = {"view": view, "page": page.uniform, "sample": sample, "fixed": page.fixed, "ids": page.ids}
                bound |= {"order": ordered.order, "arguments": ordered.round(0), "levels": levels}
                groups = Indirect(ordered.arguments, GROUPS_AT)
                work.run(step, groups, **bound, nearest=nearest, winner=winner)
        self.engine.finish()
        self.winner = winner
        return winner

    def ids(self, camera: Any) -> np.ndarray:
        """Of the last sample."""
        found = self.engine.device.read(self.winner, np.uint32)[: camera.width * camera.height]
        return np.where(found == 0, -1, ~found).astype(np.int32).reshape(camera.height, camera.width)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("scene")
    parser.add_argument("--track", default="walk")
    parser.add_argument("--size", default="1600x1064")
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--capture", help="whose cameras fragments are counted from")
    parser.add_argument("--every", type=int, default=30, help="so many of its cameras is one taken")
    arguments = parser.parse_args()
    named, options = scene_argument(arguments.scene), RenderOptions()
    size = tuple(map(int, arguments.size.split("x")))
    if arguments.capture is not None:
        plane = GpuEngine()
        compact = plane.upload(named.gaussians)
        for view in load_capture(arguments.capture, require_photographs=False).views[:: arguments.every]:
            _print_fragments(plane, compact, view.camera.resized(*size), options)
        return
    track = named_track(arguments.track, named)
    camera = track.camera(len(track) // 2).resized(*size)
    exact, plane = GpuEngine(exact=True), GpuEngine()
    scene, compact = exact.upload(named.gaussians), plane.upload(named.gaussians)
    compute = ComputeRaster(exact, scene)

    def hardware(engine: GpuEngine, uploaded: Any) -> Any:
        found = engine.sample(uploaded, camera, Noise(), options)
        engine.finish()
        return found

    rows = {
        "hardware, plane depth": lambda: hardware(plane, compact),
        "hardware, exact depth": lambda: hardware(exact, scene),
        "compute, exact depth": lambda: compute.sample(camera, options),
    }
    times: dict[str, list[float]] = {name: [] for name in rows}
    for turn in range(arguments.rounds + 1):
        for name, draw in rows.items():
            start = perf_counter()
            draw()
            if turn:  # the first one compiles
                times[name].append(perf_counter() - start)
    print(f"{named.name}, {camera.width}×{camera.height}, {exact.adapter}")
    fastest = median(times["hardware, plane depth"])
    for name, seconds in times.items():
        print(f"  {name:22} {1e3 * median(seconds):9.1f} ms  {median(seconds) / fastest:5.2f}")
    expected = hardware(exact, scene).numpy().primitive_id[0]
    print(f"  same winners: compute {np.mean(compute.ids(camera) == expected):.5f}", flush=True)
    found = hardware(plane, compact).numpy().primitive_id[0]
    print(f"                plane   {np.mean(found == expected):.5f}", flush=True)
    _print_fragments(plane, compact, camera, options)


def _print_fragments(plane: GpuEngine, scene: Any, camera: Camera, options: RenderOptions) -> None:
    with plane.counted_fragments() as counted:
        plane.sample(scene, camera, Noise(), options)
        plane.render(scene, camera, "reference", options)
    for name, (tested, shaded) in counted.items():
        pixels = camera.width * camera.height
        print(f"  fragments per pixel, {name}: tested {tested / pixels:.1f}, shaded {shaded / pixels:.1f}", flush=True)


if __name__ == "__main__":
    main()
