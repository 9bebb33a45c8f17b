"""`exact`: every pixel's fragments in the order of their own depth; what the stochastic frames average to."""

from __future__ import annotations

import numpy as np

from hushsplat.engines.cpu.arrays import empty_float32
from hushsplat.engines.cpu.prepare import RenderOptions, engine_background, engine_camera, prepare
from hushsplat.types.camera import Camera
from hushsplat.types.gaussians import Gaussians
from hushsplat.types.picture import Picture


def render_ordered(gaussians: Gaussians, camera: Camera, options: RenderOptions | None = None) -> Picture:
    """The expectation of a stochastic frame, and the variance of one of its samples per channel."""
    options = options or RenderOptions()
    size = (camera.height, camera.width)
    color, variance = (empty_float32(*size, 3) for _ in range(2))
    alpha, depth = (empty_float32(*size) for _ in range(2))
    prepare(gaussians, options.threads).exact(
        engine_camera(camera, options.near),
        np.ascontiguousarray(gaussians.sh),
        np.ascontiguousarray(gaussians.means),
        engine_background(options),
        options.threads,
        color,
        alpha,
        depth,
        variance,
    )
    return Picture(color, alpha, depth, variance)
