"""Many clients of one viewer: is memory released, and do all get their turns?

python benchmarks/viewer_crowd.py --clients 10 --minutes 10

Starts the viewer in a process of its own and connects clients without a browser. They walk, change methods, compare
two, take screenshots, and disconnect and connect again every half minute. Prints the server's memory, the frames of
each client, and the memory after all have disconnected.
"""

from __future__ import annotations

import asyncio
import os
import random
import re
import subprocess
import sys
import time
from dataclasses import dataclass
from pathlib import Path

import tyro

import hushsplat

sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "tests" / "viewer"))
from client import page

METHODS = ("temporal-zero-shot", "raw", "svgf-tuned", "st-taa", "reference", "mean", "temporal-zero-shot~trust_s")


@dataclass
class Crowd:
    """How many clients, how long, which scene."""

    scene: str = "synth:200k"
    clients: int = 10
    minutes: float = 10.0
    width: int = 640
    height: int = 400

    def run(self) -> None:
        """Start the viewer, connect the clients, and print its memory."""
        command = [sys.executable, "-m", "hushsplat", "view", self.scene, "--port", "0", "--no-browser", "--quiet"]
        with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as server:
            try:
                url = server.stdout.readline().strip()
                asyncio.run(self._connect(url, server.pid))
            finally:
                server.terminate()

    async def _connect(self, url: str, pid: int) -> None:
        walk = hushsplat.walk_track(60, 20, self.width, self.height)
        end = time.monotonic() + 60 * self.minutes
        frames = [0] * self.clients
        print(f"before: {memory_mb(pid):.0f} MB")

        async def client(index: int) -> None:
            rng = random.Random(index)
            while time.monotonic() < end:
                stay = min(end, time.monotonic() + rng.uniform(20, 40))
                async with page(url) as one:
                    step = rng.randrange(len(walk))
                    while time.monotonic() < stay:
                        if rng.random() < 0.02:
                            await one.draw(*rng.sample(METHODS, rng.choice((1, 1, 2))))
                        if rng.random() < 0.01:
                            await one.send("shot", request=1, divider=0.5)
                        step = (step + 1) % len(walk)
                        await one.look(walk.camera(step), sequence=step)
                        frame, _ = await one.next("frame")
                        await one.acknowledge(frame)
                        frames[index] += 1

        clients = [asyncio.create_task(client(index)) for index in range(self.clients)]
        while any(not task.done() for task in clients):
            await asyncio.wait(clients, timeout=30)
            left = max(0.0, end - time.monotonic())
            print(
                f"{left:5.0f} s left: {memory_mb(pid):.0f} MB, frames {min(frames)} to {max(frames)} each", flush=True
            )
        for task in clients:
            task.result()
        await asyncio.sleep(2)
        print(f"all have disconnected: {memory_mb(pid):.0f} MB; processor time in the next 5 s: ", end="", flush=True)
        before = processor_s(pid)
        await asyncio.sleep(5)
        print(f"{processor_s(pid) - before:.2f} s")


def memory_mb(pid: int) -> float:
    """Resident memory of the process."""
    text = Path(f"/proc/{pid}/status").read_text()
    return int(re.search(r"VmRSS:\s+(\d+)", text)[1]) / 1024


def processor_s(pid: int) -> float:
    """Processor time of the process."""
    fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


if __name__ == "__main__":
    tyro.cli(Crowd).run()
