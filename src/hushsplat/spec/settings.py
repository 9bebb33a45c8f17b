"""All settings of the denoiser: the paper's constants, and a switch for each part that its ablations remove."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Literal, get_args

from hushsplat.types.errors import DenoiseError

TrustMode = Literal["learned", "one", "heuristic"]
GateMode = Literal["learned", 0, 1]


@dataclass(frozen=True)
class HushConfig:
    """Settings of the denoiser; what a field does not name is fixed in docs/denoiser.md."""

    # frames, >= 1: longest history of the accumulated path; more is calmer and slower to forget.
    # Paper, "Stage-4 training configuration": n_max accumulated.
    accumulated_cap_frames: float = 128.0
    # frames, >= 1: longest history of the denoised path; fewer react faster.
    # Paper, "Stage-4 training configuration": n_max denoised.
    denoised_cap_frames: float = 24.0
    # frames, > 0: how fast the gate hands over to the accumulated path. Paper, equation of the gate: τ = 8; ours is
    # shorter because the smoothed mean is calm sooner (docs/denoiser.md).
    tau_frames: float = 2.0
    # px, > 0: the motion whose compressed magnitude is one half. Paper, "Reprojection and Trust Features": m/(m+20).
    motion_scale_px: float = 20.0
    # world units, > 0: depth where neither a pixel nor its neighbours hit anything.
    # Paper, "Reprojection and Trust Features": "the far plane"; its distance is ours.
    far_depth: float = 1000.0
    # largest entry of previous-from-current less the identity, >= 0: up to here the camera counts as static.
    # Paper, appendix "STAB": "tolerance-based detection on the camera matrix"; the number is ours.
    static_tolerance: float = 1e-6

    # Trust of the accumulated path: predicted, always 1, or exp(-sigma · relative depth difference).
    # Paper, "Ablations".
    trust: TrustMode = "learned"
    # no unit, >= 0: how fast the heuristic trust falls with the relative depth difference; not used otherwise.
    # Paper, "Ablations": grid-searched there; the default is ours.
    sigma: float = 10.0
    # Without it the denoised path means the raw colour. Paper, "Ablations": w/o spatial filter.
    spatial_filter: bool = True
    # Before the gate, neighbours calm the accumulated path where their lumas agree. Ours; the paper has no such pass.
    smooth: bool = True
    # standard errors of the mean, >= 0: a neighbour that differs by this much weighs 1/e. Ours.
    smooth_errors: float = 2.0
    # The gate: learned, or g fixed to 0 (accumulated path only) or 1 (denoised path only).
    # Paper, appendix "Variance Gate Ablation".
    gate: GateMode = "learned"
    # For scenes without a payload: V2 is fed as 0 and the filter is isotropic. Paper, "Zero-Shot Transfer".
    zero_shot: bool = False

    # The last pass, against residual jitter. Paper, "Ablations": w/o stabilization pass.
    stabilise: bool = True
    # no unit, 0..1: weight of the frame shown before. Paper, appendix "STAB": a.
    stabilise_weight: float = 0.9
    # px, > 0: a pixel that moves this far keeps half of that weight. Ours: the paper's weight is the same at any
    # motion, which at its 300 frames per second is about the same thing; at 30 it blurs (docs/denoiser.md).
    stabilise_motion_px: float = 0.5
    # colour, >= 0: how far the frame before may leave the range of the neighbourhood. Paper, appendix "STAB": s.
    stabilise_slack: float = 0.04
    # no unit, 0..1: relative depth difference above which the frame before is dropped. Paper, appendix "STAB".
    stabilise_depth: float = 0.1
    # colour, >= 0: a frame before that differs by less is kept after all. Paper, appendix "STAB": color fix.
    stabilise_rescue: float = 0.10

    def __post_init__(self) -> None:
        self._in_range("accumulated_cap_frames", 1.0, 1e6)
        self._in_range("denoised_cap_frames", 1.0, 1e6)
        self._in_range("tau_frames", 1e-6, 1e6)
        self._in_range("motion_scale_px", 1e-6, 1e6)
        self._in_range("far_depth", 1e-6, 1e9)
        self._in_range("static_tolerance", 0.0, 1.0)
        self._in_range("sigma", 0.0, 1e6)
        self._in_range("smooth_errors", 0.0, 1e6)
        self._in_range("stabilise_weight", 0.0, 1.0)
        self._in_range("stabilise_motion_px", 1e-6, 1e9)
        self._in_range("stabilise_slack", 0.0, 1e9)
        self._in_range("stabilise_depth", 0.0, 1.0)
        self._in_range("stabilise_rescue", 0.0, 1e9)
        self._one_of("trust", get_args(TrustMode))
        self._one_of("gate", get_args(GateMode))
        for name in ("spatial_filter", "smooth", "zero_shot", "stabilise"):
            self._one_of(name, (True, False))

    def _in_range(self, name: str, least: float, largest: float) -> None:
        value = getattr(self, name)
        number = isinstance(value, (int, float)) and not isinstance(value, bool) and math.isfinite(value)
        if not (number and least <= value <= largest):
            raise DenoiseError(f"{name} must be a number from {least:g} to {largest:g}, got {value!r}.")
        object.__setattr__(self, name, float(value))  # 8 means 8.0

    def _one_of(self, name: str, choices: tuple[object, ...]) -> None:
        value = getattr(self, name)
        if not any(value == choice and type(value) is type(choice) for choice in choices):
            options = ", ".join(repr(choice) for choice in choices)
            raise DenoiseError(f"{name} must be one of {options}, got {value!r}.")


PAPER = HushConfig(tau_frames=8.0, smooth=False, stabilise_motion_px=1e9)  # its passes and constants
