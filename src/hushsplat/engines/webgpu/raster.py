"""The renderers on the GPU: cull, bucket by depth, and draw quads with the hardware's rasterizer."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import wgpu
from numpy import ndarray as Array

from hushsplat.engines.webgpu.device import Buffer, Device, Indirect, Part, Pass, Work, declared, groups_of, tiles_of
from hushsplat.engines.webgpu.handles import GpuImage, GpuObservation, GpuVisibility
from hushsplat.engines.webgpu.scene import GpuScene, Page
from hushsplat.spec.sampling import TABLE_SIZE, key_salt, level_table, sequence_index
from hushsplat.types.camera import Camera
from hushsplat.types.errors import RenderError
from hushsplat.types.observation import Visibility
from hushsplat.types.options import Noise, RenderOptions

QUADS = 128  # an instance, as lib_arguments.wgsl
NEAR_TO_FAR = 4096  # buckets of depth before a depth test; ours: docs/gpu.md, "Speed"
SORTED = 262_144  # buckets of depth of a blended picture
FOOTPRINTS = 1 << 18  # that are blended in one round
FOOTPRINT_BYTES = 68  # as lib_stored.wgsl
ARGUMENT_BYTES, GROUPS_AT = 256, 20  # of a round, as lib_arguments.wgsl, and where its workgroups are
TEXEL_BYTES = {"r32uint": 4, "depth32float": 4, "rgba16float": 8, "rgba32float": 16}
COUNTED_ROUNDS = 1024  # in which Gaussians are drawn while fragments are counted: the depth test sees each before
NOTHING = 0xFFFFFFFF
LESS_DEEP = {"format": "depth32float", "depth_write_enabled": True, "depth_compare": "greater"}  # near / z: reverse
ANY_DEPTH = {"format": "depth32float", "depth_write_enabled": False, "depth_compare": "always"}


@dataclass(frozen=True)
class Ordered:
    """The Gaussians that are drawn, bucket by bucket, and the arguments of the rounds that draw them."""

    order: Buffer
    arguments: Buffer

    def round(self, number: int) -> Part:
        """The arguments of one."""
        return Part(self.arguments, ARGUMENT_BYTES * number, ARGUMENT_BYTES)


@dataclass(frozen=True)
class Lists:
    """Memory for an order of pages."""

    order: Buffer  # of all
    bucket: Buffer  # of one page after the other


@dataclass(frozen=True)
class Members:
    """Which Gaussians are drawn: those that won a pixel lately, and all in tiles with many new winners."""

    uniform: Buffer  # as lib_members.wgsl has it
    frames_left: Buffer  # that each Gaussian stays a member, 8 bits
    newcomers: Buffer  # pixels of each tile whose winner was no member before this frame


@dataclass(frozen=True)
class Counter:
    """Counts fragments."""

    step: Pass
    found: Buffer  # of each pixel: tested, shaded
    nearest: Any  # the depth texture that they are tested against


class Rasterizer:
    """Draws scenes on one device."""

    def __init__(self, device: Device, *, exact_depth: bool) -> None:
        self.device, self.exact_depth = device, exact_depth
        quads = np.arange(QUADS, dtype=np.uint16)[:, None] * 4 + np.array([0, 1, 2, 2, 1, 3], dtype=np.uint16)
        self._corners = device.native.create_buffer_with_data(data=quads, usage=wgpu.BufferUsage.INDEX)
        self.fragments: dict[str, Array] | None = None  # tested and shaded by pass, while they are counted
        self._targets: tuple[Any, dict[tuple[str, str], Any]] = (None, {})  # textures of the picture size drawn last

    def sample(self, scene: GpuScene, camera: Camera, noise: Noise, options: RenderOptions) -> GpuVisibility:
        """Who is seen in each pixel, `samples` times."""
        device, seed = self.device, int(noise.seed)
        view = self._view(scene, camera, options, NEAR_TO_FAR)
        drawn, depth = (self._target(camera, pixels) for pixels in ("r32uint", "depth32float"))
        tiles = tiles_of(camera.width, camera.height)
        plane = 4 * camera.width * camera.height
        winners: tuple[list[Buffer], list[Buffer]] = ([], [])
        by_center = options.order == "center"
        depths = {"EXACT_DEPTH": self.exact_depth and not by_center, "CENTER_DEPTH": by_center}
        raster = device.raster(
            "raster",
            "exact" if depths["EXACT_DEPTH"] else "plane",
            [{"format": "r32uint"}],
            LESS_DEEP,
            **depths,
            **declared("raster", scene.constants),
        )
        winners_of = device.compute("winners", **declared("winners", scene.constants))
        rounds = 1 if self.fragments is None else min(COUNTED_ROUNDS, max(scene.pages[0].count, 1))
        counter = self._counter("count_raster", scene, camera, **depths)
        lists, ordered = self._lists(scene.pages[:1]), None  # the first page is the largest
        with device.work() as work:
            for index in range(noise.samples):
                time = sequence_index(int(noise.frame), noise.samples, index)
                levels = self._levels(work, noise.sampler, seed, time)
                sample = device.uniform("raster", "Sample", salt=key_salt(noise.sampler, seed, time))
                load = "clear"
                for page in scene.pages:
                    if ordered is None or len(scene.pages) > 1:
                        ordered = self._ordered(work, scene, [page], view, NEAR_TO_FAR, rounds, lists=lists)
                    bound = {"view": view, "page": page.uniform, "fixed": page.fixed, "ids": page.ids}
                    bound |= {"order": ordered.order, "sample": sample}
                    for number in range(rounds):
                        arguments = ordered.round(number)
                        if counter is not None:
                            with work.render("raster", *_attachments(drawn, depth, load)):
                                load = "load"  # cleared before it is looked at
                            self._count(work, counter, arguments=arguments, **bound)
                        with work.render("raster", *_attachments(drawn, depth, load)) as drawing:
                            self._draw(work, drawing, raster, arguments=arguments, **bound, levels=levels)
                        load = "load"
                found = device.buffer(plane), device.buffer(plane)
                for page in scene.pages:
                    bound = {"view": view, "page": page.uniform, "fixed": page.fixed, "drawn": drawn.create_view()}
                    work.run(winners_of, tiles, **bound, place=found[0], depth=found[1])
                winners[0].append(found[0])
                winners[1].append(found[1])
        self._add("raster", counter)
        return GpuVisibility(device, camera.width, camera.height, scene.ids, tuple(winners[0]), tuple(winners[1]))

    def blend(
        self,
        scene: GpuScene,
        camera: Camera,
        options: RenderOptions,
        with_depth: bool = True,
        members: Members | None = None,
    ) -> GpuImage:
        """Sorted by the depth of the centres, 262,144 steps of it, and blended front to back: all, or the members."""
        device = self.device
        pixels = "rgba32float" if "float32-blendable" in device.features else "rgba16float"
        view = self._view(scene, camera, options, SORTED)
        over = {"src_factor": "one-minus-dst-alpha", "dst_factor": "one", "operation": "add"}
        target = {"format": pixels, "blend": {"color": over, "alpha": over}}
        step = device.raster("blend", "fragment", [target, target], None, **declared("blend", scene.constants))
        project = device.compute("footprints", **declared("footprints", scene.constants))
        colors, depths = (self._target(camera, pixels, use) for use in ("colors", "depths"))
        picture, alpha = (device.buffer(size * camera.width * camera.height) for size in (16, 4))
        most = max(min(scene.pages[0].count, FOOTPRINTS), 1)
        rounds, footprints = max(groups_of(scene.count, most), 1), device.buffer(FOOTPRINT_BYTES * most)
        counter = self._counter("count_blend", scene, camera)
        with device.work() as work:
            ordered = self._ordered(work, scene, scene.pages, view, SORTED, rounds, members)
            for number in range(rounds):
                arguments, load = ordered.round(number), "load" if number else "clear"
                for page in scene.pages:
                    bound: dict[str, Any] = {"view": view, "page": page.uniform, "fixed": page.fixed, "sh": page.sh}
                    bound |= {"order": ordered.order, "arguments": arguments, "footprints": footprints}
                    work.run(project, Indirect(ordered.arguments, arguments.offset + GROUPS_AT), **bound)
                bound = {"view": view, "footprints": footprints, "arguments": arguments}
                if counter is not None:
                    self._count(work, counter, **bound)
                with work.render("blend", [_attachment(each, 0, load) for each in (colors, depths)]) as drawing:
                    self._draw(work, drawing, step, **bound)
            bound = {"view": view, "colors": colors.create_view(), "depths": depths.create_view()}
            work.run(
                device.compute("blended"), tiles_of(camera.width, camera.height), **bound, picture=picture, alpha=alpha
            )
        self._add("blend", counter)
        return GpuImage(device, camera.width, camera.height, picture, alpha, has_depth=with_depth)

    def decode(
        self, visibility: GpuVisibility, scene: GpuScene, camera: Camera, options: RenderOptions
    ) -> GpuObservation:
        """Colour, depth, alpha and neural view of a visibility sample."""
        device = self.device
        if (visibility.width, visibility.height) != (camera.width, camera.height):
            raise RenderError(
                f"a visibility sample of {visibility.width}×{visibility.height} px cannot be decoded with a camera of "
                f"{camera.width}×{camera.height} px; give the camera it was drawn with."
            )
        view = self._view(scene, camera, options, NEAR_TO_FAR)
        pixels = camera.width * camera.height
        observed, alpha = device.buffer(16 * pixels), device.buffer(4 * pixels)
        neural_view = device.buffer(16 * pixels) if scene.has_payload else None
        nothing = device.buffer(16)
        step = device.compute("decode", PAYLOAD=scene.has_payload, **declared("decode", scene.constants))
        samples = list(zip(visibility.place, visibility.depth, strict=True))
        with device.work() as work:
            for number, (place, depth) in enumerate(samples):
                for page in scene.pages:
                    first, last = page is scene.pages[0], page is scene.pages[-1]
                    turn = device.uniform(
                        "decode",
                        "Turn",
                        samples=len(samples),
                        first=first and number == 0,
                        opening=first,
                        last=last and number == len(samples) - 1,
                    )
                    bound = {"view": view, "page": page.uniform, "turn": turn, "fixed": page.fixed, "sh": page.sh}
                    bound |= {"payload": page.payload or nothing, "place": place, "depth": depth}
                    bound |= {"observed": observed, "alpha": alpha, "neural_view": neural_view or device.buffer(16)}
                    work.run(step, tiles_of(camera.width, camera.height), **bound)
        return GpuObservation(device, camera.width, camera.height, observed, alpha, neural_view)

    def visibility_from(self, visibility: Visibility, scene: GpuScene) -> GpuVisibility:
        """A visibility sample of plain arrays; ids that the scene does not have are refused."""
        largest = int(visibility.primitive_id.max(initial=-1))
        if largest >= scene.count:
            raise RenderError(
                f"primitive {largest} was seen, but there are {scene.count}; give the scene that was drawn."
            )
        height, width = visibility.primitive_id.shape[1:]
        place_of = np.append(np.empty_like(scene.ids), np.int32(-1))  # the last one: nothing was seen
        place_of[scene.ids] = np.arange(scene.count, dtype=np.int32)
        places = tuple(self.device.upload(place_of[each]) for each in visibility.primitive_id)
        depths = tuple(self.device.upload(each) for each in visibility.depth)
        return GpuVisibility(self.device, width, height, scene.ids, places, depths)

    def _lists(self, pages: Sequence[Page]) -> Lists:
        return Lists(*(self.device.buffer(4 * count(page.count for page in pages)) for count in (sum, max)))

    def _ordered(
        self,
        work: Work,
        scene: GpuScene,
        pages: Sequence[Page],
        view: Buffer,
        buckets: int,
        rounds: int,  # in which they are drawn
        members: Members | None = None,
        lists: Lists | None = None,  # None: its own
    ) -> Ordered:
        """By the depth of centres: find the chunks that may be seen; cull, count, scan, scatter.

        Buckets are kept for one page. Of several, each is culled again before it is scattered.
        """
        device, total = self.device, sum(page.count for page in pages)
        lists = lists or self._lists(pages)
        histogram, arguments = device.buffer(4 * buckets), device.buffer(ARGUMENT_BYTES * rounds)
        work.clear(histogram)
        constants = {"BUCKETS": buckets, "MEMBERS": members is not None}
        cull = device.compute("cull", **constants, **declared("cull", scene.constants))
        found: list[dict[str, Any]] = []
        for page in pages:
            seen = device.buffer(16 + 4 * page.chunks)
            work.clear(seen)
            bound = {"view": view, "page": page.uniform, "seen": seen}
            work.run(device.compute("chunks"), (groups_of(page.chunks, 256), 1), **bound, bounds=page.bounds)
            bound |= {"fixed": page.fixed, "bucket": lists.bucket}
            nothing = device.buffer(16)
            bound |= {"membership": device.buffer(32), "frames_left": nothing, "newcomers": nothing}
            if members is not None:
                bound |= {"membership": members.uniform, "frames_left": members.frames_left}
                bound |= {"newcomers": members.newcomers}
            work.run(cull, Indirect(seen, 0), **bound, histogram=histogram)
            found.append(bound)
        filled = groups_of(total, rounds) if buckets == SORTED else 0  # what is blended ends early if few are drawn
        scan = device.compute("scan", BUCKETS=buckets, ROUNDS=rounds, ROUND=filled)
        work.run(scan, (1, 1), histogram=histogram, arguments=arguments)
        scatter = device.compute("scatter", BUCKETS=buckets)
        counted = device.buffer(4 * buckets) if len(pages) > 1 else None  # once more, for nobody
        for bound in found:
            groups = Indirect(bound["seen"], 0)
            if counted is not None:
                work.run(cull, groups, **bound, histogram=counted)
            work.run(scatter, groups, **bound, histogram=histogram, order=lists.order)
        return Ordered(lists.order, arguments)

    def _draw(self, work: Work, drawing: Any, step: Pass, /, *, arguments: Part, **resources: Any) -> None:
        work.bind(drawing, step, {**resources, "arguments": arguments})
        drawing.set_index_buffer(self._corners, "uint16")
        drawing.draw_indexed_indirect(arguments.buffer.native, arguments.offset)

    def _counter(self, shader: str, scene: GpuScene, camera: Camera, **depths: bool) -> Counter | None:
        """Counts the fragments of a pass, if somebody asks for them."""
        if self.fragments is None:
            return None
        step = self.device.raster(shader, "fragment", [], ANY_DEPTH, **declared(shader, scene.constants), **depths)
        found = self.device.upload(np.zeros(2 * camera.width * camera.height, dtype=np.uint32))
        return Counter(step, found, self._target(camera, "depth32float"))

    def _count(self, work: Work, counter: Counter, **drawn: Any) -> None:
        """The same draw into nothing: each fragment adds one to its pixel."""
        nearest = counter.nearest.create_view()
        with work.render("count", [], {"view": nearest, "depth_read_only": True}) as drawing:
            self._draw(work, drawing, counter.step, **drawn, fragments=counter.found, nearest=nearest)

    def _add(self, name: str, counter: Counter | None) -> None:
        if counter is not None and self.fragments is not None:
            found = self.device.read(counter.found, np.uint32).reshape(-1, 2).astype(np.int64).sum(axis=0)
            self.fragments[name] = self.fragments.get(name, np.zeros(2, dtype=np.int64)) + found

    def _levels(self, work: Work, sampler: str, seed: int, time: int) -> Buffer:
        """The table of keep levels; that of `independent` needs a sort and comes from the host."""
        if sampler != "stratified":
            return self.device.upload(level_table(sampler, seed, time))
        levels = self.device.buffer(4 * TABLE_SIZE)
        draw = self.device.uniform("levels", "Draw", seed=seed & 0xFFFFFFFF, time=time)
        work.run(self.device.compute("levels"), (TABLE_SIZE // 256, 1), draw=draw, levels=levels)
        return levels

    def _view(self, scene: GpuScene, camera: Camera, options: RenderOptions, buckets: int) -> Buffer:
        rotation = camera.world_from_camera[:3, :3].T
        depths = (scene.corners.astype(np.float64) - camera.position) @ rotation[2]
        first = max(options.near, float(depths.min()))
        octaves = max(np.log2(max(float(depths.max()), first) / first), 1e-3)
        values: dict[str, float] = {f"r{i}{j}": rotation[i, j] for i in range(3) for j in range(3)}
        values |= dict(zip(("eye_x", "eye_y", "eye_z"), camera.position, strict=True))
        values |= dict(zip(("back_r", "back_g", "back_b"), options.background, strict=True))
        values |= {name: getattr(camera, name) for name in ("fx", "fy", "cx", "cy", "width", "height")}
        return self.device.uniform(
            "cull", "View", **values, near=options.near, bucket_bias=np.log2(first), bucket_scale=buckets / octaves
        )

    def _target(self, camera: Camera, pixels: str, use: str = "") -> Any:
        """A texture of the picture's size, made once for each use."""
        size = (camera.width, camera.height)
        if self._targets[0] != size:
            self._targets = (size, {})
        made = self._targets[1]
        if (pixels, use) not in made:
            made[pixels, use] = self.device.texture(*size, pixels)
        return made[pixels, use]

    @property
    def target_bytes(self) -> int:
        """Of the textures."""
        made = self._targets[1]
        return sum(TEXEL_BYTES[pixels] * target.size[0] * target.size[1] for (pixels, _), target in made.items())

    def release_memory(self) -> None:
        """Free the textures."""
        self._targets = (None, {})


def _attachments(drawn: Any, depth: Any, load: str) -> tuple[list[dict[str, Any]], dict[str, Any]]:
    """Those of the stochastic raster: who wins, and near / z."""
    nearest = {"view": depth.create_view(), "depth_clear_value": 0.0, "depth_load_op": load, "depth_store_op": "store"}
    return [_attachment(drawn, NOTHING, load)], nearest


def _attachment(texture: Any, clear: int, load: str = "clear") -> dict[str, Any]:
    return {
        "view": texture.create_view(),
        "load_op": load,
        "store_op": "store",
        "clear_value": (clear, 0, 0, 0),
    }
