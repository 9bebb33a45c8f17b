"""Atomic writes: a temporary file beside the target, renamed when it is complete."""

from __future__ import annotations

import os
import secrets
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

from hushsplat.types.errors import HushsplatError


def check_output(path: Path, force: bool) -> None:
    """Refuse an output before the work for it begins: one that is there already, or that cannot be written.

    Args:
        path: of a file to write.
        force: replace a file that is there.
    """
    if path.exists() and not path.is_dir() and not force:
        raise HushsplatError(f"{path}: is there already; say --force to replace it.")
    with suppress(_Checked), atomic_write(path) as temporary:
        temporary.touch()
        raise _Checked


class _Checked(Exception):
    """Ends the trial of a write before it takes its name."""


@contextmanager
def atomic_write(path: str | os.PathLike[str]) -> Iterator[Path]:
    """Yield a temporary path to write to, beside `path` and with its suffix; it takes the name `path` on success.

    On any exception, Ctrl-C included, the temporary file is removed and a file already at `path` stays as it was.
    The temporary file does not exist yet when it is yielded: the writer creates it, with the user's own umask.
    """
    final = Path(os.path.realpath(path))  # through a symbolic link, as a plain open() would write
    if not final.parent.is_dir():
        raise HushsplatError(f"{path}: the folder {final.parent} does not exist; create it first.")
    if final.is_dir():
        raise HushsplatError(f"{path}: this is a folder; give the name of a file to write.")
    temporary = final.parent / f".hushsplat-{secrets.token_hex(8)}{final.suffix}"
    try:
        yield temporary
        temporary.replace(final)
    except OSError as error:
        raise HushsplatError(f"{path}: cannot be written: {error.strerror or error}.") from error
    finally:
        temporary.unlink(missing_ok=True)  # already gone when it took its name
