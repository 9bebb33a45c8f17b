"""Quaternions and matrices agree with each other and with scipy, also near half turns and for tiny angles."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.spatial.transform import Rotation, Slerp

from hushsplat.types.rotations import (
    matrix_from_quaternion,
    nearest_rotation,
    quaternion_from_matrix,
    sign_continuous,
    slerp,
)

RNG_QUATERNIONS = np.random.default_rng(1).normal(size=(200, 4))


def scipy_rotation(wxyz):
    return Rotation.from_quat(np.roll(wxyz, -1, axis=-1))


def test_matrix_agrees_with_scipy():
    expected = scipy_rotation(RNG_QUATERNIONS).as_matrix()
    np.testing.assert_allclose(matrix_from_quaternion(RNG_QUATERNIONS), expected, atol=1e-14)


def test_float32_stays_float32():
    assert matrix_from_quaternion(RNG_QUATERNIONS.astype(np.float32)).dtype == np.float32


@given(st.lists(st.floats(-1, 1), min_size=4, max_size=4).filter(lambda q: np.linalg.norm(q) > 1e-3))
def test_quaternion_survives_the_matrix(q):
    unit = np.array(q) / np.linalg.norm(q)
    back = quaternion_from_matrix(matrix_from_quaternion(unit))
    assert abs(abs(back @ unit) - 1) < 1e-14 and back[0] >= 0
    np.testing.assert_allclose(matrix_from_quaternion(back), matrix_from_quaternion(unit), atol=1e-14)


def test_half_turns_about_each_axis():
    for axis in range(3):
        matrix = -np.eye(3)
        matrix[axis, axis] = 1
        assert quaternion_from_matrix(matrix).tolist() == np.eye(4)[axis + 1].tolist()


def test_slerp_agrees_with_scipy():
    rotations = scipy_rotation(RNG_QUATERNIONS[:2])
    fraction = np.linspace(0, 1, 11)
    start, end = (np.tile(quaternion_from_matrix(m), (11, 1)) for m in rotations.as_matrix())
    ours = matrix_from_quaternion(slerp(start, end, fraction))
    np.testing.assert_allclose(ours, Slerp([0, 1], rotations)(fraction).as_matrix(), atol=1e-13)


@pytest.mark.parametrize("angle", [0.0, 1e-12, 1e-9, 1e-7, 1e-3, 3.0])
def test_slerp_has_constant_speed_at_any_angle(angle):
    start = np.array([1.0, 0, 0, 0])
    end = np.array([np.cos(angle / 2), np.sin(angle / 2), 0, 0])
    quarter = slerp(start, -end, np.array(0.25))  # the sign of a quaternion means nothing
    assert 2 * np.arcsin(quarter[1]) == pytest.approx(angle / 4, rel=1e-9)


def test_sign_continuous_keeps_rotations():
    signs = np.array([1, -1, -1, 1, -1])[:, None]
    smooth = np.stack([[np.cos(t), np.sin(t), 0, 0] for t in np.linspace(0, 3, 5)])
    np.testing.assert_array_equal(sign_continuous(smooth * signs), smooth)


def test_nearest_rotation_is_proper_and_close():
    exact = matrix_from_quaternion(RNG_QUATERNIONS)
    noisy = exact * 1.003 + np.random.default_rng(2).normal(size=exact.shape) * 1e-3
    cleaned = nearest_rotation(noisy)
    np.testing.assert_allclose(
        cleaned @ cleaned.transpose(0, 2, 1), np.broadcast_to(np.eye(3), exact.shape), atol=1e-12
    )
    assert (np.linalg.det(cleaned) > 0).all()
    assert np.abs(cleaned - exact).max() < 5e-3
    assert np.linalg.det(nearest_rotation(-np.eye(3))) == pytest.approx(1)
