"""`hushsplat view` as a user starts and ends it."""

from __future__ import annotations

import os
import re
import signal
import subprocess
import sys
import urllib.request
from pathlib import Path

import pytest

import hushsplat
from hushsplat.cli.main import main
from hushsplat.scenes import is_large

STATIC = Path(hushsplat.__file__).parent / "viewer" / "static"
ENVIRONMENT = {**os.environ, "PYTHONPATH": str(Path(hushsplat.__file__).parents[1])}


@pytest.mark.parametrize("end", [signal.SIGINT, signal.SIGTERM])
def test_view_command_prints_its_url_and_ends_on_signals(end: signal.Signals) -> None:
    command = [sys.executable, "-m", "hushsplat", "view", "synth:2k", "--port", "0", "--no-browser"]
    with subprocess.Popen(
        command, stdout=subprocess.PIPE, text=True, env=ENVIRONMENT, preexec_fn=_allow_interrupts
    ) as process:
        try:
            assert process.stdout is not None
            link = process.stdout.readline().strip()
            assert re.fullmatch(r"http://127\.0\.0\.1:\d+/", link)
            with urllib.request.urlopen(link, timeout=20) as answer:
                assert b"hushsplat" in answer.read()
            process.send_signal(end)
            assert process.wait(20) == 0
        finally:
            process.kill()


def _allow_interrupts() -> None:
    """What a shell starts in the background ignores Ctrl-C, and so would its children."""
    signal.signal(signal.SIGINT, signal.SIG_DFL)


SCRIPT = """
import asyncio, contextlib, threading
import hushsplat
from client import page

viewer = hushsplat.view(hushsplat.room_and_garden(2_000), port=0)
looked = threading.Event()

async def look():
    async with page(viewer.url) as one:
        await one.look(hushsplat.home_camera(320, 240))
        while True:  # until the viewer closes the connection
            frame, _ = await one.next("frame")
            await one.acknowledge(frame)
            looked.set()

def client():
    with contextlib.suppress(Exception):
        asyncio.run(look())

threading.Thread(target=client, daemon=True).start()
assert looked.wait(60)
"""


def test_script_exits_cleanly_while_a_client_is_connected() -> None:
    environment = {**ENVIRONMENT, "PYTHONPATH": f"{ENVIRONMENT['PYTHONPATH']}{os.pathsep}{Path(__file__).parent}"}
    ended = subprocess.run([sys.executable, "-c", SCRIPT], env=environment, capture_output=True, text=True, timeout=120)
    assert (ended.returncode, ended.stderr) == (0, "")


def test_no_thread_of_the_viewer_is_left_when_the_interpreter_shuts_down() -> None:
    script = """
import atexit, threading
atexit.register(lambda: print([each.name for each in threading.enumerate() if "hushsplat" in each.name]))
import hushsplat
viewer = hushsplat.view(hushsplat.room_and_garden(2_000), port=0)
"""
    ended = subprocess.run([sys.executable, "-c", script], env=ENVIRONMENT, capture_output=True, text=True, timeout=120)
    assert (ended.returncode, ended.stdout, ended.stderr) == (0, "[]\n", "")


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (("--max-clients", "0"), "--max-clients at least 1"),
        (("--max-upload-mb", "-1"), "--max-upload-mb, --max-memory-mb must be at least 0"),
        (("--max-memory-mb", "-1"), "--max-upload-mb, --max-memory-mb must be at least 0"),
        (("--host", "256.0.0.1"), "cannot listen on 256.0.0.1"),
        (("--port", "99999"), "port 99999 does not exist"),
        (("--weights", "none.safetensors"), "none.safetensors: cannot be read"),
        (("--capture", "nowhere"), "nowhere: does not exist"),
    ],
)
def test_view_command_errors_are_one_line(
    words: tuple[str, ...], said: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["view", "synth:2k", "--no-browser", *words]) == 2
    error = capsys.readouterr().err
    assert said in error and error.count("\n") == 1


def test_page_loads_no_external_resources() -> None:
    files = [path for path in STATIC.iterdir() if path.is_file()]
    assert {"index.html", "style.css", "main.js"} <= {path.name for path in files}
    for path in files:
        outside = [url for url in re.findall(r"https?://[^\s\"')]+", path.read_text(encoding="utf-8"))]
        assert set(outside) <= {"http://www.w3.org/2000/svg"}, path.name  # a name, not an address


@pytest.mark.parametrize(("name", "mb", "large"), [("a.ply", 60, False), ("a.ply", 101, True), ("a.spz", 17, True)])
def test_scene_is_large_by_its_gaussians_and_not_by_its_bytes(name: str, mb: int, large: bool, tmp_path: Path) -> None:
    with (tmp_path / name).open("wb") as file:
        file.truncate(mb << 20)
    assert is_large(str(tmp_path / name)) is large
