"""Decoding visibility: colour, depth, alpha and the neural view by hand."""

from dataclasses import replace

import numpy as np
import pytest
from drawing import ENGINE, decode, decode_color, sample_visibility, uploaded
from random_scenes import crowd, odd_camera, turned_pose

from hushsplat.engines.cpu.engine import decode_neural_view
from hushsplat.types.camera import Camera
from hushsplat.types.errors import RenderError
from hushsplat.types.gaussians import Gaussians
from hushsplat.types.harmonics import sh_colors
from hushsplat.types.observation import Visibility
from hushsplat.types.options import RenderOptions

BACKGROUND = (0.2, 0.5, 0.9)
OPTIONS = RenderOptions(background=BACKGROUND)
# Two samples of a picture of 2×3 px; the pixel in the corner was never hit, its neighbour once.
IDS = np.array([[[-1, 2, 0], [1, 1, 3]], [[-1, -1, 3], [1, 0, 3]]], dtype=np.int32)
DEPTH = np.array([[[0, 4, 1], [2, 8, 5]], [[0, 0, 3], [4, 2, 5]]], dtype=np.float32)
SEEN = Visibility(IDS, DEPTH)
VIEW = Camera(3, 2, 10.0, 10.0, 1.5, 1.0, turned_pose(np.random.default_rng(1)))


def four(coefficients: int = 4, payload: bool = False) -> Gaussians:
    rng = np.random.default_rng(coefficients)
    arrays = [rng.normal(size=(4, 3)), np.ones((4, 2)), np.tile([1.0, 0, 0, 0], (4, 1)), np.ones(4)]
    arrays += [2.5 * rng.normal(size=(4, coefficients, 3))] + [rng.normal(size=(4, 10))] * payload
    return Gaussians(*(array.astype(np.float32) for array in arrays))


@pytest.mark.parametrize("coefficients", [1, 4, 9, 16])
def test_colour_is_that_of_the_winners(coefficients):
    gaussians = four(coefficients)
    colors = sh_colors(gaussians.sh.astype(np.float64), gaussians.means.astype(np.float64), VIEW.position)
    expected = np.concatenate([colors, [BACKGROUND]])[IDS].mean(axis=0)
    np.testing.assert_allclose(decode_color(SEEN, gaussians, VIEW, OPTIONS), expected, atol=1e-5)
    assert (colors == 0).any()  # a colour below 0 is clamped


@pytest.mark.parametrize("degree", [0, 3])
def test_colours_of_a_whole_picture(degree):
    rng = np.random.default_rng(degree)
    camera = odd_camera(rng, width=150, height=70)
    gaussians = crowd(rng, camera, 2, count=2000, coefficients=(degree + 1) ** 2)
    visibility = sample_visibility(gaussians, camera, samples=3)
    colors = sh_colors(gaussians.sh.astype(np.float64), gaussians.means.astype(np.float64), camera.position)
    expected = np.concatenate([colors, [BACKGROUND]])[visibility.primitive_id].mean(axis=0)
    np.testing.assert_allclose(decode_color(visibility, gaussians, camera, OPTIONS), expected, atol=1e-5)
    for threads in (1, 3):
        again = decode_color(visibility, gaussians, camera, replace(OPTIONS, threads=threads))
        np.testing.assert_array_equal(again, decode_color(visibility, gaussians, camera, OPTIONS))


def test_depth_is_the_mean_of_the_samples_that_hit_and_alpha_their_share():
    observation = decode(SEEN, four(), VIEW, OPTIONS)
    np.testing.assert_allclose(observation.depth, [[0, 4, 2], [3, 5, 5]])
    np.testing.assert_allclose(observation.alpha, [[0, 0.5, 1], [1, 1, 1]])
    np.testing.assert_array_equal(observation.color, decode_color(SEEN, four(), VIEW, OPTIONS))
    assert observation.neural_view is None
    assert observation.depth.dtype == observation.alpha.dtype == np.float32


def test_view_vectors_by_hand():
    """Paper: V0 = |v_up · up| / depth, V1 = |v_right · right| / depth, V2 = |v_forward · forward|, V3 = blur."""
    gaussians = four(payload=True)
    right, down, forward = VIEW.world_from_camera[:3, :3].T
    expected = np.zeros((2, 3, 4))
    for sample, row, column in np.ndindex(IDS.shape):
        winner, depth = IDS[sample, row, column], DEPTH[sample, row, column]
        if winner < 0:
            continue
        v = gaussians.payload[winner].astype(np.float64)
        up_view, right_view, forward_view, blur = v[0:3], v[3:6], v[6:9], v[9]
        values = [abs(up_view @ down) / depth, abs(right_view @ right) / depth, abs(forward_view @ forward), blur]
        expected[row, column] += np.array(values) / len(IDS)
    np.testing.assert_allclose(decode_neural_view(SEEN, uploaded(gaussians), VIEW, OPTIONS), expected, atol=1e-6)
    np.testing.assert_allclose(decode(SEEN, gaussians, VIEW).neural_view, expected, atol=1e-6)


def test_view_vectors_in_a_camera_that_is_easy_to_see():
    payload = np.array([[0, -6, 0, 8, 0, 0, 0, 0, -3, 0.25]], dtype=np.float32)  # up is -y, right x, forward z
    seen = Visibility(np.zeros((1, 1, 1), dtype=np.int32), np.full((1, 1, 1), 2, dtype=np.float32))
    camera = Camera(1, 1, 1.0, 1.0, 0.5, 0.5, np.eye(4))
    scene = uploaded(replace(four().take(np.arange(1)), payload=payload))
    np.testing.assert_allclose(decode_neural_view(seen, scene, camera, OPTIONS), [[[3, 4, 3, 0.25]]])


def test_another_payload_changes_the_neural_view_alone():
    gaussians = four(payload=True)
    before = uploaded(gaussians)
    after = ENGINE.with_payload(before, 2 * gaussians.payload)
    first, second = decode(SEEN, before, VIEW), decode(SEEN, after, VIEW)
    np.testing.assert_allclose(second.neural_view, 2 * first.neural_view, rtol=1e-6)
    np.testing.assert_array_equal(second.color, first.color)
    assert after.native is before.native
    assert decode(SEEN, ENGINE.with_payload(before, None), VIEW).neural_view is None


def test_a_neural_view_needs_a_payload():
    with pytest.raises(RenderError, match=r"^the scene has no payload to decode\.$"):
        decode_neural_view(SEEN, uploaded(four()), VIEW, OPTIONS)


def test_the_raw_image_is_the_observation():
    observation = decode(SEEN, four(), VIEW)
    image = observation.image()
    for name in ("color", "alpha", "depth"):
        np.testing.assert_array_equal(getattr(image, name), getattr(observation, name))
    assert image.variance is None and image.views is None


def test_another_scene_is_refused():
    message = "primitive 3 was seen, but there are 3; give the scene that was drawn"
    gaussians = four(payload=True).take(np.arange(3))
    with pytest.raises(RenderError, match=message):
        decode(SEEN, gaussians, VIEW)
    with pytest.raises(RenderError, match=message):
        decode_neural_view(SEEN, uploaded(gaussians), VIEW, OPTIONS)


def test_another_size_is_refused():
    with pytest.raises(RenderError, match="of 3×2 px cannot be decoded with a camera of 2×3 px"):
        decode(SEEN, four(), replace(VIEW, width=2, height=3))
