"""How long a scene takes to its first picture in a browser and to finer ones, and how much memory the viewer has then.

python benchmarks/first_picture.py garden/lod-meta.json --budget 1000000
python benchmarks/first_picture.py garden.ply
"""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path
from time import monotonic

import tyro
from playwright.sync_api import sync_playwright
from viewer_speed import cpu_seconds


@dataclass
class FirstPicture:
    """What to show, and until when."""

    scene: tyro.conf.Positional[str]
    budget: int | None = None  # of Gaussians of a streamed SOG at once
    width: int = 1280
    height: int = 800
    rest_s: float = 30.0  # ends when nothing became finer for so long

    def run(self) -> None:
        """Open the page while the scene is read, and print a line for each change."""
        command = [sys.executable, "-m", "hushsplat", "view", self.scene, "--port", "0", "--no-browser", "--quiet"]
        command += [] if self.budget is None else ["--budget", str(self.budget)]
        print(f"load of the machine: {os.getloadavg()[0]:.1f}")
        with sync_playwright() as playwright:
            browser = playwright.chromium.launch(executable_path=shutil.which("chromium"), args=["--no-sandbox"])
            page = browser.new_page(viewport={"width": self.width, "height": self.height})
            page.set_default_timeout(600_000)
            begin = monotonic()
            with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as server:
                try:
                    url = server.stdout.readline().strip()
                    state("link", begin, server.pid)
                    page.goto(url)
                    page.wait_for_function("() => window.hushsplat?.stage.header")
                    shown, changed = "", monotonic()
                    while monotonic() - changed < self.rest_s:
                        now = page.inner_text("#scene-size")
                        if now != shown:
                            shown, changed = now, monotonic()
                            state(shown, begin, server.pid)
                        page.wait_for_timeout(100)
                finally:
                    server.terminate()


def state(what: str, begin: float, process: int) -> None:
    """Print the time so far, on the wall and on all cores, and the memory."""
    status = Path(f"/proc/{process}/status").read_text()
    now, most = (int(status.split(f"{name}:")[1].split()[0]) / 1024 for name in ("VmRSS", "VmHWM"))
    times = f"{monotonic() - begin:.1f} s, CPU {cpu_seconds(process):.1f} s"
    print(f"{what}: {times}, memory {now:.0f} MB, at most {most:.0f} MB", flush=True)


if __name__ == "__main__":
    tyro.cli(FirstPicture).run()
