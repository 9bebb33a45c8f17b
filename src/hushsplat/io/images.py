"""Writing pictures: PNG, JPEG and WebP in 8 bits, NPY as the floats they are."""

from __future__ import annotations

import os
from pathlib import Path

import numpy as np
from PIL import Image as Pillow

from hushsplat.io.atomic import atomic_write
from hushsplat.types.errors import HushsplatError
from hushsplat.types.image import Image, Pixels, to_bytes

# Pillow's options per format. Quality 95 shows no JPEG blocks in noise; WebP is lossless.
SAVE_OPTIONS: dict[str, dict[str, object]] = {
    ".png": {"format": "PNG", "compress_level": 6},
    ".jpg": {"format": "JPEG", "quality": 95, "subsampling": 0},
    ".jpeg": {"format": "JPEG", "quality": 95, "subsampling": 0},
    ".webp": {"format": "WEBP", "lossless": True},
}
PICTURE_SUFFIXES = (*SAVE_OPTIONS, ".npy")
MOST_PX = {"WEBP": 16383}  # a side; limit of the format


def save_image(picture: Image | Pixels, path: str | os.PathLike[str]) -> None:
    """Write the colour of an image.

    Args:
        picture: an `Image`, or its colours [height, width, 3] as float32, or as bytes.
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
