"""Lens models: by hand, inverse of themselves, and refused where they break down."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from hushsplat.types.camera import Camera
from hushsplat.types.distortion import COEFFICIENTS, Distortion
from hushsplat.types.errors import CameraError

GRID = np.stack(np.meshgrid(np.linspace(-0.7, 0.7, 15), np.linspace(-0.5, 0.5, 11)), axis=-1)
CAMERA = Camera(80, 60, 60.0, 60.0, 40.0, 30.0, np.eye(4))
LENSES = [
    Distortion("perspective", (0.1, -0.05, 0.002, -0.001, 0.01, 0.02, -0.01, 0.01)),
    Distortion("fisheye", (0.05, -0.02, 0.01, -0.01)),
    Distortion("thin_prism_fisheye", (0.05, -0.02, 0.003, -0.002, 0.01, -0.01, 0.002, 0.001)),
    Distortion("fov", (0.9,)),
]


def test_perspective_by_hand():
    x, y, k1, k2, p1, p2 = 0.3, -0.4, 0.1, 0.2, 0.01, 0.02
    radial = 1 + k1 * 0.25 + k2 * 0.0625
    expected = [
        x * radial + 2 * p1 * x * y + p2 * (0.25 + 2 * x * x),
        y * radial + 2 * p2 * x * y + p1 * (0.25 + 2 * y * y),
    ]
    np.testing.assert_allclose(Distortion("perspective", (k1, k2, p1, p2)).distort(np.array([x, y])), expected)


def test_rational_by_hand():
    lens = Distortion("perspective", (0.1, 0.0, 0.0, 0.0, 0.3, 0.2, 0.0, 0.5))
    scale = (1 + 0.1 + 0.3) / (1 + 0.2 + 0.5)
    np.testing.assert_allclose(lens.distort(np.array([0.6, 0.8])), [0.6 * scale, 0.8 * scale])


def test_fisheye_by_hand():
    np.testing.assert_allclose(Distortion("fisheye", ()).distort(np.array([1.0, 0.0])), [np.pi / 4, 0])
    bent = np.pi / 4 * (1 + 0.1 * (np.pi / 4) ** 2)
    np.testing.assert_allclose(Distortion("fisheye", (0.1,)).distort(np.array([0.0, 1.0])), [0, bent])


def test_fov_by_hand():
    expected = np.arctan(2 * 0.5 * np.tan(0.45)) / 0.9
    np.testing.assert_allclose(Distortion("fov", (0.9,)).distort(np.array([0.5, 0.0])), [expected, 0])
    np.testing.assert_array_equal(Distortion("fov", (0.0,)).distort(GRID), GRID)


@pytest.mark.parametrize("lens", LENSES, ids=lambda lens: lens.kind)
def test_undistort_is_the_inverse(lens):
    bent = lens.distort(GRID)
    assert np.abs(bent - GRID).max() > 0.005  # it bends at all
    np.testing.assert_allclose(lens.undistort(bent), GRID, atol=1e-12)
    np.testing.assert_allclose(lens.distort(lens.undistort(GRID)), GRID, atol=1e-9)


@pytest.mark.parametrize("kind", COEFFICIENTS)
def test_the_axis_stays(kind):
    lens = Distortion(kind, (0.1,))
    np.testing.assert_allclose(lens.distort(np.zeros((1, 2))), 0, atol=1e-12)


@given(st.sampled_from(sorted(COEFFICIENTS)), st.lists(st.floats(-3, 3), max_size=8))
def test_inverse_or_nan_for_any_lens(kind, coefficients):
    lens = Distortion(kind, tuple(coefficients[: len(COEFFICIENTS[kind])]))
    ideal = lens.undistort(GRID)
    found = np.isfinite(ideal).all(axis=-1)
    np.testing.assert_allclose(lens.distort(ideal[found]), GRID[found], atol=1e-8)
    lens.folds_within(CAMERA)


def test_no_inverse_is_nan():
    lens = Distortion("perspective", (-1.0,))  # r - r³ is at most 0.385
    assert np.isnan(lens.undistort(np.array([[0.5, 0.0]]))).all()


def test_folds():
    assert Distortion("perspective", (-1.0,)).folds_within(CAMERA)  # turns over at 0.58, the corner is at 0.83
    assert not Distortion("perspective", (-0.3,)).folds_within(CAMERA)  # at 1.05
    assert Distortion("perspective", (0.0, 0.0, 0.0, 0.0, 0.0, -2.0)).folds_within(CAMERA)  # a pole
    for lens in LENSES:
        assert not lens.folds_within(CAMERA)


def test_none():
    assert Distortion("perspective", (0.0, 0.0)).is_none
    assert not Distortion("fisheye", ()).is_none


def test_bad_coefficients_are_refused():
    with pytest.raises(CameraError, match="a fov lens has up to 1 finite coefficients: omega"):
        Distortion("fov", (1.0, 2.0))
    with pytest.raises(CameraError, match="a fisheye lens has up to 4 finite coefficients: k1, k2, k3, k4"):
        Distortion("fisheye", (np.nan,))
