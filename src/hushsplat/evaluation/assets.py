"""What a report shows of each shot: one frame of every method, a video of all of them, intermediate results."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import numpy as np
from jaxtyping import Float32
from numpy import ndarray as Array
from PIL import Image as Pillow

from hushsplat.evaluation.draw_jobs import EXPECTED, PATHS, VIEWS, picture_path, plain, view_path
from hushsplat.evaluation.plan import Plan, Task
from hushsplat.evaluation.results import Row
from hushsplat.evaluation.score_jobs import load_bytes
from hushsplat.evaluation.shots import Method, Shot
from hushsplat.io.atomic import atomic_write
from hushsplat.io.legend import with_label
from hushsplat.io.video import video_writer

CELL_PX = (480, 320)  # of one method in a video of many: the middle of the picture; scaling it would hide noise
CRF = 24  # noise compresses badly, and a page must stay small
QUALITY = 92  # of the frames, as WebP
MOST_STILLS = 2  # still cameras that are shown, for each scene


def write_assets(plan: Plan, folder: Path, labels: set[str]) -> list[Row]:
    """Write them to the folder; returns their records, paths relative to the results."""
    assets: list[Row] = []
    stills: dict[str, int] = {}
    for shot, tasks in _by_shot(plan.tasks):
        shown = [task for task in tasks if task.method.label in labels and not task.method.seed]
        if shot.is_still:
            stills[shot.scene.name] = stills.get(shot.scene.name, 0) + 1
            if stills[shot.scene.name] > MOST_STILLS:
                continue
        place = f"{plain(shot.scene.name)}-{plain(shot.track)}"
        for task in shown:
            frame = shot.showcase if shot.showcase in task.frames else task.frames[-1]
            pixels = load_bytes(picture_path(folder, shot, task.method, frame))
            assets.append(_picture(folder, shot, "frame", task.method, str(frame), place, pixels))
        pixels = load_bytes(picture_path(folder, shot, EXPECTED, 0 if shot.is_still else shot.showcase))
        target = "photograph" if shot.photograph is not None else "reference"
        assets.append(_picture(folder, shot, "expected", Method(target, target), str(shot.showcase), place, pixels))
        for task in shown:
            for view in (*VIEWS, *PATHS):
                path = view_path(folder, shot, task.method, view)
                if path.is_file():
                    assets.append(_picture(folder, shot, "view", task.method, view, place, load_bytes(path)))
        if not shot.is_still:
            assets.append(_video(folder, shot, shown, place))
    return assets


def _by_shot(tasks: Sequence[Task]) -> list[tuple[Shot, list[Task]]]:
    found: dict[tuple[str, str], tuple[Shot, list[Task]]] = {}
    for task in tasks:
        found.setdefault((task.shot.scene.name, task.shot.track), (task.shot, []))[1].append(task)
    return list(found.values())


def _picture(folder: Path, shot: Shot, kind: str, method: Method, name: str, place: str, pixels: Array) -> Row:
    path = folder / f"{place}-{plain(method.label)}-{plain(name)}.webp"
    with atomic_write(path) as temporary:
        Pillow.fromarray(pixels).save(temporary, format="WEBP", quality=QUALITY, method=4)
    return _asset(folder, shot, kind, method.label, name, path)


def _video(folder: Path, shot: Shot, tasks: Sequence[Task], place: str) -> Row:
    """All methods in a grid, the reference last."""
    path = folder / f"{place}.mp4"
    methods = [*(task.method for task in tasks), EXPECTED]
    labels = [*(task.method.label for task in tasks), "reference"]
    columns = 2 if len(methods) <= 4 else 3
    frames = tasks[0].frames
    first = _grid(folder, shot, methods, labels, frames[0], columns)
    with video_writer(path, first.shape[1], first.shape[0], max(shot.fps, 1.0), CRF) as video:
        for frame in frames:
            video.write(_grid(folder, shot, methods, labels, frame, columns))
    return _asset(folder, shot, "video", "", ", ".join(labels), path)


def _grid(
    folder: Path, shot: Shot, methods: Sequence[Method], labels: Sequence[str], frame: int, columns: int
) -> Float32[Array, "h w 3"]:
    cells = []
    for method, label in zip(methods, labels, strict=True):
        pixels = load_bytes(picture_path(folder, shot, method, frame))
        left, top = (max(0, (have - most) // 2) for have, most in zip(pixels.shape[1::-1], CELL_PX, strict=True))
        part = pixels[top : top + CELL_PX[1], left : left + CELL_PX[0]]
        cells.append(with_label(part.astype(np.float32) / 255, label))
    empty = np.zeros_like(cells[0])
    cells += [empty] * (-len(cells) % columns)
    rows = [np.concatenate(cells[start : start + columns], axis=1) for start in range(0, len(cells), columns)]
    return np.concatenate(rows, axis=0)


def _asset(folder: Path, shot: Shot, kind: str, method: str, name: str, path: Path) -> Row:
    return {
        "kind": kind,
        "scene": shot.scene.name,
        "track": shot.track,
        "method": method,
        "name": name,
        "path": f"{folder.name}/{path.name}",
    }
