"""What all tests share: array shapes are checked while they run, where the real scenes are, and a real browser."""

import os
import shutil
from collections.abc import Iterator
from importlib.util import find_spec
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


@pytest.fixture(scope="session")
def gpu():
    """The gpu engine on the first adapter as it is used; tests that need it say so when there is none."""
    return _gpu_engine()


@pytest.fixture(scope="session")
def exact_gpu():
    """The same with exact depth and colours of 32 bits: what the cpu engine computes."""
    return _gpu_engine(exact=True)


def _gpu_engine(**options):
    if find_spec("wgpu") is None:
        pytest.skip("needs wgpu: pip install '.[dev,gpu]'")
    from hushsplat.engines.webgpu.adapters import adapters
    from hushsplat.engines.webgpu.engine import GpuEngine

    if not adapters():
        pytest.skip("needs a GPU adapter: install mesa-vulkan-drivers for a software one")
    return GpuEngine(**options)


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


WEBGPU_FLAGS = (  # a software adapter inside of the browser
    "--enable-unsafe-webgpu",
    "--enable-features=Vulkan",
    "--use-vulkan=swiftshader",
    "--use-angle=swiftshader",
    "--use-webgpu-adapter=swiftshader",
)


@pytest.fixture(scope="session")
def browser() -> Iterator[Browser]:
    """Debian's chromium, or what HUSHSPLAT_BROWSER names."""
    yield from _launched(*FLAGS)


@pytest.fixture
def webgpu_browser() -> Iterator[Browser]:
    """The same with WebGPU."""
    yield from _launched(*FLAGS, *WEBGPU_FLAGS)


def _launched(*flags: str) -> Iterator[Browser]:
    path = os.environ.get("HUSHSPLAT_BROWSER") or next(filter(None, map(shutil.which, BROWSERS)), None)
    if path is None:
        pytest.fail("pages are tested in a real browser: install chromium, or name one in HUSHSPLAT_BROWSER.")
    with sync_playwright() as playwright:
        launched = playwright.chromium.launch(executable_path=path, args=list(flags))
        yield launched
        launched.close()
