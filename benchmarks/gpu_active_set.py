"""Who is a member of `hush` on the GPU: who won a pixel lately, or who has weight in a compute blend.

    python benchmarks/gpu_active_set.py demo: --size 400x266
    python benchmarks/gpu_active_set.py bonsai.splat --track bonsai-walk --size 400x266
    python benchmarks/gpu_active_set.py demo: --newcomers --start 100 --frames 10 --cut 200

`won` is the package's: winners of a stochastic frame stay `period` frames, and the hardware blends them. `weight` is
the other way: a workgroup a tile of 16×16 px walks over the sorted members front to back, ends when all its pixels are
covered, and keeps each member's largest weight; who has at least `prune` stays, who wins is new. PSNR is to `reference`
of the same engine, fragments are of the blend alone: those in quads of members, or evaluated before a pixel is covered.

With --newcomers: the package's, frame by frame, with all Gaussians of a tile drawn from this share of newcomers on.
"""

from __future__ import annotations

import argparse
from typing import Any

import numpy as np
from gpu_raster import ComputePass

from hushsplat.engines.webgpu import active_set
from hushsplat.engines.webgpu.device import Buffer, Indirect, declared, source, tiles_of
from hushsplat.engines.webgpu.engine import GpuEngine
from hushsplat.engines.webgpu.raster import FOOTPRINT_BYTES, GROUPS_AT, SORTED
from hushsplat.evaluation.motions import named_track
from hushsplat.scenes import scene_argument
from hushsplat.types.camera import Camera
from hushsplat.types.metrics import psnr
from hushsplat.types.options import Noise, RenderOptions

BLEND = """
const COVERED: f32 = 0.00392156862745098;  // transmittance at which a pixel is done: 1/255

@group(0) @binding(0) var<uniform> view: View;
@group(0) @binding(1) var<storage, read> footprints: array<Stored>;
@group(0) @binding(2) var<storage, read> arguments: Arguments;
@group(0) @binding(3) var<storage, read> order: array<u32>;
@group(0) @binding(4) var<storage, read_write> weights: array<atomic<u32>>;  // bits of the largest, by place
@group(0) @binding(5) var<storage, read_write> picture: array<vec4f>;        // RGB, fragments

var<workgroup> sums: array<u32, 256>;
var<workgroup> listed: array<u32, 256>;
var<workgroup> uncovered: atomic<u32>;
var<workgroup> more: u32;

@compute @workgroup_size(16, 16)
fn main(@builtin(workgroup_id) group: vec3u, @builtin(local_invocation_id) local: vec3u,
        @builtin(local_invocation_index) lane: u32) {
    let corner = 16u * group.xy;
    let px = corner + local.xy;
    let inside = px.x < view.width && px.y < view.height;
    var color = vec3f(0.0);
    var light = select(0.0, 1.0, inside);
    var tested = 0.0;
    for (var first = 0u; first < arguments.count; first += 256u) {
        let mine = first + lane;
        var hit = 0u;
        if (mine < arguments.count) {
            let low = vec2u(footprints[mine].low & 0xffffu, footprints[mine].low >> 16u);
            let high = vec2u(footprints[mine].high & 0xffffu, footprints[mine].high >> 16u);
            hit = select(0u, 1u, all(low < corner + 16u) && all(high > corner));
        }
        sums[lane] = hit;
        workgroupBarrier();
        for (var step = 1u; step < 256u; step *= 2u) {
            var add = 0u;
            if (lane >= step) {
                add = sums[lane - step];
            }
            workgroupBarrier();
            sums[lane] += add;
            workgroupBarrier();
        }
        if (hit == 1u) {
            listed[sums[lane] - 1u] = mine;
        }
        workgroupBarrier();
        let total = sums[255];
        for (var k = 0u; k < total && light > COVERED; k++) {
            let found = footprints[listed[k]];
            let f = footprint_in(found);
            if (any(vec2f(px) < f.low) || any(vec2f(px) >= f.high)) {
                continue;
            }
            tested += 1.0;
            let at = fragment_at(f, vec2f(px) + 0.5);
            if (!at.counts || !(at.q < (f.log_opacity + MAX_LEVEL) * at.s)) {
                continue;
            }
            let alpha = exp(0.5 * (f.log_opacity - at.q / at.s));
            let weight = alpha * light;
            color += weight * vec3f(found.r, found.g, found.b);
            light -= weight;
            let place = order[arguments.first + listed[k]];
            if (atomicLoad(&weights[place]) < bitcast<u32>(weight)) {
                atomicMax(&weights[place], bitcast<u32>(weight));
            }
        }
        if (lane == 0u) {
            atomicStore(&uncovered, 0u);
        }
        workgroupBarrier();
        if (light > COVERED) {
            atomicAdd(&uncovered, 1u);
        }
        workgroupBarrier();
        if (lane == 0u) {
            more = atomicLoad(&uncovered);
        }
        if (workgroupUniformLoad(&more) == 0u) {
            break;
        }
    }
    if (inside) {
        let back = vec3f(view.back_r, view.back_g, view.back_b);
        picture[px.y * view.width + px.x] = vec4f(color + light * back, tested);
    }
}
"""


class ByWeight:
    """The active set whose members have weight."""

    def __init__(self, engine: GpuEngine, scene: Any, prune: float, keep: int) -> None:
        self.engine, self.scene, self.prune, self.keep = engine, scene, prune, keep
        self.raster = engine._rasterizer
        libraries = source("lib_stored") + source("lib_arguments")
        self.blend = ComputePass(engine.device, libraries + BLEND, **{"SURFELS": scene.gaussians.is_surfels})
        self.last = np.zeros(-(-scene.count // 16) * 16, dtype=np.uint8)  # frames that each stays a member
        self.frame = 0

    def draw(self, camera: Camera, options: RenderOptions) -> tuple[np.ndarray, float, float]:
        """Picture, members and fragments per pixel."""
        device, raster, scene = self.engine.device, self.raster, self.scene
        self.frame += 1
        seen = raster.sample(scene, camera, Noise(frame=self.frame), options)
        before = None if self.frame == 1 else device.upload(self.last)
        members = active_set.marked(device, seen, camera, before, self.keep)
        self.last = device.read(members.frames_left, np.uint8).copy()
        member = self.last[: scene.count] > 0
        view = raster._view(scene, camera, options, SORTED)
        project = device.compute("footprints", **declared("footprints", scene.constants))
        footprints = device.buffer(FOOTPRINT_BYTES * scene.count)
        weights: Buffer = device.upload(np.zeros(scene.count, dtype=np.uint32))
        picture = device.buffer(16 * camera.width * camera.height)
        with device.work() as work:
            ordered = raster._ordered(work, scene, scene.pages, view, SORTED, 1, members)
            shared = {"view": view, "order": ordered.order, "arguments": ordered.round(0), "footprints": footprints}
            for page in scene.pages:
                bound = {"page": page.uniform, "fixed": page.fixed, "sh": page.sh}
                work.run(project, Indirect(ordered.arguments, GROUPS_AT), **shared, **bound)
            work.run(self.blend, tiles_of(camera.width, camera.height), **shared, weights=weights, picture=picture)
        found = device.read(picture)[: 4 * camera.width * camera.height].reshape(camera.height, camera.width, 4)
        weight = device.read(weights)[: scene.count]
        self.last[: scene.count][weight >= self.prune] = self.keep
        return found[..., :3], float(member.mean()), float(found[..., 3].mean())


class ByWins:
    """The package's."""

    def __init__(self, engine: GpuEngine, scene: Any, period: int, most: float = active_set.MOST_NEWCOMERS) -> None:
        self.engine, self.scene, self.period, self.most = engine, scene, period, most
        self.frames_left: Buffer | None = None
        self.frame = 0

    def draw(self, camera: Camera, options: RenderOptions) -> tuple[np.ndarray, float, float]:
        """Picture, members and fragments per pixel."""
        self.frame += 1
        device, raster = self.engine.device, self.engine._rasterizer
        seen = raster.sample(self.scene, camera, Noise(frame=self.frame), options)
        active_set.MOST_NEWCOMERS = self.most
        members = active_set.marked(device, seen, camera, self.frames_left, self.period)
        with self.engine.counted_fragments() as counted:
            image = raster.blend(self.scene, camera, options, members=members)
        self.frames_left = members.frames_left
        member = device.read(self.frames_left, np.uint8)[: self.scene.count] > 0
        return image.numpy().color, float(member.mean()), float(counted["blend"][1] / (camera.width * camera.height))


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("scene")
    parser.add_argument("--track", default="walk")
    parser.add_argument("--size", default="400x266")
    parser.add_argument("--frames", type=int, default=12)
    parser.add_argument("--fps", type=float, default=30.0)
    parser.add_argument("--start", type=int, help="first frame of the track; a third of it if not said")
    parser.add_argument("--cut", type=int, help="frame of the track that three more frames begin at")
    parser.add_argument("--newcomers", action="store_true", help="compare shares of newcomers")
    arguments = parser.parse_args()
    named, options = scene_argument(arguments.scene), RenderOptions()
    size = tuple(map(int, arguments.size.split("x")))
    track = named_track(arguments.track, named).resampled(arguments.fps)
    engine = GpuEngine()
    scene = engine.upload(named.gaussians)
    rows: dict[str, Any] = {}
    if arguments.newcomers:
        rows |= {f"all from {most:.3f} on": ByWins(engine, scene, 32, most) for most in (2, 1 / 16, 1 / 32, 1 / 64)}
    else:
        rows |= {f"won, period {period}": ByWins(engine, scene, period) for period in (8, 32)}
        for prune in (0.004, 0.02):
            rows |= {f"weight, prune {prune}, keep {keep}": ByWeight(engine, scene, prune, keep) for keep in (2, 8)}
    found: dict[str, list[tuple[float, float, float]]] = {name: [] for name in rows}
    everything = []
    start = len(track) // 3 if arguments.start is None else arguments.start
    places = [*range(start, start + arguments.frames)]
    places += [] if arguments.cut is None else range(arguments.cut, arguments.cut + 3)
    for place in places:
        camera = track.camera(place).resized(*size)
        with engine.counted_fragments() as counted:
            expected = engine.render(scene, camera, "reference", options).numpy().color
        everything.append(counted["blend"][1] / (camera.width * camera.height))
        for name, row in rows.items():
            color, members, fragments = row.draw(camera, options)
            found[name].append((psnr(color, expected), members, fragments))
    late = len(places) // 2
    every = np.mean(everything[late:])
    print(f"{named.name}, {arguments.size}, {arguments.fps:g} fps; reference: {every:.1f} fragments")
    for name, values in found.items():
        if arguments.newcomers:
            shares = [value[2] / whole for value, whole in zip(values, everything, strict=True)]
            print(f"  {name:20} dB {' '.join(f'{value[0]:.1f}' for value in values)}")
            print(f"  {'':20} fragments {' '.join(f'{share:.2f}' for share in shares)}", flush=True)
            continue
        dB, members, fragments = np.mean(values[late:], axis=0)
        early = " ".join(f"{value[0]:.1f}" for value in values[:3])
        print(
            f"  {name:28} {dB:5.1f} dB (at first {early})  members {members:.3f}  fragments {fragments:.1f}", flush=True
        )


if __name__ == "__main__":
    main()
