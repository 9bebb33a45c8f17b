"""The engine's denoiser equals its differentiable twin on every output, frame after frame."""

from __future__ import annotations

import sys
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
import torch

from hushsplat.denoise import HushConfig
from hushsplat.denoise.pipeline import step
from hushsplat.learn import Denoiser, TensorObservation
from hushsplat.learn.pipeline import step as twin_step

sys.path.insert(0, str(Path(__file__).parents[1] / "denoise"))
from noisy_walk import noisy_walk, random_weights

TOLERANCE = 1e-4
SCALES = {"accumulated_frames": 128.0, "denoised_frames": 24.0, "motion_px": 100.0}  # values that are not of order 1
MAX_FLIPPED = 1e-4  # share of pixels where a threshold (depth re-seed, rescue) may fall the other way by rounding


@pytest.mark.parametrize(
    ("config", "frames", "size", "still"),
    [
        (HushConfig(), 64, (97, 61), (20, 21, 22)),
        (HushConfig(zero_shot=True), 16, (97, 61), (5,)),
        (HushConfig(), 5, (300, 70), ()),
        (HushConfig(trust="heuristic", sigma=8.0, spatial_filter=False), 5, (64, 40), ()),
        (HushConfig(trust="one", gate=1, stabilise=False), 5, (64, 40), ()),
        (HushConfig(gate=0, zero_shot=True), 5, (33, 65), ()),
    ],
)
def test_engine_equals_twin(config, frames, size, still):
    weights = random_weights()
    twin = Denoiser.from_weights(weights)
    state = twin_state = None
    for seen, camera in noisy_walk(frames, *size, still=still):
        frame, state = step(seen, camera, state, weights=weights, config=config, with_views=True)
        with torch.no_grad():
            twin_frame, twin_state = twin_step(
                twin, TensorObservation.from_numpy(seen), camera, twin_state, replace(config)
            )
        expected = twin_frame.to_numpy()
        for name, view in {**frame.views, "shown": frame.color}.items():
            other = expected.color if name == "shown" else expected.views[name]
            error = np.abs(view - other) / SCALES.get(name, 1.0)
            assert np.mean(error > TOLERANCE) <= MAX_FLIPPED, name
        difference = np.abs(state.values - twin_state.to_numpy().values) / np.maximum(np.abs(state.values), 1)
        assert np.mean(difference > TOLERANCE) <= MAX_FLIPPED
