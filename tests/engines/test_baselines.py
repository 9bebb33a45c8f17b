"""The baselines on the CPU engine against the torch engine, and what must hold for each of them."""

from dataclasses import replace

import made_stream
import numpy as np
import pytest

from hushsplat.engines.cpu import _engine
from hushsplat.engines.cpu.engine import CpuEngine
from hushsplat.engines.torch.engine import TorchEngine
from hushsplat.methods import configure
from hushsplat.spec.settings import LITERAL_SVGF, StTaaSettings, SvgfSettings, TaaSettings
from hushsplat.types.camera import Camera
from hushsplat.types.errors import DenoiseError, RenderError
from hushsplat.types.observation import Observation
from hushsplat.types.options import RenderOptions

NAMES = ["mean", "st-taa", "taa", "svgf", "svgf-literal", "svgf-tuned"]
BASELINES = {name: configure(name) for name in NAMES} | {
    "taa-short": configure("taa", settings=TaaSettings(cap_frames=3.0, gamma=0.3, far_depth=5.0)),
    "st-taa-short": configure("st-taa", settings=StTaaSettings(cap_frames=3.0, reach=0.2, far_depth=5.0)),
    "svgf-fed-back": configure(
        "svgf", settings=SvgfSettings(alpha=0.05, moments_alpha=0.2, sigma_luma=2.0, passes=3, kernel=5, feedback=True)
    ),
    "svgf-small-kernel": configure(
        "svgf",
        settings=SvgfSettings(alpha=0.1, sigma_depth=0.1, sigma_luma=1.0, passes=2, kernel=3, feedback=False),
    ),
    "svgf-all-passes": configure(
        "svgf", settings=SvgfSettings(depth_threshold=0.1, sigma_luma=1.0, passes=5, kernel=5, feedback=True)
    ),
}
CPU, TORCH = CpuEngine(), TorchEngine()


def step(name, observation, camera, state, *, threads=0, engine=CPU, with_views=False):
    return engine.denoise(BASELINES[name], observation, camera, state, RenderOptions(threads=threads), with_views)


def walk(frames, width=48, height=40, still=4):
    """A stream that moves and then stands still for the last few frames."""
    for frame in range(frames):
        camera = made_stream.camera_at(min(frame, frames - still), width, height)
        yield made_stream.observe(camera, frame), camera


def played(name, stream, **options):
    state, shown = None, []
    for observation, camera in stream:
        frame, state = step(name, observation, camera, state, **options)
        shown.append(frame.color)
    return shown, state


@pytest.mark.parametrize("instruction_set", _engine.instruction_sets())
@pytest.mark.parametrize("name", BASELINES)
def test_each_step_is_that_of_the_torch_engine(name, instruction_set):
    in_use = _engine.instruction_set()
    _engine.choose_instruction_set(instruction_set)
    try:
        for width, height in ((53, 37), (3, 20), (1, 1)):
            state = None
            for observation, camera in walk(14, width, height):
                expected, history = step(name, observation, camera, state, engine=TORCH)
                frame, state = step(name, observation, camera, state)
                wrong = np.abs(frame.color - expected.color).max(axis=-1) > 2e-5
                wrong |= (np.abs(state.values - history.values) > 2e-5 * (1 + np.abs(history.values))).any(axis=-1)
                # A place on the edge between two pixels, or a depth on its threshold, may round to either side.
                assert wrong.mean() <= (0.002 if wrong.size > 100 else 0)
                assert state.frames == history.frames and state.camera is history.camera
    finally:
        _engine.choose_instruction_set(in_use)


@pytest.mark.parametrize("name", BASELINES)
def test_a_whole_walk_is_that_of_the_torch_engine(name):
    state = torch_state = None
    for observation, camera in walk(20, 40, 30):
        frame, state = step(name, observation, camera, state)
        expected, torch_state = step(name, observation, camera, torch_state, engine=TORCH)
    wrong = np.abs(frame.color - expected.color).max(axis=-1) > 1e-4
    assert wrong.mean() < 0.01  # what rounded to another pixel stays in the history and spreads


@pytest.mark.parametrize("engine", [CPU, TORCH], ids=["cpu", "torch"])
@pytest.mark.parametrize(
    ("name", "change"),
    [
        ("mean", {"static_tolerance": 1.0}),
        ("taa", {"static_tolerance": 1.0}),
        ("taa", {"far_depth": 3.0}),
        ("st-taa", {"static_tolerance": 1.0}),
        ("st-taa", {"far_depth": 3.0}),
        ("st-taa", {"reach": 0.1}),
        ("st-taa", {"cap_frames": 2.0}),
        ("svgf", {"static_tolerance": 1.0}),
        ("svgf-tuned", {"far_depth": 3.0}),
    ],
)
def test_every_setting_is_obeyed(name, change, engine):
    shown = []
    for configured in (BASELINES[name], replace(BASELINES[name], settings=replace(BASELINES[name].settings, **change))):
        state = None
        for observation, camera in walk(6, still=1):
            bright = observation.color + np.random.default_rng(0).random(observation.color.shape, dtype=np.float32)
            observation = replace(observation, color=bright)  # also where nothing was hit
            frame, state = engine.denoise(configured, observation, camera, state, RenderOptions())
        shown.append(frame.color)
    assert np.abs(shown[0] - shown[1]).max() > 1e-3


@pytest.mark.parametrize("name", ["mean", "st-taa", "taa"])
def test_a_static_camera_gives_the_plain_mean(name):
    camera = made_stream.camera_at(0)
    stream = [made_stream.observe(camera, frame) for frame in range(129)]  # the 129th sample weighs 1/129 as well
    shown, _ = played(name, [(observation, camera) for observation in stream])
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
    _, state = played(name, [(dark, camera)] * 300)
    assert (state.values[..., 3] == 128).all()
    frame, _ = step(name, bright, camera, state)
    np.testing.assert_allclose(frame.color, 1 / 129, rtol=1e-6)


def test_the_mean_restarts_when_the_camera_moves():
    first, second = made_stream.camera_at(0), made_stream.camera_at(1)
    _, state = step("mean", made_stream.observe(first, 0), first, None)
    _, state = step("mean", made_stream.observe(first, 1), first, state)
    assert state.frames == 2
    observation = made_stream.observe(second, 2)
    frame, state = step("mean", observation, second, state)
    assert state.frames == 1
    np.testing.assert_array_equal(frame.color, observation.color)


def test_the_mean_does_not_creep_along_with_a_camera_that_moves_below_the_tolerance():
    _, state = step("mean", made_stream.observe(made_stream.camera_at(0), 0), made_stream.camera_at(0), None)
    for frame in range(1, 8):
        pose = made_stream.camera_at(0).world_from_camera.copy()
        pose[0, 3] += 4e-7 * frame
        camera = replace(made_stream.camera_at(0), world_from_camera=pose)
        _, state = step("mean", made_stream.observe(camera, frame), camera, state)
    assert state.frames < 8


@pytest.mark.parametrize("name", BASELINES)
def test_a_scene_of_one_colour_stays_so(name):
    state = None
    for observation, camera in walk(12):
        flat = replace(observation, color=np.broadcast_to(np.float32([0.2, 0.7, 0.4]), observation.color.shape).copy())
        frame, state = step(name, flat, camera, state)
        np.testing.assert_allclose(frame.color, flat.color, atol=1e-6)


@pytest.mark.parametrize("name", BASELINES)
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
        frame, state = step(name, Observation(color, depth, observation.alpha), camera, state)
        color[spots | broken_depth], depth[spots | broken_depth] = 0, 0
        expected, clean_state = step(name, Observation(color, depth, observation.alpha), camera, clean_state)
        assert np.isfinite(frame.color).all() and np.isfinite(state.values).all()
        np.testing.assert_array_equal(frame.color, expected.color)
        np.testing.assert_array_equal(state.values, clean_state.values)


@pytest.mark.parametrize("name", ["mean", "st-taa", "taa"])
def test_the_first_frame_is_shown_as_it_is(name):
    camera = made_stream.camera_at(0)
    observation = made_stream.observe(camera, 0)
    frame, _ = step(name, observation, camera, None)
    np.testing.assert_array_equal(frame.color, observation.color)


@pytest.mark.parametrize("name", BASELINES)
def test_another_size_and_a_cut_start_anew(name):
    _, state = played(name, walk(4))
    away = Camera.look_at((9, 0, 0), (9, 0, -5), width=48, height=40)
    small = made_stream.camera_at(3, 24, 20)
    for camera in (away, small):
        observation = made_stream.observe(made_stream.camera_at(3, camera.width, camera.height), 9)
        frame, after = step(name, observation, camera, state)
        first, fresh = step(name, observation, camera, None)
        np.testing.assert_array_equal(frame.color, first.color)
        np.testing.assert_array_equal(after.values, fresh.values)


@pytest.mark.parametrize("name", BASELINES)
@pytest.mark.parametrize("size", [(1, 1), (1, 7), (9, 1), (2, 2)])
def test_small_pictures_are_pictures(name, size):
    shown, state = played(name, walk(6, *size))
    assert np.isfinite(shown).all() and np.isfinite(state.values).all()


@pytest.mark.parametrize("name", BASELINES)
def test_a_step_is_a_pure_function_whatever_the_threads(name):
    _, state = played(name, walk(4))
    kept = state.values.copy()
    camera = made_stream.camera_at(5)
    observation = made_stream.observe(camera, 5)
    frames = [step(name, observation, camera, state, threads=threads) for threads in (1, 1, 2, 3)]
    np.testing.assert_array_equal(state.values, kept)
    for frame, after in frames[1:]:
        np.testing.assert_array_equal(frame.color, frames[0][0].color)
        np.testing.assert_array_equal(after.values, frames[0][1].values)


@pytest.mark.parametrize("name", NAMES)
def test_thousands_of_frames_do_not_drift(name):
    camera = made_stream.camera_at(0, 5, 4)
    stream = [made_stream.observe(camera, frame, holes=0.0) for frame in range(7)]
    colors = np.array([observation.color for observation in stream], dtype=np.float64)
    state, expected = None, np.zeros(colors[0].shape)
    for frame in range(2000):
        shown, state = step(name, stream[frame % 7], camera, state, threads=1)
        expected += (colors[frame % 7] - expected) / (frame + 1 if name == "mean" else min(frame + 1, 129))
    if name in ("mean", "st-taa", "taa"):
        np.testing.assert_allclose(shown.color, expected, atol=1e-5)
    assert (shown.color >= colors.min()).all() and (shown.color <= colors.max()).all()
    assert np.isfinite(state.values).all()


def two_points(near, far):
    """A camera that moves one pixel to the right, and what it sees: `near` and `far` hold depths of a row."""
    before = Camera(4, 1, 4.0, 4.0, 2.0, 0.5, np.eye(4))
    depth = np.float32([near])
    color = np.arange(12, dtype=np.float32).reshape(1, 4, 3)
    return before, Observation(color, depth, np.ones((1, 4), np.float32)), np.float32([far])


def test_st_taa_throws_forward_the_nearest_wins_and_holes_start_anew():
    # At depth 4 one unit is one pixel: a camera one unit to the right moves depth 4 by one pixel and depth 2 by two.
    before, observation, depth = two_points([4, 4, 4, 2], [4, 4, 4, 4])
    _, state = step("st-taa", observation, before, None)
    pose = np.eye(4)
    pose[0, 3] = 1.0
    after = replace(before, world_from_camera=pose)
    frame, kept = step("st-taa", Observation(observation.color, depth, observation.alpha), after, state)
    # 0 leaves the picture, 1 lands on 0; 2 and 3 meet on 1, where 3 is nearer; nothing lands on 2 and 3.
    np.testing.assert_array_equal(kept.values[0, :, 3], [2, 2, 1, 1])
    old = observation.color[0]
    np.testing.assert_allclose(
        frame.color[0], [(old[0] + old[1]) / 2, (old[1] + old[3]) / 2, old[2], old[3]], atol=1e-6
    )
    far, _ = step("st-taa", Observation(observation.color, depth * 40, observation.alpha), after, state)
    np.testing.assert_array_equal(far.color, observation.color)  # more than 100 units away: not the same thing


def test_svgf_has_the_constants_of_the_paper():
    adapted = BASELINES["svgf"].settings
    assert (adapted.alpha, adapted.moments_alpha, adapted.depth_threshold) == (0.02, 0.02, 0.4)
    assert (adapted.sigma_depth, adapted.sigma_luma, adapted.passes) == (0.3, 8.0, 0)
    assert replace(adapted, running_mean=False) == LITERAL_SVGF


@pytest.mark.parametrize(("texels", "kept"), [(0, False), (1, False), (2, True), (4, True)])
def test_svgf_keeps_history_if_two_of_four_depths_agree(texels, kept):
    camera = Camera(2, 2, 2.0, 2.0, 1.0, 1.0, np.eye(4))
    depth = np.full((2, 2), 10.0, np.float32)
    depth.flat[texels:] = 5.9  # 0.41 apart, relative to the larger
    ones = np.ones((2, 2), np.float32)
    _, state = step("svgf", Observation(np.zeros((2, 2, 3), np.float32), depth, ones), camera, None)
    _, state = step("svgf", Observation(np.ones((2, 2, 3), np.float32), 10 * ones, ones), camera, state)
    expected = 0.5 if kept else 1.0  # the mean of two frames, or the new one alone
    np.testing.assert_allclose(state.values[0, 0, :5], expected, rtol=1e-6)
    assert state.values[0, 0, 5] == (2 if kept else 1)


def test_svgf_blends_exponentially_and_feeds_back_what_is_not_filtered():
    camera = made_stream.camera_at(0)
    first, second = (made_stream.observe(camera, frame, holes=0.0) for frame in range(2))
    _, state = played("svgf-literal", [(first, camera), (second, camera)])
    kept = state.values[..., 5] == 2
    assert kept.mean() > 0.5
    np.testing.assert_allclose(state.values[kept][:, :3], (0.98 * first.color + 0.02 * second.color)[kept], atol=1e-6)


@pytest.mark.parametrize("name", [name for name in BASELINES if name.startswith("svgf")])
def test_a_filter_over_space_calms_a_first_frame(name):
    camera = made_stream.camera_at(0)
    noise = np.random.default_rng(0).uniform(0.2, 0.8, (40, 48, 3)).astype(np.float32)
    frame, _ = step(name, replace(made_stream.observe(camera, 0), color=noise), camera, None)
    assert frame.color.std() < 0.7 * noise.std()


@pytest.mark.parametrize("name", NAMES)
def test_what_does_not_fit_is_refused_in_one_line(name):
    camera = made_stream.camera_at(0, 8, 6)
    observation = made_stream.observe(camera, 0)
    with pytest.raises(
        DenoiseError, match=r"^the observation has 8×6 px, its camera 4×3; pass the camera it was drawn with\.$"
    ):
        step(name, observation, camera.resized(4, 3), None)
    with pytest.raises(RenderError, match=r"^threads must lie in 0 \(all cores\) \.\. 256, got 257\.$"):
        step(name, observation, camera, None, threads=257)


@pytest.mark.parametrize(
    ("config", "setting"),
    [
        (SvgfSettings, {"alpha": 1.5}),
        (SvgfSettings, {"moments_alpha": -0.1}),
        (SvgfSettings, {"depth_threshold": np.nan}),
        (SvgfSettings, {"sigma_depth": 0.0}),
        (SvgfSettings, {"sigma_luma": 0.0}),
        (SvgfSettings, {"passes": 6}),
        (TaaSettings, {"cap_frames": 0.0}),
        (TaaSettings, {"gamma": -1.0}),
    ],
)
def test_settings_out_of_range_are_refused(config, setting):
    name = next(iter(setting))
    with pytest.raises(DenoiseError, match=rf"^{name} must be a (whole )?number from \S+ to \S+, got .+\.$"):
        config(**setting)
