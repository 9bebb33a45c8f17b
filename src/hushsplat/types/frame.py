"""What a denoiser gives back."""

from __future__ import annotations

from dataclasses import dataclass

from jaxtyping import Float32
from numpy import ndarray as Array

VIEWS = {  # name: what it holds, all [h, w, channels]; trusts, gate and so on have one channel
    "composite": "RGB before stabilisation",
    "filtered": "RGB of this frame after the spatial filter",
    "accumulated": "S, the mean of raw colours, RGB",
    "smoothed": "S after neighbours calmed it, RGB",
    "denoised": "D, the mean of filtered colours, RGB",
    "accumulated_trust": "t_s, 0..1",
    "denoised_trust": "t_h, 0..1",
    "accumulated_frames": "n_s, frames",
    "denoised_frames": "n_h, frames",
    "gate": "g, 0..1: the share of the denoised path",
    "variance": "of the luma along the accumulated path",
    "motion_px": "x and y to the place in the previous frame, previous - current",
    "relative_depth": "r, 0..1: how far the depth is from the one seen there before",
    "ellipse": "the filter's major and minor axis in px, cosine and sine of the major one's angle",
}


@dataclass(frozen=True)
class Frame:
    """A denoised picture, and on request what lies behind it."""

    color: Float32[Array, "h w 3"]  # linear in the scene's own colour space, >= 0
    views: dict[str, Float32[Array, "h w _"]] | None = None  # by the names in VIEWS; None unless asked for
