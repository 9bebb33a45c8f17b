"""The baselines on the GPU; engines/torch/baselines.py defines them."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

import numpy as np

from hushsplat.engines.webgpu.denoise import settings_uniform, step_uniform
from hushsplat.engines.webgpu.device import Buffer, Device, Work, tiles_of
from hushsplat.engines.webgpu.handles import GpuImage, GpuObservation, read_plane
from hushsplat.spec.denoisers import ConfiguredDenoiser
from hushsplat.spec.settings import MeanSettings, StTaaSettings, SvgfSettings, TaaSettings
from hushsplat.spec.state import State, StateLayout
from hushsplat.types.camera import Camera
from hushsplat.types.errors import DenoiseError
from hushsplat.types.motion import CameraMotion

SHADERS = {MeanSettings: "mean", TaaSettings: "taa", StTaaSettings: "st_taa", SvgfSettings: "svgf"}


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
        parts |= {"run": device.uniform("mean", "Length", frames=frames)}
    elif isinstance(settings, (TaaSettings, StTaaSettings, SvgfSettings)):
        parts |= {"settings": settings_uniform(device, SHADERS[type(settings)], settings)}
    else:
        raise DenoiseError(f"the gpu engine does not run {denoiser.name} with {type(settings).__name__}.")
    forward, far_depth = isinstance(settings, StTaaSettings), getattr(settings, "far_depth", 1.0)
    parts |= {"step": step_uniform(device, camera, state, settings.static_tolerance, far_depth, forward)}
    parts |= {"state_before": device.buffer(16) if state is None else state.kept}
    tiles = tiles_of(camera.width, camera.height)
    with device.work() as work:
        if isinstance(settings, StTaaSettings):
            parts |= _splat(device, work, tiles, parts, pixels, has_history=state is not None)
        work.run(device.compute(SHADERS[type(settings)]), tiles, **parts)
        if isinstance(settings, SvgfSettings):
            _filter_svgf(device, work, settings, tiles, parts, pixels)
    image = GpuImage(device, camera.width, camera.height, shown)
    return image, BaselineState(device, denoiser.name, made_by, kept, denoiser.layout, frames)


def _splat(
    device: Device, work: Work, tiles: tuple[int, int], parts: dict[str, Any], pixels: int, has_history: bool
) -> dict[str, Any]:
    """Where each pixel's history comes from in the forward warp of ST-TAA."""
    if not has_history:
        return {"came_from": device.buffer(16)}
    landed = {"nearest": device.buffer(4 * pixels), "came_from": device.buffer(4 * pixels)}
    for buffer in landed.values():
        work.clear(buffer)
    for who in (False, True):
        work.run(device.compute("st_taa_splat", WHO=who), tiles, **parts, **landed)
    return landed


def _filter_svgf(
    device: Device, work: Work, settings: SvgfSettings, tiles: tuple[int, int], parts: dict[str, Any], pixels: int
) -> None:
    """SVGF over space: the paper's one pass, or à-trous passes."""
    if settings.passes == 0:
        work.run(device.compute("svgf_adapted"), tiles, **parts)
        return
    filtered = device.buffer(16 * pixels)
    work.run(device.compute("svgf_variance"), tiles, **parts, filtered=filtered)
    for number in range(settings.passes):
        unfiltered, filtered = filtered, device.buffer(16 * pixels)
        turn = {"stride": 2**number, "feeds_back": settings.feedback and number == 0}
        wavelet = device.uniform("svgf_wavelet", "Wavelet", **turn, is_last=number == settings.passes - 1)
        work.run(
            device.compute("svgf_wavelet"), tiles, **parts, wavelet=wavelet, unfiltered=unfiltered, filtered=filtered
        )


def _padded(layout: StateLayout) -> int:
    return -(-layout.floats // 4) * 4
