"""A capture: photographs whose cameras are known, and sometimes points of the scene."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from jaxtyping import Float32, UInt8
from numpy import ndarray as Array

from hushsplat.types.camera import Camera
from hushsplat.types.distortion import Distortion
from hushsplat.types.errors import CaptureError

HOLD_OUT_EVERY = 8  # the field's split (LLFF, Mip-NeRF 360, 3DGS): views 0, 8, 16... by name are for testing


@dataclass(frozen=True)
class View:
    """One photograph and the pinhole camera that it becomes once its lens distortion is removed."""

    name: str  # as the capture calls it
    image_path: Path
    camera: Camera  # of the photograph's own size
    distortion: Distortion | None = None  # of the file on disk; None if that is a pinhole picture already


@dataclass(frozen=True)
class Capture:
    """Views in the order of their names, whatever order they come in."""

    views: tuple[View, ...]
    folder: Path
    points: Float32[Array, "m 3"] | None = None  # world units
    point_colors: UInt8[Array, "m 3"] | None = None  # sRGB

    def __post_init__(self) -> None:
        if not self.views:
            raise CaptureError(f"{self.folder}: the capture has no views.")
        object.__setattr__(self, "views", tuple(sorted(self.views, key=lambda view: view.name)))

    @property
    def held_out(self) -> tuple[View, ...]:
        """Every 8th view, beginning with the first: for measuring, never for training."""
        return self.views[::HOLD_OUT_EVERY]

    @property
    def train(self) -> tuple[View, ...]:
        """All views that are not held out."""
        return tuple(view for index, view in enumerate(self.views) if index % HOLD_OUT_EVERY)
