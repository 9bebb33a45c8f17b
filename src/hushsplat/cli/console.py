"""What the commands print: results to stdout, everything else to stderr."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager

from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeRemainingColumn

from hushsplat.types.errors import printable


def print_error(message: str) -> None:
    """One line, whatever the message looks like."""
    print(f"hushsplat: {printable(' '.join(message.split()))}", file=sys.stderr)


def results() -> Console:
    """Where tables go: as wide as the terminal, and wide enough where there is none."""
    console = Console()
    return console if console.is_terminal else Console(width=120)


class Bar:
    """A progress bar, or nothing."""

    def __init__(self, progress: Progress | None, total: int, text: str) -> None:
        self._progress = progress
        self._task = None if progress is None else progress.add_task(text, total=total)

    def advance(self, steps: int = 1) -> None:
        """Steps are done."""
        if self._progress is not None and self._task is not None:
            self._progress.advance(self._task, steps)

    def describe(self, text: str) -> None:
        """What is done now."""
        if self._progress is not None and self._task is not None:
            self._progress.update(self._task, description=text)


@contextmanager
def progress_bar(text: str, total: int, quiet: bool = False) -> Iterator[Bar]:
    """A bar on stderr while the block runs; nothing if it is not a terminal, if asked to be quiet, or for one step."""
    console = Console(stderr=True)
    if quiet or total < 2 or not console.is_terminal:
        yield Bar(None, total, text)
        return
    columns = (TextColumn("{task.description}"), BarColumn(), MofNCompleteColumn(), TimeRemainingColumn())
    with Progress(*columns, console=console, transient=True) as progress:
        yield Bar(progress, total, text)


def plan_bar(stack: ExitStack, text: str, quiet: bool = False) -> Callable[[int], Callable[[int], None]]:
    """For work whose size is known late: the function takes the size, opens a bar, and gives what advances it."""

    def on_plan(total: int) -> Callable[[int], None]:
        return stack.enter_context(progress_bar(text, total, quiet)).advance

    return on_plan


def say(text: str) -> None:
    """A line of plain text among the results, not broken; names in it may come from anywhere."""
    results().print(printable(text), highlight=False, markup=False, soft_wrap=True)


@contextmanager
def status(text: str, quiet: bool = False) -> Iterator[None]:
    """A spinner on stderr while the block runs; nothing if it is not a terminal or if asked to be quiet."""
    console = Console(stderr=True)
    if quiet or not console.is_terminal:
        yield
        return
    with console.status(text):
        yield


def bytes_text(count: float | int) -> str:
    """A number of bytes for people: 12.3 MB."""
    for unit in ("bytes", "kB", "MB"):
        if count < 1000:
            return f"{count:.0f} {unit}" if unit == "bytes" else f"{count:.3g} {unit}"
        count /= 1000
    return f"{count:.3g} GB"
