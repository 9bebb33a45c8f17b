"""YCoCg, the colour space in which the denoiser accumulates, compares and filters (docs/denoiser.md)."""

from __future__ import annotations

import numpy as np
from jaxtyping import Float
from numpy import ndarray as Array


def ycocg_from_rgb(rgb: Float[Array, "*any 3"]) -> Float[Array, "*any 3"]:
    """Luma Y, Co (orange against blue) and Cg (green against purple)."""
    red, green, blue = rgb[..., 0], rgb[..., 1], rgb[..., 2]
    luma = red / 4 + green / 2 + blue / 4
    return np.stack([luma, red / 2 - blue / 2, -red / 4 + green / 2 - blue / 4], axis=-1)


def rgb_from_ycocg(ycocg: Float[Array, "*any 3"]) -> Float[Array, "*any 3"]:
    """The inverse of `ycocg_from_rgb`."""
    luma, orange, green = ycocg[..., 0], ycocg[..., 1], ycocg[..., 2]
    return np.stack([luma + orange - green, luma + green, luma - orange - green], axis=-1)
