"""Long runs: denoisers and the viewer neither leak nor drift.

    python tools/soak.py denoiser --frames 100000
    python tools/soak.py denoiser --frames 5000 --width 800 --height 532
    python tools/soak.py viewer --minutes 10

`denoiser` walks, stops, cuts and resizes, with hostile frames (NaN, infinities, nothing hit) in between. No picture may
have a value that is not finite, the state after all that must give the pictures of a fresh start, and memory must stay
where it was after the first tenth. `viewer` starts the server in a process of its own: 1000 clients one after the
other, then 32 at once for so many minutes, with invalid messages among the others. Memory must come back to where it
was. Exits with 1 otherwise.
"""

from __future__ import annotations

import argparse
import asyncio
import gc
import random
import subprocess
import sys
import time
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np

import hushsplat
from hushsplat.engines.base import engine
from hushsplat.stream import Stream
from hushsplat.types.camera import Camera
from hushsplat.types.observation import Observation

sys.path.insert(0, str(Path(__file__).resolve().parent.parent / "tests" / "viewer"))

METHODS = ("temporal-zero-shot", "svgf-tuned", "mean", "hush")
STEADY_FRAMES = 160  # of a still camera: longer than any history
MAX_DRIFT = 2e-3  # mean error of colours, 0..1, above that of a fresh start after STEADY_FRAMES
GROWTH_MB = 32.0  # what allocators may keep
SHOWN = ("temporal-zero-shot", "raw", "svgf-tuned", "st-taa", "reference", "mean", "hush", "temporal-zero-shot~trust_s")


def resident_mb(process: int | str = "self") -> float:
    """Memory of a process."""
    gc.collect()
    return int(Path(f"/proc/{process}/statm").read_text().split()[1]) * 4096 / 2**20


def hostile(observation: Observation, kind: str) -> Observation:
    """A frame as a broken renderer would give it."""
    if kind == "empty":
        return Observation(*(np.zeros_like(part) for part in (observation.color, observation.depth, observation.alpha)))
    color, depth = observation.color.copy(), observation.depth.copy()
    color[::3], depth[1::3] = (np.nan, np.nan) if kind == "nan" else (np.inf, -np.inf)
    return Observation(color, depth, observation.alpha.copy())


class DenoiserSoak:
    """One stream of all methods, frame after frame."""

    def __init__(self, width: int, height: int, gaussians: int, say: Callable[[str], object] = print) -> None:
        self.random, self.say = random.Random(0), say
        self.engine = engine()
        self.scene = self.engine.upload(hushsplat.room_and_garden(gaussians))
        self.stream = Stream(self.engine, self.scene, METHODS)
        self.size = (width, height)
        self.walk = hushsplat.walk_track(60, 30, width, height)
        self.place, self.problems = 0, list[str]()
        self.counts = dict.fromkeys(("moving", "still", "cut", "resize", "nan", "inf", "empty"), 0)

    def run(self, frames: int, checks: int = 10) -> list[str]:
        """Draw so many frames, compare with a fresh start so often; what went wrong."""
        begin, memory, first_mb, drift = time.monotonic(), list[float](), 0.0, 0.0
        every = max(1, frames // checks)
        action, left = "moving", 0
        for number in range(frames):
            if left == 0:
                action = self.random.choice(tuple(self.counts))
                left = self.random.randrange(5, 60) if action in ("moving", "still") else 1
            left -= 1
            self.counts[action] += 1
            self.step(action)
            if (number + 1) % every == 0:
                self.walk = self.walk.resized(*self.size)  # else memory depends on the last resize
                drift = max(drift, self.drift())
                self.engine.release_memory()  # pooled buffers, bounded by the engine
                memory.append(resident_mb())
                first_mb = first_mb or memory[0]
                self.say(
                    f"{number + 1} frames, {time.monotonic() - begin:.0f} s: {memory[-1]:.0f} MB, drift {drift:.1e}"
                )
        if drift > MAX_DRIFT:
            self.problems.append(f"the error of the pictures is {drift:.1e} above that of a fresh start")
        if memory and memory[-1] > first_mb + GROWTH_MB:
            self.problems.append(f"memory grew from {first_mb:.0f} to {memory[-1]:.0f} MB")
        self.say(", ".join(f"{name} {count}" for name, count in self.counts.items()))
        return self.problems

    def step(self, action: str) -> None:
        """One frame."""
        if action == "moving":
            self.place = (self.place + 1) % len(self.walk)
        elif action == "cut":
            self.place = self.random.randrange(len(self.walk))
        elif action == "resize":
            scale = self.random.choice((0.5, 0.64, 1.0, 1.25))
            self.walk = self.walk.resized(*(max(8, round(scale * side)) for side in self.size))
        camera = self.walk.camera(self.place)
        if action in ("nan", "inf", "empty"):
            frame = self.stream.feed(hostile(self.stream.observe(camera).numpy(), action), camera)
        else:
            frame = self.stream.step(camera)
        for method, image in zip(METHODS, frame.images, strict=True):
            if action not in ("nan", "inf") and not np.isfinite(image.numpy().color).all():
                self.problems.append(f"{method}: frame {frame.number} after {action} is not finite")

    def drift(self) -> float:
        """How much farther the pictures of a still camera are from `exact` than those of a fresh start, same noise."""
        camera = self.walk.camera(self.place)
        exact = self.engine.render(self.scene, camera, "exact", self.stream.options).numpy().color
        fresh = Stream(self.engine, self.scene, METHODS, noise=replace(self.stream.noise, frame=self.stream.number))
        for _ in range(STEADY_FRAMES):
            pair = self.stream.step(camera).images, fresh.step(camera).images
        old, new = ([float(np.abs(image.numpy().color - exact).mean()) for image in images] for images in pair)
        return max(first - second for first, second in zip(old, new, strict=True))


async def visit(url: str, rng: random.Random, walk: Any, frames: int) -> int:
    """One client: so many frames, other methods now and then, messages that are refused."""
    from client import page

    async with page(url) as one:
        await one.draw(*rng.sample(SHOWN, rng.choice((1, 2))), samples=rng.choice((1, 1, 4)))
        first = rng.randrange(len(walk))
        for step in range(frames):
            if rng.random() < 0.05:
                await one.send("look", width=1e308, height=None)
            # Another place each time: a finished picture of the same one is not drawn again.
            await one.look(seen(walk.camera((first + 7 * step) % len(walk)), rng), sequence=step)
            frame, _ = await one.next("frame")
            await one.acknowledge(frame)
    return frames


def seen(camera: Camera, rng: random.Random) -> Camera:
    """The camera on a canvas of any size."""
    scale = rng.choice((0.5, 1.0, 1.0, 1.5))
    return camera.resized(round(scale * camera.width), round(scale * camera.height))


async def soak_viewer(url: str, process: int, minutes: float, clients: int, at_once: int) -> list[str]:
    """Clients one after the other and at once; what went wrong."""
    rng = random.Random(0)
    walk = hushsplat.walk_track(30, 10, 160, 100)
    begin = time.monotonic()

    async def crowd() -> int:
        return sum(await asyncio.gather(*(visit(url, random.Random(rng.random()), walk, 6) for _ in range(at_once))))

    async def settled() -> float:
        """The least within a moment: what is left is given back beside us."""
        least = resident_mb(process)
        for _ in range(4):
            await asyncio.sleep(0.25)
            least = min(least, resident_mb(process))
        return least

    frames = await crowd()  # allocates what stays
    first_mb = await settled()
    print(f"after the first {at_once} at once: {first_mb:.0f} MB", flush=True)
    for number in range(clients):
        frames += await visit(url, rng, walk, 2)
        if (number + 1) % 100 == 0:
            print(f"{number + 1} clients, {time.monotonic() - begin:.0f} s: {await settled():.0f} MB", flush=True)
    rounds, end = 0, time.monotonic() + 60 * minutes
    while rounds == 0 or time.monotonic() < end:
        frames, rounds = frames + await crowd(), rounds + 1
    last_mb = await settled()
    print(
        f"{rounds} × {at_once} at once, {frames} frames, {time.monotonic() - begin:.0f} s: {last_mb:.0f} MB", flush=True
    )
    return [f"memory grew from {first_mb:.0f} to {last_mb:.0f} MB"] if last_mb > first_mb + GROWTH_MB else []


def run_viewer(minutes: float, clients: int, at_once: int, scene: str) -> list[str]:
    """The viewer in a process of its own; it must end well, and say nothing on stderr."""
    command = [sys.executable, "-m", "hushsplat", "view", scene, "--port", "0", "--no-browser", "--quiet"]
    command += ["--max-clients", str(at_once + 1)]
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True) as server:
        assert server.stdout is not None
        try:
            problems = asyncio.run(soak_viewer(server.stdout.readline().strip(), server.pid, minutes, clients, at_once))
        finally:
            server.terminate()
        _, said = server.communicate(timeout=60)
    if server.returncode != 0 or said:
        problems.append(f"the viewer ended with {server.returncode} and said: {said[-500:]}")
    return problems


def main() -> int:
    """One of the long runs; 1 if something went wrong."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    what = parser.add_subparsers(dest="what", required=True)
    denoiser = what.add_parser("denoiser")
    denoiser.add_argument("--frames", type=int, default=100_000)
    denoiser.add_argument("--width", type=int, default=48)
    denoiser.add_argument("--height", type=int, default=32)
    denoiser.add_argument("--gaussians", type=int, default=2000)
    denoiser.add_argument("--checks", type=int, default=10, help="comparisons with a fresh start")
    viewer = what.add_parser("viewer")
    viewer.add_argument("--minutes", type=float, default=10.0)
    viewer.add_argument("--clients", type=int, default=1000, help="one after the other")
    viewer.add_argument("--at-once", type=int, default=32)
    viewer.add_argument("--scene", default="synth:10k")
    words = parser.parse_args()
    if words.what == "denoiser":
        problems = DenoiserSoak(words.width, words.height, words.gaussians).run(words.frames, words.checks)
    else:
        problems = run_viewer(words.minutes, words.clients, words.at_once, words.scene)
    for problem in problems[:20]:
        print(f"FAILED: {problem}")
    return int(bool(problems))


if __name__ == "__main__":
    raise SystemExit(main())
