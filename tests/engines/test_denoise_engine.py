"""The denoiser of the CPU engine by itself: invariants that need no second engine."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from drawing import denoise_step as step
from noisy_walk import noisy_walk, random_weights

from hushsplat.engines.cpu import _engine
from hushsplat.spec.settings import DenoiserSettings
from hushsplat.spec.weights import DenoiserWeights
from hushsplat.types.camera import Camera
from hushsplat.types.colour import rgb_from_ycocg
from hushsplat.types.errors import DenoiseError
from hushsplat.types.observation import Observation

ZERO_SHOT = DenoiserSettings(zero_shot=True)


def camera_at(x: float = 0.0, width: int = 40, height: int = 30) -> Camera:
    pose = np.eye(4)
    pose[0, 3] = x
    return Camera(width, height, 40.0, 40.0, width / 2, height / 2, pose)


def observation(color: np.ndarray, depth: float = 3.0) -> Observation:
    color = np.ascontiguousarray(color, dtype=np.float32)
    plane = np.full(color.shape[:2], depth, dtype=np.float32)
    return Observation(color, plane, np.ones_like(plane))


def noise(seed: int, width: int = 40, height: int = 30) -> Observation:
    return observation(np.random.default_rng(seed).random((height, width, 3)))


def test_static_camera_accumulates_the_plain_mean():
    state, colors = None, []
    for frame in range(100):
        seen = noise(frame)
        colors.append(seen.color.astype(np.float64))
        _, state = step(seen, camera_at(), state, weights=random_weights(), settings=ZERO_SHOT)
    np.testing.assert_allclose(rgb_from_ycocg(state.accumulated), np.mean(colors, axis=0), atol=2e-6)
    np.testing.assert_array_equal(state.accumulated_frames, 100)


@pytest.mark.parametrize(("accumulated", "denoised"), [(128.0, 24.0), (7.0, 3.0), (2.0, 11.5)])
def test_history_is_no_longer_than_its_cap(accumulated, denoised):
    """The history lengths stop at their caps, and a new frame then weighs 1 / (cap + 1)."""
    settings = replace(
        ZERO_SHOT, accumulated_cap_frames=accumulated, denoised_cap_frames=denoised, spatial_filter=False
    )
    weights = random_weights()
    certain = {**weights.tensors, "denoised.head.bias": np.full(1, 40, np.float32)}  # trust 1 on the denoised path
    dark, bright = (observation(np.full((6, 9, 3), value)) for value in (0.0, 1.0))
    camera, state = camera_at(width=9, height=6), None
    for frame in range(1, 150):
        _, state = step(dark, camera, state, weights=DenoiserWeights(certain), settings=settings, threads=1)
        np.testing.assert_array_equal(state.accumulated_frames, min(frame, accumulated))
        np.testing.assert_allclose(state.denoised_frames, min(frame, denoised), rtol=1e-6)
    _, state = step(bright, camera, state, weights=DenoiserWeights(certain), settings=settings, threads=1)
    np.testing.assert_allclose(state.accumulated[..., 0], 1 / (accumulated + 1), rtol=1e-5)
    np.testing.assert_allclose(state.denoised[..., 0], 1 / (denoised + 1), rtol=1e-5)


def test_thousands_of_frames_do_not_drift():
    small = camera_at(width=9, height=7)
    state, mean, frames = None, np.zeros((7, 9, 3)), 0
    rng = np.random.default_rng(0)
    for _ in range(2000):
        color = rng.random((7, 9, 3))
        frames = min(frames, 128) + 1
        mean += (color.astype(np.float32) - mean) / frames  # float64, with the cap's rule
        _, state = step(observation(color), small, state, weights=random_weights(), settings=ZERO_SHOT, threads=1)
    np.testing.assert_allclose(rgb_from_ycocg(state.accumulated), mean, atol=1e-3)
    assert np.isfinite(state.values).all()


@pytest.mark.parametrize("move", [0.0, 0.01, 0.3, 50.0])
def test_constant_scene_stays_constant_under_any_motion(move):
    color = np.broadcast_to(np.array([0.2, 0.7, 0.4], dtype=np.float32), (30, 40, 3))
    state = None
    for frame in range(12):
        shown, state = step(
            observation(color), camera_at(move * frame), state, weights=random_weights(), settings=ZERO_SHOT
        )
        np.testing.assert_allclose(shown.color, color, atol=1e-6)


def test_a_plane_is_reprojected_exactly_by_whole_pixels():
    # A step of 0.225 moves a plane at depth 3 by 40 · 0.225 / 3 = 3 px: the history is the old picture, shifted.
    weights, settings = random_weights(), replace(ZERO_SHOT, trust="one", stabilise=False, gate=0)
    first, second = noise(1), noise(2)
    _, state = step(first, camera_at(0.0), None, weights=weights, settings=settings)
    _, state = step(second, camera_at(0.225), state, weights=weights, settings=settings)
    expected = (first.color[:, 3:].astype(np.float64) + second.color[:, :-3]) / 2
    np.testing.assert_allclose(rgb_from_ycocg(state.accumulated)[:, :-3], expected, atol=1e-4)
    np.testing.assert_array_equal(state.accumulated_frames[:, -3:], 1)  # came into view: no history


def test_nothing_that_is_not_finite_enters_the_state():
    state = None
    for frame, bad in enumerate([np.nan, np.inf, -np.inf, 1e30]):
        seen = noise(frame)
        seen.color[3, 5, 1] = bad
        seen.depth[7, 9] = bad
        frame_out, state = step(seen, camera_at(0.02 * frame), state, weights=random_weights(), settings=ZERO_SHOT)
        assert np.isfinite(state.values).all() and np.isfinite(frame_out.color).all()


def test_holes_and_pictures_of_every_size():
    for width, height in [(1, 1), (1, 9), (7, 1), (8, 8), (257, 3), (300, 70)]:
        state = None
        for frame in range(3):
            seen = noise(frame, width, height)
            seen.depth[:] = 0
            shown, state = step(
                seen, camera_at(0.1 * frame, width, height), state, weights=random_weights(), settings=ZERO_SHOT
            )
            assert shown.color.shape == (height, width, 3) and np.isfinite(state.values).all()


def test_resize_and_cut_start_anew():
    _, state = step(noise(0), camera_at(), None, weights=random_weights(), settings=ZERO_SHOT)
    _, resized = step(
        noise(1, 20, 15), camera_at(width=20, height=15), state, weights=random_weights(), settings=ZERO_SHOT
    )
    np.testing.assert_array_equal(resized.accumulated_frames, 1)
    _, cut = step(noise(1), camera_at(1000.0), state, weights=random_weights(), settings=ZERO_SHOT)
    np.testing.assert_array_equal(cut.accumulated_frames, 1)


def test_any_number_of_threads_and_blocks_give_the_same_bits():
    frames = noisy_walk(3, 300, 140)
    results = []
    for threads in (1, 2, 5):
        state = None
        for seen, camera in frames:
            shown, state = step(seen, camera, state, weights=random_weights(), threads=threads)
        results.append((shown.color, state.values))
    for color, values in results[1:]:
        np.testing.assert_array_equal(color, results[0][0])
        np.testing.assert_array_equal(values, results[0][1])


def test_every_instruction_set_agrees():
    frames = noisy_walk(4, 90, 40)
    best = _engine.instruction_set()
    shown = {}
    try:
        for name in _engine.instruction_sets():
            _engine.choose_instruction_set(name)
            state = None
            for seen, camera in frames:
                picture, state = step(seen, camera, state, weights=random_weights())
            shown[name] = picture.color
    finally:
        _engine.choose_instruction_set(best)
    for color in shown.values():
        np.testing.assert_allclose(color, shown[best], atol=1e-4)


@pytest.mark.parametrize(
    "change",
    [
        {"trust": "one"},
        {"trust": "heuristic", "sigma": 20.0},
        {"spatial_filter": False},
        {"stabilise": False},
        {"gate": 0},
        {"gate": 1},
        {"zero_shot": True},
        {"accumulated_cap_frames": 2.0},
        {"denoised_cap_frames": 2.0},
        {"tau_frames": 8.0},
        {"smooth": False},
        {"smooth_errors": 0.2},
        {"motion_scale_px": 1.0},
        {"stabilise_weight": 0.1},
        {"stabilise_slack": 0.0},
        {"stabilise_depth": 0.0},
        {"stabilise_rescue": 0.0},
        {"stabilise_motion_px": 100.0},
        {"far_depth": 2.0},
        {"static_tolerance": 1.0},
    ],
)
def test_every_switch_switches(change):
    shown = []
    for settings in (DenoiserSettings(stabilise_rescue=0.02), DenoiserSettings(**{"stabilise_rescue": 0.02, **change})):
        state = None
        for seen, camera in noisy_walk(5, 64, 40):
            depth = seen.depth.copy()
            depth[:8, :8] = 0  # nothing there, nor beside it
            seen = replace(seen, depth=depth)
            picture, state = step(seen, camera, state, weights=random_weights(), settings=settings)
        shown.append(picture.color)
    assert np.abs(shown[0] - shown[1]).max() > 1e-4


def test_refuses_what_does_not_fit():
    with pytest.raises(
        DenoiseError, match="the observation has 40×30 px, its camera 8×8; pass the camera it was drawn with"
    ):
        step(noise(0), camera_at(width=8, height=8), None, weights=random_weights(), settings=ZERO_SHOT)
    with pytest.raises(DenoiseError, match="zero_shot=True"):
        step(noise(0), camera_at(), None, weights=random_weights())
