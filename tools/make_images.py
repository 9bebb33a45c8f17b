"""Draw the pictures of README.md and the docs, from the scene made by code.

python tools/make_images.py
"""

from __future__ import annotations

from pathlib import Path

import numpy as np
from PIL import Image as Pillow

import hushsplat
from hushsplat.types.image import to_bytes

IMAGES = Path(__file__).resolve().parent.parent / "docs" / "images"
GAUSSIANS = 500_000
GAP_PX = 4
CROP = (slice(150, 470), slice(430, 750))  # rows and columns of the full picture that the strip shows 1:1


def main() -> None:
    """Write the whole view, and the same part of it by the three methods side by side."""
    IMAGES.mkdir(parents=True, exist_ok=True)
    scene, camera = hushsplat.room_and_garden(GAUSSIANS), hushsplat.home_camera()
    drawn = [to_bytes(hushsplat.render(scene, camera, method).color) for method in ("raw", "reference", "exact")]
    gap = np.full((CROP[0].stop - CROP[0].start, GAP_PX, 3), 255, dtype=np.uint8)
    strip = np.concatenate([drawn[0][CROP], gap, drawn[1][CROP], gap, drawn[2][CROP]], axis=1)
    Pillow.fromarray(strip).save(IMAGES / "methods.jpg", quality=88)
    Pillow.fromarray(drawn[1]).save(IMAGES / "room.jpg", quality=88)


if __name__ == "__main__":
    main()
