"""Render options, samples, seeds and scenes are checked before anything is drawn."""

import subprocess
import sys
from dataclasses import replace

import numpy as np
import pytest
from drawing import render_exact, render_reference, sample_visibility
from random_scenes import crowd, odd_camera

from hushsplat.engines.base import engine
from hushsplat.engines.cpu.engine import CpuEngine
from hushsplat.engines.torch.engine import TorchEngine
from hushsplat.types.errors import RenderError, SceneError
from hushsplat.types.options import RenderOptions

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


def test_an_unknown_sampler_is_refused():
    with pytest.raises(RenderError, match="sampler must be one of independent, stratified, got 'sobol'"):
        sample_visibility(SCENE, VIEW, sampler="sobol")


def test_a_scene_that_is_not_finite_is_refused_by_every_engine():
    for name in ("means", "scales", "rotations", "opacities", "sh"):
        values = getattr(SCENE, name).copy()
        values.flat[7] = np.nan
        for drawing in (CpuEngine(), TorchEngine()):
            with pytest.raises(SceneError, match=rf"^{name} holds values that are not finite; remove those Gaussians"):
                drawing.upload(replace(SCENE, **{name: values}))


def test_an_unknown_engine_is_refused():
    with pytest.raises(RenderError, match=r"^engine must be one of cpu, torch, gpu, auto, got 'abacus'\.$"):
        engine("abacus")


@pytest.mark.parametrize("seed", [0, -1, 2**32, 2**63])
def test_seeds_and_frames_wrap_around(seed):
    one = sample_visibility(SCENE, VIEW, seed=seed, frame=seed)
    other = sample_visibility(SCENE, VIEW, seed=seed % 2**32, frame=seed % 2**32)
    np.testing.assert_array_equal(one.primitive_id, other.primitive_id)


INTEGERS = """
import numpy as np
from hushsplat.engines.cpu.engine import CpuEngine
from hushsplat.synth import home_camera, room_and_garden
from hushsplat.types.options import Noise, RenderOptions

drawing, camera = CpuEngine(), home_camera(40, 30)
scene = drawing.upload(room_and_garden(1000))
for sampler in ("independent", "stratified"):
    noises = [Noise(seed=kind(3), frame=kind(70000), sampler=sampler) for kind in (int, np.int64, np.uint32, np.int32)]
    ids = [drawing.sample(scene, camera, noise, RenderOptions()).primitive_id for noise in noises]
    assert all((other == ids[0]).all() for other in ids)
"""


def test_seeds_and_frames_may_be_integers_of_numpy():
    """In a process of its own: here beartype would be first."""
    subprocess.run([sys.executable, "-c", INTEGERS], check=True)


def test_arrays_need_not_be_contiguous():
    expected = render_reference(SCENE, VIEW).color, render_exact(SCENE, VIEW).color
    columns = {name: np.asfortranarray(getattr(SCENE, name)) for name in ("means", "scales", "rotations", "sh")}
    scattered = type(SCENE)(**columns, opacities=np.repeat(SCENE.opacities, 2)[::2])
    np.testing.assert_array_equal(render_reference(scattered, VIEW).color, expected[0])
    np.testing.assert_array_equal(render_exact(scattered, VIEW).color, expected[1])
    winners = sample_visibility(SCENE, VIEW).primitive_id
    np.testing.assert_array_equal(sample_visibility(scattered, VIEW).primitive_id, winners)


def test_any_number_of_threads_is_possible():
    expected = render_reference(SCENE, VIEW, RenderOptions(threads=1)).color
    np.testing.assert_array_equal(render_reference(SCENE, VIEW, RenderOptions(threads=256)).color, expected)
