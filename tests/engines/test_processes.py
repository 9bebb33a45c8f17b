"""Processes that fork while the engine draws, and processes that exit while it does; each in a Python of its own."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

import hushsplat

SECONDS = 300  # a process that takes longer hangs
BEGIN = """
import hashlib, os, signal, sys, threading
import numpy as np
from drawing import ENGINE, decode_color, sample_visibility, uploaded
from hushsplat.types.options import RenderOptions
from random_scenes import crowd, odd_camera

view = odd_camera(np.random.default_rng(5), width=230, height=150)
scene = uploaded(crowd(np.random.default_rng(2), view, 2, count=20000))

def draw(method):
    options = RenderOptions(threads=3)
    if method == "raw":
        color = decode_color(sample_visibility(scene, view, options=options), scene, view, options)
    else:
        color = ENGINE.render(scene, view, method, options).color
    return hashlib.sha256(color.tobytes()).hexdigest()

def draw_for_ever(started):
    while True:
        draw("exact")
        started.set()

def others():
    started = threading.Event()
    threading.Thread(target=draw_for_ever, args=[started], daemon=True).start()
    started.wait()

def thread_count():
    return len(os.listdir("/proc/self/task"))

def in_child(work):
    child = os.fork()
    if child == 0:
        signal.alarm(100)  # it hangs
        try:
            os._exit(0 if work() else 1)
        except BaseException as error:
            print(error, flush=True)
            os._exit(2)
    return os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])
"""
needs_fork = pytest.mark.skipif(not hasattr(os, "fork"), reason="this system has no fork")
needs_proc = pytest.mark.skipif(not Path("/proc/self/task").is_dir(), reason="threads are counted in /proc")


def run(script: str, begin: str = BEGIN) -> subprocess.CompletedProcess[str]:
    folders = (str(Path(hushsplat.__file__).parents[1]), str(Path(__file__).parent), str(Path(__file__).parents[1]))
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join(folders)}
    return subprocess.run(
        (sys.executable, "-c", begin + script), capture_output=True, text=True, timeout=SECONDS, env=environment
    )


def assert_clean(done: subprocess.CompletedProcess[str]) -> None:
    assert (done.returncode, done.stdout, done.stderr) == (0, "", "")


@needs_fork
@needs_proc
def test_a_child_draws_with_threads_of_its_own():
    assert_clean(
        run("""
expected = [draw(method) for method in ("raw", "exact", "reference")]
def work():
    assert thread_count() == 1
    assert [draw(method) for method in ("raw", "exact", "reference")] == expected
    return thread_count() == 3
for _ in range(3):
    assert in_child(work) == 0
assert draw("raw") == expected[0]
""")
    )


@needs_fork
def test_a_child_draws_a_scene_that_another_thread_was_drawing():
    """The lock of the scene, and those of the pool, were held by a thread that the child does not have."""
    assert_clean(
        run("""
expected = draw("raw")
others()
for _ in range(20):
    assert in_child(lambda: draw("raw") == expected) == 0
os._exit(0)
""")
    )


@needs_fork
def test_a_child_exits_as_a_process_does():
    """With its interpreter shut down, although a thread that it does not have was drawing."""
    assert_clean(
        run("""
others()
for _ in range(5):
    child = os.fork()
    if child == 0:
        signal.alarm(100)
        draw("raw")
        sys.exit(0)
    assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0
os._exit(0)
""")
    )


def test_exit_while_a_thread_draws():
    """Threads that come back from the engine to an interpreter that is gone must not take the process down."""
    for number in (1, 3):
        assert_clean(run("others();" * number + "sys.exit(0)"))


def test_drawing_at_exit():
    """Exit handlers run in the reverse order of their registration: one before the engine's own, one after it."""
    assert_clean(run("import atexit; atexit.register(draw, 'raw')"))
    assert_clean(run("", "import atexit; atexit.register(lambda: draw('raw'))" + BEGIN))
