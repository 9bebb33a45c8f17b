"""`paper` and `paper-zero-shot` are the paper's equations and nothing else: engines against the numpy twin."""

from dataclasses import fields, replace

import numpy as np
import paper_twin
import pytest
from noisy_walk import noisy_walk, random_weights

from hushsplat.engines.base import engine
from hushsplat.methods import configure
from hushsplat.spec.settings import PAPER, DenoiserSettings
from hushsplat.types.options import RenderOptions

FRAMES, STILL = 7, (4, 5)
ODD = 0.01  # share of pixels in which rounding may pick another side of a threshold: place, depth re-seed, rescue


@pytest.fixture(scope="module")
def stream():
    return noisy_walk(FRAMES, 34, 22, still=STILL)


@pytest.fixture(scope="module")
def twins(stream):
    """What the twin shows, with payload and zero-shot."""
    found = {}
    for name in ("paper", "paper-zero-shot"):
        memory, found[name] = None, []
        for observation, camera in stream:
            shown, memory = paper_twin.step(random_weights(), observation, camera, memory, name == "paper-zero-shot")
            found[name].append(shown)
    return found


def shown_by(drawing, stream, name, settings=None):
    state, shown = None, []
    configured = configure(name, weights=random_weights(), settings=settings)
    for observation, camera in stream:
        image, state = drawing.denoise(configured, observation, camera, state, RenderOptions())
        shown.append(image.numpy().color)
    return shown


def worst(found, expected):
    """The largest error of any frame, but for odd pixels."""
    return max(
        np.quantile(np.abs(a - b).max(-1), 1 - ODD, method="higher") for a, b in zip(found, expected, strict=True)
    )


@pytest.mark.parametrize("on", ["cpu", "torch"])
@pytest.mark.parametrize("name", ["paper", "paper-zero-shot"])
def test_engines_compute_the_papers_equations(on, name, stream, twins):
    assert worst(shown_by(engine(on), stream, name), twins[name]) < 5e-4


def test_everything_of_ours_is_switched_off(stream, twins):
    """Each setting in which `paper` differs from `temporal` changes pictures, so each would be noticed if left on."""
    ours = {each.name: getattr(DenoiserSettings(), each.name) for each in fields(PAPER)}
    ours = {name: value for name, value in ours.items() if value != getattr(PAPER, name)}
    assert set(ours) == {
        *("history", "history_px", "resample_sharpness", "resample_clamp", "filter_lean"),
        *("smooth", "error_floor", "pooled_frames", "tau_frames", "stabilise_motion_px"),
    }
    for name, value in ours.items():
        if name == "history_px":
            continue  # of a history by length only
        changed = shown_by(engine("cpu"), stream, "paper", replace(PAPER, **{name: value}))
        least = 1e-6 if name == "error_floor" else 1e-3  # a variance of 1e-4 is small beside this noise
        assert worst(changed, shown_by(engine("cpu"), stream, "paper")) > least, name
