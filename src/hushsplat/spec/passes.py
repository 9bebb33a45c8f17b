"""The passes of the paper's denoiser in order, and the intermediate results (views) that they leave.

docs/denoiser.md defines each; `engines/torch/pipeline.py` is the definition in code.
"""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class View:
    """An intermediate result that can be looked at: [h, w, floats]."""

    name: str
    floats: int
    meaning: str
    written: bool = False  # engines write it into one buffer, in this order; the others follow from the state


VIEWS = {
    view.name: view
    for view in (
        View("composite", 3, "RGB before stabilisation", written=True),
        View("filtered", 3, "RGB of this frame after the spatial filter", written=True),
        View("gate", 1, "g, 0..1: share of the denoised path", written=True),
        View("relative_depth", 1, "r, 0..1: relative difference to the depth seen there before", written=True),
        View("motion_px", 2, "x and y to the place in the previous frame, previous - current", written=True),
        View("smoothed", 3, "S after smoothing, RGB", written=True),
        View("accumulated", 3, "S, the mean of raw colours, RGB"),
        View("denoised", 3, "D, the mean of filtered colours, RGB"),
        View("accumulated_trust", 1, "t_s, 0..1"),
        View("denoised_trust", 1, "t_h, 0..1"),
        View("accumulated_frames", 1, "n_s, frames"),
        View("denoised_frames", 1, "n_h, frames"),
        View("variance", 1, "of the luma along the accumulated path"),
        View("ellipse", 4, "the filter's major and minor axis in px, cosine and sine of the major one's angle"),
    )
}
WRITTEN_VIEWS = tuple(view for view in VIEWS.values() if view.written)


@dataclass(frozen=True)
class Pass:
    """One pass: what it does, which settings it reads, and what it leaves."""

    name: str
    does: str
    settings: tuple[str, ...]  # of DenoiserSettings
    state: tuple[str, ...] = ()  # channels of the TEMPORAL layout that it writes
    views: tuple[str, ...] = ()  # of VIEWS


PASSES = (
    Pass(
        "reproject",
        "fill depth holes, move the previous state into this camera (16 taps), compare depths",
        ("far_depth", "static_tolerance", "resample_sharpness", "resample_clamp"),
        state=("depth",),
        views=("motion_px", "relative_depth"),
    ),
    Pass(
        "trust",
        "predict per-pixel history weights of both paths with two small CNNs",
        (
            *("trust", "sigma", "constant_trust", "motion_scale_px", "zero_shot"),
            *("accumulated_cap_frames", "denoised_cap_frames"),
        ),
    ),
    Pass(
        "filter",
        "anisotropic filter of this frame over a mip pyramid",
        ("spatial_filter", "filter_lean", "zero_shot"),
        views=("filtered", "ellipse"),
    ),
    Pass(
        "accumulate",
        "trust-weighted running means of raw and filtered colours, and of squared luma",
        ("history", "history_px", "motion_scale_px", "accumulated_cap_frames", "denoised_cap_frames"),
        state=(
            *("accumulated", "squared_luma", "accumulated_frames", "accumulated_trust"),
            *("denoised", "denoised_frames", "denoised_trust"),
        ),
        views=(
            *("accumulated", "denoised", "accumulated_frames", "denoised_frames"),
            *("accumulated_trust", "denoised_trust", "variance"),
        ),
    ),
    Pass(
        "smooth",
        "average the accumulated mean over 3×3 neighbours within its standard error",
        ("smooth", "smooth_errors", "error_floor", "pooled_frames"),
        views=("smoothed",),
    ),
    Pass(
        "gate",
        "blend the two means by the standard error of the accumulated one",
        ("gate", "tau_frames"),
        views=("gate", "composite"),
    ),
    Pass(
        "stabilise",
        "blend with the frame shown before, clamped to the neighbourhood",
        (
            *("stabilise", "stabilise_weight", "stabilise_motion_px"),
            *("stabilise_slack", "stabilise_depth", "stabilise_rescue"),
        ),
        state=("stabilised",),
    ),
)
