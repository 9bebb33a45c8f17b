"""The photographs of a capture: find, decode, undistort and resize them together with their cameras.

The orientation tag in EXIF is not applied, neither to sizes nor to pixels: COLMAP and the tools around it ignore it, so
the poses belong to the pixels as they are stored.
"""

from __future__ import annotations

import logging
import struct
import warnings
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from dataclasses import replace
from functools import lru_cache
from io import BytesIO
from pathlib import Path, PureWindowsPath

import numpy as np
from jaxtyping import Bool, Float32, Float64, Int32
from numpy import ndarray as Array
from PIL import Image

from hushsplat.io.strict_json import described
from hushsplat.types.camera import Camera
from hushsplat.types.capture import View
from hushsplat.types.distortion import Distortion
from hushsplat.types.errors import CameraError, CaptureError

SUFFIXES = (".jpg", ".jpeg", ".png", ".webp", ".tif", ".tiff", ".bmp")
FORMATS = ("JPEG", "PNG", "WEBP", "TIFF", "BMP")  # no format that starts other programs, as EPS does
ASPECT_TOLERANCE = 0.02  # a smaller copy is rounded to whole pixels; more than this is another picture
MAX_PIXELS = 89_000_000  # Pillow warns above; a picture of equal pixels has them in a few kilobytes
ROWS_AT_ONCE = 64  # of the remap: keeps the temporary arrays in the cache
BLOCKS_KNOWN = 32  # of so many rows: most captures have one lens, whose remap is computed once up to 2048 rows

_Intrinsics = tuple[int, int, float, float, float, float]  # width, height, fx, fy, cx, cy

logging.getLogger("PIL").addHandler(logging.NullHandler())  # else what it says of damaged files reaches the terminal

# What Pillow raises on damaged files, by its decoders.
DAMAGED = (
    OSError,
    ValueError,
    SyntaxError,
    TypeError,
    IndexError,
    KeyError,
    EOFError,
    OverflowError,
    struct.error,
    Image.DecompressionBombError,
)


def is_file(path: Path) -> bool:
    """True for a file; False also for names that the file system refuses (too long, with a zero byte)."""
    try:
        return path.is_file()
    except (OSError, ValueError):
        return False


def find_photograph(folder: Path, name: str, where: str) -> Path:
    """The file of this name in the folder, or of the same name with another picture suffix if only that exists.

    Args:
        folder: of the photographs.
        name: from a file of the capture; one that leads out of the folder is refused.
        where: names that file in errors.
    """
    named = PureWindowsPath(name)  # knows both kinds of slashes, and drives
    if not name or named.anchor or ".." in named.parts:
        raise CaptureError(
            f"{where}: the name {described(name)} leads out of the folder of photographs; say which one it is with "
            "`images`."
        )
    path = folder / name
    if is_file(path):
        return path
    for suffix in SUFFIXES:
        for spelled in (suffix, suffix.upper()):
            # "r_10" of NeRF's synthetic scenes has no suffix; "a.JPG" may have become "a.png" when it was made smaller.
            for base in {path.name, path.stem if path.suffix.lower() in SUFFIXES else path.name}:
                candidate = path.parent / (base + spelled)
                if is_file(candidate):
                    return candidate
    return path


def photograph_size(path: Path) -> tuple[int, int]:
    """Width and height as stored, from the file's header."""
    try:
        with opened(path) as image:
            size = image.size
    except DAMAGED as error:
        raise CaptureError(f"{path}: is not a readable photograph: {_one_line(error)}.") from error
    if size[0] * size[1] > MAX_PIXELS:
        raise CaptureError(f"{path}: has {size[0]}×{size[1]} px, at most {MAX_PIXELS} are read; make it smaller.")
    return size


@contextmanager
def opened(file: Path | BytesIO) -> Iterator[Image.Image]:
    """A picture of one of our formats; what Pillow warns of and logs about damaged tags is not for the terminal."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        with Image.open(file, formats=FORMATS) as image:
            yield image


def fitted_to_photographs(views: Iterable[View], *, required: bool) -> tuple[View, ...]:
    """The views with cameras of their photographs' own sizes; missing photographs are an error if required."""
    views = tuple(views)
    missing = sorted((view for view in views if not is_file(view.image_path)), key=lambda view: view.name)
    if missing and required:
        raise CaptureError(
            f"{missing[0].image_path}: the photograph of view {missing[0].name!r} is missing, and {len(missing)} of "
            f"{len(views)} are; say where they are with `images`."
        )
    absent = {id(view) for view in missing}
    return tuple(view if id(view) in absent else _fitted(view) for view in views)


def load_photograph(
    view: View,
    *,
    width: int | None = None,  # px; None keeps the photograph's own
    background: tuple[float, float, float] = (0.0, 0.0, 0.0),  # 0..1, shows through transparent pixels
) -> tuple[Float32[Array, "h w 3"], Camera]:
    """The photograph as a pinhole camera would have taken it, sRGB values 0..1, and that camera.

    Lens distortion is removed at full size, to the pinhole with the same intrinsics; then the picture is resized with
    an antialiasing Lanczos filter. Pixels that the lens did not see repeat the nearest edge; `covered_pixels` says
    which these are.
    """
    picture = _decoded(view, background)
    if view.distortion is not None:
        picture = _undistorted(picture, view.camera, view.distortion)
    if width is None:
        return picture, view.camera
    camera = view.camera.resized(width)
    return _resized(picture, camera.width, camera.height), camera


def covered_pixels(view: View, *, width: int | None = None) -> Bool[Array, "h w"]:
    """True for the pixels of `load_photograph` that the photograph really shows."""
    camera = view.camera if width is None else view.camera.resized(width)
    if view.distortion is None:
        return np.ones((camera.height, camera.width), dtype=bool)
    return _covered(_intrinsics(camera), view.distortion).copy()


def _fitted(view: View) -> View:
    width, height = photograph_size(view.image_path)
    camera = view.camera
    if (width, height) == (camera.width, camera.height):
        return view
    expected_height = camera.height * width / camera.width
    if abs(height - expected_height) > max(1.5, ASPECT_TOLERANCE * expected_height):
        raise CaptureError(
            f"{view.image_path}: the photograph is {width}×{height} px, but its camera is of another shape, "
            f"{camera.width}×{camera.height} px; was it cropped or turned? (EXIF orientation is ignored.)"
        )
    try:
        return replace(view, camera=camera.resized(width, height))
    except CameraError as error:
        raise CaptureError(f"{view.image_path}: {error}") from error


def _decoded(view: View, background: tuple[float, float, float]) -> Float32[Array, "h w 3"]:
    path, camera = view.image_path, view.camera
    try:
        # From memory: a damaged length in the file would make Pillow allocate as many bytes before it reads them.
        with opened(BytesIO(path.read_bytes())) as image:
            if image.size != (camera.width, camera.height):  # before any pixel is decoded
                raise CaptureError(
                    f"{path}: the photograph is {image.width}×{image.height} px, but {camera.width}×{camera.height} px "
                    "when the capture was loaded; load it again."
                )
            if image.mode not in ("1", "L", "LA", "P", "PA", "RGB", "RGBA", "RGBX", "CMYK", "YCbCr"):
                raise CaptureError(f"{path}: pixels of kind {image.mode} are not supported; convert to 8-bit RGB.")
            transparent = image.mode in ("LA", "PA", "RGBA") or "transparency" in image.info
            pixels = np.asarray(image.convert("RGBA" if transparent else "RGB"), dtype=np.float32) / 255
    except FileNotFoundError as error:
        raise CaptureError(f"{path}: the photograph of view {view.name!r} is missing.") from error
    except DAMAGED as error:
        raise CaptureError(f"{path}: is not a readable photograph: {_one_line(error)}.") from error
    if not transparent:
        return pixels
    alpha = pixels[..., 3:]
    return pixels[..., :3] * alpha + (1 - alpha) * np.array(background, dtype=np.float32)


def _intrinsics(camera: Camera) -> _Intrinsics:
    return camera.width, camera.height, camera.fx, camera.fy, camera.cx, camera.cy


def _seen_px(intrinsics: _Intrinsics, lens: Distortion, top: int, bottom: int) -> Float64[Array, "rows w 2"]:
    """For each pixel of these rows of the pinhole picture, where the photograph shows it (pixel centres at +0.5)."""
    width, _, fx, fy, cx, cy = intrinsics
    x = (np.arange(width) + 0.5 - cx) / fx
    y = (np.arange(top, bottom) + 0.5 - cy) / fy
    seen = lens.distort(np.stack(np.meshgrid(x, y), axis=-1))
    return seen * [fx, fy] + [cx, cy]


@lru_cache(maxsize=4)
def _covered(intrinsics: _Intrinsics, lens: Distortion) -> Bool[Array, "h w"]:
    width, height = intrinsics[:2]
    seen = _seen_px(intrinsics, lens, 0, height)
    return np.all((seen >= 0) & (seen <= [width, height]), axis=-1)


@lru_cache(maxsize=BLOCKS_KNOWN)
def _taps(
    intrinsics: _Intrinsics, lens: Distortion, top: int, bottom: int
) -> tuple[Int32[Array, "rows w"], Float32[Array, "rows w 1"], Float32[Array, "rows w 1"]]:
    """Of these rows: the upper left of the four pixels to interpolate, and how far to the right and down of it."""
    width, height = intrinsics[:2]
    place = _seen_px(intrinsics, lens, top, bottom) - 0.5  # to the indices of pixel centres
    place = np.clip(place, 0, [width - 1, height - 1])
    corner = np.minimum(place.astype(np.int64), [max(width - 2, 0), max(height - 2, 0)])
    fraction = (place - corner).astype(np.float32)
    return (corner[..., 1] * width + corner[..., 0]).astype(np.int32), fraction[..., :1], fraction[..., 1:]


def _undistorted(picture: Float32[Array, "h w 3"], camera: Camera, lens: Distortion) -> Float32[Array, "h w 3"]:
    height, width = picture.shape[:2]
    flat = picture.reshape(-1, 3)
    result = np.empty_like(picture)
    right, down = min(1, width - 1), min(1, height - 1) * width
    for top in range(0, height, ROWS_AT_ONCE):
        rows = slice(top, min(top + ROWS_AT_ONCE, height))
        index, u, v = _taps(_intrinsics(camera), lens, rows.start, rows.stop)
        upper = flat.take(index, axis=0) * (1 - u) + flat.take(index + right, axis=0) * u
        lower = flat.take(index + down, axis=0) * (1 - u) + flat.take(index + down + right, axis=0) * u
        result[rows] = upper * (1 - v) + lower * v
    return result


def _resized(picture: Float32[Array, "h w 3"], width: int, height: int) -> Float32[Array, "height width 3"]:
    """Channel by channel in float, so that nothing is rounded to 8 bits on the way; the filter's ringing is clipped."""
    if picture.shape[:2] == (height, width):
        return picture
    channels = [Image.fromarray(picture[..., c]).resize((width, height), Image.Resampling.LANCZOS) for c in range(3)]
    return np.clip(np.stack([np.asarray(channel) for channel in channels], axis=-1), 0, 1)


def _one_line(error: Exception) -> str:
    return " ".join(str(error).split()) or type(error).__name__
