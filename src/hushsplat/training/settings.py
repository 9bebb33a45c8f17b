"""How a scene is trained, as plain data: the stages' settings, the presets, and how they are kept beside a run.

Numbers are of 2DGS and 3DGS where they have them and of the paper (appendix, "Training") where it says so.
"""

from __future__ import annotations

import json
from dataclasses import asdict, dataclass, field, fields, is_dataclass
from typing import Any, Literal, TypeVar, get_args, get_origin, get_type_hints

from hushsplat.training.stage4_settings import ChainSizes, Stage4
from hushsplat.types.errors import TrainingError


@dataclass(frozen=True)
class Rates:
    """Step sizes of Adam."""

    position: float = 1.6e-4  # > 0, times the extent of the cameras: at the start
    position_end: float = 1.6e-6  # > 0: at the end; falls exponentially in between
    harmonics: float = 2.5e-3  # > 0: of the constant band; the others get a twentieth
    opacity: float = 0.05  # > 0: of the logit
    scale: float = 5e-3  # > 0: of the logarithm
    rotation: float = 1e-3  # > 0: of the quaternion
    end_share: float = 1.0  # 0..1: what is left of the other rates at the end


@dataclass(frozen=True)
class Densification:
    """When surfels are added, removed and made transparent."""

    first_step: int = 500  # nothing before this step
    last_step: int = 15_000  # nothing after this step
    every: int = 100  # steps, >= 1
    gradient: float = 2e-4  # > 0: mean screen-space gradient (picture = -1..1) from which a surfel is cloned or split
    dense_share: float = 0.01  # > 0, of the extent: larger surfels are split, smaller ones cloned
    prune_opacity: float = 0.05  # 0..1: less opaque surfels are removed; 2DGS
    prune_share: float = 0.1  # > 0, of the extent: larger surfels are removed once opacities were reset
    reset_every: int = 3_000  # steps, >= 1: all opacities fall to `reset_opacity`
    reset_opacity: float = 0.01  # 0..1
    most_surfels: int = 3_000_000  # >= 1: paper, "we cap the Gaussian count at 3-million"
    # Ours: room for surfels grows evenly from the first to the last step, and the strongest wishes come first; else a
    # low `gradient` fills all room with the blurred surfels of the first few hundred steps.
    even_growth: bool = False


@dataclass(frozen=True)
class Stage1:
    """Vanilla 2DGS from sparse points, sorted."""

    steps: int = 30_000  # >= 1: paper
    rates: Rates = field(default_factory=Rates)
    densification: Densification = field(default_factory=Densification)
    sh_degree: int = 3  # 0..3
    sh_every: int = 1_000  # steps, >= 1: after which one more band of harmonics is trained
    dssim: float = 0.2  # 0..1: share of 1 - SSIM in the loss, the rest is L1
    normal_weight: float = 0.0  # >= 0: normal consistency; 2DGS has 0.05. Paper: off, it costs about 1 dB
    normal_from: int = 7_000  # step from which it counts
    distortion_weight: float = 0.0  # >= 0: depth distortion; 2DGS has 1000 indoors, 100 outdoors, and 0 by default
    distortion_from: int = 3_000  # step from which it counts
    most_points: int = 100_000  # >= 1: of the capture's points to begin with
    random_points: int = 50_000  # >= 1: in place of points where the capture has none


@dataclass(frozen=True)
class Stage2:
    """Opacity only, sorted: floaters fade and are removed; geometry and colour stay."""

    steps: int = 1_000  # >= 0: paper
    penalty: float = 0.003  # >= 0: weight of the mean opacity in the loss; paper
    prune_opacity: float = 0.05  # 0..1: less opaque surfels are removed at the end; paper
    rate: float = 0.05  # > 0: of the logit of opacity
    dssim: float = 0.2  # 0..1


@dataclass(frozen=True)
class Stage3:
    """Everything once more, through the per-pixel renderer."""

    steps: int = 3_000  # >= 0: paper
    rates: Rates = field(  # ours: begins where stage 1 has nearly ended
        default_factory=lambda: Rates(position=1.6e-5, opacity=0.025, end_share=0.1)
    )
    dssim: float = 0.2  # 0..1
    made_up_views: int = 120  # >= 2: cameras where there are no photographs, around the scene
    least_opacity: float = 0.005  # 0..1: less opaque surfels are removed at the end


@dataclass(frozen=True)
class TrainConfig:
    """All that decides what a run gives; the same on the same machine gives the same weights."""

    stage1: Stage1 = field(default_factory=Stage1)
    stage2: Stage2 = field(default_factory=Stage2)
    stage3: Stage3 = field(default_factory=Stage3)
    stage4: Stage4 = field(default_factory=Stage4)
    width: int = 1600  # px, >= 8: photographs are made this wide, never wider than they are; paper
    background: tuple[float, float, float] = (0.0, 0.0, 0.0)  # RGB 0..1 behind the scene
    seed: int = 0  # another seed, another order of views
    checkpoint_every: int = 500  # steps, >= 1
    measure_every: int = 2_000  # steps, >= 1: between two looks at the held-out views
    preview_every: int = 500  # steps, >= 1
    log_every: int = 10  # steps, >= 1
    threads: int = 0  # 0: all cores; changes no weight


def _small() -> TrainConfig:
    """What two CPU cores do in under an hour: ours, tried on bonsai at width 400 (docs/training.md).

    In so few steps opacities that were reset do not come back, so they are not reset.
    """
    densification = Densification(
        first_step=300,
        last_step=4_500,
        gradient=1e-4,
        prune_opacity=0.005,
        reset_every=10_000,
        most_surfels=150_000,
        even_growth=True,
    )
    return TrainConfig(
        stage1=Stage1(steps=7_000, densification=densification, sh_degree=2),
        stage2=Stage2(steps=300),
        stage3=Stage3(steps=1_000),
        stage4=Stage4(
            steps=1_500,
            transfer=True,
            network_rate=5e-4,
            votes=1.0,
            chains=ChainSizes(pace_share=0.5),
            window=(200, 144),
        ),
        width=400,
        measure_every=1_000,
    )


PRESETS = {"paper": TrainConfig(), "small": _small()}

Config = TypeVar("Config")


def config_text(config: TrainConfig) -> str:
    """The settings as JSON, all of them."""
    return json.dumps(asdict(config), indent=2) + "\n"


def config_from_text(text: str, name: str) -> TrainConfig:
    """The settings of a run; what is missing, unknown or of another kind is named."""
    try:
        values = json.loads(text)
    except ValueError as error:
        raise TrainingError(f"{name}: is not JSON: {error}.") from error
    return checked(_filled(TrainConfig, values, name, ""))


def _filled(kind: type[Config], values: Any, name: str, place: str) -> Config:
    if not isinstance(values, dict):
        raise TrainingError(f"{name}: {place or 'the file'} must be an object of settings.")
    hints = get_type_hints(kind)
    known = [f.name for f in fields(kind)]  # type: ignore[arg-type]
    for key in [*(k for k in values if k not in known), *(k for k in known if k not in values)]:
        word = "is missing" if key in known else "is unknown"
        raise TrainingError(f"{name}: setting '{place}{key}' {word}; the run was made by another version.")
    found = {key: _value(hints[key], values[key], name, f"{place}{key}") for key in known}
    return kind(**found)


def _value(hint: Any, value: Any, name: str, place: str) -> Any:
    if is_dataclass(hint):
        return _filled(hint, value, name, f"{place}.")  # type: ignore[arg-type]
    if hint in (int, bool) and type(value) is hint:
        return value
    if hint is float and type(value) in (int, float):
        return float(value)
    if get_origin(hint) is Literal and value in get_args(hint):
        return value
    if get_origin(hint) is tuple and isinstance(value, list) and len(value) == len(get_args(hint)):
        return tuple(_value(kind, each, name, place) for kind, each in zip(get_args(hint), value, strict=True))
    raise TrainingError(f"{name}: setting '{place}' is {value!r}, which is of another kind than expected.")


LEAST: dict[str, float] = {  # fields that must be at least this, wherever they are
    "width": 8,
    "checkpoint_every": 1,
    "measure_every": 1,
    "preview_every": 1,
    "log_every": 1,
    "every": 1,
    "reset_every": 1,
    "sh_every": 1,
    "most_surfels": 1,
    "most_points": 1,
    "random_points": 1,
    "made_up_views": 2,
    "suffix_frames": 1,
    "longest_chain": 2,
}
SHARES = (  # 0..1
    *("dssim", "prune_opacity", "reset_opacity", "least_opacity", "end_share"),
    *("temporal_share", "drift_share", "dolly_share", "pace_share", "disocclusion_opacity"),
)
FREE = ("seed", "background", "first_step", "last_step", "normal_from", "distortion_from")


def checked(config: TrainConfig) -> TrainConfig:
    """The settings themselves, if every one of them makes sense."""
    _check(config, "")
    if not 0 <= config.stage1.sh_degree <= 3:
        raise TrainingError(f"stage1.sh_degree must lie in 0..3, got {config.stage1.sh_degree}.")
    if not 0 <= config.seed < 2**32:
        raise TrainingError(f"seed must lie in 0..2^32 - 1, got {config.seed}.")
    chains = config.stage4.chains
    if chains.drift_share + chains.dolly_share > 1:
        raise TrainingError(
            f"stage4.chains: drift_share and dolly_share must not be more than 1 together, got {chains}."
        )
    if not (chains.meter > 0 and chains.pace_px[0] > 0):
        raise TrainingError(f"stage4.chains: meter and pace_px must be more than 0, got {chains}.")
    if min(config.stage4.window) < 0:
        raise TrainingError(f"stage4.window must not be negative, got {config.stage4.window}.")
    if config.stage1.steps < 1:
        raise TrainingError(f"stage1.steps must be at least 1, got {config.stage1.steps}.")
    return config


def _check(part: Any, place: str) -> None:
    for each in fields(part):
        value, name = getattr(part, each.name), f"{place}{each.name}"
        if is_dataclass(value):
            _check(value, f"{name}.")
        elif each.name in SHARES:
            if not 0 <= value <= 1:
                raise TrainingError(f"{name} must lie in 0..1, got {value}.")
        elif isinstance(value, str) or each.name in FREE:
            continue
        elif isinstance(value, tuple):
            if not 0 <= value[0] <= value[-1] < float("inf") and each.name != "window":
                raise TrainingError(f"{name} must be from a number to one that is not smaller, got {value}.")
        elif not LEAST.get(each.name, 0) <= value < float("inf"):
            raise TrainingError(f"{name} must be at least {LEAST.get(each.name, 0):g}, got {value}.")
