"""How far the reading of a file is, told to whoever listens."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from contextvars import ContextVar

_listener: ContextVar[Callable[[float], None] | None] = ContextVar("_listener", default=None)


@contextmanager
def listening(on_progress: Callable[[float], None]) -> Iterator[None]:
    """Readers in the block say how far they are: 0..1."""
    token = _listener.set(on_progress)
    try:
        yield
    finally:
        _listener.reset(token)


def progressed(share: float) -> None:
    """This share of the file is read."""
    listener = _listener.get()
    if listener is not None:
        listener(share)


@contextmanager
def part(begin: float, end: float) -> Iterator[None]:
    """What the block reads is the part from `begin` to `end` of the whole."""
    whole = _listener.get()
    with listening(lambda share: whole(begin + (end - begin) * share) if whole is not None else None):
        yield
