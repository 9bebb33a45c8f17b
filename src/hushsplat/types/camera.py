"""A pinhole camera: OpenCV axes (x right, y down, z forward), pixel centres at +0.5."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np
from jaxtyping import Float64
from numpy import ndarray as Array

from hushsplat.types.errors import CameraError

Vector = Sequence[float | int] | Array  # three numbers

MAX_FAR = 1e30  # ours: of positions in world units and of intrinsics in px; their squares and quotients stay finite
MIN_FOCAL_PX = 1e-9
MAX_SIDE_PX = 16384  # ours: a picture of this side is 1 GiB of floats per channel


@dataclass(frozen=True)
class Camera:
    """A pinhole camera: picture size, intrinsics and pose.

    Axes are OpenCV's: x right, y down, z forward. `Camera.look_at` makes one from a position and a target.

    Attributes:
        width: px, 1 to 16384.
        height: px, 1 to 16384.
        fx: focal length along x, px, > 0.
        fy: focal length along y, px, > 0.
        cx: principal point, px from the left edge of the picture.
        cy: principal point, px from the top edge.
        world_from_camera: 4×4 pose: a rotation and a position, without scale or mirroring.
    """

    width: int
    height: int
    fx: float
    fy: float
    cx: float
    cy: float
    world_from_camera: Float64[Array, "4 4"]

    def __repr__(self) -> str:
        degrees = math.degrees(2 * math.atan(0.5 * self.height / self.fy))
        at = ", ".join(f"{value:.4g}" for value in np.asarray(self.world_from_camera)[:3, 3])
        return f"Camera({self.width}×{self.height}, {degrees:.4g}° from top to bottom, at {at})"

    def __post_init__(self) -> None:
        if not (1 <= self.width <= MAX_SIDE_PX and 1 <= self.height <= MAX_SIDE_PX):
            raise CameraError(f"a picture of {self.width}×{self.height} px is outside 1..{MAX_SIDE_PX} px a side.")
        if not all(0 < focal < math.inf for focal in (self.fx, self.fy)):
            raise CameraError(f"focal lengths must be finite and > 0, got fx={self.fx}, fy={self.fy}.")
        if not all(MIN_FOCAL_PX <= focal <= MAX_FAR for focal in (self.fx, self.fy)):
            raise CameraError(f"focal lengths must be {MIN_FOCAL_PX:g} to {MAX_FAR:g} px, got {self.fx}, {self.fy}.")
        if not max(abs(self.cx), abs(self.cy)) <= MAX_FAR:
            raise CameraError(f"the principal point must be finite, got cx={self.cx}, cy={self.cy}.")
        pose = np.asarray(self.world_from_camera, dtype=np.float64)
        if pose.shape != (4, 4) or not np.isfinite(pose).all():
            raise CameraError("world_from_camera must be a finite 4×4 matrix.")
        if not np.abs(pose[:3, 3]).max() <= MAX_FAR:
            raise CameraError(f"the camera is farther than {MAX_FAR:g} from the origin.")
        rotation = pose[:3, :3]
        if (
            np.abs(rotation).max() > 2
            or not np.allclose(rotation @ rotation.T, np.eye(3), atol=1e-3)
            or np.linalg.det(rotation) < 0
        ):
            raise CameraError("world_from_camera must be a rotation and a position, without scale or mirroring.")
        object.__setattr__(self, "world_from_camera", pose)

    @property
    def camera_from_world(self) -> Float64[Array, "4 4"]:
        """The inverse pose."""
        rotation = self.world_from_camera[:3, :3].T
        inverse = np.eye(4)
        inverse[:3, :3] = rotation
        inverse[:3, 3] = -rotation @ self.position
        return inverse

    @property
    def position(self) -> Float64[Array, " 3"]:
        """Of the camera in the world."""
        return self.world_from_camera[:3, 3]

    def resized(self, width: int, height: int | None = None) -> Camera:
        """The same camera with another picture size.

        Args:
            width: px.
            height: px; None keeps the aspect ratio.

        Returns:
            A camera with scaled intrinsics and the same pose.
        """
        height = max(1, round(self.height * width / self.width)) if height is None else height
        x_scale, y_scale = width / self.width, height / self.height
        return replace(
            self,
            width=width,
            height=height,
            fx=self.fx * x_scale,
            fy=self.fy * y_scale,
            cx=self.cx * x_scale,
            cy=self.cy * y_scale,
        )

    @staticmethod
    def look_at(
        eye: Vector,
        target: Vector,
        up: Vector = (0.0, -1.0, 0.0),
        *,
        width: int = 800,
        height: int = 532,
        fov_y_deg: float = 50.0,
    ) -> Camera:
        """A camera at `eye` that looks at `target`.

        Args:
            eye: position, world units.
            target: point in the middle of the picture.
            up: world direction that points up in the picture; 3DGS scenes from COLMAP have -y up.
            width: px.
            height: px.
            fov_y_deg: vertical field of view, degrees, between 0 and 180.

        Returns:
            The camera, with square pixels and the principal point in the middle.
        """
        if not 0 < fov_y_deg < 180:
            raise CameraError(f"fov_y_deg must lie between 0 and 180, got {fov_y_deg}.")
        focal = 0.5 * height / np.tan(np.radians(fov_y_deg) / 2)
        pose = look_at_pose(eye, target, up)
        return Camera(width, height, focal, focal, width / 2, height / 2, pose)


def look_at_pose(eye: Vector, target: Vector, up: Vector) -> Float64[Array, "4 4"]:
    """The world_from_camera pose at `eye` that looks at `target`."""
    eye, target, up = (np.asarray(v, dtype=np.float64) for v in (eye, target, up))
    if not all(v.shape == (3,) and np.isfinite(v).all() for v in (eye, target, up)):
        raise CameraError("eye, target and up must be three finite numbers each.")
    forward = target - eye
    length = np.linalg.norm(forward)
    if not np.isfinite(length) or length < 1e-12:
        raise CameraError("the camera is at its own target; move one of them.")
    forward = forward / length
    right = np.cross(forward, up)
    if np.linalg.norm(right) < 1e-6 * max(float(np.linalg.norm(up)), 1e-12):  # looks along `up`: take any right axis
        right = np.cross(forward, np.roll(up, 1) + np.array([0.1, 0.2, 0.3]))
    right = right / np.linalg.norm(right)
    pose = np.eye(4)
    pose[:3, :3] = np.stack([right, np.cross(forward, right), forward], axis=1)
    pose[:3, 3] = eye
    return pose
