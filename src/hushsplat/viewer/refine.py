"""What happens to the scene while clients rest: a streamed one becomes finer near a camera, others get levels."""

from __future__ import annotations

import asyncio
import logging
import os
from collections.abc import Awaitable, Callable
from dataclasses import replace
from functools import partial

from hushsplat.engines.cpu.engine import CpuEngine
from hushsplat.io.scenes.sog_stream import StreamedSog
from hushsplat.types.camera import Camera
from hushsplat.types.errors import HushsplatError
from hushsplat.types.gaussians import Gaussians
from hushsplat.viewer.scene_entry import SceneEntry
from hushsplat.viewer.service import RenderService

CHECK_S = 0.25  # how often resting clients are looked for
MOST_GAUSSIANS = 4_000_000  # ours: `hush` at 1440×900 draws so many in about a second on two cores
FIRST_GAUSSIANS, GROWTH = 300_000, 4  # of the first refinement, and how many times more in the next
MEMORY_SHARE = 0.4  # of what is free
ENGINE_BYTES = 105  # per Gaussian, docs/rendering.md
LEVELS_GAUSSIANS = 300_000  # ours: fewer are drawn at 20 frames a second on two cores as they are
LEVELS_COPIES = 1.5  # Gaussians of all levels over those of the scene

log = logging.getLogger("hushsplat.viewer")


def default_budget(gaussians: Gaussians) -> int:
    """How many Gaussians like these may be drawn at once: by free memory, while two selections are held."""
    return max(1, min(MOST_GAUSSIANS, free_gaussians(gaussians) // 2))


def free_gaussians(gaussians: Gaussians) -> int:
    """How many Gaussians like these free memory has room for."""
    names = ("means", "scales", "rotations", "opacities", "sh")
    each = ENGINE_BYTES + sum(getattr(gaussians, name)[:1].nbytes for name in names)
    try:
        free = os.sysconf("SC_AVPHYS_PAGES") * os.sysconf("SC_PAGE_SIZE")
    except (ValueError, OSError, AttributeError):  # not on this system
        return 2 * MOST_GAUSSIANS
    return int(MEMORY_SHARE * free / each)


async def make_levels(
    service: RenderService, resting: Callable[[], Camera | None], show: Callable[[SceneEntry], Awaitable[None]]
) -> None:
    """Levels of detail for moving cameras, made once somebody has seen the scene, where they gain something."""
    entry = service.entry
    if not gains_levels(entry):
        return
    while resting() is None:
        await asyncio.sleep(CHECK_S)
    made = await service.prepare(partial(entry.with_levels, service.options.render, service.check_open))
    if service.entry is entry:
        await show(made)


def gains_levels(entry: SceneEntry) -> bool:
    """Whether levels of detail make a moving picture of this scene faster, and fit into free memory."""
    if not isinstance(entry.engine, CpuEngine) or entry.scene.has_payload or len(entry.gaussians) < LEVELS_GAUSSIANS:
        return False
    return LEVELS_COPIES * len(entry.gaussians) <= free_gaussians(entry.gaussians)


class Refiner:
    """Chooses the levels of a streamed scene by the camera that rests, reads and uploads them."""

    def __init__(self, service: RenderService, streamed: StreamedSog, budget: int) -> None:
        self._service = service
        self._streamed = streamed
        self._budget = budget
        self._levels = streamed.coarsest
        self._allowed = min(budget, FIRST_GAUSSIANS)  # grows to the budget, so that something better is there soon

    async def run(self, resting: Callable[[], Camera | None], show: Callable[[SceneEntry], Awaitable[None]]) -> None:
        """Until it is cancelled, or a file is damaged; `resting` gives the camera of a client that rests."""
        chosen: tuple[Camera, int] | None = None  # what the levels were chosen by
        while True:
            await asyncio.sleep(CHECK_S)
            camera = resting()
            if camera is None or (chosen is not None and chosen[0] is camera and chosen[1] == self._allowed):
                continue
            chosen = camera, self._allowed
            # A tree can have many thousand leaves: the event loop does not wait for them.
            levels = await self._service.prepare(partial(self._streamed.near, *chosen))
            self._allowed = min(self._budget, GROWTH * self._allowed)
            if levels == self._levels:
                continue
            self._levels = levels
            try:
                entry = await self._service.read(self._entry)
            except (HushsplatError, MemoryError) as error:
                log.warning("the scene becomes no finer: %s", error or "there is not enough memory for it.")
                return
            await show(entry)

    def _entry(self) -> SceneEntry:
        gaussians = self._streamed.read(self._levels)
        entry = self._service.entry
        return replace(entry, gaussians=gaussians, scene=entry.engine.upload(gaussians, self._service.options.render))
