"""The denoiser of the CPU engine equals the torch engine's on every output, frame after frame."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from noisy_walk import noisy_walk, random_weights

from hushsplat.engines.cpu import _engine
from hushsplat.engines.cpu.engine import CpuEngine
from hushsplat.engines.torch.engine import TorchEngine
from hushsplat.spec.denoisers import ConfiguredDenoiser
from hushsplat.spec.settings import PAPER, DenoiserSettings
from hushsplat.spec.state import TEMPORAL
from hushsplat.types.options import RenderOptions

TOLERANCE = 1e-4
SCALES = {"accumulated_frames": 128.0, "denoised_frames": 24.0, "motion_px": 100.0}  # values that are not of order 1
MAX_FLIPPED = 1e-4  # share of pixels where a threshold (depth re-seed, rescue) may fall the other way by rounding


@pytest.mark.parametrize(
    ("settings", "frames", "size", "still"),
    [
        (DenoiserSettings(), 64, (97, 61), (20, 21, 22)),
        (DenoiserSettings(zero_shot=True), 16, (97, 61), (5,)),
        (DenoiserSettings(), 5, (300, 70), ()),
        (DenoiserSettings(trust="heuristic", sigma=8.0, spatial_filter=False), 5, (64, 40), ()),
        (DenoiserSettings(trust="one", gate=1, stabilise=False), 5, (64, 40), ()),
        (DenoiserSettings(gate=0, zero_shot=True), 5, (33, 65), ()),
        (DenoiserSettings(gate=0, smooth_errors=3.0), 5, (450, 40), ()),
        (PAPER, 12, (97, 61), (5,)),
    ],
)
def test_engine_equals_twin(settings, frames, size, still):
    check_stream(noisy_walk(frames, *size, still=still), settings)


@pytest.mark.parametrize("zero_shot", [False, True])
@pytest.mark.parametrize("instruction_set", _engine.instruction_sets())
def test_every_build_of_the_engine_equals_twin(instruction_set, zero_shot):
    in_use = _engine.instruction_set()
    _engine.choose_instruction_set(instruction_set)
    try:
        check_stream(noisy_walk(6, 75, 45, still=(4,)), DenoiserSettings(zero_shot=zero_shot))
    finally:
        _engine.choose_instruction_set(in_use)


@pytest.mark.parametrize("size", [(1, 1), (1, 9), (2, 3), (9, 1), (17, 5), (410, 4)])
def test_engine_equals_twin_in_small_pictures(size):
    check_stream(noisy_walk(4, *size), DenoiserSettings())


def test_engine_equals_twin_where_pixels_cannot_be_used():
    rng = np.random.default_rng(5)
    stream = []
    for seen, camera in noisy_walk(4, 43, 29):
        color, depth, view = seen.color.copy(), seen.depth.copy(), seen.neural_view.copy()
        for values, bad in ((color, np.nan), (color, 1e12), (depth, np.nan), (depth, np.inf), (depth, 0), (depth, -1)):
            values[rng.random(values.shape) < 0.02] = bad
        for bad in (np.nan, np.inf):
            view[rng.random(view.shape) < 0.02] = bad
        stream.append((replace(seen, color=color, depth=depth, neural_view=view), camera))
    check_stream(stream, DenoiserSettings())


def check_stream(stream, settings, most_in_a_frame=MAX_FLIPPED):
    """Of every output, the share of values that differ: over all frames at most MAX_FLIPPED, and so in each frame."""
    denoiser = ConfiguredDenoiser("temporal", TEMPORAL, settings, random_weights())
    engine, torch_engine, options = CpuEngine(), TorchEngine(), RenderOptions()
    state = torch_state = None
    shares: dict[str, list[float]] = {}
    for seen, camera in stream:
        frame, state = engine.denoise(denoiser, seen, camera, state, options, with_views=True)
        torch_frame, torch_state = torch_engine.denoise(denoiser, seen, camera, torch_state, options, with_views=True)
        expected = torch_frame.numpy()
        pairs = {name: (view, expected.views[name]) for name, view in frame.views.items()}
        pairs |= {"shown": (frame.color, expected.color), "state": (state.values, torch_state.numpy().values)}
        for name, (value, other) in pairs.items():
            error = np.abs(value - other) / np.maximum(SCALES.get(name, 1.0), np.abs(other))
            shares.setdefault(name, []).append(np.mean(error > TOLERANCE))
    for name, differing in shares.items():
        assert max(differing) <= most_in_a_frame, name
        assert np.mean(differing) <= MAX_FLIPPED, name
