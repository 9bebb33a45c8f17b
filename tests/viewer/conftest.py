"""A running viewer, and its page."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from playwright.sync_api import Browser, Page
from watch import listen, wait_for_frame

import hushsplat
from hushsplat.types.gaussians import Gaussians
from hushsplat.viewer.launch import Viewer


@pytest.fixture(scope="session")
def scene() -> Gaussians:
    return hushsplat.room_and_garden(10_000)


@pytest.fixture(scope="session")
def viewer(scene: Gaussians) -> Iterator[Viewer]:
    """The synthetic scene from its own camera."""
    cameras = [("Home", hushsplat.home_camera(320, 200)), ("Walk", hushsplat.walk_track().camera(40))]
    with hushsplat.view(scene, name="room", cameras=cameras, up="-y", port=0) as running:
        yield running


@pytest.fixture
def console_errors() -> list[str]:
    """Errors and warnings of the console; a test that expects some clears it."""
    return []


@pytest.fixture
def page(browser: Browser, viewer: Viewer, console_errors: list[str]) -> Iterator[Page]:
    """The page of the viewer after its first frame, in a small window."""
    opened = browser.new_page(viewport={"width": 360, "height": 240}, reduced_motion="reduce")
    listen(opened, console_errors)
    opened.goto(viewer.url)
    wait_for_frame(opened)
    opened.keyboard.press("o")  # a room begins in look-around
    yield opened
    opened.close()
    assert console_errors == []
