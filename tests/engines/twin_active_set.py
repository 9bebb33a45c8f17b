"""The active set once more, slow and obvious, in float64: who must be a member, and what the members show together.

The engine may keep more than this: its bounds are never too small. It must not keep less.
"""

from __future__ import annotations

import numpy as np

from hushsplat.engines.torch import renderers as twin
from hushsplat.types.camera import Camera
from hushsplat.types.gaussians import Gaussians
from hushsplat.types.image import Image

CELL = 4  # px


def blend(
    gaussians: Gaussians, camera: Camera, members: np.ndarray, background=(0.0, 0.0, 0.0), near=0.2, order="center"
) -> Image:
    """The members alone, in the order of their centres' depth or of each pixel."""
    draw = twin.reference if order == "center" else twin.exact
    return draw(gaussians.take(np.flatnonzero(members)), camera, background=background, near=near)


def pixel_weights(gaussians: Gaussians, camera: Camera, members: np.ndarray, near=0.2) -> np.ndarray:
    """The largest weight of each Gaussian in any pixel, over members only, in the order of each pixel."""
    fragments = twin.fragments_of(gaussians, camera, near)
    alpha = np.where(members[:, None, None], fragments.alpha, 0)
    order = np.argsort(fragments.depth, axis=0, kind="stable")
    sorted_alpha = np.take_along_axis(alpha, order, axis=0)
    before = np.cumprod(np.concatenate([np.ones_like(alpha[:1]), 1 - sorted_alpha[:-1]]), axis=0)
    weights = np.zeros_like(alpha)
    np.put_along_axis(weights, order, sorted_alpha * before, axis=0)
    return weights.max(axis=(1, 2))


def cell_weights(gaussians: Gaussians, camera: Camera, members: np.ndarray, near=0.2) -> np.ndarray:
    """[gaussian, cell]: largest alpha in the cell times the largest transmittance in front, over members only."""
    fragments = twin.fragments_of(gaussians, camera, near)
    alpha = np.where(members[:, None, None], fragments.alpha, 0)
    order = np.argsort(fragments.center_depth, kind="stable")
    rest = np.ones(alpha.shape[1:])
    weights = np.zeros((len(gaussians), *_cells(rest).shape))
    for index in order:
        weights[index] = _cells(alpha[index]) * _cells(rest)
        rest = rest * (1 - alpha[index])
    return weights


def _cells(values: np.ndarray) -> np.ndarray:
    """The largest value of each cell of 4×4 px."""
    rows, columns = (-size % CELL for size in values.shape)
    padded = np.pad(values, ((0, rows), (0, columns)))
    return padded.reshape(padded.shape[0] // CELL, CELL, padded.shape[1] // CELL, CELL).max(axis=(1, 3))
