"""The memory of all clients: a budget from the machine's memory, shared by those who are there."""

from __future__ import annotations

import os
import threading
from collections.abc import Callable, Hashable
from pathlib import Path

from hushsplat.types.errors import ViewError

MACHINE_SHARE = 4  # the budget is one part of so many of the machine's memory
UNKNOWN_MACHINE_BYTES = 8 << 30
PINNED_SHARE = 2  # videos and dropped scenes, which cannot shrink, take at most one part of so many of the budget
CGROUP = Path("/sys/fs/cgroup/memory.max")  # the limit of a container


class MemoryBudget:
    """Grants bytes to clients; all that is granted together never exceeds the total.

    A client gets what it asks for while there is room. When there is none, those that hold more than an equal share
    are told to shrink, and the new one gets its share.
    """

    def __init__(self, total: int) -> None:
        self.total = total
        self._lock = threading.Lock()  # frames are granted in the drawing thread, files in the reading thread
        self._held: dict[Hashable, int] = {}
        self._shrink: dict[Hashable, Callable[[], object]] = {}  # of clients that can

    @property
    def held(self) -> int:
        """Bytes that are granted now."""
        return sum(self._held.values())

    def join(self, client: Hashable, shrink: Callable[[], object]) -> None:
        """Share with a client that can shrink; `shrink` makes it release all that it holds."""
        with self._lock:
            self._held[client], self._shrink[client] = 0, shrink

    def release(self, client: Hashable) -> None:
        """Forget a client."""
        with self._lock:
            self._held.pop(client, None)
            self._shrink.pop(client, None)

    def grant(self, client: Hashable, wanted: int) -> int:
        """The bytes that a client may hold from now on, in place of those before: what it wants, or its share."""
        with self._lock:
            if client not in self._shrink:  # it has left
                return 0
            pinned = sum(held for each, held in self._held.items() if each not in self._shrink)
            share = (self.total - pinned) // len(self._shrink)
            free = self.total - sum(held for each, held in self._held.items() if each != client)
            if wanted > free:
                wanted = min(wanted, max(share, free))
                for other in sorted(self._shrink, key=self._held.__getitem__, reverse=True):
                    if other != client and self._held[other] > share and wanted > free:
                        free += self._held[other]
                        self._held[other] = 0
                        self._shrink[other]()
            self._held[client] = granted = min(wanted, free)
            return granted

    def pin(self, client: Hashable, wanted: int, name: str) -> None:
        """Hold these bytes until `release`; refused where there is no room. Clients that draw shrink for it."""
        with self._lock:
            pinned = sum(held for each, held in self._held.items() if each not in self._shrink)
            if pinned + wanted > self.total // PINNED_SHARE:
                raise ViewError(
                    f"{name}: needs {wanted >> 20} MB, and {pinned >> 20} of {self.total // PINNED_SHARE >> 20} MB are "
                    "taken by videos and dropped scenes; make it smaller, or close others first."
                )
            for other in sorted(self._shrink, key=self._held.__getitem__, reverse=True):
                if self._held[other] and self.held + wanted > self.total:
                    self._held[other] = 0
                    self._shrink[other]()
            self._held[client] = wanted


def default_budget() -> int:
    """A quarter of the memory that this process may use."""
    return machine_bytes() // MACHINE_SHARE


def machine_bytes() -> int:
    """The machine's memory, or the container's."""
    try:
        installed = os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE")
    except (AttributeError, ValueError, OSError):  # Windows has no sysconf
        installed = UNKNOWN_MACHINE_BYTES
    try:
        limit = CGROUP.read_text().strip()
    except OSError:
        return installed
    return min(installed, int(limit)) if limit.isdigit() else installed
