"""Tracks on disk: bit for bit there and back, hostile files refused, and the one entry for all kinds."""

import json
from dataclasses import fields

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from made_captures import camera_list, colmap_bytes, transforms, write_colmap, write_transforms

from hushsplat.io import tracks
from hushsplat.io.captures.capture import load_capture
from hushsplat.io.tracks import load_track, read_track, write_track
from hushsplat.types.errors import HushsplatError, TrackError
from hushsplat.types.paths import orbit, track_from_cameras, walk
from hushsplat.types.rotations import matrix_from_quaternion
from hushsplat.types.track import Track

EXAMPLES = settings(max_examples=100, deadline=None)


def assert_same(a, b):
    for field in fields(Track):
        np.testing.assert_array_equal(getattr(a, field.name), getattr(b, field.name))


def random_track(seed=0, n=5):
    rng = np.random.default_rng(seed)
    poses = np.tile(np.eye(4), (n, 1, 1))
    poses[:, :3, :3] = matrix_from_quaternion(rng.normal(size=(n, 4)))
    poses[:, :3, 3] = rng.normal(size=(n, 3)) * 10.0 ** rng.integers(-30, 30, size=(n, 3))
    times = np.cumsum(rng.uniform(1e-3, 1, size=n))
    return Track(80, 60, 70.1, 71 / 3, 40.0, 1e-3, times, poses)


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    return tmp_path_factory.mktemp("tracks")


@EXAMPLES
@given(st.integers(0, 10**6), st.integers(1, 6))
def test_track_round_trip_is_exact(folder, seed, n):
    track = random_track(seed, n)
    write_track(track, folder / "a.json")
    assert_same(read_track(folder / "a.json"), track)
    assert_same(load_track(str(folder / "a.json")), track)


def test_the_file_is_as_documented(tmp_path):
    track = walk([[0, 0, 0], [1, 0, 0]], seconds=0.1)
    write_track(track, str(tmp_path / "a.json"))
    text = (tmp_path / "a.json").read_text()
    content = json.loads(text)
    assert list(content) == ["format", "version", "convention", "width", "height", "fx", "fy", "cx", "cy", "frames"]
    assert (content["format"], content["version"], content["convention"]) == ("hushsplat-track", 1, "opencv")
    assert list(content["frames"][0]) == ["time_s", "world_from_camera"]
    assert len(text.splitlines()) == len(track) + 2  # a frame a line


def test_the_example_of_the_docs(tmp_path, request):
    text = (request.config.rootpath / "docs" / "tracks.md").read_text()
    (tmp_path / "a.json").write_text(text.split("```json\n")[1].split("```")[0])
    track = read_track(tmp_path / "a.json")
    assert len(track) == 2 and track.camera(0).position.tolist() == [0, 0, -4]


def test_unknown_fields_and_three_rows(tmp_path):
    content = good()
    content["note"] = {"by": "somebody"}
    content["frames"][0]["world_from_camera"].pop()
    assert len(read_changed(tmp_path, content)) == 3


def test_a_failing_write_leaves_the_old_file(tmp_path, monkeypatch):
    (tmp_path / "a.json").write_text("old")
    monkeypatch.setattr(tracks, "MAX_JSON_BYTES", 500)
    with pytest.raises(TrackError, match=r"a\.json: 5 frames are too many for one file; split the track"):
        write_track(random_track(), tmp_path / "a.json")
    assert [path.name for path in tmp_path.iterdir()] == ["a.json"] and (tmp_path / "a.json").read_text() == "old"
    with pytest.raises(HushsplatError, match="does not exist; create it first"):
        write_track(random_track(), tmp_path / "none" / "a.json")


def good():
    poses = [np.eye(4).tolist() for _ in range(3)]
    return {
        "format": "hushsplat-track",
        "version": 1,
        "convention": "opencv",
        "width": 80,
        "height": 60,
        "fx": 70.5,
        "fy": 70,
        "cx": 40,
        "cy": 30,
        "frames": [{"time_s": i / 30, "world_from_camera": pose} for i, pose in enumerate(poses)],
    }


def read_changed(tmp_path, content):
    (tmp_path / "a.json").write_text(json.dumps(content))
    return read_track(tmp_path / "a.json")


SCALED, MIRRORED = (2 * np.eye(4)).tolist()[:3], np.diag([1.0, 1, -1, 1]).tolist()


@pytest.mark.parametrize(
    ("change", "frame_change", "message"),
    [
        ({"format": "other"}, {}, r"a\.json: format is 'other', expected 'hushsplat-track'\."),
        ({"version": 2}, {}, "version is 2, expected 1"),
        ({"version": True}, {}, "version is True, expected 1"),
        ({"convention": "opengl"}, {}, "convention is 'opengl', expected 'opencv'"),
        ({"convention": None}, {}, "convention is missing, expected 'opencv'"),
        ({"width": 0}, {}, r"width is 0\.0, expected a whole number of pixels"),
        ({"width": 80.5}, {}, r"width is 80\.5, expected a whole number of pixels"),
        ({"height": 10**6}, {}, r"a\.json: a picture of 80×1000000 px is outside"),
        ({"fx": -1.0}, {}, r"a\.json: focal lengths must be finite and > 0, got fx=-1"),
        ({"fy": "70"}, {}, "fy is '70', expected a finite number"),
        ({"cx": float("inf")}, {}, "cx is inf, expected a finite number"),
        ({"cy": None}, {}, "cy is missing, expected a number"),
        ({"frames": []}, {}, "frames is a list of 0, expected a list of objects"),
        ({"frames": {}}, {}, "frames is an object, expected a list of objects"),
        ({"frames": [1]}, {}, "frames is a list of 1, expected a list of objects"),
        ({}, {"time_s": None}, "frame 1: time_s is missing, expected a number"),
        ({}, {"time_s": 0.0}, r"a\.json: the times of a track must be finite and strictly increasing"),
        (
            {},
            {"world_from_camera": [[1, 2], [3, 4]]},
            "frame 1: world_from_camera is a list of 2, expected a 4×4 matrix",
        ),
        (
            {},
            {"world_from_camera": [[0, 0, 0, None]] * 4},
            "frame 1: world_from_camera has a value that is not a finite",
        ),
        (
            {},
            {"world_from_camera": [[0, 0, 0, True]] * 4},
            "frame 1: world_from_camera has a value that is not a finite",
        ),
        (
            {},
            {"world_from_camera": [[0, 0, 0, 10**999]] * 4},
            "frame 1: world_from_camera has a value that is not a finite",
        ),
        ({}, {"world_from_camera": [[0, 0, 0, 0]] * 4}, "the last row of world_from_camera is not 0 0 0 1"),
        ({}, {"world_from_camera": SCALED}, r"a\.json: pose 1 of the track must be a rotation and a position"),
        ({}, {"world_from_camera": MIRRORED}, "pose 1 of the track must be a rotation and a position"),
    ],
)
def test_bad_tracks(tmp_path, change, frame_change, message):
    content = good()
    content["frames"][1] |= frame_change
    with pytest.raises(TrackError, match=message) as caught:
        read_changed(tmp_path, {**content, **change})
    assert "\n" not in str(caught.value)


def test_too_many_frames(tmp_path, monkeypatch):
    monkeypatch.setattr(tracks, "MAX_FRAMES", 2)
    with pytest.raises(TrackError, match="3 frames are more than 2; split the track"):
        read_changed(tmp_path, good())


def test_too_large(tmp_path):
    with (tmp_path / "a.json").open("wb") as file:
        file.truncate(2**32)  # sparse: takes no space
    with pytest.raises(TrackError, match="has 4294967296 bytes, at most 209715200 are read"):
        read_track(tmp_path / "a.json")


def test_missing_track_is_refused(tmp_path):
    with pytest.raises(TrackError, match=r"a\.json: cannot be read: No such file or directory"):
        read_track(tmp_path / "a.json")
    with pytest.raises(TrackError, match="does not exist; a track is a"):
        load_track(tmp_path / "a.json")


def usable_or_refused(path):
    try:
        track = load_track(path)
    except HushsplatError as error:
        assert "\n" not in str(error) and str(path.parent) in str(error)
        str(error).encode()
    else:
        assert np.isfinite(track.world_from_camera).all() and (np.diff(track.times_s) > 0).all()


@EXAMPLES
@given(
    st.lists(st.tuples(st.integers(0, 2**16), st.binary(min_size=1, max_size=6)), max_size=3),
    st.one_of(st.just(0), st.integers(0, 2**16)),
)
def test_damaged_files(folder, edits, cut):
    content = bytearray(json.dumps(good()).encode())
    for offset, patch in edits:
        offset %= len(content)
        content[offset : offset + len(patch)] = patch
    (folder / "b.json").write_bytes(content[: len(content) - cut % len(content)])
    usable_or_refused(folder / "b.json")


@EXAMPLES
@given(st.binary(max_size=200), st.sampled_from(["json", "csv", "npy", "bin", "txt"]))
def test_random_files(folder, content, suffix):
    (folder / f"c.{suffix}").write_bytes(content)
    usable_or_refused(folder / f"c.{suffix}")


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


@EXAMPLES
@given(
    st.dictionaries(st.sampled_from(sorted(good())), JSON, max_size=2),
    st.dictionaries(st.sampled_from(["time_s", "world_from_camera"]), JSON, max_size=1),
    st.lists(st.floats() | st.integers(-1, 1), min_size=12, max_size=12) | st.none(),
)
def test_wrong_types_and_huge_poses(folder, changes, frame_changes, cells):
    content = good()
    content["frames"][1] |= frame_changes
    if cells is not None:
        content["frames"][2]["world_from_camera"] = [cells[0:4], cells[4:8], cells[8:12]]
    (folder / "d.json").write_text(json.dumps({**content, **changes}))
    usable_or_refused(folder / "d.json")


def test_flight_through_a_capture(tmp_path):
    write_colmap(tmp_path / "colmap", colmap_bytes(), n=0)  # photographs are not needed for it
    cameras = [view.camera for view in load_capture(tmp_path / "colmap", require_photographs=False).views]
    track = load_track(tmp_path / "colmap", seconds=2.0, fps=10.0)
    assert_same(track, track_from_cameras(cameras, 2.0, 10.0))
    assert len(track) == 20 and len(load_track(tmp_path / "colmap")) == round(9 * 0.5 * 30)
    write_transforms(tmp_path / "nerf", transforms(), photographs=False)
    assert len(load_track(tmp_path / "nerf" / "transforms.json", seconds=1.0)) == 30
    (tmp_path / "list.json").write_text(json.dumps(camera_list()))
    assert len(load_track(tmp_path / "list.json", seconds=1.0)) == 30


@pytest.mark.parametrize(
    ("cameras", "seconds"),
    [(600, 20.0), (2000, 2000 / 30), (60, 30.0), (24, 12.0), (200, (200 * np.interp(1.8, [1, 3], [1 / 30, 0.5])))],
)
def test_flight_takes_as_long_as_its_cameras_are_apart(tmp_path, cameras, seconds):
    turn = orbit(np.array([50.0, 0, 0]), 3.0, seconds=1.0, fps=float(cameras))
    frames = [{"file": f"{k}.png", "viewmat": turn.camera(k).camera_from_world.tolist()} for k in range(cameras)]
    lens = {"width": 80, "height": 60, "fx": 70.0, "fy": 70.0, "cx": 40.0, "cy": 30.0}
    (tmp_path / "cameras.json").write_text(json.dumps({**lens, "frames": frames}))
    track = load_track(tmp_path / "cameras.json")
    assert np.isclose(len(track) / 30, seconds, atol=0.05)
    assert len(load_track(tmp_path / "cameras.json", seconds=2.0)) == 60


@pytest.mark.parametrize("cameras", [1, 2])
def test_flight_past_cameras_in_one_place(tmp_path, cameras):
    frames = [{"file": f"{k}.png", "viewmat": np.eye(4).tolist()} for k in range(cameras)]
    lens = {"width": 80, "height": 60, "fx": 70.0, "fy": 70.0, "cx": 40.0, "cy": 30.0}
    (tmp_path / "cameras.json").write_text(json.dumps({**lens, "frames": frames}))
    assert len(load_track(tmp_path / "cameras.json")) >= 1
