"""Where to look from first: candidates are drawn small with the stochastic renderer and scored by what they show."""

from __future__ import annotations

from typing import Any

from hushsplat.engines.base import Engine, Scene
from hushsplat.home.path import circle, is_free_circle, keys_between, look_around
from hushsplat.home.search import Place, Search
from hushsplat.types.camera import Camera
from hushsplat.types.errors import CameraError
from hushsplat.types.gaussians import Gaussians
from hushsplat.types.options import RenderOptions
from hushsplat.types.paths import track_from_cameras
from hushsplat.types.track import Track

__all__ = ["Place", "find_places", "frame_scene", "orbit_scene", "tour"]


def find_places(
    scene: Gaussians | Scene,
    width: int = 800,
    height: int = 532,
    *,
    up: Any = None,
    fov_y_deg: float = 50.0,
    count: int = 4,
    on: str | Engine = "cpu",
    options: RenderOptions | None = None,
) -> list[Place]:
    """The best place to look from first, and the next best ones that show something else.

    Args:
        scene: Gaussians, or an uploaded scene that knows them.
        width: of the picture, px.
        height: of the picture, px.
        up: a direction of three numbers, or "y", "-y", "z", ...; None takes the normal of the ground.
        fov_y_deg: from top to bottom.
        count: how many places at most; there is always one.
        on: the engine that draws, or its name.
        options: near plane and threads of the pictures.

    Returns:
        Home first, then by score.
    """
    if count < 1:
        raise CameraError(f"count must be at least 1, got {count}.")
    return Search.of(scene, width, height, up, fov_y_deg, on, options).places(count)


def frame_scene(
    scene: Gaussians | Scene,
    width: int = 800,
    height: int = 532,
    up: Any = None,
    fov_y_deg: float = 50.0,
    *,
    on: str | Engine = "cpu",
    options: RenderOptions | None = None,
) -> Camera:
    """The best place to look from first, see `find_places`.

    Args:
        scene: Gaussians, or an uploaded scene that knows them.
        width: of the picture, px.
        height: of the picture, px.
        up: a direction of three numbers, or "y", "-y", "z", ...; None takes the normal of the ground.
        fov_y_deg: vertical field of view, degrees.
        on: the engine that draws, or its name.
        options: near plane and threads of the pictures.

    Returns:
        The camera.
    """
    return find_places(scene, width, height, up=up, fov_y_deg=fov_y_deg, count=1, on=on, options=options)[0].camera


def orbit_scene(
    scene: Gaussians | Scene,
    width: int = 800,
    height: int = 532,
    up: Any = None,
    *,
    seconds: float = 8.0,
    fps: float = 30.0,
    fov_y_deg: float = 50.0,
    on: str | Engine = "cpu",
    options: RenderOptions | None = None,
) -> Track:
    """A circle about what the camera of `frame_scene` looks at, which begins at that camera.

    Args:
        scene: Gaussians, or an uploaded scene that knows them.
        width: of the picture, px.
        height: of the picture, px.
        up: a direction of three numbers, or "y", "-y", "z", ...; None takes the normal of the ground.
        seconds: for the whole circle.
        fps: frames a second.
        fov_y_deg: vertical field of view, degrees.
        on: the engine that draws, or its name.
        options: near plane and threads of the pictures.

    Returns:
        A track of round(seconds · fps) frames.
    """
    search = Search.of(scene, width, height, up, fov_y_deg, on, options)
    return circle(search.places(1)[0], search.up, seconds, fps, fov_y_deg)


def tour(
    scene: Gaussians | Scene,
    width: int = 800,
    height: int = 532,
    *,
    up: Any = None,
    fov_y_deg: float = 50.0,
    places: int = 5,
    seconds: float = 16.0,
    fps: float = 30.0,
    on: str | Engine = "cpu",
    options: RenderOptions | None = None,
) -> Track:
    """A smooth path that begins at home and passes the other places; around a lone object it is a circle.

    A straight way that something stands in is replaced by one over other candidates; a place to which there is none is
    left out. Where home is the only one, and no circle about what it shows is free, the camera turns on the spot.

    Args:
        scene: Gaussians, or an uploaded scene that knows them.
        width: of the picture, px.
        height: of the picture, px.
        up: a direction of three numbers, or "y", "-y", "z", ...; None takes the normal of the ground.
        fov_y_deg: vertical field of view, degrees.
        places: how many to pass at most.
        seconds: for the whole path.
        fps: frames a second.
        on: the engine that draws, or its name.
        options: near plane and threads of the pictures.

    Returns:
        A track of round(seconds · fps) frames.
    """
    search = Search.of(scene, width, height, up, fov_y_deg, on, options)
    found = search.places(max(1, places))
    keys = [] if search.is_lone else keys_between(search, found)
    if len(keys) > 1:
        return track_from_cameras(keys, seconds, fps)
    if search.is_lone or is_free_circle(search, found[0]):
        return circle(found[0], search.up, seconds, fps, fov_y_deg)
    return track_from_cameras(look_around(found[0].camera, search.up), seconds, fps)
