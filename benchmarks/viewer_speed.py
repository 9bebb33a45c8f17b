"""The viewer in a real browser: shown frames a second while dragging, and the latency from input to picture.

python benchmarks/viewer_speed.py --scene synth:200k --method temporal-zero-shot
"""

from __future__ import annotations

import shutil
import statistics
import subprocess
import sys
from dataclasses import dataclass

import tyro
from playwright.sync_api import sync_playwright

# Turns the camera a little for every frame of the browser, and watches what is shown.
DRAG = """async (seconds) => {
  const { stage, camera, sequence } = hushsplat, sent = new Map(), shown = [];
  stage.addEventListener("shown", ({ detail }) => {
    const asked = sent.get(detail.sequence), at = performance.now();
    const latency = asked === undefined ? null : at - asked;
    shown.push({ at, latency, scale: detail.scale, passes: detail.passes_ms });
  });
  const start = performance.now();
  while (performance.now() - start < 1000 * seconds) {
    const before = sequence(), at = performance.now();
    camera.orbit(0.01 * Math.sin(at / 700), 0);
    sent.set(before + 1, at); // sent to the server at once, or with the next frame
    await new Promise((resolve) => requestAnimationFrame(resolve));
  }
  return shown.filter(({ at }) => at > start + 1500);
}"""


@dataclass
class Speed:
    """What to show, how large, how long."""

    scene: str = "synth:200k"
    method: str = "temporal-zero-shot"
    width: int = 1280
    height: int = 800
    seconds: float = 8.0

    def run(self) -> None:
        """Open the page, drag, and print what came of it."""
        command = [sys.executable, "-m", "hushsplat", "view", self.scene, "--port", "0", "--no-browser", "--quiet"]
        command += ["--method", self.method]
        with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as server, sync_playwright() as playwright:
            try:
                url = server.stdout.readline().strip()
                browser = playwright.chromium.launch(executable_path=shutil.which("chromium"), args=["--no-sandbox"])
                page = browser.new_page(viewport={"width": self.width, "height": self.height})
                page.goto(url)
                page.wait_for_function("() => window.hushsplat?.stage.header")
                shown = page.evaluate(DRAG, self.seconds)
                browser.close()
            finally:
                server.terminate()
        seconds = (shown[-1]["at"] - shown[0]["at"]) / 1000
        latencies = [one["latency"] for one in shown if one["latency"] is not None]
        print(f"{self.scene}, {self.method}, canvas {self.width}×{self.height}")
        print(f"shown frames a second: {(len(shown) - 1) / seconds:.1f}")
        print(f"input to picture: median {statistics.median(latencies):.0f} ms of {len(latencies)}")
        print(f"scale while moving: median {statistics.median(one['scale'] for one in shown):.2f}")
        for name in shown[-1]["passes"]:
            print(f"  {name}: {statistics.median(one['passes'].get(name, 0) for one in shown):.1f} ms")


if __name__ == "__main__":
    tyro.cli(Speed).run()
