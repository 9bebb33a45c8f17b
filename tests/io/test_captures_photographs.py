"""Photographs: free of distortion, resized with their cameras, as stored, and refused when damaged."""

from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from made_captures import pattern, pixel_directions, save_image
from PIL import Image

from hushsplat.io.captures.photographs import covered_pixels, fitted_to_photographs, load_photograph, photograph_size
from hushsplat.types.camera import Camera
from hushsplat.types.capture import View
from hushsplat.types.distortion import Distortion
from hushsplat.types.errors import CameraError, CaptureError

CAMERA = Camera(160, 120, 150.0, 148.0, 82.0, 57.0, np.eye(4))
LENSES = [
    Distortion("perspective", (0.15, -0.05, 0.004, -0.003)),
    Distortion("perspective", (-0.2,)),
    Distortion("perspective", (0.2, -0.02, 0.003, -0.002, 0.01, 0.02, -0.01, 0.01)),
    Distortion("fisheye", (0.05, -0.02)),
    Distortion("thin_prism_fisheye", (0.05, -0.02, 0.003, -0.002, 0.01, -0.01, 0.002, 0.001)),
    Distortion("fov", (0.8,)),
]


def directions(camera):
    return pixel_directions(camera.width, camera.height, camera.fx, camera.fy, camera.cx, camera.cy)


def pinhole_picture(camera):
    ideal = directions(camera)
    return pattern(ideal[..., 0], ideal[..., 1])


def undistorted(lens, seen):
    """The inverse of the lens by Newton's method with numeric derivatives; not finite where it has none."""
    ideal = seen.copy()
    step = 1e-6
    with np.errstate(all="ignore"):
        for _ in range(30):
            slopes = [
                (lens.distort(ideal + axis) - lens.distort(ideal - axis)) / (2 * step) for axis in step * np.eye(2)
            ]
            jacobian = np.stack(slopes, axis=-1)
            usable = np.abs(np.linalg.det(jacobian)) > 1e-12
            jacobian = np.where(usable[..., None, None], jacobian, np.eye(2))
            ideal = ideal - np.linalg.solve(jacobian, (lens.distort(ideal) - seen)[..., None])[..., 0]
        found = np.abs(lens.distort(ideal) - seen).max(axis=-1, keepdims=True) < 1e-9
    return np.where(found, ideal, np.nan)


def photographed(path, camera, lens):
    """What the lens would photograph of the pattern: for each pixel, the direction that it sees."""
    ideal = undistorted(lens, directions(camera))
    save_image(path, np.nan_to_num(pattern(ideal[..., 0], ideal[..., 1])))
    return View("a", path, camera, lens)


@pytest.mark.parametrize("lens", LENSES, ids=lambda lens: lens.kind)
def test_undistorted_photograph_is_the_pinhole_picture(tmp_path, lens):
    view = photographed(tmp_path / "a.png", CAMERA, lens)
    picture, camera = load_photograph(view)
    covered = covered_pixels(view)
    assert camera == CAMERA and picture.dtype == np.float32 and picture.shape == (120, 160, 3)
    assert covered.mean() > 0.85 and covered[55:65, 75:85].all()
    difference = np.abs(picture - pinhole_picture(CAMERA))[covered]
    assert difference.max() < 0.03 and difference.mean() < 0.003
    bent = np.abs(load_photograph(View("a", view.image_path, CAMERA))[0] - pinhole_picture(CAMERA))
    assert bent[covered].max() > 0.1  # the test can tell


def test_each_camera_of_a_lens_has_its_own_remap(tmp_path):
    """The remap of a lens is remembered: one of other intrinsics must not be taken for it."""
    for name, camera in (("a", CAMERA), ("b", replace(CAMERA, fx=CAMERA.fx * 1.2, cx=CAMERA.cx + 9)), ("c", CAMERA)):
        view = photographed(tmp_path / f"{name}.png", camera, LENSES[0])
        covered = covered_pixels(view)
        assert np.abs(load_photograph(view)[0] - pinhole_picture(camera))[covered].max() < 0.03
        covered[:] = False  # the caller's own
        assert covered_pixels(view).any()


def test_pixels_outside_the_lens_are_reported():
    barrel, pincushion = View("a", Path("a"), CAMERA, LENSES[1]), View("a", Path("a"), CAMERA, LENSES[0])
    assert covered_pixels(barrel).all()  # sees more than the pinhole
    assert not covered_pixels(pincushion)[0, 0] and covered_pixels(View("a", Path("a"), CAMERA)).all()
    assert covered_pixels(pincushion, width=80).shape == (60, 80)


@pytest.mark.parametrize("lens", [None, LENSES[0]])
@pytest.mark.parametrize("width", [160, 80, 53, 40, 200])
def test_resized_photograph_fits_its_resized_camera(tmp_path, lens, width):
    if lens is None:
        save_image(tmp_path / "a.png", pinhole_picture(CAMERA))
    view = View("a", tmp_path / "a.png", CAMERA) if lens is None else photographed(tmp_path / "a.png", CAMERA, lens)
    picture, camera = load_photograph(view, width=width)
    assert picture.shape == (camera.height, camera.width, 3) and camera.width == width
    np.testing.assert_allclose([camera.fx, camera.cx], np.array([CAMERA.fx, CAMERA.cx]) * width / 160)
    inner = np.s_[5:-5, 5:-5]  # the filter has no neighbours at the edge
    expected = pinhole_picture(camera)
    assert np.abs(picture - expected)[inner].mean() < 0.02
    shifted = np.abs(np.roll(picture, 1, axis=1) - expected)[inner].mean()
    assert shifted > 3 * np.abs(picture - expected)[inner].mean()  # the test would see a shift of a pixel


def test_no_systematic_shift_when_resized(tmp_path):
    """Least squares for a shift of the resized picture against the exact one: none to a hundredth of a pixel."""
    save_image(tmp_path / "a.png", pinhole_picture(CAMERA))
    picture, camera = load_photograph(View("a", tmp_path / "a.png", CAMERA), width=80)
    expected = pinhole_picture(camera)
    for axis in (0, 1):
        slope = np.gradient(expected, axis=axis)[5:-5, 5:-5]
        difference = (picture - expected)[5:-5, 5:-5]
        assert abs((slope * difference).sum() / (slope * slope).sum()) < 0.01


def test_orientation_tag_is_ignored(tmp_path):
    exif = Image.Exif()
    exif[0x0112] = 6  # a viewer would turn it by 90 degrees
    Image.fromarray(np.tile(np.uint8([[[255, 0, 0]], [[0, 0, 255]]]), (4, 16, 1))).save(tmp_path / "a.png", exif=exif)
    assert photograph_size(tmp_path / "a.png") == (16, 8)
    camera = Camera(16, 8, 10.0, 10.0, 8.0, 4.0, np.eye(4))
    picture, _ = load_photograph(View("a", tmp_path / "a.png", camera))
    np.testing.assert_array_equal(picture[:, 0, 0], [1, 0] * 4)


@pytest.mark.parametrize("mode", ["L", "RGB", "RGBA", "P", "LA", "1", "CMYK"])
def test_kinds_of_pixels(tmp_path, mode):
    path = tmp_path / ("a.tif" if mode == "CMYK" else "a.png")
    Image.new("RGB", (8, 6), (255, 255, 255)).convert(mode).save(path)
    camera = Camera(8, 6, 10.0, 10.0, 4.0, 3.0, np.eye(4))
    picture, _ = load_photograph(View("a", path, camera))
    np.testing.assert_allclose(picture, 1.0)


def test_transparent_pixels_show_the_background(tmp_path):
    Image.new("RGBA", (4, 4), (255, 0, 0, 51)).save(tmp_path / "a.png")
    view = View("a", tmp_path / "a.png", Camera(4, 4, 4.0, 4.0, 2.0, 2.0, np.eye(4)))
    np.testing.assert_allclose(load_photograph(view)[0][0, 0], [0.2, 0, 0], atol=1e-6)
    np.testing.assert_allclose(load_photograph(view, background=(0.0, 1.0, 0.5))[0][0, 0], [0.2, 0.8, 0.4], atol=1e-6)


def test_one_pixel(tmp_path):
    Image.new("RGB", (1, 1), (255, 0, 0)).save(tmp_path / "a.png")
    view = View("a", tmp_path / "a.png", Camera(1, 1, 1.0, 1.0, 0.5, 0.5, np.eye(4)), LENSES[0])
    np.testing.assert_array_equal(load_photograph(view)[0], [[[1, 0, 0]]])


def test_unusable_photographs_are_refused(tmp_path):
    view = View("a", tmp_path / "a.png", CAMERA)
    with pytest.raises(CaptureError, match=r"a\.png: the photograph of view 'a' is missing"):
        load_photograph(view)
    save_image(tmp_path / "a.png", np.zeros((6, 8, 3)))
    with pytest.raises(CaptureError, match="the photograph is 8×6 px, but 160×120 px when the capture was loaded"):
        load_photograph(view)
    Image.fromarray(np.zeros((120, 160), np.uint16)).save(tmp_path / "a.png")
    with pytest.raises(CaptureError, match="pixels of kind I;16 are not supported; convert to 8-bit RGB"):
        load_photograph(view)
    (tmp_path / "a.png").write_bytes(b"%!PS-Adobe-3.0 EPSF-3.0\n")
    with pytest.raises(CaptureError, match="is not a readable photograph: cannot identify image file"):
        load_photograph(view)
    with pytest.raises(CaptureError, match="is not a readable photograph"):
        fitted_to_photographs([view], required=True)
    save_image(tmp_path / "a.png", pinhole_picture(CAMERA))
    with pytest.raises(CameraError, match="outside 1"):
        load_photograph(view, width=0)


def test_huge_pictures_are_refused_before_decoding(tmp_path):
    wide = Camera(16000, 1, 1.0, 1.0, 1.0, 1.0, np.eye(4))
    Image.new("1", (160_000, 10)).save(tmp_path / "a.png")
    with pytest.raises(CaptureError, match=r"a picture of 160000×10 px is outside 1\.\.16384 px a side"):
        fitted_to_photographs([View("a", tmp_path / "a.png", wide)], required=True)
    Image.new("1", (16000, 16000)).save(tmp_path / "a.png")
    square = Camera(16000, 16000, 1.0, 1.0, 1.0, 1.0, np.eye(4))
    with pytest.raises(CaptureError, match=r"is not a readable photograph: Image size .* exceeds limit"):
        load_photograph(View("a", tmp_path / "a.png", square))


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    folder = tmp_path_factory.mktemp("damaged")
    values = pinhole_picture(Camera(24, 16, 20.0, 20.0, 12.0, 8.0, np.eye(4)))
    for suffix in ("png", "jpg", "webp", "tif", "bmp"):
        save_image(folder / f"good.{suffix}", values)
    return folder


@settings(max_examples=150, deadline=None)
@given(
    suffix=st.sampled_from(["png", "jpg", "webp", "tif", "bmp"]),
    cut=st.integers(0, 3000),
    changes=st.lists(st.tuples(st.integers(0, 3000), st.integers(0, 255)), max_size=4),
)
def test_damaged_photographs_are_refused_or_read(folder, suffix, cut, changes):
    content = bytearray((folder / f"good.{suffix}").read_bytes())
    for offset, value in changes:
        content[offset % len(content)] = value
    path = folder / f"bad.{suffix}"
    path.write_bytes(content[: max(1, len(content) - cut)] if cut < 1500 else content)
    view = View("a", path, Camera(24, 16, 20.0, 20.0, 12.0, 8.0, np.eye(4)))
    try:
        picture, _ = load_photograph(view)
    except CaptureError as error:
        assert "\n" not in str(error)
    else:
        assert picture.shape == (16, 24, 3) and np.isfinite(picture).all()


def test_a_photograph_of_too_many_pixels_is_refused_by_its_header(tmp_path):
    Image.new("1", (20_000, 5_000)).save(tmp_path / "bomb.png")
    with pytest.raises(CaptureError, match=r"bomb.png: has 20000×5000 px, at most 89000000 are read; make it smaller"):
        photograph_size(tmp_path / "bomb.png")
