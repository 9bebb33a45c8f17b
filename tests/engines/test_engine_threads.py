"""The same bits with any number of threads, nearly the same with any instruction set, and what the engine holds."""

import gc
from concurrent.futures import ThreadPoolExecutor

import numpy as np
import pytest
from hushsplat.engines.cpu.prepare import _prepared, prepare
from hushsplat.engines.cpu.render_names import METHODS, RenderOptions, render, sample_visibility
from random_scenes import crowd, odd_camera

from hushsplat.engines.cpu import _engine
from hushsplat.types.gaussians import Gaussians

KINDS = pytest.mark.parametrize("columns", [2, 3], ids=["surfels", "ellipsoids"])
VIEW = odd_camera(np.random.default_rng(5), width=230, height=150)
MAX_BYTES_PER_GAUSSIAN = 120


def scene(columns: int, seed: int = 0, count: int = 1000) -> Gaussians:
    return crowd(np.random.default_rng([columns, seed]), VIEW, columns, count=count)


def arrays(picture) -> list[np.ndarray]:
    return [a for a in (picture.color, picture.alpha, picture.depth, picture.variance) if a is not None]


@KINDS
@pytest.mark.parametrize("method", METHODS)
def test_the_same_picture_with_any_number_of_threads(columns, method):
    gaussians = scene(columns)
    single = render(gaussians, VIEW, method, samples=2, options=RenderOptions(threads=1))
    for threads in (0, 2, 3, 7):
        # Prepared anew, so that the order of the chunks is made by as many threads.
        again = gaussians.take(np.arange(len(gaussians)))
        found = render(again, VIEW, method, samples=2, options=RenderOptions(threads=threads))
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
    pictures = {method: render(gaussians, VIEW, method) for method in METHODS}
    for name in others:
        instruction_set(name)
        assert _engine.instruction_set() == name
        found = sample_visibility(gaussians, VIEW, samples=4)
        same = found.primitive_id == winners.primitive_id
        assert (~same).mean() < 2e-4
        np.testing.assert_allclose(found.depth[same], winners.depth[same], rtol=1e-3)
        for method in ("reference", "exact"):
            for one, other in zip(
                arrays(pictures[method])[:2], arrays(render(gaussians, VIEW, method))[:2], strict=True
            ):
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
    scenes = [scene(2), scene(3)]
    jobs = [(which, method, frame) for frame in range(3) for method in METHODS for which in (0, 1, 0)]

    def draw(job):
        which, method, frame = job
        return render(scenes[which], VIEW, method, frame=frame, options=RenderOptions(threads=1 + frame % 3))

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
    prepared = prepare(gaussians)
    assert prepared.count == count
    render(gaussians, VIEW, "raw")
    assert prepared.bytes / count <= MAX_BYTES_PER_GAUSSIAN


def test_a_scene_is_prepared_once_and_forgotten_with_it():
    gaussians = scene(2)
    before = len(_prepared)
    prepared = prepare(gaussians)
    assert prepare(gaussians) is prepared and len(_prepared) == before + 1
    assert prepare(gaussians.take(np.arange(10))) is not prepared
    del gaussians
    gc.collect()
    assert len(_prepared) == before
