"""The up direction of a scene that does not say: the normal of its ground, how an object stands, or a convention."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from jaxtyping import Float, Float64
from numpy import ndarray as Array

from hushsplat.types.errors import CameraError
from hushsplat.types.gaussians import Gaussians
from hushsplat.types.ground import Ground, fitted, risen, wide_ground
from hushsplat.types.rotations import hemisphere, level_axes, normalized
from hushsplat.types.standing import StandingObject, log_luminance
from hushsplat.types.surfaces import importance, scene_bulk, surfaces, thinned, without_sky

# Files follow three conventions: -y (COLMAP and so 3DGS), y (graphics engines) and z (CAD); the others are for users.
UP_AXES = {
    "-y": (0.0, -1.0, 0.0),
    "y": (0.0, 1.0, 0.0),
    "z": (0.0, 0.0, 1.0),
    "-z": (0.0, 0.0, -1.0),
    "x": (1.0, 0.0, 0.0),
    "-x": (-1.0, 0.0, 0.0),
}
# How often files have which, by our guess: decides where an object itself says little.
AXIS_SHARES = {"-y": 0.52, "z": 0.2, "y": 0.2, "x": 0.03, "-z": 0.03, "-x": 0.02}
# An object cut out of a scene whose first photograph looked down: a tilted direction leads by so much log-likelihood.
# Objects that stand upright have tilted directions that lead by 3.2 at most, those tilted by 25 degrees 1.8 to 37.
TILTED_LEAD, TILTED_LEAST_DEG = 4.5, 15.0  # a smaller tilt is not told from an axis
ROLL_DEG = 12.0  # deviation of a photograph's roll
TILT_STEPS_DEG = (5.0, 2.5)
# An object, or what stands alone on its ground: beyond so many radii of the bulk lies at most this share of Gaussians.
OBJECT_RADII, OBJECT_BEYOND = 2.0, 0.01
FEWEST = 1_000  # Gaussians of an object: the cues of fewer are chance
FLOATER_RADII = 1.6  # of an object: what is farther, and little, is not looked at
WHOLE_PERCENT = 97.0  # of a scene: its ground is looked for in all of it, too
# A room: opaque Gaussians are seen to this share of all sides from its middle, at least so many radii of the bulk away.
WALL_BINS, WALL_OPACITY, WALL_RADII, WALL_SHARE = 10, 0.3, 0.2, 0.9
# And its detail is inside: outside, less than this share of it is seen. Closed furniture and bowls show 0.86 to 1.
ROOM_SEEN = 0.8
# Terrain: its height is at most this share of its smaller width (for y up; z may be the front of a wall), and that at
# least this share of the larger one.
TERRAIN_HEIGHT, TERRAIN_WIDTH = (0.2, 0.12), 0.5
RISEN_WEIGHT = 8.0  # log-likelihood of what stands on it; ours
PICTURE_HEIGHT = 0.015  # of its width: what faces z or x and is as flat as this is a picture on a wall
WALL_STEP = 0.3  # radii from the middle: other places that may see all walls
STANDING_DEG = (
    35.0  # the ground of an object is no farther from the axis than this: COLMAP's first photograph is tilted
)
# The search for a ground plane; ours, set on the files of seven real scenes and their levels of detail.
PLANE_GAUSSIANS = 8_000
PLANE_DIRECTIONS = 250  # over the hemisphere, about 9 degrees apart
PLANE_BINS = 48  # along a direction, across the ball that is looked at
PLANE_BALLS = (1.0, 1.5)  # radii of the balls, in radii of the bulk
WIDER_PERCENT = (75.0, 90.0)  # of the Gaussians: balls that hold as many, if these do not and are smaller
PLANE_SCORE = 0.1  # a ground plane scores 0.11 (flowers in grass) to 0.68; a figure without ground 0.08
PLANE_CHANCE, PLANE_CHANCES = 4.0, 50.0  # over the count; and squared: any hundred have a plane
PLANE_LEAD = 1.25  # and so many times the next plane
TILTED_DEG = 45.0  # COLMAP's -y is the first photograph's, and who looks down at a table tilts it so much
LEVEL_DEG = 10.0  # who has z up has levelled the scene
AGREE_DEG = 15.0  # the up of cameras is off by some degrees (`up_of_cameras`)
OTHER_AXIS = 0.35  # what other planes count: the board of a sign is no ground
# Where no plane stands out, as in rooms, whose surfaces are level or upright: by how much more they are so than chance.
UPRIGHT_SCORE = 1.3  # a room (bonsai) has 1.5, a figure 1.17, flowers in grass 1.0
UPRIGHT_CHANCE = 6.0  # over the root of the count: three deviations of what faces along a direction by chance
UPRIGHT_LEAD = 1.1  # and so many times the axis'
UPRIGHT_AS_GOOD = 0.96
UPRIGHT_DEG = 45.0  # from the axis: walls are farther away
# Things stand on the floor: detail of nine scenes lies at 0.12 to 0.56 of their height, within so many radii of the
# bulk. Where it lies higher than this, the ceiling is below; -z and -x are rare and take more.
DETAIL_RADII, HIGH_DETAIL = 1.5, (0.62, 0.75)
SNAP_DEG = 6.0  # nearer to an axis than this it is the axis: files are often aligned, and planes are found to 5 degrees
BINS = 20  # of the histograms of level surfaces along an axis
END_BINS = 3
# Ours, set by looking at seven files of five real scenes. Of all surfaces that face along the up axis, the largest bin
# has 26 to 94 % where there is a floor; along the other axes at most 20 %.
FLOOR_SHARE = 0.2
# A floor that has so many times what the other end has is one: scenes without a ceiling have 3 to 70 times as much,
# rooms with one 0.6 to 1.3.
FLOOR_LEAD = 6.0
# Of the spread of all surfaces, to the side to which it is less. Floors and ceilings have 0.73 to 1.2; the head of a
# figure is as flat as a floor at the top, and has 0.39.
FLOOR_SPREAD = 0.6
# Ceilings are brighter and have less detail than floors: by these logarithms of luminance and of area at least. Ours; a
# real room's chunks have 0.1 and 0.35, 0.26 and 1.0.
CEILING_LEAD = 0.05
CEILING_BELOW = 2.0  # of the log-likelihood of an object's direction, if its ceiling would be below; ours


def up_direction(gaussians: Gaussians, up: Any = None) -> Float64[Array, " 3"]:
    """`up` as a unit vector: a direction of three numbers, a name of UP_AXES (or +x, +y, +z), or None for a guess."""
    if up is None:
        return find_up(gaussians)
    if isinstance(up, str):
        up = UP_AXES.get(up.removeprefix("+"), up)
    try:
        direction = np.array(up, dtype=np.float64)
    except (TypeError, ValueError):
        direction = np.zeros(0)
    if direction.shape != (3,) or not np.isfinite(direction).all() or not np.linalg.norm(direction) > 1e-9:
        raise CameraError(f"up must be one of {', '.join(UP_AXES)} or a direction of three finite numbers, got {up}.")
    return normalized(direction)


def guess_up(gaussians: Gaussians) -> str:
    """`find_up` as --up takes it."""
    return up_text(find_up(gaussians))


def up_text(upward: Float64[Array, " 3"]) -> str:
    """A direction as --up takes it: a name of UP_AXES, or three numbers."""
    nearest = max(UP_AXES, key=lambda name: float(np.dot(UP_AXES[name], upward)))
    is_axis = np.allclose(UP_AXES[nearest], upward, atol=1e-6)
    return nearest if is_axis else " ".join(f"{value:.3f}" for value in upward)


def up_by_cameras(gaussians: Gaussians, seen: Float64[Array, " 3"]) -> Float64[Array, " 3"]:
    """The up of those who took the pictures of a scene, and where the ground says much the same, its exact normal."""
    ground = find_up(gaussians)
    return ground if float(ground @ seen) > np.cos(np.radians(AGREE_DEG)) else seen


def find_up(gaussians: Gaussians) -> Float64[Array, " 3"]:
    """The likeliest direction upwards: the normal of the ground, or the axis on which an object stands.

    The ground is the plane near which most surface lies that faces along its normal, in the direction in which the
    scene is thin. A Gaussian counts by opacity times area, which coarser levels of detail of a file keep. A plane that
    has all else on one side, and reaches beyond it, is a ground whatever it is. A scene that ends near its bulk, and is
    no room and no terrain, is an object: light, balance and symmetry decide (`standing.py`), as its largest plane may
    be the top of a table or the back of a shelf.
    """
    if len(gaussians) == 0:
        return np.array(UP_AXES["-y"])
    some = without_sky(thinned(gaussians))
    normal = _ground_normal(some, PLANE_BALLS)
    if normal is None:
        normal = _ground_about(some)
    ground = _wide_ground(some, normal)
    if ground is not None:
        return _snapped(ground.up)
    if _is_object(some):
        clean = _without_floaters(some)
        standing = StandingObject(clean)
        if normal is None:
            return _standing(clean, None, standing)
        if not _is_room(clean, normal, standing):
            return (_across if _is_terrain(clean, normal) else _standing)(clean, normal, standing)
    if normal is None:
        return _upright(some, np.array(UP_AXES[_axis_by_floor(some) if len(some) >= FEWEST else "-y"]))
    return _signed(some, _snapped(normal))


def _is_object(some: Gaussians) -> bool:
    """Whether hardly anything lies far from the bulk: no surroundings."""
    middle, radius = scene_bulk(some)
    beyond = np.linalg.norm(some.means - middle, axis=1) > OBJECT_RADII * radius
    return len(some) >= FEWEST and float(beyond.mean()) <= OBJECT_BEYOND


def _without_floaters(some: Gaussians) -> Gaussians:
    """Without what lies beyond FLOATER_RADII, of an object, if that is little."""
    middle, radius = scene_bulk(some)
    near = np.linalg.norm(some.means - middle, axis=1) <= FLOATER_RADII * radius
    return some.take(np.flatnonzero(near)) if near.mean() >= 1 - OBJECT_BEYOND else some


def _wide_ground(some: Gaussians, normal: Float64[Array, " 3"] | None) -> Ground | None:
    """What all else stands on, across this normal, or that of the largest plane of the whole scene."""
    found = None if normal is None else wide_ground(some, fitted(some, normal))
    if found is not None:
        return found
    middle, radius = scene_bulk(some)
    radii = float(np.percentile(np.linalg.norm(some.means - middle, axis=1), WHOLE_PERCENT)) / radius
    wider = _ground_normal(some, (radii,)) if radii > PLANE_BALLS[-1] else None
    return None if wider is None else wide_ground(some, fitted(some, wider))


def _is_room(some: Gaussians, normal: Float64[Array, " 3"], standing: StandingObject) -> bool:
    """Whether there are a floor and a ceiling, or from about the middle something to all sides, that hide detail."""
    if standing.seen_share(importance(some)) > ROOM_SEEN:
        return False
    if _LevelSurfaces.of(some, normal).at_both_ends:
        return True
    middle, radius = scene_bulk(some)
    points = (some.means[some.opacities > WALL_OPACITY] - middle) / radius
    eyes = np.concatenate([np.zeros((1, 3)), WALL_STEP * np.array(list(UP_AXES.values()))])
    return any(_share_at_distance(points - eye) > WALL_SHARE for eye in eyes)


def _is_terrain(some: Gaussians, normal: Float64[Array, " 3"]) -> bool:
    """Whether the scene is wide to both sides and low: a landscape or a town, not a wall or a picture."""
    axes = np.stack([normal, *level_axes(normal)], axis=1)
    height, *widths = np.ptp(np.percentile(some.means @ axes, [1, 99], axis=0), axis=0)
    narrow, wide = sorted(widths)
    lowest = TERRAIN_HEIGHT[0] if abs(normal[1]) > 0.8 else TERRAIN_HEIGHT[1]
    return bool(height < lowest * narrow and narrow > TERRAIN_WIDTH * wide)


def _across(some: Gaussians, normal: Float64[Array, " 3"], standing: StandingObject) -> Float64[Array, " 3"]:
    """The likelier of both ways across a terrain, or that of 3DGS where it is a flat picture that hangs."""
    axes = np.stack([normal, *level_axes(normal)], axis=1)
    height, *widths = np.ptp(np.percentile(some.means @ axes, [1, 99], axis=0), axis=0)
    if height < PICTURE_HEIGHT * min(widths) and abs(normal[1]) < 0.2:
        return np.array(UP_AXES["-y"])
    ways = np.stack([_snapped(normal), -_snapped(normal)])
    rises = RISEN_WEIGHT * risen(some, normal) * np.array([1.0, -1.0])
    return ways[int(np.argmax(standing.cues(ways).scores() + np.log(_axis_shares(ways)) + rises))]


def _axis_shares(directions: Float64[Array, "k 3"]) -> Float64[Array, " k"]:
    """How often files have the nearest axis."""
    axes = np.array([UP_AXES[name] for name in AXIS_SHARES])
    return np.array(list(AXIS_SHARES.values()))[np.argmax(directions @ axes.T, axis=1)]


def _share_at_distance(offsets: Float64[Array, "n 3"]) -> float:
    """The share of all directions in which something is, and nothing nearer than WALL_RADII."""
    distances = np.linalg.norm(offsets, axis=1)
    x, y, z = (offsets / np.maximum(distances, 1e-9)[:, None]).T
    rows = np.clip((z + 1) * (WALL_BINS / 2), 0, WALL_BINS - 1).astype(np.int64)  # of equal solid angle
    columns = np.clip((np.arctan2(y, x) / np.pi + 1) * WALL_BINS, 0, 2 * WALL_BINS - 1).astype(np.int64)
    nearest = np.full(2 * WALL_BINS**2, np.inf)
    np.minimum.at(nearest, rows * 2 * WALL_BINS + columns, distances)
    return float((np.isfinite(nearest) & (nearest > WALL_RADII)).mean())


def _standing(some: Gaussians, normal: Float64[Array, " 3"] | None, standing: StandingObject) -> Float64[Array, " 3"]:
    """The likeliest of the axes, the normal of the ground if there is one, and a tilted direction that leads by far."""
    axes = np.array([UP_AXES[name] for name in AXIS_SHARES])
    ground = [] if normal is None else [_snapped(normal), _snapped(-normal)]
    tilted = _tilted(standing)
    directions = np.array([*axes, *ground, tilted])
    scores = standing.cues(directions).scores() + np.log(_axis_shares(directions))
    is_tilted = tilted @ axes[0] < np.cos(np.radians(TILTED_LEAST_DEG))
    scores[-1:] += _tilt_scores(tilted[None]) - TILTED_LEAD if is_tilted else -np.inf
    for way in ground:  # a part of a room, seen from above, shows the back of its ceiling
        levels = _LevelSurfaces.of(some, way)
        if levels.at_both_ends and levels.low_is_ceiling:
            scores[directions @ way > np.cos(np.radians(SNAP_DEG))] -= CEILING_BELOW
    return directions[int(np.argmax(scores))]


def _tilted(standing: StandingObject) -> Float64[Array, " 3"]:
    """The likeliest direction not far from 3DGS's axis: first of some all around it, then of those about the best."""
    axis = np.array(UP_AXES["-y"])
    sphere = hemisphere(PLANE_DIRECTIONS)
    sphere = sphere * np.sign(sphere @ axis)[:, None]
    tried = sphere[sphere @ axis > np.cos(np.radians(UPRIGHT_DEG))]
    for degrees in (*TILT_STEPS_DEG, 0.0):
        best = tried[int(np.argmax(standing.cues(tried).scores() + _tilt_scores(tried)))]
        first, second = level_axes(best)
        angle = np.arange(6)[:, None] * (np.pi / 3)
        around = best + np.tan(np.radians(degrees)) * (np.cos(angle) * first + np.sin(angle) * second)
        tried = normalized(np.concatenate([best[None], around]))
    return best


def _tilt_scores(directions: Float64[Array, "k 3"]) -> Float64[Array, " k"]:
    """Log-likelihoods of tilts: the first photograph is level from left to right, and looks down."""
    x, _, z = np.degrees(np.arcsin(np.clip(directions.T, -1, 1)))
    return -0.5 * (x**2 + np.maximum(z, 0) ** 2) / ROLL_DEG**2


def _snapped(normal: Float64[Array, " 3"]) -> Float64[Array, " 3"]:
    """The nearest axis where that is near enough, otherwise the normal."""
    axes = np.array(list(UP_AXES.values()))
    nearest = axes[np.argmax(axes @ normal)]
    return nearest if nearest @ normal > np.cos(np.radians(SNAP_DEG)) else normal


def _upright(some: Gaussians, axis: Float64[Array, " 3"]) -> Float64[Array, " 3"]:
    """The axis, or a direction not far from it to which surfaces are much more often level or upright."""
    sphere = hemisphere(4 * PLANE_DIRECTIONS)
    sphere = sphere * np.sign(sphere @ axis)[:, None]
    directions = np.concatenate([axis[None], sphere[sphere @ axis > np.cos(np.radians(UPRIGHT_DEG))]])
    ball = _Ball.of(some, PLANE_BALLS[-1])
    scores = ball.upright_scores(directions)
    best = int(np.argmax(scores))
    # Of few Gaussians some direction always scores well by chance.
    if scores[best] < max(UPRIGHT_SCORE + UPRIGHT_CHANCE / np.sqrt(ball.effective_count), UPRIGHT_LEAD * scores[0]):
        return axis
    as_good = (scores > UPRIGHT_AS_GOOD * scores[best]) & (directions @ directions[best] > np.cos(np.radians(20)))
    return normalized(directions[as_good].mean(axis=0))  # the peak is broad, its middle is steadier than its top


def _axis_by_floor(some: Gaussians) -> str:
    """'-y' unless level surfaces show otherwise."""
    y, z = _LevelSurfaces.of(some, np.eye(3)[1]), _LevelSurfaces.of(some, np.eye(3)[2])
    if z.shares.max() > max(FLOOR_SHARE, 1.5 * y.shares.max()):
        return "z"
    return "y" if y.low > max(1.5 * FLOOR_SHARE, 2 * y.high) and y.low_spread > FLOOR_SPREAD else "-y"


def _signed(some: Gaussians, normal: Float64[Array, " 3"]) -> Float64[Array, " 3"]:
    """The normal with the sign of its convention (-y, z, x), or the other one where the floor lies at the top."""
    axis = int(np.argmax(np.abs(normal)))
    upward = normal * np.sign(normal[axis]) * (-1.0 if axis == 1 else 1.0)
    levels = _LevelSurfaces.of(some, upward)
    # A ceiling can be larger than its floor, and -z up is rare: there it takes more.
    share, lead, height = (
        (1.5 * FLOOR_SHARE, 2.0, HIGH_DETAIL[0]) if axis == 1 else (2.5 * FLOOR_SHARE, 4.0, HIGH_DETAIL[1])
    )
    if axis == 1 and levels.at_both_ends and levels.low_is_ceiling:
        return -upward
    if levels.high > max(share, lead * levels.low) and levels.high_spread > FLOOR_SPREAD:
        return -upward
    if levels.low > max(share, FLOOR_LEAD * levels.high) and levels.low_spread > FLOOR_SPREAD:
        return upward  # wherever the detail is: a few tiny Gaussians on a table may be most of it
    return -upward if _detail_height(some, upward) > height else upward


def _detail_height(some: Gaussians, upward: Float64[Array, " 3"]) -> float:
    """Where the detail of a scene lies on average: 0 at its bottom, 1 at its top."""
    middle, radius = scene_bulk(some)
    inside = (np.linalg.norm(some.means - middle, axis=1) < DETAIL_RADII * radius) & (some.opacities > WALL_OPACITY)
    if not inside.any():
        return 0.5
    heights = some.means[inside] @ upward
    low, high = np.percentile(heights, [2, 98])
    return float(np.average((heights - low) / max(high - low, 1e-12), weights=importance(some)[inside]))


def _ground_about(some: Gaussians) -> Float64[Array, " 3"] | None:
    """The normal of the ground of a scene whose detail is one small thing: what is far from it lies on that."""
    middle, radius = scene_bulk(some)
    radii = np.percentile(np.linalg.norm(some.means - middle, axis=1), WIDER_PERCENT) / radius
    return _ground_normal(some, tuple(radii)) if radii[0] > PLANE_BALLS[-1] else None


def _ground_normal(some: Gaussians, radii: tuple[float, ...]) -> Float64[Array, " 3"] | None:
    """The normal of the plane that most surface lies on within these radii, None where no plane stands out."""
    directions = np.concatenate([np.eye(3), hemisphere(PLANE_DIRECTIONS)])
    balls = [_Ball.of(some, radius) for radius in radii]
    scores = np.mean([ball.plane_scores(directions) for ball in balls], axis=0)
    off_y, off_z = np.degrees(np.arccos(np.minimum(np.abs(directions[:, 1:]), 1))).T
    near_y = np.interp(off_y, (TILTED_DEG, 1.5 * TILTED_DEG), (1.0, OTHER_AXIS))
    near_z = np.interp(off_z, (LEVEL_DEG, 2 * LEVEL_DEG), (1.0, OTHER_AXIS))
    scores = scores * np.maximum(near_y, near_z)
    best = int(np.argmax(scores))
    apart = np.abs(directions @ directions[best]) < np.cos(np.radians(30))
    count = balls[0].effective_count
    least = PLANE_SCORE + PLANE_CHANCE / count + (PLANE_CHANCES / count) ** 2
    if scores[best] < least or scores[best] < PLANE_LEAD * scores[apart].max():
        return None
    normal = directions[best]
    for degrees in (6.0, 3.0, 1.5, 0.75):
        first, second = level_axes(normal)
        angle = np.arange(8)[:, None] * (np.pi / 4)
        around = normal + np.tan(np.radians(degrees)) * (np.cos(angle) * first + np.sin(angle) * second)
        tried = normalized(np.concatenate([normal[None], around]))
        normal = tried[int(np.argmax(balls[-1].plane_scores(tried)))]
    return normal


@dataclass(frozen=True)
class _Ball:
    """The surfaces about the middle of a scene; the radius is 1."""

    means: Float64[Array, "n 3"]
    normals: Float64[Array, "n 3"]
    weights: Float64[Array, " n"]  # opacity times area, their sum is 1
    flatness: Float64[Array, " n"]  # 1 for a surfel, 0 for a needle or a ball

    @staticmethod
    def of(some: Gaussians, radius: float) -> _Ball:
        """The surfaces within so many radii of the bulk."""
        middle, bulk = scene_bulk(some)
        means = (some.means - middle) / (radius * bulk)
        inside = np.flatnonzero(np.linalg.norm(means, axis=1) <= 1)
        inside = inside[:: max(1, len(inside) // PLANE_GAUSSIANS)]
        normal, area = surfaces(some)
        area = area[inside].astype(np.float64)
        weights = some.opacities[inside] * np.minimum(area, np.percentile(area, 95))
        flatness = np.ones(len(inside))
        if not some.is_surfels:
            thin, wide, _ = np.sort(some.scales[inside].astype(np.float64), axis=1).T
            flatness = np.clip(1 - 2 * thin / wide, 0, 1)
        weights = weights / max(weights.sum(), 1e-300)
        return _Ball(means[inside], normal[inside].astype(np.float64), weights, flatness)

    @property
    def effective_count(self) -> float:
        """How many Gaussians of equal weight would be as little subject to chance."""
        weights = self.weights * self.flatness
        return float(weights.sum() ** 2 / max(np.sum(weights**2), 1e-300)) + 1e-9

    def plane_scores(self, directions: Float64[Array, "k 3"]) -> Float64[Array, " k"]:
        """For each direction: the share of surface in its fullest slab that faces along it, over thickness."""
        heights = self.means @ directions.T
        facing = np.clip((np.abs(self.normals @ directions.T) - 0.5) / 0.4, 0, 1) * self.weights[:, None]
        bins = np.clip(((heights + 1) * (PLANE_BINS / 2)).astype(np.int64), 0, PLANE_BINS - 1)
        bins += np.arange(len(directions)) * PLANE_BINS
        counts = np.bincount(bins.ravel(), facing.ravel(), PLANE_BINS * len(directions))
        counts = counts.reshape(len(directions), PLANE_BINS)
        thickness = heights.std(axis=0) / max(float(self.means.std(axis=0).mean()), 1e-12)
        return (counts[:, 1:] + counts[:, :-1]).max(axis=1) / (0.4 + thickness)

    def upright_scores(self, directions: Float64[Array, "k 3"]) -> Float64[Array, " k"]:
        """For each direction: how much more often than by chance surfaces face along it and across it."""
        cosines = np.abs(self.normals @ directions.T)
        weights = self.weights * self.flatness
        weights /= max(float(weights.sum()), 1e-300)
        level = weights @ np.clip((cosines - 0.9) / 0.06, 0, 1) / 0.07  # by chance: cosines are uniform in 0..1
        upright = weights @ np.clip((0.26 - cosines) / 0.08, 0, 1) / 0.22
        return np.sqrt(level * upright)


@dataclass(frozen=True)
class _LevelSurfaces:
    """Where along an axis the surfaces across it lie."""

    shares: Float[Array, " bins"]  # of their area in even bins over the bulk of the scene
    low_spread: float  # of those in the first END_BINS, across the axis, over the spread of all surfaces
    high_spread: float  # of those in the last
    low_look: Float64[Array, " 2"]  # of the first: log of luminance and of the Gaussians' areas, on average
    high_look: Float64[Array, " 2"]  # of the last

    @property
    def at_both_ends(self) -> bool:
        """Whether there is a floor, and a ceiling as wide."""
        return min(self.low, self.high) > FLOOR_SHARE and min(self.low_spread, self.high_spread) > FLOOR_SPREAD

    @property
    def low_is_ceiling(self) -> bool:
        """Whether the first is brighter and has less detail than the last: as ceilings against floors."""
        return bool((self.low_look - self.high_look > CEILING_LEAD).all())

    @property
    def low(self) -> float:
        """The share in the first END_BINS."""
        return float(self.shares[:END_BINS].sum())

    @property
    def high(self) -> float:
        """The share in the last."""
        return float(self.shares[-END_BINS:].sum())

    @staticmethod
    def of(some: Gaussians, axis: Float64[Array, " 3"]) -> _LevelSurfaces:
        """The surfaces of the bulk of a scene."""
        means = some.means.astype(np.float64)
        low, high = np.percentile(means, [5, 95], axis=0)
        inside = ((means >= low) & (means <= high)).all(axis=1)
        normal, area = surfaces(some)
        weight = some.opacities * np.minimum(area, np.percentile(area, 99))  # a sky dome is no floor
        level = inside & (np.abs(normal @ axis) > 0.9)
        heights = means @ axis
        bottom, top = np.percentile(heights[inside] if inside.any() else heights, [0, 100])
        top += 1e-9 * max(1.0, abs(top))  # a flat scene has a bin, too
        counts, edges = np.histogram(heights[level], BINS, (bottom, top), weights=weight[level])
        across = means @ np.stack(level_axes(axis), axis=1)
        whole = np.maximum(_spread(across[inside], weight[inside]), 1e-30)
        ends = (level & (heights < edges[END_BINS]), level & (heights >= edges[-1 - END_BINS]))
        spreads = [float((_spread(across[end], weight[end]) / whole).min()) for end in ends]
        look = np.stack([log_luminance(some), np.log(area + 1e-30)], axis=1)
        looks = [look[end].T @ weight[end] / max(float(weight[end].sum()), 1e-30) for end in ends]
        return _LevelSurfaces(counts / max(float(counts.sum()), 1e-30), spreads[0], spreads[1], looks[0], looks[1])


def _spread(points: Float64[Array, "n 2"], weights: Float[Array, " n"]) -> Float64[Array, " 2"]:
    """Standard deviations; 0 of nothing."""
    if not weights.sum() > 0:
        return np.zeros(2)
    middle = np.average(points, axis=0, weights=weights)
    return np.sqrt(np.average((points - middle) ** 2, axis=0, weights=weights))
