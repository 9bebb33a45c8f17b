"""The thread pool, the locks and the lists of tiles, tested in C++ (tests/native)."""

from native_program import run_program


def test_threads_locks_and_waits(tmp_path):
    """Callers at once, jobs inside of jobs, errors, children of fork(), the choice of kernels."""
    done = run_program("concurrency", ("threads.cpp", "scene.cpp", "dispatch.cpp"), tmp_path)
    assert done.returncode == 0, done.stdout + done.stderr


def test_lists_of_tiles(tmp_path):
    """At the largest size of a picture, with offsets that no scene can overflow."""
    done = run_program("tile_lists", ("threads.cpp", "scene.cpp"), tmp_path)
    assert done.returncode == 0, done.stdout + done.stderr
