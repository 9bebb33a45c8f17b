"""How a frame is drawn: render options and the noise of the stochastic stream."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal, get_args

import numpy as np

from hushsplat.types.errors import RenderError

NEAR = 0.2  # world units: what 3DGS and 2DGS were trained with
Order = Literal["pixel", "center"]
MAX_THREADS = 256
MAX_SAMPLES = 4096  # per pixel and frame; more belong into several frames


@dataclass(frozen=True)
class RenderOptions:
    """How to draw; every engine and every method takes the same options.

    Attributes:
        background: RGB behind the scene, 0..1.
        near: world units, > 0: nothing nearer than this is drawn.
        threads: workers of a CPU engine, 0: all cores; the picture is the same for any number.
        order: what is in front of what: by the depth of the fragments in each pixel, or by the depth of the Gaussians'
            centres. None: pixel for the stochastic stream, whose mean is then `exact`; center for `hush`, whose limit
            is then `reference`.
    """

    background: tuple[float, float, float] = (0.0, 0.0, 0.0)
    near: float = NEAR
    threads: int = 0
    order: Order | None = None

    def __post_init__(self) -> None:
        if not np.isfinite(self.background).all() or len(self.background) != 3:
            raise RenderError(f"background must be three finite numbers, got {self.background}.")
        if not (np.isfinite(self.near) and self.near > 0):
            raise RenderError(f"near must be a distance > 0, got {self.near}.")
        if not 0 <= self.threads <= MAX_THREADS:
            raise RenderError(f"threads must lie in 0 (all cores) .. {MAX_THREADS}, got {self.threads}.")
        if self.order not in (None, *get_args(Order)):
            raise RenderError(f"order must be pixel or center, got '{self.order}'.")


@dataclass(frozen=True)
class Noise:
    """The random numbers of a stochastic frame: the same bits for the same values, in every engine.

    Attributes:
        samples: per pixel and frame, 1..4096.
        seed: another seed, another noise.
        frame: number of the (first) frame; each has its own noise.
        sampler: stratified over the frames, or independent (`hushsplat.spec.sampling.SAMPLERS`).
    """

    samples: int = 1
    seed: int = 0
    frame: int = 0
    sampler: str = "stratified"

    def __post_init__(self) -> None:
        if not 1 <= self.samples <= MAX_SAMPLES:
            raise RenderError(f"samples must lie in 1..{MAX_SAMPLES}, got {self.samples}.")
