"""The denoiser's settings: the paper's defaults, and no way to set nonsense."""

import subprocess
import sys
from dataclasses import replace

import pytest

from hushsplat.spec.settings import PAPER, DenoiserSettings
from hushsplat.types.errors import DenoiseError


def test_what_is_ours_can_be_switched_to_the_papers():
    ours = {
        **{"history": "length", "history_px": 1.0, "resample_sharpness": 0.6, "resample_clamp": True},
        **{"filter_lean": 1 / 32, "smooth": True, "error_floor": 1e-4, "pooled_frames": 8.0},
        **{"tau_frames": 2.0, "stabilise_motion_px": 0.5},
    }
    assert replace(PAPER, **ours) == DenoiserSettings()
    assert (PAPER.tau_frames, PAPER.smooth) == (8, False)
    assert PAPER.stabilise_motion_px >= 1e6  # no motion in a picture fades the weight


def test_defaults_are_the_papers():
    config = PAPER
    assert (config.accumulated_cap_frames, config.denoised_cap_frames, config.tau_frames) == (128, 24, 8)
    assert (config.motion_scale_px, config.far_depth) == (20, 1000)
    assert (config.stabilise_weight, config.stabilise_slack) == (0.9, 0.04)
    assert (config.stabilise_depth, config.stabilise_rescue) == (0.1, 0.10)
    assert (config.trust, config.gate) == ("learned", "learned")
    assert config.spatial_filter and config.stabilise and not config.zero_shot


@pytest.mark.parametrize("value", [float("nan"), float("inf"), -1.0])
@pytest.mark.parametrize(
    "name",
    [
        "accumulated_cap_frames",
        "denoised_cap_frames",
        "tau_frames",
        "motion_scale_px",
        "far_depth",
        "static_tolerance",
        "sigma",
        "constant_trust",
        "history_px",
        "resample_sharpness",
        "filter_lean",
        "error_floor",
        "pooled_frames",
        "smooth_errors",
        "stabilise_weight",
        "stabilise_slack",
        "stabilise_depth",
        "stabilise_rescue",
    ],
)
def test_numbers_out_of_range_are_refused(name, value):
    with pytest.raises(DenoiseError, match=rf"{name} must be a number from .* to .*, got "):
        DenoiserSettings(**{name: value})


def test_limits_are_named():
    with pytest.raises(DenoiseError, match=r"stabilise_weight must be a number from 0 to 1, got 1\.5"):
        DenoiserSettings(stabilise_weight=1.5)
    with pytest.raises(DenoiseError, match=r"denoised_cap_frames must be a number from 1 to 1e\+06, got 0\.5"):
        DenoiserSettings(denoised_cap_frames=0.5)


WRONG_TYPES = """
from hushsplat.types.errors import DenoiseError
from hushsplat.spec.settings import DenoiserSettings, SvgfSettings

assert type(DenoiserSettings(tau_frames=3).tau_frames) is float
for name, value in [
    ("trust", "two"), ("gate", 2), ("gate", True), ("gate", "0"), ("zero_shot", "yes"), ("stabilise", 1),
    ("tau_frames", "8"), ("tau_frames", None), ("tau_frames", True),
]:
    try:
        DenoiserSettings(**{name: value})
    except DenoiseError as error:
        print(error)
    else:
        print(name, "accepted", value)
for name, value in [("kernel", 4), ("passes", 1.5)]:
    try:
        SvgfSettings(**{name: value})
    except DenoiseError as error:
        print(error)
"""


def test_wrong_types_and_unknown_choices_are_refused():
    """In a process of its own: here beartype would be first."""
    done = subprocess.run([sys.executable, "-c", WRONG_TYPES], capture_output=True, text=True, check=True)
    assert done.stdout.splitlines() == [
        "trust must be one of 'learned', 'one', 'heuristic', 'constant', got 'two'.",
        "gate must be one of 'learned', 0, 1, got 2.",
        "gate must be one of 'learned', 0, 1, got True.",
        "gate must be one of 'learned', 0, 1, got '0'.",
        "zero_shot must be one of True, False, got 'yes'.",
        "stabilise must be one of True, False, got 1.",
        "tau_frames must be a number from 1e-06 to 1e+06, got '8'.",
        "tau_frames must be a number from 1e-06 to 1e+06, got None.",
        "tau_frames must be a number from 1e-06 to 1e+06, got True.",
        "kernel must be one of 5, 3, got 4.",
        "passes must be a whole number from 0 to 5, got 1.5.",
    ]
