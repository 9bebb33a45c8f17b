"""The renderers on the GPU: cull, bucket by depth, and draw quads with the hardware's rasterizer."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import wgpu

from hushsplat.engines.webgpu.device import Buffer, Device, Pass, Work, groups_of
from hushsplat.engines.webgpu.handles import GpuImage, GpuObservation, GpuVisibility
from hushsplat.engines.webgpu.scene import GpuScene, Page
from hushsplat.spec.sampling import TABLE_SIZE, key_salt, level_table, sequence_index
from hushsplat.types.camera import Camera
from hushsplat.types.errors import RenderError
from hushsplat.types.observation import Visibility
from hushsplat.types.options import Noise, RenderOptions

QUADS = 128  # an instance, as lib_quad.wgsl
NEAR_TO_FAR = 1024  # buckets of depth before a depth test: as good as sorting (91 to 26 fragments a pixel on bonsai)
SORTED = 65_536  # buckets of depth of a blended picture
NOTHING = 0xFFFFFFFF
ROW_GROUPS = 32_768  # workgroups along x before a dispatch becomes two-dimensional
LESS_DEEP = {"format": "depth32float", "depth_write_enabled": True, "depth_compare": "greater"}  # near / z: reverse


@dataclass(frozen=True)
class Ordered:
    """The Gaussians of a page that are drawn, bucket by bucket."""

    page: Page
    order: Buffer
    arguments: Buffer


@dataclass(frozen=True)
class Members:
    """Which Gaussians are drawn: those that won a pixel lately."""

    uniform: Buffer  # frame and period
    won_in: Buffer  # the frame in which each Gaussian won last


class Rasterizer:
    """Draws scenes on one device."""

    def __init__(self, device: Device, *, exact_depth: bool) -> None:
        self.device, self.exact_depth = device, exact_depth
        quads = np.arange(QUADS, dtype=np.uint16)[:, None] * 4 + np.array([0, 1, 2, 2, 1, 3], dtype=np.uint16)
        self._corners = device.native.create_buffer_with_data(data=quads, usage=wgpu.BufferUsage.INDEX)
        self._targets: tuple[Any, dict[tuple[str, str], Any]] = (None, {})  # textures of the picture size drawn last

    def sample(self, scene: GpuScene, camera: Camera, noise: Noise, options: RenderOptions) -> GpuVisibility:
        """Who is seen in each pixel, `samples` times."""
        device, seed = self.device, int(noise.seed)
        view = self._view(scene, camera, options, NEAR_TO_FAR)
        drawn, depth = (self._target(camera, pixels) for pixels in ("r32uint", "depth32float"))
        tiles = _tiles(camera)
        plane = 4 * camera.width * camera.height
        winners: tuple[list[Buffer], list[Buffer]] = ([], [])
        surfels = {"SURFELS": scene.gaussians.is_surfels}
        kept = "exact" if self.exact_depth else "plane"
        raster = device.raster(
            "raster", kept, [{"format": "r32uint"}], LESS_DEEP, EXACT_DEPTH=self.exact_depth, **surfels
        )
        with device.work() as work:
            pages = [self._ordered(work, page, view, NEAR_TO_FAR, surfels, by_center=False) for page in scene.pages]
            for index in range(noise.samples):
                time = sequence_index(int(noise.frame), noise.samples, index)
                levels = self._levels(work, noise.sampler, seed, time)
                sample = device.uniform("raster", "Sample", salt=key_salt(noise.sampler, seed, time))
                attachments = (
                    [_attachment(drawn, NOTHING)],
                    {"view": depth.create_view(), "depth_clear_value": 0.0, "depth_load_op": "clear"}
                    | {"depth_store_op": "store"},
                )
                with work.render("raster", *attachments) as drawing:
                    for each in pages:
                        self._draw(work, drawing, raster, each, view=view, sample=sample, levels=levels)
                found = device.buffer(plane), device.buffer(plane)
                for page in scene.pages:
                    step = device.compute("winners", **surfels)
                    bound = {"view": view, "page": page.uniform, "fixed": page.fixed, "drawn": drawn.create_view()}
                    work.run(step, tiles, **bound, primitive_id=found[0], depth=found[1])
                winners[0].append(found[0])
                winners[1].append(found[1])
        return GpuVisibility(device, camera.width, camera.height, tuple(winners[0]), tuple(winners[1]))

    def blend(
        self,
        scene: GpuScene,
        camera: Camera,
        options: RenderOptions,
        with_depth: bool = True,
        members: Members | None = None,
    ) -> GpuImage:
        """Sorted by the depth of the centres, 65,536 steps of it, and blended front to back: all, or the members."""
        device = self.device
        if len(scene.pages) > 1:
            raise RenderError(
                f"the gpu engine sorts and blends up to {scene.pages[0].count} Gaussians of this kind on "
                f"{device.adapter}, the scene has {scene.count}; use the cpu engine."
            )
        pixels = "rgba32float" if "float32-blendable" in device.features else "rgba16float"
        view = self._view(scene, camera, options, SORTED)
        surfels = {"SURFELS": scene.gaussians.is_surfels}
        over = {"src_factor": "one-minus-dst-alpha", "dst_factor": "one", "operation": "add"}
        target = {"format": pixels, "blend": {"color": over, "alpha": over}}
        step = device.raster("blend", "fragment", [target, target], None, HALVES=scene.halves, **surfels)
        colors, depths = (self._target(camera, pixels, use) for use in ("colors", "depths"))
        picture, alpha = (device.buffer(size * camera.width * camera.height) for size in (16, 4))
        with device.work() as work:
            ordered = self._ordered(work, scene.pages[0], view, SORTED, surfels, by_center=True, members=members)
            with work.render("blend", [_attachment(colors, 0), _attachment(depths, 0)]) as drawing:
                self._draw(work, drawing, step, ordered, view=view, sh=ordered.page.sh)
            bound = {"view": view, "colors": colors.create_view(), "depths": depths.create_view()}
            work.run(device.compute("blended"), _tiles(camera), **bound, picture=picture, alpha=alpha)
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
        step = device.compute(
            "decode", SURFELS=scene.gaussians.is_surfels, HALVES=scene.halves, PAYLOAD=scene.has_payload
        )
        samples = list(zip(visibility.primitive_id, visibility.depth, strict=True))
        with device.work() as work:
            for number, (ids, depth) in enumerate(samples):
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
                    bound |= {"payload": page.payload or nothing, "primitive_id": ids, "depth": depth}
                    bound |= {"observed": observed, "alpha": alpha, "neural_view": neural_view or device.buffer(16)}
                    work.run(step, _tiles(camera), **bound)
        return GpuObservation(device, camera.width, camera.height, observed, alpha, neural_view)

    def visibility_from(self, visibility: Visibility, scene: GpuScene) -> GpuVisibility:
        """A visibility sample of plain arrays; ids that the scene does not have are refused."""
        largest = int(visibility.primitive_id.max(initial=-1))
        if largest >= scene.count:
            raise RenderError(
                f"primitive {largest} was seen, but there are {scene.count}; give the scene that was drawn."
            )
        height, width = visibility.primitive_id.shape[1:]
        ids = tuple(self.device.upload(each) for each in visibility.primitive_id)
        return GpuVisibility(
            self.device, width, height, ids, tuple(self.device.upload(each) for each in visibility.depth)
        )

    def _ordered(
        self,
        work: Work,
        page: Page,
        view: Buffer,
        buckets: int,
        surfels: dict[str, bool],
        *,
        by_center: bool,
        members: Members | None = None,
    ) -> Ordered:
        """Cull, count, scan, scatter."""
        device = self.device
        bucket, order = device.buffer(4 * page.count), device.buffer(4 * page.count)
        histogram, arguments = device.buffer(4 * buckets), device.buffer(24)
        work.clear(histogram)
        groups = groups_of(page.count, 256)
        grid = (min(groups, ROW_GROUPS), groups_of(groups, ROW_GROUPS)) if groups else (1, 1)
        cull = device.compute("cull", BUCKETS=buckets, BY_CENTER=by_center, MEMBERS=members is not None, **surfels)
        bound = {"view": view, "page": page.uniform, "fixed": page.fixed, "bucket": bucket, "histogram": histogram}
        bound |= {"membership": device.buffer(16), "won_in": device.buffer(16)}
        if members is not None:
            bound |= {"membership": members.uniform, "won_in": members.won_in}
        work.run(cull, grid, **bound)
        work.run(device.compute("scan", BUCKETS=buckets), (1, 1), histogram=histogram, draw_arguments=arguments)
        scatter = device.compute("scatter", BUCKETS=buckets)
        work.run(scatter, grid, page=page.uniform, bucket=bucket, histogram=histogram, order=order)
        return Ordered(page, order, arguments)

    def _draw(self, work: Work, drawing: Any, step: Pass, ordered: Ordered, /, **resources: Any) -> None:
        page = ordered.page
        resources |= {"page": page.uniform, "fixed": page.fixed}
        work.bind(drawing, step, {**resources, "order": ordered.order, "draw_arguments": ordered.arguments})
        drawing.set_index_buffer(self._corners, "uint16")
        drawing.draw_indexed_indirect(ordered.arguments.native, 0)

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

    def release_memory(self) -> None:
        """Free the textures."""
        self._targets = (None, {})


def _tiles(camera: Camera) -> tuple[int, int]:
    """Workgroups of 16×16 px."""
    return groups_of(camera.width, 16), groups_of(camera.height, 16)


def _attachment(texture: Any, clear: int) -> dict[str, Any]:
    return {
        "view": texture.create_view(),
        "load_op": "clear",
        "store_op": "store",
        "clear_value": (clear, 0, 0, 0),
    }
