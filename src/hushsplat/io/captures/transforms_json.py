"""transforms.json of NeRF, instant-ngp and nerfstudio: a pose per photograph, OpenGL camera axes."""

from __future__ import annotations

from collections import ChainMap
from pathlib import Path

import numpy as np
from jaxtyping import Float64
from numpy import ndarray as Array

from hushsplat.io.captures.photographs import find_photograph, is_file, photograph_size
from hushsplat.io.captures.poses import rigid_pose, usable_lens
from hushsplat.io.strict_json import Fields, described, read_json_object
from hushsplat.types.camera import Camera
from hushsplat.types.capture import View
from hushsplat.types.distortion import Distortion
from hushsplat.types.errors import CameraError, CaptureError

# The lenses of nerfstudio's camera_model that are a pinhole with distortion; instant-ngp says is_fisheye instead.
PERSPECTIVE_MODELS = ("OPENCV", "PINHOLE", "SIMPLE_PINHOLE", "PERSPECTIVE", "SIMPLE_RADIAL", "RADIAL")
FISHEYE_MODELS = ("OPENCV_FISHEYE", "FISHEYE")
REFUSED_KEYS = ("k5", "k6", "s1", "s2", "ftheta_p0", "latlong", "equirectangular", "orthographic")


def read_transforms(path: Path, *, images: Path | None = None) -> list[View]:
    """The views of a transforms.json, in its order; `images` replaces the folder of the photographs."""
    content = read_json_object(path, CaptureError)
    shared = Fields(str(path), content, CaptureError)
    views = []
    for index, frame in enumerate(shared.objects("frames")):
        # Fields of a frame go before those of the file.
        fields = Fields(f"{path}: frame {index}", ChainMap(frame, content), CaptureError)
        name = fields.text("file_path")
        place = (path.parent, name) if images is None else (images, Path(name).name)
        photograph = find_photograph(*place, fields.where)
        try:
            views.append(_view(fields, name, photograph))
        except CameraError as error:
            raise CaptureError(f"{fields.where}: {error}") from error
    return views


def _view(fields: Fields, name: str, photograph: Path) -> View:
    width, height = _size(fields, photograph)
    fx, fy = _focal_lengths(fields, width, height)
    cx, cy = fields.number("cx", width / 2), fields.number("cy", height / 2)
    pose = opencv_from_opengl(rigid_pose(fields.pose("transform_matrix"), fields.where))
    camera = Camera(width, height, fx, fy, cx, cy, pose)
    return View(name, photograph, camera, usable_lens(_lens(fields), camera, fields.where))


def opencv_from_opengl(pose: Float64[Array, "*n 4 4"]) -> Float64[Array, "*n 4 4"]:
    """Poses of cameras with OpenGL axes (x right, y up, z back) for cameras with ours (x right, y down, z forward)."""
    return pose * np.array([1.0, -1.0, -1.0, 1.0])  # columns are the camera's axes in the world


def _size(fields: Fields, photograph: Path) -> tuple[int, int]:
    if "w" in fields.values and "h" in fields.values:
        return fields.pixels("w"), fields.pixels("h")
    if not is_file(photograph):
        raise CaptureError(f"{fields.where}: has no w and h, and the photograph {photograph} is missing too.")
    return photograph_size(photograph)


def _focal_lengths(fields: Fields, width: int, height: int) -> tuple[float, float]:
    fx = fields.number("fl_x") if "fl_x" in fields.values else _focal_length(fields, "camera_angle_x", width)
    fy = fields.number("fl_y") if "fl_y" in fields.values else _focal_length(fields, "camera_angle_y", height)
    along_x = fy if fx is None else fx  # square pixels unless the file has both
    along_y = fx if fy is None else fy
    if along_x is None or along_y is None:
        raise CaptureError(f"{fields.where}: has neither fl_x nor camera_angle_x, so the focal length is unknown.")
    return along_x, along_y


def _focal_length(fields: Fields, key: str, side: int) -> float | None:
    if key not in fields.values:
        return None
    angle = fields.number(key)
    if not 0 < angle < np.pi:
        raise CaptureError(f"{fields.where}: {key} is {angle:g}, expected an angle between 0 and pi.")
    return float(0.5 * side / np.tan(angle / 2))


def _lens(fields: Fields) -> Distortion:
    model = fields.values.get("camera_model", "OPENCV")
    fisheye = model in FISHEYE_MODELS or fields.values.get("is_fisheye") is True
    if not fisheye and model not in PERSPECTIVE_MODELS:
        raise CaptureError(
            f"{fields.where}: camera_model {described(model)} is not supported; undistort the photographs."
        )
    for key in REFUSED_KEYS:
        if fields.values.get(key, 0) not in (0, False):
            raise CaptureError(f"{fields.where}: {key} is not supported; undistort the photographs first.")
    k1, k2, k3, k4, p1, p2 = (fields.number(key, 0.0) for key in ("k1", "k2", "k3", "k4", "p1", "p2"))
    if fisheye:
        if p1 or p2:
            raise CaptureError(f"{fields.where}: a fisheye lens with p1 or p2 is not supported; undistort it first.")
        return Distortion("fisheye", (k1, k2, k3, k4))
    if k4:  # ambiguous: a fourth power in nerfstudio, a denominator in OpenCV
        raise CaptureError(f"{fields.where}: k4 of a lens that is no fisheye is ambiguous; undistort the photographs.")
    return Distortion("perspective", (k1, k2, p1, p2, k3))
