"""What denoisers keep from frame to frame: the layout of each state, declared once, and the state of the CPU."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import Any

import numpy as np
from jaxtyping import Float32
from numpy import ndarray as Array
from PIL import Image as Pillow

from hushsplat.types.camera import Camera
from hushsplat.types.errors import DenoiseError

KEPT_FRAMES = 3.0  # ours, by eye: history of another picture size counts as few frames, new ones take over at once


@dataclass(frozen=True)
class Channel:
    """A named run of floats of each pixel."""

    name: str
    floats: int
    meaning: str


@dataclass(frozen=True)
class StateLayout:
    """All channels of a state, in the order in which they lie in memory."""

    name: str
    channels: tuple[Channel, ...]

    @cached_property
    def floats(self) -> int:
        """Per pixel."""
        return sum(channel.floats for channel in self.channels)

    @cached_property
    def places(self) -> Mapping[str, Any]:
        """Name: index of a single float, slice of several."""
        places: dict[str, Any] = {}
        start = 0
        for channel in self.channels:
            places[channel.name] = start if channel.floats == 1 else slice(start, start + channel.floats)
            start += channel.floats
        return places


TEMPORAL = StateLayout(
    "temporal",
    (
        Channel("accumulated", 3, "S, the mean of raw colours: YCoCg"),
        Channel("squared_luma", 1, "mean of Y² of the raw colours"),
        Channel("accumulated_frames", 1, "n_s, history length of the accumulated path, frames"),
        Channel("accumulated_trust", 1, "t_s, 0..1"),
        Channel("denoised", 3, "D, the mean of filtered colours: YCoCg"),
        Channel("denoised_frames", 1, "n_h, history length of the denoised path, frames"),
        Channel("denoised_trust", 1, "t_h, 0..1"),
        Channel("stabilised", 3, "the frame shown last: RGB"),
        Channel("depth", 1, "hole-filled depth: camera-space z, world units, > 0"),
        Channel("spare", 1, "unused; a pixel is 64 bytes, one cache line"),
    ),
)
MEAN = StateLayout("mean", (Channel("mean", 3, "mean RGB since the camera stopped"),))
TAA = StateLayout(
    "taa",
    (Channel("mean", 3, "mean RGB"), Channel("history_frames", 1, "history length"), Channel("spare", 4, "unused")),
)
ST_TAA = StateLayout(
    "st-taa",
    (
        Channel("mean", 3, "mean RGB"),
        Channel("history_frames", 1, "history length"),
        Channel("position", 3, "mean position in the camera's space"),
        Channel("spare", 1, "unused"),
    ),
)
SVGF = StateLayout(
    "svgf",
    (
        Channel("mean", 3, "integrated RGB"),
        Channel("moments", 2, "integrated luminance and its square"),
        Channel("history_frames", 1, "history length"),
        Channel("depth", 1, "hole-filled depth"),
        Channel("spare", 1, "unused"),
    ),
)
ACTIVE_SET = StateLayout("active-set", ())  # nothing per pixel: a bit per Gaussian and depths per 4×4 px cell
LAYOUTS = {layout.name: layout for layout in (TEMPORAL, MEAN, TAA, ST_TAA, SVGF)}


class StateChannels:
    """Access to the channels of `values` by name (`state.accumulated`), whatever kind of array holds them."""

    layout: StateLayout
    values: Any  # [h, w, layout.floats]

    def __getattr__(self, name: str) -> Any:
        if name.startswith("__") or name in ("layout", "values"):
            raise AttributeError(name)
        place = self.layout.places.get(name)
        if place is None:
            raise AttributeError(f"a {self.layout.name} state has no channel '{name}'")
        return self.values[..., place]


@dataclass(frozen=True)
class State(StateChannels):
    """A denoiser's memory on the CPU; its channels have the names of its layout.

    Attributes:
        method: the denoiser it belongs to; another one refuses it.
        values: [h, w, floats of the layout].
        camera: of the frame that it was made by.
        layout: names of the channels.
        frames: since the last restart, where a method counts them for the whole picture.
    """

    method: str
    values: Float32[Array, "h w c"]
    camera: Camera
    layout: StateLayout = field(default=TEMPORAL, repr=False)
    frames: int = 0

    def __post_init__(self) -> None:
        expected = (self.camera.height, self.camera.width, self.layout.floats)
        if self.values.shape != expected:
            raise DenoiseError(
                f"a state of shape {self.values.shape} does not fit its camera; {self.camera.width}×"
                f"{self.camera.height} px need {expected}. Pass None to start without history."
            )

    def numpy(self) -> State:
        """Itself: its arrays are numpy's already."""
        return self


def resized(state: State, camera: Camera) -> State:
    """A temporal state at the camera's picture size, its history cut to KEPT_FRAMES."""
    planes = [
        # Depths are not interpolated: between two of them there is no surface.
        _resized_plane(state.values[..., place], camera, nearest=place == state.layout.places["depth"])
        for place in range(state.layout.floats)
    ]
    values = np.stack(planes, axis=-1)
    after = replace(state, values=values, camera=state.camera.resized(camera.width, camera.height))
    for frames in (after.accumulated_frames, after.denoised_frames):
        frames.clip(None, KEPT_FRAMES, out=frames)
    return after


def _resized_plane(plane: Float32[Array, "h w"], camera: Camera, nearest: bool) -> Float32[Array, "h2 w2"]:
    method = Pillow.Resampling.NEAREST if nearest else Pillow.Resampling.BILINEAR
    found = Pillow.fromarray(np.ascontiguousarray(plane)).resize((camera.width, camera.height), method)
    return np.asarray(found)


def check_state_of(state: Any, method: str) -> None:
    """Refuse another method's state by name."""
    if state is None:
        return
    found = getattr(state, "method", type(state).__name__)
    if found != method:
        raise DenoiseError(
            f"a state of '{found}' was given to '{method}'; pass the state that '{method}' returned, or None to start."
        )
