"""Pass 1: holes, motion, resampling, validity."""

import numpy as np
import pytest
import torch
from made_frames import camera_at, plane_color, plane_observation, plane_points, random_state

from hushsplat.engines.torch.reproject import fill_holes, reproject, resample
from hushsplat.engines.torch.tensors import TensorState
from hushsplat.spec.settings import DenoiserSettings
from hushsplat.types.camera import Camera
from hushsplat.types.colour import ycocg_from_rgb

CONFIG = DenoiserSettings()


def plane_state(camera: Camera, dtype=torch.float64) -> TensorState:
    points, depth = plane_points(camera)
    values = np.zeros((camera.height, camera.width, 16))
    values[..., 0:3] = ycocg_from_rgb(plane_color(points))
    values[..., 4] = 10
    values[..., 14] = depth
    return TensorState(torch.tensor(values, dtype=dtype), camera)


def places_before(current: Camera, previous: Camera) -> tuple[np.ndarray, np.ndarray]:
    """Pixel positions and depths of the current pixels' plane points in the previous camera, by the textbook."""
    points, _ = plane_points(current)
    inside = points @ previous.camera_from_world[:3, :3].T + previous.camera_from_world[:3, 3]
    depth = inside[..., 2]
    x = inside[..., 0] / depth * previous.fx + previous.cx
    y = inside[..., 1] / depth * previous.fy + previous.cy
    return np.stack([x, y], axis=-1), depth


MOVES = {
    "sideways": {"x": 0.21},
    "towards": {"z": 0.3, "y": -0.05},
    "turn": {"turn": 0.07},
    "zoom": {"zoom": 1.1},
    "all": {"x": -0.1, "y": 0.12, "z": -0.2, "turn": -0.05, "zoom": 0.95},
}


@pytest.mark.parametrize("move", MOVES.values(), ids=MOVES.keys())
def test_a_plane_is_reprojected_exactly(move):
    previous, current = camera_at(), camera_at(**move)
    history = reproject(plane_observation(current).depth, current, plane_state(previous), CONFIG)
    place, _ = places_before(current, previous)
    column, row = np.meshgrid(np.arange(current.width) + 0.5, np.arange(current.height) + 0.5)
    np.testing.assert_allclose(history.motion_px, place - np.stack([column, row], -1), atol=1e-9)
    inside = ((place >= 0) & (place < [current.width, current.height])).all(-1)
    np.testing.assert_array_equal(history.valid, inside)
    assert inside.mean() > 0.5
    assert inside.all() == ("x" not in move and "turn" not in move)

    expected = ycocg_from_rgb(plane_color(plane_points(current)[0]))
    error = np.abs(history.accumulated.numpy() - expected)[inside]
    border = 2  # px: clamped taps and the clamp to central taps cost most at the edges of the picture
    middle = ((place >= border) & (place < [current.width - border, current.height - border])).all(-1)
    assert np.abs(history.accumulated.numpy() - expected)[middle].max() < 2e-3
    assert error.max() < 0.02
    # A pixel's texture changes by far more than that from one pixel to the next.
    assert np.abs(np.diff(expected, axis=1)).max() > 0.03

    assert (history.relative_depth.numpy()[inside] < 0.02).all()  # the nearest pixel of a tilted plane
    assert (history.relative_depth.numpy()[~inside] == 1).all()
    assert (history.values.numpy()[~inside] == 0).all()


def test_relative_depth_is_that_of_the_pixel_it_lies_in():
    previous, current = camera_at(), camera_at(x=0.17, z=0.1)
    state = plane_state(previous)
    history = reproject(plane_observation(current).depth, current, state, CONFIG)
    place, depth = places_before(current, previous)
    for row, column in [(10, 12), (20, 30), (5, 40)]:
        x, y = place[row, column]
        before = state.depth[int(y), int(x)].item()
        here = depth[row, column]
        assert history.relative_depth[row, column] == pytest.approx(abs(here - before) / max(here, before))


def test_float32_motion_is_accurate_far_from_the_origin_of_the_picture():
    previous = camera_at(width=2000, height=8)
    current = camera_at(width=2000, height=8, x=0.0003)
    depth = plane_observation(current).depth
    exact = reproject(depth, current, plane_state(previous), CONFIG).motion_px
    rounded = reproject(depth.float(), current, plane_state(previous, torch.float32), CONFIG).motion_px
    assert (rounded - exact).abs().max() < 1e-7 * 50  # a place of 2000 px is rounded to 1.2e-4


def test_a_static_camera_takes_the_state_as_it_is():
    camera = camera_at(turn=0.3)
    state = random_state(camera)
    depth = state.depth * 1.25
    history = reproject(depth, camera, state, CONFIG)
    assert history.static
    assert history.valid.all()
    assert torch.equal(history.values, state.values)
    assert (history.motion_px == 0).all()
    torch.testing.assert_close(history.relative_depth, torch.full_like(depth, 0.2))


def test_a_camera_that_hardly_moves_gives_the_same_as_a_static_one():
    previous = camera_at()
    state = random_state(previous)
    history = reproject(state.depth, camera_at(x=3e-6), state, CONFIG)
    assert not history.static
    torch.testing.assert_close(history.values[..., :14], state.values[..., :14], atol=5e-4, rtol=1e-2)
    torch.testing.assert_close(history.relative_depth, torch.zeros_like(history.relative_depth), atol=1e-6, rtol=0)


def test_zoom_alone_is_no_static_camera():
    state = random_state(camera_at())
    assert not reproject(state.depth, camera_at(zoom=1.0001), state, CONFIG).static


def test_without_a_state_there_is_no_history():
    camera = camera_at()
    depth = plane_observation(camera).depth
    for state in (None, random_state(camera_at(width=47))):
        history = reproject(depth, camera, state, CONFIG)
        assert not history.static
        assert not history.valid.any()
        assert (history.values == 0).all()
        assert (history.motion_px == 0).all()
        assert (history.relative_depth == 1).all()


def test_behind_the_previous_camera_there_is_no_history():
    previous, current = camera_at(z=100.0), camera_at()
    history = reproject(plane_observation(current).depth, current, random_state(previous), CONFIG)
    assert not history.valid.any()
    assert (history.compressed_motion(20.0) > 1 - 1e-6).all()


def test_compressed_motion_by_hand():
    camera = camera_at(width=4, height=3)
    history = reproject(torch.full((3, 4), 2.0), camera, None, CONFIG)
    moved = torch.zeros(3, 4, 2)
    moved[1, 2] = torch.tensor([3.0, 4.0])
    compressed = type(history)(**{**vars(history), "motion_px": moved}).compressed_motion(20.0)
    assert compressed[1, 2] == pytest.approx(5 / 25)
    assert compressed[0, 0] == 0


def test_holes_take_the_mean_of_their_neighbours_else_the_far_plane():
    depth = torch.zeros(5, 6)
    depth[0, 0], depth[1, 1], depth[0, 2] = 2.0, 3.0, 7.0
    filled = fill_holes(depth, 1000.0)
    assert filled[0, 0] == 2 and filled[1, 1] == 3 and filled[0, 2] == 7
    assert filled[0, 1] == 4  # of 2, 3 and 7
    assert filled[1, 0] == 2.5  # of 2 and 3; what lies outside the picture does not count
    assert filled[2, 2] == 3
    assert filled[4, 5] == 1000
    negative = fill_holes(torch.full((2, 2), -1.0), 50.0)
    assert (negative == 50).all()


def test_catmull_rom_reproduces_parabolas_and_any_whole_motion():
    column = torch.arange(12, dtype=torch.float64)
    values = (0.3 * column**2 + column + 2).expand(3, 12)[..., None]  # rising, so that the clamp does nothing
    shift = torch.zeros(3, 12, 2, dtype=torch.float64)
    shift[..., 0] = 1.3
    moved = resample(values.contiguous(), shift)[:, 1:9, 0]  # the taps of the others are clamped
    place = column[1:9] + 1.3
    torch.testing.assert_close(moved, (0.3 * place**2 + place + 2).expand(3, 8))

    picture = torch.rand(6, 7, 2, dtype=torch.float64)
    shift = torch.tensor([2.0, -3.0], dtype=torch.float64).expand(6, 7, 2)
    moved = resample(picture, shift)
    torch.testing.assert_close(moved[3:, :5], picture[:3, 2:])
    torch.testing.assert_close(moved[0, 6], picture[0, 6])  # clamped to the edge


def test_catmull_rom_never_overshoots():
    torch.manual_seed(0)
    picture = (torch.rand(20, 20, 3) > 0.5).float() * 100
    shift = torch.rand(20, 20, 2) * 6 - 3
    moved = resample(picture, shift)
    assert moved.min() >= 0 and moved.max() <= 100
    step = torch.zeros(1, 8, 1)
    step[:, 4:] = 1
    half = torch.tensor([0.5, 0.0]).expand(1, 8, 2)
    torch.testing.assert_close(resample(step, half)[0, :, 0], torch.tensor([0, 0, 0, 0.5, 1, 1, 1, 1]))
