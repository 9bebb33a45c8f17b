"""One way into captures of any kind: photographs with cameras from COLMAP, transforms.json, LLFF or a camera list."""

from __future__ import annotations

from pathlib import Path

from hushsplat.io.captures.camera_list import load_camera_list
from hushsplat.io.captures.colmap import is_colmap, read_colmap
from hushsplat.io.captures.llff import read_llff
from hushsplat.io.captures.photographs import covered_pixels, fitted_to_photographs, is_file, load_photograph
from hushsplat.io.captures.poses import read_json_object
from hushsplat.io.captures.transforms_json import read_transforms
from hushsplat.types.capture import Capture
from hushsplat.types.errors import CaptureError

__all__ = ["covered_pixels", "load_capture", "load_photograph"]

COLMAP_FOLDERS = ("sparse/0", "sparse", "colmap/sparse/0")  # 3DGS, older scenes, nerfstudio
TRANSFORMS = ("transforms.json", "transforms_train.json")


def load_capture(
    path: str | Path,
    *,
    images: str | None = None,
    require_photographs: bool = True,
) -> Capture:
    """The capture in a folder (or of a file in it), whatever its kind.

    A folder is looked through for a COLMAP model first, then for transforms.json, then for poses_bounds.npy. Cameras
    have the sizes of the photographs: a folder of smaller copies gives smaller cameras.

    Args:
        path: the folder, or a file in it.
        images: folder of the photographs, such as "images_4"; None takes the usual one.
        require_photographs: False where the cameras alone are of use.
    """
    path = Path(path)
    if path.is_dir():
        return _load_folder(path, images, require_photographs)
    if not is_file(path):
        raise CaptureError(f"{path}: does not exist; a capture is a folder or a file of cameras.")
    if path.stem in ("cameras", "images", "points3D") and path.suffix in (".bin", ".txt"):
        return _load_colmap(path.parent, _root_of_model(path.parent), images, require_photographs)
    if path.suffix == ".npy":
        return _load_llff(path, images, require_photographs)
    if path.suffix == ".json":
        return _load_json(path, images, require_photographs)
    raise CaptureError(
        f"{path}: is no capture; expected a folder, cameras.bin, cameras.txt, transforms.json, poses_bounds.npy or a "
        "JSON list of cameras."
    )


def _load_folder(folder: Path, images: str | None, required: bool) -> Capture:
    for place in COLMAP_FOLDERS:
        if is_colmap(folder / place):
            return _load_colmap(folder / place, folder, images, required)
    for model in (folder, folder / "0"):  # given the model itself, or `sparse`
        if is_colmap(model):
            return _load_colmap(model, _root_of_model(model), images, required)
    for name in TRANSFORMS:
        if is_file(folder / name):
            return _load_json(folder / name, images, required)
    if is_file(folder / "poses_bounds.npy"):
        return _load_llff(folder / "poses_bounds.npy", images, required)
    raise CaptureError(
        f"{folder}: is no capture; expected sparse/0 of COLMAP, transforms.json, transforms_train.json or "
        "poses_bounds.npy in it."
    )


def _root_of_model(model: Path) -> Path:
    """The folder that has the photographs of a model: two above it as a rule."""
    candidates = [model, *model.resolve().parents[:2]]
    return next((folder for folder in candidates if (folder / "images").is_dir()), model)


def _load_colmap(model: Path, root: Path, images: str | None, required: bool) -> Capture:
    views, points = read_colmap(model, images=_images_folder(root, images, required))
    positions, colors = (None, None) if points is None else points
    fitted = fitted_to_photographs(views, required=required)
    return Capture(views=fitted, folder=root, points=positions, point_colors=colors)


def _load_llff(path: Path, images: str | None, required: bool) -> Capture:
    views = read_llff(path, images=_images_folder(path.parent, images, required), required=required)
    return Capture(views=fitted_to_photographs(views, required=required), folder=path.parent)


def _load_json(path: Path, images: str | None, required: bool) -> Capture:
    folder = None if images is None else _images_folder(path.parent, images, required)
    frames = read_json_object(path, CaptureError).get("frames")
    first = frames[0] if isinstance(frames, list) and frames and isinstance(frames[0], dict) else {}
    if "viewmat" in first:
        return load_camera_list(path, images=folder)
    if "transform_matrix" not in first:
        raise CaptureError(
            f"{path}: is no list of cameras; expected `frames` with a transform_matrix (NeRF) or a viewmat each."
        )
    views = read_transforms(path, images=folder)
    return Capture(views=fitted_to_photographs(views, required=required), folder=path.parent)


def _images_folder(root: Path, images: str | None, required: bool) -> Path:
    folder = root / ("images" if images is None else images)
    if required and not folder.is_dir():
        raise CaptureError(f"{folder}: there is no such folder of photographs; say which one it is with `images`.")
    return folder
