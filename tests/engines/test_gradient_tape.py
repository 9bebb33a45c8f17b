"""A tape of fragments belongs to the scene and to the size of the picture it was recorded with."""

import native_calls
import numpy as np
import pytest
import torch

from hushsplat.engines.cpu import _engine
from hushsplat.engines.torch import raster
from hushsplat.engines.torch.raster import Rasterizer, SurfelTensors
from hushsplat.types.camera import Camera


def trained_scene() -> _engine.TrainedScene:
    return _engine.TrainedScene(_engine.Surfels(**native_calls.surfels()), 1)


def recorded(scene: _engine.TrainedScene, tape: _engine.FragmentTape | None = None) -> _engine.FragmentTape:
    tape = tape or _engine.FragmentTape()
    scene.draw(**native_calls.draw() | {"tape": tape})
    assert tape.fragments > 0
    return tape


def gradient(scene: _engine.TrainedScene, tape: _engine.FragmentTape) -> np.ndarray:
    arguments = native_calls.gradient() | {"tape": tape}
    scene.gradient(**arguments)
    return arguments["by_center"]


def test_the_tape_of_this_scene_and_picture_is_taken():
    scene = trained_scene()
    tape = recorded(scene)
    np.testing.assert_array_equal(gradient(scene, tape), gradient(scene, tape))
    scene.refresh(_engine.Surfels(**native_calls.surfels()), 1)
    gradient(scene, tape)


def test_the_tape_of_another_scene_is_refused():
    """Even of the same surfels: where they lie in memory is another matter."""
    scene, other = trained_scene(), trained_scene()
    tape = recorded(scene)
    with pytest.raises(ValueError, match="the tape is of another scene, or of none"):
        gradient(other, tape)
    recorded(other, tape)
    gradient(other, tape)
    with pytest.raises(ValueError, match="the tape is of another scene, or of none"):
        gradient(scene, tape)


def test_an_empty_tape_is_refused():
    with pytest.raises(ValueError, match="the tape is of another scene, or of none"):
        gradient(trained_scene(), _engine.FragmentTape())


@pytest.mark.parametrize("size", [(7, 5), (5, 6), (130, 150)], ids=str)
def test_the_tape_of_a_picture_of_another_size_is_refused(size, monkeypatch):
    scene = trained_scene()
    tape = recorded(scene)
    monkeypatch.setattr(native_calls, "HEIGHT", size[0])
    monkeypatch.setattr(native_calls, "WIDTH", size[1])
    arguments = native_calls.gradient() | {"tape": tape, "camera": _engine.Camera(**native_calls.camera(*size))}
    with pytest.raises(ValueError, match="the tape is of a picture of another size"):
        scene.gradient(**arguments)


@pytest.mark.parametrize("order", ["center", "pixel"])
def test_gradients_are_right_when_it_is_time_to_reorder(order, monkeypatch):
    """Between a picture and its gradient the scene must stay as it is, or the tape names other surfels."""
    monkeypatch.setattr(raster, "REORDER_EVERY", 2)
    rng = np.random.default_rng(4)
    view = Camera.look_at((0.3, -0.4, -2.2), (0, 0, 0), width=70, height=50)

    def surfels() -> SurfelTensors:
        rotations = rng.normal(size=(1000, 4))
        arrays = (
            rng.normal(0, 0.7, (1000, 3)),
            rng.uniform(0.004, 0.1, (1000, 2)),
            rotations / np.linalg.norm(rotations, axis=1, keepdims=True),
            rng.uniform(0.05, 0.97, 1000),
            rng.normal(0, 0.3, (1000, 1, 3)),
        )
        return SurfelTensors(*(torch.tensor(array, dtype=torch.float32) for array in arrays))

    before, now = surfels(), surfels()
    found = []
    for first in (before, None):
        rasterizer = Rasterizer(order)
        if first is not None:
            rasterizer.draw(first, view)
        leaves = SurfelTensors(*(tensor.clone().requires_grad_() for tensor in now))
        rasterizer.draw(leaves, view).color.square().sum().backward()
        found.append(leaves)
    for name, got, expected in zip(now._fields, *found, strict=True):
        assert torch.equal(got.grad, expected.grad), name
