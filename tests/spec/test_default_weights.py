"""The weights of the package: they load, and they denoise better than no weights."""

from dataclasses import replace

import numpy as np
import pytest
from drawing import denoise_step, observe, render_reference, uploaded

from hushsplat import synth
from hushsplat.io.weights import default_weights
from hushsplat.spec.settings import PAPER, DenoiserSettings
from hushsplat.spec.weights import DenoiserWeights

FRAMES, LAST = 40, 8


BASES = {"paper": PAPER, "temporal": DenoiserSettings()}


@pytest.fixture(scope="module", params=BASES)
def learned(request: pytest.FixtureRequest) -> tuple[DenoiserWeights, DenoiserSettings]:
    return default_weights(request.param), BASES[request.param]


@pytest.fixture(scope="module")
def stream():
    """A walk, where the weights were trained on cameras that hover (benchmarks/train_zero_shot.py)."""
    scene = uploaded(synth.room_and_garden(40_000, seed=4))
    track = synth.walk_track(20, 30, 160, 106)
    cameras = [track.camera(170 + frame) for frame in range(FRAMES)]
    observations = [observe(scene, camera, frame) for frame, camera in enumerate(cameras)]
    expected = [render_reference(scene, camera, with_depth=False).color for camera in cameras[-LAST:]]
    return cameras, observations, expected


def psnr(pictures, expected):
    errors = [np.mean((np.clip(p, 0, 1) - np.clip(e, 0, 1)) ** 2) for p, e in zip(pictures, expected, strict=True)]
    return -10 * np.log10(np.mean(errors))


def denoised(stream, learned):
    cameras, observations, _ = stream
    weights, base = learned
    settings = replace(base, zero_shot=True)
    state, shown = None, []
    for camera, observation in zip(cameras, observations, strict=True):
        frame, state = denoise_step(observation, camera, state, weights=weights, settings=settings)
        shown.append(frame.color)
    return shown[-LAST:]


def test_moving_picture_is_far_better_than_raw(stream, learned):
    raw = psnr([observation.color for observation in stream[1][-LAST:]], stream[2])
    assert psnr(denoised(stream, learned), stream[2]) > raw + 6


def test_static_picture_nears_the_mean_of_all_frames(learned):
    scene, camera = uploaded(synth.room_and_garden(20_000, seed=5)), synth.home_camera(96, 64)
    observations = [observe(scene, camera, frame) for frame in range(64)]
    mean = np.mean([observation.color for observation in observations], axis=0)
    shown = denoised(([camera] * 64, observations, None), learned)
    assert psnr(shown[-1:], [mean]) > 30
