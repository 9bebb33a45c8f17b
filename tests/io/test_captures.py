"""Captures of every kind give the same cameras, and what is wrong with them is said in one line."""

import json
import struct

import numpy as np
import pytest
from made_captures import (
    COLMAP_MODELS,
    FOCAL,
    HEIGHT,
    WIDTH,
    camera_list,
    colmap_bytes,
    colmap_texts,
    llff_rows,
    model_parameters,
    names,
    points,
    poses,
    save_plain_picture,
    transforms,
    write_colmap,
    write_transforms,
)

from hushsplat.io.captures.camera_list import load_camera_list
from hushsplat.io.captures.capture import load_capture
from hushsplat.io.content import ContentKind, content_kind
from hushsplat.io.tracks import load_track
from hushsplat.types.capture import Capture
from hushsplat.types.errors import CaptureError


def inria_cameras(n=9):
    """As `camera_to_JSON` of INRIA's 3DGS writes them."""
    lens = {"width": WIDTH, "height": HEIGHT, "fx": FOCAL, "fy": FOCAL + 2}
    return [
        {"id": i, "img_name": name, **lens, "position": pose[:3, 3].tolist(), "rotation": pose[:3, :3].tolist()}
        for i, (name, pose) in enumerate(zip(names(n), poses(n), strict=True))
    ]


def assert_poses(capture, n=9, atol=1e-12):
    assert [view.name.rsplit("/")[-1] for view in capture.views] == names(n)
    for view, pose in zip(capture.views, poses(n), strict=True):
        np.testing.assert_allclose(view.camera.world_from_camera, pose, atol=atol)


@pytest.mark.parametrize("files", [colmap_bytes, colmap_texts])
@pytest.mark.parametrize("model", COLMAP_MODELS)
def test_colmap(tmp_path, files, model):
    capture = load_capture(write_colmap(tmp_path, files(model=model)))
    assert_poses(capture)
    camera = capture.views[0].camera
    _, focals, lens = COLMAP_MODELS[model]
    fx, fy = FOCAL, FOCAL + 2 * (focals - 1)
    assert (camera.width, camera.height, camera.fx, camera.fy, camera.cx, camera.cy) == (WIDTH, HEIGHT, fx, fy, 33, 23)
    if "PINHOLE" in model:
        assert capture.views[0].distortion is None
    else:
        distortion = capture.views[0].distortion
        assert distortion.coefficients[: len(lens)] == tuple(lens) and not any(distortion.coefficients[len(lens) :])
        assert ("fisheye" in distortion.kind) == ("FISHEYE" in model) and (distortion.kind == "fov") == (model == "FOV")
    positions, colors = points()
    np.testing.assert_array_equal(capture.points, positions.astype(np.float32))
    np.testing.assert_array_equal(capture.point_colors, colors)
    assert capture.folder == tmp_path and capture.views[3].image_path == tmp_path / "images" / names(9)[3]


def test_colmap_binary_goes_before_text(tmp_path):
    write_colmap(tmp_path, colmap_texts(model="OPENCV"))
    write_colmap(tmp_path, colmap_bytes(model="PINHOLE"))
    assert load_capture(tmp_path).views[0].distortion is None


@pytest.mark.parametrize("place", [".", "sparse", "sparse/0", "sparse/0/images.bin", "sparse/0/cameras.bin"])
def test_colmap_from_any_place(tmp_path, place):
    write_colmap(tmp_path, colmap_bytes())
    capture = load_capture(str(tmp_path / place))
    assert_poses(capture)
    assert capture.folder == tmp_path


def test_colmap_in_sparse_without_zero(tmp_path):
    write_colmap(tmp_path, {})
    for name, content in colmap_bytes().items():
        (tmp_path / "sparse" / name).write_bytes(content)
    assert_poses(load_capture(tmp_path))


def test_colmap_without_points(tmp_path):
    write_colmap(tmp_path, {k: v for k, v in colmap_bytes().items() if k != "points3D.bin"})
    capture = load_capture(tmp_path)
    assert capture.points is None and capture.point_colors is None


def test_hold_out(tmp_path):
    capture = load_capture(write_colmap(tmp_path, colmap_bytes(n=17), n=17))
    assert [view.name for view in capture.held_out] == [names(17)[i] for i in (0, 8, 16)]
    assert [view.name for view in capture.train] == [name for i, name in enumerate(names(17)) if i % 8]


def test_smaller_copies_make_smaller_cameras(tmp_path):
    write_colmap(tmp_path, colmap_bytes(model="OPENCV"), images="images_3", size=(21, 16))
    capture = load_capture(tmp_path, images="images_3")
    view = capture.views[0]
    fx, fy, cx, cy, *lens = model_parameters("OPENCV")
    assert (view.camera.width, view.camera.height) == (21, 16)
    np.testing.assert_allclose([view.camera.fx, view.camera.cx], np.array([fx, cx]) * 21 / 64)
    np.testing.assert_allclose([view.camera.fy, view.camera.cy], np.array([fy, cy]) / 3)
    assert view.distortion.coefficients[:4] == tuple(lens)
    assert view.image_path.parent.name == "images_3"


def test_copies_may_have_another_suffix(tmp_path):
    write_colmap(tmp_path, colmap_bytes())
    for name in names(9):
        (tmp_path / "images" / name).rename((tmp_path / "images" / name).with_suffix(".PNG"))
    assert load_capture(tmp_path).views[0].image_path.suffix == ".PNG"


def test_transforms(tmp_path):
    write_transforms(tmp_path, transforms(k1=0.05, k2=-0.02, p1=0.003, p2=-0.002))
    capture = load_capture(tmp_path)
    assert_poses(capture)
    camera = capture.views[0].camera
    assert (camera.width, camera.height, camera.fx, camera.fy, camera.cx, camera.cy) == (
        64,
        48,
        FOCAL,
        FOCAL + 2,
        33,
        23,
    )
    assert capture.views[0].distortion.coefficients == (0.05, -0.02, 0.003, -0.002, 0, 0, 0, 0)
    assert capture.points is None and capture.folder == tmp_path
    assert_poses(load_capture(tmp_path / "transforms.json"))


def test_transforms_of_synthetic_scenes(tmp_path):
    """NeRF's own: an angle and nothing else, no suffixes, sizes from the photographs."""
    content = transforms()
    frames = [{**frame, "file_path": "./" + frame["file_path"][:-4]} for frame in content["frames"]]
    write_transforms(tmp_path, {"camera_angle_x": 0.7, "frames": frames}, "transforms_train.json")
    camera = load_capture(tmp_path).views[0].camera
    assert (camera.width, camera.height, camera.cx, camera.cy) == (64, 48, 32, 24)
    assert camera.fx == camera.fy == pytest.approx(32 / np.tan(0.35))


def test_transforms_with_both_angles(tmp_path):
    content = {**transforms(), "camera_angle_x": 0.7, "camera_angle_y": 0.5}
    del content["fl_x"], content["fl_y"]
    camera = load_capture(write_transforms(tmp_path, content)).views[0].camera
    assert (camera.fx, camera.fy) == (pytest.approx(32 / np.tan(0.35)), pytest.approx(24 / np.tan(0.25)))


def test_transforms_with_intrinsics_of_their_own(tmp_path):
    content = transforms(k1=0.01)
    content["frames"][2] |= {"fl_x": 70, "cx": 30, "k1": 0.0}
    views = load_capture(write_transforms(tmp_path, content)).views
    assert (views[2].camera.fx, views[2].camera.cx, views[2].distortion) == (70.0, 30.0, None)
    assert (views[3].camera.fx, views[3].camera.cx) == (FOCAL, 33.0) and views[3].distortion is not None


@pytest.mark.parametrize("says", [{"camera_model": "OPENCV_FISHEYE"}, {"is_fisheye": True}])
def test_transforms_with_a_fisheye(tmp_path, says):
    write_transforms(tmp_path, transforms(k1=0.1, k2=0.01, k3=0.02, k4=0.03, **says))
    distortion = load_capture(tmp_path).views[0].distortion
    assert distortion.kind == "fisheye" and distortion.coefficients == (0.1, 0.01, 0.02, 0.03)


def test_transforms_with_few_digits_and_three_rows(tmp_path):
    content = transforms()
    for frame in content["frames"]:
        frame["transform_matrix"] = np.round(frame["transform_matrix"], 2).tolist()[:3]
    capture = load_capture(write_transforms(tmp_path, content))
    assert_poses(capture, atol=0.02)
    for view in capture.views:
        rotation = view.camera.world_from_camera[:3, :3]
        np.testing.assert_allclose(rotation @ rotation.T, np.eye(3), atol=1e-12)


def test_transforms_with_another_folder(tmp_path):
    write_transforms(tmp_path, transforms(), photographs=False)
    for name in names(9):
        save_plain_picture(tmp_path / "images_2" / name, 32, 24)
    assert load_capture(tmp_path, images="images_2").views[0].camera.fx == FOCAL / 2


def write_llff(folder, rows, dtype=float):
    np.save(folder / "poses_bounds.npy", rows.astype(dtype))
    for name in names(9):
        save_plain_picture(folder / "images" / name)
    return folder


@pytest.mark.parametrize("order", ["C", "F"])
@pytest.mark.parametrize("dtype", ["<f8", "<f4", ">f8"])
def test_llff(tmp_path, order, dtype):
    capture = load_capture(write_llff(tmp_path, np.asarray(llff_rows(), order=order), dtype))
    assert_poses(capture, atol=1e-6)
    camera = capture.views[0].camera
    assert (camera.width, camera.height, camera.fx, camera.fy, camera.cx, camera.cy) == (64, 48, 60, 60, 32, 24)


def test_camera_list(tmp_path):
    (tmp_path / "cameras.json").write_text(json.dumps(camera_list()))
    capture = load_camera_list(tmp_path / "cameras.json")  # without photographs
    assert_poses(capture)
    assert not capture.views[0].image_path.exists() and capture.views[0].image_path.parent == tmp_path / "images"
    assert capture.views[0].distortion.coefficients[0] == 0.01
    for name in names(9):
        save_plain_picture(tmp_path / "images" / name, 32, 24)
    capture = load_capture(tmp_path / "cameras.json")
    assert_poses(capture)
    assert capture.views[0].camera.width == 32 and capture.views[0].image_path.exists()


def test_cameras_alone(tmp_path):
    write_colmap(tmp_path, colmap_bytes(), n=0)
    assert_poses(load_capture(tmp_path, require_photographs=False))
    write_transforms(tmp_path / "other", transforms(), photographs=False)
    assert_poses(load_capture(tmp_path / "other", require_photographs=False))
    np.save(tmp_path / "poses_bounds.npy", llff_rows())
    capture = load_capture(tmp_path / "poses_bounds.npy", images="none", require_photographs=False)
    assert [view.name for view in capture.views] == [f"00000{i}" for i in range(9)]
    np.testing.assert_allclose(capture.views[4].camera.world_from_camera, poses(9)[4], atol=1e-12)


def refused(path, message, **options):
    with pytest.raises(CaptureError, match=message) as caught:
        load_capture(path, **options)
    assert "\n" not in str(caught.value)


def test_no_capture(tmp_path):
    refused(tmp_path, "is no capture; expected sparse/0 of COLMAP, transforms.json")
    refused(tmp_path / "none", "none: does not exist; a capture is a folder")
    (tmp_path / "a.ply").write_text("")
    refused(tmp_path / "a.ply", "is no capture; expected a folder, cameras.bin")
    (tmp_path / "a.json").write_text('{"frames": [{}]}')
    refused(tmp_path / "a.json", "is no list of cameras; expected `frames` with a transform_matrix")
    with pytest.raises(CaptureError, match="the capture has no views"):
        Capture(views=(), folder=tmp_path)


def test_missing_photographs(tmp_path):
    write_colmap(tmp_path, colmap_bytes())
    for name in names(9)[2:5]:
        (tmp_path / "images" / name).unlink()
    refused(tmp_path, r"view 02\.png: the photograph of view 'view 02\.png' is missing, and 3 of 9 are; say where")
    refused(tmp_path, "images_4: there is no such folder of photographs", images="images_4")


def test_other_shape(tmp_path):
    write_colmap(tmp_path, colmap_bytes(), size=(48, 64))
    refused(
        tmp_path, "the photograph is 48×64 px, but its camera is of another shape, 64×48 px; was it cropped or turned"
    )


@pytest.mark.parametrize(
    ("name", "old", "new", "message"),
    [
        ("cameras.bin", (8 + 4, "<i", 99), None, "camera 0 has the unknown model 99"),
        (
            "cameras.bin",
            (8 + 4, "<i", 12),
            None,
            "the model SIMPLE_DIVISION is not supported; undistort first",
        ),
        ("cameras.bin", (0, "<Q", 2**63), None, "the number of cameras is 9223372036854775808, more than fit"),
        ("cameras.bin", (8 + 8, "<Q", 2**40), None, "camera 7: a picture of 1099511627776×48 px is outside"),
        ("cameras.bin", (8 + 24, "<d", -1.0), None, "camera 7: focal lengths must be finite and > 0"),
        ("cameras.bin", (8 + 24 + 24, "<d", -5.0), None, "camera 7: the lens distortion folds the picture over"),
        (
            "cameras.bin",
            (8 + 24 + 24, "<d", np.nan),
            None,
            "camera 7: a perspective lens has up to 8 finite coefficients",
        ),
        ("cameras.bin", (8, "<I", 8), None, "image 9: its camera 7 is not among the cameras"),
        ("images.bin", (0, "<Q", 2**64 - 1), None, "the number of images is 18446744073709551615, more than fit"),
        ("images.bin", (0, "<Q", 0), None, "has no images; the reconstruction failed"),
        ("images.bin", (8 + 4, "<4d", (0.0, 0.0, 0.0, 0.0)), None, "image 9: the pose is not finite or its quaternion"),
        ("images.bin", (8 + 36, "<d", np.inf), None, "image 9: the pose is not finite or its quaternion"),
        ("images.bin", b"view 08", b"../w 08", r"image 9: the name '../w 08\.png' leads out of the folder"),
        ("images.bin", b"view 08", b"/iew 08", "leads out of the folder of photographs"),
        ("images.bin", b"view 08", b"\xffiew 08", "an image's name is not UTF-8"),
        ("points3D.bin", (0, "<Q", 2**50), None, "the number of points is 1125899906842624, more than fit"),
        ("points3D.bin", (8 + 43, "<Q", 2**61), None, "the track of point 0 is 2305843009213693952, more than fit"),
        ("points3D.bin", (8 + 8, "<d", np.nan), None, "point 0 has a position not finite"),
        ("points3D.bin", (8 + 8, "<d", 1e300), None, "point 0 has a position not finite"),
    ],
)
def test_bad_binary(tmp_path, name, old, new, message):
    files = colmap_bytes()
    if isinstance(old, bytes):
        assert old in files[name]
        files[name] = files[name].replace(old, new)
    else:
        offset, form, value = old
        packed = struct.pack(form, *value) if isinstance(value, tuple) else struct.pack(form, value)
        files[name] = files[name][:offset] + packed + files[name][offset + len(packed) :]
    refused(write_colmap(tmp_path, files), message)


def test_cut_off_binary(tmp_path):
    files = colmap_bytes()
    write_colmap(tmp_path, {**files, "cameras.bin": files["cameras.bin"][:-1]})
    refused(tmp_path, "cameras.bin: ends after 63 bytes within a record; it was cut off")
    write_colmap(tmp_path, {**files, "images.bin": files["images.bin"][: 8 + 64 + 3] + b"x" * 900})
    refused(tmp_path, "images.bin: an image's name has no end")


@pytest.mark.parametrize(
    ("name", "old", "new", "message"),
    [
        ("cameras.txt", b"SIMPLE_RADIAL", b"MAGIC", "camera 7: the model MAGIC is not supported; undistort first"),
        (
            "cameras.txt",
            b"7 SIMPLE_RADIAL 64",
            b"7 SIMPLE_RADIAL x",
            "line 2 is not CAMERA_ID MODEL WIDTH HEIGHT PARAMS",
        ),
        ("cameras.txt", b" 0.05", b"", "camera 7: SIMPLE_RADIAL has 4 parameters, got 3"),
        ("images.txt", b"7 view 08.png", b"7", "line 3 is not IMAGE_ID QW QX QY QZ TX TY TZ CAMERA_ID NAME"),
        ("images.txt", b"7 view 08.png", b"y view 08.png", "line 3 is not IMAGE_ID"),
        ("images.txt", b"view 08.png", b"\xff", "images.txt: is not text in UTF-8"),
        ("points3D.txt", b" 0.5\n", b" 0.5\n1 2 3\n", r"line 3 is not POINT3D_ID X Y Z R G B ERROR TRACK\.\.\. with"),
        ("points3D.txt", b" 0.5\n", b" 0.5\n1 2 3 4 5 6 256 1\n", "with R, G, B from 0 to 255"),
        (
            "points3D.txt",
            b" 0.5\n",
            b" 0.5\n1 2 3 x 5 6 7 1\n",
            r"line 3 is not POINT3D_ID X Y Z R G B ERROR TRACK\.\.\.",
        ),
    ],
)
def test_bad_text(tmp_path, name, old, new, message):
    files = colmap_texts()
    assert old in files[name]
    refused(write_colmap(tmp_path, {**files, name: files[name].replace(old, new, 1)}), message)


POSE = np.eye(4).tolist()


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"fl_x": "60"}, "frame 0: fl_x is '60', expected a finite number"),
        ({"fl_x": True}, "frame 0: fl_x is True, expected a finite number"),
        ({"fl_x": float("nan")}, "frame 0: fl_x is nan, expected a finite number"),
        ({"fl_x": 10**400}, "frame 0: fl_x is a huge integer, expected a finite number"),
        ({"fl_x": 0}, "frame 0: focal lengths must be finite and > 0"),
        ({"cx": None}, "frame 0: cx is missing, expected a number"),
        ({"w": 64.5}, "frame 0: w is 64.5, expected a whole number of pixels"),
        ({"w": 10**9}, "frame 0: a picture of 1000000000×48 px is outside"),
        ({"k1": -5}, "frame 0: the lens distortion folds the picture over, so its coefficients are wrong"),
        ({"k4": 0.1}, "frame 0: k4 of a lens that is no fisheye is ambiguous"),
        ({"k5": 0.1}, "frame 0: k5 is not supported; undistort the photographs first"),
        ({"camera_model": "EQUIRECTANGULAR"}, "frame 0: camera_model 'EQUIRECTANGULAR' is not supported; undistort"),
        ({"camera_model": ["x"]}, "frame 0: camera_model a list of 1 is not supported"),
        ({"is_fisheye": True, "p1": 0.1}, "frame 0: a fisheye lens with p1 or p2 is not supported"),
        ({"frames": []}, "is no list of cameras"),
        ({"frames": [{"transform_matrix": POSE}, 3]}, "frames is a list of 2, expected a list of objects"),
        ({"frames": [{"transform_matrix": POSE}]}, "frame 0: file_path is missing, expected a text"),
        ({"frames": [{"file_path": "a", "transform_matrix": 3}]}, "transform_matrix is 3, expected a 4×4 matrix"),
        ({"frames": [{"file_path": "a", "transform_matrix": [[1, 2]] * 4}]}, "is a list of 4, expected a 4×4 matrix"),
        (
            {"frames": [{"file_path": "a", "transform_matrix": [[1, 0, 0, "0"]] * 3}]},
            "a value that is not a finite number",
        ),
        (
            {"frames": [{"file_path": "a", "transform_matrix": [[1.0, 0, 0, 0]] * 4}]},
            "last row of transform_matrix is not",
        ),
        (
            {"frames": [{"file_path": "a", "transform_matrix": (2 * np.eye(4)).tolist()[:3]}]},
            "frame 0: the pose is not a rotation and a position, but has scale, shear or mirroring",
        ),
        (
            {"frames": [{"file_path": "a", "transform_matrix": np.diag([1.0, 1, -1, 1]).tolist()}]},
            "has scale, shear or mirroring",
        ),
    ],
)
def test_bad_transforms(tmp_path, change, message):
    refused(write_transforms(tmp_path, {**transforms(), **change}), message)


def test_bad_angles_and_sizes(tmp_path):
    content = transforms()
    del content["fl_x"], content["fl_y"]
    refused(write_transforms(tmp_path, content), "has neither fl_x nor camera_angle_x")
    refused(write_transforms(tmp_path, {**content, "camera_angle_x": 4.0}), "camera_angle_x is 4, expected an angle")
    content = {**transforms(), "fl_x": 60.0}
    del content["w"]
    write_transforms(tmp_path / "b", content, photographs=False)
    refused(tmp_path / "b", "frame 0: has no w and h, and the photograph .* is missing too", require_photographs=False)


@pytest.mark.parametrize(
    "text", [b"", b"{", b"\xff\xfe", b"[" * 100_000, b"[1]", b'{"frames": [{"viewmat": ', b"1" * 9999]
)
def test_bad_json(tmp_path, text):
    (tmp_path / "transforms.json").write_bytes(text)
    refused(tmp_path, "transforms.json: (is not JSON: |cameras is a list of 1, expected a list of objects)")


def test_too_large_files(tmp_path):
    for name, message in (
        ("transforms.json", "has 8589934592 bytes, at most 209715200 are read"),
        ("poses_bounds.npy", "is larger than 268435456 bytes"),
        ("cameras.txt", "is larger than 2147483648 bytes, too large for a sparse model"),
        ("cameras.bin", "is larger than 4294967296 bytes, too large for a sparse model"),
    ):
        with (tmp_path / name).open("wb") as file:
            file.truncate(2**33)  # sparse: takes no space
        (tmp_path / f"images{name[-4:]}").write_bytes(b"")
        (tmp_path / "images").mkdir(exist_ok=True)
        refused(tmp_path / name, message)
        (tmp_path / name).unlink()


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (lambda rows: rows[:, :16], r"holds float64 of shape \(9, 16\), expected floats of shape \(photographs, 17\)"),
        (lambda rows: rows.astype(int), "holds int64 of shape"),
        (lambda rows: rows[0], r"of shape \(17,\), expected"),
        (lambda rows: rows[:0], r"of shape \(0, 17\), expected"),
        (lambda rows: rows[:8], "has 8 poses, but .*images has 9 photographs"),
        (lambda rows: rows * np.r_[np.full(15, 2.0), 1, 1], "row 0: the pose is not a rotation"),
        (lambda rows: np.where(np.arange(17) == 4, 0.5, rows), "row 0: the picture size is 64×0.5, expected whole"),
        (lambda rows: np.where(np.arange(17) == 14, -1, rows), "row 0: focal lengths must be finite"),
        (lambda rows: np.where(np.arange(17) == 3, np.nan, rows), "row 0 has a value not finite"),
    ],
)
def test_bad_llff(tmp_path, change, message):
    np.save(tmp_path / "poses_bounds.npy", change(llff_rows()))
    for name in names(9):
        save_plain_picture(tmp_path / "images" / name)
    refused(tmp_path, message)


def test_llff_is_never_unpickled(tmp_path):
    (tmp_path / "images").mkdir()
    np.save(tmp_path / "poses_bounds.npy", np.array([[{}] * 17]), allow_pickle=True)
    refused(tmp_path, r"holds object of shape \(1, 17\)")
    good = (write_llff(tmp_path, llff_rows()) / "poses_bounds.npy").read_bytes()
    (tmp_path / "poses_bounds.npy").write_bytes(good[:-8])
    refused(tmp_path, "9 rows do not fit its 1344 bytes")
    (tmp_path / "poses_bounds.npy").write_bytes(b"\x93NUMPY\x01\x00\x10\x00" + b"(" * 16)
    refused(tmp_path, "is not a .npy file of numbers")


def test_bad_camera_lists(tmp_path):
    path = tmp_path / "cameras.json"
    for change, message in (
        ({"width": 0}, "width is 0.0, expected a whole number of pixels"),
        ({"fx": -1}, "frame 0: focal lengths must be finite"),
        ({"k1": -5}, "cameras.json: the lens distortion folds"),
    ):
        path.write_text(json.dumps(camera_list(**change)))
        refused(path, message)
    path.write_text(json.dumps({**camera_list(), "frames": [{"viewmat": POSE}]}))
    refused(path, "frame 0: file is missing, expected a text")
    path.write_text(json.dumps({**camera_list(), "frames": [{"file": "a", "viewmat": (3 * np.eye(4)).tolist()[:3]}]}))
    refused(path, "frame 0: the pose is not a rotation")


@pytest.mark.parametrize("given", ["cameras.json", "."])
def test_cameras_of_inria(tmp_path, given):
    (tmp_path / "cameras.json").write_text(json.dumps(inria_cameras()))
    capture = load_capture(tmp_path / given, require_photographs=False)
    assert_poses(capture)
    camera = capture.views[0].camera
    assert (camera.fx, camera.fy, camera.cx, camera.cy) == (FOCAL, FOCAL + 2, WIDTH / 2, HEIGHT / 2)
    track = load_track(tmp_path / "cameras.json", seconds=2.0)
    np.testing.assert_allclose(track.world_from_camera[0], poses(9)[0], atol=1e-9)
    assert len(track) == 60 and content_kind(tmp_path / "cameras.json") == ContentKind.CAPTURE


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"rotation": [[1, 0, 0]]}, "camera 3: rotation is .*, expected three rows of three numbers"),
        ({"rotation": [[1, 0, 0], [0, 1, 0], [0, 0, "a"]]}, "camera 3: rotation: 2 is 'a', expected only numbers"),
        ({"rotation": [[1, 0, 0], [0, 1, 0], [0, 0, 1.5]]}, "camera 3: the pose is not a rotation and a position"),
        ({"position": [0, 0]}, "camera 3: position is .*, expected a list of 3 numbers"),
        ({"fx": 0}, "camera 3: "),
        ({"img_name": 7}, "camera 3: img_name is 7, expected a text"),
    ],
)
def test_wrong_cameras_of_inria_are_refused(tmp_path, change, message):
    cameras = inria_cameras()
    cameras[3] |= change
    (tmp_path / "cameras.json").write_text(json.dumps(cameras))
    with pytest.raises(CaptureError, match=message):
        load_capture(tmp_path / "cameras.json", require_photographs=False)
