"""Recordings of EyeNavGS: axes, angles, times, and what is refused."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from hushsplat.io.captures.capture import load_capture
from hushsplat.io.eyenavgs import read_eyenavgs
from hushsplat.io.tracks import load_track
from hushsplat.types.errors import TrackError
from hushsplat.types.paths import reanchored

HEADER = (
    "ViewIndex,FOV1,FOV2,FOV3,FOV4,PositionX,PositionY,PositionZ,QuaternionX,QuaternionY,QuaternionZ,QuaternionW,"
    "GazePosX,GazePosY,GazePosZ,GazeQX,GazeQY,GazeQZ,GazeQW,Timestamp"
)
GAZE = "0,0,0,0,0,0,1"


def row(eye, position, quaternion_xyzw, time, fov="-0.942,0.698,-0.942,0.733"):
    numbers = ",".join(str(value) for value in (*position, *quaternion_xyzw))
    return f"{eye},{fov},{numbers},{GAZE},{time}"


def looking_ahead(times=(0, 14, 28)):
    """Walks forward (-z of OpenXR), one eye 0.06 beside the other."""
    rows = []
    for step, time in enumerate(times):
        rows += [row(0, (0, 1.6, -step), (0, 0, 0, 1), time), row(1, (0.06, 1.6, -step), (0, 0, 0, 1), time + 4)]
    return rows


def write(tmp_path, rows, header=HEADER, name="a.csv"):
    (tmp_path / name).write_text("\n".join([header, *rows]) + "\n")
    return tmp_path / name


def test_axes_and_times(tmp_path):
    path = write(tmp_path, looking_ahead())
    left, right = read_eyenavgs(path), read_eyenavgs(path, eye=1)
    np.testing.assert_allclose(left.times_s, [0, 0.014, 0.028])
    np.testing.assert_allclose(right.times_s, [0, 0.014, 0.028])  # from its own beginning
    # y up and z back became y down and z forward, for the world and for the camera: the identity stays one.
    np.testing.assert_allclose(left.world_from_camera[:, :3, :3], [np.eye(3)] * 3)
    np.testing.assert_allclose(left.world_from_camera[:, :3, 3], [[0, -1.6, 0], [0, -1.6, 1], [0, -1.6, 2]])
    np.testing.assert_allclose(right.world_from_camera[:, 0, 3], 0.06)
    assert (left.width, left.height, left.cx, left.cy) == (800, 532, 400, 266)


def test_looking_up_and_to_the_left(tmp_path):
    half = np.sqrt(0.5)
    path = write(tmp_path, [row(0, (0, 0, 0), (half, 0, 0, half), 0), row(0, (0, 0, 0), (0, half, 0, half), 10)])
    up, left = read_eyenavgs(path).world_from_camera[:, :3, 2]  # OpenXR: about +x looks up, about +y to the left
    np.testing.assert_allclose(up, [0, -1, 0], atol=1e-12)
    np.testing.assert_allclose(left, [-1, 0, 0], atol=1e-12)


def test_angles_of_view(tmp_path):
    path = write(tmp_path, looking_ahead())
    wide = read_eyenavgs(path)
    assert wide.fx == wide.fy == pytest.approx(800 / (np.tan(0.942) + np.tan(0.698)))
    tall = read_eyenavgs(path, width=300, height=800)
    assert tall.fy == pytest.approx(800 / (np.tan(0.942) + np.tan(0.733)))
    chosen = read_eyenavgs(path, width=640, height=480, fov_y_deg=60.0)
    assert chosen.fy == pytest.approx(240 / np.tan(np.radians(30))) and chosen.width == 640


def test_same_times_count_once(tmp_path):
    track = read_eyenavgs(write(tmp_path, looking_ahead((5, 5, 19, 19, 33))))
    np.testing.assert_allclose(track.times_s, [0, 0.014, 0.028])
    np.testing.assert_allclose(track.world_from_camera[:, 2, 3], [0, 2, 4])


@pytest.mark.parametrize("name", ["timestep", "elapsed_ms"])
def test_other_recorders(tmp_path, name):
    header = HEADER.replace("Timestamp", name)
    if name == "elapsed_ms":  # the recorder itself writes microseconds too
        header, rows = header.replace("elapsed_ms", "timestamp,elapsed_ms"), []
        for line in looking_ahead():
            head, _, time = line.rpartition(",")
            rows.append(f"{head},17000000{time},{time}")
    else:
        rows = looking_ahead()
    np.testing.assert_allclose(read_eyenavgs(write(tmp_path, rows, header)).times_s, [0, 0.014, 0.028])


def test_byte_order_mark_windows_lines_and_spaces(tmp_path):
    path = tmp_path / "a.csv"
    path.write_bytes("\ufeff".encode() + "\r\n".join([HEADER.replace(",", ", "), *looking_ahead(), "", ""]).encode())
    assert len(read_eyenavgs(path)) == 3
    assert len(load_track(path, eye=1)) == 3


@pytest.mark.parametrize(
    ("rows", "header", "message"),
    [
        ([], HEADER, "has no rows of eye 0"),
        ([], "", "has no column ViewIndex; is it a recording of EyeNavGS"),
        ([], HEADER.replace("QuaternionX", "Q"), "has no column QuaternionX"),
        ([], HEADER.replace("Timestamp", "t"), "has no column elapsed_ms or Timestamp or timestep"),
        (["0,1,2"], HEADER, "row 2 has 3 values, expected 20; was it cut off"),
        ([row(0, (0, 0, "x"), (0, 0, 0, 1), 0)], HEADER, "row 2 has a value that is not a number: .*'x'"),
        ([row(0, (0, 0, "nan"), (0, 0, 0, 1), 0)], HEADER, "row 0 of eye 0 has a value not finite"),
        ([row(0, (0, 0, 0), (0, 0, 0, 0), 0)], HEADER, "a quaternion of eye 0 is not of length 1"),
        (looking_ahead((0, 20, 10)), HEADER, "the times of eye 0 go back at its row 2"),
        (looking_ahead((7, 7, 7)), HEADER, "all times of eye 0 are the same, so there is no motion in it"),
        (
            [row(0, (0, 0, 0), (0, 0, 0, 1), 0, "0,0,0,0")],
            HEADER,
            "the angles of view .* are not a view; give fov_y_deg",
        ),
        (
            [row(0, (0, 0, 0), (0, 0, 0, 1), 0, "-9,9,-9,9")],
            HEADER,
            "the angles of view .* are not a view; give fov_y_deg",
        ),
        ([f'"{"9" * 200_000}"'], HEADER, "is not CSV: field larger than field limit"),
    ],
)
def test_bad_recordings(tmp_path, rows, header, message):
    with pytest.raises(TrackError, match=message) as caught:
        read_eyenavgs(write(tmp_path, rows, header))
    assert "\n" not in str(caught.value)


def test_bad_eye_and_field_of_view_are_refused(tmp_path):
    path = write(tmp_path, looking_ahead())
    with pytest.raises(TrackError, match=r"eye is 2, expected 0 \(left\) or 1 \(right\)"):
        read_eyenavgs(path, eye=2)
    with pytest.raises(TrackError, match="fov_y_deg must lie between 0 and 180"):
        read_eyenavgs(path, fov_y_deg=180.0)
    with pytest.raises(TrackError, match="a picture of 0×532 px is outside"):
        read_eyenavgs(path, width=0, fov_y_deg=50.0)
    with pytest.raises(TrackError, match="cannot be read"):
        read_eyenavgs(tmp_path / "none.csv")
    path.write_bytes(b"\xff")
    with pytest.raises(TrackError, match="is not text in UTF-8"):
        read_eyenavgs(path)
    with path.open("wb") as file:
        file.truncate(2**31)
    with pytest.raises(TrackError, match="is larger than 209715200 bytes"):
        read_eyenavgs(path)


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    return tmp_path_factory.mktemp("eyenavgs")


CELLS = st.sampled_from(["0", "1", "-1", "", "nan", "inf", "1e999", "x", '"', "\0", "\r", "0.5", "\ud7ff", ",", "\n"])


@settings(max_examples=150, deadline=None)
@given(st.lists(st.tuples(st.integers(0, 300), CELLS), max_size=4), st.one_of(st.just(0), st.integers(0, 900)))
def test_damaged_recordings(folder, edits, cut):
    lines = [HEADER, *looking_ahead()]
    cells = ",\n,".join(lines).split(",")
    for offset, value in edits:
        cells[offset % len(cells)] = value
    text = ",".join(cells).replace(",\n,", "\n")
    (folder / "a.csv").write_bytes(text.encode()[: max(0, len(text) - cut)])
    try:
        track = read_eyenavgs(folder / "a.csv")
    except TrackError as error:
        assert "\n" not in str(error) and "a.csv" in str(error)
    else:
        assert np.isfinite(track.world_from_camera).all() and (np.diff(track.times_s) > 0).all()


@pytest.mark.real_data
@pytest.mark.parametrize(
    ("name", "poses", "tilt_deg", "eyes_apart"),
    [("user101_room", 6442, 2 * 13.5, 2 * 0.0623), ("user102_playroom", 2412, 2 * 11.3, 2.7 * 0.0623)],
)
def test_real_recordings(real_data, name, poses, tilt_deg, eyes_apart):
    """The scene's tilt and scale that the dataset states (scene_setting.csv) are found in the converted poses."""
    path = real_data / "tracks" / f"eyenavgs_{name}.csv"
    left, right = read_eyenavgs(path), read_eyenavgs(path, eye=1)
    assert len(left) == poses and left.duration_s > 60
    count = min(len(left), len(right))
    apart = right.world_from_camera[:count, :3, 3] - left.world_from_camera[:count, :3, 3]
    own = np.einsum("nji,nj->ni", left.world_from_camera[:count, :3, :3], apart)
    np.testing.assert_allclose(own.mean(axis=0), [eyes_apart, 0, 0], atol=2e-3)  # the right eye is on the right
    aside = left.world_from_camera[:, :3, 0]
    up = np.linalg.eigh(aside.T @ aside)[1][:, 0]
    expected = [0, -np.cos(np.radians(tilt_deg)), -np.sin(np.radians(tilt_deg))]
    assert np.degrees(np.arccos(abs(up @ expected))) < 5
    steps = np.diff(left.world_from_camera[:, :3, 3], axis=0)
    assert np.sum(steps * left.world_from_camera[:-1, :3, 2]) > 0  # people walk forward
    assert len(left.resampled(30.0)) == int(left.duration_s * 30) + 1


@pytest.mark.real_data
def test_real_recording_in_another_scene(real_data):
    track = load_track(real_data / "tracks" / "eyenavgs_user101_room.csv").resampled(10.0)
    anchor = load_capture(real_data / "bonsai" / "cameras_in_splat_frame.json").views[0].camera
    moved = reanchored(track, anchor, 0.5, up=(0.0, -1.0, 0.0))
    np.testing.assert_allclose(moved.camera(0).position, anchor.position)
    spread, before = (np.ptp(t.world_from_camera[:, :3, 3], axis=0) for t in (moved, track))
    assert spread[1] < 0.5 * before.max()  # along up, a person moves less than across
    assert (moved.world_from_camera[:, 1, 1] > 0.3).all()  # never upside down
