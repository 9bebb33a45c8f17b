"""A camera that rested begins to move slowly: `temporal` keeps its history, first frames have a variance."""

import sys
from dataclasses import replace
from pathlib import Path

import numpy as np
from drawing import denoise_step, observe, render_reference, uploaded

from hushsplat import synth
from hushsplat.io.weights import default_weights
from hushsplat.methods import configure
from hushsplat.spec.settings import DenoiserSettings
from hushsplat.types.metrics import psnr

sys.path.insert(0, str(Path(__file__).resolve().parents[2] / "benchmarks"))

import restart

MOST_DB = 1.0  # below what resampling alone costs


def test_a_restart_falls_no_faster_than_resampling_makes_it():
    scene, camera = uploaded(synth.room_and_garden(20_000, seed=5)), synth.home_camera(144, 96)
    temporal = configure("temporal-zero-shot")
    by_share = replace(temporal, name="share", settings=replace(temporal.settings, history="share"))
    found = restart.fall(scene, camera, [temporal, by_share], rest=128, frames=8, threads=1)
    limits = restart.limit(found["temporal-zero-shot"][0], found["resampled"])
    shortfall = np.subtract(limits, found["temporal-zero-shot"])
    assert shortfall.max() < MOST_DB
    assert np.subtract(limits, found["share"]).max() > 2 * MOST_DB  # the collapse that this test is about


def test_variance_of_neighbours_helps_the_first_frame():
    scene, camera = uploaded(synth.room_and_garden(20_000, seed=5)), synth.home_camera(144, 96)
    target = render_reference(scene, camera, with_depth=False).color
    reached = {}
    for pooled_frames in (0.0, 8.0):
        settings, state = DenoiserSettings(zero_shot=True, pooled_frames=pooled_frames), None
        for frame in range(2):
            shown, state = denoise_step(
                observe(scene, camera, frame), camera, state, weights=default_weights("temporal"), settings=settings
            )
        reached[pooled_frames] = psnr(shown.color, target)
    assert reached[8.0] > reached[0.0] + 0.2
