"""What the denoiser keeps and how the camera moved: state, colours, motion, weights in memory."""

import numpy as np
import pytest

from hushsplat.spec.state import State
from hushsplat.spec.weights import SHAPES, DenoiserWeights
from hushsplat.types.camera import Camera
from hushsplat.types.colour import rgb_from_ycocg, ycocg_from_rgb
from hushsplat.types.errors import DenoiseError, WeightsError
from hushsplat.types.image import Image
from hushsplat.types.motion import CameraMotion


def camera(width=4, height=3, x=0.0) -> Camera:
    return Camera.look_at((x, 0, -2), (x, 0, 0), width=width, height=height)


def test_ycocg_of_plain_colours():
    rgb = np.array([[1, 1, 1], [1, 0, 0], [0, 1, 0], [0, 0, 1]], dtype=np.float32)
    expected = [[1, 0, 0], [0.25, 0.5, -0.25], [0.5, 0, 0.5], [0.25, -0.5, -0.25]]
    np.testing.assert_array_equal(ycocg_from_rgb(rgb), expected)
    assert ycocg_from_rgb(rgb).dtype == np.float32


def test_ycocg_and_back():
    rgb = np.random.default_rng(0).normal(size=(5, 6, 3))
    np.testing.assert_allclose(rgb_from_ycocg(ycocg_from_rgb(rgb)), rgb, atol=1e-15)


def test_the_channels_of_a_state_have_names():
    values = np.zeros((3, 4, 16), dtype=np.float32)
    values[...] = np.arange(16)
    state = State("temporal", values, camera())
    names = {
        "accumulated": [0, 1, 2],
        "squared_luma": 3,
        "accumulated_frames": 4,
        "accumulated_trust": 5,
        "denoised": [6, 7, 8],
        "denoised_frames": 9,
        "denoised_trust": 10,
        "stabilised": [11, 12, 13],
        "depth": 14,
    }
    for name, channels in names.items():
        view = getattr(state, name)
        np.testing.assert_array_equal(view[1, 2], channels)
        assert np.shares_memory(view, values)


def test_a_state_must_fit_its_camera():
    with pytest.raises(DenoiseError, match=r"shape \(3, 5, 16\) does not fit its camera; 4×3 px need \(3, 4, 16\)"):
        State("temporal", np.zeros((3, 5, 16), dtype=np.float32), camera())


def test_a_frame_has_views_only_on_request():
    assert Image(np.zeros((3, 4, 3), dtype=np.float32)).views is None


def test_motion_between_two_cameras():
    motion = CameraMotion.between(camera(x=0.25), camera(x=1.0), 1e-6)
    np.testing.assert_allclose(motion.rotation_change, np.zeros((3, 3)), atol=1e-12)
    np.testing.assert_allclose(np.abs(motion.translation), [0.75, 0, 0], atol=1e-12)
    assert not motion.static
    previous, current = Camera.look_at((1, 2, 3), (0, 0, 0)), Camera.look_at((-1, 2, 4), (0, 1, 0))
    motion = CameraMotion.between(previous, current, 1e-6)
    point = np.array([0.3, -0.2, 2.0])  # in the current camera
    in_world = current.world_from_camera[:3, :3] @ point + current.position
    expected = previous.camera_from_world[:3, :3] @ in_world + previous.camera_from_world[:3, 3]
    np.testing.assert_allclose(point + motion.rotation_change @ point + motion.translation, expected, atol=1e-12)


def test_standing_still_is_static_within_the_tolerance():
    here = camera()
    assert CameraMotion.between(here, here, 1e-6).static
    assert CameraMotion.between(here, camera(x=9e-7), 1e-6).static
    assert not CameraMotion.between(here, camera(x=2e-6), 1e-6).static
    zoomed = Camera(here.width, here.height, here.fx * 1.001, here.fy, here.cx, here.cy, here.world_from_camera)
    assert not CameraMotion.between(here, zoomed, 1e-6).static


def test_a_rotation_of_few_digits_can_stand_still():
    pose = Camera.look_at((1, 2, 3), (0, 0, 0)).world_from_camera.round(4)
    here = Camera(4, 3, 5.0, 5.0, 2.0, 1.5, pose)
    motion = CameraMotion.between(here, here, 1e-6)
    assert motion.static
    assert np.abs(motion.rotation_change).max() < 1e-12


def tensors(**changes):
    made = {name: np.full(shape, 0.5, dtype=np.float32) for name, shape in SHAPES.items()}
    return {**made, **changes}


def test_weights_are_checked_by_name():
    weights = DenoiserWeights(tensors())
    assert weights.gamma == 0.5
    assert weights["accumulated.1.weight"].shape == (8, 1, 3, 3)
    missing = tensors()
    del missing["denoised.head.bias"]
    with pytest.raises(WeightsError, match=r"tensor 'denoised\.head\.bias' is missing"):
        DenoiserWeights(missing)
    with pytest.raises(WeightsError, match=r"tensor 'accumulated\.6\.weight' is unknown to this version"):
        DenoiserWeights(tensors(**{"accumulated.6.weight": np.zeros((8, 8, 1, 1), dtype=np.float32)}))
    with pytest.raises(WeightsError, match=r"tensor 'accumulated\.0\.bias' has shape \[9\], expected \[8\]"):
        DenoiserWeights(tensors(**{"accumulated.0.bias": np.zeros(9, dtype=np.float32)}))
    with pytest.raises(WeightsError, match=r"tensor 'accumulated\.0\.bias' is of type float64, expected float32"):
        DenoiserWeights(tensors(**{"accumulated.0.bias": np.zeros(8)}))
    with pytest.raises(WeightsError, match=r"tensor 'accumulated\.0\.bias' holds values that are not finite"):
        DenoiserWeights(tensors(**{"accumulated.0.bias": np.full(8, np.inf, dtype=np.float32)}))
    with pytest.raises(WeightsError, match=r"tensor 'gate\.gamma' is 0; it must be at least 0\.0001"):
        DenoiserWeights(tensors(**{"gate.gamma": np.zeros((), dtype=np.float32)}))
    DenoiserWeights(tensors(**{"gate.gamma": np.full((), 1e-4, dtype=np.float32)}))
