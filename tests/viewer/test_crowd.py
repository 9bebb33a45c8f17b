"""Ten clients at once: all are drawn in turn, and memory is released when they disconnect.

`python tools/soak.py viewer` does the same for as long as you like.
"""

from __future__ import annotations

import asyncio
import gc
import resource
import sys
from pathlib import Path

import pytest
from client import page, run

import hushsplat
from hushsplat.viewer.launch import Viewer

CLIENTS, FRAMES, ROUNDS = 10, 6, 4
PATIENCE = 200  # tenths of a second
ALLOWED_MB = 24  # what allocators and caches may keep; each round's histories are some 30 MB
METHODS = ("temporal-zero-shot", "svgf-tuned", "reference", "st-taa", "mean")


def resident_mb() -> float:
    return int(Path("/proc/self/statm").read_text().split()[1]) * resource.getpagesize() / 2**20


async def visit(viewer: Viewer, index: int) -> int:
    walk = hushsplat.walk_track(2, 10, 320, 200)
    async with page(viewer.url) as one:
        await one.draw(METHODS[index % len(METHODS)], "raw")
        for step in range(FRAMES):
            await one.look(walk.camera((index + step) % len(walk)), sequence=step)
            frame, _ = await one.next("frame")
            await one.acknowledge(frame)
        return frame["frame"]


@pytest.mark.skipif(sys.platform != "linux", reason="reads the process's memory from /proc")
def test_memory_is_released_after_ten_clients(viewer: Viewer) -> None:
    async def crowd() -> list[int]:
        return await asyncio.gather(*(visit(viewer, index) for index in range(CLIENTS)))

    after = []
    for done in range(ROUNDS):
        assert min(run(crowd())) >= FRAMES
        after.append(settled_mb(viewer, after[1] + ALLOWED_MB if done > 1 else 0))
    assert max(after[2:]) < after[1] + ALLOWED_MB, after


def settled_mb(viewer: Viewer, enough: float) -> float:
    """The least after the last client has gone: what is left is given back beside us, on a busy machine late."""
    while viewer.clients:
        run(asyncio.sleep(0.02))
    least = resident_mb()
    for step in range(PATIENCE):
        run(asyncio.sleep(0.1))
        gc.collect()
        least = min(least, resident_mb())
        if step >= 5 and (least < enough or not enough):
            break
    return least
