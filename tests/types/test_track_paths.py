"""Generated tracks do what their names say, smoothly and the same each time."""

import numpy as np
import pytest

from hushsplat.types.camera import Camera
from hushsplat.types.errors import CameraError, TrackError
from hushsplat.types.paths import dolly, orbit, reanchored, track_from_cameras, walk
from hushsplat.types.rotations import matrix_from_quaternion
from hushsplat.types.track import Track

UP = np.array([0.0, -1.0, 0.0])


def look_at(eye, target, up=UP, **lens):
    return Camera.look_at(np.asarray(eye, float), np.asarray(target, float), np.asarray(up, float), **lens)


def positions(track):
    return track.world_from_camera[:, :3, 3]


def speeds(track):
    return np.linalg.norm(np.diff(positions(track), axis=0), axis=1)


def turns_deg(track):
    rotations = track.world_from_camera[:, :3, :3]
    traces = np.trace(rotations[1:] @ rotations[:-1].transpose(0, 2, 1), axis1=1, axis2=2)
    return np.degrees(np.arccos(np.clip((traces - 1) / 2, -1, 1)))


def test_orbit_is_a_circle_that_looks_at_its_centre():
    center = np.array([1.0, 2.0, 3.0])
    track = orbit(center, 2.0, elevation=0.5, seconds=4.0, fps=25.0, width=320, height=200, fov_y_deg=40.0)
    assert len(track) == 100 and track.width == 320 and track.height == 200
    assert track.times_s[1] == pytest.approx(0.04)
    assert 2 * np.degrees(np.arctan(100 / track.fy)) == pytest.approx(40)
    np.testing.assert_allclose(np.linalg.norm(positions(track) - center, axis=1), np.hypot(2, 0.5))
    np.testing.assert_allclose((positions(track) - center) @ UP, 0.5)
    to_center = center - positions(track)
    to_center /= np.linalg.norm(to_center, axis=1, keepdims=True)
    np.testing.assert_allclose(track.world_from_camera[:, :3, 2], to_center, atol=1e-12)
    assert (track.world_from_camera[:, :3, 1] @ UP < 0).all()  # the picture's down is down


def test_orbit_loops_without_a_seam():
    track = orbit((0, 0, 0), 1.0, turns=2.0, seconds=2.0)
    seam = np.linalg.norm(positions(track)[-1] - positions(track)[0])
    np.testing.assert_allclose(speeds(track), seam, rtol=1e-9)


@pytest.mark.parametrize("up", [(0, 0, 1), (1, 0, 0), (0, -1, 0), (1, 1, 1)])
def test_orbit_about_any_up(up):
    track = orbit((0, 0, 0), 1.0, up=up, seconds=1.0)
    np.testing.assert_allclose(positions(track) @ np.array(up, float), 0, atol=1e-12)


def test_dolly_is_straight_and_includes_both_ends():
    track = dolly((0, 0, 0), (3, 0, 0), (1, 0, 5), seconds=1.0, fps=24.0)
    np.testing.assert_allclose(positions(track)[[0, -1]], [[0, 0, 0], [3, 0, 0]], atol=1e-12)
    np.testing.assert_allclose(speeds(track), 3 / 23)
    along = dolly((0, 0, 0), (3, 0, 0), seconds=1.0)
    np.testing.assert_allclose(along.world_from_camera[:, :3, 2], [[1, 0, 0]] * 30, atol=1e-12)
    assert len(dolly((0, 0, 0), (3, 0, 0), seconds=0.001)) == 1


def test_walk_passes_its_waypoints_as_a_person_would():
    waypoints = np.array([[0.0, 0, 0], [3, 0, 0], [3, 0, 4]])
    track = walk(waypoints, seed=1)
    assert track.duration_s == pytest.approx(7 / 1.2, rel=0.1)
    distance = np.linalg.norm(positions(track)[:, None] - waypoints, axis=2).min(axis=0)
    assert distance.max() < 0.12
    assert np.abs(positions(track) @ UP).max() < 0.1 and np.ptp(positions(track) @ UP) > 0.03
    assert speeds(track).max() < 2 * 1.2 / 30  # no jumps
    assert turns_deg(track).max() < 6  # a right angle is not turned within a frame
    assert track.world_from_camera[5, 0, 2] > 0.9 and track.world_from_camera[-1, 2, 2] > 0.9
    assert (track.world_from_camera[:, :3, 1] @ UP < -0.9).all()  # the picture's down is down


def test_walk_is_deterministic():
    waypoints = [[0, 0, 0], [3, 0, 0]]
    same, other = walk(waypoints, seed=4), walk(waypoints, seed=5)
    np.testing.assert_array_equal(same.world_from_camera, walk(waypoints, seed=4).world_from_camera)
    assert np.abs(same.world_from_camera - other.world_from_camera).max() > 1e-3


def test_walk_there_and_back_turns_round_in_time():
    track = walk([[0, 0, 0], [4, 0, 0], [0, 0, 0]], seed=2)
    assert turns_deg(track).max() < 20  # 180 degrees in a good half second, not in one frame
    assert track.world_from_camera[-1, 0, 2] < -0.9


def test_walk_looks_at_its_target():
    track = walk([[0, 0, 0], [2, 0, 0]], (1, 0, 5), seconds=3.0)
    to_target = np.array([1, 0, 5]) - positions(track)
    cosine = np.sum(to_target * track.world_from_camera[:, :3, 2], axis=1) / np.linalg.norm(to_target, axis=1)
    assert np.degrees(np.arccos(cosine)).max() < 15 and np.degrees(np.arccos(cosine)).max() > 0.1


def test_walk_scales_with_the_scene():
    small, large = walk([[0, 0, 0], [1, 0, 0]], seconds=2.0), walk([[0, 0, 0], [100, 0, 0]], unit=100.0, seconds=2.0)
    np.testing.assert_allclose(positions(large), 100 * positions(small), atol=1e-9)


def key_cameras(n=9):
    rng = np.random.default_rng(7)
    angles = np.linspace(0, 2, n)
    eyes = np.stack([np.cos(angles), 0.1 * rng.normal(size=n), np.sin(angles)], axis=1) * 3
    return [look_at(eye, (0, 0, 0), width=64, height=48) for eye in eyes]


def test_flight_goes_through_its_cameras():
    cameras = key_cameras()
    track = track_from_cameras(cameras, seconds=60.0, fps=60.0)
    assert (track.width, track.height, track.fx) == (64, 48, cameras[0].fx)
    poses = track.world_from_camera
    np.testing.assert_allclose(poses[0], cameras[0].world_from_camera, atol=1e-12)
    np.testing.assert_allclose(poses[-1], cameras[-1].world_from_camera, atol=1e-12)
    for camera in cameras:  # the keys lie on the path, position and rotation at the same time
        assert np.abs(poses - camera.world_from_camera).max(axis=(1, 2)).min() < 2e-3


def test_flight_is_even_and_smooth():
    straight = [look_at((x, 0, 0), (x, 0, 1)) for x in (0.0, 1.0, 1.5, 4.0, 4.1, 9.0)]
    steps = speeds(track_from_cameras(straight, seconds=5.0))
    assert steps.max() / steps.min() < 1.03
    curved = track_from_cameras(key_cameras(), seconds=10.0)
    assert np.abs(np.diff(speeds(curved))).max() < 0.05 * speeds(curved).mean()
    assert np.abs(np.diff(turns_deg(curved))).max() < 0.1 * turns_deg(curved).mean()


def test_pan_on_a_tripod_turns_evenly():
    angles = np.radians([0, 10, 50, 60, 90])
    cameras = [look_at((5, 0, 0), (5 + np.cos(a), 0, np.sin(a))) for a in angles]
    steps = turns_deg(track_from_cameras(cameras, seconds=4.0))
    assert steps.max() / steps.min() < 1.05 and steps.sum() == pytest.approx(90, abs=0.1)


def test_flight_of_one_camera_is_a_still():
    camera = key_cameras()[3]
    for cameras in ([camera], [camera] * 3):
        track = track_from_cameras(cameras, seconds=1.0, fps=10.0)
        assert len(track) == 10
        np.testing.assert_allclose(track.world_from_camera, [camera.world_from_camera] * 10, atol=1e-12)


def recorded(seed=0, n=50):
    rng = np.random.default_rng(seed)
    poses = np.tile(np.eye(4), (n, 1, 1))
    poses[:, :3, 3] = np.cumsum(rng.normal(size=(n, 3)), axis=0)
    poses[:, :3, :3] = matrix_from_quaternion(rng.normal(size=(n, 4)))
    return Track(80, 60, 70.0, 70.0, 40.0, 30.0, np.arange(n) / 30, poses)


@pytest.mark.parametrize("at", ["first", "median"])
def test_reanchored_keeps_the_motion(at):
    track, anchor = recorded(), look_at((5, 6, 7), (1, 0, 2))
    moved = reanchored(track, anchor, 0.25, at=at)
    origin = 0
    if at == "median":
        middle = np.median(positions(track), axis=0)
        origin = np.argmin(np.linalg.norm(positions(track) - middle, axis=1))
    np.testing.assert_allclose(moved.world_from_camera[origin], anchor.world_from_camera, atol=1e-12)
    own = [np.linalg.inv(t.world_from_camera[origin]) @ t.world_from_camera for t in (track, moved)]
    np.testing.assert_allclose(own[1][:, :3, :3], own[0][:, :3, :3], atol=1e-12)
    np.testing.assert_allclose(own[1][:, :3, 3], 0.25 * own[0][:, :3, 3], atol=1e-12)
    np.testing.assert_array_equal(moved.times_s, track.times_s)
    assert moved.fx == track.fx


@pytest.mark.parametrize("up", [(0, 0, 1), (0, -1, 0), (0.2, 0.9, 0.1)])
def test_reanchored_with_up_keeps_the_ground_level(up):
    track = orbit((0, 0, 0), 2.0, elevation=1.0, seconds=1.0)  # looks down all the time, stays at its height
    up = np.array(up) / np.linalg.norm(up)
    anchor = look_at((5, 6, 7), (4, 5.5, 7.2), up)
    moved = reanchored(track, anchor, 2.0, up=up)
    np.testing.assert_allclose(positions(moved)[0], anchor.position, atol=1e-12)
    np.testing.assert_allclose(positions(moved) @ up, anchor.position @ up, atol=1e-9)
    for axis in (moved.world_from_camera[0, :3, 2], anchor.world_from_camera[:3, 2]):
        axis -= (axis @ up) * up
    cosine = moved.world_from_camera[0, :3, 2] @ anchor.world_from_camera[:3, 2]
    lengths = np.linalg.norm([moved.world_from_camera[0, :3, 2], anchor.world_from_camera[:3, 2]], axis=1)
    assert cosine == pytest.approx(lengths.prod(), abs=1e-9)  # the same compass direction
    sideways = moved.world_from_camera[:, :3, 0] @ up
    np.testing.assert_allclose(sideways, 0, atol=1e-9)


def test_reanchored_with_up_when_the_track_hardly_turns_or_looks_down():
    for target, eye in (((0, 0, 5), (0, 0, 0)), ((0, 5, 0), (0, 0, 0))):
        track = track_from_cameras([look_at(eye, target), look_at(np.add(eye, 0.1), target)], 1.0)
        moved = reanchored(track, look_at((0, 0, 0), (1, 0, 0), (0, 0, 1)), 1.0, up=(0, 0, 1))
        assert np.isfinite(moved.world_from_camera).all()


def test_wrong_path_arguments_are_refused():
    camera = look_at((0, 0, 0), (0, 0, 1))
    cases = [
        (lambda: orbit((0, 0, 0), 0.0), "an orbit needs a radius > 0"),
        (lambda: orbit((0, 0), 1.0), "center must be three finite numbers"),
        (lambda: orbit((0, 0, np.nan), 1.0), "center must be three finite numbers"),
        (lambda: orbit((0, 0, 0), 1.0, up=(0, 0, 0)), "up must be a direction, but its length is 0"),
        (lambda: orbit((0, 0, 0), 1.0, seconds=0.0), "seconds and fps must be finite and > 0"),
        (lambda: orbit((0, 0, 0), 1.0, seconds=1e9), "frames are more than 1000000; make the track shorter"),
        (lambda: walk([[0, 0, 0]]), "at least two finite waypoints of 3 coordinates, got shape"),
        (lambda: walk([[0, 0, 0], [1, 0, 0]], unit=0.0), "unit is world units per metre"),
        (lambda: walk([[1, 2, 3], [1, 2, 3]]), "all waypoints of the walk are the same place"),
        (lambda: walk([[0, 0, 0], [0, 2, 0]]), "lie on a line along up"),
        (lambda: track_from_cameras([], 1.0), "at least one camera, got none"),
        (lambda: reanchored(recorded(), camera, -1.0), "scale must be finite and > 0, got -1"),
    ]
    for wish, message in cases:
        with pytest.raises(TrackError, match=message):
            wish()
    with pytest.raises(CameraError, match="is at its own target"):
        dolly((0, 0, 0), (0, 0, 0))
    with pytest.raises(CameraError, match="fov_y_deg must lie between"):
        orbit((0, 0, 0), 1.0, fov_y_deg=200.0)
