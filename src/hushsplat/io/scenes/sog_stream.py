"""Reading streamed SOG: a lod-meta.json whose tree says which Gaussians of which SOG make a level of detail."""

from __future__ import annotations

import os
from collections import defaultdict
from dataclasses import replace
from pathlib import Path

import numpy as np

from hushsplat.io.scenes.sanitize import refuse_bomb
from hushsplat.io.scenes.sog import MAX_COUNT, read_sog
from hushsplat.io.scenes.sog_members import FolderMembers, bytes_on_disk, plain_name
from hushsplat.io.strict_json import Fields, parse_json_object
from hushsplat.types.errors import SceneError
from hushsplat.types.gaussians import Gaussians

LOD_META_BYTES_MAX = 16 << 20  # ours: a leaf takes 2 KiB and stands for 30,000 Gaussians
MAX_LEVELS = 64  # ours: each level halves the scene or more

Runs = dict[int, list[tuple[int, int]]]  # by the index of a file: first Gaussian and number of Gaussians


def read_streamed_sog(path: str | os.PathLike[str], lod: int) -> Gaussians:
    """Read one level of detail of a streamed SOG, 0 being the finest, and its environment (the far sky) if it has one.

    `path` is the lod-meta.json; the Gaussians come in the order of its files.
    """
    path = Path(path)
    meta, names, levels = _tree(path)
    if lod not in levels:
        known = ", ".join(f"{level} ({count} Gaussians)" for level, count in _counts(levels).items())
        raise SceneError(f"{path}: has no level of detail {lod}; choose one of {known or 'none: the scene is empty'}.")
    files = [names[index] for index in sorted(levels[lod])]
    if len(set(files)) != len(files):
        raise SceneError(f"{path}: filenames names a file twice; the scene is damaged.")
    parts: list[Gaussians] = []
    file_bytes = bytes_on_disk(path)
    for index in sorted(levels[lod]):
        parts.append(_part(path, names[index], levels[lod][index]))
        _refuse_together(path, parts, file_bytes)
    if meta.values.get("environment") is not None:
        parts.append(read_sog(path.parent / plain_name(str(path), _environment(meta))))
    return _joined(path, parts)


def levels_of_detail(path: str | os.PathLike[str]) -> dict[int, int]:
    """How many Gaussians each level of detail of a lod-meta.json has, without its environment."""
    _, _, levels = _tree(Path(path))
    return _counts(levels)


def _tree(path: Path) -> tuple[Fields, list[str], dict[int, Runs]]:
    """The lod-meta.json, the names of its files, and its levels of detail."""
    content = FolderMembers(path.parent).read(path.name, LOD_META_BYTES_MAX)
    meta = Fields(str(path), parse_json_object(str(path), content, SceneError), SceneError)
    if meta.values.get("version", 1) != 1:
        raise meta.refusal("version", meta.values["version"], "1 or none")
    names = [plain_name(str(path), name) for name in meta.names("filenames")]
    return meta, names, _levels(meta, len(names))


def _counts(levels: dict[int, Runs]) -> dict[int, int]:
    return {level: sum(count for runs in levels[level].values() for _, count in runs) for level in sorted(levels)}


def _environment(meta: Fields) -> str:
    name = meta.values["environment"]
    if not isinstance(name, str):
        raise meta.refusal("environment", name, "the name of a file")
    return name


def _levels(meta: Fields, file_count: int) -> dict[int, Runs]:
    """For each level of detail, the runs of Gaussians that the leaves of the tree name."""
    level_count = meta.integer("lodLevels", 1, MAX_LEVELS)
    levels: dict[int, Runs] = defaultdict(lambda: defaultdict(list))
    nodes = [meta.nested("tree")]
    while nodes:
        node = nodes.pop()
        if node.values.get("children", []) != []:
            # Errors call a child by the tree's name: a name of its own would grow with the depth.
            nodes += [replace(node, values=child) for child in node.objects("children")]
        if node.values.get("lods") is None:
            continue
        lods = node.nested("lods")
        for key in lods.values:
            if not key.isascii() or not key.isdigit() or len(key) > 3 or int(key) >= level_count:
                raise SceneError(f"{lods.where}: names a level {key[:20]!r}, expected 0 to {level_count - 1}.")
            run = lods.nested(key)
            first, count = run.integer("offset", 0, MAX_COUNT), run.integer("count", 0, MAX_COUNT)
            levels[int(key)][run.integer("file", 0, file_count - 1)].append((first, count))
    return levels


def _part(path: Path, name: str, runs: list[tuple[int, int]]) -> Gaussians:
    """The runs of one file; usually they are all of it."""
    part = read_sog(path.parent / name)
    runs = sorted(run for run in runs if run[1])
    end = 0
    for first, count in runs:
        if first < end or first + count > len(part):
            raise SceneError(
                f"{path}: the run of {count} Gaussians from {first} of {name} overlaps another one or leaves the file "
                f"of {len(part)}; the scene is damaged."
            )
        end = first + count
    if sum(count for _, count in runs) == len(part):
        return part
    return part.take(np.concatenate([np.arange(first, first + count) for first, count in runs] or [np.arange(0)]))


def _refuse_together(path: Path, parts: list[Gaussians], file_bytes: int) -> None:
    """Refuse files of which none is a bomb, but all together are."""
    count, coefficients = sum(map(len, parts)), max(part.sh.shape[1] for part in parts)
    refuse_bomb(path, count, 4 * count * (11 + 3 * coefficients), file_bytes)


def _joined(path: Path, parts: list[Gaussians]) -> Gaussians:
    if len({part.is_surfels for part in parts}) > 1:
        raise SceneError(f"{path}: some of its files hold surfels and some ellipsoids; they make no scene together.")
    coefficients = max(part.sh.shape[1] for part in parts)
    return Gaussians(
        means=np.concatenate([part.means for part in parts]),
        scales=np.concatenate([part.scales for part in parts]),
        rotations=np.concatenate([part.rotations for part in parts]),
        opacities=np.concatenate([part.opacities for part in parts]),
        sh=np.concatenate([np.pad(p.sh, ((0, 0), (0, coefficients - p.sh.shape[1]), (0, 0))) for p in parts]),
    )
