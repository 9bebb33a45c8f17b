"""Memory of the engine's arrays is used again, but never while anybody still sees it."""

import resource
from pathlib import Path

import numpy as np

from hushsplat.engines.cpu._engine import release_memory
from hushsplat.engines.cpu.arrays import empty_float32, empty_int32


def address(array: np.ndarray) -> int:
    return array.ctypes.data


def test_memory_is_used_again():
    first = empty_float32(37, 53, 3)
    place = address(first)
    del first
    assert address(empty_float32(37, 53, 3)) == place


def test_a_view_keeps_its_memory():
    first = empty_float32(41, 59)
    first[:] = 7
    view = first[3:5].reshape(-1)[::2]
    place = address(first)
    del first
    others = [empty_float32(41, 59) for _ in range(3)]
    for other in others:
        other[:] = 0
    assert place not in [address(other) for other in others]
    np.testing.assert_array_equal(view, 7)


def test_shapes_and_types():
    assert empty_float32(2, 0, 3).shape == (2, 0, 3)
    assert empty_int32(5).dtype == np.int32


def test_waiting_memory_can_be_given_back():
    def resident_mb() -> float:
        return int(Path("/proc/self/statm").read_text().split()[1]) * resource.getpagesize() / 2**20

    kept = empty_float32(100)
    kept[:] = 3
    large = empty_float32(4096, 4096, 2)  # 128 MB
    large[:] = 1
    full = resident_mb()
    del large
    release_memory()
    assert resident_mb() < full - 100
    assert (kept == 3).all()
    assert empty_float32(7).shape == (7,)


def test_sizes_that_nobody_asks_for_make_room():
    """As after a resize: the pool is full of the old size, and the new one is used again all the same."""
    release_memory()
    old = [empty_float32(2048, 2048) for _ in range(40)]  # 640 MB, never touched; the pool keeps 512
    del old
    first = empty_float32(10_000_000)
    first[0] = 3
    del first
    assert empty_float32(10_000_000)[0] == 3  # fresh memory is zero
    release_memory()
