"""Pictures of a denoiser's views: colours, scales, ellipses, labels."""

import numpy as np
import pytest

from hushsplat.engines.cpu.denoise import filter_ellipse
from hushsplat.io.legend import BAR_HEIGHT, BAR_WIDTH, with_label, with_scale
from hushsplat.methods import denoiser
from hushsplat.spec.passes import PASSES, VIEWS
from hushsplat.spec.settings import DenoiserSettings
from hushsplat.spec.state import TEMPORAL
from hushsplat.spec.views import SHOWN, view_picture
from hushsplat.synth import home_camera, walk_track
from hushsplat.types.errors import DenoiseError
from hushsplat.types.image import Image
from hushsplat.types.observation import Observation
from hushsplat.types.settings import declared


def observed(seed: int = 0) -> Observation:
    rng = np.random.default_rng(seed)
    return Observation(
        color=rng.random((20, 30, 3), dtype=np.float32),
        depth=rng.uniform(1, 3, (20, 30)).astype(np.float32),
        alpha=np.ones((20, 30), dtype=np.float32),
        neural_view=rng.normal(0, 2, (20, 30, 4)).astype(np.float32),
    )


def test_every_declared_view_can_be_shown() -> None:
    assert {name for name, _ in SHOWN.values()} == set(VIEWS)


def test_passes_name_settings_channels_and_views_that_are_declared() -> None:
    """Every setting is read by a pass, every channel but the spare one and every view is left by exactly one."""
    read = {name for each in PASSES for name in each.settings}
    assert read == set(declared(DenoiserSettings))
    channels = [name for each in PASSES for name in each.state]
    assert sorted(channels) == sorted({channel.name for channel in TEMPORAL.channels} - {"spare"})
    assert sorted(name for each in PASSES for name in each.views) == sorted(VIEWS)


@pytest.mark.parametrize("show", SHOWN)
def test_every_view_becomes_a_picture(show: str) -> None:
    it = denoiser("temporal")
    _, state = it.step(observed(0), home_camera(30, 20), None)
    frame, _ = it.step(observed(1), walk_track(1, 10, 30, 20).camera(1), state, with_views=True)
    picture = view_picture(frame, show)
    assert picture.color.shape == (20, 30, 3)
    assert np.isfinite(picture.color).all()
    if picture.scale is not None:
        assert picture.color.min() >= 0 and picture.color.max() <= 1
        assert picture.scale.value(1.0) == picture.scale.high
        assert picture.scale.place(np.array([picture.scale.value(0.25)]))[0] == pytest.approx(0.25)
        assert picture.scale.bar(BAR_WIDTH, BAR_HEIGHT).shape == (BAR_HEIGHT, BAR_WIDTH, 3)


def frame_with(name: str, values: np.ndarray) -> Image:
    return Image(np.zeros((*values.shape[:2], 3), np.float32), views={name: values.astype(np.float32)})


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
        return filter_ellipse(np.broadcast_to(np.float32(view), (3, 3, 4)), (3, 3), 1 / 32)[1, 1]

    softplus = np.log(2.0)
    np.testing.assert_allclose(kernel(0, 4, 0, 0), [4 + softplus, softplus, 1, 0], atol=1e-5)
    np.testing.assert_allclose(np.abs(kernel(4, 0, 0, 0)), [4 + softplus, softplus, 0, 1], atol=1e-5)
    major, minor, cosine, sine = kernel(2, 2, 0.5, 0)
    along = (2 + softplus) * np.tanh(0.5)
    np.testing.assert_allclose([major, minor], [2 + softplus + along, 2 + softplus - along], atol=1e-4)
    assert sine / cosine == pytest.approx(1.0, abs=0.08)  # 45 degrees but for the lean
    np.testing.assert_allclose(filter_ellipse(None, (2, 5), 1 / 32)[1, 4], [2, 2, 1, 0], atol=1e-5)
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
