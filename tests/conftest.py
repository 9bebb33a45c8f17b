"""What all tests share: array shapes are checked while they run, where the real scenes are, and a real browser."""

import os
import shutil
from collections.abc import Iterator
from pathlib import Path

import pytest
from hypothesis import settings
from jaxtyping import install_import_hook
from playwright.sync_api import Browser, sync_playwright

install_import_hook("hushsplat", "beartype.beartype")

# Nothing is timed in a test: hypothesis would fail examples that take long on a busy machine.
settings.register_profile("untimed", deadline=None)
settings.load_profile("untimed")


@pytest.fixture(scope="session")
def real_data() -> Path:
    """The folder of real scenes; tests that need it say so when it is not there."""
    folder = os.environ.get("HUSHSPLAT_DATA")
    if not folder:
        pytest.skip("real scenes: set HUSHSPLAT_DATA to their folder (see tests/README.md)")
    return Path(folder)


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
def browser() -> Iterator[Browser]:
    """Debian's chromium, or what HUSHSPLAT_BROWSER names."""
    path = os.environ.get("HUSHSPLAT_BROWSER") or next(filter(None, map(shutil.which, BROWSERS)), None)
    if path is None:
        pytest.fail("pages are tested in a real browser: install chromium, or name one in HUSHSPLAT_BROWSER.")
    with sync_playwright() as playwright:
        launched = playwright.chromium.launch(executable_path=path, args=list(FLAGS))
        yield launched
        launched.close()
