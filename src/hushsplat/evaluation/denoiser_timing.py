"""Denoisers as things to time: a step that continues a moving camera's stream, alone or with the frame it takes."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import fields, is_dataclass, replace
from typing import Any

import numpy as np

from hushsplat.engines.cpu.denoise_names import LEARNED, METHODS, Denoiser
from hushsplat.engines.cpu.render_names import RenderOptions
from hushsplat.stream import Noise, observe
from hushsplat.types.camera import Camera
from hushsplat.types.gaussians import PAYLOAD_FLOATS, Gaussians
from hushsplat.types.observation import Observation

STEPS = {**{name: name for name in METHODS}, **{f"raw+{name}": name for name in METHODS}}  # row: denoiser
TURN_DEG = 0.25  # between two frames: a few px in any scene, as when walking
PYRAMID_BYTES = 16 * (1 + 1 / 4 + 1 / 16 + 1 / 64)  # a pixel: four levels of three colours and a filled depth


def prepared_step(
    row: str,
    denoiser: Denoiser,
    gaussians: Gaussians,
    camera: Camera,
    options: RenderOptions,
    frame: int,
) -> Callable[[], Any]:
    """What is timed, ready to run: the frame before has been seen; of a bare denoiser this one has been drawn too."""
    if row in METHODS:
        observation, state = continued_stream(denoiser, gaussians, camera, options, frame)
        return lambda: denoiser.step(observation, camera, state)
    state = _state_before(denoiser, gaussians, camera, options, frame)
    return lambda: denoiser.step(observe(gaussians, camera, Noise(frame=frame + 1), options), camera, state)


def continued_stream(
    denoiser: Denoiser,
    gaussians: Gaussians,
    camera: Camera,
    options: RenderOptions,
    frame: int,
) -> tuple[Observation, Any]:
    """A noisy frame of a moving camera, and the denoiser's state after the one before."""
    state = _state_before(denoiser, gaussians, camera, options, frame)
    return observe(gaussians, camera, Noise(frame=frame + 1), options), state


def _state_before(denoiser: Denoiser, gaussians: Gaussians, camera: Camera, options: RenderOptions, frame: int) -> Any:
    before = turned(camera, TURN_DEG)
    return denoiser.step(observe(gaussians, before, Noise(frame=frame), options), before, None)[1]


def with_random_payload(gaussians: Gaussians) -> Gaussians:
    """The scene, with a payload for kernels of many sizes and directions if it has none: to time `hush` on it."""
    if gaussians.payload is not None:
        return gaussians
    payload = np.random.default_rng(0).standard_normal((len(gaussians), PAYLOAD_FLOATS)).astype(np.float32)
    payload[:, :9] *= 2  # px at a distance of 1: V0 and V1 are of the size of a pixel
    return replace(gaussians, payload=payload)


def turned(camera: Camera, degrees: float) -> Camera:
    """The camera turned to the right."""
    sine, cosine = np.sin(np.radians(degrees)), np.cos(np.radians(degrees))
    turn = np.eye(4)
    turn[0, 0], turn[0, 2], turn[2, 0], turn[2, 2] = cosine, sine, -sine, cosine
    return replace(camera, world_from_camera=camera.world_from_camera @ turn)


def bytes_per_pixel(name: str, denoiser: Denoiser, camera: Camera) -> float:
    """What a denoiser holds while it works: the state it reads, the one it writes, and the learned one's pyramid."""
    neural_view = np.zeros((camera.height, camera.width, 4), dtype=np.float32)
    observation = Observation(neural_view[..., :3].copy(), neural_view[..., 0].copy(), neural_view[..., 0], neural_view)
    _, state = denoiser.step(observation, camera, None)
    held = _array_bytes(state) / (camera.height * camera.width)
    return 2 * held + (PYRAMID_BYTES if name in LEARNED else 0)


def _array_bytes(state: Any) -> int:
    """Of all arrays in a state."""
    if isinstance(state, np.ndarray):
        return state.nbytes
    if is_dataclass(state) and not isinstance(state, (type, Camera)):
        return sum(_array_bytes(getattr(state, field.name)) for field in fields(state))
    return 0
