"""The stochastic renderer: each fragment kept with probability alpha, the nearest kept one wins the pixel."""

from __future__ import annotations

from operator import index
from typing import SupportsIndex

import numpy as np

from hushsplat.engines.cpu.arrays import empty_float32, empty_int32
from hushsplat.engines.cpu.prepare import RenderOptions, engine_camera, prepare
from hushsplat.spec.sampling import key_salt, level_table, sequence_index
from hushsplat.types.camera import Camera
from hushsplat.types.errors import RenderError
from hushsplat.types.gaussians import Gaussians
from hushsplat.types.observation import VisibilitySample

MAX_SAMPLES = 4096  # per pixel and call; more belong into several frames


def sample_visibility(
    gaussians: Gaussians,
    camera: Camera,
    *,
    samples: int = 1,
    seed: SupportsIndex = 0,
    frame: SupportsIndex = 0,
    sampler: str = "independent",
    options: RenderOptions | None = None,
) -> VisibilitySample:
    """Who is seen in each pixel, `samples` times: the same bits for the same seed, frame and sampler."""
    options = options or RenderOptions()
    if not 1 <= samples <= MAX_SAMPLES:
        raise RenderError(f"samples must lie in 1..{MAX_SAMPLES}, got {samples}.")
    seed, frame = index(seed), index(frame)  # NumPy's integers do not wrap around as hashes of Python's do
    times = [sequence_index(frame, samples, sample) for sample in range(samples)]
    levels = np.stack([level_table(sampler, seed, t) for t in times])
    salts = np.array([key_salt(sampler, seed, t) for t in times], dtype=np.uint32)
    primitive_id = empty_int32(samples, camera.height, camera.width)
    depth = empty_float32(samples, camera.height, camera.width)
    scene = prepare(gaussians, options.threads)
    scene.stochastic(engine_camera(camera, options.near), levels, salts, options.threads, primitive_id, depth)
    return VisibilitySample(primitive_id, depth)
