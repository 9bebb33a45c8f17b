"""Places to look from: inside the scene, upright, and smooth along the walk."""

import numpy as np
import pytest

from hushsplat.synth import home_camera, view_cameras, walk_track
from hushsplat.synth.plan import GARDEN, ROOM
from hushsplat.types.errors import CameraError, TrackError


def test_home_looks_from_the_room_towards_the_garden() -> None:
    camera = home_camera(400, 266)
    assert (camera.width, camera.height) == (400, 266)
    assert -ROOM.z < camera.position[2] < 0
    assert camera.world_from_camera[2, 2] > 0.8
    assert camera.world_from_camera[1, 1] > 0.9  # the picture's down is the world's +y


def test_home_shows_the_same_at_every_size() -> None:
    small, large = home_camera(400, 266), home_camera(800, 532)
    assert large.fx == pytest.approx(2 * small.fx)


def test_walk_goes_out_and_turns_back() -> None:
    track = walk_track(seconds=5, fps=12, width=320, height=200)
    eyes = track.world_from_camera[:, :3, 3]
    ahead = track.world_from_camera[:, 2, 2]
    assert len(track) == 60
    assert (track.width, track.height) == (320, 200)
    assert eyes[0, 2] < -4
    assert eyes[:, 2].max() > 6
    assert ahead[0] > 0.8
    assert ahead[-1] < -0.8
    assert (np.abs(eyes[:, 1] + 1.5) < 0.15).all()


def test_walk_is_smooth() -> None:
    track = walk_track(10, 30)
    eyes = track.world_from_camera[:, :3, 3]
    steps = np.linalg.norm(np.diff(eyes, axis=0), axis=1)
    relative = track.world_from_camera[1:, :3, :3] @ track.world_from_camera[:-1, :3, :3].transpose(0, 2, 1)
    turns_deg = np.degrees(np.arccos(np.clip((np.trace(relative, axis1=1, axis2=2) - 1) / 2, -1, 1)))
    assert 0.01 < np.median(steps) < 0.08  # metres a frame: a brisk walk
    assert steps.max() < 0.1
    assert turns_deg.max() < 6


def test_walk_keeps_clear_of_the_walls() -> None:
    eyes = walk_track(20, 30).world_from_camera[:, :3, 3]
    indoors = eyes[eyes[:, 2] < 0.3]
    assert (np.abs(indoors[:, 0]) < 1.0).all()
    assert (np.abs(eyes[:, 0]) < GARDEN.x - 1).all()


def test_a_walk_of_one_frame() -> None:
    assert len(walk_track(0.01, 1)) == 1


@pytest.mark.parametrize(
    ("seconds", "fps", "got"),
    [(0, 30, "0 s at 30 fps"), (10, 0, "10 s at 0 fps"), (float("nan"), 30, "nan s at 30 fps"), (9, 1e9, "9 s at")],
)
def test_bad_walks_are_refused(seconds: float, fps: float, got: str) -> None:
    with pytest.raises(TrackError, match=f"0 to 3600 seconds at 0 to 1000 fps, got {got}"):
        walk_track(seconds, fps)


def test_view_cameras_are_in_the_room_and_in_the_garden() -> None:
    cameras = view_cameras(80, 160, 106)
    eyes = np.array([camera.position for camera in cameras])
    assert len(cameras) == 80
    assert {(camera.width, camera.height) for camera in cameras} == {(160, 106)}
    assert 0.4 < (eyes[:, 2] < 0).mean() < 0.8
    assert (np.abs(eyes[:, 0]) < GARDEN.x).all()
    assert ((eyes[:, 2] > -ROOM.z) & (eyes[:, 2] < GARDEN.z)).all()
    assert ((eyes[:, 1] > -2) & (eyes[:, 1] < -1)).all()


def test_fewer_views_are_the_first_of_more() -> None:
    few, many = view_cameras(5), view_cameras(12)
    assert all(np.array_equal(a.world_from_camera, b.world_from_camera) for a, b in zip(few, many, strict=False))


@pytest.mark.parametrize("count", [0, -1, 100_001])
def test_bad_numbers_of_views_are_refused(count: int) -> None:
    with pytest.raises(CameraError, match=f"between 1 and 100000 cameras, got {count}"):
        view_cameras(count)
