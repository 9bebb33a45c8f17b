"""Scenes of any format: `load` goes by the content of the file, `save` by its suffix."""

from __future__ import annotations

import os
import re
from collections.abc import Callable
from functools import partial
from pathlib import Path

from hushsplat.io.captures.capture import capture_parts
from hushsplat.io.scenes.dot_splat import read_splat, write_splat
from hushsplat.io.scenes.ply import read_ply, write_ply
from hushsplat.io.scenes.sog import read_sog
from hushsplat.io.scenes.sog_levels import write_streamed_sog
from hushsplat.io.scenes.sog_stream import read_streamed_sog
from hushsplat.io.scenes.sog_write import write_sog
from hushsplat.io.scenes.spz import WRITTEN_VERSIONS, read_spz, write_spz
from hushsplat.types.errors import SceneError
from hushsplat.types.gaussians import Gaussians

READERS: dict[str, Callable[[Path], Gaussians]] = {
    ".ply": read_ply,
    ".splat": read_splat,
    ".spz": read_spz,
    ".sog": read_sog,
    ".json": read_sog,
}
WRITERS: dict[str, Callable[[Gaussians, Path], None]] = {
    ".ply": write_ply,
    ".splat": write_splat,
    ".spz": write_spz,
    ".sog": write_sog,
}
MAGIC = {b"ply\n": ".ply", b"ply\r": ".ply", b"\x1f\x8b\x08": ".spz", b"NGSP": ".spz", b"PK\x03\x04": ".sog"}
STREAMED = "lod-meta.json"
MOST_NAMED = 5  # scenes of a folder in a message
TRAINED = "point_cloud/iteration_*/point_cloud.ply"  # where 3DGS writes scenes


def load(path: str | os.PathLike[str], *, lod: int | None = None) -> Gaussians:
    """Read a scene of any known format: PLY (3DGS, 2DGS, compressed), .splat, .spz, SOG (bundled, folder, streamed).

    Args:
        path: of a file, or of a folder that holds a SOG. The first bytes decide the format before the suffix does.
        lod: level of detail of a streamed SOG, 0 (the finest) if not given; other formats have none.

    Returns:
        The Gaussians, checked: all values are finite, scales > 0, opacities in 0..1, quaternions of unit length.

    Raises:
        SceneError: in one line that names the file and what is wrong with it.
    """
    path = Path(path)
    try:
        file = scene_file(path)
        if file.name.endswith(STREAMED):
            return read_streamed_sog(file, 0 if lod is None else lod)
        reader = READERS.get(_format(file))
        if lod is not None and reader is not None:
            raise SceneError(f"{path}: has no levels of detail (only a streamed SOG has); leave out lod={lod}.")
        if reader is not None:
            return reader(file)
    except FileNotFoundError as error:
        raise SceneError(f"{error.filename or path}: no such file; check the path.") from error
    except OSError as error:
        raise SceneError(f"{path}: cannot be read: {error.strerror or error}.") from error
    raise SceneError(
        f"{path}: not a known scene; expected a .ply, .splat, .spz or .sog file, "
        f"or a folder with meta.json or {STREAMED}."
    )


def save(gaussians: Gaussians, path: str | os.PathLike[str], *, spz_version: int | None = None) -> None:
    """Write a scene in the format of its suffix.

    Args:
        gaussians: the scene.
        path: ends in .ply (keeps everything), .splat, .spz or .sog (small and lossy, without payload); a
            lod-meta.json makes a streamed SOG with levels of detail in its folder.
        spz_version: 4 (if not given), or 3 for older readers; only for .spz.

    Raises:
        SceneError: for an unknown suffix, NaN or infinities, or values that the format cannot hold.
    """
    try:
        writer_of(path, spz_version)(gaussians, Path(path))
    except OSError as error:
        raise SceneError(f"{path}: cannot be written: {error.strerror or error}.") from error


def writer_of(path: str | os.PathLike[str], spz_version: int | None = None) -> Callable[[Gaussians, Path], None]:
    """What writes a scene to this path; a SceneError if nothing does."""
    path = Path(path)
    if path.name.lower().endswith(".compressed.ply"):
        raise SceneError(f"{path}: compressed PLY is only read; write a .ply, or a .sog or .spz for a small file.")
    if spz_version is not None:
        if path.suffix.lower() != ".spz":
            raise SceneError(f"{path}: is no .spz and has no version of it; leave it out.")
        if spz_version not in WRITTEN_VERSIONS:
            raise SceneError(f"{path}: SPZ version {spz_version} is not written; choose 4, or 3 for older readers.")
        return partial(write_spz, version=spz_version)
    if path.name == STREAMED:
        return write_streamed_sog
    writer = WRITERS.get(path.suffix.lower())
    if writer is None:
        raise SceneError(
            f"{path}: cannot write the format '{path.suffix}'; give a name that ends in {', '.join(WRITERS)}, "
            f"or {STREAMED}."
        )
    return writer


def _format(file: Path) -> str:
    """The suffix of the format that the first bytes show, else the file's own suffix."""
    with file.open("rb") as opened:
        start = opened.read(4)
    return next((suffix for magic, suffix in MAGIC.items() if start.startswith(magic)), file.suffix.lower())


def scene_file(path: Path) -> Path:
    """The file to begin to read a scene at: of a folder the one that describes its files, or the only scene in it.

    What 3DGS writes is one scene, its last iteration.
    """
    if not path.is_dir():
        return path
    folder = path
    for name in (STREAMED, "meta.json"):
        if (folder / name).is_file():
            return folder / name
    scenes = scenes_in(folder)
    trained = [path for path in scenes if path.match(TRAINED)]
    if len(scenes) == 1 or (trained and len(trained) == len(scenes)):
        return scene_file(scenes[0])
    found = [str(path.relative_to(folder)) for path in scenes]
    if found:
        more = f" and {len(found) - MOST_NAMED} more" if len(found) > MOST_NAMED else ""
        raise SceneError(f"{folder}: is a folder; give one of the scenes in it: {', '.join(found[:MOST_NAMED])}{more}.")
    if capture_parts(folder):
        raise SceneError(
            f"{folder}: is a capture, photographs with cameras and no scene; `hushsplat train` makes a scene of it."
        )
    raise SceneError(f"{folder}: this folder has no scene; give a .ply, .splat, .spz or .sog file or a SOG folder.")


def scenes_in(folder: Path) -> list[Path]:
    """The scenes in a folder, in those in it, and where 3DGS writes them (the last iteration first)."""
    found = [path for depth in ("*", "*/*") for path in folder.glob(depth) if path.suffix.lower() in WRITERS]
    found += [path.parent for depth in ("*", "*/*") for path in folder.glob(f"{depth}/*meta.json") if _is_sog(path)]
    found += folder.glob(TRAINED)

    def last_first(path: Path) -> tuple[int, int, str]:
        iteration = re.search(r"iteration_(\d+)", str(path))
        return len(path.relative_to(folder).parts), -int(iteration[1]) if iteration else 0, str(path)

    return sorted({path for path in found if path.is_dir() or path.is_file()}, key=last_first)


def _is_sog(path: Path) -> bool:
    return path.name in (STREAMED, "meta.json")
