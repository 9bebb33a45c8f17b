"""A camera for a scene that comes without one, chosen without drawing."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
from jaxtyping import Float64
from numpy import ndarray as Array

from hushsplat.types.camera import Camera
from hushsplat.types.errors import CameraError
from hushsplat.types.gaussians import Gaussians
from hushsplat.types.options import NEAR, RenderOptions
from hushsplat.types.rotations import level_axes
from hushsplat.types.surfaces import scene_bulk, surfaces, thinned
from hushsplat.types.up import up_direction

SMALL_NEAR = 0.6  # radii of a scene: a near plane beyond this keeps one from coming near
# The rest is set by eye on pictures of five real scenes.
DIRECTIONS = 16  # places around the target that are tried
ELEVATION_DEG = 20.0
MARGIN = 1.1  # of the distance at which the bulk just fits
STEPS = (1.0, 0.7, 0.5, 0.35)  # distances from the target that are tried, as shares of the one that shows all of it
NEARER_COST = 1.0  # cost of standing at the target, as a share of the field of view; rooms are seen from inside
NEAR_SHARE = 0.6  # what fills this first part of the way to the target is in the way
CLEARANCE = 0.1  # nor may anything be nearer than this share of the way, in any direction
VIEW_COSINE = float(np.cos(np.radians(20)))  # of the half angle that should be free of obstacles


def guess_camera(gaussians: Gaussians, width: int, height: int, up: Any = None, fov_y_deg: float = 50.0) -> Camera:
    """A camera that looks at the bulk of the scene, slightly from above, where least is in the way.

    It draws nothing: `hushsplat.home` has this one among its candidates and finds better ones.
    """
    upward = up_direction(gaussians, up)
    eye, target = _standpoint(gaussians, upward, _half_angle(width, height, fov_y_deg))
    return Camera.look_at(eye, target, upward, width=width, height=height, fov_y_deg=fov_y_deg)


def _half_angle(width: int, height: int, fov_y_deg: float) -> float:
    """Radians from the middle of the picture to its nearest edge."""
    if not (0 < fov_y_deg < 180 and width >= 1 and height >= 1):
        raise CameraError(f"a picture needs 1 px and a fov between 0 and 180, got {width}×{height} and {fov_y_deg}.")
    return float(np.arctan(np.tan(np.radians(fov_y_deg) / 2) * min(1.0, width / height)))


def _standpoint(
    gaussians: Gaussians, upward: Float64[Array, " 3"], half_angle: float
) -> tuple[Float64[Array, " 3"], Float64[Array, " 3"]]:
    """Position of the camera and its target."""
    directions = _directions(upward)
    if len(gaussians) == 0:
        return directions[0], np.zeros(3)
    some = thinned(gaussians)
    areas = some.opacities * np.pi * surfaces(some)[1] * (len(gaussians) / len(some))  # all of them by some
    target, radius = scene_bulk(gaussians)
    distance = MARGIN * radius / np.sin(half_angle)
    places = [(step, target + step * distance * direction) for step in STEPS for direction in directions]
    means = some.means.astype(np.float64)
    costs = [_blocked(means, areas, eye, target) + NEARER_COST * (1 - step) for step, eye in places]
    return places[int(np.argmin(costs))][1], target


def fitting_near(gaussians: Gaussians, options: RenderOptions) -> RenderOptions:
    """The options; the near plane of 3DGS, if no other was asked for, comes nearer where it would cut a small scene."""
    _, radius = scene_bulk(gaussians)
    if options.near != NEAR or radius * SMALL_NEAR > NEAR:
        return options
    return replace(options, near=float(10.0 ** np.floor(np.log10(0.1 * radius))))  # the same for all levels of detail


def _blocked(means: Array, surfaces: Array, eye: Float64[Array, " 3"], target: Float64[Array, " 3"]) -> float:
    """The share of the field of view that is filled by what is nearer than the target: a sum of solid angles."""
    way = target - eye
    distance = np.linalg.norm(way)
    offset = means - eye
    away = np.sqrt(np.einsum("ni,ni->n", offset, offset))
    ahead = (offset @ (way / distance) > VIEW_COSINE * away) & (away < NEAR_SHARE * distance)
    near = ahead | (away < CLEARANCE * distance)
    angles = surfaces[near] / np.maximum(away[near], 1e-9) ** 2
    return float(np.minimum(angles, 1.0).sum() / (2 * np.pi * (1 - VIEW_COSINE)))


def _directions(upward: Float64[Array, " 3"]) -> Float64[Array, "n 3"]:
    """Unit vectors all around, a little above the horizon."""
    first, second = level_axes(upward)
    angle = 2 * np.pi * np.arange(DIRECTIONS)[:, None] / DIRECTIONS
    level = np.cos(angle) * first + np.sin(angle) * second
    return np.cos(np.radians(ELEVATION_DEG)) * level + np.sin(np.radians(ELEVATION_DEG)) * upward
