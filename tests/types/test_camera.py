from dataclasses import replace

import numpy as np
import pytest

from hushsplat.types.camera import Camera, look_at_pose
from hushsplat.types.errors import CameraError

VIEW = Camera(80, 60, 50.0, 40.0, 39.0, 31.0, np.eye(4))


def projected(camera: Camera, point) -> np.ndarray:
    x, y, z = camera.camera_from_world[:3] @ [*point, 1]
    return np.array([camera.fx * x / z + camera.cx, camera.fy * y / z + camera.cy, z])


@pytest.mark.parametrize(
    ("eye", "target", "up"),
    [
        ((1, 2, 3), (4, 6, 3), (0, 0, 1)),  # integers, as people type them
        ([1.0, 2, 3], [4, 6.0, 3], [0, 0.0, 1]),
        (np.array([1, 2, 3]), np.array([4, 6, 3]), np.array([0, 0, 1])),
    ],
)
def test_look_at_by_hand(eye, target, up):
    camera = Camera.look_at(eye, target, up, width=100, height=60, fov_y_deg=90.0)
    assert (camera.fx, camera.fy, camera.cx, camera.cy) == (pytest.approx(30), pytest.approx(30), 50, 30)
    np.testing.assert_allclose(camera.position, [1, 2, 3])
    np.testing.assert_allclose(camera.world_from_camera[:3, 2], [0.6, 0.8, 0])
    np.testing.assert_allclose(projected(camera, (4, 6, 3)), [50, 30, 5], atol=1e-9)
    above = projected(camera, (4, 6, 3.5))
    np.testing.assert_allclose(above, [50, 30 - 30 * 0.5 / 5, 5])  # up in the world is up in the picture: smaller y


def test_looking_along_up_is_still_a_rotation():
    for target in ((0, -5, 0), (0, 5, 0)):
        pose = look_at_pose((0, 0, 0), target, (0, -1, 0))
        np.testing.assert_allclose(pose[:3, :3] @ pose[:3, :3].T, np.eye(3), atol=1e-12)
        assert np.linalg.det(pose[:3, :3]) == pytest.approx(1)
        np.testing.assert_allclose(pose[:3, 2], np.array(target) / 5)


def test_the_inverse_pose():
    camera = Camera.look_at((1.0, 2.0, 3.0), (0.0, 0.0, 0.0))
    np.testing.assert_allclose(camera.camera_from_world @ camera.world_from_camera, np.eye(4), atol=1e-12)


def test_a_resized_picture_shows_the_same_view():
    half = VIEW.resized(40)
    assert (half.width, half.height, half.fx, half.fy, half.cx, half.cy) == (40, 30, 25, 20, 19.5, 15.5)
    stretched = VIEW.resized(160, 60)
    assert (stretched.fx, stretched.fy, stretched.cx, stretched.cy) == (100, 40, 78, 31)
    assert VIEW.resized(1).height == 1


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"width": 0}, "a picture of 0×60 px is outside 1..16384 px a side"),
        ({"height": 16385}, "a picture of 80×16385 px is outside"),
        ({"fx": 0.0}, "focal lengths must be finite and > 0, got fx=0.0"),
        ({"fx": 1e-30}, "focal lengths must be 1e-09 to 1e\\+30 px, got 1e-30"),
        ({"fy": float("inf")}, "focal lengths must be finite and > 0, got .*fy=inf"),
        ({"cx": float("nan")}, "the principal point must be finite, got cx=nan"),
        ({"world_from_camera": np.full((4, 4), np.nan)}, "must be a finite 4×4 matrix"),
        ({"world_from_camera": 2 * np.eye(4)}, "without scale or mirroring"),
        ({"world_from_camera": np.diag([-1.0, 1, 1, 1])}, "without scale or mirroring"),
    ],
)
def test_an_unusable_camera_is_refused(change, message):
    with pytest.raises(CameraError, match=message):
        replace(VIEW, **change)


@pytest.mark.parametrize("fov", [0.0, 180.0, float("nan")])
def test_an_impossible_field_of_view_is_refused(fov):
    with pytest.raises(CameraError, match="fov_y_deg must lie between 0 and 180"):
        Camera.look_at((0, 0, 0), (0, 0, 1), fov_y_deg=fov)


def test_camera_at_its_own_target_is_refused():
    with pytest.raises(CameraError, match="is at its own target"):
        Camera.look_at((1, 2, 3), (1, 2, 3))
    for eye in ((1, 2), (0, float("nan"), 0)):
        with pytest.raises(CameraError, match="eye, target and up must be three finite numbers each"):
            Camera.look_at(eye, (0, 0, 1))
