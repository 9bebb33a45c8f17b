"""What renderers are asked for is checked at the door."""

import numpy as np
import pytest
from hushsplat.engines.cpu.render_names import (
    SAMPLERS,
    RenderOptions,
    render,
    render_ordered,
    render_sorted,
    sample_visibility,
)
from random_scenes import crowd, odd_camera

from hushsplat.types.errors import RenderError

VIEW = odd_camera(np.random.default_rng(0))
SCENE = crowd(np.random.default_rng(1), VIEW, 2, count=20)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"background": (0.0, float("nan"), 0.0)}, r"background must be three finite numbers, got \(0.0, nan, 0.0\)"),
        ({"near": 0.0}, "near must be a distance > 0, got 0.0"),
        ({"near": -1.0}, "near must be a distance > 0, got -1.0"),
        ({"near": float("inf")}, "near must be a distance > 0, got inf"),
        ({"near": float("nan")}, "near must be a distance > 0, got nan"),
        ({"threads": -1}, r"threads must lie in 0 \(all cores\) .. 256, got -1"),
        ({"threads": 257}, r"threads must lie in 0 \(all cores\) .. 256, got 257"),
    ],
)
def test_unusable_options_are_refused(options, message):
    with pytest.raises(RenderError, match=message):
        RenderOptions(**options)


@pytest.mark.parametrize("samples", [0, -1, 4097])
def test_a_number_of_samples_out_of_range_is_refused(samples):
    with pytest.raises(RenderError, match=f"samples must lie in 1..4096, got {samples}"):
        sample_visibility(SCENE, VIEW, samples=samples)
    with pytest.raises(RenderError, match=f"samples must lie in 1..4096, got {samples}"):
        render(SCENE, VIEW, "raw", samples=samples)


def test_an_unknown_sampler_is_refused():
    with pytest.raises(RenderError, match="sampler must be one of independent, stratified, got 'sobol'"):
        sample_visibility(SCENE, VIEW, sampler="sobol")


def test_an_unknown_method_is_refused():
    with pytest.raises(RenderError, match="method must be one of raw, exact, reference, got 'best'"):
        render(SCENE, VIEW, "best")


@pytest.mark.parametrize("seed", [0, -1, 2**32, 2**63])
def test_seeds_and_frames_wrap_around(seed):
    one = sample_visibility(SCENE, VIEW, seed=seed, frame=seed)
    other = sample_visibility(SCENE, VIEW, seed=seed % 2**32, frame=seed % 2**32)
    np.testing.assert_array_equal(one.primitive_id, other.primitive_id)


@pytest.mark.parametrize("sampler", SAMPLERS)
def test_seeds_and_frames_may_be_integers_of_numpy(sampler):
    expected = sample_visibility(SCENE, VIEW, seed=3, frame=70000, sampler=sampler).primitive_id
    for kind in (np.int64, np.uint32, np.int32):
        found = sample_visibility(SCENE, VIEW, seed=kind(3), frame=kind(70000), sampler=sampler).primitive_id
        np.testing.assert_array_equal(found, expected)
        picture = render(SCENE, VIEW, "raw", seed=kind(3), frame=kind(70000), sampler=sampler)
        np.testing.assert_array_equal(picture.alpha, expected[0] >= 0)


def test_arrays_need_not_be_contiguous():
    expected = render_sorted(SCENE, VIEW).color, render_ordered(SCENE, VIEW).color
    columns = {name: np.asfortranarray(getattr(SCENE, name)) for name in ("means", "scales", "rotations", "sh")}
    scattered = type(SCENE)(**columns, opacities=np.repeat(SCENE.opacities, 2)[::2])
    np.testing.assert_array_equal(render_sorted(scattered, VIEW).color, expected[0])
    np.testing.assert_array_equal(render_ordered(scattered, VIEW).color, expected[1])
    winners = sample_visibility(SCENE, VIEW).primitive_id
    np.testing.assert_array_equal(sample_visibility(scattered, VIEW).primitive_id, winners)


def test_any_number_of_threads_is_possible():
    expected = render_sorted(SCENE, VIEW, RenderOptions(threads=1)).color
    np.testing.assert_array_equal(render_sorted(SCENE, VIEW, RenderOptions(threads=256)).color, expected)
