"""A scene as the viewer holds it: uploaded to an engine, with its name, its up direction and cameras to begin from."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np
from jaxtyping import Float64
from numpy import ndarray as Array

from hushsplat.engines.base import Engine, Scene
from hushsplat.engines.cpu.engine import CpuEngine, CpuScene
from hushsplat.home import Place, find_places
from hushsplat.io.captures.photographs import load_photograph
from hushsplat.types.camera import Camera
from hushsplat.types.capture import View
from hushsplat.types.errors import HushsplatError, ViewError
from hushsplat.types.framing import fitting_near
from hushsplat.types.gaussians import Gaussians
from hushsplat.types.levels import Levels
from hushsplat.types.options import NEAR, Noise, RenderOptions
from hushsplat.types.surfaces import scene_bulk
from hushsplat.types.up import up_direction
from hushsplat.viewer.encoding import jpeg

SIZE, FOV_Y_DEG = (800, 532), 50.0  # of the pictures that places are chosen by
PLACES = 6  # that are found where no cameras are given
MAX_PLACES = 2000  # that the page offers; more is no menu
PROBE_PX, PROBE_SAMPLES = 5, 32  # a probe takes the median depth of a small square
CUBE_PX, CUBE_SAMPLES, CUBE_SPACING_PX = 24, 5, 70.0  # faces of the cube that walls about a point are found by
INSIDE_NEAR, INSIDE_RADII, INSIDE_SHARE = 0.02, 1.5, 0.3  # ours: rooms 0.42 to 0.55 of all sides, others to 0.14
INSIDE_GAUSSIANS = 50_000  # that stand for all of them
THUMBNAIL_PX, THUMBNAIL_SPACING_PX = 144, 20.0  # width of the picture of a place, and with how much detail
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
        near: plane, world units.
        photographs: of the first places, if they are those of a capture.
        thumbnails: of places, JPEG, as far as they were asked for.
    """

    name: str
    gaussians: Gaussians
    engine: Engine
    scene: Scene
    up: Float64[Array, " 3"]
    radius: float
    places: tuple[Place, ...]
    near: float = NEAR
    photographs: tuple[View, ...] = ()
    thumbnails: dict[int, bytes] = field(default_factory=dict)

    @staticmethod
    def of(
        gaussians: Gaussians,
        name: str,
        engine: Engine,
        options: RenderOptions,
        cameras: Sequence[tuple[str, Camera]] | Sequence[View] = (),
        up: Any = None,
        framing: Gaussians | None = None,
    ) -> SceneEntry:
        """Upload a scene, and find what its file does not say.

        Args:
            gaussians: of the scene.
            name: on the page.
            engine: to upload to.
            options: of the upload, and the near plane of places.
            cameras: places by name, or the views of a capture; none: they are found.
            up: a direction or a name of UP_AXES; None guesses.
            framing: another level of detail of the scene, to find places and up by.
        """
        framing = gaussians if framing is None else framing
        upward = up_direction(framing, up)
        _, radius = scene_bulk(framing)
        options = fitting_near(framing, options)
        views = tuple(view for view in cameras[:MAX_PLACES] if isinstance(view, View))
        named = [(view.name, view.camera) if isinstance(view, View) else view for view in cameras[:MAX_PLACES]]
        places = [Place(title, camera) for title, camera in named]
        if not places:
            looked_with = RenderOptions(near=options.near)
            places = find_places(
                framing, *SIZE, up=upward, fov_y_deg=FOV_Y_DEG, count=PLACES, on=engine, options=looked_with
            )
        scene = engine.upload(gaussians, options)
        return SceneEntry(
            name, gaussians, engine, scene, upward, radius, tuple(places), options.near, photographs=views
        )

    def with_levels(self, options: RenderOptions, on_leaf: Callable[[], None] = lambda: None) -> SceneEntry:
        """The same scene with levels of detail; the cpu engine alone can draw them."""
        if not isinstance(self.engine, CpuEngine):
            raise ViewError(f"the {self.engine.name} engine draws no levels of detail.")
        levels = Levels.of(self.gaussians, on_leaf)
        return replace(self, gaussians=levels.scene, scene=self.engine.upload_levels(levels, options))

    @property
    def has_levels(self) -> bool:
        """Whether moving cameras may see coarser levels of detail."""
        return isinstance(self.scene, CpuScene) and self.scene.levels is not None

    def scene_at(self, camera: Camera, spacing_px: float) -> Scene:
        """What is drawn while the camera moves: where there are levels, only as much detail as is seen."""
        return self.scene.seen_by(camera, spacing_px) if isinstance(self.scene, CpuScene) else self.scene

    def thumbnail(self, index: int, options: RenderOptions) -> bytes:
        """A small picture of what is seen from a place, drawn once."""
        if not 0 <= index < len(self.places):
            raise ViewError(f"there is no place {index}; this scene has {len(self.places)}.")
        if index not in self.thumbnails:
            camera = self.places[index].camera
            small = camera.resized(THUMBNAIL_PX, max(1, round(THUMBNAIL_PX * camera.height / camera.width)))
            scene = self.scene_at(small, THUMBNAIL_SPACING_PX)
            image = self.engine.render(scene, small, "reference", options).numpy()
            self.thumbnails[index] = jpeg(image.color, sharp=False)
        return self.thumbnails[index]

    def photograph(self, index: int, width: int) -> bytes:
        """The photograph of a place at this width, or at its own if that is smaller, as a pinhole camera sees it."""
        if not 0 <= index < len(self.photographs):
            raise ViewError(f"there is no photograph of place {index}.")
        view = self.photographs[index]
        try:
            picture, _ = load_photograph(view, width=min(view.camera.width, width))
        except HushsplatError as error:  # clients need not know where it lies
            raise ViewError(str(error).replace(str(view.image_path), view.name)) from error
        return jpeg(picture, sharp=width > THUMBNAIL_PX)

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

    def is_inside(self, options: RenderOptions) -> bool:
        """Whether the first place has walls about it, as in a room: there one looks around instead of orbiting."""
        every = -(-len(self.gaussians) // INSIDE_GAUSSIANS) or 1
        some = self.gaussians.take(np.arange(0, len(self.gaussians), every))
        some = replace(some, scales=some.scales * np.float32(every**0.5))
        proxy = replace(self, gaussians=some, scene=self.engine.upload(some, options))
        far = proxy.surroundings(self.places[0].camera.position, INSIDE_NEAR * self.radius, options)
        return bool((far < INSIDE_RADII * self.radius).mean() > INSIDE_SHARE)

    def surroundings(self, point: Float64[Array, " 3"], near: float, options: RenderOptions) -> Float64[Array, "6 n n"]:
        """How far surfaces are from a point, farther than `near`, on the faces of a cube: +x −x +y −y +z −z.

        Columns of a face run along the next axis (x after z), rows along the one after it. Infinite where most samples
        miss.
        """
        faces = np.full((6, CUBE_PX, CUBE_PX), np.inf)
        for face in range(6):
            axis = face // 2
            columns = [np.eye(3)[(axis + 2) % 3], np.eye(3)[(axis + 1) % 3], (-1.0) ** face * np.eye(3)[axis]]
            if face % 2 == 0:  # right-handed
                columns[0], columns[1] = columns[1], columns[0]
            pose = np.eye(4)
            pose[:3, :3], pose[:3, 3] = np.stack(columns, axis=1), point
            half = CUBE_PX / 2
            camera = Camera(CUBE_PX, CUBE_PX, half, half, half, half, pose)
            scene = self.scene_at(camera, CUBE_SPACING_PX)
            seen = self.engine.sample(scene, camera, Noise(CUBE_SAMPLES), replace(options, near=near)).numpy()
            hit = seen.primitive_id >= 0
            depth = np.median(np.where(hit, seen.depth, np.inf), axis=0)
            across = (np.arange(CUBE_PX) + 0.5) / half - 1
            distance = depth * np.sqrt(1 + across[:, None] ** 2 + across[None, :] ** 2)
            faces[face] = distance if face % 2 == 0 else distance.T
        return faces

    def home(self, up: Float64[Array, " 3"]) -> Place:
        """The best place to look from if this direction is up."""
        options = RenderOptions(near=self.near)
        found = find_places(self.gaussians, *SIZE, up=up, fov_y_deg=FOV_Y_DEG, count=1, on=self.engine, options=options)
        return found[0]

    def middle_depth(self, camera: Camera, options: RenderOptions) -> float | None:
        """The 40th percentile of the depths in the middle of the picture: a window in a wall does not count."""
        small = camera.resized(MIDDLE_PX, MIDDLE_PX)
        seen = self.engine.sample(self.scene, small, Noise(MIDDLE_SAMPLES), options).numpy()
        middle = (slice(None), *[slice(MIDDLE_PX // 4, -MIDDLE_PX // 4)] * 2)
        hits = seen.depth[middle][seen.primitive_id[middle] >= 0]
        return float(np.percentile(hits, 40)) if len(hits) else None
