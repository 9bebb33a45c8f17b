"""The files of a SOG scene, loose in a folder or bundled in a zip: read by name, never more bytes than allowed."""

from __future__ import annotations

import struct
import zipfile
import zlib
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path, PurePosixPath

from hushsplat.types.errors import SceneError

LONGEST_NAME = 200  # ours: characters
BAD_ZIP = (zipfile.BadZipFile, ValueError, NotImplementedError, struct.error)  # all that zipfile says of one


def plain_name(where: str, name: str) -> str:
    """The relative path `name` in its shortest form, refused when it could lead out of its folder."""
    parts = PurePosixPath(name)
    is_inside = parts.parts and not parts.is_absolute() and ".." not in parts.parts
    # Backslashes and colons lead out on Windows; what cannot be printed has no place in an error of one line.
    if not is_inside or "\\" in name or ":" in name or not name.isprintable() or len(name) > LONGEST_NAME:
        raise SceneError(f"{where}: the file name {name[:60]!r} is no path inside the scene's folder; it is refused.")
    return str(parts)


class FolderMembers:
    """Loose files."""

    def __init__(self, path: Path) -> None:
        self.path = path

    def where(self, name: str) -> str:
        """What errors call the file."""
        return str(self.path / name)

    def size(self, name: str) -> int:
        """How many bytes the file has."""
        file = self.path / name
        if not file.is_file():
            raise SceneError(f"{file}: no such file; a SOG scene needs its meta.json and all files that this names.")
        return file.stat().st_size

    def read(self, name: str, limit: int) -> bytes:
        """The whole file, refused when it has more than `limit` bytes."""
        size = self.size(name)
        if size > limit:
            raise _too_large(self.where(name), size, limit)
        try:
            with (self.path / name).open("rb") as file:
                return file.read(size)
        except OSError as error:
            raise SceneError(f"{self.where(name)}: cannot be read: {error.strerror or error}.") from error


class ZipMembers:
    """Files of a zip archive, stored or deflated."""

    def __init__(self, path: Path, archive: zipfile.ZipFile, archive_bytes: int) -> None:
        self.path = path
        self._archive = archive
        self._archive_bytes = archive_bytes

    def where(self, name: str) -> str:
        """What errors call the file."""
        return f"{self.path}: {name}"

    def size(self, name: str) -> int:
        """How many bytes the file takes in the archive: never more than the archive has."""
        return min(self._info(name).compress_size, self._archive_bytes)

    def read(self, name: str, limit: int) -> bytes:
        """The whole file; neither what the archive says of its size nor what comes out may exceed `limit`."""
        info = self._info(name)
        if info.file_size > limit:
            raise _too_large(self.where(name), info.file_size, limit)
        if info.compress_type not in (zipfile.ZIP_STORED, zipfile.ZIP_DEFLATED) or info.flag_bits & 1:
            raise SceneError(f"{self.where(name)} is encrypted or compressed in an unknown way; zip it anew.")
        try:
            with self._archive.open(info) as file:
                content = file.read(limit + 1)
        except (*BAD_ZIP, OSError, EOFError, zlib.error) as error:
            raise SceneError(f"{self.where(name)} is damaged: {error}.") from error
        if len(content) > limit:
            raise _too_large(self.where(name), len(content), limit)
        return content

    def _info(self, name: str) -> zipfile.ZipInfo:
        try:
            return self._archive.getinfo(name)
        except KeyError:
            raise SceneError(f"{self.path}: has no {name}; the bundle is incomplete.") from None


Members = FolderMembers | ZipMembers


@contextmanager
def open_members(path: Path) -> Iterator[Members]:
    """The files beside a meta.json, in a folder, or in a `.sog` bundle."""
    if path.is_dir():
        yield FolderMembers(path)
    elif path.suffix.lower() == ".json":
        yield FolderMembers(path.parent)
    else:
        try:
            archive, size = zipfile.ZipFile(path), path.stat().st_size
        except OSError as error:
            raise SceneError(f"{path}: cannot be read: {error.strerror or error}.") from error
        except BAD_ZIP as error:
            raise SceneError(f"{path}: is not a SOG bundle (a zip file): {error}.") from error
        with archive:
            yield ZipMembers(path, archive, size)


def bytes_on_disk(path: Path) -> int:
    """The size of a file, or of all files of a scene that is a folder or lies around a JSON."""
    folder = path.parent if path.suffix.lower() == ".json" else path
    if folder.is_dir():
        return sum(file.stat().st_size for file in folder.rglob("*") if file.is_file())
    return path.stat().st_size


def _too_large(where: str, size: int, limit: int) -> SceneError:
    return SceneError(f"{where} has {size} bytes, expected at most {limit}; the file is damaged.")
