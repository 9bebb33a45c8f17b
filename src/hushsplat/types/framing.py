"""A camera for a scene that comes without one: guess the up axis, then choose a viewpoint."""

from __future__ import annotations

from typing import Any

import numpy as np
from jaxtyping import Float, Float64
from numpy import ndarray as Array

from hushsplat.types.camera import Camera
from hushsplat.types.errors import CameraError
from hushsplat.types.gaussians import Gaussians
from hushsplat.types.paths import orbit
from hushsplat.types.rotations import matrix_from_quaternion, normalized
from hushsplat.types.track import Track

# The three conventions that files follow: COLMAP's and so 3DGS' own, graphics engines', and CAD's.
UP_AXES = {"-y": (0.0, -1.0, 0.0), "y": (0.0, 1.0, 0.0), "z": (0.0, 0.0, 1.0)}
MOST_GAUSSIANS = 50_000  # ours: a guess needs no more than this many
BINS = 20  # of the histograms of level surfaces along an axis
END_BINS = 3
# Ours, set by looking at seven files of five real scenes. Of all surfaces that face along the up axis, the largest bin
# has 26 to 94 % where there is a floor; along the other axes at most 20 %. A lone figure (biker) has 13 % and falls to
# the default. All seven come out right as they are. Turned to each of the three conventions, 17 of 21 do: a room with a
# ceiling that has y up, and the figure with anything but -y up, come out wrong; then the user has to say.
FLOOR_SHARE = 0.2
# The rest is set by eye on pictures of the same five scenes.
DIRECTIONS = 16  # places around the target that are tried
ELEVATION_DEG = 20.0
BULK_PERCENT = 90.0  # of the detail is in the picture
MARGIN = 1.1  # of the distance at which the bulk just fits
STEPS = (1.0, 0.7, 0.5, 0.35)  # distances from the target that are tried, as shares of the one that shows all of it
NEARER_COST = 1.0  # cost of standing at the target, as a share of the field of view; rooms are seen from inside
NEAR_SHARE = 0.6  # what fills this first part of the way to the target is in the way
CLEARANCE = 0.1  # nor may anything be nearer than this share of the way, in any direction
VIEW_COSINE = float(np.cos(np.radians(20)))  # of the half angle that should be free of obstacles


def frame_scene(gaussians: Gaussians, width: int, height: int, up: Any = None, fov_y_deg: float = 50.0) -> Camera:
    """A camera that looks at the bulk of the scene, slightly from above, where least is in the way.

    Args:
        gaussians: the scene.
        width: of the picture, px.
        height: of the picture, px.
        up: "-y", "y", "z" or a direction of three numbers; None guesses it from the floor.
        fov_y_deg: vertical field of view, degrees.

    Returns:
        The camera.
    """
    upward = up_direction(gaussians, up)
    eye, target = _standpoint(gaussians, upward, _half_angle(width, height, fov_y_deg))
    return Camera.look_at(eye, target, upward, width=width, height=height, fov_y_deg=fov_y_deg)


def orbit_scene(
    gaussians: Gaussians,
    width: int,
    height: int,
    up: Any = None,
    *,
    seconds: float = 8.0,
    fps: float = 30.0,
    fov_y_deg: float = 50.0,
) -> Track:
    """A circle about the bulk of the scene that begins at the camera of `frame_scene`.

    Args:
        gaussians: the scene.
        width: of the picture, px.
        height: of the picture, px.
        up: "-y", "y", "z" or a direction of three numbers; None guesses it from the floor.
        seconds: for the whole circle.
        fps: frames a second.
        fov_y_deg: vertical field of view, degrees.

    Returns:
        A track of round(seconds · fps) frames.
    """
    upward = up_direction(gaussians, up)
    eye, target = _standpoint(gaussians, upward, _half_angle(width, height, fov_y_deg))
    offset = eye - target
    elevation = float(offset @ upward)
    first, second = _level_axes(upward)
    return orbit(
        target,
        float(np.linalg.norm(offset - elevation * upward)),
        elevation=elevation,
        up=upward,
        start_deg=float(np.degrees(np.arctan2(offset @ second, offset @ first))),
        seconds=seconds,
        fps=fps,
        width=width,
        height=height,
        fov_y_deg=fov_y_deg,
    )


def up_direction(gaussians: Gaussians, up: Any = None) -> Float64[Array, " 3"]:
    """`up` as a unit vector: a direction of three numbers, a name of UP_AXES, or None for a guess."""
    if up is None or isinstance(up, str):
        up = UP_AXES.get(guess_up(gaussians) if up is None else up, up)
    try:
        direction = np.array(up, dtype=np.float64)
    except (TypeError, ValueError):
        direction = np.zeros(0)
    if direction.shape != (3,) or not np.isfinite(direction).all() or not np.linalg.norm(direction) > 1e-9:
        raise CameraError(f"up must be one of {', '.join(UP_AXES)} or a direction of three finite numbers, got {up}.")
    return normalized(direction)


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
    some = _thinned(gaussians)
    surfaces = some.opacities * np.pi * _normals(some)[1] * (len(gaussians) / len(some))  # all of them by some
    target, radius = scene_bulk(gaussians)
    distance = MARGIN * radius / np.sin(half_angle)
    places = [(step, target + step * distance * direction) for step in STEPS for direction in directions]
    means = some.means.astype(np.float64)
    costs = [_blocked(means, surfaces, eye, target) + NEARER_COST * (1 - step) for step, eye in places]
    return places[int(np.argmin(costs))][1], target


def scene_bulk(gaussians: Gaussians) -> tuple[Float64[Array, " 3"], float]:
    """The middle of what a scene shows in detail, and the radius about it that holds most of that."""
    if len(gaussians) == 0:
        return np.zeros(3), 1.0
    some = _thinned(gaussians)
    means, weight = some.means.astype(np.float64), _detail(some)
    middle = np.array([_percentile(means[:, axis], weight, 50.0) for axis in range(3)])
    return middle, max(_percentile(np.linalg.norm(means - middle, axis=1), weight, BULK_PERCENT), 1e-6)


def guess_up(gaussians: Gaussians) -> str:
    """The name of the likeliest up axis in UP_AXES: '-y' unless a floor shows otherwise."""
    if len(gaussians) == 0:
        return "-y"
    some = _thinned(gaussians)
    y, z = _level_surfaces(some, 1), _level_surfaces(some, 2)
    if z.max() > max(FLOOR_SHARE, 1.5 * y.max()):
        return "z"
    low, high = y[:END_BINS].sum(), y[-END_BINS:].sum()
    return "y" if low > max(1.5 * FLOOR_SHARE, 2 * high) else "-y"


def _level_surfaces(gaussians: Gaussians, axis: int) -> Float[Array, " bins"]:
    """Where along an axis the surfaces across it lie: shares of their area in even bins over the bulk of the scene."""
    means = gaussians.means.astype(np.float64)
    low, high = np.percentile(means, [5, 95], axis=0)
    high = high + 1e-9 * np.maximum(1, np.abs(high))  # a flat scene has a bin, too
    normal, area = _normals(gaussians)
    weight = gaussians.opacities * np.minimum(area, np.percentile(area, 99))  # a sky dome is no floor
    level = ((means >= low) & (means <= high)).all(axis=1) & (np.abs(normal[:, axis]) > 0.9)
    counts, _ = np.histogram(means[level, axis], BINS, (low[axis], high[axis]), weights=weight[level])
    return counts / max(float(counts.sum()), 1e-30)


def _normals(gaussians: Gaussians) -> tuple[Array, Array]:
    """The direction in which each Gaussian is thinnest, and the product of its other two scales."""
    rotations = matrix_from_quaternion(gaussians.rotations)
    if gaussians.is_surfels:
        return rotations[:, :, 2], gaussians.scales.astype(np.float64).prod(axis=1)
    thinnest = gaussians.scales.argmin(axis=1)
    normal = np.take_along_axis(rotations, thinnest[:, None, None], axis=2)[:, :, 0]
    return normal, np.sort(gaussians.scales, axis=1)[:, 1:].astype(np.float64).prod(axis=1)


def _detail(gaussians: Gaussians) -> Array:
    """How much each Gaussian counts: trainers put many small ones where the photographs look, large ones elsewhere."""
    _, area = _normals(gaussians)
    return gaussians.opacities / np.maximum(area, np.percentile(area, 5) + 1e-30)


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
    first, second = _level_axes(upward)
    angle = 2 * np.pi * np.arange(DIRECTIONS)[:, None] / DIRECTIONS
    level = np.cos(angle) * first + np.sin(angle) * second
    return np.cos(np.radians(ELEVATION_DEG)) * level + np.sin(np.radians(ELEVATION_DEG)) * upward


def _level_axes(upward: Float64[Array, " 3"]) -> tuple[Float64[Array, " 3"], Float64[Array, " 3"]]:
    """Two directions that span the horizon, the ones that `orbit` counts its angles from."""
    first = normalized(np.cross(upward, np.eye(3)[np.argmin(np.abs(upward))]))
    return first, np.cross(upward, first)


def _thinned(gaussians: Gaussians) -> Gaussians:
    """Every so many-th Gaussian, at most MOST_GAUSSIANS."""
    step = -(-len(gaussians) // MOST_GAUSSIANS)
    return gaussians.take(np.arange(0, len(gaussians), step)) if step > 1 else gaussians


def _percentile(values: Array, weights: Array, percent: float) -> float:
    """The value with this much of the weight below it."""
    order = np.argsort(values)
    total = np.cumsum(weights[order], dtype=np.float64)
    return float(values[order[np.searchsorted(total, total[-1] * percent / 100)]])
