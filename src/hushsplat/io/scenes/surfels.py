"""Surfels in formats that only know ellipsoids."""

from __future__ import annotations

import numpy as np
from jaxtyping import Float32
from numpy import ndarray as Array

from hushsplat.types.gaussians import Gaussians

SURFEL_THICKNESS = 1e-6  # world units; ours: thinner than any pixel, thick enough for float32 covariances


def three_scales(gaussians: Gaussians) -> Float32[Array, "n 3"]:
    """Three scales per Gaussian: a surfel gets SURFEL_THICKNESS along its normal, an ellipsoid keeps its own."""
    if not gaussians.is_surfels:
        return gaussians.scales
    return np.column_stack([gaussians.scales, np.full(len(gaussians), SURFEL_THICKNESS, np.float32)])
