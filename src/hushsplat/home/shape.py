"""How long, wide and high the subject of a scene is; a street or a corridor is looked along."""

from __future__ import annotations

from dataclasses import dataclass
from itertools import pairwise

import numpy as np
from jaxtyping import Float64
from numpy import ndarray as Array

from hushsplat.types.rotations import level_axes

# A street or a corridor is so many times as long as wide. It is looked along from stations on its middle line, at this
# share of its height, to a target so many widths away.
LONG, STATIONS, STATION_HEIGHT, STATION_WIDTHS = 3.0, 5, 0.4, 1.5


@dataclass(frozen=True)
class Shape:
    """Of points of detail, without the outermost.

    Attributes:
        length: the longer side across `up`.
        width: the shorter side across `up`.
        height: along `up`.
        axes: columns: the directions of length and width, and up.
    """

    length: float
    width: float
    height: float
    axes: Float64[Array, "3 3"]

    @staticmethod
    def of(points: Float64[Array, "n 3"], upward: Float64[Array, " 3"]) -> Shape:
        """The shape of these points; of none, that of a cube."""
        level = np.stack(level_axes(upward), axis=1)
        if len(points) == 0:
            return Shape(1.0, 1.0, 1.0, np.column_stack([level, upward]))
        _, sides = np.linalg.eigh(np.cov((points @ level).T))
        axes = np.column_stack([level @ sides[:, 1], level @ sides[:, 0], upward])
        length, width, height = np.ptp(np.percentile(points @ axes, [2, 98], axis=0), axis=0)
        return Shape(float(length), float(width), float(height), axes)

    @property
    def is_long(self) -> bool:
        """Whether it is that of a street, a corridor or a fence."""
        return self.length > LONG * max(self.width, 1e-9)

    def stations(
        self, points: Float64[Array, "n 3"], nearest: float
    ) -> list[tuple[Float64[Array, " 3"], Float64[Array, " 3"]]]:
        """Eyes on the middle line of what is long, and targets along it to both sides, not nearer than `nearest`."""
        if not self.is_long:
            return []
        along, found = points @ self.axes[:, 0], []
        away = max(STATION_WIDTHS * self.width, nearest) * self.axes[:, 0]
        for begin, end in pairwise(np.percentile(along, np.linspace(2, 98, STATIONS + 1))):
            part = points[(along >= begin) & (along <= end)] @ self.axes
            low, high = np.percentile(part, [5, 95], axis=0)
            eye = self.axes @ (low + np.array([0.5, 0.5, STATION_HEIGHT]) * (high - low))
            found += [(eye, eye + away), (eye, eye - away)]
        return found
