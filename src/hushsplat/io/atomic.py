"""Atomic writes: a temporary file beside the target, synced to disk and renamed when it is complete.

A writer that is killed leaves its temporary file. The next one to write into the folder removes it: the name of a
temporary file says which process made it.
"""

from __future__ import annotations

import os
import re
import secrets
import shutil
import socket
import sys
import time
import zlib
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

from hushsplat.types.errors import HushsplatError

OLD_S = 86400.0  # a temporary file of another machine, or of a process whose number lives on, is left for so long
# Of atomic_write, of a viewer's folder; and nothing else, above all not hushsplat-demo.
_NAMED = re.compile(r"(?:\.hushsplat|hushsplat-view)-(?P<host>[0-9a-f]{8})-(?P<process>\d+)-[0-9a-z_]+(?:\.\w+)?")
_swept: set[Path] = set()  # folders, once for each process: some get thousands of files


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


def make_folder(path: Path) -> None:
    """Make a folder for outputs, with those above it, unless it is there."""
    if path.exists() and not path.is_dir():
        raise HushsplatError(f"{path}: is a file; give the name of a folder.")
    try:
        path.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise HushsplatError(f"{path}: the folder cannot be made: {error.strerror or error}.") from error


@contextmanager
def new_folder(path: Path) -> Iterator[None]:
    """A folder for what the block writes; those that were made for it and are empty afterwards are removed."""
    made = [folder for folder in (path, *path.parents) if not folder.exists()]
    make_folder(path)
    try:
        yield
    finally:
        with suppress(OSError):  # the first that is not empty
            for folder in made:
                folder.rmdir()


class _Checked(Exception):
    """Ends the trial of a write before it takes its name."""


@contextmanager
def atomic_write(path: str | os.PathLike[str]) -> Iterator[Path]:
    """Yield a temporary path to write to, beside `path` and with its suffix; it takes the name `path` on success.

    On any exception, Ctrl-C included, the temporary file is removed and a file already at `path` stays as it was.
    The temporary file does not exist yet when it is yielded: the writer creates it, with the user's own umask.
    File and folder are synced: after a power cut, `path` is the old file or the new one.
    """
    final = Path(os.path.realpath(path))  # through a symbolic link, as a plain open() would write
    if not final.parent.is_dir():
        raise HushsplatError(f"{path}: the folder {final.parent} does not exist; create it first.")
    if final.is_dir():
        raise HushsplatError(f"{path}: this is a folder; give the name of a file to write.")
    if final.parent not in _swept:
        _swept.add(final.parent)
        sweep(final.parent)
    temporary = final.parent / f".hushsplat-{own_tag()}-{secrets.token_hex(8)}{final.suffix}"
    try:
        yield temporary
        _sync(temporary)
        temporary.replace(final)
        _sync(final.parent)
    except OSError as error:
        raise HushsplatError(f"{path}: cannot be written: {error.strerror or error}.") from error
    finally:
        with suppress(OSError):  # already gone when it took its name; on a read-only disk it never was there
            temporary.unlink()


def own_tag() -> str:
    """Names this machine and this process in the name of a temporary file."""
    return f"{zlib.crc32(socket.gethostname().encode()):08x}-{os.getpid()}"


def sweep(folder: Path) -> None:
    """Remove temporary files and folders that processes of ours have left in it because they were killed."""
    host = own_tag().partition("-")[0]
    with suppress(OSError), os.scandir(folder) as entries:
        for entry in entries:
            found = _NAMED.fullmatch(entry.name)
            if found is None or not _is_own(entry):
                continue
            age_s = time.time() - entry.stat(follow_symlinks=False).st_mtime
            if age_s > OLD_S or (found["host"] == host and not _is_alive(int(found["process"]))):
                if entry.is_dir(follow_symlinks=False):
                    shutil.rmtree(entry.path, ignore_errors=True)
                else:
                    Path(entry.path).unlink(missing_ok=True)


def _is_own(entry: os.DirEntry[str]) -> bool:
    """Of this user: a folder for temporary files is everybody's."""
    return sys.platform == "win32" or entry.stat(follow_symlinks=False).st_uid == os.getuid()


def _is_alive(process: int) -> bool:
    if sys.platform == "win32":
        return True  # asking for a process there would end it; its files are left until they are old
    try:
        os.kill(process, 0)
    except ProcessLookupError:
        return False
    except (PermissionError, OverflowError):
        return True
    return True


def _sync(path: Path) -> None:
    """Wait until a file, or the names in a folder, are on the disk."""
    if sys.platform == "win32" and path.is_dir():
        return  # folders cannot be opened there
    descriptor = os.open(path, os.O_RDONLY if sys.platform != "win32" else os.O_RDWR)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)
