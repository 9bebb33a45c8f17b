"""Load a capture of any kind: photographs with cameras from COLMAP, transforms.json, LLFF or a camera list."""

from __future__ import annotations

from pathlib import Path

from hushsplat.io.captures.camera_list import INRIA_CAMERAS, INRIA_LIST, load_camera_list, load_inria_cameras
from hushsplat.io.captures.colmap import is_colmap, read_colmap
from hushsplat.io.captures.llff import read_llff
from hushsplat.io.captures.photographs import covered_pixels, fitted_to_photographs, is_file, load_photograph
from hushsplat.io.captures.transforms_json import read_transforms
from hushsplat.io.strict_json import read_json_object
from hushsplat.types.capture import Capture
from hushsplat.types.errors import CaptureError

__all__ = ["covered_pixels", "load_capture", "load_photograph"]

COLMAP_FOLDERS = ("sparse/0", "sparse", "colmap/sparse/0")  # 3DGS, older scenes, nerfstudio
TRANSFORMS = ("transforms.json", "transforms_train.json")
CAPTURE_NAMES = ("cameras.bin", "cameras.txt", "images.bin", "images.txt", "points3D.bin", "points3D.txt")
CAPTURE_PARTS = ("sparse", "colmap", *TRANSFORMS, INRIA_CAMERAS, "poses_bounds.npy", *CAPTURE_NAMES)


def capture_parts(folder: Path) -> set[str]:
    """What makes a folder look like photographs with cameras, by the names in it; nothing if it does not."""
    return {name for name in CAPTURE_PARTS if (folder / name).exists()}


def load_capture(
    path: str | Path,
    *,
    images: str | None = None,
    require_photographs: bool = True,
) -> Capture:
    """Load photographs with known cameras.

    Args:
        path: of a folder, which is searched for a COLMAP model, then transforms.json, then poses_bounds.npy; or of
            one of these files.
        images: folder of the photographs in it, such as "images_4"; None takes the usual one. Cameras get the size of
            the photographs, so a folder of smaller copies gives smaller cameras.
        require_photographs: False loads the cameras even if photographs are missing.

    Returns:
        The capture. Lens distortion is removed when a photograph is loaded, not here.

    Raises:
        CaptureError: in one line that names the file and what is wrong with it.
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
    if is_file(folder / INRIA_CAMERAS):
        return _load_json(folder / INRIA_CAMERAS, images, required)
    if is_file(folder / "poses_bounds.npy"):
        return _load_llff(folder / "poses_bounds.npy", images, required)
    raise CaptureError(
        f"{folder}: is no capture; expected sparse/0 of COLMAP, transforms.json, transforms_train.json, "
        "cameras.json or poses_bounds.npy in it."
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
    content = read_json_object(path, CaptureError, INRIA_LIST)
    if INRIA_LIST in content and "frames" not in content:
        return load_inria_cameras(path, images=folder)
    frames = content.get("frames")
    first = frames[0] if isinstance(frames, list) and frames and isinstance(frames[0], dict) else {}
    if "viewmat" in first:
        return load_camera_list(path, images=folder)
    if "transform_matrix" not in first:
        raise CaptureError(
            f"{path}: is no list of cameras; expected `frames` with a transform_matrix (NeRF) or a viewmat each, or "
            "the list of cameras that 3DGS writes."
        )
    views = read_transforms(path, images=folder)
    return Capture(views=fitted_to_photographs(views, required=required), folder=path.parent)


def _images_folder(root: Path, images: str | None, required: bool) -> Path:
    folder = root / ("images" if images is None else images)
    if required and not folder.is_dir():
        raise CaptureError(f"{folder}: there is no such folder of photographs; say which one it is with `images`.")
    return folder
