"""How a scene is trained: the settings of the stages, the presets, and their JSON beside a run.

Numbers are those of 2DGS and 3DGS where they have them, and the paper's (appendix, "Training") where it names them.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import asdict, dataclass, fields
from typing import Any, ClassVar, Literal, TypeVar, get_origin, get_type_hints

from hushsplat.types.errors import HushsplatError, TrainingError
from hushsplat.types.options import MAX_THREADS
from hushsplat.types.settings import Settings, documented, setting

TABLE = "Paper, Stage-4 training configuration"
LARGEST_SEED = 2**32 - 1

Kind = TypeVar("Kind", bound=Settings)


@documented
@dataclass(frozen=True)
class Rates(Settings):
    """Step sizes of Adam."""

    error: ClassVar[type[HushsplatError]] = TrainingError

    position: float = setting(1.6e-4, "at the start, times the extent of the cameras.", low=0)
    position_end: float = setting(1.6e-6, "at the end; falls exponentially in between.", low=0)
    harmonics: float = setting(2.5e-3, "of the constant band; the others get a twentieth.", low=0)
    opacity: float = setting(0.05, "of the logit.", low=0)
    scale: float = setting(5e-3, "of the logarithm.", low=0)
    rotation: float = setting(1e-3, "of the quaternion.", low=0)
    end_share: float = setting(1.0, "what is left of the other rates at the end.", low=0, high=1)


@documented
@dataclass(frozen=True)
class Densification(Settings):
    """When surfels are added, removed and made transparent."""

    error: ClassVar[type[HushsplatError]] = TrainingError

    first_step: int = setting(500, "nothing is added or removed up to this step.", low=0)
    last_step: int = setting(15_000, "nothing is added or removed after this step.", low=0)
    every: int = setting(100, "how often surfels are added and removed.", unit="steps", low=1)
    gradient: float = setting(
        2e-4,
        "mean screen-space gradient (the picture is -1..1) from which a surfel is cloned or split.",
        low=0,
        above=True,
        source="3DGS",
    )
    dense_share: float = setting(0.01, "of the extent: larger surfels are split, smaller ones cloned.", low=0)
    prune_opacity: float = setting(0.05, "less opaque surfels are removed.", low=0, high=1, source="2DGS")
    prune_share: float = setting(0.1, "of the extent: larger surfels are removed after the first reset.", low=0)
    reset_every: int = setting(3_000, "how often all opacities fall to `reset_opacity`.", unit="steps", low=1)
    reset_opacity: float = setting(0.01, "what opacities are reset to.", low=0, high=1, above=True)
    most_surfels: int = setting(
        3_000_000, "largest number of surfels.", low=1, source='Paper, "we cap the Gaussian count at 3-million"'
    )
    even_growth: bool = setting(
        False,
        "let the number of surfels grow evenly, the largest gradients first; else a low `gradient` spends the "
        "whole number on the blurred surfels of the first few hundred steps.",
        source="Ours",
    )


@documented
@dataclass(frozen=True)
class Stage1(Settings):
    """Vanilla 2DGS from sparse points, sorted by the depth of the centres."""

    error: ClassVar[type[HushsplatError]] = TrainingError

    steps: int = setting(30_000, "length of the stage.", low=1, source="Paper")
    rates: Rates = setting(Rates(), "step sizes of Adam.")
    densification: Densification = setting(Densification(), "when surfels are added and removed.")
    sh_degree: int = setting(3, "degree of the spherical harmonics.", low=0, high=3)
    sh_every: int = setting(1_000, "how often one more band of harmonics is trained.", unit="steps", low=1)
    dssim: float = setting(0.2, "share of 1 - SSIM in the loss, the rest is L1.", low=0, high=1, source="3DGS")
    normal_weight: float = setting(
        0.0, "weight of the normal consistency.", low=0, source="2DGS: 0.05. Paper: off, it costs about 1 dB"
    )
    normal_from: int = setting(7_000, "step from which normal consistency counts.", low=0, source="2DGS")
    distortion_weight: float = setting(
        0.0, "weight of the depth distortion.", low=0, source="2DGS: 1000 indoors, 100 outdoors, 0 by default"
    )
    distortion_from: int = setting(3_000, "step from which depth distortion counts.", low=0, source="2DGS")
    most_points: int = setting(100_000, "how many of the capture's points to begin with.", low=1)
    random_points: int = setting(50_000, "in place of points where the capture has none.", low=1)


@documented
@dataclass(frozen=True)
class Stage2(Settings):
    """Opacity only, sorted: floaters fade and are removed; geometry and colour stay."""

    error: ClassVar[type[HushsplatError]] = TrainingError

    steps: int = setting(1_000, "length of the stage, 0 leaves it out.", low=0, source="Paper")
    penalty: float = setting(0.003, "weight of the mean opacity in the loss.", low=0, source="Paper")
    prune_opacity: float = setting(0.05, "less opaque surfels are removed at the end.", low=0, high=1, source="Paper")
    rate: float = setting(0.05, "Adam's step size of the logit of opacity.", low=0)
    dssim: float = setting(0.2, "share of 1 - SSIM in the loss.", low=0, high=1)


@documented
@dataclass(frozen=True)
class Stage3(Settings):
    """Everything once more, sorted in every pixel."""

    error: ClassVar[type[HushsplatError]] = TrainingError

    steps: int = setting(3_000, "length of the stage, 0 leaves it out.", low=0, source="Paper")
    rates: Rates = setting(
        Rates(position=1.6e-5, opacity=0.025, end_share=0.1),
        "step sizes of Adam.",
        source="Ours: they begin where stage 1 has nearly ended",
    )
    dssim: float = setting(0.2, "share of 1 - SSIM in the loss.", low=0, high=1)
    made_up_views: int = setting(120, "cameras around the scene where there are no photographs.", low=2)
    least_opacity: float = setting(0.005, "less opaque surfels are removed at the end.", low=0, high=1)


@documented
@dataclass(frozen=True)
class ChainSizes(Settings):
    """How far chains of cameras move."""

    error: ClassVar[type[HushsplatError]] = TrainingError

    angle_deg: float = setting(3.0, "largest perturbation.", unit="degrees", low=0, source=TABLE)
    position_share: float = setting(0.003, "of the scene's radius: largest perturbation.", low=0, source=TABLE)
    meter: float = setting(1.0, "one metre; captures do not know their scale.", unit="world units", low=0, above=True)
    dolly_m: tuple[float, float] = setting(
        (0.5, 1.1), "shortest and longest lateral dolly.", unit="metres", low=0, source=TABLE
    )
    dolly_frames: int = setting(
        128, "a dolly goes that far in so many frames; shorter chains go a part of it.", low=2, source="Ours"
    )
    small_scale: float = setting(0.25, "of a large perturbation: a small one.", low=0, high=1, source="Ours")
    near_static_scale: float = setting(
        1 / 15, "of a large perturbation: a near-static one.", low=0, high=1, source="Paper, Synthetic temporal chains"
    )
    drift_frames: int = setting(
        16, "a drift goes as far as a large perturbation in so many frames.", low=1, source="Ours"
    )
    least_drift: float = setting(0.2, "the slowest drift, of the fastest.", low=0, high=1, source="Ours")
    knot_frames: int = setting(12, "a perturbation changes its direction about this often.", low=1, source="Ours")
    drift_share: float = setting(0.25, "of the chains that drift.", low=0, high=1, source=TABLE)
    dolly_share: float = setting(
        0.25, "of the chains that dolly; the other three classes share the rest.", low=0, high=1, source=TABLE
    )
    pace_share: float = setting(
        0.0, "of all chains that move at `pace_px` in place of the paper's classes.", low=0, high=1, source="Ours"
    )
    pace_px: tuple[float, float] = setting(
        (0.05, 12.0),
        "slowest and fastest pace, uniform in the logarithm.",
        unit="px per frame",
        low=0,
        above=True,
        source="Ours",
    )

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.drift_share + self.dolly_share > 1:
            raise TrainingError(
                f"drift_share and dolly_share must not be more than 1 together, "
                f"got {self.drift_share:g} and {self.dolly_share:g}."
            )
        for name in ("dolly_m", "pace_px"):
            first, last = getattr(self, name)
            if first > last:
                raise TrainingError(f"{name} must be a number and one that is not smaller, got {first:g} and {last:g}.")


@documented
@dataclass(frozen=True)
class Stage4(Settings):
    """Payload and denoiser, the scene frozen."""

    error: ClassVar[type[HushsplatError]] = TrainingError

    steps: int = setting(
        15_000, "length of the stage, 0 leaves it out.", low=0, source=f"{TABLE}; 4000 as transfer from trained weights"
    )
    method: Literal["paper", "temporal"] = setting(
        "paper", "the passes that are trained: the paper's, or those of `temporal`."
    )
    transfer: bool = setting(
        False,
        "fast transfer: begin with trained weights (--start, or those of the package), no gate warmup, and "
        "`transfer_near_static` and `transfer_disocclusion` in place of their weights.",
        source="Paper, Trust shaping",
    )
    payload: bool = setting(True, "train a payload; without it only the networks, zero-shot.")
    target: Literal["reference", "exact"] = setting(
        "reference", "the clean picture: sorted by centres (paper) or in every pixel."
    )
    network_rate: float = setting(
        1e-4,
        "Adam's step size of the networks; with 1e-3 and the paper's chains t_s saturates at 1 while they are short.",
        low=0,
        source="Ours",
    )
    payload_rate: float = setting(2e-2, "Adam's step size of the payload.", low=0, source="Ours")
    gamma_rate: float = setting(
        1e-2, "Adam's step size of the gate's gamma, about 3 where weights are about 0.3.", low=0, source="Ours"
    )
    end_share: float = setting(
        0.01, "what is left of all three rates at the end; they fall along a cosine.", low=0, high=1, source="Ours"
    )
    clip_gradient: float = setting(
        1.0, "largest norm of the gradient of the networks and gamma together.", low=0, above=True, source="Ours"
    )

    ssim: float = setting(0.05, "weight of 1 - SSIM beside L1.", low=0, source=TABLE)
    lpips: float = setting(0.01, "weight of LPIPS, where its weights are given.", low=0, source=TABLE)
    accumulated: float = setting(0.2, "weight of the accumulated path's own L1.", low=0, source=TABLE)
    trust_loss: float = setting(
        0.0,
        "weight of the trust loss, the convex surrogate whose minimum is the inverse-variance weight.",
        low=0,
        source="Ours; the paper has none",
    )

    temporal_share: float = setting(0.7, "of the steps that have a history.", low=0, high=1, source=TABLE)
    suffix_frames: int = setting(8, "the last frames of a chain are stochastic.", low=1, source=f"{TABLE}: K")
    gradient_frames: int = setting(
        1,
        "the gradient goes through so many of the last frames; 1: the state is detached, as in the paper.",
        low=1,
    )
    flight_share: float = setting(
        0.0,
        "of the chains with a history: a camera that rested takes off at `pace_px`, and all of its frames are "
        "stochastic, as in use; it has half to all of the longest chain's frames from the first step on.",
        low=0,
        high=1,
        source="Ours; 0: the paper's chains alone, whose trust comes out at 1 (docs/results.md)",
    )
    longest_chain: int = setting(
        128,
        "length of the chains at the end of the curriculum, which begins with 2.",
        unit="frames",
        low=2,
        source=TABLE,
    )
    curriculum_share: float = setting(
        0.8, "of the steps, after which chains are as long as they get.", low=0, high=1, above=True, source="Ours"
    )
    chains: ChainSizes = setting(ChainSizes(), "how far chains move.")
    window: tuple[int, int] = setting(
        (0, 0), "the part of a view that is drawn in a step; 0: all of it.", unit="px", low=0
    )

    first_blur: float = setting(
        1.854, "V3 of the first payload; its softplus is 2 px, the zero-shot kernel.", low=-10, high=10, source="Ours"
    )
    first_vectors: float = setting(
        0.1, "standard deviation of the first view vectors; |vector · axis| has no gradient at 0.", low=0, source="Ours"
    )
    near_static: float = setting(0.01, "weight that pulls both trusts to 1 on near-static chains.", low=0, source=TABLE)
    transfer_near_static: float = setting(0.005, "the same in transfer.", low=0, source=TABLE)
    disocclusion: float = setting(0.03, "weight that pulls the trusts to 0 in disoccluded pixels.", low=0, source=TABLE)
    transfer_disocclusion: float = setting(0.08, "the same in transfer: 0.05 more.", low=0, source=TABLE)
    disocclusion_depth: float = setting(
        0.02, "relative depth difference above which a pixel is disoccluded.", low=0, source=TABLE
    )
    disocclusion_opacity: float = setting(0.6, "only where the scene is this opaque.", low=0, high=1, source=TABLE)
    disocclusion_color: float = setting(0.05, "only where the colour differs by more.", low=0, source=TABLE)
    symmetry: float = setting(0.01, "weight of |a_x - a_y| of the filter.", low=0, source=TABLE)
    gate_warmup: int = setting(2_000, "only the denoised path is shown.", unit="steps", low=0, source=TABLE)


@documented
@dataclass(frozen=True)
class TrainSettings(Settings):
    """All that decides what a run gives; the same settings on the same machine give the same scene."""

    error: ClassVar[type[HushsplatError]] = TrainingError

    stage1: Stage1 = setting(Stage1(), "vanilla 2DGS.")
    stage2: Stage2 = setting(Stage2(), "opacities only.")
    stage3: Stage3 = setting(Stage3(), "everything, sorted in every pixel.")
    stage4: Stage4 = setting(Stage4(), "payload and denoiser.")
    width: int = setting(
        1600, "photographs are made this wide, never wider than they are.", unit="px", low=8, source="Paper"
    )
    hold_out: bool = setting(
        True,
        "train without every 8th view, which is measured; off: train on all, and measure the same.",
        source="Paper: on for Mip-NeRF 360, off for Tanks and Temples",
    )
    background: tuple[float, float, float] = setting((0.0, 0.0, 0.0), "RGB behind the scene.", low=0, high=1)
    seed: int = setting(0, "another seed, another order of views.", low=0, high=LARGEST_SEED)
    checkpoint_every: int = setting(500, "how often a checkpoint is written.", unit="steps", low=1)
    measure_every: int = setting(2_000, "how often the held-out views are measured.", unit="steps", low=1)
    preview_every: int = setting(500, "how often a preview is written.", unit="steps", low=1)
    log_every: int = setting(10, "how often the log is written.", unit="steps", low=1)
    device: str = setting("cpu", "of PyTorch, where stages 1 to 3 run; this version has kernels for cpu.")
    threads: int = setting(0, "workers of the CPU engine, 0: all cores; changes no result.", low=0, high=MAX_THREADS)


# What two CPU cores do in under an hour: ours, tried on bonsai at width 400 (docs/training.md). In so few steps
# opacities that were reset do not come back, so they are not reset.
SMALL = TrainSettings(
    stage1=Stage1(
        steps=7_000,
        densification=Densification(
            first_step=300,
            last_step=4_500,
            gradient=1e-4,
            prune_opacity=0.005,
            reset_every=10_000,
            most_surfels=150_000,
            even_growth=True,
        ),
        sh_degree=2,
    ),
    stage2=Stage2(steps=300),
    stage3=Stage3(steps=1_000),
    stage4=Stage4(
        steps=1_500,
        method="temporal",
        transfer=True,
        network_rate=5e-4,
        trust_loss=1.0,
        chains=ChainSizes(pace_share=0.5),
        window=(200, 144),
    ),
    width=400,
    measure_every=1_000,
)
PRESETS = {"paper": TrainSettings(), "small": SMALL}


def settings_json(settings: Settings) -> dict[str, Any]:
    """All settings as JSON values."""
    return json.loads(json.dumps(asdict(settings)))


def settings_from_json(kind: type[Kind], values: Any, name: str, place: str = "") -> Kind:
    """Settings from JSON values; what is missing, unknown or out of range is named (`name` is the file)."""
    if not isinstance(values, Mapping):
        raise TrainingError(f"{name}: {place.rstrip('.') or 'the file'} must be an object of settings.")
    hints, known = get_type_hints(kind), [each.name for each in fields(kind)]
    for key in [*(k for k in values if k not in known), *(k for k in known if k not in values)]:
        word = "is missing" if key in known else "is unknown"
        raise TrainingError(f"{name}: setting '{place}{key}' {word}; the run was made by another version.")
    found = {}
    for key in known:
        value, hint = values[key], hints[key]
        if isinstance(hint, type) and issubclass(hint, Settings):
            value = settings_from_json(hint, value, name, f"{place}{key}.")
        elif get_origin(hint) is tuple and isinstance(value, list):
            value = tuple(value)
        found[key] = value
    try:
        return kind(**found)
    except TrainingError as error:
        raise TrainingError(f"{name}: {place}{error}") from None
