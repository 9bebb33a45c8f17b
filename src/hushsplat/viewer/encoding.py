"""Frames as bytes: JPEG for the page, PNG with the camera inside for screenshots."""

from __future__ import annotations

import io
from typing import TYPE_CHECKING

import numpy as np
from jaxtyping import UInt8
from numpy import ndarray as Array
from PIL import Image as Pillow
from PIL.PngImagePlugin import PngInfo

from hushsplat.io.tracks import track_json
from hushsplat.types.camera import Camera
from hushsplat.types.image import Pixels, to_bytes
from hushsplat.types.track import Track

if TYPE_CHECKING:
    from hushsplat.viewer.frame_renderer import RenderedFrame

KEYWORD = "hushsplat-track"  # of the text in the PNG: a track of one frame, as in docs/tracks.md


def composed(frame: RenderedFrame, divider: float) -> UInt8[Array, "h w 3"]:
    """One picture of all sides: the first up to the divider, then a white line, then the second."""
    first, *others = (to_bytes(color) for color in frame.pictures)
    if not others:
        return first
    column = round(divider * first.shape[1])
    whole = np.concatenate([first[:, :column], others[0][:, column:]], axis=1)
    if 0 < column < whole.shape[1]:
        whole[:, column] = 255
    return whole


def jpeg(color: Pixels, sharp: bool) -> bytes:
    """One side of a frame as it is sent: stronger compression while the camera moves."""
    target = io.BytesIO()
    quality, subsampling = (93, 0) if sharp else (82, 2)
    Pillow.fromarray(to_bytes(color)).save(target, "JPEG", quality=quality, subsampling=subsampling)
    return target.getvalue()


def screenshot(frame: RenderedFrame, divider: float) -> bytes:
    """The frame as a lossless PNG, its camera in a text chunk."""
    text = PngInfo()
    text.add_itxt(KEYWORD, "".join(track_json(_track_of(frame.camera))))
    target = io.BytesIO()
    Pillow.fromarray(composed(frame, divider)).save(target, "PNG", compress_level=6, pnginfo=text)
    return target.getvalue()


def _track_of(camera: Camera) -> Track:
    lens = (camera.width, camera.height, camera.fx, camera.fy, camera.cx, camera.cy)
    return Track(*lens, np.zeros(1), camera.world_from_camera[None])
