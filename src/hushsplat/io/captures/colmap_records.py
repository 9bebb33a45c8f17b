"""Records and camera models of COLMAP, the same in .bin and .txt."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal


@dataclass(frozen=True)
class CameraRecord:
    """A camera as in the file."""

    camera_id: int
    model: str
    width: int
    height: int
    parameters: tuple[float, ...]


@dataclass(frozen=True)
class ImageRecord:
    """An image as in the file; the pose is camera from world."""

    image_id: int
    quaternion: tuple[float, ...]  # wxyz
    translation: tuple[float, ...]
    camera_id: int
    name: str


@dataclass(frozen=True)
class Model:
    """A camera model: f (or fx, fy), cx, cy, then the coefficients of a lens."""

    model_id: int
    parameters: int
    one_focal: bool
    kind: Literal["perspective", "fisheye", "thin_prism_fisheye", "fov"]


# Each was compared with pycolmap 4.2.1 (Camera.img_from_cam): equal to 1e-8 px.
MODELS = {
    "SIMPLE_PINHOLE": Model(0, 3, True, "perspective"),
    "PINHOLE": Model(1, 4, False, "perspective"),
    "SIMPLE_RADIAL": Model(2, 4, True, "perspective"),
    "RADIAL": Model(3, 5, True, "perspective"),
    "OPENCV": Model(4, 8, False, "perspective"),
    "OPENCV_FISHEYE": Model(5, 8, False, "fisheye"),
    "FULL_OPENCV": Model(6, 12, False, "perspective"),
    "FOV": Model(7, 5, False, "fov"),
    "SIMPLE_RADIAL_FISHEYE": Model(8, 4, True, "fisheye"),
    "RADIAL_FISHEYE": Model(9, 5, True, "fisheye"),
    "THIN_PRISM_FISHEYE": Model(10, 12, False, "thin_prism_fisheye"),
    "SIMPLE_FISHEYE": Model(14, 3, True, "fisheye"),
    "FISHEYE": Model(15, 4, False, "fisheye"),
}

# Models that exist and are refused by name, with the number of their parameters (to read past them).
UNSUPPORTED = {
    "RAD_TAN_THIN_PRISM_FISHEYE": (11, 16),
    "SIMPLE_DIVISION": (12, 4),
    "DIVISION": (13, 5),
    "EUCM": (16, 6),
    "EQUIRECTANGULAR": (17, 2),
}
