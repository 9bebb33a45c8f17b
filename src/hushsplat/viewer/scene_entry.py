"""A scene as the viewer holds it: uploaded to an engine, with its name, its up direction and cameras to begin from."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from jaxtyping import Float64
from numpy import ndarray as Array

from hushsplat.engines.base import Engine, Scene
from hushsplat.engines.cpu.engine import CpuEngine, CpuScene
from hushsplat.home import Place, find_places
from hushsplat.types.camera import Camera
from hushsplat.types.errors import ViewError
from hushsplat.types.framing import scene_bulk, up_direction
from hushsplat.types.gaussians import Gaussians
from hushsplat.types.levels import Levels
from hushsplat.types.options import Noise, RenderOptions

SIZE, FOV_Y_DEG = (800, 532), 50.0  # of the pictures that places are chosen by
PLACES = 6  # that are found where no cameras are given
MAX_PLACES = 2000  # that the page offers; more is no menu
PROBE_PX, PROBE_SAMPLES = 5, 32  # a probe takes the median depth of a small square
MIDDLE_PX, MIDDLE_SAMPLES = 48, 4  # the small picture whose depths give the distance of the pivot


@dataclass(frozen=True, eq=False)
class SceneEntry:
    """A scene ready to be drawn; it owns the engine's scene, which goes when the entry goes.

    Attributes:
        name: on the page.
        gaussians: as they were read.
        engine: that draws it.
        scene: the Gaussians uploaded to that engine.
        up: unit vector.
        radius: of what the scene shows in detail, world units.
        places: the first is where a page begins.
        levels: of detail, for moving cameras; None: there are none.
    """

    name: str
    gaussians: Gaussians
    engine: Engine
    scene: Scene
    up: Float64[Array, " 3"]
    radius: float
    places: tuple[Place, ...]
    levels: Levels | None = None

    @staticmethod
    def of(
        gaussians: Gaussians,
        name: str,
        engine: Engine,
        options: RenderOptions,
        cameras: Sequence[tuple[str, Camera]] = (),
        up: Any = None,
        framing: Gaussians | None = None,
    ) -> SceneEntry:
        """Upload a scene, and find what its file does not say.

        Args:
            gaussians: of the scene.
            name: on the page.
            engine: to upload to.
            options: of the upload.
            cameras: places by name; none: they are found.
            up: a direction or a name of UP_AXES; None guesses.
            framing: another level of detail of the scene, to find places and up by.
        """
        framing = gaussians if framing is None else framing
        upward = up_direction(framing, up)
        _, radius = scene_bulk(framing)
        places = [Place(title, camera) for title, camera in cameras[:MAX_PLACES]]
        if not places:
            places = find_places(framing, *SIZE, up=upward, fov_y_deg=FOV_Y_DEG, count=PLACES, on=engine)
        return SceneEntry(name, gaussians, engine, engine.upload(gaussians, options), upward, radius, tuple(places))

    def with_levels(self, options: RenderOptions, on_leaf: Callable[[], None] = lambda: None) -> SceneEntry:
        """The same scene with levels of detail; the cpu engine alone can draw them."""
        if not isinstance(self.engine, CpuEngine):
            raise ViewError(f"the {self.engine.name} engine draws no levels of detail.")
        levels = Levels.of(self.gaussians, on_leaf)
        scene = self.engine.upload(levels.gaussians, options, levels.group).showing(levels.finest)
        return replace(self, gaussians=levels.scene, scene=scene, levels=levels)

    def scene_at(self, camera: Camera, spacing_px: float) -> Scene:
        """What is drawn while the camera moves: where there are levels, only as much detail as is seen."""
        if self.levels is None or spacing_px <= 0 or not isinstance(self.scene, CpuScene):
            return self.scene
        return self.scene.showing(self.levels.seen_by(camera, spacing_px))

    def point_at(self, camera: Camera, x: float, y: float, options: RenderOptions) -> list[float] | None:
        """The world point of the surface at a pixel (0..1 of width and height), None where most samples miss."""
        column, row = x * camera.width, y * camera.height
        half = PROBE_PX / 2
        cropped = replace(
            camera, width=PROBE_PX, height=PROBE_PX, cx=camera.cx - column + half, cy=camera.cy - row + half
        )
        seen = self.engine.sample(self.scene, cropped, Noise(PROBE_SAMPLES), options).numpy()
        hits = seen.depth[seen.primitive_id >= 0]
        if len(hits) < seen.depth.size / 2:
            return None
        depth = float(np.median(hits))  # a mean would lie between two surfaces, on none of them
        ray = np.array([(column - camera.cx) / camera.fx, (row - camera.cy) / camera.fy, 1.0])
        return (camera.world_from_camera[:3, :3] @ (ray * depth) + camera.position).tolist()

    def home(self, up: Float64[Array, " 3"]) -> Place:
        """The best place to look from if this direction is up."""
        return find_places(self.gaussians, *SIZE, up=up, fov_y_deg=FOV_Y_DEG, count=1, on=self.engine)[0]

    def middle_depth(self, camera: Camera, options: RenderOptions) -> float | None:
        """The 40th percentile of the depths in the middle of the picture: a window in a wall does not count."""
        small = camera.resized(MIDDLE_PX, MIDDLE_PX)
        seen = self.engine.sample(self.scene, small, Noise(MIDDLE_SAMPLES), options).numpy()
        middle = (slice(None), *[slice(MIDDLE_PX // 4, -MIDDLE_PX // 4)] * 2)
        hits = seen.depth[middle][seen.primitive_id[middle] >= 0]
        return float(np.percentile(hits, 40)) if len(hits) else None
