"""Which way is up and where to stand, on scenes whose answer is known."""

from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from hushsplat.io.scenes.scene import load
from hushsplat.types.errors import CameraError
from hushsplat.types.framing import guess_camera
from hushsplat.types.gaussians import Gaussians
from hushsplat.types.rotations import quaternion_from_matrix
from hushsplat.types.up import UP_AXES, guess_up, up_direction

QUARTER_TURN_X = np.array([[1, 0, 0], [0, 0, 1], [0, -1, 0]], dtype=np.float64)  # y to -z, z to y


def table_on_a_floor(world_from_here: np.ndarray | None = None) -> Gaussians:
    """Surfels of a floor at y = 0, a round table of detail above it (-y is up), turned by a rotation."""
    rng = np.random.default_rng(5)
    floor = np.stack([rng.uniform(-4, 4, 3000), np.zeros(3000), rng.uniform(-4, 4, 3000)], axis=1)
    things = rng.normal((0, -1, 0), 0.25, (3000, 3))
    turn = np.eye(3) if world_from_here is None else world_from_here
    lying = quaternion_from_matrix(turn @ QUARTER_TURN_X.T)  # normal along y
    anyhow = rng.normal(size=(3000, 4))
    anyhow /= np.linalg.norm(anyhow, axis=1, keepdims=True)
    return Gaussians(
        means=(np.concatenate([floor, things]) @ turn.T).astype(np.float32),
        scales=np.repeat(np.float32([[0.2, 0.2], [0.02, 0.02]]), 3000, axis=0),
        rotations=np.concatenate([np.tile(lying, (3000, 1)), anyhow]).astype(np.float32),
        opacities=np.full(6000, 0.9, dtype=np.float32),
        sh=np.zeros((6000, 1, 3), dtype=np.float32),
    )


TURNS = {
    "-y": np.eye(3),
    "y": np.diag([1.0, -1.0, -1.0]),
    "z": np.array([[1, 0, 0], [0, 0, 1], [0, -1, 0]], dtype=np.float64),  # -y goes to z
}


@pytest.mark.parametrize("up", TURNS)
def test_up_is_where_the_floor_is_not(up: str) -> None:
    assert guess_up(table_on_a_floor(TURNS[up])) == up


def test_up_without_a_floor_is_that_of_3dgs() -> None:
    rng = np.random.default_rng(1)
    scene = table_on_a_floor().take(np.arange(3000, 6000))
    assert guess_up(scene) == "-y"
    assert guess_up(scene.take(rng.integers(0, 3000, 0))) == "-y"


@pytest.mark.parametrize("up", TURNS)
def test_camera_looks_at_the_detail_from_above(up: str) -> None:
    scene = table_on_a_floor(TURNS[up])
    camera = guess_camera(scene, 300, 200)
    upward, table = np.array(UP_AXES[up]), TURNS[up] @ (0, -1, 0)
    in_camera = camera.camera_from_world @ [*table, 1]
    assert np.abs(in_camera[:2]).max() < 0.2  # in the middle of the picture
    assert in_camera[2] > 0.5
    assert (camera.position - table) @ upward > 0.1
    assert -camera.world_from_camera[:3, 1] @ upward > 0.8  # upright
    assert (camera.width, camera.height) == (300, 200)


def test_camera_goes_where_nothing_is_in_the_way() -> None:
    table = table_on_a_floor()
    free = guess_camera(table, 300, 200)
    offset = free.position - (0, -1, 0)
    wall = table.take(np.arange(2000))
    rng = np.random.default_rng(2)
    means = np.float32((0, -1, 0) + 0.6 * offset + rng.normal(0, 0.3, (2000, 3)))
    walled = Gaussians(
        np.concatenate([table.means, means]),
        np.concatenate([table.scales, wall.scales]),
        np.concatenate([table.rotations, wall.rotations]),
        np.concatenate([table.opacities, wall.opacities]),
        np.concatenate([table.sh, wall.sh]),
    )
    other = guess_camera(walled, 300, 200)
    assert np.linalg.norm(other.position - free.position) > 0.5


def test_all_of_an_open_scene_is_in_the_picture() -> None:
    things = table_on_a_floor().take(np.arange(3000, 6000))
    things = replace(things, scales=things.scales / 50)  # a cloud so thin that it hides nothing
    camera = guess_camera(things, 300, 200)
    x, y, z = (things.means @ camera.camera_from_world[:3, :3].T + camera.camera_from_world[:3, 3]).T
    column, row = camera.fx * x / z + camera.cx, camera.fy * y / z + camera.cy
    inside = (z > 0) & (column > 0) & (column < 300) & (row > 0) & (row < 200)
    assert inside.mean() > 0.9
    assert np.ptp(row[inside]) > 100  # and large


def test_empty_scene_and_one_gaussian_have_a_camera() -> None:
    scene = table_on_a_floor()
    for count in (0, 1):
        camera = guess_camera(scene.take(np.arange(count)), 40, 30)
        assert np.isfinite(camera.world_from_camera).all()


def test_up_by_name_by_numbers_or_not_at_all() -> None:
    scene = table_on_a_floor()
    np.testing.assert_allclose(up_direction(scene, (0, 0, 2)), (0, 0, 1))
    np.testing.assert_allclose(up_direction(scene, "z"), (0, 0, 1))
    np.testing.assert_allclose(up_direction(scene), (0, -1, 0))
    for name, axis in (("x", (1, 0, 0)), ("-x", (-1, 0, 0)), ("+y", (0, 1, 0)), ("-z", (0, 0, -1)), ("+z", (0, 0, 1))):
        np.testing.assert_allclose(up_direction(scene, name), axis)


@pytest.mark.parametrize("up", ["w", (0, 0), (0, 0, 0), (0, np.nan, 1), ("a", "b", "c")])
def test_wrong_up_is_refused(up: object) -> None:
    with pytest.raises(CameraError, match="up must be one of -y, y, z, -z, x, -x or a direction of three"):
        up_direction(table_on_a_floor(), up)


@pytest.mark.parametrize(("width", "height", "fov"), [(0, 10, 50.0), (10, 10, 0.0), (10, 10, 180.0)])
def test_wrong_lens_is_refused(width: int, height: int, fov: float) -> None:
    with pytest.raises(CameraError, match="a picture needs 1 px and a fov between 0 and 180"):
        guess_camera(table_on_a_floor(), width, height, fov_y_deg=fov)


@pytest.mark.real_data
@pytest.mark.parametrize(
    ("name", "up"),
    [
        ("bonsai/bonsai-7k.splat", "-y"),
        ("flowers", "-y"),
        ("showroom/3_0", "z"),
        ("showroom/3_1", "z"),
        ("playbot/0_0", "-y"),
        ("biker/biker.spz", "-y"),
    ],
)
def test_up_of_real_scenes(real_data: Path, name: str, up: str) -> None:
    assert guess_up(load(real_data / name)) == up
