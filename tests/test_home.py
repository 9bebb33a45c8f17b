"""The first camera on scenes made by code whose best view is known: what it sees, and that it is the same each time."""

from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

import hushsplat
from hushsplat.engines.base import engine
from hushsplat.home import Place, find_places, frame_scene, orbit_scene, tour
from hushsplat.home.path import keys_between, look_around
from hushsplat.home.search import Search
from hushsplat.io.scenes.scene import load
from hushsplat.types.camera import Camera
from hushsplat.types.errors import CameraError, HushsplatError
from hushsplat.types.framing import fitting_near
from hushsplat.types.gaussians import Gaussians
from hushsplat.types.options import NEAR, Noise, RenderOptions
from hushsplat.types.rotations import matrix_from_quaternion, quaternion_from_matrix
from hushsplat.types.standing import StandingObject
from hushsplat.types.surfaces import scene_bulk
from hushsplat.types.up import UP_AXES, find_up

UP = np.array([0.0, -1.0, 0.0])  # of all scenes here, until they are turned
TURNS = {
    "-y": np.eye(3),
    "y": np.diag([1.0, -1.0, -1.0]),
    "z": np.array([[1, 0, 0], [0, 0, 1], [0, -1, 0]], dtype=np.float64),  # -y goes to z
}


def rotation_about(axis: tuple[float, ...], degrees: float) -> np.ndarray:
    half = np.radians(degrees) / 2
    unit = np.array(axis) / np.linalg.norm(axis)
    return matrix_from_quaternion(np.array([np.cos(half), *(np.sin(half) * unit)]))


def gaussians(means: np.ndarray, sizes: np.ndarray, normals: np.ndarray, opacity: float = 0.95) -> Gaussians:
    """Flat ellipsoids with these normals."""
    n = len(means)
    other = np.where(np.abs(normals[:, :1]) > 0.9, [[0.0, 1.0, 0.0]], [[1.0, 0.0, 0.0]])
    first = np.cross(normals, other)
    first /= np.linalg.norm(first, axis=1, keepdims=True)
    frames = np.stack([first, np.cross(normals, first), normals], axis=2)
    return Gaussians(
        means=means.astype(np.float32),
        scales=np.stack([sizes, sizes, 0.05 * sizes], axis=1).astype(np.float32),
        rotations=quaternion_from_matrix(frames).astype(np.float32),
        opacities=np.full(n, opacity, dtype=np.float32),
        sh=np.zeros((n, 1, 3), dtype=np.float32),
    )


def plate(center: tuple, first: tuple, second: tuple, count: int, size: float, seed: int = 0) -> Gaussians:
    """A rectangle of Gaussians: the half axes are given."""
    u, v = np.random.default_rng(seed).uniform(-1, 1, (2, count, 1))
    normal = np.cross(first, second)
    normals = np.tile(normal / np.linalg.norm(normal), (count, 1))
    return gaussians(np.array(center) + u * np.array(first) + v * np.array(second), np.full(count, size), normals)


def ball(center: tuple, radius: float, count: int, size: float, seed: int = 0) -> Gaussians:
    normals = np.random.default_rng(seed).normal(size=(count, 3))
    normals /= np.linalg.norm(normals, axis=1, keepdims=True)
    return gaussians(np.array(center) + radius * normals, np.full(count, size), normals)


def fog(center: tuple, spread: float, count: int, size: float, seed: int = 0) -> Gaussians:
    rng = np.random.default_rng(seed)
    normals = rng.normal(size=(count, 3))
    normals /= np.linalg.norm(normals, axis=1, keepdims=True)
    cloud = gaussians(rng.normal(center, spread, (count, 3)), np.full(count, size), normals, opacity=0.3)
    return replace(cloud, scales=np.full((count, 3), size, dtype=np.float32))


def together(*parts: Gaussians) -> Gaussians:
    names = ("means", "scales", "rotations", "opacities", "sh")
    return Gaussians(*(np.concatenate([getattr(part, name) for part in parts]) for name in names))


def turned(scene: Gaussians, turn: np.ndarray) -> Gaussians:
    frames = turn @ matrix_from_quaternion(scene.rotations.astype(np.float64))
    return replace(
        scene,
        means=(scene.means @ turn.T).astype(np.float32),
        rotations=quaternion_from_matrix(frames).astype(np.float32),
    )


def room() -> Gaussians:
    """Four walls, a floor, a ceiling, and things on a table in the middle."""
    return together(
        plate((0, 0, 0), (3, 0, 0), (0, 0, 3), 2000, 0.12, 1),  # floor
        plate((0, -2.5, 0), (3, 0, 0), (0, 0, 3), 2000, 0.12, 2),  # ceiling
        plate((3, -1.25, 0), (0, 1.25, 0), (0, 0, 3), 1500, 0.12, 3),
        plate((-3, -1.25, 0), (0, 1.25, 0), (0, 0, 3), 1500, 0.12, 4),
        plate((0, -1.25, 3), (3, 0, 0), (0, 1.25, 0), 1500, 0.12, 5),
        plate((0, -1.25, -3), (3, 0, 0), (0, 1.25, 0), 1500, 0.12, 6),
        plate((0, -0.8, 0), (0.8, 0, 0), (0, 0, 0.5), 1000, 0.04, 7),
        ball((0, -1.0, 0), 0.2, 1000, 0.02, 8),
    )


def trained_room() -> Gaussians:
    """The same as trainers leave it: few, on surfaces that are not smooth, of all sizes, and much that lies on none."""
    scene = room().take(np.arange(0, len(room()), 3))
    rng = np.random.default_rng(9)
    rough = matrix_from_quaternion(scene.rotations)[:, :, 2] + rng.normal(0, 0.5, (len(scene), 3))
    rough /= np.linalg.norm(rough, axis=1, keepdims=True)
    sizes = scene.scales.max(axis=1) * np.exp(rng.normal(0, 0.9, len(scene)))
    clutter = rng.normal(size=(1000, 3))
    clutter /= np.linalg.norm(clutter, axis=1, keepdims=True)
    return together(
        gaussians(scene.means + rng.normal(0, 0.06, (len(scene), 3)), sizes, rough),
        gaussians(rng.uniform((-3, -2.5, -3), (3, 0, 3), (1000, 3)), 0.1 * np.exp(rng.normal(0, 0.9, 1000)), clutter),
    )


def figure() -> Gaussians:
    """A tall lone object without a floor."""
    return together(ball((0, -0.4, 0), 0.4, 2000, 0.03, 1), ball((0, -1.1, 0), 0.3, 2000, 0.03, 2))


def figure_on_a_floor() -> Gaussians:
    return together(figure(), plate((0, 0, 0), (1.5, 0, 0), (0, 0, 1.5), 3000, 0.05, 3))


def garden() -> Gaussians:
    """A table of detail on a lawn; hills and sky far away and blurred, floaters between."""
    return together(
        plate((0, 0, 0), (8, 0, 0), (0, 0, 8), 5000, 0.16, 1),
        plate((0, -0.8, 0), (0.6, 0, 0), (0, 0, 0.6), 1500, 0.03, 2),
        ball((0, -1.0, 0), 0.2, 1500, 0.015, 3),
        *(ball((6 * np.cos(a), -1, 6 * np.sin(a)), 0.8, 300, 0.14, 10 + i) for i, a in enumerate(np.arange(8) * 0.785)),
        fog((0, -20, 0), 25, 300, 4.0, 4),
        fog((0, -3, 0), 3, 60, 0.4, 5),
    )


def wall_with_clutter() -> Gaussians:
    """A wall of 8 by 3 with a bench and boxes before it, on a strip of ground; nothing behind it."""
    return together(
        plate((0, -1.5, 2), (4, 0, 0), (0, 1.5, 0), 3000, 0.07, 1),
        plate((0, 0, 0), (4, 0, 0), (0, 0, 2), 3000, 0.09, 2),
        *(ball((x, -0.3, 1.2), 0.3, 800, 0.02, 10 + i) for i, x in enumerate((-2.0, -0.5, 0.8, 2.2))),
        fog((0, -2, 6), 2, 60, 1.0, 3),
    )


def lit(scene: Gaussians, means: np.ndarray, up: np.ndarray = UP) -> Gaussians:
    """The same with surfaces that are brighter the more they face up; they face away from `means`."""
    normals = matrix_from_quaternion(scene.rotations.astype(np.float64))[:, :, 2]
    normals = normals * np.sign(np.sum(normals * (scene.means - means), axis=1))[:, None]
    return replace(scene, sh=np.tile((normals @ up)[:, None, None], (1, 1, 3)).astype(np.float32))


def statue() -> Gaussians:
    """A lone figure under the sky: foot, body, head and arms, no ground."""
    return together(
        *(
            lit(ball(middle, radius, count, 0.03, seed), np.array(middle))
            for seed, (middle, radius, count) in enumerate(
                (
                    ((-0.2, -0.15, 0), 0.15, 600),
                    ((0.2, -0.15, 0), 0.15, 600),
                    ((0, -0.6, 0), 0.35, 2000),
                    ((-0.45, -0.7, 0), 0.12, 400),
                    ((0.45, -0.7, 0), 0.12, 400),
                    ((0, -1.15, 0), 0.2, 1000),
                )
            )
        )
    )


SIX_TURNS = {
    **TURNS,
    "x": np.array([[0, -1, 0], [1, 0, 0], [0, 0, 1]], dtype=np.float64),
    "-x": np.array([[0, 1, 0], [-1, 0, 0], [0, 0, 1]], dtype=np.float64),
    "-z": np.array([[1, 0, 0], [0, 0, -1], [0, 1, 0]], dtype=np.float64),
}


def board(height: float, half: tuple[float, float]) -> Gaussians:
    """A level board, bright above and dark below."""
    sides = []
    for y, brightness in ((-height, 0.5), (-height + 0.04, -1.0)):
        side = plate((0, y, 0), (half[0], 0, 0), (0, 0, half[1]), 3000, 0.03)
        sides.append(replace(side, sh=np.full((3000, 1, 3), brightness, dtype=np.float32)))
    return together(*sides)


def hits(scene: Gaussians, camera: Camera) -> tuple[np.ndarray, np.ndarray]:
    """Who is seen from there, and how deep."""
    small = camera.resized(120, 80)
    drawing = engine("cpu")
    seen = drawing.sample(drawing.upload(scene), small, Noise(), RenderOptions()).numpy()
    return seen.primitive_id[0], seen.depth[0]


def in_picture(points: np.ndarray, camera: Camera) -> np.ndarray:
    """Where points are in the picture, 0..1 from left and top; NaN behind the camera."""
    x, y, z = (points @ camera.camera_from_world[:3, :3].T + camera.camera_from_world[:3, 3]).T
    z = np.where(z > 0, z, np.nan)
    return np.stack(
        [(camera.fx * x / z + camera.cx) / camera.width, (camera.fy * y / z + camera.cy) / camera.height], axis=1
    )


def tilt_deg(camera: Camera, up: np.ndarray) -> float:
    """How far the picture's x axis is from level."""
    return float(np.degrees(np.arcsin(np.clip(abs(camera.world_from_camera[:3, 0] @ up), 0, 1))))


def home(scene: Gaussians, up: object = "-y", **more: object) -> Place:
    return find_places(scene, 300, 200, up=up, count=1, **more)[0]


@pytest.mark.parametrize("turn", TURNS)
def test_room_is_seen_from_inside(turn: str) -> None:
    scene = turned(room(), TURNS[turn])
    up = TURNS[turn] @ UP
    camera = home(scene, up=up).camera
    at = TURNS[turn].T @ camera.position
    assert (np.abs(at[[0, 2]]) < 3).all() and -2.5 < at[1] < 0
    ids, _ = hits(scene, camera)
    assert (ids >= 0).mean() > 0.95
    assert (ids >= 10_000).mean() > 0.01  # the table is in sight
    assert tilt_deg(camera, up) < 0.1


@pytest.mark.parametrize("scene", [figure(), figure_on_a_floor()], ids=["alone", "on a floor"])
def test_lone_object_is_whole_in_the_middle_and_large(scene: Gaussians) -> None:
    for place in find_places(scene, 300, 200, up="-y"):
        where = in_picture(scene.means, place.camera)
        assert np.isfinite(where).all() and (where > 0).all() and (where < 1).all()
        middle = (where.min(axis=0) + where.max(axis=0)) / 2
        assert np.abs(middle - 0.5).max() < 0.06
        assert 0.65 < np.ptp(where, axis=0).max() < 0.95


def test_lone_object_fits_a_portrait_and_a_narrow_lens() -> None:
    scene = figure_on_a_floor()
    for width, height, fov in ((200, 400, 50.0), (400, 100, 20.0)):
        camera = find_places(scene, width, height, up="-y", fov_y_deg=fov, count=1)[0].camera
        where = in_picture(scene.means, camera)
        assert (where > 0).all() and (where < 1).all() and np.ptp(where, axis=0).max() > 0.6


def test_garden_shows_its_table_and_no_fog() -> None:
    scene = garden()
    camera = home(scene, up=None).camera
    ids, depth = hits(scene, camera)
    assert (ids >= 0).mean() > 0.6
    assert ((ids >= 5_000) & (ids < 8_000)).mean() > 0.02
    floaters = (ids >= len(scene) - 60) & (depth < 1)
    assert floaters.mean() < 0.05
    assert camera.position[1] < -0.2  # above the lawn


def test_wall_is_seen_from_its_front_with_its_clutter() -> None:
    scene = wall_with_clutter()
    camera = home(scene).camera
    assert camera.position[2] < 1.9
    ids, _ = hits(scene, camera)
    assert ((ids >= 6_000) & (ids < 9_200)).mean() > 0.02
    assert (ids >= 0).mean() > 0.5


def test_far_outliers_change_nothing() -> None:
    scene = figure_on_a_floor()
    far = ball((0, 0, 0), 1e5, 40, 0.02, 9)
    camera = home(together(scene, far)).camera
    where = in_picture(scene.means, camera)
    assert (where > 0).all() and (where < 1).all() and np.ptp(where, axis=0).max() > 0.6


def test_floaters_about_an_object_do_not_cut_it_off() -> None:
    scene = figure_on_a_floor()
    rng = np.random.default_rng(1)
    ways = rng.normal(size=(100, 3))
    ways /= np.linalg.norm(ways, axis=1, keepdims=True)
    floaters = gaussians(ways * rng.uniform(6, 12, (100, 1)), np.full(100, 0.5), ways)
    for place in find_places(together(scene, floaters), 300, 200, up="-y"):
        where = in_picture(scene.means, place.camera)
        assert (where > 0).all() and (where < 1).all() and np.ptp(where, axis=0).max() > 0.6


def test_sky_about_an_object_does_not_cut_it_off() -> None:
    scene = figure_on_a_floor()
    sky = ball((0, 0, 0), 40.0, 3000, 2.0, 9)
    for place in find_places(together(scene, sky), 300, 200, up="-y"):
        where = in_picture(scene.means, place.camera)
        assert (where > 0).all() and (where < 1).all() and np.ptp(where, axis=0).max() > 0.6


@pytest.mark.parametrize("turn", SIX_TURNS)
def test_sky_about_a_figure_does_not_hide_how_it_stands(turn: str) -> None:
    found = find_up(turned(together(statue(), ball((0, 0, 0), 40.0, 3000, 2.0, 9)), SIX_TURNS[turn]))
    assert found @ (SIX_TURNS[turn] @ UP) > np.cos(np.radians(3))


def test_table_is_a_lone_object_however_flat() -> None:
    scene = together(board(0.7, (0.9, 0.6)), plate((0, -0.35, 0), (0.05, 0, 0.05), (0, 0.35, 0), 300, 0.02))
    where = in_picture(scene.means, home(scene).camera)
    assert (where > 0).all() and (where < 1).all() and np.ptp(where, axis=0).max() > 0.6


def test_two_rooms_are_seen_from_inside() -> None:
    apart = np.array([4.5, 0, 0], dtype=np.float32)
    rooms = [replace(room(), means=room().means + side * apart) for side in (-1, 1)]
    at = home(together(*rooms)).camera.position
    assert 1.5 < abs(at[0]) < 7.5 and abs(at[2]) < 3 and -2.5 < at[1] < 0


def test_two_rooms_far_apart_are_seen_from_inside() -> None:
    far = room()
    far = replace(far, means=far.means + np.float32([60, 0, 0]))
    x, y, z = home(together(room(), far)).camera.position
    assert min(abs(x), abs(x - 60)) < 3 and -2.5 < y < 0 and abs(z) < 3


def test_look_around_is_a_whole_level_turn_on_the_spot() -> None:
    first, *others = look_around(home(room()).camera, UP)
    assert np.allclose(others[-1].world_from_camera, first.world_from_camera)
    assert all(np.allclose(other.position, first.position) and tilt_deg(other, UP) < 0.1 for other in others)
    assert min(other.world_from_camera[:3, 2] @ first.world_from_camera[:3, 2] for other in others) < -0.8


def test_tour_leaves_out_places_behind_walls() -> None:
    far = room()
    far = replace(far, means=far.means + np.float32([60, 0, 0]))
    path = tour(together(room(), far), 150, 100, up="-y", places=3, seconds=4.0, fps=8.0)
    x, y, z = path.world_from_camera[:, :3, 3].T
    at = 60.0 if abs(x[0]) > 30 else 0.0
    assert (abs(x - at) < 3).all() and (y < 0).all() and (y > -2.5).all() and (abs(z) < 3).all()


def test_corridor_is_looked_along_from_inside() -> None:
    sides = [plate((side, -1.25, 0), (0, 1.25, 0), (0, 0, 20), 8000, 0.06, 3) for side in (-1, 1)]
    ends = [plate((0, -1.25, side), (1, 0, 0), (0, 1.25, 0), 1000, 0.05, 4) for side in (-20, 20)]
    doors = [plate((s, -1, z), (0, 1, 0), (0, 0, 0.4), 1000, 0.02, 5) for s in (-0.97, 0.97) for z in range(-16, 17, 4)]
    floor, ceiling = (plate((0, y, 0), (1, 0, 0), (0, 0, 20), 6000, 0.08, 6) for y in (0, -2.5))
    camera = home(together(floor, ceiling, *sides, *ends, *doors)).camera
    x, y, z = camera.position
    assert abs(x) < 1 and -2.5 < y < 0 and abs(z) < 20
    assert abs(camera.world_from_camera[2, 2]) > 0.8


def test_figure_on_a_wide_ground_is_whole_and_large() -> None:
    figure_alone = figure()
    scene = together(figure_alone, plate((0, 0, 0), (12, 0, 0), (0, 0, 12), 15_000, 0.2, 3))
    where = in_picture(figure_alone.means, home(scene).camera)
    assert (where > 0).all() and (where < 1).all() and np.ptp(where, axis=0).max() > 0.6


def test_part_of_a_garden_is_seen_from_within() -> None:
    """Somebody has cut away the surroundings: it ends within the picture, but is no thing to walk around."""
    scene = hushsplat.room_and_garden(60_000)
    middle, radius = scene_bulk(scene)
    away = np.linalg.norm(scene.means - middle, axis=1) / radius
    for kept in (0.6, 0.8):
        eye = home(scene.take(np.flatnonzero(away < kept))).camera.position
        assert np.linalg.norm(eye - middle) < kept * radius
    eye = home(scene.take(np.flatnonzero(away < 0.35))).camera.position
    assert np.linalg.norm(eye - middle) > 2 * 0.35 * radius  # what is left is a thing


@pytest.mark.parametrize("turn", TURNS)
@pytest.mark.parametrize("make", [figure_on_a_floor, garden])
def test_up_is_found_in_every_convention(make: object, turn: str) -> None:
    found = find_up(turned(make(), TURNS[turn]))
    assert found @ (TURNS[turn] @ UP) > np.cos(np.radians(3))


@pytest.mark.parametrize("degrees", [12, 25, 42])
@pytest.mark.parametrize("make", [figure_on_a_floor, garden, room, trained_room])
def test_tilted_ground_is_levelled(make: object, degrees: float) -> None:
    tilt = rotation_about((1.0, 0.0, 0.5), degrees)
    found = find_up(turned(make(), tilt))
    assert np.degrees(np.arccos(min(1.0, found @ (tilt @ UP)))) < 6


@pytest.mark.parametrize("turn", TURNS)
def test_zenith_of_a_sky_is_no_ground(turn: str) -> None:
    """A dome whose Gaussians are large, about a street: all else is on one side of its top, and it is wide."""
    street = together(
        plate((0, 0, 0), (2, 0, 0), (0, 0, 12), 4000, 0.12, 1),
        *(plate((x, -1.5, 0), (0, 1.5, 0), (0, 0, 12), 4000, 0.1, 2) for x in (-2, 2)),
        *(ball((x, -0.3, z), 0.3, 300, 0.03, 3) for x in (-1.2, 1.2) for z in range(-10, 11, 4)),
        *(ball((18 * np.cos(a), -2, 18 * np.sin(a)), 3.0, 300, 0.4, 4) for a in np.arange(6)),
    )
    sky = ball((0, 0, 0), 60.0, 1600, 6.0, 9)
    sky = sky.take(np.flatnonzero(sky.means[:, 1] < 6))
    found = find_up(turned(together(street, sky), TURNS[turn]))
    assert found @ (TURNS[turn] @ UP) > np.cos(np.radians(6))


@pytest.mark.parametrize("degrees", [25, 35])
def test_tilted_object_without_ground_is_levelled(degrees: float) -> None:
    """Cut out of a capture whose first photograph looked down at it."""
    legs = [plate((x, -0.35, z), (0.03, 0, 0.03), (0, 0.35, 0), 300, 0.02) for x in (-0.7, 0.7) for z in (-0.4, 0.4)]
    tilt = rotation_about((1.0, 0.0, 0.1), degrees) @ rotation_about((0.0, 1.0, 0.0), 30)
    for scene in (together(lit(figure(), np.float64([0, -0.7, 0])), *legs), cabinet()):
        assert find_up(turned(scene, tilt)) @ (tilt @ UP) > np.cos(np.radians(6))


@pytest.mark.parametrize("degrees", [10, 25, 40])
def test_room_about_one_small_thing_of_detail_is_levelled(degrees: float) -> None:
    """Most detail is a bush, within whose reach nothing is level."""
    bush = fog((0, -1.1, 0), 0.12, 6000, 0.01, 3)
    wide = replace(room(), means=room().means * np.float32(1.5), scales=room().scales * np.float32(2))
    tilt = rotation_about((1.0, 0.0, 0.1), degrees)
    found = find_up(turned(together(wide.take(np.arange(10_000)), replace(bush, opacities=bush.opacities * 3)), tilt))
    assert found @ (tilt @ UP) > np.cos(np.radians(8))


@pytest.mark.parametrize("azimuth", [0, 40])
@pytest.mark.parametrize("turn", SIX_TURNS)
def test_up_of_a_figure_without_ground_is_where_its_light_comes_from(turn: str, azimuth: float) -> None:
    turning = SIX_TURNS[turn] @ rotation_about((0.0, 1.0, 0.0), azimuth)
    assert find_up(turned(statue(), turning)) @ (turning @ UP) > np.cos(np.radians(3))


@pytest.mark.parametrize("turn", TURNS)
def test_top_of_a_table_is_no_floor(turn: str) -> None:
    legs = [plate((x, -0.35, z), (0.03, 0, 0.03), (0, 0.35, 0), 300, 0.02) for x in (-0.7, 0.7) for z in (-0.4, 0.4)]
    found = find_up(turned(together(board(0.7, (0.8, 0.5)), *legs), TURNS[turn]))
    assert found @ (TURNS[turn] @ UP) > np.cos(np.radians(3))


@pytest.mark.parametrize("turn", SIX_TURNS)
def test_small_things_far_apart_stand_as_each_of_them(turn: str) -> None:
    """What is low overlaps with its mirror image across the level plane, however it stands."""
    places = np.float32([(-9, 0, 2), (-5, 0, -3), (0, 0, 3), (6, 0, -2), (9, 0, 1)])
    scene = together(*(replace(statue(), means=statue().means + place) for place in places))
    found = find_up(turned(scene, SIX_TURNS[turn]))
    assert found @ (SIX_TURNS[turn] @ UP) > np.cos(np.radians(3))


def cabinet() -> Gaussians:
    """A closed box under the sky, as wide as a sideboard, whose front and back are its largest planes; on four legs."""
    middle = (0.0, -0.5, 0.0)
    x, y, z = np.diag([0.8, 0.35, 0.2])
    sides = ((x, y, z, 3000), (x, z, y, 1500), (y, z, x, 1000))
    box = [
        plate(tuple(middle + side * off), tuple(first), tuple(second), count, 0.03, seed)
        for seed, (first, second, off, count) in enumerate(sides)
        for side in (-1, 1)
    ]
    legs = [ball((a, -0.08, b), 0.07, 300, 0.02, 9) for a in (-0.7, 0.7) for b in (-0.1, 0.1)]
    return together(*(lit(part, np.array(middle)) for part in (*box, *legs)))


@pytest.mark.parametrize("turn", TURNS)
def test_closed_box_is_furniture_and_no_room(turn: str) -> None:
    found = find_up(turned(cabinet(), TURNS[turn]))
    assert found @ (TURNS[turn] @ UP) > np.cos(np.radians(3))


def furnished_room(white: float = 1.0, walls: int = 4) -> Gaussians:
    """A room whose floor and ceiling are as wide, and whose detail lies at half its height: the ceiling is white."""
    floor, ceiling = (plate((0, y, 0), (3, 0, 0), (0, 0, 3), count, size) for y, count, size in WIDE)
    sides = [
        plate(tuple(3 * side * along + [0, -1.25, 0]), (0, 1.25, 0), tuple(3 * across), 3000, 0.09)
        for along, across in (np.eye(3)[[2, 0]], np.eye(3)[[0, 2]])
        for side in (-1, 1)
    ]
    bright = replace(ceiling, sh=np.full((len(ceiling), 1, 3), white, dtype=np.float32))
    return together(floor, bright, *sides[:walls])


def things(height: float, *places: float) -> Gaussians:
    return together(*(ball((x, -height, z), 0.3, 1500, 0.02) for x in places for z in places))


WIDE = ((0.0, 4000, 0.06), (-2.5, 1500, 0.12))  # height, Gaussians and their size: of a floor, of a ceiling


@pytest.mark.parametrize("turn", ["-y", "y"])
def test_ceiling_is_brighter_and_has_less_detail_than_the_floor(turn: str) -> None:
    found = find_up(turned(together(furnished_room(), things(1.25, -1.5, 0.0, 1.5)), TURNS[turn]))
    assert found @ (TURNS[turn] @ UP) > np.cos(np.radians(3))


@pytest.mark.parametrize("turn", SIX_TURNS)
def test_part_of_a_room_does_not_stand_on_its_ceiling(turn: str) -> None:
    """Open to two sides, so that it shows its detail as an object does; from above it shows the back of its ceiling."""
    part = together(furnished_room(white=0.3, walls=2), things(0.5, -2.6, 0.0, 2.6))
    assert find_up(turned(part, SIX_TURNS[turn])) @ (SIX_TURNS[turn] @ UP) > np.cos(np.radians(3))


@pytest.mark.parametrize("turn", ["-y", "y"])
def test_detail_high_above_a_plain_floor_does_not_turn_the_scene(turn: str) -> None:
    walls = [
        plate(tuple(3 * side * along + [0, -1.25, 0]), (0, 1.25, 0), tuple(3 * across), 1500, 0.1)
        for along, across in (np.eye(3)[[0, 2]], np.eye(3)[[2, 0]])
        for side in (-1, 1)
    ]
    trees = [ball((12 * np.cos(a), -1, 12 * np.sin(a)), 2.0, 300, 0.3, 20) for a in np.arange(6)]
    lamps = [ball((x, -2.2, z), 0.2, 300, 0.02) for x in (-2, 0, 2) for z in (-2, 0, 2)]
    scene = together(plate((0, 0, 0), (3, 0, 0), (0, 0, 3), 4000, 0.1), *walls, *lamps, *trees)
    found = find_up(turned(scene, TURNS[turn]))
    assert found @ (TURNS[turn] @ UP) > np.cos(np.radians(3))


@pytest.mark.parametrize("half", [2.5, 12.0])
@pytest.mark.parametrize("turn", SIX_TURNS)
def test_figure_on_a_wide_ground_stands_on_it(turn: str, half: float) -> None:
    scene = together(statue(), plate((0, 0, 0), (half, 0, 0), (0, 0, half), 8000, half / 50, 7))
    found = find_up(turned(scene, SIX_TURNS[turn]))
    assert found @ (SIX_TURNS[turn] @ UP) > np.cos(np.radians(3))


def test_floaters_are_no_part_of_how_an_object_stands() -> None:
    rng = np.random.default_rng(2)
    ways = rng.normal(size=(20, 3))
    ways /= np.linalg.norm(ways, axis=1, keepdims=True)
    floaters = gaussians([0, -0.7, 0] + ways * rng.uniform(0.9, 1.2, (20, 1)), np.full(20, 0.03), ways)
    alone, among = StandingObject(statue()), StandingObject(together(statue(), floaters))
    assert among.solid[:-20].all() and among.solid[-20:].sum() <= 5
    axes = np.array(list(UP_AXES.values()))
    assert np.allclose(among.cues(axes).stable, alone.cues(axes).stable, atol=0.1)


def hills() -> Gaussians:
    """Hilly ground with houses and trees, seen from above."""
    ground = plate((0, 0, 0), (40, 0, 0), (0, 0, 40), 12_000, 0.5, 1)

    def height(x: np.ndarray | float, z: np.ndarray | float) -> np.ndarray:
        return -1.5 * (np.sin(np.asarray(x) / 13) + np.cos(np.asarray(z) / 17))

    means = ground.means.copy()
    means[:, 1] = height(means[:, 0], means[:, 2])
    at = np.random.default_rng(3).uniform(-36, 36, (50, 2))
    return together(replace(ground, means=means), *(ball((x, height(x, z) - 1.5, z), 1.5, 80, 0.3, 4) for x, z in at))


@pytest.mark.parametrize("turn", TURNS)
def test_things_rise_from_hills(turn: str) -> None:
    found = find_up(turned(hills(), TURNS[turn]))
    assert found @ (TURNS[turn] @ UP) > np.cos(np.radians(8))


def test_flat_picture_hangs() -> None:
    picture = plate((0, -1, 0), (1.5, 0, 0), (0, 1, 0), 8000, 0.03)
    assert find_up(picture) @ UP > 0.999
    assert abs(home(picture, None).camera.world_from_camera[2, 2]) > 0.8  # seen from its front


@pytest.mark.parametrize("count", [30, 100, 300])
def test_up_of_few_gaussians_is_that_of_3dgs(count: int) -> None:
    scene = statue()
    few = scene.take(np.random.default_rng(count).choice(len(scene), count, replace=False))
    assert find_up(few) @ UP > 0.999


@pytest.mark.parametrize("turn", TURNS)
def test_town_seen_from_above_stands_on_its_ground(turn: str) -> None:
    at = np.array([(x, z) for x in range(-4, 5, 2) for z in range(-4, 5, 2)]) * 2.0
    houses = [ball((x, -0.3, z), 0.4, 300, 0.06, 7) for x, z in at]
    dark = [replace(house, sh=np.full((300, 1, 3), -1, dtype=np.float32)) for house in houses]  # roofs in the shade
    scene = together(plate((0, 0, 0), (10, 0, 0), (0, 0, 10), 8000, 0.12, 1), *dark)
    found = find_up(turned(scene, TURNS[turn]))
    assert found @ (TURNS[turn] @ UP) > np.cos(np.radians(3))


def test_up_of_degenerate_objects_is_a_direction() -> None:
    scene = statue()
    count = len(scene)
    for odd in (
        replace(scene, means=np.zeros((count, 3), dtype=np.float32)),
        replace(scene, means=scene.means * np.float32([0, 1, 0])),
        replace(scene, means=scene.means * np.float32(1e20)),
        replace(scene, scales=np.full((count, 3), 1e-30, dtype=np.float32)),
        replace(scene, opacities=np.zeros(count, dtype=np.float32)),
        replace(scene, sh=np.full((count, 1, 3), 1e20, dtype=np.float32)),
    ):
        assert np.isclose(np.linalg.norm(find_up(odd)), 1.0)


def test_up_of_a_figure_that_says_nothing_is_that_of_3dgs() -> None:
    np.testing.assert_allclose(find_up(figure()), UP)


def test_flat_head_of_a_figure_is_no_floor() -> None:
    np.testing.assert_allclose(find_up(together(statue(), board(1.4, (0.4, 0.35)))), UP)


def house() -> Gaussians:
    """A low room with a floor and a ceiling alike, things on the floor, and trees far away."""
    return together(
        plate((0, 0, 0), (3, 0, 0), (0, 0, 3), 3000, 0.1, 1),
        plate((0, -2, 0), (3, 0, 0), (0, 0, 3), 3000, 0.1, 2),
        *(ball((x, -0.3, z), 0.3, 600, 0.02, 10) for x in (-1.5, 0, 1.5) for z in (-1.5, 1.5)),
        *(ball((12 * np.cos(a), -1, 12 * np.sin(a)), 2.0, 300, 0.3, 20) for a in np.arange(6)),
    )


@pytest.mark.parametrize("turn", TURNS)
def test_things_stand_on_the_floor_not_on_the_ceiling(turn: str) -> None:
    found = find_up(turned(house(), TURNS[turn]))
    assert found @ (TURNS[turn] @ UP) > np.cos(np.radians(3))


@pytest.mark.parametrize("scale", [0.01, 0.001])
def test_near_plane_does_not_keep_a_small_scene_away(scale: float) -> None:
    scene = figure_on_a_floor()
    small = replace(scene, means=scene.means * np.float32(scale), scales=scene.scales * np.float32(scale))
    options = fitting_near(small, RenderOptions(threads=1))
    assert 0.01 * scene_bulk(small)[1] <= options.near <= 0.1 * scene_bulk(small)[1] and options.threads == 1
    (place,) = find_places(small, 300, 200, up="-y", count=1, options=options)
    where = in_picture(small.means, place.camera)
    assert (where > 0).all() and (where < 1).all() and np.ptp(where, axis=0).max() > 0.6
    assert (hushsplat.render(small).alpha > 0.5).mean() > 0.1  # by itself, too
    assert fitting_near(scene, RenderOptions()).near == NEAR  # as scenes of 3DGS are drawn
    assert fitting_near(small, RenderOptions(near=0.3)).near == 0.3  # as asked for


def test_same_scene_same_cameras() -> None:
    scene = wall_with_clutter().take(np.arange(0, 9_260, 3))
    first = find_places(scene, 90, 60, up="-y")
    second = find_places(scene, 90, 60, up="-y", options=RenderOptions(threads=1))
    assert [place.score for place in first] == [place.score for place in second]
    for one, other in zip(first, second, strict=True):
        np.testing.assert_array_equal(one.camera.world_from_camera, other.camera.world_from_camera)


def test_coarser_level_has_the_same_home() -> None:
    fine, half = figure_on_a_floor(), figure_on_a_floor().take(np.arange(0, 7_000, 2))
    coarse = replace(half, scales=half.scales * np.float32(np.sqrt(2)))
    one, other = home(fine).camera, home(coarse).camera
    assert np.linalg.norm(one.position - other.position) < 0.25 * np.linalg.norm(one.position)


def test_places_are_named_ordered_and_differ() -> None:
    places = find_places(figure_on_a_floor(), 90, 60, up="-y", count=4)
    assert [place.name for place in places] == ["Home", "Place 2", "Place 3", "Place 4"]
    scores = [place.score for place in places]
    assert scores == sorted(scores, reverse=True) and 0 < scores[-1] <= scores[0] <= 1
    ways = [place.camera.world_from_camera[:3, 2] for place in places]
    assert all(ways[i] @ ways[j] < 0.8 for i in range(4) for j in range(i))
    for place in places:
        x, y = in_picture(place.pivot[None], place.camera)[0]
        assert abs(x - 0.5) < 1e-6 and abs(y - 0.5) < 1e-6


@pytest.mark.parametrize("count", [0, 1, 2])
def test_hardly_any_gaussians_still_have_a_camera(count: int) -> None:
    scene = figure().take(np.arange(count))
    places = find_places(scene, 30, 20)
    assert len(places) >= 1 and np.isfinite(places[0].camera.world_from_camera).all()
    if count:
        where = in_picture(scene.means, places[0].camera)
        assert (where > 0).all() and (where < 1).all()
    assert len(tour(scene, 30, 20, seconds=1.0, fps=4.0)) == 4


def test_equal_and_invisible_gaussians_have_a_camera() -> None:
    scene = figure().take(np.arange(50))
    same = replace(scene, means=np.zeros((50, 3), dtype=np.float32))
    unseen = replace(scene, opacities=np.zeros(50, dtype=np.float32))
    for odd in (same, unseen):
        assert np.isfinite(home(odd).camera.world_from_camera).all()


@pytest.mark.parametrize(("width", "height"), [(1, 1), (1, 3000), (3000, 1), (16384, 16384)])
def test_odd_sizes_have_a_camera_of_that_size(width: int, height: int) -> None:
    camera = find_places(figure().take(np.arange(0, 4000, 4)), width, height, up="-y", count=1)[0].camera
    assert (camera.width, camera.height) == (width, height)


def test_tiny_and_huge_scenes_are_seen_behind_the_near_plane() -> None:
    for scale in (0.02, 1e4):
        scene = figure_on_a_floor()
        scene = replace(scene, means=scene.means * np.float32(scale), scales=scene.scales * np.float32(scale))
        ids, _ = hits(scene, home(scene).camera)
        assert (ids >= 0).any()


@pytest.mark.parametrize(("width", "height", "fov", "count"), [(0, 9, 50.0, 1), (9, 9, 180.0, 1), (9, 9, 50.0, 0)])
def test_wrong_arguments_are_refused(width: int, height: int, fov: float, count: int) -> None:
    with pytest.raises(CameraError):
        find_places(figure(), width, height, fov_y_deg=fov, count=count)
    with pytest.raises(HushsplatError, match="up must be one of"):
        find_places(figure(), 9, 9, up="sideways")


def test_uploaded_scene_is_taken_too() -> None:
    scene = figure().take(np.arange(0, 4000, 4))
    uploaded = engine("cpu").upload(scene)
    np.testing.assert_array_equal(home(uploaded).camera.world_from_camera, home(scene).camera.world_from_camera)


def test_tour_of_a_lone_object_is_a_circle_that_begins_at_home() -> None:
    scene = figure_on_a_floor()
    track = tour(scene, 90, 60, up="-y", seconds=2.0, fps=6.0)
    begin = find_places(scene, 90, 60, up="-y")[0]
    np.testing.assert_allclose(track.world_from_camera[0], begin.camera.world_from_camera, atol=1e-6)
    distances = np.linalg.norm(track.world_from_camera[:, :3, 3] - begin.pivot, axis=1)
    np.testing.assert_allclose(distances, distances[0])
    assert (track.width, track.height, len(track)) == (90, 60, 12)


def test_orbit_begins_at_the_camera_and_keeps_its_distance() -> None:
    scene = turned(figure_on_a_floor(), TURNS["z"])
    track = orbit_scene(scene, 64, 48, seconds=2.0, fps=4.0)
    camera = frame_scene(scene, 64, 48)
    np.testing.assert_allclose(track.world_from_camera[0], camera.world_from_camera, atol=1e-6)
    assert len(track) == 8
    heights = track.world_from_camera[:, 2, 3]
    np.testing.assert_allclose(heights, heights[0])


def test_tour_passes_the_places_and_stays_in_the_room() -> None:
    scene = room()
    places = find_places(scene, 90, 60, up="-y", count=5)
    track = tour(scene, 90, 60, up="-y", seconds=6.0, fps=10.0)
    assert len(places) > 1
    positions = track.world_from_camera[:, :3, 3]
    for place in places:
        assert np.linalg.norm(positions - place.camera.position, axis=1).min() < 0.3
    assert (np.abs(positions[:, [0, 2]]) < 3).all() and (positions[:, 1] < 0).all() and (positions[:, 1] > -2.5).all()
    steps = np.linalg.norm(np.diff(positions, axis=0), axis=1)
    assert steps.max() < 0.5  # no jumps


def places_about(search: Search, pivot: np.ndarray, *angles_deg: float) -> list[Place]:
    eyes = [pivot + 2.0 * np.array([np.cos(a), -0.2, np.sin(a)]) for a in np.radians(angles_deg)]
    return [Place(str(number), search.camera(eye, pivot), pivot) for number, eye in enumerate(eyes)]


@pytest.mark.parametrize("wall_z", [None, 1.0, -1.0])
def test_tour_leads_around_what_two_places_look_at(wall_z: float | None) -> None:
    parts = [plate((0, 0, 0), (6, 0, 0), (0, 0, 6), 8000, 0.1), ball((0, -1, 0), 0.4, 2000, 0.03)]
    if wall_z is not None:  # from the ball to far away, on one side
        parts.append(plate((0, -2, 3.5 * wall_z), (0, 2, 0), (0, 0, 3), 8000, 0.08))
    search = Search.of(together(*parts), 90, 60, "-y", 50.0, "cpu", None)
    pivot = np.array([0.0, -1.0, 0.0])
    for ends in ((170, 10), (-170, -10), (10, 170)):  # both shorter ways
        keys = keys_between(search, places_about(search, pivot, *ends))
        offsets = np.array([key.position for key in keys]) - pivot
        np.testing.assert_allclose(np.linalg.norm(offsets, axis=1), 2.0 * np.hypot(1, 0.2), rtol=1e-6)
        side = np.sign(ends[0]) if wall_z is None else -wall_z
        assert np.sign(offsets[len(keys) // 2, 2]) == side
        steps = np.diff(np.unwrap(np.arctan2(offsets[:, 2], offsets[:, 0])))
        assert np.abs(steps).max() <= np.radians(20) + 1e-9 and abs(np.sign(steps).sum()) == len(steps)
        for key in keys:
            ahead = (pivot - key.position) / np.linalg.norm(pivot - key.position)
            np.testing.assert_allclose(key.world_from_camera[:3, 2], ahead, atol=1e-6)


def test_tour_goes_straight_between_places_that_look_at_different_things() -> None:
    search = Search.of(garden(), 90, 60, "-y", 50.0, "cpu", None)
    first, second = np.array([3.0, -1.5, -3.0]), np.array([-3.0, -1.5, -3.0])
    ends = [
        Place("a", search.camera(first, np.array([3.0, -1.0, 0.0])), np.array([3.0, -1.0, 0.0])),
        Place("b", search.camera(second, np.array([-3.0, -1.0, 0.0])), np.array([-3.0, -1.0, 0.0])),
    ]
    positions = np.array([key.position for key in keys_between(search, ends)])
    np.testing.assert_allclose(positions[:, 1:], np.tile(first[1:], (len(positions), 1)), atol=1e-9)


def levels_of(folder: Path) -> list[Camera]:
    return [find_places(load(folder, lod=level), 300, 200, count=1)[0].camera for level in range(4)]


@pytest.mark.real_data
@pytest.mark.parametrize(("name", "degrees"), [("flowers", 30), ("building", 20)])
def test_home_is_alike_in_all_levels_of_detail(real_data: Path, name: str, degrees: float) -> None:
    first, *others = levels_of(real_data / name)
    for other in others:
        turn = first.world_from_camera[:3, 2] @ other.world_from_camera[:3, 2]
        assert turn > np.cos(np.radians(degrees))
