"""A track: what it refuses, and what it shows between its poses."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from hushsplat.types.errors import CameraError, TrackError
from hushsplat.types.rotations import matrix_from_quaternion, quaternion_from_matrix
from hushsplat.types.splines import EvenPace, curve, tangents
from hushsplat.types.track import MAX_FRAMES, Track


def make_track(times, positions, quaternions=None):
    poses = np.tile(np.eye(4), (len(times), 1, 1))
    poses[:, :3, 3] = positions
    if quaternions is not None:
        poses[:, :3, :3] = matrix_from_quaternion(np.asarray(quaternions, dtype=np.float64))
    return Track(80, 60, 70.0, 71.0, 40.0, 30.0, np.asarray(times, dtype=np.float64), poses)


def random_track(seed, n=40, fps=30.0):
    rng = np.random.default_rng(seed)
    return make_track(np.arange(n) / fps, rng.normal(size=(n, 3)), rng.normal(size=(n, 4)))


def turning(angles):
    """Turns about the y axis."""
    half = np.asarray(angles) / 2
    return np.stack([np.cos(half), 0 * half, np.sin(half), 0 * half], axis=1)


@pytest.mark.parametrize("n", [1, 2, 3, 40])
def test_resampling_at_its_own_rate_changes_nothing(n):
    track = random_track(3, n)
    again = track.resampled(30.0)
    np.testing.assert_allclose(again.times_s, track.times_s, atol=1e-9)
    np.testing.assert_allclose(again.world_from_camera, track.world_from_camera, atol=1e-9)


@given(st.integers(0, 50), st.integers(2, 12))
def test_interpolation_is_exact_at_the_poses(seed, n):
    rng = np.random.default_rng(seed)
    times = np.cumsum(rng.uniform(0.01, 2.0, size=n))
    track = make_track(times, rng.normal(size=(n, 3)), rng.normal(size=(n, 4)))
    again = track.interpolate(times)
    np.testing.assert_array_equal(again.world_from_camera[:, :3, 3], track.world_from_camera[:, :3, 3])
    np.testing.assert_allclose(again.world_from_camera, track.world_from_camera, atol=1e-12)


def test_even_motion_stays_even():
    times = np.array([0.0, 0.1, 0.5, 0.6, 2.0])  # poses may be unevenly apart
    track = make_track(times, times[:, None] * [1.0, 2.0, -1.0], turning(0.7 * times))
    fine = track.resampled(100.0)
    np.testing.assert_allclose(
        np.diff(fine.world_from_camera[:, :3, 3], axis=0), [[0.01, 0.02, -0.01]] * 200, atol=1e-12
    )
    expected = matrix_from_quaternion(turning(0.7 * fine.times_s))
    np.testing.assert_allclose(fine.world_from_camera[:, :3, :3], expected, atol=1e-12)


def test_positions_have_no_kinks():
    track = random_track(5, 12, fps=1.0)
    before, at, after = (track.interpolate(np.arange(1.0, 11.0) + d) for d in (-1e-6, 0.0, 1e-6))
    left = (at.world_from_camera - before.world_from_camera)[:, :3, 3] / 1e-6
    right = (after.world_from_camera - at.world_from_camera)[:, :3, 3] / 1e-6
    np.testing.assert_allclose(left, right, atol=1e-4)


def test_rotations_take_the_short_way_whatever_their_signs():
    track = make_track([0.0, 1.0], np.zeros((2, 3)), turning([3.0, 2 * np.pi - 3.0]))  # 0.28 apart, not 6
    middle = track.interpolate(np.array([0.5])).world_from_camera[0, :3, :3]
    np.testing.assert_allclose(middle, matrix_from_quaternion(turning([np.pi]))[0], atol=1e-12)


def test_speed():
    track = make_track([1.0, 2.0, 3.0], [[0, 0, 0], [1, 0, 0], [2, 0, 0]])
    fast, slow = track.resampled(10.0, speed=2.0), track.resampled(10.0, speed=0.5)
    assert len(fast) == 11 and len(slow) == 41
    assert fast.times_s[0] == slow.times_s[0] == 1.0
    np.testing.assert_allclose(fast.world_from_camera[:, 0, 3], np.linspace(0, 2, 11), atol=1e-12)
    np.testing.assert_allclose(slow.world_from_camera[:, 0, 3], np.linspace(0, 2, 41), atol=1e-12)


def test_last_frame_is_the_last_whole_one():
    track = make_track([0.0, 1.05], [[0, 0, 0], [1.05, 0, 0]])
    assert track.resampled(10.0).times_s[-1] == pytest.approx(1.0)
    assert len(track.resampled(0.5)) == 1


def test_one_pose_stays_one_pose():
    track = random_track(1, 1)
    assert len(track.resampled(60.0, 3.0)) == 1
    again = track.interpolate(track.times_s)
    np.testing.assert_array_equal(again.world_from_camera, track.world_from_camera)


def test_resampling_keeps_intrinsics():
    track = random_track(1).resampled(12.0)
    assert (track.width, track.height, track.fx, track.fy, track.cx, track.cy) == (80, 60, 70.0, 71.0, 40.0, 30.0)


@pytest.mark.parametrize("times", [[-0.1], [0.5, 1.5], [np.nan]])
def test_outside_times_are_refused(times):
    track = make_track([0.0, 1.0], np.zeros((2, 3)))
    with pytest.raises(TrackError, match="times from 0 to 1 s exist; cannot interpolate outside"):
        track.interpolate(np.array(times))


def test_rates_that_are_not_positive_are_refused():
    track = make_track([0.0, 1.0], np.zeros((2, 3)))
    for fps, speed in [(0.0, 1.0), (-1.0, 1.0), (np.nan, 1.0), (30.0, 0.0), (30.0, np.inf)]:
        with pytest.raises(TrackError, match="fps and speed must be finite and > 0"):
            track.resampled(fps, speed)
    with pytest.raises(TrackError, match=f"1e\\+12 frames are more than {MAX_FRAMES}"):
        track.resampled(1e12)


def test_bad_tracks_are_refused():
    eye = np.eye(4)
    with pytest.raises(TrackError, match="as many poses as times, got 0 and 0"):
        make_track([], np.zeros((0, 3)))
    with pytest.raises(TrackError, match="strictly increasing"):
        make_track([0.0, 0.0], np.zeros((2, 3)))
    with pytest.raises(TrackError, match="strictly increasing"):
        make_track([0.0, np.inf], np.zeros((2, 3)))
    with pytest.raises(TrackError, match="pose 1 of the track has a value that is not finite"):
        make_track([0.0, 1.0], [[0, 0, 0], [0, np.nan, 0]])
    for bad in (2 * eye, np.diag([1.0, 1, -1, 1]), np.zeros((4, 4)), 1e200 * eye):
        with pytest.raises(TrackError, match="pose 1 of the track must be a rotation and a position"):
            Track(8, 8, 8.0, 8.0, 4.0, 4.0, np.array([0.0, 1.0]), np.stack([eye, bad]))
    with pytest.raises(CameraError, match="focal lengths"):
        Track(8, 8, -8.0, 8.0, 4.0, 4.0, np.array([0.0]), eye[None])


@given(st.lists(st.floats(1e-3, 1e3), min_size=1, max_size=8), st.integers(0, 1000))
def test_quaternion_curves_never_vanish(steps, seed):
    rng = np.random.default_rng(seed)
    knots = np.concatenate([[0.0], np.cumsum(steps)])
    quaternions = rng.normal(size=(len(knots), 4))
    quaternions /= np.linalg.norm(quaternions, axis=1, keepdims=True)
    for i in range(1, len(knots)):
        if quaternions[i] @ quaternions[i - 1] < 0:
            quaternions[i] *= -1
    points = curve(knots, quaternions, np.linspace(0, knots[-1], 500))
    assert np.linalg.norm(points, axis=1).min() > 0.07


def test_tangents_of_a_parabola_are_exact():
    knots = np.array([0.0, 1.0, 1.5, 3.0])
    values = (3 * knots + knots**2)[:, None]
    np.testing.assert_allclose(tangents(knots, values)[:, 0], 3 + 2 * knots, rtol=1e-12)


def test_no_overshoot_beside_a_jump():
    knots = np.array([0.0, 0.01, 1.0, 2.0])  # a fast step, then next to nothing
    values = np.array([[0.0], [1.0], [1.01], [1.02]])
    assert curve(knots, values, np.linspace(0, 2, 1000)).max() <= 1.02 + 1e-12


def test_even_pace_is_even():
    corner = EvenPace(np.array([[0.0, 0], [1, 0], [1, 0], [1, 4], [6, 4]]))  # uneven, with a point given twice
    places = corner.at(np.linspace(0, 1, 400))
    np.testing.assert_array_equal(places[[0, -1]], [[0, 0], [6, 4]])
    speeds = np.linalg.norm(np.diff(places, axis=0), axis=1)
    assert speeds.max() / speeds.min() < 1.02


def test_quaternions_of_resampled_turns_are_continuous():
    angles = np.linspace(0, 6 * np.pi, 60)
    track = make_track(np.arange(60) / 10, np.zeros((60, 3)), turning(angles))
    fine = track.resampled(90.0)
    quaternions = quaternion_from_matrix(fine.world_from_camera[:, :3, :3])
    steps = 2 * np.arccos(np.clip(np.abs(np.sum(quaternions[1:] * quaternions[:-1], axis=1)), 0, 1))
    assert np.ptp(steps) < 1e-6
