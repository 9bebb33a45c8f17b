"""Take the picture of the viewer in README.md: the page in Chromium, two methods side by side.

python tools/make_viewer_image.py [OUTPUT]
"""

from __future__ import annotations

import shutil
import sys
from pathlib import Path

from playwright.sync_api import sync_playwright

import hushsplat

IMAGES = Path(__file__).resolve().parent.parent / "docs" / "images"
GAUSSIANS = 500_000
SIZE = {"width": 1280, "height": 800}
SETTLED = "() => hushsplat.stage.header?.sides.length === 2 && hushsplat.stage.header.still_frames >= 8"  # hush has 4


def main() -> None:
    """Open the page, split it, wait until it has settled, take the picture."""
    scene = hushsplat.room_and_garden(GAUSSIANS)
    cameras = [("Home", hushsplat.home_camera())]
    viewer = hushsplat.view(scene, name="synth:500k", cameras=cameras, up="-y", port=0)
    with viewer, sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=shutil.which("chromium"), args=["--no-sandbox"])
        page = browser.new_page(viewport=SIZE)
        page.goto(viewer.url)
        page.wait_for_function("() => window.hushsplat?.stage.header")
        page.evaluate("() => hushsplat.stage.move(0.04)")
        page.keyboard.press("x")
        page.wait_for_function(SETTLED, timeout=300_000)
        output = Path(sys.argv[1]) if len(sys.argv) > 1 else IMAGES / "viewer.jpg"
        page.screenshot(path=output, type="jpeg", quality=86)
        browser.close()


if __name__ == "__main__":
    main()
