"""Every reader's last step: bad values are refused by file, field and index; good ones are made uniform."""

import numpy as np
import pytest

from hushsplat.io.scenes.sanitize import ROWS_AT_ONCE, SMALLEST_SCALE, checked, sanitize_rows
from hushsplat.types.errors import SceneError


def parts(n=20, scales=3, k=4, payload=False):
    random = np.random.default_rng(1)
    made = {
        "means": random.normal(size=(n, 3)),
        "scales": random.uniform(0.1, 1, size=(n, scales)),
        "rotations": random.normal(size=(n, 4)),
        "opacities": random.uniform(size=n),
        "sh": random.normal(size=(n, k, 3)),
    }
    if payload:
        made["payload"] = random.normal(size=(n, 10))
    return {name: array.astype(np.float32) for name, array in made.items()}


FIELDS = {
    "means": "position",
    "scales": "scale",
    "rotations": "rotation",
    "opacities": "opacity",
    "sh": "sh",
    "payload": "payload",
}


@pytest.mark.parametrize("value", [np.nan, np.inf, -np.inf])
@pytest.mark.parametrize("name", list(FIELDS))
def test_not_finite_is_refused_with_file_field_and_index(name, value):
    arrays = parts(payload=True)
    arrays[name].reshape(20, -1)[17, -1] = value
    with pytest.raises(SceneError, match=rf"garden\.ply: {FIELDS[name]} of Gaussian 17 is {value}, not a finite"):
        sanitize_rows("garden.ply", arrays, 0, 20)


def test_the_index_counts_from_the_start_of_the_file():
    arrays = parts(ROWS_AT_ONCE + 10)
    arrays["sh"][ROWS_AT_ONCE + 5, 2, 1] = np.nan
    with pytest.raises(SceneError, match=f"sh of Gaussian {ROWS_AT_ONCE + 5} is nan"):
        checked("garden.ply", **arrays)


def test_large_finite_values_are_no_infinities():
    arrays = parts()
    arrays["means"][:] = 3e38  # the sum overflows, no value does
    assert checked("garden.ply", **arrays).means[0, 0] == np.float32(3e38)


def test_double_beyond_float32_is_refused():
    arrays = parts()
    arrays["means"] = arrays["means"].astype(np.float64)
    arrays["means"][3, 1] = 1e300
    with pytest.raises(SceneError, match="position of Gaussian 3 is inf"):
        checked("garden.ply", **arrays)


def test_zero_and_denormal_scales_become_tiny():
    arrays = parts()
    arrays["scales"][4] = [0, 1e-40, 0.5]
    smallest = np.float32(SMALLEST_SCALE)
    np.testing.assert_array_equal(checked("a", **arrays).scales[4], np.float32([smallest, smallest, 0.5]))
    assert smallest**-2 < np.finfo(np.float32).max


def test_negative_scale_is_refused():
    arrays = parts()
    arrays["scales"][4, 1] = -0.5
    with pytest.raises(SceneError, match=r"garden\.ply: scale of Gaussian 4 is -0\.5, expected more than 0\."):
        checked("garden.ply", **arrays)


@pytest.mark.parametrize("value", [-0.1, 1.5])
def test_opacity_outside_is_refused(value):
    arrays = parts()
    arrays["opacities"][7] = value
    with pytest.raises(SceneError, match=rf"garden\.ply: opacity of Gaussian 7 is {value}, outside 0 to 1\."):
        checked("garden.ply", **arrays)


def test_zero_quaternion_is_refused():
    arrays = parts()
    arrays["rotations"][11] = 0
    with pytest.raises(SceneError, match=r"garden\.ply: rotation of Gaussian 11 is a quaternion of length 0"):
        checked("garden.ply", **arrays)


@pytest.mark.parametrize("factor", [1e-44, 1e-30, 1e-12, 1, 1e12, 1e38])
def test_quaternions_of_any_length_become_unit(factor):
    arrays = parts()
    arrays["rotations"][:] = [1, 0, 2, 0]
    arrays["rotations"][5] *= np.float32(factor)
    rotations = checked("a", **arrays).rotations
    # 1e-44 has three bits of mantissa left, so its direction is rough; its length is not
    np.testing.assert_allclose(np.linalg.norm(rotations, axis=1), 1, rtol=1e-6)
    np.testing.assert_allclose(rotations[5], rotations[0], atol=0.1 if factor == 1e-44 else 1e-6)


def test_read_only_float64_and_strided_arrays_are_taken():
    arrays = parts(scales=2)
    arrays["means"] = np.asfortranarray(arrays["means"].astype(np.float64))
    arrays["rotations"].flags.writeable = False
    before = arrays["rotations"].copy()
    gaussians = checked("a", **arrays)
    assert gaussians.is_surfels and gaussians.means.flags.c_contiguous
    np.testing.assert_array_equal(arrays["rotations"], before)


def test_an_empty_scene_passes():
    assert len(checked("a", **parts(0))) == 0
