"""Plain lists of cameras in JSON, with OpenCV axes. Ours: shared intrinsics, a world-to-camera matrix per photograph.

{"width": 800, "height": 533, "fx": 828.6, "fy": 828.6, "cx": 400.0, "cy": 266.5, "k1": 0.0005,
 "frames": [{"file": "DSCF5565.JPG", "viewmat": [[...], [...], [...], [0, 0, 0, 1]]}]}

INRIA's, the cameras.json that 3DGS writes beside a trained scene: a lens and a pose (world from camera) each.

[{"img_name": "DSCF5565", "width": 800, "height": 533, "fx": 828.6, "fy": 828.6,
  "position": [...], "rotation": [[...], [...], [...]]}]

Photographs are looked for in the folder `images` beside the file; without them the cameras are still of use. A scene
in or beside such a folder is in the frame of its cameras.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any

import numpy as np

from hushsplat.io.atomic import atomic_write
from hushsplat.io.captures.photographs import find_photograph, fitted_to_photographs
from hushsplat.io.captures.poses import rigid_pose, usable_lens
from hushsplat.io.strict_json import Fields, read_json_object
from hushsplat.types.camera import Camera
from hushsplat.types.capture import Capture, View
from hushsplat.types.distortion import Distortion
from hushsplat.types.errors import CameraError, CaptureError

INRIA_LIST = "cameras"  # what errors call the list
INRIA_CAMERAS = "cameras.json"  # its name
INRIA_DEPTH = 2  # folders between it and a scene: point_cloud/iteration_30000


def load_camera_list(path: str | Path, *, images: Path | None = None) -> Capture:
    """The cameras of the file as a capture; views whose photographs are missing keep the path where they would be."""
    path = Path(path)
    views = fitted_to_photographs(read_camera_list(path, images=images), required=False)
    return Capture(views=views, folder=path.parent)


def load_inria_cameras(path: Path, *, images: Path | None = None) -> Capture:
    """A cameras.json of INRIA's 3DGS as a capture, in the order of the file."""
    folder = path.parent / "images" if images is None else images
    views = [
        View(name, find_photograph(folder, name, where), camera, None) for where, name, camera in _inria_cameras(path)
    ]
    return Capture(views=fitted_to_photographs(views, required=False), folder=path.parent)


def cameras_beside(scene: Path) -> list[Camera]:
    """The cameras that 3DGS has listed where it wrote a scene, or beside it; none if they cannot be read."""
    folder = scene.resolve().parent
    folders = [folder, *list(folder.parents)[:INRIA_DEPTH] * (folder.parent.name == "point_cloud")]
    for path in (folder / INRIA_CAMERAS for folder in folders):
        if path.is_file():
            with suppress(CaptureError):
                return [camera for _, _, camera in _inria_cameras(path)]
    return []


def save_inria_cameras(views: Sequence[View], path: Path) -> None:
    """Write the cameras of these views as 3DGS does."""
    listed = []
    for index, view in enumerate(views):
        camera, pose = view.camera, view.camera.world_from_camera
        entry: dict[str, Any] = {"id": index, "img_name": view.name, "width": camera.width, "height": camera.height}
        entry |= {"position": pose[:3, 3].tolist(), "rotation": pose[:3, :3].tolist()}
        listed.append({**entry, "fx": camera.fx, "fy": camera.fy})
    with atomic_write(path) as temporary:
        temporary.write_text(json.dumps(listed), encoding="utf-8")


def _inria_cameras(path: Path) -> Iterator[tuple[str, str, Camera]]:
    """How errors call a camera, its name and itself."""
    content = Fields(str(path), read_json_object(path, CaptureError, INRIA_LIST), CaptureError)
    for index, entry in enumerate(content.objects(INRIA_LIST)):
        fields = Fields(f"{path}: camera {index}", entry, CaptureError)
        name = fields.text("img_name")
        rows = entry.get("rotation")
        if not isinstance(rows, list) or len(rows) != 3:
            raise fields.refusal("rotation", rows, "three rows of three numbers")
        turned = Fields(
            f"{fields.where}: rotation", {str(row): numbers for row, numbers in enumerate(rows)}, CaptureError
        )
        pose = np.eye(4)
        pose[:3, :3] = [turned.numbers(str(row), 3, 2.0) for row in range(3)]
        pose[:3, 3] = fields.numbers("position", 3, 1e9)
        width, height = fields.pixels("width"), fields.pixels("height")
        try:
            lens = (fields.number("fx"), fields.number("fy"), width / 2, height / 2)
            yield fields.where, name, Camera(width, height, *lens, rigid_pose(pose, fields.where))
        except CameraError as error:
            raise CaptureError(f"{fields.where}: {error}") from error


def read_camera_list(path: Path, *, images: Path | None = None) -> list[View]:
    """The views of the file, in its order."""
    shared = Fields(str(path), read_json_object(path, CaptureError), CaptureError)
    folder = path.parent / "images" if images is None else images
    width, height = shared.pixels("width"), shared.pixels("height")
    fx, fy, cx, cy = (shared.number(key) for key in ("fx", "fy", "cx", "cy"))
    k1, k2, p1, p2, k3 = (shared.number(key, 0.0) for key in ("k1", "k2", "p1", "p2", "k3"))
    bending = Distortion("perspective", (k1, k2, p1, p2, k3))
    views: list[View] = []
    for index, frame in enumerate(shared.objects("frames")):
        fields = Fields(f"{path}: frame {index}", frame, CaptureError)
        name = fields.text("file")
        camera_from_world = rigid_pose(fields.pose("viewmat"), fields.where)
        rotation = camera_from_world[:3, :3].T
        world_from_camera = np.eye(4)
        world_from_camera[:3, :3] = rotation
        world_from_camera[:3, 3] = -rotation @ camera_from_world[:3, 3]
        try:
            camera = Camera(width, height, fx, fy, cx, cy, world_from_camera)
        except CameraError as error:
            raise CaptureError(f"{fields.where}: {error}") from error
        # One lens for all: checking it once is enough.
        lens = views[0].distortion if views else usable_lens(bending, camera, str(path))
        views.append(View(name, find_photograph(folder, name, fields.where), camera, lens))
    return views
