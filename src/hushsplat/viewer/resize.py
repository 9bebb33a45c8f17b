"""What the denoiser remembers, at another picture size: a picture that turns sharp goes on instead of starting anew."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy import ndarray as Array
from PIL import Image

from hushsplat.spec.state import CHANNELS, TemporalState
from hushsplat.types.camera import Camera

# Ours, by eye: what was seen at another size counts as few frames, so that the sharp ones take over at once.
KEPT_FRAMES = 3.0


def resized_state(state: Any, camera: Camera) -> Any:
    """The state for a camera of another size; one of a baseline is given back as it is, and starts anew by itself."""
    if not isinstance(state, TemporalState) or state.values.shape[:2] == (camera.height, camera.width):
        return state
    values = np.empty((camera.height, camera.width, CHANNELS), dtype=np.float32)
    for channel in range(CHANNELS):
        values[..., channel] = _resized(state.values[..., channel], camera, smooth=channel != CHANNELS - 2)
    after = TemporalState(values, state.camera.resized(camera.width, camera.height))
    after.accumulated_frames.clip(None, KEPT_FRAMES, out=after.accumulated_frames)
    after.denoised_frames.clip(None, KEPT_FRAMES, out=after.denoised_frames)
    return after


def _resized(plane: Array, camera: Camera, smooth: bool) -> Array:
    """Depths are not mixed: between two of them there is nothing."""
    method = Image.Resampling.BILINEAR if smooth else Image.Resampling.NEAREST
    return np.asarray(Image.fromarray(np.ascontiguousarray(plane)).resize((camera.width, camera.height), method))
