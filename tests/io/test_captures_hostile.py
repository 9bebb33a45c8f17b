"""Whatever bytes a capture's files have: a usable capture or a CaptureError of one line, and little memory."""

import json
import struct
import tracemalloc

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from made_captures import camera_list, colmap_bytes, colmap_texts, llff_rows, names, save_plain_picture, transforms

from hushsplat.io.captures.capture import load_capture
from hushsplat.types.errors import CaptureError

N = 3
EXAMPLES = settings(max_examples=60, deadline=None)
GOOD_BINARY, GOOD_TEXT = colmap_bytes(N, "OPENCV"), colmap_texts(N, "OPENCV")
EDITS = st.lists(st.tuples(st.integers(0, 2**16), st.binary(min_size=1, max_size=8)), max_size=3)


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    folder = tmp_path_factory.mktemp("capture")
    for name in names(N):
        save_plain_picture(folder / "images" / name)
    return folder


def usable_or_refused(path):
    try:
        capture = load_capture(path, require_photographs=False)
    except CaptureError as error:
        assert "\n" not in str(error) and str(error).startswith(str(path.parent))
        str(error).encode()  # printable, whatever was in the file
        return
    for view in capture.views:
        camera = view.camera
        assert np.isfinite(camera.world_from_camera).all() and 1 <= camera.width <= 16384 and camera.fx > 0
        assert view.distortion is None or not view.distortion.folds_within(camera)
    assert capture.points is None or np.isfinite(capture.points).all()


@pytest.mark.parametrize("kind", ["transforms", "camera list", "inria"])
@pytest.mark.parametrize("name", ["../secret.png", "images/../../secret.png", "..\\secret.png", "C:secret.png", None])
def test_photographs_outside_of_the_capture_are_not_opened(tmp_path, kind, name):
    save_plain_picture(tmp_path / "secret.png")
    name = str(tmp_path / "secret.png") if name is None else name
    if kind == "inria":
        lens = {"width": 64, "height": 48, "fx": 60.0, "fy": 60.0}
        content = [{"img_name": name, **lens, "position": [0, 0, 0], "rotation": np.eye(3).tolist()}]
    else:
        content = transforms() if kind == "transforms" else camera_list()
        content["frames"][0]["file_path" if kind == "transforms" else "file"] = name
    path = tmp_path / "capture" / ("cameras.json" if kind == "inria" else "transforms.json")
    path.parent.mkdir()
    path.write_text(json.dumps(content))
    with pytest.raises(CaptureError, match=r"(frame|camera) 0: the name '.* leads out of the folder of photographs"):
        load_capture(path, require_photographs=False)


def edited(content, edits, cut):
    changed = bytearray(content)
    for offset, patch in edits:
        offset %= len(changed)
        changed[offset : offset + len(patch)] = patch
    return bytes(changed[: len(changed) - cut % len(changed)])


@EXAMPLES
@given(st.sampled_from(sorted(GOOD_BINARY)), EDITS, st.one_of(st.just(0), st.integers(0, 2**16)))
def test_damaged_binary(folder, name, edits, cut):
    model = folder / "binary"
    model.mkdir(exist_ok=True)
    for file, content in GOOD_BINARY.items():
        (model / file).write_bytes(edited(content, edits, cut) if file == name else content)
    usable_or_refused(model)


@EXAMPLES
@given(st.sampled_from(sorted(GOOD_BINARY)), st.binary(max_size=300), st.integers(0, 2**64 - 1))
def test_random_binary(folder, name, content, count):
    model = folder / "random"
    model.mkdir(exist_ok=True)
    for file, good in GOOD_BINARY.items():
        (model / file).write_bytes(struct.pack("<Q", count) + content if file == name else good)
    usable_or_refused(model)


@EXAMPLES
@given(st.sampled_from(sorted(GOOD_TEXT)), EDITS, st.one_of(st.just(0), st.integers(0, 2**16)))
def test_damaged_text(folder, name, edits, cut):
    model = folder / "text"
    model.mkdir(exist_ok=True)
    for file, content in GOOD_TEXT.items():
        (model / file).write_bytes(edited(content, edits, cut) if file == name else content)
    usable_or_refused(model)


WORDS = st.sampled_from(
    ["1", "7", "-1", "nan", "inf", "1e999", "PINHOLE", "OPENCV", "a.png", "64", "0.5", "\n", "#", "9" * 400]
)


@EXAMPLES
@given(st.sampled_from(sorted(GOOD_TEXT)), st.lists(WORDS, max_size=30))
def test_random_text(folder, name, words):
    model = folder / "words"
    model.mkdir(exist_ok=True)
    for file, content in GOOD_TEXT.items():
        (model / file).write_bytes(" ".join(words).encode() if file == name else content)
    usable_or_refused(model)


JSON = st.recursive(
    st.none()
    | st.booleans()
    | st.integers()
    | st.floats()
    | st.text(max_size=5)
    | st.just(10**400)
    | st.just("\ud800"),
    lambda inner: st.lists(inner, max_size=5) | st.dictionaries(st.text(max_size=3), inner, max_size=3),
    max_leaves=10,
)
KEYS = ["fl_x", "fl_y", "cx", "cy", "w", "h", "k1", "k2", "k3", "k4", "p1", "p2", "camera_angle_x", "camera_model"]
KEYS += ["is_fisheye", "width", "height", "fx", "fy", "frames", "k5"]
FRAME_KEYS = ["file_path", "transform_matrix", "file", "viewmat", "fl_x", "w", "k1"]


@EXAMPLES
@given(
    st.sampled_from([transforms(N), camera_list(N)]),
    st.dictionaries(st.sampled_from(KEYS), JSON, max_size=2),
    st.dictionaries(st.sampled_from(FRAME_KEYS), JSON, max_size=1),
)
def test_json_of_wrong_types(folder, good, changes, frame_changes):
    content = {**good, "frames": [{**frame, **frame_changes} for frame in good["frames"]], **changes}
    path = folder / "cameras.json"
    path.write_text(json.dumps(content))
    usable_or_refused(path)


@EXAMPLES
@given(
    st.sampled_from(["transform_matrix", "viewmat"]),
    st.lists(st.floats(allow_nan=True, allow_infinity=True) | st.integers(-2, 2), min_size=16, max_size=16),
)
def test_huge_poses(folder, key, cells):
    good = transforms(N) if key == "transform_matrix" else camera_list(N)
    matrix = [cells[0:4], cells[4:8], cells[8:12], [0, 0, 0, 1]]
    path = folder / "wild.json"
    path.write_text(json.dumps({**good, "frames": [{**frame, key: matrix} for frame in good["frames"]]}))
    usable_or_refused(path)


@EXAMPLES
@given(EDITS, st.integers(0, 2**16), st.binary(max_size=200))
def test_damaged_json(folder, edits, cut, tail):
    path = folder / "damaged.json"
    path.write_bytes(edited(json.dumps(transforms(N)).encode(), edits, cut) + tail)
    usable_or_refused(path)


@EXAMPLES
@given(EDITS, st.one_of(st.just(0), st.integers(0, 2**16)), st.booleans())
def test_damaged_llff(folder, edits, cut, header_only):
    path = folder / "poses_bounds.npy"
    np.save(path, llff_rows(N))
    edits = [(offset % 128 if header_only else offset, patch) for offset, patch in edits]
    path.write_bytes(edited(path.read_bytes(), edits, cut))
    usable_or_refused(path)


def test_huge_counts_allocate_nothing(tmp_path):
    save_plain_picture(tmp_path / "images" / "a.png")
    header = f"{{'descr': '<f8', 'fortran_order': False, 'shape': ({2**40}, 17), }}".ljust(117) + "\n"
    np_file = b"\x93NUMPY\x01\x00" + struct.pack("<H", len(header)) + header.encode()
    cases = [{**GOOD_BINARY, name: struct.pack("<Q", 2**40) + GOOD_BINARY[name][8:]} for name in GOOD_BINARY]
    for number, case in enumerate([*cases, {"poses_bounds.npy": np_file}]):
        folder = tmp_path / f"{number}"
        (folder / "images").mkdir(parents=True)
        for name, content in case.items():
            (folder / name).write_bytes(content)
        peaks = []
        for _ in range(2):  # modules that the first reading imports are not memory of the second
            tracemalloc.start()
            with pytest.raises(CaptureError, match="fit"):
                load_capture(folder, require_photographs=False)
            peaks.append(tracemalloc.get_traced_memory()[1])
            tracemalloc.stop()
        assert peaks[1] < 2_000_000
