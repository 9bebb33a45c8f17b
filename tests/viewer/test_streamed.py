"""A streamed scene in the viewer: the link at once, coarse first, finer where a client rests, within the budget."""

from __future__ import annotations

import asyncio
import json
import re
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from client import page, run
from playwright.sync_api import Browser
from watch import listen, wait_for_frame

import hushsplat
from hushsplat.engines.base import engine
from hushsplat.io.progress import listening
from hushsplat.io.scenes import sanitize
from hushsplat.io.scenes.scene import load, save
from hushsplat.io.scenes.sog_stream import Leaf, StreamedSog
from hushsplat.types.camera import Camera
from hushsplat.types.errors import SceneError
from hushsplat.types.gaussians import Gaussians
from hushsplat.viewer.launch import fill, service_of, tell_progress, telling_failures, waiting
from hushsplat.viewer.refine import Refiner
from hushsplat.viewer.scene_entry import SceneEntry
from hushsplat.viewer.service import ViewerOptions

COUNTS = {0: 800, 1: 100}  # of each of two leaves


@pytest.fixture(scope="module")
def streamed(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Two leaves, a room's left and right half, in two levels of detail."""
    folder = tmp_path_factory.mktemp("streamed")
    room = hushsplat.room_and_garden(4_000)
    order = np.argsort(room.means[:, 0], kind="stable")
    halves = [room.take(order[:2000]), room.take(order[2000:])]
    leaves = []
    for level, count in COUNTS.items():
        for half, part in enumerate(halves):
            save(part.take(np.arange(count)), folder / f"{level}_{half}.sog")
    for half, part in enumerate(halves):
        bound = {"min": part.means.min(axis=0).tolist(), "max": part.means.max(axis=0).tolist()}
        lods = {str(level): {"file": 2 * level + half, "offset": 0, "count": count} for level, count in COUNTS.items()}
        leaves.append({"bound": bound, "lods": lods})
    names = [f"{level}_{half}.sog" for level in COUNTS for half in (0, 1)]
    meta = {"lodLevels": 2, "filenames": names, "tree": {"bound": leaves[0]["bound"], "children": leaves}}
    (folder / "lod-meta.json").write_text(json.dumps(meta))
    return folder / "lod-meta.json"


def beside(leaf: Leaf, other: Leaf) -> Camera:
    """A camera on the far side of a leaf, which sees both."""
    middle, there = ((one.low + one.high) / 2 for one in (leaf, other))
    return Camera.look_at(middle + 4 * (middle - there), middle, (0, -1, 0), width=96, height=64, fov_y_deg=50.0)


def test_levels_are_finer_near_the_eye_and_within_the_budget(streamed: Path) -> None:
    sog = StreamedSog(streamed)
    assert sog.coarsest == [1, 1] and len(sog.read(sog.coarsest)) == 200
    for near, expected in ((0, [0, 1]), (1, [1, 0])):
        levels = sog.near(beside(sog.leaves[near], sog.leaves[1 - near]), 1000)
        assert levels == expected and len(sog.read(levels)) == 900
    assert sog.near(beside(*sog.leaves), 899) == [1, 1]
    assert sog.near(beside(*sog.leaves), 10_000) == [0, 0]
    both = (np.sort(scene.means, axis=0) for scene in (sog.read([0, 0]), load(streamed, lod=0)))
    np.testing.assert_array_equal(*both)


def test_what_is_not_in_the_picture_counts_a_tenth(streamed: Path) -> None:
    sog = StreamedSog(streamed)
    for leaf in sog.leaves:
        middle = (leaf.low + leaf.high) / 2
        eye = middle - np.array([0, 0, 2 * np.linalg.norm(leaf.high - leaf.low)])
        ahead, back = (
            Camera.look_at(eye, eye + side * (middle - eye), (0, -1, 0), width=96, height=64, fov_y_deg=20.0)
            for side in (1, -1)
        )
        assert leaf.angle(ahead) == pytest.approx(10 * leaf.angle(back))


def test_what_is_there_is_not_read_again(streamed: Path) -> None:
    sog, shares = StreamedSog(streamed), list[float]()
    with listening(shares.append):
        sog.read([1, 1])
        assert shares and shares == sorted(shares) and 0.9 < shares[-1] <= 1
        shares.clear()
        sog.read([1, 1])
        assert shares == []


def changed(streamed: Path, folder: Path, change: Callable[[dict[str, Any]], object]) -> StreamedSog:
    """A copy of the scene with another lod-meta.json."""
    meta = json.loads(streamed.read_text())
    for name in meta["filenames"]:
        (folder / name).write_bytes((streamed.parent / name).read_bytes())
    change(meta)
    (folder / "lod-meta.json").write_text(json.dumps(meta))
    return StreamedSog(folder / "lod-meta.json")


def test_a_run_that_leaves_its_file_is_refused(streamed: Path, tmp_path: Path) -> None:
    sog = changed(streamed, tmp_path, lambda meta: meta["tree"]["children"][0]["lods"]["1"].update(count=101))
    with pytest.raises(SceneError, match=r"a run leaves its file 1_0\.sog; the scene is damaged"):
        sog.read(sog.coarsest)


def test_the_same_gaussians_in_many_leaves_make_no_bomb(streamed: Path, tmp_path: Path) -> None:
    """A few bytes of lod-meta.json for each leaf, and all Gaussians of a file in each."""
    sog = changed(streamed, tmp_path, lambda meta: meta["tree"].update(children=meta["tree"]["children"] * 500))
    with pytest.raises(SceneError, match=r"two runs of 1_[01]\.sog overlap at Gaussian 0; the scene is damaged"):
        sog.read(sog.coarsest)
    with pytest.raises(SceneError, match="filenames names a file twice"):
        changed(streamed, tmp_path, lambda meta: meta["filenames"].append(meta["filenames"][0]))


def test_selections_count_together(streamed: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Files that are no bombs each, and their environment."""
    coefficients = load(streamed, lod=1).sh.shape[1]
    sog = StreamedSog(streamed)
    monkeypatch.setattr(sanitize, "FREE_BYTES", 0)
    monkeypatch.setattr(sog, "_file_bytes", 150 * 4 * (11 + 3 * coefficients) // sanitize.GROWTH)
    with pytest.raises(SceneError, match=r"announces 200 Gaussians, which files of \d+ bytes cannot hold"):
        sog.read(sog.coarsest)


def test_a_tree_without_gaussians_is_refused(streamed: Path, tmp_path: Path) -> None:
    sog = changed(streamed, tmp_path, lambda meta: meta["tree"].update(children=[]))
    with pytest.raises(SceneError, match=r"no leaf of its tree has Gaussians; the scene is empty"):
        sog.read(sog.coarsest)


def test_damage_that_is_found_late_ends_refining_in_one_line(
    streamed: Path, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    sog = changed(streamed, tmp_path, lambda meta: meta["tree"]["children"][0]["lods"]["0"].update(count=801))

    async def visit() -> None:
        async with page(viewer.url) as one:
            await one.look(hushsplat.home_camera(96, 64))
            await one.sharp_frame()
            while not caplog.records:
                await asyncio.sleep(0.1)

    options = ViewerOptions()
    with waiting("room", "127.0.0.1", 0, options, engine()) as viewer:
        entry = SceneEntry.of(sog.read(sog.coarsest), "room", engine(), options.render)
        fill(viewer, entry, Refiner(service_of(viewer), sog, 10_000))
        run(visit())
    (record,) = caplog.records
    assert "a run leaves its file 0_0.sog" in record.getMessage() and record.exc_info is None


@pytest.mark.parametrize(("budget", "refined"), [(10_000, 1600), (1000, 900)])
def test_page_waits_sees_progress_then_coarse_then_fine(streamed: Path, budget: int, refined: int) -> None:
    options = ViewerOptions()
    sog = StreamedSog(streamed)

    async def visit() -> None:
        async with page(viewer.url) as one:
            assert one.scene["loading"] and one.scene["name"] == "room" and one.scene["share"] == 0
            tell_progress(viewer, 0.5)
            assert (await one.next("progress"))[0]["share"] == 0.5
            coarse = sog.read(sog.coarsest)
            entry = SceneEntry.of(coarse, "room", engine(), options.render, [("Home", hushsplat.home_camera(96, 64))])
            fill(viewer, entry, Refiner(service_of(viewer), sog, budget))
            scene, _ = await one.next("scene")
            assert scene["gaussians"] == 200 and "loading" not in scene
            await one.look(hushsplat.home_camera(96, 64))
            found, _ = await one.next("refined")
            assert found["gaussians"] == refined == len(service_of(viewer).entry.gaussians)
            frame, _ = await one.next("frame")
            assert not frame["moving"]

    with waiting("room", "127.0.0.1", 0, options, engine()) as viewer:
        run(visit())


def test_command_prints_the_link_before_it_reads(streamed: Path) -> None:
    command = [sys.executable, "-m", "hushsplat", "view", str(streamed), "--port", "0", "--no-browser"]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as process:
        try:
            assert process.stdout is not None
            assert re.fullmatch(r"http://127\.0\.0\.1:\d+/\n", process.stdout.readline())
            assert f"shows {streamed.parent.name}, 200 Gaussians" in process.stdout.readline()
        finally:
            process.terminate()
            assert process.wait(30) == 0


def test_page_that_waits_is_told_why_the_scene_does_not_come(browser: Browser, console_errors: list[str]) -> None:
    with waiting("room", "127.0.0.1", 0, ViewerOptions(), engine()) as viewer:
        opened = browser.new_page()
        listen(opened, console_errors)
        opened.goto(viewer.url)
        opened.wait_for_function("() => document.getElementById('loading-name').textContent === 'reading room'")
        with pytest.raises(SceneError), telling_failures(viewer, "/home/me/room"):
            raise SceneError("/home/me/room/0_0/means_l.webp: is not a WebP picture.")
        said = "room/0_0/means_l.webp: is not a WebP picture."
        opened.wait_for_function("(text) => document.getElementById('loading-name').textContent === text", arg=said)
        assert opened.is_hidden("#loading-share") and opened.is_hidden("#loading-percent")
        opened.close()
    assert console_errors == []


def test_page_that_waits_offers_nothing_that_needs_a_scene(
    browser: Browser, scene: Gaussians, console_errors: list[str]
) -> None:
    options = ViewerOptions()
    with waiting("room", "127.0.0.1", 0, options, engine()) as viewer:
        tell_progress(viewer, 0.5)  # before the page is there
        opened = browser.new_page(viewport={"width": 360, "height": 240}, reduced_motion="reduce")
        listen(opened, console_errors)
        opened.goto(viewer.url)
        opened.wait_for_function("() => document.getElementById('loading-percent').textContent === '50 %'")
        tools = "() => [...document.querySelectorAll('header button:enabled, header select:enabled')].map((e) => e.id)"
        assert opened.evaluate(tools) == ["close-file", "open", "full", "help"]
        opened.locator("#stats").dispatch_event("click")
        assert opened.locator("#panel").is_hidden()
        fill(viewer, SceneEntry.of(scene, "room", engine(), options.render, [("Home", hushsplat.home_camera(96, 64))]))
        wait_for_frame(opened)
        assert opened.locator("#home").is_enabled() and opened.locator("#method-a").is_enabled()
        opened.close()
    assert console_errors == []
