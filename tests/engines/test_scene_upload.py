"""A scene made in memory is looked at once, when the engine takes it: all of its numbers must be finite."""

from dataclasses import replace

import numpy as np
import pytest
from drawing import uploaded
from native_calls import surfels
from random_scenes import crowd, odd_camera

from hushsplat.engines.cpu import _engine
from hushsplat.engines.torch.raster import Rasterizer, SurfelTensors
from hushsplat.types.errors import SceneError
from hushsplat.types.gaussians import Gaussians

VIEW = odd_camera(np.random.default_rng(1), width=20, height=13)
ARRAYS = ("means", "scales", "rotations", "opacities", "sh")


def spoilt(name: str, value: float, columns: int = 2, count: int = 300) -> Gaussians:
    gaussians = crowd(np.random.default_rng(columns), VIEW, columns, count=count)
    array = getattr(gaussians, name).copy()
    array.reshape(-1)[-1] = value
    return replace(gaussians, **{name: array})


@pytest.mark.parametrize("value", [np.nan, np.inf, -np.inf])
@pytest.mark.parametrize("columns", [2, 3], ids=["surfels", "ellipsoids"])
@pytest.mark.parametrize("name", ARRAYS)
def test_values_that_are_not_finite_are_refused_by_name(name, columns, value):
    with pytest.raises(SceneError, match=f"^{name} holds values that are not finite; remove those Gaussians first"):
        uploaded(spoilt(name, value, columns))


@pytest.mark.parametrize("threads", [1, 3])
def test_every_value_of_a_large_scene_is_looked_at(threads):
    """Arrays are cut into blocks for the threads: the first and the last value of each count, too."""
    values = np.zeros(3_000_001, dtype=np.float32)
    _engine.require_finite(values, "numbers", threads)
    for place in (0, 2**20 - 1, 2**20, 2**21, len(values) - 1):
        values[place] = -np.inf
        with pytest.raises(ValueError, match=r"^numbers holds values that are not finite$"):
            _engine.require_finite(values, "numbers", threads)
        values[place] = np.float32(-3.4e38)
    _engine.require_finite(values, "numbers", threads)


def test_the_largest_finite_values_are_taken():
    extreme = np.finfo(np.float32)
    for value in (extreme.max, extreme.tiny, extreme.smallest_subnormal, 0.0):
        uploaded(spoilt("scales", value))


@pytest.mark.parametrize("name", ARRAYS[:4])
def test_surfels_that_are_trained_must_be_finite(name):
    gaussians = spoilt(name, np.nan)
    with pytest.raises(SceneError, match=f"^{name} holds values that are not finite; "):
        Rasterizer("center").draw(SurfelTensors.from_gaussians(gaussians), VIEW)


def test_an_empty_scene_is_finite():
    empty = {name: array[:0] for name, array in surfels().items() if name != "sh"}
    assert _engine.Scene(**empty, threads=2).count == 0
