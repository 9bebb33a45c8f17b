"""`reference`: Gaussians sorted by their centres' depth and blended front to back, as vanilla 2DGS and 3DGS do."""

from __future__ import annotations

import numpy as np

from hushsplat.engines.cpu.arrays import empty_float32
from hushsplat.engines.cpu.prepare import RenderOptions, engine_background, engine_camera, prepare
from hushsplat.types.camera import Camera
from hushsplat.types.gaussians import Gaussians
from hushsplat.types.picture import Picture


def render_sorted(
    gaussians: Gaussians,
    camera: Camera,
    options: RenderOptions | None = None,
    *,
    with_depth: bool = True,
) -> Picture:
    """The picture everybody knows; `depth` is the expectation of the fragments' depth (zeros if not wanted)."""
    options = options or RenderOptions()
    size = (camera.height, camera.width)
    color = empty_float32(*size, 3)
    alpha = empty_float32(*size)
    depth = empty_float32(*size) if with_depth else None
    prepare(gaussians, options.threads).sorted(
        engine_camera(camera, options.near),
        np.ascontiguousarray(gaussians.sh),
        np.ascontiguousarray(gaussians.means),
        engine_background(options),
        options.threads,
        color,
        alpha,
        depth,
    )
    return Picture(color, alpha, np.zeros(size, dtype=np.float32) if depth is None else depth)
