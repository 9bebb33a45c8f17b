"""A scene made ready for showing: its name, which way is up, where to stand, and what the page is told about it."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from jaxtyping import Float64
from numpy import ndarray as Array

from hushsplat.engines.cpu.render_names import RenderOptions
from hushsplat.spec.views import Scale
from hushsplat.types.camera import Camera
from hushsplat.types.framing import frame_scene, scene_bulk, up_direction
from hushsplat.types.gaussians import Gaussians
from hushsplat.viewer.frame_renderer import middle_depth

FOV_Y_DEG = 50.0
MAX_PLACES = 2000  # that the page offers; more is no menu


@dataclass(frozen=True)
class Place:
    """Somewhere to look from."""

    name: str
    camera: Camera
    pivot: Float64[Array, " 3"] | None = None  # what to turn about; None: something as far away as most of the picture


@dataclass(frozen=True, eq=False)
class Exhibit:
    """A scene as the viewer shows it."""

    name: str
    gaussians: Gaussians
    up: Float64[Array, " 3"]
    radius: float  # world units: of what it shows in detail
    places: tuple[Place, ...]  # the first is where a visit begins

    @staticmethod
    def of(
        gaussians: Gaussians,
        name: str,
        cameras: Sequence[tuple[str, Camera]] = (),  # places that are known; none: one is found
        up: Any = None,  # a direction or a name of UP_AXES; None: a guess
    ) -> Exhibit:
        """Find out what a scene does not say of itself."""
        upward = up_direction(gaussians, up)
        _, radius = scene_bulk(gaussians)
        places = [Place(title, camera) for title, camera in cameras[:MAX_PLACES]] or [framed(gaussians, upward)]
        return Exhibit(name, gaussians, upward, radius, tuple(places))

    def described(self, options: RenderOptions) -> dict[str, Any]:
        """What the page is told; looks into the scene for the pivot of the first place."""
        first, *others = self.places
        return {
            "name": self.name,
            "gaussians": len(self.gaussians),
            "kind": "surfels" if self.gaussians.is_surfels else "ellipsoids",
            "sh_degree": self.gaussians.sh_degree,
            "payload": self.gaussians.payload is not None,
            "up": self.up.tolist(),
            "radius": self.radius,
            "places": [told(first, self, options), *(told(place) for place in others)],
        }


def framed(gaussians: Gaussians, upward: Float64[Array, " 3"]) -> Place:
    """The place from which the scene is seen as a whole."""
    camera = frame_scene(gaussians, 800, 532, upward, FOV_Y_DEG)
    middle, _ = scene_bulk(gaussians)
    return Place("Home", camera, middle)


def told(place: Place, exhibit: Exhibit | None = None, options: RenderOptions | None = None) -> dict[str, Any]:
    """A place in words; with an exhibit also how far what it looks at is away."""
    camera = place.camera
    distance = None
    if place.pivot is not None:
        distance = float((place.pivot - camera.position) @ camera.world_from_camera[:3, 2])
    elif exhibit is not None and options is not None:
        distance = middle_depth(exhibit.gaussians, camera, options)
    return {
        "name": place.name,
        "world_from_camera": camera.world_from_camera.tolist(),
        "fov_y_deg": math.degrees(2 * math.atan(0.5 * camera.height / camera.fy)),
        "distance": distance if distance is not None and distance > 0 else None,
    }


def legend(scale: Scale | None) -> dict[str, Any] | None:
    """What the colours of a view mean; the bar itself does not change and is told once."""
    if scale is None:
        return None
    return {"title": scale.title, "ticks": [scale.value(place) for place in (0.0, 0.5, 1.0)], "wheel": scale.wheel}
