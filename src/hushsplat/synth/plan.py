"""The floor plan: where the room, its glass door and the garden are. Metres; x right, y down, z into the garden."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from jaxtyping import Bool, Float32
from numpy import ndarray as Array


class Room(NamedTuple):
    """The room spans -x..x, 0..height upwards and -z..0."""

    x: float
    z: float
    height: float


class Opening(NamedTuple):
    """The glass door in the wall at z = 0 spans -x..x and 0..height upwards."""

    x: float
    height: float


class Garden(NamedTuple):
    """The garden spans -x..x and WALL..z."""

    x: float
    z: float


ROOM = Room(x=3.0, z=5.0, height=2.8)
DOOR = Opening(x=1.55, height=2.35)
WALL = 0.26  # thickness of the wall between room and garden
TERRACE_Z = 2.5  # the terrace ends here
GARDEN = Garden(x=5.6, z=10.5)
LAWN_HEIGHT = -0.07  # of the lawn above the floor: one step down
RUG_X, RUG_Z = (-2.2, -0.02), (-3.75, -1.35)
SHELF_X, SHELF_Z = (2.67, 2.985), (-3.35, -1.15)
SIDEBOARD_X = (-1.15, 0.65)  # against the back wall
BACK_PICTURES = (  # x and heights on the back wall
    ((-0.95, -0.35), (1.25, 2.05)),
    ((-0.25, 0.25), (1.25, 1.62)),
    ((-0.25, 0.25), (1.7, 2.05)),
)
PICTURES = (  # z and heights on the left wall
    ((-3.2, -1.9), (1.2, 2.08)),
    ((-1.62, -1.3), (1.68, 2.08)),
    ((-1.62, -1.3), (1.2, 1.6)),
)
DINING, TABLE_TOP = (1.22, -1.95), 0.751  # x and z of its middle, height
COFFEE, COFFEE_TOP = (-1.12, -2.55), 0.412
TREE = (-2.75, 5.1)  # x and z of the trunk
POND = (2.75, 5.6)  # x and z of its middle
POND_SIZE = (1.35, 1.0)  # half axes


def path_x(z: Float32[Array, " n"]) -> Float32[Array, " n"]:
    """Middle of the gravel path at a depth of the garden."""
    return np.float32(0.15) + np.float32(0.55) * np.sin(np.float32(0.62) * (z - np.float32(2.2)))


def on_lawn(means: Float32[Array, "n 3"], slack: float = 0.0) -> Bool[Array, " n"]:
    """True off the path, off the pond and beyond the terrace."""
    x, _, z = means.T
    wavy = 0.05 * np.sin(7 * z) + 0.03 * np.sin(17 * z + x)
    off_path = np.abs(x - path_x(z)) > 0.47 + wavy + slack
    pond = np.hypot((x - POND[0]) / (POND_SIZE[0] + 0.14 + slack), (z - POND[1]) / (POND_SIZE[1] + 0.14 + slack)) > 1
    return off_path & pond & (z > TERRACE_Z + slack)
