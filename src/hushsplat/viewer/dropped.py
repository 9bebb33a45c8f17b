"""Scenes that were dropped on the page: who shows them, and for how long they stay after the last page has gone."""

from __future__ import annotations

import secrets
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass

from hushsplat.types.errors import ViewError
from hushsplat.viewer.memory import MemoryBudget
from hushsplat.viewer.scene_entry import SceneEntry

KEPT_S = 300.0  # after the last page has gone; it may only be loading again


@dataclass
class DroppedScene:
    """A dropped scene that is open.

    Attributes:
        entry: the scene.
        pages: that show it. While a page loads again, the server may see the new one before the old one has gone.
        until: when it is forgotten, if no page shows it.
    """

    entry: SceneEntry
    pages: int = 1
    until: float = 0.0


class DroppedScenes:
    """All that are open, by keys that only their pages know."""

    def __init__(self, memory: MemoryBudget, limit: int) -> None:
        self._memory, self._limit = memory, limit
        self._open: dict[str, DroppedScene] = {}
        self._arriving = 0

    def __len__(self) -> int:
        return len(self._open) + self._arriving

    @contextmanager
    def arriving(self, name: str) -> Iterator[None]:
        """Keep a place for a file while it is received and read; refused when there is none."""
        self.forget_old(all_of_them=len(self) >= self._limit)
        if len(self) >= self._limit:
            raise ViewError(f"{name}: {len(self)} dropped scenes are open already; close one first.")
        self._arriving += 1  # from now on: files that arrive at the same time count each other
        try:
            yield
        finally:
            self._arriving -= 1  # `add` counts it again, before anything else can run

    def add(self, entry: SceneEntry) -> str:
        """Open a scene for one page; returns its key."""
        key = secrets.token_urlsafe(16)
        self._open[key] = DroppedScene(entry)
        return key

    def join(self, key: str) -> SceneEntry | None:
        """The scene of this key for one more page, if it is still there."""
        self.forget_old()
        scene = self._open.get(key)
        if scene is None:
            return None
        scene.pages += 1
        return scene.entry

    def leave(self, key: str, keep: bool) -> None:
        """A page shows it no more; after the last one it is kept for a while, or closed."""
        scene = self._open[key]
        scene.pages -= 1
        if scene.pages == 0:
            scene.until = time.monotonic() + KEPT_S
            if not keep:
                self._close(key)

    def forget_old(self, all_of_them: bool = False) -> None:
        """Close those that no page shows and whose time is over, or all of them if their room is needed."""
        now = time.monotonic()
        for key, scene in list(self._open.items()):
            if scene.pages == 0 and (all_of_them or scene.until < now):
                self._close(key)

    def _close(self, key: str) -> None:
        self._memory.release(self._open.pop(key).entry)
