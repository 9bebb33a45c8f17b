"""The search for places: candidates, their scores, and the best ones that differ."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from jaxtyping import Float, Float64
from numpy import ndarray as Array

from hushsplat.engines.base import Engine, Scene, engine
from hushsplat.home.proxy import fewer, spread_points
from hushsplat.home.seen import Seen, border, extent
from hushsplat.home.shape import Shape
from hushsplat.types.camera import Camera
from hushsplat.types.errors import RenderError
from hushsplat.types.framing import guess_camera
from hushsplat.types.gaussians import Gaussians
from hushsplat.types.ground import wide_ground
from hushsplat.types.options import Noise, RenderOptions
from hushsplat.types.rotations import normalized
from hushsplat.types.surfaces import importance, scene_bulk, thinned, without_sky
from hushsplat.types.up import up_direction

# All numbers are ours, set by looking at contact sheets of ten real scenes (benchmarks/home_camera.py), and of scenes
# made from them: moved, scaled, cut, thinned, with floaters, a sky or a ground about them.
PIXELS = 96 * 64  # of a small picture
DRAWN_GAUSSIANS = 50_000  # that stand for all of them: fewer, and larger to cover as much

# Candidates.
AZIMUTHS = 12  # around the middle, from the front as files have it
RINGS = (  # distance as a share of that at which the bulk just fits, elevations in degrees
    (1.0, (15.0,)),
    (0.6, (8.0, 22.0)),
    (0.35, (5.0, 18.0)),
    (0.18, (5.0,)),
)
NEAR_RADII = 0.01  # near plane while looking, in radii of the bulk, if it is not nearer anyway
TARGET_NEARS = 2.5  # a target is never nearer than so many near planes
NEARBY = 60  # about single places of detail
NEARBY_RADII = (0.12, 1.4)  # distance, in radii of the bulk
NEARBY_DEG = (-2.0, 22.0)  # elevation
STEPS = (  # how many of the best are moved to see whether that is better, how far, by how many of the moves
    (6, 2.5, 6),
    (3, 1.0, 8),
    (1, 0.5, 8),
)
MOVES = (  # log of the distance, azimuth and elevation in degrees, target up by a share of the distance
    (-0.2, 0, 0, 0),
    (0.2, 0, 0, 0),
    (0, 14, 0, 0),
    (0, -14, 0, 0),
    (0, 0, 0, 0.15),
    (0, 0, -5, 0),
    (0, 0, 5, 0),
    (0, 0, 0, -0.15),
)

# What is seen. Sizes are standard deviations in pixels of a picture of 532 rows.
ROWS = 532.0
BLUR_PX = (4.0, 12.0)  # a Gaussian of this size counts half: twice the usual size in the sharp candidates, within this
BACKGROUND, BACKGROUND_SHARP = 2.0, 0.3  # a sky is always blurred: so many distances away it counts at least this
NEAR_SHARE = 0.25  # what is nearer than this share of the median depth is in the way
BESIDE_SHARE = 0.4  # and so is, above the floor, what is nearer than this share of the distance: a door, a pillar
DEEP = 1.0  # log of far over near from which on a picture has depth
SEEN_SHARE = 0.7  # of the subject before the target: more hidden than this is a wall or a ceiling between
FREE_PERCENT = 90.0  # where no candidate sees so much, as among many rooms, the best tenth counts
SUBJECT_SHARE = 0.8  # of as much of the subject as any candidate shows: more is not better
FRONT_BONUS = 0.06  # files tend to face their maker: decides between sides that are equally good
USUAL_DEG, UNUSUAL_DEG = 10.0, 35.0  # elevation that people choose, and how far from it costs a third

BACK, WALL_SHARE = 0.06, 0.4  # so many distances behind the eye, a wall at the eye fills this share of the picture
PLACE_SCORE = 0.7  # a place scores at least this share of home's

# A lone object is seen whole from afar. Share of border pixels that may be hit, and share of what is near the middle
# that is seen from outside at least: a house shows less. Where nearly all is seen, a few floaters do no harm.
LONE = ((0.03, 0.15), (0.1, 0.7))
# Seen is what lies at most so far behind the foremost: in radii; of what is long, in heights, at least so many radii.
SLACK, SLACK_HEIGHTS, SLACK_LEAST = 0.08, 0.15, 0.02
# Of the detail, and of that of what is long: where less of it is seen from outside, it may be that of a room,
LONE_SUBJECT, LONG_SUBJECT = 0.6, 0.85
ENCLOSED = 0.7  # where, from within, more than this share above the horizon is hit to all sides,
ENCLOSED_DEPTH = 0.2  # at this many radii of the bulk or more,
FOG_PX = 40.0  # and not by what is larger than this
LONE_SEEN = 0.6  # where more of its body than this is seen from outside, it need not be looked at from within
# Ours: the best score from outside is ahead of the best from within by 0.2 and more for things (a bonsai on its table,
# flowers in grass, a shelf), by 0.09 and less for parts of a garden or a room, cut to 0.6 to 1.6 radii.
LONE_LEAD = 0.15
GROUND_TIMES = 3.0  # a ground that is so many times as wide as what stands on it may be cut by the picture
LONE_DISTANCE = 1.35  # of that at which the bulk just fits
LONE_FILL = 0.8  # of the picture's height or width
LONE_ELEVATION, LONE_AZIMUTHS = 18.0, 16
LONE_FRONT_BONUS = 0.15
# Floaters about a lone object: so many radii of the bulk away, or if there are such, at least so many; at most this
# share of the Gaussians and of the border.
FLOATER_RADII, FLOATER_SHARE, FLOATER_BORDER = (3.0, 1.7), 0.02, 0.35


@dataclass(frozen=True)
class Place:
    """A named camera to go to.

    Attributes:
        name: "Home", "Place 2", ..., or that of a photograph.
        camera: its lens and pose.
        pivot: what it looks at, to orbit about; None: unknown.
        score: 0..1, how much is seen how well; only comparable within a scene.
    """

    name: str
    camera: Camera
    pivot: Float64[Array, " 3"] | None = None
    score: float = 0.0

    @property
    def target(self) -> Float64[Array, " 3"]:
        """The pivot, or else a point straight ahead."""
        return self.camera.position + self.camera.world_from_camera[:3, 2] if self.pivot is None else self.pivot


class Search:
    """A scene made ready to be looked at from many places."""

    def __init__(
        self, gaussians: Gaussians, lens: Camera, upward: Float64[Array, " 3"], drawing: Engine, options: RenderOptions
    ) -> None:
        self.gaussians, self.lens, self.up, self.options = gaussians, lens, upward, options
        self.engine = drawing
        self.fov_y_deg = float(np.degrees(2 * np.arctan(0.5 * lens.height / lens.fy)))
        self.is_lone = False
        self.middle, self.radius = scene_bulk(gaussians)
        chosen, drawn = fewer(gaussians, DRAWN_GAUSSIANS)
        some = gaussians.take(chosen)
        self.sizes = some.scales.max(axis=1, initial=0)
        self.subject = spread_points(some, importance(some), self.middle, self.radius)
        near = np.linalg.norm(some.means - self.middle, axis=1) < self.radius
        self.body = spread_points(some, some.opacities * near, self.middle, self.radius)
        self.shape = Shape.of(self.subject[:3].T, upward)
        self.scene = drawing.upload(drawn, options)
        # Nobody shall stand in a wall that the near plane cuts away.
        self.looking = replace(options, near=min(options.near, NEAR_RADII * self.radius))
        shrink = np.sqrt(PIXELS / (lens.width * lens.height))
        small = (max(8, min(512, round(side * shrink))) for side in (lens.width, lens.height))
        self.small = lens.resized(*small)
        self.seen: list[tuple[float, Seen]] = []  # scored, in the order of drawing
        self.blur_px, self.most = BLUR_PX[0], 1.0  # size that counts half, best visible share; set by the candidates
        self._free: dict[int, bool] = {}  # by the id of a candidate; `seen` keeps them all alive

    @staticmethod
    def of(
        scene: Gaussians | Scene,
        width: int,
        height: int,
        up: Any,
        fov_y_deg: float,
        on: str | Engine,
        options: RenderOptions | None,
    ) -> Search:
        """From the arguments of the public functions."""
        gaussians = scene if isinstance(scene, Gaussians) else getattr(scene, "gaussians", None)
        if gaussians is None:
            raise RenderError("an uploaded scene of this engine does not know its Gaussians; give those.")
        upward = up_direction(gaussians, up)
        lens = guess_camera(gaussians.take(np.arange(0)), width, height, upward, fov_y_deg)  # checks the size
        drawing = engine(on) if isinstance(on, str) else on
        return Search(gaussians, lens, upward, drawing, options or RenderOptions())._without_surroundings()

    def _without_surroundings(self) -> Search:
        """The same without a sky, the ground, or the few Gaussians far away, if what is left is a lone object."""
        if len(self.gaussians) == 0:
            return self
        below_sky = without_sky(self.gaussians)
        part = self._without_floaters(below_sky)
        if part is not None:
            return part._without_ground(part.gaussians, True) or part
        return self._without_ground(below_sky, False) or self

    def _without_ground(self, below_sky: Gaussians, is_lone: bool) -> Search | None:
        """What stands on a ground that reaches far beyond it to all sides, or just beyond it where all is not lone."""
        ground = wide_ground(thinned(below_sky), self.up)
        if ground is None or ground.up @ self.up < 0:
            return None
        if ground.times < GROUND_TIMES and (is_lone or self._ends_within(self._around())):
            return None
        return self._lone_part(below_sky.take(np.flatnonzero(~ground.holds(below_sky.means))))

    def _without_floaters(self, below_sky: Gaussians) -> Search | None:
        """What a sky or a few floaters are about; where some are far away, some may be near, too."""
        kept = below_sky
        if len(kept) == len(self.gaussians):
            kept = self._nearer(kept, FLOATER_RADII[0])
            if len(kept) == len(self.gaussians) or self._at_border(self._around()) > FLOATER_BORDER:
                return None
        nearer = self._nearer(kept, FLOATER_RADII[1])
        return self._lone_part(nearer) or (None if nearer is kept else self._lone_part(kept))

    def _nearer(self, kept: Gaussians, radii: float) -> Gaussians:
        """Without the Gaussians that are farther from the middle, if they are few."""
        near = np.linalg.norm(kept.means - self.middle, axis=1) <= radii * self.radius
        return kept.take(np.flatnonzero(near)) if near.mean() > 1 - FLOATER_SHARE else kept

    def _lone_part(self, kept: Gaussians) -> Search | None:
        """What is kept, if that is a lone object."""
        part = Search(kept, self.lens, self.up, self.engine, self.options)
        return part if part._ends_within(part._around()) else None

    def places(self, count: int) -> list[Place]:
        """The best candidates that differ from each other."""
        if len(self.gaussians) == 0:
            camera = guess_camera(self.gaussians, self.lens.width, self.lens.height, self.up, self.fov_y_deg)
            return [Place("Home", camera, np.zeros(3), 0.0)]
        self.seen = self._candidates()
        chosen = self._distinct(self.seen, count)
        if not self.is_lone:
            chosen = [(score, seen) for score, seen in chosen if score >= PLACE_SCORE * chosen[0][0]]
        return [
            Place(f"Place {number}" if number > 1 else "Home", self.camera(seen.eye, seen.target), seen.target, score)
            for number, (score, seen) in enumerate(chosen, 1)
        ]

    def _candidates(self) -> list[tuple[float, Seen]]:
        """Views of a lone object from outside, or views within surroundings, scored."""
        around = self._around()
        self.is_lone = self._ends_within(around)
        if not self.is_lone:
            return self._within_surroundings()
        outside = self._around_object()
        if self._visible_from_outside(around, self.body) > LONE_SEEN and not self.shape.is_long:
            return outside
        # It may be a part of a garden or of a room that somebody has cut out: then it looks as good from within.
        judged = self.blur_px, self.most
        within = self._within_surroundings()
        self.is_lone = _best(outside) - _best(within) > LONE_LEAD
        if not self.is_lone:
            return within
        self.blur_px, self.most = judged
        return outside

    def rate(self, seen: Seen) -> float:
        """The score of any view, as `places` has scored the candidates before."""
        if self.is_lone:
            return _object_score(seen, self.blur_px, self.most) * self._preference(seen, LONE_FRONT_BONUS)
        return self._score(seen)

    def _distinct(self, scored: Sequence[tuple[float, Seen]], count: int) -> list[tuple[float, Seen]]:
        """The best that differ from each other."""
        chosen: list[tuple[float, Seen]] = []
        for score, seen in sorted(scored, key=lambda pair: -pair[0]):  # stable: the first drawn of equals
            differs = all(_differ(seen, other, self.radius, self.is_lone) for _, other in chosen)
            if differs and (self.is_lone or self._stands_free(seen)):
                chosen.append((score, seen))
            if len(chosen) == count:
                break
        return chosen or [max(scored, key=lambda pair: pair[0])]

    def _stands_free(self, seen: Seen) -> bool:
        """Whether the eye is not within a wall: a little behind it, none is seen where the eye is."""
        if id(seen) not in self._free:
            back = BACK * seen.distance
            drawn = self.look(seen.eye + back * seen.direction, seen.target)
            wall = drawn.hit & (drawn.depth > 0.3 * back) & (drawn.depth < 1.7 * back)
            self._free[id(seen)] = bool(wall.mean() < WALL_SHARE)
        return self._free[id(seen)]

    def camera(self, eye: Float64[Array, " 3"], target: Float64[Array, " 3"], lens: Camera | None = None) -> Camera:
        """An upright camera with the lens of the picture."""
        posed = Camera.look_at(eye, target, self.up)
        return replace(lens or self.lens, world_from_camera=posed.world_from_camera)

    def look(self, eye: Float64[Array, " 3"], target: Float64[Array, " 3"]) -> Seen:
        """Draw small from there."""
        camera = self.camera(eye, target, self.small)
        drawn = self.engine.sample(self.scene, camera, Noise(), self.looking).numpy()
        hit, depth = drawn.primitive_id[0] >= 0, drawn.depth[0]
        pixels_per_unit = ROWS / camera.height * camera.fy
        with np.errstate(divide="ignore", over="ignore"):
            sizes = self.sizes[drawn.primitive_id[0]] * (pixels_per_unit / np.where(hit, depth, 1))
        visible, unhidden = self._subject_seen(
            camera, np.where(hit, depth, np.inf), float(np.linalg.norm(target - eye))
        )
        return Seen(eye, target, hit, depth, np.where(hit, sizes, np.inf), visible, unhidden)

    def _subject_seen(self, camera: Camera, depth: Float[Array, "h w"], distance: float) -> tuple[float, float]:
        """The share of the subject in sight, and of the nearer part that lies in the picture."""
        z, visible, inside = self._in_sight(self.subject, camera, 1.08 * depth + 0.02 * self.radius)
        nearer = inside & (z < 1.3 * distance)
        unhidden = float((visible & nearer).sum() / nearer.sum()) if nearer.mean() > 0.01 else 0.5
        return float(visible.mean()), unhidden

    def _in_sight(
        self, points: Float64[Array, "4 n"], camera: Camera, ends: Float[Array, "h w"]
    ) -> tuple[Array, Array, Array]:
        """For each point: its depth, whether sight ends behind it, whether it lies in the picture."""
        x, y, z = camera.camera_from_world[:3] @ points
        ahead = np.maximum(z, 1e-12)
        column, row = camera.fx * x / ahead + camera.cx, camera.fy * y / ahead + camera.cy
        inside = (z > self.looking.near) & (column >= 0) & (column < camera.width) & (row >= 0) & (row < camera.height)
        end = ends[np.where(inside, row, 0).astype(np.int64), np.where(inside, column, 0).astype(np.int64)]
        return z, inside & (z < end), inside

    def _around(self) -> list[Seen]:
        """The bulk from all sides, from so far that a lone object is whole."""
        return [self.look(self.middle + self._far() * way, self.middle) for way in self._ways([LONE_ELEVATION])]

    @staticmethod
    def _at_border(around: Sequence[Seen]) -> float:
        return float(np.median([border(seen.hit) for seen in around]))

    def _ends_within(self, around: Sequence[Seen]) -> bool:
        """Whether the scene ends within the pictures from most sides and shows its subject to the outside."""
        at_border = self._at_border(around)
        visible = self._visible_from_outside(around, self.body)
        if not any(at_border <= most and visible > least for most, least in LONE):
            return False
        # A street has no ceiling that would hide it: only what shows nearly all is a train or a fence.
        least = LONG_SUBJECT if self.shape.is_long else LONE_SUBJECT
        return self._visible_from_outside(around, self.subject) > least or not self._is_room()

    def _is_room(self) -> bool:
        """Whether somewhere about the middle, or that of a half, walls are seen to all sides."""
        middles = [(self.middle, self.radius), *((middle, self.radius / 2) for middle in self._halves())]
        return any(self._has_walls_about(middle, radius) for middle, radius in middles)

    def _has_walls_about(self, middle: Float64[Array, " 3"], radius: float) -> bool:
        """Whether walls are seen to all sides from this point or from about it."""
        radius = min(radius, self.shape.height)  # in a long scene, or two far apart, walls are nearer than that
        steps = [np.zeros(3), *(0.4 * way for way in self._ways([0.0], 4))]
        eyes = [middle + radius * (step + rise * self.up) for rise in (0.0, 0.25) for step in steps]
        ways = self._ways([0.0], 3)
        return any(all(_is_walled(self.look(eye, eye + way), radius) for way in ways) for eye in eyes)

    def _halves(self) -> list[Float64[Array, " 3"]]:
        """The middles of the two halves of the subject, cut across its longest side: rooms beside each other."""
        points = self.subject[:3].T
        if len(points) == 0:
            return []
        along = points[:, int(np.argmax(np.ptp(np.percentile(points, [5, 95], axis=0), axis=0)))]
        lower = along < np.median(along)
        return [np.median(half, axis=0) for half in (points[lower], points[~lower]) if len(half)]

    def _visible_from_outside(self, around: Sequence[Seen], points: Float64[Array, "4 n"]) -> float:
        """The share of points that any of these sees."""
        slack = SLACK * self.radius
        if self.shape.is_long:  # its walls are near to each other
            slack = max(min(slack, SLACK_HEIGHTS * self.shape.height), SLACK_LEAST * self.radius)
        found = np.zeros(points.shape[1], bool)
        for seen in around:
            camera = self.camera(seen.eye, seen.target, self.small)
            found |= self._in_sight(points, camera, np.where(seen.hit, seen.depth, np.inf) + slack)[1]
        return float(found.mean())

    def _ways(self, elevations: Sequence[float], count: int = AZIMUTHS) -> list[Float64[Array, " 3"]]:
        """Directions from the middle to the eye, all around, from the front on."""
        angles = 2 * np.pi * np.arange(count) / count
        return [self._way(angle, np.radians(degrees)) for degrees in elevations for angle in angles]

    def _way(self, azimuth: float, elevation: float) -> Float64[Array, " 3"]:
        front = _front(self.up)
        level = np.cos(azimuth) * front + np.sin(azimuth) * np.cross(self.up, front)
        return np.cos(elevation) * level + np.sin(elevation) * self.up

    def _fits(self) -> float:
        """The distance at which the bulk just fits into the picture."""
        half = np.tan(np.radians(self.fov_y_deg) / 2) * min(1.0, self.lens.width / self.lens.height)
        return float(1.1 * self.radius / np.sin(np.arctan(half)))

    def _far(self) -> float:
        """A distance from which all of a lone object is in the picture."""
        return LONE_DISTANCE * self._fits()

    def _within_surroundings(self) -> list[tuple[float, Seen]]:
        """Candidates about the middle and about single places of detail; the best are improved."""
        guess = guess_camera(self.gaussians, self.lens.width, self.lens.height, self.up, self.fov_y_deg)
        fits, nearest = self._fits(), TARGET_NEARS * self.options.near
        drawn = [self.look(guess.position, self.middle)]
        for share, elevations in RINGS:
            distance = max(share * fits, nearest)
            drawn += [self.look(self.middle + distance * way, self.middle) for way in self._ways(elevations)]
        stations = self.shape.stations(self.subject[:3].T, nearest)
        drawn += [self.look(eye, target) for eye, target in [*self._nearby(), *stations]]
        self.blur_px = _half_sharp_px(drawn)
        least = min(SEEN_SHARE, float(np.percentile([seen.unhidden for seen in drawn], FREE_PERCENT)))
        self.most = max(seen.visible for seen in drawn if seen.unhidden >= least)
        scored = [(self._score(seen), seen) for seen in drawn]
        for count, far, moves in STEPS:
            best = self._distinct(scored, count)
            moved = [self.look(*self._moved(seen, far * np.array(move))) for _, seen in best for move in MOVES[:moves]]
            scored += [(self._score(seen), seen) for seen in moved]
        return scored

    def _nearby(self) -> list[tuple[Float64[Array, " 3"], Float64[Array, " 3"]]]:
        """Eyes and targets: at places of detail from all sides, at all distances."""
        rng = np.random.default_rng(0)
        targets = self.subject[:3, np.linspace(0, self.subject.shape[1] - 1, NEARBY).astype(np.int64)].T
        azimuths = rng.uniform(0, 2 * np.pi, NEARBY)
        elevations = np.radians(rng.uniform(*NEARBY_DEG, NEARBY))
        farthest = NEARBY_RADII[1] * self.radius
        narrow = max(self.shape.width, self.shape.height)  # in a corridor one stands near to what one sees
        nearest = NEARBY_RADII[0] * float(np.clip(narrow, NEARBY_RADII[0] * self.radius, self.radius))
        radii = nearest * (farthest / nearest) ** rng.uniform(0, 1, NEARBY)
        radii = np.maximum(radii, TARGET_NEARS * self.options.near)
        eyes = [t + r * self._way(a, e) for t, r, a, e in zip(targets, radii, azimuths, elevations, strict=True)]
        return list(zip(eyes, targets, strict=True))

    def _moved(self, seen: Seen, move: Float64[Array, " 4"]) -> tuple[Float64[Array, " 3"], Float64[Array, " 3"]]:
        """Eye and target of a candidate nearer or farther, turned about its target, higher or lower."""
        farther, azimuth, elevation, rise = move
        front, side = _front(self.up), np.cross(self.up, _front(self.up))
        way = seen.direction
        angle = np.arctan2(way @ side, way @ front) + np.radians(azimuth)
        height = np.clip(np.arcsin(np.clip(way @ self.up, -1, 1)) + np.radians(elevation), -0.2, 1.2)
        target = seen.target + rise * seen.distance * self.up
        distance = min(np.exp(farther) * seen.distance, self._fits())  # from farther the subject is small
        distance = max(distance, TARGET_NEARS * self.options.near)
        return seen.target + distance * self._way(angle, height), target

    def _score(self, seen: Seen) -> float:
        """How much is seen how well, 0..1."""
        if not seen.hit.any():
            return 0.0
        near, median, far = np.percentile(seen.depth[seen.hit], [10, 50, 90])
        sharp = 1 / (1 + (seen.size_px / self.blur_px) ** 2)
        background = seen.hit & (seen.depth > BACKGROUND * seen.distance)
        sharp_share = float(np.where(background, np.maximum(sharp, BACKGROUND_SHARP), sharp).mean())
        deep = min(1.0, float(np.log(far / near)) / DEEP)
        in_the_way = float((seen.hit & (seen.depth < NEAR_SHARE * median)).mean())
        above_floor = slice(None, 2 * len(seen.hit) // 3)
        beside = float((seen.hit & (seen.depth < BESIDE_SHARE * seen.distance))[above_floor].mean())
        return (
            sharp_share
            * (0.5 + 0.5 * deep)
            * seen.reaches_target()
            * max(0.0, 1 - 2 * in_the_way - beside)
            * (0.1 + 0.9 * min(1.0, seen.unhidden / SEEN_SHARE))
            * (0.45 + 0.55 * min(1.0, seen.visible / max(SUBJECT_SHARE * self.most, 1e-12)))
            * self._preference(seen, FRONT_BONUS)
        )

    def _preference(self, seen: Seen, front_bonus: float) -> float:
        """What people choose between equals, about 1: a little from above, from the front."""
        elevation = float(np.degrees(np.arcsin(np.clip(seen.direction @ self.up, -1, 1))))
        usual = 1 - min(1.0, ((elevation - USUAL_DEG) / UNUSUAL_DEG) ** 2) / 3
        return usual * (1 + front_bonus * float(seen.direction @ _front(self.up))) / (1 + front_bonus)

    def _around_object(self) -> list[tuple[float, Seen]]:
        """Candidates around a lone object, each moved until the object is whole and in the middle."""
        framed = [self._framed(way) for way in self._ways([LONE_ELEVATION], LONE_AZIMUTHS)]
        self.blur_px, self.most = _half_sharp_px(framed), max(seen.visible for seen in framed)
        scores = np.array([_object_score(seen, self.blur_px, self.most) for seen in framed])
        # What one side shows its neighbours nearly show: noise shall not decide, nor differ between levels of detail.
        scores = 0.5 * scores + 0.25 * (np.roll(scores, 1) + np.roll(scores, -1))
        preferences = [self._preference(seen, LONE_FRONT_BONUS) for seen in framed]
        return list(zip((scores * preferences).tolist(), framed, strict=True))

    def _framed(self, way: Float64[Array, " 3"]) -> Seen:
        """The view from this direction in which what is hit fills the picture."""
        target, distance = self.middle, self._far()
        seen = self.look(target + distance * way, target)
        for _ in range(3):
            solid = seen.solid
            if not solid.any():
                break
            (left, right), (top, bottom) = extent(solid.sum(axis=0)), extent(solid.sum(axis=1))
            h, w = solid.shape
            camera = self.camera(seen.eye, seen.target, self.small)
            depth = float(np.median(seen.depth[solid]))
            aside = ((left + right) / 2 - camera.cx) / camera.fx * depth
            down = ((top + bottom) / 2 - camera.cy) / camera.fy * depth
            target = seen.target + camera.world_from_camera[:3, :2] @ [aside, down]
            fill = max((right - left) / w, (bottom - top) / h)
            # What is nearest grows fastest: move by its depth, so that it stays in the picture.
            nearest = float(np.percentile(seen.depth[solid], 1))
            distance = seen.distance - nearest * (1 - fill / LONE_FILL)
            seen = self.look(target + distance * way, target)
        clear = 1.1 * self.options.near + self.radius  # the near plane shall not cut it, however small it is then
        return seen if seen.distance >= clear else self.look(seen.target + clear * way, seen.target)


def _best(scored: Sequence[tuple[float, Seen]]) -> float:
    return max(score for score, _ in scored)


def _is_walled(seen: Seen, radius: float) -> bool:
    """Whether a level look ends everywhere above the horizon at something that is neither near nor fog."""
    above = slice(None, len(seen.hit) // 2)
    wall = seen.hit & (seen.size_px < FOG_PX) & (seen.depth > ENCLOSED_DEPTH * radius)
    return bool(wall[above].mean() > ENCLOSED)


def _half_sharp_px(drawn: Sequence[Seen]) -> float:
    """The size that counts half: by the sharper candidates, so that coarser levels of detail score alike."""
    sizes = [seen.usual_px for seen in drawn if seen.hit.any()]
    return float(np.clip(2 * np.percentile(sizes, 10), *BLUR_PX)) if sizes else BLUR_PX[0]


def _object_score(seen: Seen, blur_px: float, most: float) -> float:
    """How much of a lone object's detail is seen how well, and whether it is whole."""
    if not seen.hit.any():
        return 0.0
    sharp = float((1 / (1 + (seen.size_px[seen.hit] / blur_px) ** 2)).mean())
    whole = max(0.0, 1 - 10 * border(seen.solid))
    return sharp * whole * (0.2 + 0.8 * seen.visible / max(most, 1e-12))


def _differ(seen: Seen, other: Seen, radius: float, is_lone: bool) -> bool:
    """Whether two candidates show something else."""
    if is_lone:
        return bool(seen.direction @ other.direction < np.cos(np.radians(50)))
    apart = np.linalg.norm(seen.eye - other.eye) / min(seen.distance, other.distance, radius)
    looked = np.linalg.norm(seen.target - other.target) / min(seen.distance, other.distance, radius)
    turned = seen.direction @ other.direction < np.cos(np.radians(35))
    return bool(turned if apart < 0.7 else turned or looked > 0.7)


def _front(upward: Float64[Array, " 3"]) -> Float64[Array, " 3"]:
    """Where files tend to have their front: -z for -y up (so 3DGS), z for y up (glTF), -y for z up (Blender)."""
    axis = int(np.argmax(np.abs(upward)))
    front = np.array([0.0, -1.0, 0.0]) if axis == 2 else np.array([0.0, 0.0, -1.0 if upward[1] < 0 else 1.0])
    return normalized(front - (front @ upward) * upward)
