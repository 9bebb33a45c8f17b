"""The paper's denoiser on the GPU: four dispatches for the passes of docs/denoiser.md."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, field, fields
from typing import Any, Literal, get_args, get_origin, get_type_hints

import numpy as np
from jaxtyping import Float32
from numpy import ndarray as Array

from hushsplat.engines.webgpu.device import Buffer, Device, tiles_of
from hushsplat.engines.webgpu.handles import GpuImage, GpuObservation, read_plane
from hushsplat.spec.denoisers import ConfiguredDenoiser
from hushsplat.spec.settings import DenoiserSettings
from hushsplat.spec.state import TEMPORAL, State, StateLayout
from hushsplat.spec.weights import SHAPES, packed
from hushsplat.types.camera import Camera
from hushsplat.types.colour import rgb_from_ycocg
from hushsplat.types.errors import DenoiseError
from hushsplat.types.motion import CameraMotion
from hushsplat.types.observation import Observation
from hushsplat.types.settings import Settings

# Where the channels of a state lie in its two buffers: three vec4f a pixel, and what was shown.
STATE_ORDER = (
    *("accumulated", "squared_luma"),
    *("accumulated_frames", "accumulated_trust", "denoised_frames", "denoised_trust"),
    *("denoised", "depth"),
)

# Floats of the weights before those of the second network; trust.wgsl reads them by four and wants them aligned.
HEAD_END = sum(math.prod(shape) for name, shape in SHAPES.items() if name.startswith("accumulated."))


@dataclass(frozen=True, eq=False)
class GpuState:
    """What the paper's denoiser keeps, as trust.wgsl and compose.wgsl write it."""

    device: Device = field(repr=False)
    method: str
    camera: Camera
    kept: Buffer = field(repr=False)  # 3 vec4f a pixel
    shown: Buffer = field(repr=False)  # vec4f: RGB
    layout: StateLayout = field(default=TEMPORAL, repr=False)

    def numpy(self) -> State:
        """Read back."""
        size = (self.camera.height, self.camera.width)
        kept = read_plane(self.device, self.kept, size, 12)
        values = np.zeros((*size, TEMPORAL.floats), dtype=np.float32)
        start = 0
        for name in STATE_ORDER:
            place = _as_slice(TEMPORAL.places[name])
            values[..., place] = kept[..., start : start + place.stop - place.start]
            start += place.stop - place.start
        values[..., TEMPORAL.places["stabilised"]] = read_plane(self.device, self.shown, size, 4)[..., :3]
        return State(self.method, values, self.camera)

    @staticmethod
    def from_numpy(device: Device, state: State) -> GpuState:
        """The same state on the GPU."""
        values = state.values
        kept = np.concatenate([values[..., _as_slice(TEMPORAL.places[name])] for name in STATE_ORDER], axis=-1)
        shown = np.zeros((*values.shape[:2], 4), dtype=np.float32)
        shown[..., :3] = state.stabilised
        return GpuState(device, state.method, state.camera, device.upload(kept), device.upload(shown))


def step(
    device: Device,
    denoiser: ConfiguredDenoiser,
    observation: GpuObservation,
    camera: Camera,
    state: GpuState | None,
    with_views: bool,
) -> tuple[GpuImage, GpuState]:
    """One frame of the stream, denoised, and the state for the next one."""
    settings, weights = denoiser.settings, denoiser.weights
    if not isinstance(settings, DenoiserSettings) or weights is None:
        raise DenoiseError(f"{denoiser.name} needs weights and DenoiserSettings.")
    if observation.neural_view is None and not settings.zero_shot:
        raise DenoiseError("the observation has no neural_view: its scene has no payload; set zero_shot=True.")
    if state is not None and (state.camera.width, state.camera.height) != (camera.width, camera.height):
        state = None  # another picture size starts anew
    pixels, nothing = camera.width * camera.height, device.buffer(16)
    pyramid = device.buffer(16 * _pyramid_texels(camera.width, camera.height))
    history, motion = device.buffer(64 * pixels), device.buffer(8 * pixels)
    kept, shown = device.buffer(48 * pixels), device.buffer(16 * pixels)
    details = device.buffer(64 * pixels if with_views else 16)
    parts: dict[str, Any] = {
        "step": step_uniform(device, camera, state, settings.static_tolerance, settings.far_depth),
        "settings": settings_uniform(device, "trust", settings),
        "gate": device.uniform("compose", "Gate", gamma=weights.gamma),
        "weights": device.upload(np.insert(packed(weights), HEAD_END, np.zeros(3, dtype=np.float32))),
        **{"observed": observation.observed, "neural_view": observation.neural_view or nothing, "pyramid": pyramid},
        "state_before": nothing if state is None else state.kept,
        "shown_before": nothing if state is None else state.shown,
        **{"history": history, "motion_px": motion, "state": kept, "shown": shown, "details": details},
    }
    tiles = tiles_of(camera.width, camera.height)
    with device.work() as work:
        work.run(device.compute("pyramid"), tiles, **parts)
        work.run(device.compute("reproject"), tiles, **parts)
        work.run(device.compute("trust", DETAILS=with_views), tiles, **parts)
        work.run(device.compute("compose", DETAILS=with_views), tiles, **parts)
    after = GpuState(device, denoiser.name, camera, kept, shown)

    def views() -> Mapping[str, Float32[Array, "h w _"]]:
        return _views(device, after, history, motion, details)

    image = GpuImage(device, camera.width, camera.height, shown, views=views if with_views else None)
    return image, after


def observation_on(device: Device, observation: Any, camera: Camera) -> GpuObservation:
    """An observation on the device; refused if it has not the camera's size."""
    if isinstance(observation, GpuObservation):
        height, width = observation.height, observation.width
    else:
        observation = observation.numpy()
        height, width = observation.color.shape[:2]
    if (width, height) != (camera.width, camera.height):
        raise DenoiseError(
            f"the observation has {width}×{height} px, its camera {camera.width}×{camera.height}; "
            "pass the camera it was drawn with."
        )
    if isinstance(observation, Observation):
        picture = np.concatenate([observation.color, observation.depth[..., None]], axis=-1)
        view = None if observation.neural_view is None else device.upload(observation.neural_view)
        return GpuObservation(device, width, height, device.upload(picture), device.upload(observation.alpha), view)
    return observation


def step_uniform(
    device: Device, camera: Camera, state: Any, static_tolerance: float, far_depth: float, forward: bool = False
) -> Buffer:
    """Cameras and motion of a step; `state` is that of the frame before, or None.

    The motion takes points of this frame's camera to the one before, or `forward` those of the one before to this.
    """
    before = camera if state is None else state.camera
    to, source = (camera, before) if forward else (before, camera)
    motion = CameraMotion.between(to, source, static_tolerance)
    rows = np.concatenate([motion.rotation_change, motion.translation[:, None]], axis=1)
    lens = ("fx", "fy", "cx", "cy")
    return device.uniform(
        "pyramid",
        "Step",
        **{name: getattr(camera, name) for name in ("width", "height", *lens)},
        **{f"before_{name}": getattr(before, name) for name in lens},
        **{f"m{i}{j}": rows[i, j] for i in range(3) for j in range(4)},
        has_history=state is not None,
        is_static=state is not None and motion.static,
        far_depth=far_depth,
    )


def settings_uniform(device: Device, shader: str, settings: Settings) -> Buffer:
    """Settings as spec.wgsl declares them; a choice by name is passed by its number."""
    hints, values = get_type_hints(type(settings)), {}
    for each in fields(settings):
        value = getattr(settings, each.name)
        choices = get_args(hints[each.name]) if get_origin(hints[each.name]) is Literal else ()
        if any(isinstance(choice, str) for choice in choices):
            value = choices.index(value)
        values[each.name] = value
    return device.uniform(shader, type(settings).__name__, **values)


def _views(
    device: Device, state: GpuState, history: Buffer, motion: Buffer, details: Buffer
) -> dict[str, Float32[Array, "h w _"]]:
    """The intermediate results by name."""
    size = (state.camera.height, state.camera.width)
    plain = state.numpy()
    filtered, ellipse, composite, smoothed = np.split(read_plane(device, details, size, 16), 4, axis=-1)
    relative_depth = read_plane(device, history, size, 16)[..., 15:]
    luma = plain.accumulated[..., :1]
    return {
        "composite": composite[..., :3],
        "filtered": filtered[..., :3],
        "gate": composite[..., 3:],
        "relative_depth": np.where(relative_depth < 0, np.float32(1), relative_depth),
        "motion_px": read_plane(device, motion, size, 2),
        "smoothed": smoothed[..., :3],
        "accumulated": rgb_from_ycocg(plain.accumulated),
        "denoised": rgb_from_ycocg(plain.denoised),
        **{f"{path}_trust": getattr(plain, f"{path}_trust")[..., None] for path in ("accumulated", "denoised")},
        **{f"{path}_frames": getattr(plain, f"{path}_frames")[..., None] for path in ("accumulated", "denoised")},
        "variance": np.maximum(plain.squared_luma[..., None] - luma * luma, 0),
        "ellipse": ellipse,
    }


def _pyramid_texels(width: int, height: int) -> int:
    total = 0
    for _ in range(4):
        total += width * height
        width, height = (width + 1) // 2, (height + 1) // 2
    return total


def _as_slice(place: Any) -> slice:
    return place if isinstance(place, slice) else slice(place, place + 1)
