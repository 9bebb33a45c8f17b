"""The weights that come with the package: they load, and they are worth shipping."""

import numpy as np
import pytest
from hushsplat.engines.cpu.pipeline import step
from hushsplat.engines.cpu.render_names import decode, render_sorted, sample_visibility

from hushsplat import synth
from hushsplat.io.weights import default_weights
from hushsplat.spec.settings import DenoiserSettings
from hushsplat.spec.weights import DenoiserWeights

FRAMES, LAST = 40, 8


@pytest.fixture(scope="module")
def weights() -> DenoiserWeights:
    return default_weights()


@pytest.fixture(scope="module")
def stream():
    """A walk, where the weights were trained on cameras that hover (benchmarks/train_zero_shot.py)."""
    scene = synth.room_and_garden(40_000, seed=4)
    track = synth.walk_track(20, 30, 160, 106)
    cameras = [track.camera(170 + frame) for frame in range(FRAMES)]
    samples = [sample_visibility(scene, camera, frame=frame) for frame, camera in enumerate(cameras)]
    observations = [decode(sample, scene, camera) for sample, camera in zip(samples, cameras, strict=True)]
    expected = [render_sorted(scene, camera, with_depth=False).color for camera in cameras[-LAST:]]
    return cameras, observations, expected


def psnr(pictures, expected):
    errors = [np.mean((np.clip(p, 0, 1) - np.clip(e, 0, 1)) ** 2) for p, e in zip(pictures, expected, strict=True)]
    return -10 * np.log10(np.mean(errors))


def denoised(stream, weights, **options):
    cameras, observations, _ = stream
    state, shown = None, []
    for camera, observation in zip(cameras, observations, strict=True):
        config = DenoiserSettings(zero_shot=True, **options)
        frame, state = step(observation, camera, state, weights=weights, config=config)
        shown.append(frame.color)
    return shown[-LAST:]


def test_moving_picture_is_far_better_than_raw(stream, weights):
    raw = psnr([observation.color for observation in stream[1][-LAST:]], stream[2])
    assert psnr(denoised(stream, weights), stream[2]) > raw + 6


def test_static_picture_nears_the_mean_of_all_frames(weights):
    scene, camera = synth.room_and_garden(20_000, seed=5), synth.home_camera(96, 64)
    samples = [sample_visibility(scene, camera, frame=frame) for frame in range(64)]
    observations = [decode(sample, scene, camera) for sample in samples]
    mean = np.mean([observation.color for observation in observations], axis=0)
    shown = denoised(([camera] * 64, observations, None), weights)
    assert psnr(shown[-1:], [mean]) > 30
