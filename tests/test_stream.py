"""The frame loop: noise, state, restart, resize, parts, bands, frame numbers and views."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from hushsplat.engines.cpu.engine import CpuEngine
from hushsplat.engines.torch.engine import TorchEngine
from hushsplat.methods import BLENDED, DENOISERS, configure, denoiser
from hushsplat.spec.settings import DenoiserSettings
from hushsplat.spec.state import KEPT_FRAMES
from hushsplat.stream import Stream, rows_of
from hushsplat.synth import home_camera, room_and_garden, walk_track
from hushsplat.types.camera import Camera
from hushsplat.types.errors import DenoiseError, RenderError
from hushsplat.types.image import Image
from hushsplat.types.observation import Observation
from hushsplat.types.options import Noise, RenderOptions

ENGINE = CpuEngine()
WIDTH, HEIGHT = 40, 30
TRACK = walk_track(2, 15, WIDTH, HEIGHT)
NOISE = Noise(samples=2, seed=3, frame=5, sampler="stratified")
BAND = 1e-4  # a band has another principal point, whose rounding differs
OPTIONS = RenderOptions(background=(0.2, 0.5, 0.9), threads=1)


@pytest.fixture(scope="module")
def scene():
    """Without payload."""
    return ENGINE.upload(room_and_garden(3000))


@pytest.fixture(scope="module")
def scene_with_payload(scene):
    payload = np.random.default_rng(0).standard_normal((scene.count, 10)).astype(np.float32)
    return ENGINE.with_payload(scene, payload)


def stream(scene, *methods, **options) -> Stream:
    return Stream(ENGINE, scene, methods, **{"noise": NOISE, "options": OPTIONS, **options})


def cameras(count: int) -> list[Camera]:
    return [TRACK.camera(index) for index in range(count)]


class Recorder:
    """A denoiser of a user's own: it keeps what it was given."""

    def __init__(self) -> None:
        self.seen: list = []

    def step(self, observation, camera, state, with_views=False):
        self.seen.append((observation, camera, state, with_views))
        return Image(observation.numpy().color), (state or 0) + 1


def test_all_methods_take_the_same_noisy_frame(scene) -> None:
    first, second = Recorder(), Recorder()
    running = stream(scene, first, "raw", second)
    for camera in cameras(3):
        frame = running.step(camera)
        assert first.seen[-1][0] is second.seen[-1][0] is frame.observation
        np.testing.assert_array_equal(frame.images[1].color, frame.observation.color)


def test_noise_is_that_of_the_frame_number(scene) -> None:
    running = stream(scene, "raw")
    for index, camera in enumerate(cameras(3)):
        frame = running.step(camera)
        visibility = ENGINE.sample(scene, camera, replace(NOISE, frame=5 + index), OPTIONS)
        expected = ENGINE.decode(visibility, scene, camera, OPTIONS)
        np.testing.assert_array_equal(frame.images[0].color, expected.color)
        np.testing.assert_array_equal(frame.images[0].depth, expected.depth)
        assert frame.number == 5 + index and frame.camera is camera
    assert running.number == 8
    still = [stream(scene, "raw", noise=replace(NOISE, frame=number)).step(TRACK.camera(0)) for number in (5, 6)]
    assert (still[0].images[0].color != still[1].images[0].color).any()


def test_options_reach_the_renderers_and_the_raw_frame(scene) -> None:
    away = Camera.look_at((500, 0, 0), (1000, 0, 0), width=8, height=6)
    for image in stream(scene, "raw", "exact", "reference").step(away).images:
        np.testing.assert_allclose(image.color, np.broadcast_to(np.float32(OPTIONS.background), (6, 8, 3)))
    behind = stream(scene, "reference", options=replace(OPTIONS, near=1e4)).step(TRACK.camera(0))
    assert behind.images[0].alpha.max() == 0


@pytest.mark.parametrize("name", DENOISERS)
def test_a_denoiser_gets_back_the_state_it_returned(scene_with_payload, name) -> None:
    running, by_hand, state = stream(scene_with_payload, name), denoiser(name, options=OPTIONS), None
    for camera in cameras(4):
        frame = running.step(camera)
        expected, state = by_hand.step(frame.observation, camera, state)
        np.testing.assert_array_equal(frame.images[0].color, expected.color)
    np.testing.assert_array_equal(running.states[0].values, state.values)


def test_the_same_method_twice_has_two_states(scene) -> None:
    short = configure("taa", settings=replace(configure("taa").settings, cap_frames=1.0))
    running = stream(scene, "taa", short, "taa")
    for camera in cameras(3):
        long, capped, again = running.step(camera).images
    np.testing.assert_array_equal(long.color, again.color)
    assert (long.color != capped.color).any()


def test_restart_drops_history_and_keeps_counting_frames(scene) -> None:
    own = Recorder()
    running = stream(scene, "temporal", own)
    for camera in cameras(3):
        running.step(camera)
    running.restart()
    assert running.states == [None, None]
    frame = running.step(TRACK.camera(3))
    assert frame.number == 8
    assert own.seen[-1][2] is None
    np.testing.assert_array_equal(running.states[0].accumulated_frames, 1)
    fresh = stream(scene, "temporal", noise=replace(NOISE, frame=8)).step(TRACK.camera(3))
    np.testing.assert_array_equal(frame.images[0].color, fresh.images[0].color)


def test_feeding_the_observed_frame_is_a_step(scene) -> None:
    stepped, fed = (stream(scene, "temporal", "raw", "reference") for _ in range(2))
    for camera in cameras(3):
        expected = stepped.step(camera)
        observation = fed.observe(camera)
        frame = fed.feed(observation, camera)
        assert frame.number == expected.number and frame.observation is observation
        for image, other in zip(frame.images, expected.images, strict=True):
            np.testing.assert_array_equal(image.color, other.color)
    np.testing.assert_array_equal(fed.states[0].values, stepped.states[0].values)


def test_observing_does_not_advance_the_stream(scene) -> None:
    running, camera = stream(scene, "temporal"), TRACK.camera(0)
    first, second = running.observe(camera), running.observe(camera)
    np.testing.assert_array_equal(first.color, second.color)
    assert running.number == 5 and running.states == [None]
    assert running.visibility.primitive_id.shape == (2, HEIGHT, WIDTH)


def test_parts_end_with_the_frame_of_a_step(scene) -> None:
    methods, camera = ("exact", "temporal", "raw", "reference"), TRACK.camera(0)
    *waits, frame = stream(scene, *methods, band_px=7).parts(camera)
    assert waits and all(part is None for part in waits)
    assert len(waits) == 1 + 5 + 2  # the noisy frame, five bands of `exact`, one for each streaming method
    expected = stream(scene, *methods).step(camera)
    for image, other in zip(frame.images, expected.images, strict=True):
        for name in ("color", "alpha", "depth", "variance"):
            found, known = getattr(image, name), getattr(other, name)
            assert (found is None) == (known is None)
            if known is not None:
                np.testing.assert_allclose(found, known, atol=BAND)


@pytest.mark.parametrize(("band_px", "bands"), [(0, 0), (1, HEIGHT), (7, 5), (HEIGHT - 1, 2), (HEIGHT, 0), (1000, 0)])
def test_exact_is_drawn_in_bands_of_so_many_rows(scene, band_px, bands) -> None:
    *waits, frame = stream(scene, "exact", band_px=band_px).parts(TRACK.camera(0))
    assert len(waits) == bands
    expected = ENGINE.render(scene, TRACK.camera(0), "exact", OPTIONS)
    np.testing.assert_allclose(frame.images[0].color, expected.color, atol=BAND)
    np.testing.assert_allclose(frame.images[0].variance, expected.variance, atol=BAND)
    assert frame.images[0].depth.shape == (HEIGHT, WIDTH)


def test_rows_of_a_camera_are_those_rows_of_the_picture(scene) -> None:
    camera = TRACK.camera(0)
    whole = ENGINE.render(scene, camera, "reference", OPTIONS)
    rows = ENGINE.render(scene, rows_of(camera, slice(9, 23)), "reference", OPTIONS)
    np.testing.assert_allclose(rows.color, whole.color[9:23], atol=BAND)


def test_blended_methods_take_no_noisy_frame(scene) -> None:
    running = stream(scene, *BLENDED)
    frame = running.step(TRACK.camera(0))
    assert frame.observation is None and not hasattr(running, "visibility")
    assert set(frame.passes_ms) == set(BLENDED)


def test_times_are_told_by_pass(scene) -> None:
    frame = stream(scene, "raw", "temporal-zero-shot", Recorder(), "reference").step(TRACK.camera(0))
    assert list(frame.passes_ms) == ["sample", "decode", "temporal-zero-shot", "Recorder", "reference"]
    assert all(spent >= 0 for spent in frame.passes_ms.values())


def test_views_are_given_to_the_methods_that_are_asked(scene) -> None:
    camera = TRACK.camera(0)
    running = stream(scene, "temporal", "taa", "temporal-zero-shot")
    first, baseline, second = running.step(camera, with_views=[True, False, False]).images
    assert first.views is not None and baseline.views is None and second.views is None
    own = Recorder()
    running = stream(scene, "temporal", own, "raw", "exact")
    assert running.step(camera).images[0].views is None
    assert running.step(camera, with_views=True).images[0].views is not None
    assert [with_views for *_, with_views in own.seen] == [False, True]
    with pytest.raises(DenoiseError, match=r"^taa has no views behind its picture\.$"):
        stream(scene, "taa").step(camera, with_views=True)


def test_a_denoiser_of_the_users_own_is_stepped_like_ours(scene) -> None:
    own = Recorder()
    running = stream(scene, own)
    for camera in cameras(3):
        frame = running.step(camera)
        np.testing.assert_array_equal(frame.images[0].color, frame.observation.color)
    assert [state for _, _, state, _ in own.seen] == [None, 1, 2]


def test_a_scene_without_payload_is_drawn_zero_shot(scene, scene_with_payload) -> None:
    configured = configure("temporal", settings=DenoiserSettings(spatial_filter=False))
    for camera in cameras(2):
        learned, zero_shot, chosen = stream(scene, "temporal", "temporal-zero-shot", configured).step(camera).images
        np.testing.assert_array_equal(learned.color, zero_shot.color)
        assert (chosen.color != learned.color).any()
    learned, zero_shot = stream(scene_with_payload, "temporal", "temporal-zero-shot").step(TRACK.camera(0)).images
    assert (learned.color != zero_shot.color).any()


def test_an_unknown_method_is_refused_before_the_first_frame(scene) -> None:
    with pytest.raises(RenderError, match=r"^method must be one of hush, .*, got 'x'\.$"):
        stream(scene, "x")


# Another picture size


@pytest.fixture(params=["cpu", "torch"])
def grown(request, scene):
    """A stream of either engine with a long history, and its state before the resize."""
    engine = ENGINE if request.param == "cpu" else TorchEngine()
    running = stream(scene, "temporal-zero-shot", "taa")
    camera = home_camera(WIDTH, HEIGHT)
    for _ in range(7):
        frame = running.step(camera)
    if request.param == "cpu":
        return running, camera, running.states[0]
    # The torch engine's own stream would be slow: its denoiser takes the same noisy frames.
    other = Stream(engine, scene, ["temporal-zero-shot", "taa"], noise=NOISE, options=OPTIONS)
    for _ in range(7):
        other.feed(frame.observation, camera)
    return other, camera, other.states[0]


def test_another_picture_size_keeps_a_short_history(grown) -> None:
    running, camera, before = grown
    assert float(before.numpy().accumulated_frames.min()) == 7 > KEPT_FRAMES
    after = running.engine.resize(before, camera.resized(57, 24)).numpy()
    assert after.values.shape == (24, 57, 16) and after.camera.width == 57 and after.camera.height == 24
    np.testing.assert_allclose(after.accumulated_frames, KEPT_FRAMES)
    assert after.denoised_frames.max() <= KEPT_FRAMES < before.numpy().denoised_frames.max()
    assert after.method == "temporal-zero-shot"


def test_depths_of_a_resized_state_are_depths_that_were_seen(grown) -> None:
    """Between two depths there is no surface: the nearest pixel's is taken, colours are interpolated."""
    running, camera, before = grown
    for width, height in ((56, 24), (16, 44), (80, 60), (24, 20)):  # no centre on a border of two pixels
        after = running.engine.resize(before, camera.resized(width, height)).numpy()
        old = before.numpy()
        assert np.isin(after.depth, old.depth).all()
        row = ((np.arange(height) + 0.5) * HEIGHT / height).astype(int)
        column = ((np.arange(width) + 0.5) * WIDTH / width).astype(int)
        np.testing.assert_array_equal(after.depth, old.depth[row[:, None], column])
        assert not np.isin(after.accumulated, old.accumulated).all()


def test_a_state_of_the_same_size_is_left_as_it_is(grown) -> None:
    running, camera, before = grown
    assert running.engine.resize(before, camera) is before


def test_a_step_at_another_size_goes_on_from_the_resized_state(scene) -> None:
    running, camera = stream(scene, "temporal-zero-shot", "taa"), home_camera(WIDTH, HEIGHT)
    for _ in range(7):
        running.step(camera)
    smaller = camera.resized(20, 15)
    resized = ENGINE.resize(running.states[0], smaller)
    frame = running.step(smaller)
    expected, _ = denoiser("temporal-zero-shot", options=OPTIONS).step(frame.observation, smaller, resized)
    np.testing.assert_array_equal(frame.images[0].color, expected.color)
    np.testing.assert_allclose(running.states[0].accumulated_frames, KEPT_FRAMES + 1)
    np.testing.assert_array_equal(running.states[1].history_frames, 1)  # baselines start anew


def test_replaced_methods_keep_states_by_name(scene) -> None:
    camera = cameras(1)[0]
    replaced = stream(scene, "mean", "temporal", "raw")  # without payload temporal-zero-shot draws
    for _ in range(3):
        replaced.step(camera)
    settings = replace(DenoiserSettings(), accumulated_cap_frames=50.0)
    replaced.replace_methods(["exact", configure("temporal-zero-shot", settings=settings), "taa"])
    assert [state and state.method for state in replaced.states] == [None, "temporal-zero-shot", None]
    replaced.step(camera)
    assert replaced.states[1].accumulated_frames.max() == 4
    replaced.replace_methods(["raw", "mean"])
    assert replaced.states == [None, None]


@pytest.mark.parametrize(("piece_px", "waits"), [(1, 30 * 6 + 30 + 2), (200, 6 * 6 + 6 + 2), (2400, 3 + 2), (10**6, 2)])
def test_a_frame_in_pieces_is_the_same_frame(scene_with_payload, piece_px, waits) -> None:
    """All samples of a band at once, or as many as fit; a band's rounding may change a winner here and there."""
    camera, noise = TRACK.camera(3), replace(NOISE, samples=6)
    whole = stream(scene_with_payload, "raw", "reference", noise=noise).step(camera)
    *paused, pieces = stream(scene_with_payload, "raw", "reference", noise=noise, piece_px=piece_px).parts(camera)
    assert len(paused) == waits and not any(paused)
    for name in ("color", "depth", "alpha", "neural_view"):
        drawn, expected = (getattr(frame.observation.numpy(), name) for frame in (pieces, whole))
        assert drawn.shape == expected.shape and drawn.dtype == np.float32
        assert np.isclose(drawn, expected, rtol=1e-3, atol=1e-3).mean() > 0.98
    np.testing.assert_allclose(pieces.images[1].numpy().color, whole.images[1].numpy().color, atol=2e-3)


def test_the_mean_of_two_frames_by_hand() -> None:
    """Depths are means over the samples that hit, colours and alpha over all of them."""

    def frame(color: float, depth: float, alpha: float) -> Observation:
        one = np.ones((1, 1), np.float32)
        return Observation(np.full((1, 1, 3), color, np.float32), depth * one, alpha * one)

    mean = Observation.mean(frame(1, 2, 1), frame(0, 0, 0), 1, 1)
    assert (mean.color[0, 0, 0], mean.depth[0, 0], mean.alpha[0, 0]) == (0.5, 2, 0.5)
    mean = Observation.mean(frame(3, 2, 0.5), frame(0, 4, 1), 2, 1)  # one hit of two samples, one of one
    np.testing.assert_allclose((mean.color[0, 0, 0], mean.depth[0, 0], mean.alpha[0, 0]), (2, 3, 2 / 3), rtol=1e-6)
    assert Observation.mean(frame(1, 0, 0), frame(1, 0, 0), 1, 1).depth[0, 0] == 0
