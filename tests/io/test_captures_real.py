"""Real captures: what was measured of them independently comes out again."""

import struct

import numpy as np
import pytest

from hushsplat.io.captures.capture import covered_pixels, load_capture, load_photograph

pytestmark = pytest.mark.real_data


def observations(path):
    """Where the images.bin of a model saw which point: name -> (pixels, ids); this test's own reader."""
    data, offset, result = path.read_bytes(), 8, {}
    for _ in range(struct.unpack_from("<Q", data)[0]):
        end = data.index(b"\0", offset + 64)
        name = data[offset + 64 : end].decode()
        (count,) = struct.unpack_from("<Q", data, end + 1)
        table = np.frombuffer(data, np.dtype([("px", "<f8", 2), ("id", "<i8")]), count, end + 9)
        seen = table[table["id"] >= 0]
        result[name] = seen["px"], seen["id"]
        offset = end + 9 + 24 * count
    return result


def point_positions(path):
    data, offset, result = path.read_bytes(), 8, {}
    for _ in range(struct.unpack_from("<Q", data)[0]):
        point_id, x, y, z = struct.unpack_from("<Q3d", data, offset)
        result[point_id] = (x, y, z)
        (track,) = struct.unpack_from("<Q", data, offset + 43)
        offset += 51 + 8 * track
    return result


def projected(view, points):
    inverse = view.camera.camera_from_world
    local = points @ inverse[:3, :3].T + inverse[:3, 3]
    seen = view.distortion.distort(local[:, :2] / local[:, 2:])
    return seen * [view.camera.fx, view.camera.fy] + [view.camera.cx, view.camera.cy]


def test_bonsai(real_data):
    capture = load_capture(real_data / "bonsai")
    assert len(capture.views) == 292 and len(capture.held_out) == 37 and len(capture.train) == 255
    assert capture.points.shape == capture.point_colors.shape == (18707, 3)
    model = real_data / "bonsai" / "sparse" / "0"
    positions, seen = point_positions(model / "points3D.bin"), observations(model / "images.bin")
    np.testing.assert_array_equal(np.array(list(positions.values()), np.float32), capture.points)
    errors, seen_points = [], []
    for view in capture.views:
        pixels, ids = seen[view.name]
        there = projected(view, np.array([positions[point_id] for point_id in ids]))
        errors.append(np.linalg.norm(there - pixels, axis=1))
        seen_points.append(ids)
    errors = np.concatenate(errors)
    # pycolmap 4.2.1 projects each of the 139,395 observations to the same place within 1e-12 px. What it calls the
    # mean reprojection error, 0.6285 px, is the mean over points of each point's mean.
    assert len(errors) == 139395
    assert np.median(errors) == pytest.approx(0.4415, abs=1e-3) and errors.mean() == pytest.approx(0.6663, abs=1e-3)
    _, point = np.unique(np.concatenate(seen_points), return_inverse=True)
    of_points = np.bincount(point, errors) / np.bincount(point)
    assert of_points.mean() == pytest.approx(0.628457, abs=1e-5)


def test_bonsai_cameras_in_the_frame_of_its_splat(real_data):
    """The same cameras but for a similarity: relative rotations and ratios of distances agree."""
    colmap = load_capture(real_data / "bonsai").views
    listed = load_capture(real_data / "bonsai" / "cameras_in_splat_frame.json").views
    assert [view.name for view in colmap] == [view.name for view in listed]
    assert listed[0].camera.fx == colmap[0].camera.fx and listed[0].distortion == colmap[0].distortion
    for a, b in ((0, 10), (50, 200), (291, 3)):
        turns = [
            v[a].camera.camera_from_world[:3, :3] @ v[b].camera.world_from_camera[:3, :3] for v in (colmap, listed)
        ]
        np.testing.assert_allclose(turns[0], turns[1], atol=1e-6)
        apart = [np.linalg.norm(v[a].camera.position - v[b].camera.position) for v in (colmap, listed)]
        assert apart[0] / apart[1] == pytest.approx(0.9957880325701031, rel=1e-6)


def test_bonsai_photograph(real_data):
    view = load_capture(real_data / "bonsai").views[0]
    picture, camera = load_photograph(view, width=400)
    assert picture.shape == (266, 400, 3) and camera.fx == view.camera.fx / 2
    assert 0.2 < picture.mean() < 0.8 and covered_pixels(view).all()


def test_fox(real_data):
    capture = load_capture(real_data / "fox")
    assert len(capture.views) == 67 and capture.points is None
    view = capture.views[0]
    assert view.camera.width == 1080 and view.camera.fx == 1375.52
    assert view.distortion.coefficients[:4] == (0.0578421, -0.0805099, -0.000980296, 0.00015575)
    picture, _ = load_photograph(view, width=270)
    assert picture.shape == (480, 270, 3) and covered_pixels(view).mean() > 0.97
    # They were taken round the fox: all look towards one place, and the z axis of the file is up.
    forward = np.stack([v.camera.world_from_camera[:3, 2] for v in capture.views])
    eyes = np.stack([v.camera.position for v in capture.views])
    across = np.eye(3) - forward[:, :, None] * forward[:, None, :]
    place = np.linalg.solve(across.sum(axis=0), np.einsum("nij,nj->i", across, eyes))
    assert (np.sum((place - eyes) * forward, axis=1) > 0).all()  # in front of every camera
    assert np.mean([v.camera.world_from_camera[2, 1] for v in capture.views]) < -0.8  # down in the picture is -z
