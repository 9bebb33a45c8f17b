"""The Morton curve: neighbours along it are neighbours in space."""

from __future__ import annotations

import numpy as np
from jaxtyping import Integer, UInt64
from numpy import ndarray as Array

BITS = 20  # of a coordinate


def morton_codes(cells: Integer[Array, "n 3"]) -> UInt64[Array, " n"]:
    """Places of cells along the curve: the bits of their coordinates (0 .. 2^20 - 1) in turn."""
    bits = cells.astype(np.uint64)
    for shift, mask in (
        (32, 0x1F00000000FFFF),
        (16, 0x1F0000FF0000FF),
        (8, 0x100F00F00F00F00F),
        (4, 0x10C30C30C30C30C3),
        (2, 0x1249249249249249),
    ):
        bits = (bits | bits << np.uint64(shift)) & np.uint64(mask)  # spread, two apart
    return bits[:, 0] | bits[:, 1] << np.uint64(1) | bits[:, 2] << np.uint64(2)
