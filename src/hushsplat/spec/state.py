"""What the denoiser keeps from frame to frame: 16 floats a pixel, and the camera they were made with."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from jaxtyping import Float32
from numpy import ndarray as Array

from hushsplat.types.camera import Camera
from hushsplat.types.errors import DenoiseError

CHANNELS = 16


class StateChannels:
    """Names for the channels of `values`, whatever kind of array holds them; all are views, nothing is copied."""

    values: Any  # [h, w, 16]

    @property
    def accumulated(self) -> Any:
        """S, the mean of raw colours: YCoCg."""
        return self.values[..., 0:3]

    @property
    def squared_luma(self) -> Any:
        """The mean of Y² of the raw colours."""
        return self.values[..., 3]

    @property
    def accumulated_frames(self) -> Any:
        """n_s, the history length of the accumulated path."""
        return self.values[..., 4]

    @property
    def accumulated_trust(self) -> Any:
        """t_s, 0..1."""
        return self.values[..., 5]

    @property
    def denoised(self) -> Any:
        """D, the mean of filtered colours: YCoCg."""
        return self.values[..., 6:9]

    @property
    def denoised_frames(self) -> Any:
        """n_h, the history length of the denoised path."""
        return self.values[..., 9]

    @property
    def denoised_trust(self) -> Any:
        """t_h, 0..1."""
        return self.values[..., 10]

    @property
    def stabilised(self) -> Any:
        """The frame shown last: RGB."""
        return self.values[..., 11:14]

    @property
    def depth(self) -> Any:
        """Hole-filled depth: camera-space z in world units, > 0."""
        return self.values[..., 14]


@dataclass(frozen=True)
class TemporalState(StateChannels):
    """The denoiser's memory; its channels have the names of `StateChannels`, the sixteenth is spare."""

    values: Float32[Array, "h w 16"]
    camera: Camera

    def __post_init__(self) -> None:
        expected = (self.camera.height, self.camera.width, CHANNELS)
        if self.values.shape != expected:
            raise DenoiseError(
                f"a state of shape {self.values.shape} does not fit its camera; {self.camera.width}×"
                f"{self.camera.height} px need {expected}. Pass None to start without history."
            )
