"""Small random scenes, and what must hold for whatever a reader gives back."""

import tracemalloc
import warnings
from dataclasses import replace

import numpy as np

from hushsplat.types.errors import SceneError
from hushsplat.types.gaussians import Gaussians


def random_gaussians(count=50, surfels=False, degree=3, payload=False, seed=0):
    random = np.random.default_rng(seed)
    rotations = random.normal(size=(count, 4))
    return Gaussians(
        means=random.normal(size=(count, 3)).astype(np.float32) * 3,
        scales=np.exp(random.normal(-4, 1, size=(count, 2 if surfels else 3))).astype(np.float32),
        rotations=(rotations / np.linalg.norm(rotations, axis=1, keepdims=True)).astype(np.float32),
        opacities=random.uniform(size=count).astype(np.float32),
        sh=random.normal(0, 0.4, size=(count, (degree + 1) ** 2, 3)).astype(np.float32),
        payload=random.normal(size=(count, 10)).astype(np.float32) if payload else None,
    )


def with_values(gaussians, field, index, values):
    """The same Gaussians with other values at an index of one field."""
    array = getattr(gaussians, field).copy()
    array[index] = values
    return replace(gaussians, **{field: array})


def assert_close(left, right, rtol=2e-6, atol=2e-6):
    assert (left.payload is None) == (right.payload is None)
    for name in ("means", "scales", "rotations", "opacities", "sh", "payload"):
        if getattr(left, name) is not None:
            np.testing.assert_allclose(getattr(left, name), getattr(right, name), rtol=rtol, atol=atol, err_msg=name)


def assert_usable(gaussians):
    for name in ("means", "scales", "rotations", "opacities", "sh", "payload"):
        array = getattr(gaussians, name)
        assert array is None or np.isfinite(array).all(), name
    assert (gaussians.scales > 0).all()
    assert ((gaussians.opacities >= 0) & (gaussians.opacities <= 1)).all()
    np.testing.assert_allclose(np.linalg.norm(gaussians.rotations, axis=1), 1, atol=1e-5)


def read_hostile(reader, path, content, bytes_per_byte=64):
    """Give these bytes to a reader: a usable scene or a SceneError of one line, no warning, no large allocation."""
    path.write_bytes(content)
    tracemalloc.start()
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("error")
            gaussians = reader(path)
    except SceneError as error:
        gaussians = None
        assert "\n" not in str(error) and path.name in str(error)
    finally:
        peak = tracemalloc.get_traced_memory()[1]
        tracemalloc.stop()
    assert peak < bytes_per_byte * len(content) + 4_000_000, f"{peak} bytes for a file of {len(content)}"
    if gaussians is not None:
        assert_usable(gaussians)
    return gaussians
