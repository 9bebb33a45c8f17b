"""What is behind a scene on the page: a colour, a gradient from the zenith to the nadir, or a picture all around."""

from __future__ import annotations

import io
import math
from pathlib import Path

import numpy as np
from jaxtyping import Float32, Float64
from numpy import ndarray as Array
from PIL import Image as Pillow

from hushsplat.io.captures.photographs import DAMAGED, MAX_PIXELS, opened
from hushsplat.types.camera import Camera
from hushsplat.types.errors import ViewError
from hushsplat.viewer.protocol import ENVIRONMENT, Draw

ENVIRONMENT_PX = (1024, 512)  # a picture all around is reduced to this
OPEN_ALPHA = 0.998  # pixels more opaque than this show nothing of what is behind


def read_environment(path: Path, name: str) -> Float32[Array, "h w 3"]:
    """A picture of all directions: longitude across, latitude down (equirectangular, twice as wide as high)."""
    try:
        with opened(io.BytesIO(path.read_bytes())) as picture:
            width, height = picture.size
            if not 1.9 * height < width < 2.1 * height:
                raise ViewError(
                    f"{name}: has {width}×{height} px; a picture all around is twice as wide as high (equirectangular)."
                )
            if width * height > MAX_PIXELS:
                raise ViewError(f"{name}: has {width}×{height} px, at most {MAX_PIXELS} are read; make it smaller.")
            picture.draft("RGB", ENVIRONMENT_PX)  # a JPEG is decoded at a smaller size
            whole = picture if picture.mode in ("L", "RGB", "RGBA") else picture.convert("RGB")
            small = whole.resize(ENVIRONMENT_PX, Pillow.Resampling.BOX).convert("RGB")
    except DAMAGED as error:
        raise ViewError(f"{name}: is no picture that can be read; give a JPEG, PNG or WebP file.") from error
    except MemoryError as error:
        raise ViewError(f"{name}: there is not enough memory for it.") from error
    return np.asarray(small, np.float32) / 255


def needs_alpha(draw: Draw) -> bool:
    """Whether pictures are drawn before black, and `behind` fills in the rest."""
    return draw.background == ENVIRONMENT or (isinstance(draw.background, tuple) and len(draw.background) == 2)


def behind(
    color: Float32[Array, "h w 3"],
    alpha: Float32[Array, "h w"],
    camera: Camera,
    up: Float64[Array, " 3"],
    background: object,
    environment: Float32[Array, "rows columns 3"] | None,
) -> Float32[Array, "h w 3"]:
    """The picture, drawn before black, before this background."""
    rows, columns = np.nonzero(alpha < OPEN_ALPHA)
    rays = np.stack(
        [(columns + 0.5 - camera.cx) / camera.fx, (rows + 0.5 - camera.cy) / camera.fy, np.ones(len(rows))], axis=1
    )
    rays /= np.linalg.norm(rays, axis=1, keepdims=True)
    axes = world_axes(up) @ camera.world_from_camera[:3, :3]  # rows: ahead, right, up
    upward = np.clip(rays @ axes[2], -1, 1)
    if background == ENVIRONMENT:
        if environment is None:
            return color
        height, width = environment.shape[:2]
        longitude = np.arctan2(rays @ axes[1], rays @ axes[0]) / (2 * math.pi) + 0.5
        latitude = 0.5 - np.arcsin(upward) / math.pi
        found = environment[
            np.minimum((latitude * height).astype(int), height - 1), (longitude * width).astype(int) % width
        ]
    else:
        top, bottom = (np.array(one, np.float32) for one in background)  # type: ignore[attr-defined]
        share = ((upward + 1) / 2).astype(np.float32)[:, None]
        found = bottom + (top - bottom) * share
    filled = color.copy()
    filled[rows, columns] += (1 - alpha[rows, columns])[:, None] * found
    return filled


def world_axes(up: Float64[Array, " 3"]) -> Float64[Array, "3 3"]:
    """Ahead, right and up of the world: ahead is the axis that is most level."""
    ahead = np.eye(3)[[2, 0, 1][int(np.argmin(np.abs(up[[2, 0, 1]])))]]
    ahead = ahead - up * (ahead @ up)
    ahead /= np.linalg.norm(ahead)
    return np.stack([ahead, np.cross(ahead, up), up])
