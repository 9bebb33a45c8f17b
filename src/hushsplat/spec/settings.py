"""Settings of every denoiser, declared once; `python tools/generate.py` writes all that is derived from them.

The order of the fields is the order of the native and WGSL structs.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, ClassVar, Literal

from hushsplat.types.errors import DenoiseError, HushsplatError
from hushsplat.types.settings import Settings, Slider, documented, setting

TrustMode = Literal["learned", "one", "heuristic", "constant"]
HistoryMode = Literal["share", "length"]
GateMode = Literal["learned", 0, 1]
Discovery = Literal["everything", "tiles", "stream"]


@documented
@dataclass(frozen=True)
class DenoiserSettings(Settings):
    """Settings of the paper's denoiser; what no field names is fixed in docs/denoiser.md."""

    error: ClassVar[type[HushsplatError]] = DenoiseError

    accumulated_cap_frames: float = setting(
        128.0,
        "longest history of the accumulated path; longer is less noisy and slower to react.",
        unit="frames",
        low=1.0,
        high=1e6,
        source="Paper, Stage-4 training configuration: n_max accumulated",
        title="Longest history",
        slider=Slider(0.0, 9.0, 0.25, power_of_two=True),
    )
    denoised_cap_frames: float = setting(
        24.0,
        "longest history of the denoised path; shorter reacts faster.",
        unit="frames",
        low=1.0,
        high=1e6,
        source="Paper, Stage-4 training configuration: n_max denoised",
        title="Longest denoised history",
        slider=Slider(0.0, 8.0, 0.25, power_of_two=True),
    )
    tau_frames: float = setting(
        2.0,
        "how fast the gate hands over to the accumulated path.",
        unit="frames",
        low=1e-6,
        high=1e6,
        source="Paper, equation of the gate: 8; ours is shorter because the smoothed mean has less noise",
    )
    motion_scale_px: float = setting(
        20.0,
        "motion whose compressed magnitude m / (m + scale) is one half.",
        unit="px",
        low=1e-6,
        high=1e6,
        source="Paper, Reprojection and Trust Features",
    )
    far_depth: float = setting(
        1000.0,
        "depth where neither a pixel nor its neighbours hit anything.",
        unit="world units",
        low=1e-6,
        high=1e9,
        source="Paper, Reprojection and Trust Features: the far plane; its distance is ours",
    )
    static_tolerance: float = setting(
        1e-6,
        "largest entry of previous-from-current less the identity up to which the camera counts as static.",
        low=0.0,
        high=1.0,
        source="Paper, appendix STAB: tolerance-based detection; the number is ours",
    )
    trust: TrustMode = setting(
        "learned",
        "trust of the accumulated path: predicted, always one, exp(-sigma · relative depth difference), or "
        "`constant_trust`.",
        source="Paper, Ablations; a constant is ours",
    )
    sigma: float = setting(
        10.0,
        "how fast the heuristic trust falls with the relative depth difference; unused otherwise.",
        low=0.0,
        high=1e6,
        source="Paper, Ablations: grid-searched there; the default is ours",
    )
    constant_trust: float = setting(
        0.9, "trust of the accumulated path if it is constant; unused otherwise.", low=0.0, high=1.0, source="Ours"
    )
    history: HistoryMode = setting(
        "length",
        "what trust t leaves of n frames: a share, n t, or a length, min(n, t / (1 - t)).",
        source="Paper, EMA path update: share; length is ours",
    )
    history_px: float = setting(
        1.0,
        "a length is at least that of this much motion, on the accumulated path.",
        unit="px",
        low=0.0,
        high=1e9,
        source="Ours",
    )
    resample_sharpness: float = setting(
        0.6,
        "-a of the cubic that resamples history: 0.5 is Catmull-Rom, more is sharper.",
        low=0.0,
        high=1.0,
        source="Paper, Reprojection: 0.5; ours blurs less where history is resampled in every frame",
    )
    resample_clamp: bool = setting(
        True,
        "limit resampled history to the range of its four central taps.",
        source="Ours; the paper does not limit it",
    )
    filter_lean: float = setting(
        1 / 32,
        "how far the filter's major axis leans towards x, of the mean of both axes.",
        low=0.0,
        high=1.0,
        source="Ours, so that the angle has a gradient at the isotropic kernel; the paper has none",
    )
    spatial_filter: bool = setting(
        True, "filter this frame before the denoised path averages it.", source="Paper, Ablations: w/o spatial filter"
    )
    smooth: bool = setting(
        True,
        "average the accumulated mean over 3×3 neighbours whose lumas agree, before the gate.",
        source="Ours; the paper has no such pass",
    )
    smooth_errors: float = setting(
        2.0,
        "a neighbour whose luma differs by this much weighs 1/e.",
        unit="standard errors of the mean",
        low=0.0,
        high=1e6,
        source="Ours",
    )
    error_floor: float = setting(
        1e-4,
        "variance of the luma below which the standard error is linear in it.",
        low=0.0,
        high=1.0,
        source="Ours: within float32 cancellation; the paper has none",
    )
    pooled_frames: float = setting(
        8.0,
        "variance of shorter histories is taken from 3×3 pixels, in part; 0: never.",
        unit="frames",
        low=0.0,
        high=1e6,
        source="Ours; the paper has none",
    )
    gate: GateMode = setting(
        "learned",
        "learned, or fixed to 0 (accumulated path only) or 1 (denoised path only).",
        source="Paper, appendix Variance Gate Ablation",
    )
    zero_shot: bool = setting(
        False,
        "for scenes without a payload: V2 is 0 and the filter is isotropic.",
        source="Paper, Zero-Shot Transfer",
    )
    stabilise: bool = setting(
        True,
        "the last pass, against residual flicker.",
        source="Paper, Ablations: w/o stabilization pass",
    )
    stabilise_weight: float = setting(
        0.9,
        "weight of the frame shown before.",
        low=0.0,
        high=1.0,
        source="Paper, appendix STAB: a",
        title="Stabilisation",
        slider=Slider(0.0, 0.99, 0.01),
    )
    stabilise_motion_px: float = setting(
        0.5,
        "a pixel that moves this far keeps half of that weight.",
        unit="px",
        low=1e-6,
        high=1e9,
        source="Ours; the paper's weight is the same at any motion, which blurs at 30 frames a second",
    )
    stabilise_slack: float = setting(
        0.04,
        "how far the frame before may leave the range of the neighbourhood.",
        unit="colour",
        low=0.0,
        high=1e9,
        source="Paper, appendix STAB: s",
    )
    stabilise_depth: float = setting(
        0.1,
        "relative depth difference above which the frame before is dropped.",
        low=0.0,
        high=1.0,
        source="Paper, appendix STAB",
    )
    stabilise_rescue: float = setting(
        0.10,
        "a frame before that differs by less is kept after all.",
        unit="colour",
        low=0.0,
        high=1e9,
        source="Paper, appendix STAB: color fix",
    )


PAPER = DenoiserSettings(  # the paper's passes and constants, nothing of ours
    history="share",
    history_px=0.0,
    resample_sharpness=0.5,
    resample_clamp=False,
    filter_lean=0.0,
    smooth=False,
    error_floor=0.0,
    pooled_frames=0.0,
    tau_frames=8.0,
    stabilise_motion_px=1e9,
)


def _far_depth() -> Any:
    """The same setting in every baseline that reprojects."""
    return setting(1000.0, "as `far_depth` of the denoiser.", unit="world units", low=1e-6, high=1e9)


def _static_tolerance() -> Any:
    """The same setting in every baseline."""
    return setting(1e-6, "as `static_tolerance` of the denoiser.", low=0.0, high=1.0)


@documented
@dataclass(frozen=True)
class MeanSettings(Settings):
    """Settings of `mean`."""

    error: ClassVar[type[HushsplatError]] = DenoiseError

    static_tolerance: float = _static_tolerance()


@documented
@dataclass(frozen=True)
class TaaSettings(Settings):
    """Settings of `taa`."""

    error: ClassVar[type[HushsplatError]] = DenoiseError

    cap_frames: float = setting(128.0, "longest history; as the other running means.", unit="frames", low=1.0, high=1e6)
    gamma: float = setting(
        1.0,
        "how far history may leave the neighbourhood.",
        unit="standard deviations",
        low=0.0,
        high=1e6,
        source="Salvi 2016: 0.75 to 1.25",
    )
    far_depth: float = _far_depth()
    static_tolerance: float = _static_tolerance()


@documented
@dataclass(frozen=True)
class StTaaSettings(Settings):
    """Settings of `st-taa`."""

    error: ClassVar[type[HushsplatError]] = DenoiseError

    cap_frames: float = setting(
        128.0,
        "longest history.",
        unit="frames",
        low=1.0,
        high=1e6,
        source="Paper, ST-TAA (128); StochasticSplats' viewer",
    )
    reach: float = setting(
        100.0,
        "history farther than this from what is seen is not used.",
        unit="world units",
        low=0.0,
        high=1e9,
        source="StochasticSplats' viewer",
    )
    far_depth: float = _far_depth()
    static_tolerance: float = _static_tolerance()


@documented
@dataclass(frozen=True)
class SvgfSettings(Settings):
    """Settings of `svgf` and `svgf-tuned`; the defaults are the paper's (appendix SVGF Baseline Details)."""

    error: ClassVar[type[HushsplatError]] = DenoiseError

    alpha: float = setting(0.02, "least weight of a new colour.", low=0.0, high=1.0)
    moments_alpha: float = setting(0.02, "least weight of a new luminance and its square.", low=0.0, high=1.0)
    running_mean: bool = setting(True, "short histories: a new sample weighs 1 / length, if that is more.")
    depth_threshold: float = setting(
        0.4, "history is dropped unless 2 of the 4 nearest depths differ by less (relative).", low=0.0, high=1e6
    )
    sigma_depth: float = setting(0.3, "relative depth difference at which a tap weighs 1/e.", low=1e-6, high=1e6)
    sigma_luma: float = setting(
        8.0,
        "luminance difference at which a tap weighs 1/e.",
        unit="standard deviations",
        low=1e-6,
        high=1e6,
    )
    passes: int = setting(0, "0: the paper's one 3×3 pass; 1..5: à-trous passes of SVGF.", low=0.0, high=5.0)
    kernel: Literal[5, 3] = setting(5, "taps a side of an à-trous pass: 5 (B3 spline) or 3 (binomial).")
    feedback: bool = setting(True, "the first à-trous pass becomes the history; no effect where passes is 0.")
    far_depth: float = _far_depth()
    static_tolerance: float = _static_tolerance()


LITERAL_SVGF = SvgfSettings(running_mean=False)  # the paper's words; its history never starts, see docs/denoiser.md
# Found on our own scene by benchmarks/tune_svgf.py, and frozen: 28.46 dB there, where `svgf` has 27.73. (In two goes:
# with alpha up to 0.1 first, then from the best of that with more choices.) In the first go the best with several
# passes and the first fed back, as SVGF is known, had 26.48: what is fed back is blurred again in every frame.
TUNED_SVGF = SvgfSettings(
    alpha=0.3,
    moments_alpha=0.2,
    depth_threshold=0.7,
    sigma_depth=1.0,
    sigma_luma=2.0,
    passes=1,
    kernel=5,
    feedback=False,
)


@documented
@dataclass(frozen=True)
class ActiveSetSettings(Settings):
    """Settings of `hush` and `sorted`: how much is left out, and where new members come from."""

    error: ClassVar[type[HushsplatError]] = DenoiseError

    prune: float = setting(
        1 / 192,
        "a Gaussian is left out of a 4×4 px cell in which its weight stays below this.",
        low=1e-6,
        high=0.5,
        source="Ours; benchmarks/hush.py",
    )
    stop: float = setting(0.01, "transmittance at which a cell is finished.", low=1e-6, high=0.5, source="Ours")
    reach_px: float = setting(
        2.0,
        "slack around the place in the last frame whose transmittance is read.",
        unit="px",
        low=0,
        high=64,
        source="Ours",
    )
    ellipse_error: float = setting(
        1 / 32,
        "how far one ellipse may be off in alpha before the ray form is used; 0: always the ray form.",
        low=0,
        high=1,
        source="Ours",
    )
    discovery: Discovery = setting(
        "tiles",
        "where new members come from: everything (no set is kept), tiles (all Gaussians in some tiles of each frame), "
        "or stream (winners of the stochastic raster in some tiles of each frame).",
        source="Ours",
    )
    period: int = setting(
        32,
        "each tile of 64×64 px is searched so often, and at once where nothing is known.",
        unit="frames",
        low=1,
        high=1000000,
        source="Ours",
    )
    parallax_px: float = setting(
        4.0,
        "a tile is searched as well when near and far have moved apart by this in it, or things may have come in.",
        unit="px",
        low=1e-6,
        high=1e9,
        source="Ours",
    )
    color_deg: float = setting(
        1.0,
        "members keep their colours while the eye has moved by no more than this as they see it; 0: never.",
        unit="degrees",
        low=0,
        high=45,
        source="Ours; benchmarks/hush.py",
    )
    first_samples: int = setting(
        3, "samples per pixel of `stream` where nothing is known yet.", low=1, high=4, source="Ours"
    )


QUALITY = {  # presets of hush; docs/hush.md has the cost and quality of each
    "fast": ActiveSetSettings(prune=1 / 128, stop=0.02, parallax_px=8.0, color_deg=2.0),
    "balanced": ActiveSetSettings(),
    "best": ActiveSetSettings(prune=1 / 512, stop=1 / 255, ellipse_error=1 / 256, color_deg=0.0),
}
SORTED = ActiveSetSettings(discovery="everything")

DECLARED_SETTINGS = (DenoiserSettings, MeanSettings, TaaSettings, StTaaSettings, SvgfSettings, ActiveSetSettings)
