"""The baselines against their slow twins, and what must hold for each of them."""

from dataclasses import replace
from functools import partial

import made_stream
import numpy as np
import pytest
import twins_baselines as twins
from hushsplat.engines.cpu.baselines.svgf import ADAPTED, TUNED, SvgfConfig

from hushsplat.engines.cpu import _engine
from hushsplat.engines.cpu.baselines import BASELINES, mean, st_taa, svgf, taa
from hushsplat.types.camera import Camera
from hushsplat.types.errors import DenoiseError
from hushsplat.types.observation import Observation

CONFIGS = {
    "svgf": ADAPTED,
    "svgf-literal": svgf.LITERAL,
    "svgf-tuned": TUNED,
    "svgf-fed-back": SvgfConfig(alpha=0.05, moments_alpha=0.2, sigma_luma=2.0, passes=3, kernel=5, feedback=True),
    "svgf-small-kernel": SvgfConfig(alpha=0.1, sigma_depth=0.1, sigma_luma=1.0, passes=2, kernel=3, feedback=False),
    "svgf-all-passes": SvgfConfig(depth_threshold=0.1, sigma_luma=1.0, passes=5, kernel=5, feedback=True),
}
STEPS = {name: partial(svgf.step, config=config) for name, config in CONFIGS.items()}
STEPS |= {"mean": mean.step, "st-taa": st_taa.step, "taa": taa.step}
TWINS = {name: partial(twins.svgf, config=config) for name, config in CONFIGS.items()}
TWINS |= {"st-taa": twins.st_taa, "taa": partial(twins.taa, gamma=taa.TaaConfig().gamma, cap=128)}
NAMES = list(BASELINES)


def walk(frames, width=48, height=40, still=4):
    """A stream that moves and then stands still for the last few frames."""
    for frame in range(frames):
        camera = made_stream.camera_at(min(frame, frames - still), width, height)
        yield made_stream.observe(camera, frame), camera


def values_of(state):
    return state.mean if isinstance(state, mean.MeanState) else state.history


def played(step, stream, **options):
    state, shown = None, []
    for observation, camera in stream:
        frame, state = step(observation, camera, state, **options)
        shown.append(frame.color)
    return shown, state


def test_names_are_those_of_the_design():
    assert {"mean", "st-taa", "svgf", "svgf-tuned"} <= set(BASELINES)


@pytest.mark.parametrize("instruction_set", _engine.instruction_sets())
@pytest.mark.parametrize("name", TWINS)
def test_each_step_is_that_of_the_slow_twin(name, instruction_set):
    in_use = _engine.instruction_set()
    _engine.choose_instruction_set(instruction_set)
    try:
        for width, height in ((53, 37), (3, 20), (1, 1)):
            state = None
            for observation, camera in walk(14, width, height):
                expected, history = TWINS[name](observation, camera, state)
                frame, state = STEPS[name](observation, camera, state)
                wrong = np.abs(frame.color - np.maximum(expected, 0)).max(axis=-1) > 2e-5
                wrong |= (np.abs(state.history - history) > 2e-5 * (1 + np.abs(history))).any(axis=-1)
                # A place on the edge between two pixels, or a depth on its threshold, may round to either side.
                assert wrong.mean() <= (0.002 if wrong.size > 100 else 0)
    finally:
        _engine.choose_instruction_set(in_use)


@pytest.mark.parametrize("name", TWINS)
def test_a_whole_walk_is_that_of_the_slow_twin(name):
    state_type = {"st-taa": st_taa.StTaaState, "taa": taa.TaaState}.get(name, svgf.SvgfState)
    state = twin_state = None
    for observation, camera in walk(20, 40, 30):
        frame, state = STEPS[name](observation, camera, state)
        expected, history = TWINS[name](observation, camera, twin_state)
        twin_state = state_type(camera, history.astype(np.float32))
    wrong = np.abs(frame.color - np.maximum(expected, 0)).max(axis=-1) > 1e-4
    assert wrong.mean() < 0.01  # what rounded to another pixel stays in the history and spreads


@pytest.mark.parametrize("name", ["mean", "st-taa", "taa"])
def test_a_static_camera_gives_the_plain_mean(name):
    camera = made_stream.camera_at(0)
    stream = [made_stream.observe(camera, frame) for frame in range(129)]  # the 129th sample weighs 1/129 as well
    shown, _ = played(STEPS[name], [(observation, camera) for observation in stream])
    sums = np.cumsum([observation.color.astype(np.float64) for observation in stream], axis=0)
    for count in (1, 2, 16, 128, 129):
        np.testing.assert_allclose(shown[count - 1], sums[count - 1] / count, atol=1e-6)


@pytest.mark.parametrize("name", ["st-taa", "taa"])
def test_history_is_no_longer_than_128_frames(name):
    camera = made_stream.camera_at(0, 8, 8)
    dark, bright = (
        Observation(np.full((8, 8, 3), v, np.float32), np.ones((8, 8), np.float32), np.ones((8, 8), np.float32))
        for v in (0.0, 1.0)
    )
    _, state = played(STEPS[name], [(dark, camera)] * 300)
    assert (state.history[..., 3] == 128).all()
    frame, _ = STEPS[name](bright, camera, state)
    np.testing.assert_allclose(frame.color, 1 / 129, rtol=1e-6)


def test_the_mean_restarts_when_the_camera_moves():
    first, second = made_stream.camera_at(0), made_stream.camera_at(1)
    _, state = mean.step(made_stream.observe(first, 0), first, None)
    _, state = mean.step(made_stream.observe(first, 1), first, state)
    assert state.frames == 2
    observation = made_stream.observe(second, 2)
    frame, state = mean.step(observation, second, state)
    assert state.frames == 1
    np.testing.assert_array_equal(frame.color, observation.color)


def test_the_mean_does_not_creep_along_with_a_camera_that_moves_below_the_tolerance():
    _, state = mean.step(made_stream.observe(made_stream.camera_at(0), 0), made_stream.camera_at(0), None)
    for frame in range(1, 8):
        pose = made_stream.camera_at(0).world_from_camera.copy()
        pose[0, 3] += 4e-7 * frame
        camera = replace(made_stream.camera_at(0), world_from_camera=pose)
        _, state = mean.step(made_stream.observe(camera, frame), camera, state)
    assert state.frames < 8


@pytest.mark.parametrize("name", STEPS)
def test_a_scene_of_one_colour_stays_so(name):
    state = None
    for observation, camera in walk(12):
        flat = replace(observation, color=np.broadcast_to(np.float32([0.2, 0.7, 0.4]), observation.color.shape).copy())
        frame, state = STEPS[name](flat, camera, state)
        np.testing.assert_allclose(frame.color, flat.color, atol=1e-6)


@pytest.mark.parametrize("name", STEPS)
@pytest.mark.parametrize("bad", [np.nan, np.inf, -np.inf, 1e38])
def test_what_is_not_finite_is_black_without_depth_and_never_kept(name, bad):
    rng = np.random.default_rng(0)
    state = clean_state = None
    for observation, camera in walk(6):
        color, depth = observation.color.copy(), observation.depth.copy()
        spots = rng.random(depth.shape) < 0.1
        color[spots, rng.integers(3)] = bad
        broken_depth = rng.random(depth.shape) < 0.1
        depth[broken_depth] = bad
        frame, state = STEPS[name](Observation(color, depth, observation.alpha), camera, state)
        color[spots | broken_depth], depth[spots | broken_depth] = 0, 0
        expected, clean_state = STEPS[name](Observation(color, depth, observation.alpha), camera, clean_state)
        assert np.isfinite(frame.color).all() and np.isfinite(values_of(state)).all()
        np.testing.assert_array_equal(frame.color, expected.color)
        np.testing.assert_array_equal(values_of(state), values_of(clean_state))


@pytest.mark.parametrize("name", ["mean", "st-taa", "taa"])
def test_the_first_frame_is_shown_as_it_is(name):
    camera = made_stream.camera_at(0)
    observation = made_stream.observe(camera, 0)
    frame, _ = STEPS[name](observation, camera, None)
    np.testing.assert_array_equal(frame.color, observation.color)


@pytest.mark.parametrize("name", STEPS)
def test_another_size_and_a_cut_start_anew(name):
    _, state = played(STEPS[name], walk(4))
    away = Camera.look_at((9, 0, 0), (9, 0, -5), width=48, height=40)
    small = made_stream.camera_at(3, 24, 20)
    for camera in (away, small):
        observation = made_stream.observe(made_stream.camera_at(3, camera.width, camera.height), 9)
        frame, after = STEPS[name](observation, camera, state)
        first, fresh = STEPS[name](observation, camera, None)
        np.testing.assert_array_equal(frame.color, first.color)
        np.testing.assert_array_equal(values_of(after), values_of(fresh))


@pytest.mark.parametrize("name", STEPS)
@pytest.mark.parametrize("size", [(1, 1), (1, 7), (9, 1), (2, 2)])
def test_small_pictures_are_pictures(name, size):
    shown, state = played(STEPS[name], walk(6, *size))
    assert np.isfinite(shown).all() and np.isfinite(values_of(state)).all()


@pytest.mark.parametrize("name", STEPS)
def test_a_step_is_a_pure_function_whatever_the_threads(name):
    _, state = played(STEPS[name], walk(4))
    kept = values_of(state).copy()
    camera = made_stream.camera_at(5)
    observation = made_stream.observe(camera, 5)
    frames = [STEPS[name](observation, camera, state, threads=threads) for threads in (1, 1, 2, 3)]
    np.testing.assert_array_equal(values_of(state), kept)
    for frame, after in frames[1:]:
        np.testing.assert_array_equal(frame.color, frames[0][0].color)
        np.testing.assert_array_equal(values_of(after), values_of(frames[0][1]))


@pytest.mark.parametrize("name", NAMES)
def test_ten_thousand_frames_do_not_drift(name):
    camera = made_stream.camera_at(0, 5, 4)
    stream = [made_stream.observe(camera, frame, holes=0.0) for frame in range(7)]
    colors = np.array([observation.color for observation in stream], dtype=np.float64)
    state, expected = None, np.zeros(colors[0].shape)
    for frame in range(10_000):
        shown, state = BASELINES[name](stream[frame % 7], camera, state, threads=1)
        expected += (colors[frame % 7] - expected) / (frame + 1 if name == "mean" else min(frame + 1, 129))
    if name in ("mean", "st-taa", "taa"):
        np.testing.assert_allclose(shown.color, expected, atol=1e-5)
    assert (shown.color >= colors.min()).all() and (shown.color <= colors.max()).all()
    assert np.isfinite(values_of(state)).all()


def two_points(near, far):
    """A camera that moves one pixel to the right, and what it sees: `near` and `far` hold depths of a row."""
    before = Camera(4, 1, 4.0, 4.0, 2.0, 0.5, np.eye(4))
    depth = np.float32([near])
    color = np.arange(12, dtype=np.float32).reshape(1, 4, 3)
    return before, Observation(color, depth, np.ones((1, 4), np.float32)), np.float32([far])


def test_st_taa_throws_forward_the_nearest_wins_and_holes_start_anew():
    # At depth 4 one unit is one pixel: a camera one unit to the right moves depth 4 by one pixel and depth 2 by two.
    before, observation, depth = two_points([4, 4, 4, 2], [4, 4, 4, 4])
    _, state = st_taa.step(observation, before, None)
    pose = np.eye(4)
    pose[0, 3] = 1.0
    after = replace(before, world_from_camera=pose)
    frame, kept = st_taa.step(Observation(observation.color, depth, observation.alpha), after, state)
    # 0 leaves the picture, 1 lands on 0; 2 and 3 meet on 1, where 3 is nearer; nothing lands on 2 and 3.
    np.testing.assert_array_equal(kept.history[0, :, 3], [2, 2, 1, 1])
    old = observation.color[0]
    np.testing.assert_allclose(
        frame.color[0], [(old[0] + old[1]) / 2, (old[1] + old[3]) / 2, old[2], old[3]], atol=1e-6
    )
    far, _ = st_taa.step(Observation(observation.color, depth * 40, observation.alpha), after, state)
    np.testing.assert_array_equal(far.color, observation.color)  # more than 100 units away: not the same thing


def test_svgf_has_the_constants_of_the_paper():
    assert (ADAPTED.alpha, ADAPTED.moments_alpha, ADAPTED.depth_threshold) == (0.02, 0.02, 0.4)
    assert (ADAPTED.sigma_depth, ADAPTED.sigma_luma, ADAPTED.passes) == (0.3, 8.0, 0)
    assert replace(ADAPTED, running_mean=False) == svgf.LITERAL


@pytest.mark.parametrize(("texels", "kept"), [(0, False), (1, False), (2, True), (4, True)])
def test_svgf_keeps_history_if_two_of_four_depths_agree(texels, kept):
    camera = Camera(2, 2, 2.0, 2.0, 1.0, 1.0, np.eye(4))
    depth = np.full((2, 2), 10.0, np.float32)
    depth.flat[texels:] = 5.9  # 0.41 apart, relative to the larger
    ones = np.ones((2, 2), np.float32)
    _, state = svgf.step(Observation(np.zeros((2, 2, 3), np.float32), depth, ones), camera, None)
    _, state = svgf.step(Observation(np.ones((2, 2, 3), np.float32), 10 * ones, ones), camera, state)
    expected = 0.5 if kept else 1.0  # the mean of two frames, or the new one alone
    np.testing.assert_allclose(state.history[0, 0, :5], expected, rtol=1e-6)
    assert state.history[0, 0, 5] == (2 if kept else 1)


def test_svgf_blends_exponentially_and_feeds_back_what_is_not_filtered():
    camera = made_stream.camera_at(0)
    first, second = (made_stream.observe(camera, frame, holes=0.0) for frame in range(2))
    _, state = played(STEPS["svgf-literal"], [(first, camera), (second, camera)])
    kept = state.history[..., 5] == 2
    assert kept.mean() > 0.5
    np.testing.assert_allclose(state.history[kept][:, :3], (0.98 * first.color + 0.02 * second.color)[kept], atol=1e-6)


@pytest.mark.parametrize("name", [name for name in STEPS if name.startswith("svgf")])
def test_a_filter_over_space_calms_a_first_frame(name):
    camera = made_stream.camera_at(0)
    noise = np.random.default_rng(0).uniform(0.2, 0.8, (40, 48, 3)).astype(np.float32)
    frame, _ = STEPS[name](replace(made_stream.observe(camera, 0), color=noise), camera, None)
    assert frame.color.std() < 0.7 * noise.std()


@pytest.mark.parametrize("name", NAMES)
def test_what_does_not_fit_is_refused_in_one_line(name):
    camera = made_stream.camera_at(0, 8, 6)
    observation = made_stream.observe(camera, 0)
    with pytest.raises(
        DenoiseError, match=r"^the observation has 8×6 px, its camera 4×3; pass the camera it was drawn with\.$"
    ):
        BASELINES[name](observation, camera.resized(4, 3), None)
    with pytest.raises(DenoiseError, match=r"^threads must lie in 0 \(all cores\) \.\. 256, got 257\.$"):
        BASELINES[name](observation, camera, None, threads=257)


@pytest.mark.parametrize(
    ("config", "setting"),
    [
        (SvgfConfig, {"alpha": 1.5}),
        (SvgfConfig, {"moments_alpha": -0.1}),
        (SvgfConfig, {"depth_threshold": np.nan}),
        (SvgfConfig, {"sigma_depth": 0.0}),
        (SvgfConfig, {"sigma_luma": 0.0}),
        (SvgfConfig, {"passes": 6}),
        (taa.TaaConfig, {"cap_frames": 0.0}),
        (taa.TaaConfig, {"gamma": -1.0}),
    ],
)
def test_settings_out_of_range_are_refused(config, setting):
    name = next(iter(setting))
    with pytest.raises(DenoiseError, match=rf"^{name} must be a number from \S+ to \S+, got .+\.$"):
        config(**setting)


def test_a_kernel_has_three_or_five_taps():
    with pytest.raises(DenoiseError, match=r"^kernel must be 3 or 5, got 4\.$"):
        SvgfConfig(kernel=4)
