"""Writing a streamed SOG: a scene in levels of detail, cut into leaves, in SOG folders beside a lod-meta.json."""

from __future__ import annotations

import json
import os
from pathlib import Path
from typing import Any

import numpy as np

from hushsplat.io.atomic import atomic_write
from hushsplat.io.scenes.sanitize import refuse_unwritable
from hushsplat.io.scenes.sog import META
from hushsplat.io.scenes.sog_write import morton_order, packed_sog
from hushsplat.types.errors import SceneError
from hushsplat.types.gaussians import Gaussians
from hushsplat.types.merge import joined, leaves, merged

LEAF_GAUSSIANS = 65_536  # of the finest level
FILE_GAUSSIANS = 524_288  # as splat-transform has them: one download
COARSEST_GAUSSIANS = 30_000  # no level is made below this
MOST_LEVELS = 8


def write_streamed_sog(gaussians: Gaussians, path: str | os.PathLike[str]) -> None:
    """Write a lod-meta.json and the SOG folders that it names; each level merges the one before, leaf by leaf."""
    path = Path(path)
    refuse_unwritable(path, gaussians)
    if len(gaussians) == 0:
        raise SceneError(f"{path}: an empty scene has no levels of detail; write a .ply or .sog.")
    path.parent.mkdir(parents=True, exist_ok=True)
    parts = [gaussians.take(index) for index in leaves(gaussians, LEAF_GAUSSIANS)]
    nodes: list[dict[str, Any]] = [
        {"bound": {"min": part.means.min(axis=0).tolist(), "max": part.means.max(axis=0).tolist()}, "lods": {}}
        for part in parts
    ]
    names: list[str] = []
    path.unlink(missing_ok=True)  # an old one must not describe files of the new scene
    for level in range(MOST_LEVELS):
        _write_level(path.parent, level, parts, nodes, names)
        coarser = [merged(part) for part in parts]
        if sum(map(len, coarser)) < COARSEST_GAUSSIANS:
            break
        parts = coarser
    low = np.min([leaf["bound"]["min"] for leaf in nodes], axis=0).tolist()
    high = np.max([leaf["bound"]["max"] for leaf in nodes], axis=0).tolist()
    tree = {"bound": {"min": low, "max": high}, "children": nodes}
    levels = len(nodes[0]["lods"])
    meta = {"version": 1, "lodLevels": levels, "filenames": names, "environment": None, "tree": tree}
    with atomic_write(path) as temporary:
        temporary.write_text(json.dumps(meta), encoding="utf-8")


def _write_level(
    folder: Path, level: int, parts: list[Gaussians], nodes: list[dict[str, Any]], names: list[str]
) -> None:
    """The files of one level, each of whole leaves."""
    waiting: list[Gaussians] = []
    for number, part in enumerate(parts):
        begin = sum(map(len, waiting))
        nodes[number]["lods"][str(level)] = {"file": len(names), "offset": begin, "count": len(part)}
        waiting.append(part.take(morton_order(part.means)))
        if begin + len(part) >= FILE_GAUSSIANS or number == len(parts) - 1:
            name = f"{level}_{sum(other.startswith(f'{level}_') for other in names)}"
            (folder / name).mkdir(exist_ok=True)
            for file, content in packed_sog(joined(waiting)).items():
                with atomic_write(folder / name / file) as temporary:
                    temporary.write_bytes(content)
            names.append(f"{name}/{META}")
            waiting = []
