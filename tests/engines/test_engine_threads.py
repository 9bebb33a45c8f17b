"""The same bits with any number of threads, nearly the same with any instruction set; memory and life of a scene."""

import gc
import weakref
from concurrent.futures import ThreadPoolExecutor

import numpy as np
import pytest
from drawing import ENGINE, sample_visibility, uploaded
from random_scenes import crowd, odd_camera

from hushsplat.engines.cpu import _engine
from hushsplat.engines.cpu.engine import CpuScene
from hushsplat.types.gaussians import Gaussians
from hushsplat.types.image import Image
from hushsplat.types.options import Noise, RenderOptions

KINDS = pytest.mark.parametrize("columns", [2, 3], ids=["surfels", "ellipsoids"])
METHODS = ("raw", "exact", "reference")
VIEW = odd_camera(np.random.default_rng(5), width=230, height=150)
MAX_BYTES_PER_GAUSSIAN = 120


def scene(columns: int, seed: int = 0, count: int = 1000) -> Gaussians:
    return crowd(np.random.default_rng([columns, seed]), VIEW, columns, count=count)


def drawn(scene: Gaussians | CpuScene, method: str, *, samples: int = 1, frame: int = 0, threads: int = 0) -> Image:
    options = RenderOptions(threads=threads)
    drawing = uploaded(scene, options)
    if method != "raw":
        return ENGINE.render(drawing, VIEW, method, options)
    visibility = ENGINE.sample(drawing, VIEW, Noise(samples, frame=frame), options)
    return ENGINE.decode(visibility, drawing, VIEW, options).image()


def arrays(picture) -> list[np.ndarray]:
    return [a for a in (picture.color, picture.alpha, picture.depth, picture.variance) if a is not None]


@KINDS
@pytest.mark.parametrize("method", METHODS)
def test_the_same_picture_with_any_number_of_threads(columns, method):
    gaussians = scene(columns)
    single = drawn(gaussians, method, samples=2, threads=1)
    for threads in (0, 2, 3, 7):
        found = drawn(gaussians, method, samples=2, threads=threads)  # uploaded anew by as many threads
        for one, other in zip(arrays(single), arrays(found), strict=True):
            np.testing.assert_array_equal(one, other)


@pytest.fixture
def instruction_set():
    """Chooses one for the rest of the test."""
    before = _engine.instruction_set()
    yield _engine.choose_instruction_set
    _engine.choose_instruction_set(before)


@KINDS
def test_instruction_sets_agree(columns, instruction_set):
    gaussians = scene(columns)
    best, *others = _engine.instruction_sets()
    assert "portable" in (best, *others)
    instruction_set(best)
    winners = sample_visibility(gaussians, VIEW, samples=4)
    pictures = {method: drawn(gaussians, method) for method in METHODS}
    for name in others:
        instruction_set(name)
        assert _engine.instruction_set() == name
        found = sample_visibility(gaussians, VIEW, samples=4)
        same = found.primitive_id == winners.primitive_id
        assert (~same).mean() < 2e-4
        np.testing.assert_allclose(found.depth[same], winners.depth[same], rtol=1e-3)
        for method in ("reference", "exact"):
            for one, other in zip(arrays(pictures[method])[:2], arrays(drawn(gaussians, method))[:2], strict=True):
                error = np.abs(one - other)
                assert error.mean() < 1e-5
                assert (error > 1e-4).mean() < 1e-3  # a fragment at 1/255, two at one depth, or a surfel edge-on


def test_the_best_instruction_set_is_in_use():
    assert _engine.instruction_set() == _engine.instruction_sets()[0]


def test_an_unknown_instruction_set_is_refused(instruction_set):
    with pytest.raises(ValueError, match="this machine cannot run 'abacus'"):
        instruction_set("abacus")


def test_scenes_are_drawn_from_several_python_threads_at_once():
    """Two scenes, one of them by two threads, all methods mixed: each picture is the one it would be alone."""
    scenes = [uploaded(scene(2)), uploaded(scene(3))]
    jobs = [(which, method, frame) for frame in range(3) for method in METHODS for which in (0, 1, 0)]

    def draw(job):
        which, method, frame = job
        return drawn(scenes[which], method, frame=frame, threads=1 + frame % 3)

    with ThreadPoolExecutor(4) as pool:
        found = list(pool.map(draw, jobs))
    alone = {job: draw(job) for job in set(jobs)}
    for job, picture in zip(jobs, found, strict=True):
        for one, other in zip(arrays(picture), arrays(alone[job]), strict=True):
            np.testing.assert_array_equal(one, other)


@KINDS
@pytest.mark.parametrize("count", [1000, 100_000])
def test_memory_beside_the_loaded_scene(columns, count):
    gaussians = scene(columns, count=count)
    prepared = uploaded(gaussians)
    assert prepared.count == count
    drawn(prepared, "raw")
    assert prepared.bytes / count <= MAX_BYTES_PER_GAUSSIAN


def test_a_scene_is_owned_by_whoever_uploaded_it():
    """Two uploads are two scenes, and a scene goes with the last reference to it; nothing keeps it by the Gaussians."""
    gaussians = scene(2)
    first, second = uploaded(gaussians), uploaded(gaussians)
    assert first.native is not second.native
    gone = weakref.ref(first)
    del first
    gc.collect()
    assert gone() is None


def test_an_uploaded_scene_cannot_change_under_the_engine():
    """Half a change would be drawn: the engine has its own means, and reads colours from the Gaussians."""
    gaussians = scene(2)
    with pytest.raises(ValueError, match="read-only"):
        gaussians.means += 0.5
