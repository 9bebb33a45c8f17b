"""Reading streamed SOG: a lod-meta.json whose tree says which Gaussians of which SOG make a level of detail."""

from __future__ import annotations

import os
from collections import defaultdict
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from heapq import heapify, heappop, heapreplace
from itertools import pairwise
from pathlib import Path

import numpy as np
from jaxtyping import Float64
from numpy import ndarray as Array

from hushsplat.io.progress import part
from hushsplat.io.scenes.sanitize import refuse_bomb
from hushsplat.io.scenes.sog import MAX_COUNT, read_sog
from hushsplat.io.scenes.sog_members import FolderMembers, bytes_on_disk, plain_name
from hushsplat.io.strict_json import Fields, parse_json_object
from hushsplat.types.camera import Camera
from hushsplat.types.errors import SceneError
from hushsplat.types.gaussians import Gaussians
from hushsplat.types.levels import NEAREST_SIZES

LOD_META_BYTES_MAX = 16 << 20  # ours: a leaf takes 2 KiB and stands for 30,000 Gaussians
UNSEEN_SHARE = 0.1  # ours: what is beside or behind the picture counts so much, until one turns
MAX_LEVELS = 64  # ours: each level halves the scene or more

Run = tuple[int, int, int]  # index of a file, first Gaussian, number of Gaussians
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
    parts: list[Gaussians] = []
    file_bytes = bytes_on_disk(path)
    for done, index in enumerate(sorted(levels[lod])):
        with part(done / len(levels[lod]), (done + 1) / len(levels[lod])):
            parts.append(_part(path, names[index], levels[lod][index]))
        _refuse_together(path, parts, file_bytes)
    if meta.values.get("environment") is not None:
        parts.append(read_sog(path.parent / plain_name(str(path), _environment(meta))))
        _refuse_together(path, parts, file_bytes)
    return _joined(path, parts)


@dataclass(frozen=True)
class Leaf:
    """A part of space with its Gaussians in several levels of detail.

    Attributes:
        low: corner of its bounds.
        high: the opposite one.
        runs: which Gaussians of which file, by level; 0 is the finest.
    """

    low: Float64[Array, " 3"]
    high: Float64[Array, " 3"]
    runs: dict[int, Run]

    def angle(self, camera: Camera) -> float:
        """How large it is seen: size over distance, and less where it is not in the picture."""
        eye, forward = camera.position, camera.world_from_camera[:3, 2]
        size = max(float(np.linalg.norm(self.high - self.low)), 1e-9)
        distance = float(np.linalg.norm(eye - np.clip(eye, self.low, self.high)))
        offset = (self.low + self.high) / 2 - eye
        along = float(offset @ forward)
        across = float(np.linalg.norm(offset - along * forward))
        slope = 0.5 * float(np.hypot(camera.width / camera.fx, camera.height / camera.fy))  # of the corners
        is_seen = along > -size / 2 and across - size / 2 < (along + size / 2) * slope
        return size / max(distance, NEAREST_SIZES * size) * (1.0 if is_seen else UNSEEN_SHARE)


class StreamedSog:
    """A streamed SOG that is read in parts: coarse everywhere at first, then finer near a camera."""

    def __init__(self, path: str | os.PathLike[str]) -> None:
        self.path = Path(path)
        meta, self._names, _ = _tree(self.path)
        self._environment = None
        if meta.values.get("environment") is not None:
            self._environment = read_sog(self.path.parent / plain_name(str(self.path), _environment(meta)))
        self.leaves = [_leaf(node, runs) for node, runs in _leaves(meta, len(self._names)) if runs]
        self._file_bytes = bytes_on_disk(self.path)
        self._read: dict[Run, Gaussians] = {}  # of the last selection

    @property
    def coarsest(self) -> list[int]:
        """The coarsest level of each leaf."""
        return [max(leaf.runs) for leaf in self.leaves]

    def near(self, camera: Camera, budget: int) -> list[int]:
        """A level for each leaf: the coarsest Gaussians in the picture are refined first, while the budget lasts."""
        levels = self.coarsest
        left = budget - sum(leaf.runs[level][2] for leaf, level in zip(self.leaves, levels, strict=True))

        def entry(index: int) -> tuple[float, int]:
            leaf = self.leaves[index]
            return -leaf.angle(camera) / np.sqrt(max(leaf.runs[levels[index]][2], 1)), index  # between two Gaussians

        queue = [entry(index) for index in range(len(self.leaves))]
        heapify(queue)
        while queue:
            index = queue[0][1]
            runs, level = self.leaves[index].runs, levels[index]
            finer = max((other for other in runs if other < level), default=None)
            cost = 0 if finer is None else runs[finer][2] - runs[level][2]
            if finer is None or cost > left:
                heappop(queue)
                continue
            levels[index] = finer
            left -= cost
            heapreplace(queue, entry(index))
        return levels

    def read(self, levels: Sequence[int]) -> Gaussians:
        """The Gaussians of these levels, one for each leaf; what the last selection had is not read again."""
        wanted = [leaf.runs[level] for leaf, level in zip(self.leaves, levels, strict=True)]
        by_file: Runs = defaultdict(list)
        for file, first, count in wanted:
            by_file[file].append((first, count))
        for file, named in by_file.items():
            _refuse_overlaps(self.path, self._names[file], named)
        sky = [] if self._environment is None else [self._environment]
        kept = {run: self._read[run] for run in wanted if run in self._read}
        missing = defaultdict(list)
        for run in wanted:
            if run not in kept:
                missing[run[0]].append(run)
        for done, (file, runs) in enumerate(missing.items()):
            with part(done / len(missing), (done + 1) / len(missing)):
                content = read_sog(self.path.parent / self._names[file])
            for run in runs:
                if run[1] + run[2] > len(content):
                    raise SceneError(f"{self.path}: a run leaves its file {self._names[file]}; the scene is damaged.")
                kept[run] = content.take(np.arange(run[1], run[1] + run[2]))
            _refuse_together(self.path, [*kept.values(), *sky], self._file_bytes)
        self._read = kept
        return _joined(self.path, [*(kept[run] for run in wanted), *sky])


def _leaf(node: Fields, runs: dict[int, Run]) -> Leaf:
    bound = node.nested("bound")
    low, high = (np.array(bound.numbers(end, 3, 1e9)) for end in ("min", "max"))
    return Leaf(low, high, runs)


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
    if len(set(names)) != len(names):
        raise SceneError(f"{path}: filenames names a file twice; the scene is damaged.")
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
    levels: dict[int, Runs] = defaultdict(lambda: defaultdict(list))
    for _, runs in _leaves(meta, file_count):
        for level, (file, first, count) in runs.items():
            levels[level][file].append((first, count))
    return levels


def _leaves(meta: Fields, file_count: int) -> Iterator[tuple[Fields, dict[int, Run]]]:
    """The leaves of the tree, each with its runs by level of detail."""
    level_count = meta.integer("lodLevels", 1, MAX_LEVELS)
    nodes = [meta.nested("tree")]
    while nodes:
        node = nodes.pop()
        if node.values.get("children", []) != []:
            # Errors call a child by the tree's name: a name of its own would grow with the depth.
            nodes += [replace(node, values=child) for child in node.objects("children")]
        if node.values.get("lods") is None:
            continue
        lods = node.nested("lods")
        runs: dict[int, Run] = {}
        for key in lods.values:
            if not key.isascii() or not key.isdigit() or len(key) > 3 or int(key) >= level_count:
                raise SceneError(f"{lods.where}: names a level {key[:20]!r}, expected 0 to {level_count - 1}.")
            run = lods.nested(key)
            first, count = run.integer("offset", 0, MAX_COUNT), run.integer("count", 0, MAX_COUNT)
            runs[int(key)] = (run.integer("file", 0, file_count - 1), first, count)
        yield node, runs


def _part(path: Path, name: str, runs: list[tuple[int, int]]) -> Gaussians:
    """The runs of one file; usually they are all of it."""
    runs = _refuse_overlaps(path, name, runs)
    part = read_sog(path.parent / name)
    if runs and sum(runs[-1]) > len(part):
        raise SceneError(f"{path}: a run leaves its file {name}; the scene is damaged.")
    if sum(count for _, count in runs) == len(part):
        return part
    return part.take(np.concatenate([np.arange(first, first + count) for first, count in runs] or [np.arange(0)]))


def _refuse_overlaps(path: Path, name: str, runs: Iterable[tuple[int, int]]) -> list[tuple[int, int]]:
    """The runs of a file in order, without empty ones; refused where two share a Gaussian."""
    ordered = sorted(run for run in runs if run[1])
    for (first, count), (following, _) in pairwise(ordered):
        if following < first + count:
            raise SceneError(f"{path}: two runs of {name} overlap at Gaussian {following}; the scene is damaged.")
    return ordered


def _refuse_together(path: Path, parts: list[Gaussians], file_bytes: int) -> None:
    """Refuse files of which none is a bomb, but all together are."""
    count, coefficients = sum(map(len, parts)), max(part.sh.shape[1] for part in parts)
    refuse_bomb(path, count, 4 * count * (11 + 3 * coefficients), file_bytes)


def _joined(path: Path, parts: list[Gaussians]) -> Gaussians:
    if not parts:
        raise SceneError(f"{path}: no leaf of its tree has Gaussians; the scene is empty.")
    if len({part.is_surfels for part in parts}) > 1:
        raise SceneError(f"{path}: some of its files hold surfels and some ellipsoids; they make no scene together.")
    coefficients = max(part.sh.shape[1] for part in parts)
    return Gaussians(
        means=np.concatenate([part.means for part in parts]),
        scales=np.concatenate([part.scales for part in parts]),
        rotations=np.concatenate([part.rotations for part in parts]),
        opacities=np.concatenate([part.opacities for part in parts]),
        sh=np.concatenate([np.pad(p.sh, ((0, 0), (0, coefficients - p.sh.shape[1]), (0, 0))) for p in parts]),
        antialiased=all(part.antialiased for part in parts),
    )
