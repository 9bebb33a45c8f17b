"""A running viewer, and a real browser to look at it with."""

from __future__ import annotations

import os
import shutil
from collections.abc import Iterator
from typing import Any

import pytest
from playwright.sync_api import Browser, Page, sync_playwright

import hushsplat
from hushsplat.core.gaussians import Gaussians
from hushsplat.view.launch import Viewer

BROWSERS = ("chromium", "chromium-browser", "google-chrome", "chrome")
FLAGS = (
    "--headless=new",
    "--no-sandbox",
    "--disable-quic",
    "--no-first-run",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
)


@pytest.fixture(scope="session")
def scene() -> Gaussians:
    return hushsplat.room_and_garden(10_000)


@pytest.fixture(scope="session")
def viewer(scene: Gaussians) -> Iterator[Viewer]:
    """Our scene from its own camera."""
    cameras = [("Home", hushsplat.home_camera(320, 200)), ("Walk", hushsplat.walk_track().camera(40))]
    with hushsplat.view(scene, name="room", cameras=cameras, up="-y", port=0) as running:
        yield running


@pytest.fixture(scope="session")
def browser() -> Iterator[Browser]:
    """Debian's chromium, or what HUSHSPLAT_BROWSER names."""
    path = os.environ.get("HUSHSPLAT_BROWSER") or next(filter(None, map(shutil.which, BROWSERS)), None)
    if path is None:
        pytest.fail("the page is tested in a real browser: install chromium, or name one in HUSHSPLAT_BROWSER.")
    with sync_playwright() as playwright:
        launched = playwright.chromium.launch(executable_path=path, args=list(FLAGS))
        yield launched
        launched.close()


@pytest.fixture
def complaints() -> list[str]:
    """What the console said; a test that expects complaints clears it."""
    return []


@pytest.fixture
def page(browser: Browser, viewer: Viewer, complaints: list[str]) -> Iterator[Page]:
    """The page of the viewer after its first frame, in a small window."""
    opened = browser.new_page(viewport={"width": 480, "height": 320}, reduced_motion="reduce")
    listen(opened, complaints)
    opened.goto(viewer.url)
    wait_for_frame(opened)
    yield opened
    opened.close()
    assert complaints == []


def listen(page: Page, complaints: list[str]) -> None:
    page.set_default_timeout(12_000)
    page.on("console", lambda said: complaints.append(said.text) if said.type in ("error", "warning") else None)
    page.on("pageerror", lambda error: complaints.append(str(error)))


def wait_for_frame(page: Page, condition: str = "true") -> dict[str, Any]:
    """Wait until a frame is shown of which a condition on `frame` holds; gives what the server said about it."""
    found = page.wait_for_function(
        f"() => {{ const frame = window.hushsplat?.stage.header; return frame && ({condition}) ? frame : null; }}"
    )
    return found.json_value()
