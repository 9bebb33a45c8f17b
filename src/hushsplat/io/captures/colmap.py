"""COLMAP's sparse models: cameras, images and points3D, as .bin or .txt (colmap.github.io/format.html)."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

import numpy as np
from jaxtyping import Float32, UInt8
from numpy import ndarray as Array

from hushsplat.io.captures import colmap_binary, colmap_text
from hushsplat.io.captures.colmap_records import MODELS, UNSUPPORTED, CameraRecord, ImageRecord
from hushsplat.io.captures.photographs import find_photograph, is_file
from hushsplat.io.captures.poses import usable_lens
from hushsplat.types.camera import Camera
from hushsplat.types.capture import View
from hushsplat.types.distortion import Distortion
from hushsplat.types.errors import CameraError, CaptureError
from hushsplat.types.rotations import matrix_from_quaternion

Points = tuple[Float32[Array, "m 3"], UInt8[Array, "m 3"]]


def is_colmap(folder: Path) -> bool:
    """True for a folder with a sparse model."""
    return any(is_file(folder / f"cameras.{kind}") and is_file(folder / f"images.{kind}") for kind in ("bin", "txt"))


def read_colmap(folder: Path, *, images: Path) -> tuple[list[View], Points | None]:
    """The views of a sparse model and its points, if it has them; `images` is the folder of the photographs."""
    binary = is_file(folder / "cameras.bin") and is_file(folder / "images.bin")
    if not binary and not is_colmap(folder):
        raise CaptureError(f"{folder}: has neither cameras.bin and images.bin nor cameras.txt and images.txt.")
    kind, reader = ("bin", colmap_binary) if binary else ("txt", colmap_text)
    lenses = {
        record.camera_id: _lens(f"{folder / f'cameras.{kind}'}: camera {record.camera_id}", record)
        for record in reader.read_cameras(folder / f"cameras.{kind}")
    }
    path = folder / f"images.{kind}"
    views = [_view(f"{path}: image {record.image_id}", record, lenses, images) for record in reader.read_images(path)]
    if not views:
        raise CaptureError(f"{path}: has no images; the reconstruction failed or is another file.")
    points_path = folder / f"points3D.{kind}"
    if not is_file(points_path):
        return views, None
    return views, _points(points_path, *reader.read_points(points_path))


@dataclass(frozen=True)
class _Lens:
    camera: Camera  # at the origin
    distortion: Distortion | None


def _lens(where: str, record: CameraRecord) -> _Lens:
    if record.model in UNSUPPORTED or record.model not in MODELS:
        raise CaptureError(
            f"{where}: the model {record.model} is not supported; undistort first with `colmap image_undistorter`, or "
            f"reconstruct with one of {', '.join(MODELS)}."
        )
    model = MODELS[record.model]
    values = record.parameters
    if len(values) != model.parameters:
        raise CaptureError(f"{where}: {record.model} has {model.parameters} parameters, got {len(values)}.")
    fx, fy = (values[0], values[0]) if model.one_focal else values[:2]
    cx, cy, *bending = values[1:] if model.one_focal else values[2:]
    try:
        camera = Camera(record.width, record.height, fx, fy, cx, cy, np.eye(4))
        distortion = usable_lens(Distortion(model.kind, tuple(bending)), camera, where)
    except CameraError as error:
        raise CaptureError(f"{where}: {error}") from error
    return _Lens(camera, distortion)


def _view(where: str, record: ImageRecord, lenses: dict[int, _Lens], images: Path) -> View:
    if record.camera_id not in lenses:
        raise CaptureError(f"{where}: its camera {record.camera_id} is not among the cameras.")
    quaternion, translation = np.array(record.quaternion), np.array(record.translation)
    if not (np.isfinite(translation).all() and 1e-6 < np.abs(quaternion).max() < 1e6):
        raise CaptureError(f"{where}: the pose is not finite or its quaternion has no direction.")
    lens = lenses[record.camera_id]
    pose = np.eye(4)
    pose[:3, :3] = matrix_from_quaternion(quaternion).T  # COLMAP stores camera from world
    pose[:3, 3] = -pose[:3, :3] @ translation
    try:
        shown = lens.camera
        camera = Camera(shown.width, shown.height, shown.fx, shown.fy, shown.cx, shown.cy, pose)
    except CameraError as error:
        raise CaptureError(f"{where}: {error}") from error
    return View(record.name, find_photograph(images, record.name, where), camera, lens.distortion)


def _points(path: Path, positions: Array, colors: Array) -> Points:
    with np.errstate(over="ignore", invalid="ignore"):  # a signalling NaN
        points = positions.astype(np.float32)
    if not np.isfinite(points).all():
        raise CaptureError(f"{path}: point {np.argmin(np.isfinite(points).all(axis=1))} has a position not finite.")
    return points, colors
