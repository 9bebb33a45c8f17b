"""All denoisers behind one door, and the pictures of what lies behind a frame."""

import subprocess
import sys

import numpy as np
import pytest
from hushsplat.engines.cpu.denoise_names import LEARNED, METHODS, SHOWN, DenoiserSettings, denoiser, view_picture
from hushsplat.engines.cpu.ellipse import filter_ellipse
from hushsplat.types.frame import VIEWS, Image

import hushsplat
from hushsplat.engines.cpu import denoisers as methods
from hushsplat.engines.cpu import pipeline
from hushsplat.io import weights as weight_files
from hushsplat.io.legend import BAR_HEIGHT, BAR_WIDTH, with_label, with_scale
from hushsplat.spec.weights import SHAPES, DenoiserWeights
from hushsplat.types.camera import Camera
from hushsplat.types.errors import DenoiseError, RenderError, WeightsError
from hushsplat.types.observation import Observation


@pytest.fixture(scope="module")
def weights() -> DenoiserWeights:
    tensors = {name: np.zeros(shape, dtype=np.float32) for name, shape in SHAPES.items()}
    tensors["accumulated.head.bias"][:] = 3.0
    tensors["denoised.head.bias"][:] = 2.0
    tensors["gate.gamma"] = np.array(10.0, dtype=np.float32)
    return DenoiserWeights(tensors)


@pytest.fixture(scope="module")
def camera() -> Camera:
    return hushsplat.home_camera(30, 20)


def observed(seed: int = 0, payload: bool = True) -> Observation:
    rng = np.random.default_rng(seed)
    return Observation(
        color=rng.random((20, 30, 3), dtype=np.float32),
        depth=rng.uniform(1, 3, (20, 30)).astype(np.float32),
        alpha=np.ones((20, 30), dtype=np.float32),
        neural_view=rng.normal(0, 2, (20, 30, 4)).astype(np.float32) if payload else None,
    )


def test_hush_is_the_pipeline_and_zero_shot_is_its_switch(weights: DenoiserWeights, camera: Camera) -> None:
    for name, config in (
        ("hush", DenoiserSettings(gate=1)),
        ("hush-zero-shot", DenoiserSettings(gate=1, zero_shot=True)),
    ):
        it = denoiser(name, weights=weights, config=DenoiserSettings(gate=1), threads=1)
        state = expected_state = None
        for seed in range(3):
            frame, state = it.step(observed(seed), camera, state)
            expected, expected_state = pipeline.step(
                observed(seed), camera, expected_state, weights=weights, config=config
            )
            np.testing.assert_array_equal(frame.color, expected.color)
        assert frame.views is None


@pytest.mark.parametrize("name", METHODS)
def test_every_denoiser_calms_a_still_stream_and_is_a_pure_function(
    name: str, weights: DenoiserWeights, camera: Camera
) -> None:
    it = denoiser(name, weights=weights if name in LEARNED else None)
    state, kept = None, []
    for seed in range(8):
        frame, state = it.step(observed(seed), camera, state)
        kept.append(frame.color)
    assert np.abs(kept[-1] - 0.5).mean() < 0.6 * np.abs(observed(7).color - 0.5).mean()
    again, _ = it.step(observed(0), camera, None)
    np.testing.assert_array_equal(again.color, kept[0])


def test_what_does_not_fit_is_refused(weights: DenoiserWeights, camera: Camera) -> None:
    with pytest.raises(DenoiseError, match=r"^a denoiser is one of .*hush, hush-zero-shot, got 'blurry'\.$"):
        denoiser("blurry")
    with pytest.raises(DenoiseError, match=r"^hush needs weights; hushsplat\.denoiser\('hush'\) brings those"):
        denoiser("hush")
    with pytest.raises(DenoiseError, match=r"^hush needs a scene with a payload, .* use hush-zero-shot\.$"):
        denoiser("hush", weights=weights).step(observed(payload=False), camera, None)
    denoiser("hush-zero-shot", weights=weights).step(observed(payload=False), camera, None)


def test_a_baseline_has_a_step_and_neither_settings_nor_views(camera: Camera, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(
        methods.BASELINES, "count", lambda observation, _, state, threads: (Image(observation.color), (state or 0) + 1)
    )
    it = denoiser("count")
    _, state = it.step(observed(), camera, None)
    frame, state = it.step(observed(1), camera, state)
    assert state == 2
    np.testing.assert_array_equal(frame.color, observed(1).color)
    with pytest.raises(DenoiseError, match=r"^count has no settings; they belong to hush and hush-zero-shot\.$"):
        denoiser("count", config=DenoiserSettings())
    with pytest.raises(DenoiseError, match=r"^count has no views behind its picture; hush and hush-zero-shot have\.$"):
        it.step(observed(), camera, None, with_views=True)


def test_views_are_those_of_the_contract(weights: DenoiserWeights, camera: Camera) -> None:
    frame, _ = denoiser("hush", weights=weights).step(observed(), camera, None, with_views=True)
    assert frame.views is not None
    assert set(frame.views) == set(VIEWS) == {name for name, _ in SHOWN.values()}


@pytest.mark.parametrize("show", SHOWN)
def test_every_view_becomes_a_picture(show: str, weights: DenoiserWeights, camera: Camera) -> None:
    it = denoiser("hush", weights=weights)
    _, state = it.step(observed(0), camera, None)
    frame, _ = it.step(observed(1), hushsplat.walk_track(1, 10, 30, 20).camera(1), state, with_views=True)
    picture = view_picture(frame, show)
    assert picture.color.shape == (20, 30, 3)
    assert np.isfinite(picture.color).all()
    if picture.scale is not None:
        assert picture.color.min() >= 0 and picture.color.max() <= 1
        assert picture.scale.value(1.0) == picture.scale.high
        assert picture.scale.place(np.array([picture.scale.value(0.25)]))[0] == pytest.approx(0.25)
        assert picture.scale.bar(BAR_WIDTH, BAR_HEIGHT).shape == (BAR_HEIGHT, BAR_WIDTH, 3)


def frame_with(name: str, values: np.ndarray) -> Image:
    return Image(np.zeros((*values.shape[:2], 3), np.float32), {name: values.astype(np.float32)})


def test_colours_grow_from_dark_to_bright_along_their_scale() -> None:
    ramp = view_picture(frame_with("gate", np.linspace(0, 1, 50)[None, :, None]), "gate").color
    assert (np.diff(ramp @ [0.2126, 0.7152, 0.0722]) > 0).all()
    config = DenoiserSettings(accumulated_cap_frames=8.0)
    frames = np.array([8.0, 100.0])[None, :, None]
    full = view_picture(frame_with("accumulated_frames", frames), "frames_s", config)
    assert full.scale is not None and full.scale.high == 8
    np.testing.assert_array_equal(full.color[0, 0], full.color[0, 1])
    np.testing.assert_allclose(full.color[0, 0], ramp[0, -1], atol=1e-6)


def test_motion_has_a_hue_for_its_direction_and_no_light_where_nothing_moves() -> None:
    right, left, still = (60.0, 0.0), (-60.0, 0.0), (0.0, 0.0)
    color = view_picture(frame_with("motion_px", np.array([[right, left, still]])), "motion").color[0]
    assert color[0].argmax() == 0 and color[0, 0] > 0.9  # right is red
    assert color[1].argmin() == 0
    assert not color[2].any()
    wild = view_picture(frame_with("motion_px", np.array([[(1e9, 1e9)]])), "motion").color
    assert np.isfinite(wild).all()


@pytest.mark.parametrize("degrees", [0.0, 30.0, 90.0, 135.0])
def test_an_ellipse_is_drawn_along_its_major_axis(degrees: float) -> None:
    cosine, sine = np.cos(np.radians(degrees)), np.sin(np.radians(degrees))
    frame = frame_with("ellipse", np.broadcast_to(np.array([2.5, 0.5, cosine, sine]), (24, 24, 4)))
    assert frame.views is not None
    frame.views["filtered"] = np.zeros((24, 24, 3), dtype=np.float32)
    y, x = np.nonzero(view_picture(frame, "ellipse").color.sum(axis=-1) > 0.3)
    assert np.ptp(x * cosine + y * sine) == pytest.approx(
        2 * 2.5 * 3 + 3, abs=1
    )  # three times as large, and the line's width
    assert np.ptp(y * cosine - x * sine) == pytest.approx(2 * 0.5 * 3 + 2, abs=1.5)


def test_kernels_by_hand() -> None:
    def kernel(*view: float) -> np.ndarray:
        return filter_ellipse(np.broadcast_to(np.float32(view), (3, 3, 4)), (3, 3))[1, 1]

    softplus = np.log(2.0)
    np.testing.assert_allclose(kernel(0, 4, 0, 0), [4 + softplus, softplus, 1, 0], atol=1e-5)
    np.testing.assert_allclose(np.abs(kernel(4, 0, 0, 0)), [4 + softplus, softplus, 0, 1], atol=1e-5)
    major, minor, cosine, sine = kernel(2, 2, 0.5, 0)
    along = (2 + softplus) * np.tanh(0.5)
    np.testing.assert_allclose([major, minor], [2 + softplus + along, 2 + softplus - along], atol=1e-4)
    assert sine / cosine == pytest.approx(1.0, abs=0.08)  # 45 degrees but for the lean
    np.testing.assert_allclose(filter_ellipse(None, (2, 5))[1, 4], [2, 2, 1, 0], atol=1e-5)
    assert np.isfinite(kernel(np.nan, np.inf, -np.inf, 1e30)).all()


def test_what_cannot_be_shown_is_refused() -> None:
    frame = Image(np.zeros((2, 2, 3), dtype=np.float32))
    with pytest.raises(DenoiseError, match=r"^a view is one of trust_s, .*ellipse, got 'mood'\.$"):
        view_picture(frame, "mood")
    with pytest.raises(
        DenoiseError, match=r"^the frame has no views, so gate cannot be shown; denoise with with_views"
    ):
        view_picture(frame, "gate")


def test_labels_and_scales_are_written_in_their_corners_and_nowhere_else() -> None:
    white = np.ones((100, 200, 3), dtype=np.float32)
    labelled = with_label(white, "hush")
    assert labelled[:25, :40].min() == 0
    assert (labelled[30:] == 1).all() and (labelled[:, 60:] == 1).all()
    bar = np.full((BAR_HEIGHT, BAR_WIDTH, 3), 0.5, dtype=np.float32)
    scaled = with_scale(white, "gate", bar, lambda place: place)
    assert (scaled[:40] == 1).all() and (scaled[:, 160:] == 1).all()
    assert np.isclose(scaled, 0.5, atol=0.01).all(axis=-1).sum() >= BAR_WIDTH * BAR_HEIGHT
    small = np.ones((20, 200, 3), dtype=np.float32)
    np.testing.assert_array_equal(with_scale(small, "gate", bar, lambda place: place), small)


def test_play_carries_the_state_along_a_track(weights: DenoiserWeights) -> None:
    scene, track = hushsplat.room_and_garden(2000), hushsplat.walk_track(1.0, 3.0, 30, 20)
    it = denoiser("hush-zero-shot", weights=weights)
    noise = hushsplat.Noise(samples=2, seed=3, frame=5, sampler="stratified")
    played = list(hushsplat.play_side_by_side(scene, track, ["raw", it, "reference", it], noise=noise))
    assert [len(frames) for frames in played] == [4, 4, 4]
    state = None
    for index, (raw, calm, reference, twice) in enumerate(played):
        camera = track.camera(index)
        picture = hushsplat.render(scene, camera, "raw", samples=2, seed=3, frame=5 + index, sampler="stratified")
        np.testing.assert_array_equal(raw.color, picture.color)
        np.testing.assert_array_equal(reference.color, hushsplat.render(scene, camera).color)
        observation = Observation(picture.color, picture.depth, picture.alpha)
        expected, state = it.step(observation, camera, state)
        np.testing.assert_array_equal(calm.color, expected.color)
        np.testing.assert_array_equal(twice.color, expected.color)


def test_play_takes_cameras_one_by_one_and_gives_views(weights: DenoiserWeights, camera: Camera) -> None:
    scene = hushsplat.room_and_garden(2000)
    it = denoiser("hush-zero-shot", weights=weights)
    frames = hushsplat.play(scene, (camera for _ in range(2)), it, with_views=True)
    first, second = list(frames)
    assert first.views is not None and second.views is not None
    assert (second.views["accumulated_frames"] == 2).all()
    with pytest.raises(RenderError, match=r"^method must be one of raw, exact, reference, .*hush-zero-shot, got 'x'"):
        hushsplat.play(scene, [camera], "x")  # refused before the first frame is asked for


def test_denoiser_takes_weights_of_a_file_or_of_the_package(
    weights: DenoiserWeights, camera: Camera, tmp_path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = tmp_path / "w.safetensors"
    weight_files.write_weights(weights, path)
    expected, _ = denoiser("hush", weights=weights).step(observed(), camera, None)
    frame, _ = hushsplat.denoiser("hush", weights=path).step(observed(), camera, None)
    np.testing.assert_array_equal(frame.color, expected.color)
    monkeypatch.setattr(weight_files, "DEFAULT", ("denoise", "weights", "gone.safetensors"))
    with pytest.raises(WeightsError, match=r"gone\.safetensors: the weights of the package are not there; install it"):
        hushsplat.denoiser("hush")


def test_playing_needs_no_torch() -> None:
    code = "import sys, hushsplat; hushsplat.play; assert 'torch' not in sys.modules"
    subprocess.run([sys.executable, "-c", code], check=True)
