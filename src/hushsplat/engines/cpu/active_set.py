"""`hush` and `sorted` on the CPU: only Gaussians that were seen and still matter are blended (docs/hush.md).

The state is an active set: one bit per Gaussian that goes on to the next frame, and for each 4×4 px cell the depths at
which the last frame's transmittance fell below a few levels. Each frame the set alone is projected, binned, ordered per
tile by the depth of the centres (or by that of the fragments in each pixel) and blended. New members come from tiles
that are searched; members without weight leave. `sorted` blends the same way with all Gaussians and keeps no set.
"""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np
from jaxtyping import Float32, UInt8, UInt32
from numpy import ndarray as Array

from hushsplat.engines.cpu import _engine
from hushsplat.engines.cpu.arrays import empty_float32, native_background, native_camera, native_settings
from hushsplat.spec.denoisers import ConfiguredDenoiser
from hushsplat.spec.sampling import TABLE_SIZE, key_salt, level_table
from hushsplat.spec.settings import ActiveSetSettings
from hushsplat.types.camera import Camera
from hushsplat.types.errors import DenoiseError
from hushsplat.types.gaussians import Gaussians
from hushsplat.types.image import Image
from hushsplat.types.options import Noise, RenderOptions


@dataclass(frozen=True, eq=False)
class ActiveState:
    """The active set after a frame.

    Attributes:
        method: it belongs to.
        camera: of the frame.
        native: the set; `members`, `fresh`, `searched`, `bytes` and `stage_ms` tell about the frame.
        shown: groups of the scene that were drawn; None: all.
    """

    method: str
    camera: Camera
    native: _engine.ActiveSet = field(repr=False)
    shown: UInt8[Array, " groups"] | None = field(default=None, repr=False)

    def numpy(self) -> ActiveState:
        """Itself."""
        return self


def draw(
    denoiser: ConfiguredDenoiser,
    scene: _engine.Scene,
    gaussians: Gaussians,
    camera: Camera,
    noise: Noise,
    state: ActiveState | None,
    options: RenderOptions,
    shown: UInt8[Array, " groups"] | None = None,
) -> tuple[Image, ActiveState]:
    """One frame and the state for the next one; a pure function of its inputs, for any number of threads.

    A state of another scene, or of other groups of it, starts anew; one of another picture size keeps its members. A
    cut needs no notice.
    """
    settings = denoiser.settings
    if not isinstance(settings, ActiveSetSettings):
        raise DenoiseError(f"{denoiser.name} takes ActiveSetSettings, got {type(settings).__name__}.")
    size = (camera.height, camera.width)
    color, alpha, depth = empty_float32(*size, 3), empty_float32(*size), empty_float32(*size)
    previous = None if state is None or not _same(state.shown, shown) else state.native
    levels, sequence = _random_levels(noise, settings, 0 if previous is None else previous.frame)
    native = _engine.draw_active_set(
        scene,
        native_camera(camera, options.near),
        np.ascontiguousarray(gaussians.sh),
        np.ascontiguousarray(gaussians.means),
        native_background(options),
        native_settings(settings),
        levels,
        sequence,
        previous,
        options.order != "pixel",
        options.threads,
        color,
        alpha,
        depth,
        shown,
    )
    return Image(color, alpha, depth), ActiveState(denoiser.name, camera, native, shown)


def _same(first: Array | None, second: Array | None) -> bool:
    return first is second or (first is not None and second is not None and np.array_equal(first, second))


def _random_levels(
    noise: Noise, settings: ActiveSetSettings, frame: int
) -> tuple[Float32[Array, "samples 4096"], UInt32[Array, " samples"]]:
    """Random levels and keys of the frame's samples, none unless the stream discovers."""
    if settings.discovery != "stream":
        return np.zeros((0, TABLE_SIZE), dtype=np.float32), np.zeros(0, dtype=np.uint32)
    times = [settings.first_samples * frame + sample for sample in range(settings.first_samples)]
    levels = np.stack([level_table(noise.sampler, noise.seed, t) for t in times])
    return levels, np.array([key_salt(noise.sampler, noise.seed, t) for t in times], dtype=np.uint32)
