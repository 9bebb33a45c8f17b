"""From who is seen to what is seen: a visibility sample decoded to colour, depth, alpha and the denoiser's payload."""

from __future__ import annotations

import numpy as np
from jaxtyping import Float32
from numpy import ndarray as Array

from hushsplat.engines.cpu import _engine
from hushsplat.engines.cpu.arrays import empty_float32
from hushsplat.engines.cpu.prepare import RenderOptions, engine_background, engine_camera
from hushsplat.types.camera import Camera
from hushsplat.types.errors import RenderError
from hushsplat.types.gaussians import Gaussians
from hushsplat.types.observation import Observation, VisibilitySample


def decode(
    visibility: VisibilitySample,
    gaussians: Gaussians,
    camera: Camera,
    options: RenderOptions | None = None,
) -> Observation:
    """One noisy frame: colour by spherical harmonics, depth, alpha, and V0..V3 where the scene has a payload."""
    options = options or RenderOptions()
    depth, alpha = _depth_and_alpha(visibility)
    payload = gaussians.payload
    return Observation(
        color=decode_color(visibility, gaussians, camera, options),
        depth=depth,
        alpha=alpha,
        neural_view=None if payload is None else decode_neural_view(visibility, payload, camera, options.threads),
    )


def _depth_and_alpha(visibility: VisibilitySample) -> tuple[Float32[Array, "h w"], Float32[Array, "h w"]]:
    hit = visibility.primitive_id >= 0
    if len(hit) == 1:  # by far the commonest case, and it has nothing to average
        return visibility.depth[0], hit[0].astype(np.float32)
    hits = hit.sum(axis=0, dtype=np.float32)
    return visibility.depth.sum(axis=0) / np.maximum(hits, 1), hits / np.float32(len(hit))


def decode_color(
    visibility: VisibilitySample,
    gaussians: Gaussians,
    camera: Camera,
    options: RenderOptions | None = None,
) -> Float32[Array, "h w 3"]:
    """The mean colour over the samples, the background where nothing was hit."""
    options = options or RenderOptions()
    height, width = visibility.primitive_id.shape[1:]
    if (height, width) != (camera.height, camera.width):
        raise RenderError(
            f"a visibility sample of {width}×{height} px cannot be decoded with a camera of "
            f"{camera.width}×{camera.height} px; give the camera it was drawn with."
        )
    color = empty_float32(camera.height, camera.width, 3)
    try:
        _engine.decode(
            np.ascontiguousarray(visibility.primitive_id),
            engine_camera(camera, options.near),
            np.ascontiguousarray(gaussians.sh),
            np.ascontiguousarray(gaussians.means),
            engine_background(options),
            options.threads,
            color,
        )
    except IndexError as error:
        raise _another_scene(error) from None
    return color


def decode_channels(
    visibility: VisibilitySample,
    channels: Float32[Array, "n c"],  # any values per Gaussian
    fill: float = 0.0,  # where nothing was hit
) -> Float32[Array, "h w c"]:
    """The mean of any per-Gaussian channels over the samples."""
    least, largest = visibility.primitive_id.min(initial=-1), visibility.primitive_id.max(initial=-1)
    if least < -1 or largest >= len(channels):
        worst = least if least < -1 else largest
        raise _another_scene(f"primitive {worst} was seen, but there are {len(channels)}")
    padded = np.concatenate([channels, np.full((1, channels.shape[1]), fill, dtype=np.float32)])
    mean = np.zeros((*visibility.depth.shape[1:], channels.shape[1]), dtype=np.float32)
    for plane in visibility.primitive_id:  # -1 picks the last row, which is the fill
        mean += padded[plane]
    return mean / np.float32(len(visibility.primitive_id))


def decode_neural_view(
    visibility: VisibilitySample,
    payload: Float32[Array, "n 10"],
    camera: Camera,
    threads: int = 0,  # workers, 0: all cores
) -> Float32[Array, "h w 4"]:
    """V0..V3 (paper, "Spatial Anisotropic Mipmap Filtering"): |view vector · camera axis|, V0 and V1 over depth.

    The payload's three view vectors face up, right and forward, in world space; its last float is the blur V3.
    """
    right, down, forward = camera.world_from_camera[:3, :3].T.astype(np.float32)
    view = empty_float32(*visibility.primitive_id.shape[1:], 4)
    try:
        _engine.decode_view(
            np.ascontiguousarray(visibility.primitive_id),
            np.ascontiguousarray(visibility.depth),
            np.ascontiguousarray(payload),
            np.stack([-down, right, forward]),
            threads,
            view,
        )
    except IndexError as error:
        raise _another_scene(error) from None
    return view


def _another_scene(found: object) -> RenderError:
    """An id that the scene does not have; the native decoder looks at every one before it reads there."""
    return RenderError(f"{found}; give the scene that was drawn.")
