"""Writing pictures: PNG, JPEG and WebP in 8 bits, NPY as the floats they are."""

from __future__ import annotations

import os
from pathlib import Path

import numpy as np
from jaxtyping import Float32, UInt8
from numpy import ndarray as Array
from PIL import Image as Pillow

from hushsplat.io.atomic import atomic_write
from hushsplat.types.errors import HushsplatError
from hushsplat.types.image import Image

# Pillow's options per format. Quality 95 shows no JPEG blocks in noise; WebP is lossless.
SAVE_OPTIONS: dict[str, dict[str, object]] = {
    ".png": {"format": "PNG", "compress_level": 6},
    ".jpg": {"format": "JPEG", "quality": 95, "subsampling": 0},
    ".jpeg": {"format": "JPEG", "quality": 95, "subsampling": 0},
    ".webp": {"format": "WEBP", "lossless": True},
}
PICTURE_SUFFIXES = (*SAVE_OPTIONS, ".npy")
MOST_PX = {"WEBP": 16383}  # a side; limit of the format


def save_image(picture: Image | Float32[Array, "h w 3"], path: str | os.PathLike[str]) -> None:
    """Write the colour of an image.

    Args:
        picture: an `Image`, or its colours as float32 [height, width, 3].
        path: ends in .png, .jpg, .jpeg or .webp (8 bits, clamped to 0..1) or .npy (the floats as they are).

    Raises:
        HushsplatError: for another suffix, or if the file cannot be written.
    """
    path = Path(path)
    color = picture.color if isinstance(picture, Image) else picture
    suffix = path.suffix.lower()
    if suffix not in PICTURE_SUFFIXES:
        raise HushsplatError(
            f"{path}: cannot write a picture as '{path.suffix}'; end the name in {', '.join(PICTURE_SUFFIXES)}."
        )
    options = SAVE_OPTIONS.get(suffix)
    most = MOST_PX.get(str(options["format"]) if options else "")
    if most is not None and max(color.shape[:2]) > most:
        raise HushsplatError(f"{path}: WebP ends at {most} px a side, got {color.shape[1]}×{color.shape[0]}; use .png.")
    with atomic_write(path) as temporary:
        if options is None:
            np.save(temporary, color, allow_pickle=False)
        else:
            Pillow.fromarray(to_bytes(color)).save(temporary, **options)  # type: ignore[arg-type]


def to_bytes(color: Float32[Array, "h w 3"]) -> UInt8[Array, "h w 3"]:
    """Values 0..1 as 0..255, rounded; the scene's colours are display values already, so no curve is applied."""
    return (np.clip(np.nan_to_num(color), 0, 1) * 255 + 0.5).astype(np.uint8)
