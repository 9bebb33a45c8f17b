"""The viewer in a real browser: shown frames a second while orbiting, latency, and the first sharp frame after a stop.

python benchmarks/viewer_speed.py --scene synth:200k --method temporal-zero-shot
python benchmarks/viewer_speed.py --scene bonsai.splat --method hush raw --levels-s 60   also with levels of detail
"""

from __future__ import annotations

import math
import os
import shutil
import statistics
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path

import tyro
from playwright.sync_api import Page, sync_playwright

# Turns the camera a little for every frame of the browser with a hand on it, watches what is shown, and lets go.
DRAG = """async (seconds) => {
  const { stage, camera, sequence, connection } = hushsplat, sent = new Map(), shown = [];
  const watch = ({ detail }) => {
    const asked = sent.get(detail.sequence), at = performance.now();
    const latency = asked === undefined ? null : at - asked;
    shown.push({ at, latency, scale: detail.scale, moving: detail.moving, passes: detail.passes_ms });
  };
  stage.addEventListener("shown", watch);
  connection.send({ type: "hold", held: true });
  const start = performance.now();
  while (performance.now() - start < 1000 * seconds) {
    const before = sequence(), at = performance.now();
    camera.orbit(0.01 * Math.sin(at / 700), 0);
    sent.set(before + 1, at); // sent to the server at once, or with the next frame
    await new Promise((resolve) => requestAnimationFrame(resolve));
  }
  connection.send({ type: "hold", held: false });
  const stop = performance.now();
  while (!shown.some(({ at, moving }) => at > stop && !moving) && performance.now() - stop < 10000) {
    await new Promise((resolve) => requestAnimationFrame(resolve));
  }
  stage.removeEventListener("shown", watch);
  const sharp = shown.find(({ at, moving }) => at > stop && !moving);
  const moving = shown.filter(({ at }) => at > start + 1500 && at < stop);
  return { count: shown.length, moving, sharp: sharp ? sharp.at - stop : null };
}"""
NO_LEVELS = (
    "from hushsplat.cli.main import main; from hushsplat.viewer import refine; "
    "refine.LEVELS_GAUSSIANS = 1 << 62; raise SystemExit(main())"
)
LEVELS = "() => hushsplat.panel.hasLevels"


@dataclass
class Speed:
    """What to show, how large, how long."""

    scene: str = "synth:200k"
    method: tuple[str, ...] = ("temporal-zero-shot",)
    width: int = 1280
    height: int = 800
    seconds: float = 8.0
    levels_s: float = 0.0  # > 0: also with levels of detail, how long to wait for them

    def run(self) -> None:
        """Without levels of detail, and then with them."""
        print(f"{self.scene}, canvas {self.width}×{self.height}")
        self._view("-c", NO_LEVELS)
        if self.levels_s:
            print("with levels of detail:")
            self._view("-m", "hushsplat", levels_s=self.levels_s)

    def _view(self, *program: str, levels_s: float = 0.0) -> None:
        """Open the page, drag, and print what came of it."""
        command = [sys.executable, *program, "view", self.scene, "--port", "0", "--no-browser", "--quiet"]
        command += ["--method", self.method[0]]
        with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as server, sync_playwright() as playwright:
            try:
                url = server.stdout.readline().strip()
                browser = playwright.chromium.launch(executable_path=shutil.which("chromium"), args=["--no-sandbox"])
                page = browser.new_page(viewport={"width": self.width, "height": self.height})
                page.goto(url)
                page.wait_for_function("() => window.hushsplat?.stage.header")
                if levels_s:
                    page.wait_for_function(LEVELS, timeout=1000 * levels_s)
                for method in self.method:
                    self._measure(page, server.pid, method)
                browser.close()
            finally:
                server.terminate()

    def _measure(self, page: Page, server: int, method: str) -> None:
        page.evaluate("(method) => hushsplat.panel.setSides([{ method, show: 'picture' }])", method)
        page.wait_for_timeout(1500)
        before = cpu_seconds(server), cpu_seconds(os.getpid())
        found = page.evaluate(DRAG, self.seconds)
        server_s, all_s = cpu_seconds(server) - before[0], cpu_seconds(os.getpid()) - before[1]
        shown = found["moving"]
        if len(shown) < 2:
            print(f"{method}: fewer than two frames in {self.seconds:g} s; the machine is too busy", flush=True)
            return
        seconds = (shown[-1]["at"] - shown[0]["at"]) / 1000
        latencies = [one["latency"] for one in shown if one["latency"] is not None]
        print(f"{method}: {(len(shown) - 1) / seconds:.1f} shown frames a second", end=", ")
        print(f"scale {statistics.median(one['scale'] for one in shown):.2f}", end=", ")
        print(f"input to picture {statistics.median(latencies):.0f} ms", end=", ")
        print(f"sharp after {found['sharp'] or math.nan:.0f} ms", end=", ")
        print(f"CPU a frame: server {1000 * server_s / found['count']:.0f} ms", end=", ")
        print(f"browser {1000 * (all_s - server_s) / found['count']:.0f} ms", end="; ")
        passes = {name: statistics.median(one["passes"].get(name, 0) for one in shown) for name in shown[-1]["passes"]}
        print(", ".join(f"{name} {ms:.1f} ms" for name, ms in passes.items()), flush=True)


def cpu_seconds(process: int) -> float:
    """Time on all cores so far, with that of its children."""
    fields = Path(f"/proc/{process}/stat").read_text().rpartition(")")[2].split()
    own = (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")
    return own + sum(map(cpu_seconds, children(process)))


def children(process: int) -> list[int]:
    """The processes that it has started and that still run."""
    tasks = Path(f"/proc/{process}/task").glob("*/children")
    return [int(child) for task in tasks for child in task.read_text().split()]


if __name__ == "__main__":
    tyro.cli(Speed).run()
