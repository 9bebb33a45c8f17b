"""What lies behind a denoised frame, as pictures that a person can read; SHOWN lists them."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from jaxtyping import Float, Float32
from numpy import ndarray as Array

from hushsplat.spec.settings import DenoiserSettings
from hushsplat.types.errors import DenoiseError
from hushsplat.types.image import Image

ANCHORS = np.array(  # of the colour map, from low to high: dark violet, blue, teal, green, yellow
    [(68, 1, 84), (59, 82, 139), (33, 145, 140), (94, 201, 98), (253, 231, 37)], dtype=np.float64
)
FASTEST_PX = 64.0  # motion that is shown in full brightness
LARGEST_AXIS_PX = 16.0  # the pyramid ends at 8 px: nothing larger is filtered wider
CELL_PX = 24  # one ellipse is drawn in each square of this size
MAGNIFIED = 3.0  # how much larger than they are ellipses are drawn


@dataclass(frozen=True)
class Scale:
    """What the colours of a view mean."""

    title: str
    high: float  # the brightest; 0 is the darkest
    power: float = 1.0  # the place of a value is (value / high)^power: 1/2 shows small values better
    wheel: bool = False  # the hue is a direction: red points right, the rest of the circle follows clockwise

    def place(self, values: Float[Array, "*shape"]) -> Float[Array, "*shape"]:
        """Where values lie between 0 and `high`, 0..1."""
        return np.clip(np.nan_to_num(values) / self.high, 0, 1) ** self.power

    def value(self, place: float) -> float:
        """The value at a place."""
        return float(self.high * place ** (1 / self.power))

    def bar(self, width: int, height: int) -> Float32[Array, "h w 3"]:
        """The colours from left to right; all directions from top to bottom where the hue is one."""
        place = np.broadcast_to(np.linspace(0, 1, width), (height, width))
        if not self.wheel:
            return map_colors(place)
        angle = np.linspace(0, 2 * np.pi, height, endpoint=False)[:, None]
        return _hues(angle + 0 * place) * place[..., None].astype(np.float32)


SHOWN: dict[str, tuple[str, Scale | None]] = {  # name: (view of core.frame.VIEWS, what its colours mean)
    "trust_s": ("accumulated_trust", Scale("trust in accumulated", 1.0)),
    "trust_h": ("denoised_trust", Scale("trust in denoised", 1.0)),
    "frames_s": ("accumulated_frames", Scale("accumulated frames", 128.0, power=0.5)),
    "frames_h": ("denoised_frames", Scale("denoised frames", 24.0, power=0.5)),
    "gate": ("gate", Scale("share of denoised", 1.0)),
    "motion": ("motion_px", Scale("motion, px", FASTEST_PX, power=0.5, wheel=True)),
    "variance": ("variance", Scale("variance of luma", 0.25, power=0.5)),
    "depth_change": ("relative_depth", Scale("change of depth", 1.0)),
    "accumulated": ("accumulated", None),
    "smoothed": ("smoothed", None),
    "denoised": ("denoised", None),
    "filtered": ("filtered", None),
    "composite": ("composite", None),
    "ellipse": ("ellipse", Scale(f"filter axis, px (x{MAGNIFIED:g})", LARGEST_AXIS_PX, power=0.5)),
}


@dataclass(frozen=True)
class ViewPicture:
    """A view as a picture, and the scale of its colours; None if they are colours of the scene."""

    color: Float32[Array, "h w 3"]
    scale: Scale | None


def view_picture(frame: Image, show: str, config: DenoiserSettings | None = None) -> ViewPicture:
    """Draw a view of a frame that was made with views; the config gives frames their longest history."""
    if show not in SHOWN:
        raise DenoiseError(f"a view is one of {', '.join(SHOWN)}, got '{show}'.")
    if frame.views is None:
        raise DenoiseError(f"the frame has no views, so {show} cannot be shown; denoise with with_views=True.")
    config = config or DenoiserSettings()
    name, scale = SHOWN[show]
    values = frame.views[name]
    if show == "frames_s":
        scale = Scale("accumulated frames", config.accumulated_cap_frames, power=0.5)
    elif show == "frames_h":
        scale = Scale("denoised frames", config.denoised_cap_frames, power=0.5)
    if scale is None:
        return ViewPicture(values.astype(np.float32), None)
    if scale.wheel:
        return ViewPicture(_directions(values, scale), scale)
    if show == "ellipse":
        return ViewPicture(_ellipses(values, frame.views["filtered"], scale), scale)
    return ViewPicture(map_colors(scale.place(values[..., 0])), scale)


def map_colors(place: Float[Array, "h w"]) -> Float32[Array, "h w 3"]:
    """0..1 as colours from dark violet to yellow; lightness grows all the way, so that it also reads in grey."""
    at = np.nan_to_num(place) * (len(ANCHORS) - 1)
    low = np.minimum(at.astype(int), len(ANCHORS) - 2)
    part = (at - low)[..., None]
    return ((ANCHORS[low] * (1 - part) + ANCHORS[low + 1] * part) / 255).astype(np.float32)


def _directions(vectors: Float32[Array, "h w 2"], scale: Scale) -> Float32[Array, "h w 3"]:
    """Direction as hue, length as brightness."""
    x, y = np.moveaxis(vectors.astype(np.float64), -1, 0)
    return _hues(np.arctan2(y, x)) * scale.place(np.hypot(x, y))[..., None].astype(np.float32)


def _hues(angle: Float[Array, "h w"]) -> Float32[Array, "h w 3"]:
    thirds = 2 * np.pi / 3 * np.arange(3)  # where R, G and B are strongest
    return (0.5 + 0.5 * np.cos(angle[..., None] - thirds)).astype(np.float32)


def _ellipses(axes: Float32[Array, "h w 4"], behind: Float32[Array, "h w 3"], scale: Scale) -> Float32[Array, "h w 3"]:
    """An outline per cell, of the kernel in its middle, over the dimmed picture; large ones shrink to their cell."""
    height, width = axes.shape[:2]
    row, column = np.mgrid[0:height, 0:width]
    middle_y = np.minimum(row // CELL_PX * CELL_PX + CELL_PX // 2, height - 1)
    middle_x = np.minimum(column // CELL_PX * CELL_PX + CELL_PX // 2, width - 1)
    major, minor, cosine, sine = np.moveaxis(axes[middle_y, middle_x].astype(np.float64), -1, 0)
    shrink = np.minimum(MAGNIFIED, (CELL_PX / 2 - 1) / major)
    long_side, short_side = major * shrink, np.maximum(minor * shrink, 0.75)  # a line is still seen
    dx, dy = column - middle_x, row - middle_y
    along, across = dx * cosine + dy * sine, dy * cosine - dx * sine
    distance = np.hypot(along / long_side, across / short_side)
    # The outline is about a pixel wide: the slope of `distance` turns it into pixels.
    slope = np.hypot(along / long_side**2, across / short_side**2) / np.maximum(distance, 1e-6)
    line = np.clip(1.5 - np.abs(distance - 1) / np.maximum(slope, 1e-6), 0, 1)[..., None]
    color = map_colors(scale.place(major))
    return (line * color + (1 - line) * 0.35 * np.clip(behind, 0, 1)).astype(np.float32)
