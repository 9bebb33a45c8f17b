"""A path through the places of a scene."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from itertools import pairwise

import numpy as np
from jaxtyping import Float64
from numpy import ndarray as Array

from hushsplat.home.search import Place, Search
from hushsplat.types.camera import Camera
from hushsplat.types.options import Noise
from hushsplat.types.paths import orbit
from hushsplat.types.rotations import level_axes, matrix_from_quaternion, quaternion_from_matrix, slerp
from hushsplat.types.track import Track

STOPS = 24  # candidates by which a tour may go around something
LEG_KEYS = 3  # keys of a straight leg: keep the smooth curve near to it
TURN_KEYS, CIRCLE_PROBES = 13, 24  # of a turn on the spot, of a circle
PROBE_PX, PROBE_DEG = 9, 8.0  # how wide a way has to be free
BLOCKED_SHARE = 0.3  # of the pixels of a probe: less is a twig or a floater
SAME_PIVOT = 0.25  # of the distance to it: two places that are no farther apart in what they look at
ARC_STEP_DEG = 20.0  # between keys of an arc


def circle(home: Place, upward: Float64[Array, " 3"], seconds: float, fps: float, fov_y_deg: float) -> Track:
    """Once around what the camera looks at."""
    offset = home.camera.position - home.target
    elevation = float(offset @ upward)
    first, second = level_axes(upward)
    return orbit(
        home.target,
        max(float(np.linalg.norm(offset - elevation * upward)), 1e-9),
        elevation=elevation,
        up=upward,
        start_deg=float(np.degrees(np.arctan2(offset @ second, offset @ first))),
        seconds=seconds,
        fps=fps,
        width=home.camera.width,
        height=home.camera.height,
        fov_y_deg=fov_y_deg,
    )


def keys_between(search: Search, places: Sequence[Place]) -> list[Camera]:
    """Cameras of a tour: the places by the shortest way, with stops between where the straight way is blocked.

    Between places that look at the same thing the way leads around it. A place that nothing but a way through a wall
    leads to is left out.
    """
    ordered, left = [places[0]], list(places[1:])
    while left:
        nearest = min(range(len(left)), key=lambda index: float(_apart(ordered[-1].camera, left[index].camera)))
        ordered.append(left.pop(nearest))
    best = sorted(search.seen, key=lambda scored: -scored[0])[:STOPS]
    stops = [search.camera(seen.eye, seen.target) for _, seen in best]
    here, keys = ordered[0], [ordered[0].camera]
    for there in ordered[1:]:
        way = _arc(search, here, there)
        if not way:
            for stop in _way(search, here.camera, there.camera, stops):
                way += _between(way[-1] if way else here.camera, stop)
        if way:
            here = there
            keys += way
    return keys


def look_around(home: Camera, upward: Float64[Array, " 3"]) -> list[Camera]:
    """Cameras of a whole turn on the spot: where a circle would lead through walls."""
    keys = []
    for angle in np.linspace(0, np.pi, TURN_KEYS):  # half of the angle of each turn
        turn = matrix_from_quaternion(np.array([np.cos(angle), *(np.sin(angle) * upward)]))
        pose = home.world_from_camera.copy()
        pose[:3, :3] = turn @ pose[:3, :3]
        keys.append(replace(home, world_from_camera=pose))
    return keys


def is_free_circle(search: Search, home: Place) -> bool:
    """Whether nothing stands in the way around what the camera looks at."""
    track = circle(home, search.up, 1.0, float(CIRCLE_PROBES), search.fov_y_deg)
    return all(is_free(search, track.camera(index - 1), track.camera(index)) for index in range(len(track)))


def _arc(search: Search, here: Place, there: Place) -> list[Camera]:
    """Keys after `here` up to and with `there`, around what both look at; none if it is not one thing, or not free."""
    offsets = np.stack([place.camera.position - place.target for place in (here, there)])
    if np.linalg.norm(here.target - there.target) > SAME_PIVOT * np.linalg.norm(offsets, axis=1).min():
        return []
    first, second = level_axes(search.up)
    heights, angles = offsets @ search.up, np.arctan2(offsets @ second, offsets @ first)
    widths = np.hypot(offsets @ first, offsets @ second)
    shorter = (angles[1] - angles[0] + np.pi) % (2 * np.pi) - np.pi
    for turn in (shorter, shorter - np.copysign(2 * np.pi, shorter)):  # the other way around if that is free
        keys = [here.camera]
        for share in np.linspace(0, 1, 2 + int(abs(turn) / np.radians(ARC_STEP_DEG)))[1:-1]:
            height, width = ((1 - share) * ends[0] + share * ends[1] for ends in (heights, widths))
            angle = angles[0] + share * turn
            target = (1 - share) * here.target + share * there.target
            eye = target + width * (np.cos(angle) * first + np.sin(angle) * second) + height * search.up
            keys.append(search.camera(eye, target))
        keys.append(there.camera)
        if all(is_free(search, *pair) for pair in pairwise(keys)):
            return keys[1:]
    return []


def _way(search: Search, here: Camera, there: Camera, stops: Sequence[Camera]) -> list[Camera]:
    """Where to go from here: straight there, over one of the stops if that is blocked, or nowhere."""
    if is_free(search, here, there):
        return [there]
    by_length = sorted(stops, key=lambda stop: float(_apart(here, stop) + _apart(stop, there)))
    for stop in by_length:
        if min(_apart(here, stop), _apart(stop, there)) < 0.02 * search.radius:
            continue
        if is_free(search, here, stop) and is_free(search, stop, there):
            return [stop, there]
    return []


def is_free(search: Search, here: Camera, there: Camera) -> bool:
    """Whether nothing stands between two cameras: a few pixels are drawn from each to the other."""
    distance = float(_apart(here, there))
    if distance < 2 * search.options.near:
        return True
    return all(
        _free_ahead(search, start.position, end.position, distance) for start, end in ((here, there), (there, here))
    )


def _free_ahead(search: Search, start: Float64[Array, " 3"], end: Float64[Array, " 3"], distance: float) -> bool:
    probe = Camera.look_at(start, end, search.up, width=PROBE_PX, height=PROBE_PX, fov_y_deg=PROBE_DEG)
    drawn = search.engine.sample(search.scene, probe, Noise(), search.looking).numpy()
    blocked = (drawn.primitive_id[0] >= 0) & (drawn.depth[0] < distance)
    return bool(blocked.mean() < BLOCKED_SHARE)


def _apart(here: Camera, there: Camera) -> float:
    return float(np.linalg.norm(here.position - there.position))


def _between(here: Camera, there: Camera) -> list[Camera]:
    """Keys after `here` up to and with `there`, on the straight line."""
    start, end = (quaternion_from_matrix(camera.world_from_camera[:3, :3]) for camera in (here, there))
    keys = []
    for share in np.arange(1, LEG_KEYS) / LEG_KEYS:
        pose = np.eye(4)
        pose[:3, :3] = matrix_from_quaternion(slerp(start, end, np.array(share)))
        pose[:3, 3] = (1 - share) * here.position + share * there.position
        keys.append(replace(there, world_from_camera=pose))
    return [*keys, there]
