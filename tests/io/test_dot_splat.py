"""The `.splat` format: bytes by hand, round trips within its precision, and what is refused."""

import struct

import numpy as np
import pytest
from made_scenes import assert_usable, random_gaussians, with_values

from hushsplat.io.scenes.dot_splat import read_splat, write_splat
from hushsplat.types.errors import SceneError
from hushsplat.types.harmonics import SH_C0


def row(position=(1, 2, 3), scale=(0.1, 0.2, 0.3), rgba=(255, 0, 51, 102), rotation=(255, 128, 128, 0)):
    return struct.pack("<6f8B", *position, *scale, *rgba, *rotation)


def test_bytes_by_hand(tmp_path):
    (tmp_path / "scene.splat").write_bytes(row() + row(position=(4, 5, 6), rotation=(128, 128, 0, 128)))
    gaussians = read_splat(tmp_path / "scene.splat")
    assert_usable(gaussians)
    np.testing.assert_array_equal(gaussians.means, np.float32([[1, 2, 3], [4, 5, 6]]))
    np.testing.assert_array_equal(gaussians.scales[0], np.float32([0.1, 0.2, 0.3]))
    np.testing.assert_allclose(gaussians.opacities[0], 0.4, rtol=1e-6)
    np.testing.assert_allclose(0.5 + SH_C0 * gaussians.sh[0, 0], [1, 0, 0.2], atol=1e-6)
    length = np.hypot(127, 128)
    np.testing.assert_allclose(gaussians.rotations, [[127 / length, 0, 0, -128 / length], [0, 0, -1, 0]], atol=1e-6)


@pytest.mark.parametrize("degree", [0, 2])
def test_round_trip_within_its_precision(tmp_path, degree):
    made = random_gaussians(200, degree=degree)
    write_splat(made, tmp_path / "scene.splat")
    read = read_splat(tmp_path / "scene.splat")
    np.testing.assert_array_equal(read.means, made.means)
    np.testing.assert_array_equal(read.scales, made.scales)
    np.testing.assert_allclose(read.opacities, made.opacities, atol=0.5001 / 255)
    np.testing.assert_allclose(
        SH_C0 * read.sh[:, 0], (SH_C0 * made.sh[:, 0]).clip(-0.5, 0.5), atol=0.5001 / 255
    )  # colours are clamped to 0..1
    np.testing.assert_allclose(read.rotations, made.rotations, atol=1.5 / 128)
    assert read.sh_degree == 0  # higher bands have no place in the format


def test_surfels_become_thin_ellipsoids(tmp_path):
    made = random_gaussians(surfels=True)
    write_splat(made, tmp_path / "scene.splat")
    read = read_splat(tmp_path / "scene.splat")
    np.testing.assert_array_equal(read.scales[:, :2], made.scales)
    np.testing.assert_array_equal(read.scales[:, 2], np.float32(1e-6))


def test_extreme_values_stay_in_their_bytes(tmp_path):
    made = random_gaussians(2, degree=0)
    made = with_values(made, "sh", ..., [[[99, -99, 0]], [[-99, 99, 0]]])
    made = with_values(made, "opacities", ..., [0, 1])
    made = with_values(made, "rotations", ..., [[1, 0, 0, 0], [0, -1, 0, 0]])
    write_splat(made, tmp_path / "scene.splat")
    content = (tmp_path / "scene.splat").read_bytes()
    assert tuple(content[24:32]) == (255, 0, 128, 0, 255, 128, 128, 128)
    assert tuple(content[56:64]) == (0, 255, 128, 255, 128, 0, 128, 128)


@pytest.mark.parametrize("size", [0, 1, 31, 33, 63])
def test_sizes_that_are_no_rows(tmp_path, size):
    (tmp_path / "bad.splat").write_bytes((row() + row())[:size])
    message = rf"bad\.splat: a \.splat file has 32 bytes per Gaussian, but this one has {size} bytes; it is cut short"
    with pytest.raises(SceneError, match=message):
        read_splat(tmp_path / "bad.splat")


def test_an_empty_scene_is_not_written(tmp_path):
    with pytest.raises(SceneError, match=r"scene\.splat: an empty scene would be an empty file"):
        write_splat(random_gaussians(0), tmp_path / "scene.splat")
    assert list(tmp_path.iterdir()) == []


BAD_ROWS = {
    "position": row(position=(0, np.nan, 0)),
    "scale": row(scale=(np.inf, 1, 1)),
    "rotation": row(rotation=(128, 128, 128, 128)),
}


@pytest.mark.parametrize("field", list(BAD_ROWS))
def test_bad_values_are_named(tmp_path, field):
    (tmp_path / "bad.splat").write_bytes(row() + BAD_ROWS[field])
    with pytest.raises(SceneError, match=rf"bad\.splat: {field} of Gaussian 1 is"):
        read_splat(tmp_path / "bad.splat")


def test_negative_scale(tmp_path):
    (tmp_path / "bad.splat").write_bytes(row(scale=(1, -2, 1)))
    with pytest.raises(SceneError, match=r"bad\.splat: scale of Gaussian 0 is -2, expected more than 0\."):
        read_splat(tmp_path / "bad.splat")


def test_flat_gaussians_get_a_thickness(tmp_path):
    (tmp_path / "flat.splat").write_bytes(row(scale=(1, 1, 0)))
    assert read_splat(tmp_path / "flat.splat").scales[0, 2] == np.float32(1e-12)
