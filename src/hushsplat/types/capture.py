"""A capture: photographs with known cameras, and sometimes a sparse point cloud."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from jaxtyping import Float32, UInt8
from numpy import ndarray as Array

from hushsplat.types.camera import Camera
from hushsplat.types.distortion import Distortion
from hushsplat.types.errors import CaptureError

HOLD_OUT_EVERY = 8  # the split of LLFF, Mip-NeRF 360 and 3DGS: views 0, 8, 16... by name are for testing


@dataclass(frozen=True)
class View:
    """One photograph of a capture and its camera.

    Attributes:
        name: in the capture's own files.
        image_path: of the photograph.
        camera: pinhole camera of the photograph once its distortion is removed, in the photograph's size.
        distortion: of the file on disk; None for a pinhole picture.
    """

    name: str
    image_path: Path
    camera: Camera
    distortion: Distortion | None = None


@dataclass(frozen=True)
class Capture:
    """Photographs with known cameras; made by `load_capture`.

    Attributes:
        views: photographs with cameras, sorted by name.
        folder: of the capture.
        points: [m, 3] sparse point cloud in world units; None if the capture has none.
        point_colors: [m, 3] sRGB bytes of the points.
    """

    views: tuple[View, ...]
    folder: Path
    points: Float32[Array, "m 3"] | None = None
    point_colors: UInt8[Array, "m 3"] | None = None

    def __post_init__(self) -> None:
        if not self.views:
            raise CaptureError(f"{self.folder}: the capture has no views.")
        object.__setattr__(self, "views", tuple(sorted(self.views, key=lambda view: view.name)))

    def __repr__(self) -> str:
        sizes = sorted({(view.camera.width, view.camera.height) for view in self.views})
        size = f"{sizes[0][0]}×{sizes[0][1]}" + (f" to {sizes[-1][0]}×{sizes[-1][1]}" if len(sizes) > 1 else "")
        return f"Capture({len(self.views)} views, {size}, {self.folder})"

    @property
    def held_out(self) -> tuple[View, ...]:
        """Every 8th view, beginning with the first: for evaluation, never for training."""
        return self.views[::HOLD_OUT_EVERY]

    @property
    def train(self) -> tuple[View, ...]:
        """All views that are not held out."""
        return tuple(view for index, view in enumerate(self.views) if index % HOLD_OUT_EVERY)
