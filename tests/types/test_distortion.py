"""Lens models: by hand, and refused where they fold the picture."""

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


def test_thin_prism_fisheye_by_hand():
    k1, k2, p1, p2, k3, k4, sx1, sy1 = LENSES[2].coefficients
    angle = np.arctan(0.5)
    x, y, t2 = 0.3 * angle / 0.5, -0.4 * angle / 0.5, angle**2
    radial = 1 + k1 * t2 + k2 * t2**2 + k3 * t2**3 + k4 * t2**4
    expected = [
        x * radial + 2 * p1 * x * y + p2 * (t2 + 2 * x * x) + sx1 * t2,
        y * radial + 2 * p2 * x * y + p1 * (t2 + 2 * y * y) + sy1 * t2,
    ]
    np.testing.assert_allclose(LENSES[2].distort(np.array([0.3, -0.4])), expected)


@pytest.mark.parametrize("kind", COEFFICIENTS)
def test_the_axis_stays(kind):
    lens = Distortion(kind, (0.1,))
    np.testing.assert_allclose(lens.distort(np.zeros((1, 2))), 0, atol=1e-12)


@given(st.sampled_from(sorted(COEFFICIENTS)), st.lists(st.floats(-3, 3), max_size=8))
def test_folds_are_found_for_any_lens_without_a_warning(kind, coefficients):
    Distortion(kind, tuple(coefficients[: len(COEFFICIENTS[kind])])).folds_within(CAMERA)


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
