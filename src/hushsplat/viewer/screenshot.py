"""Screenshots: PNG files that know where they were taken from."""

from __future__ import annotations

import io

import numpy as np
from PIL import Image
from PIL.PngImagePlugin import PngInfo

from hushsplat.io.images import to_bytes
from hushsplat.io.tracks import track_json
from hushsplat.types.camera import Camera
from hushsplat.types.track import Track
from hushsplat.viewer.frame_renderer import Drawn, composed

KEYWORD = "hushsplat-track"  # of the text in the PNG: a track of one frame, as in docs/tracks.md


def png(drawn: Drawn, divider: float) -> bytes:
    """The frame without loss, its camera in a text chunk."""
    picture = composed(tuple(to_bytes(color) for color in drawn.pictures), divider)
    text = PngInfo()
    text.add_itxt(KEYWORD, "".join(track_json(_track_of(drawn.camera))))
    target = io.BytesIO()
    Image.fromarray(picture).save(target, "PNG", compress_level=6, pnginfo=text)
    return target.getvalue()


def _track_of(camera: Camera) -> Track:
    lens = (camera.width, camera.height, camera.fx, camera.fy, camera.cx, camera.cy)
    return Track(*lens, np.zeros(1), camera.world_from_camera[None])
