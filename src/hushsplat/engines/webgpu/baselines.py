"""The baselines on the GPU: `mean` and `taa`; engines/torch/baselines.py defines them."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

import numpy as np

from hushsplat.engines.webgpu.denoise import settings_uniform, step_uniform
from hushsplat.engines.webgpu.device import Buffer, Device, groups_of
from hushsplat.engines.webgpu.handles import GpuImage, GpuObservation, read_plane
from hushsplat.spec.denoisers import ConfiguredDenoiser
from hushsplat.spec.settings import MeanSettings, TaaSettings
from hushsplat.spec.state import State, StateLayout
from hushsplat.types.camera import Camera
from hushsplat.types.errors import DenoiseError
from hushsplat.types.motion import CameraMotion


@dataclass(frozen=True, eq=False)
class BaselineState:
    """What a baseline keeps: the channels of its layout, each pixel filled up to whole vec4f."""

    device: Device = field(repr=False)
    method: str
    camera: Camera
    kept: Buffer = field(repr=False)
    layout: StateLayout = field(repr=False)
    frames: int = 0

    def numpy(self) -> State:
        """Read back."""
        values = read_plane(self.device, self.kept, (self.camera.height, self.camera.width), _padded(self.layout))
        values = np.ascontiguousarray(values[..., : self.layout.floats])
        return State(self.method, values, self.camera, self.layout, self.frames)


def step(
    device: Device,
    denoiser: ConfiguredDenoiser,
    observation: GpuObservation,
    camera: Camera,
    state: BaselineState | None,
    with_views: bool,
) -> tuple[GpuImage, BaselineState]:
    """One frame of a baseline."""
    if with_views:
        raise DenoiseError(f"{denoiser.name} has no views behind its picture.")
    if state is not None and (state.camera.width, state.camera.height) != (camera.width, camera.height):
        state = None
    pixels, settings, frames, made_by = camera.width * camera.height, denoiser.settings, 0, camera
    kept, shown = device.buffer(4 * _padded(denoiser.layout) * pixels), device.buffer(16 * pixels)
    parts: dict[str, Any] = {"observed": observation.observed, "state": kept, "shown": shown}
    if isinstance(settings, MeanSettings):
        if state is not None and not CameraMotion.between(state.camera, camera, settings.static_tolerance).static:
            state = None
        # The camera of the first frame stays: many steps below the tolerance must not add up to a moving camera.
        frames, made_by = (1, camera) if state is None else (state.frames + 1, state.camera)
        parts |= {"step": step_uniform(device, camera, state, settings.static_tolerance, 1.0)}
        parts |= {"run": device.uniform("mean", "Length", frames=frames)}
        shader = "mean"
    elif isinstance(settings, TaaSettings):
        parts |= {"step": step_uniform(device, camera, state, settings.static_tolerance, settings.far_depth)}
        parts |= {"settings": settings_uniform(device, "taa", settings)}
        shader = "taa"
    else:
        raise DenoiseError(f"the gpu engine does not run {denoiser.name}; use the cpu engine.")
    parts |= {"state_before": device.buffer(16) if state is None else state.kept}
    with device.work() as work:
        work.run(device.compute(shader), (groups_of(camera.width, 16), groups_of(camera.height, 16)), **parts)
    image = GpuImage(device, camera.width, camera.height, shown)
    return image, BaselineState(device, denoiser.name, made_by, kept, denoiser.layout, frames)


def _padded(layout: StateLayout) -> int:
    return -(-layout.floats // 4) * 4
