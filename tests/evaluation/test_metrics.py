"""PSNR and SSIM by hand and beside scikit-image, and what flicker means on noise that is known."""

import numpy as np
import pytest
from skimage.metrics import structural_similarity

from hushsplat.evaluation.metrics import Warp, flicker, gradient_energy, ssim, tpsnr
from hushsplat.types.camera import Camera
from hushsplat.types.errors import EvaluationError
from hushsplat.types.metrics import BEST_DB, psnr


def picture(seed: int, height: int = 40, width: int = 56) -> np.ndarray:
    rng = np.random.default_rng(seed)
    y, x = np.mgrid[0:height, 0:width]
    waves = [0.5 + 0.3 * np.sin(x / (3 + channel) + y / 5) for channel in range(3)]
    return (np.stack(waves, axis=-1) + rng.normal(0, 0.1, (height, width, 3))).astype(np.float32)


def test_psnr_by_hand() -> None:
    expected = np.zeros((4, 4, 3), dtype=np.float32)
    assert psnr(expected + np.float32(0.1), expected) == pytest.approx(20.0, abs=1e-5)
    assert psnr(expected, expected) == BEST_DB
    assert psnr(expected - 5, expected) == BEST_DB  # a screen shows no less than black
    assert psnr(expected + 5, expected) == pytest.approx(0.0)


@pytest.mark.parametrize("seed", [1, 2])
def test_ssim_is_that_of_scikit_image(seed: int) -> None:
    first, second = np.clip(picture(0), 0, 1), np.clip(picture(seed), 0, 1)
    expected = structural_similarity(
        first.astype(np.float64),
        second.astype(np.float64),
        gaussian_weights=True,
        sigma=1.5,
        use_sample_covariance=False,
        data_range=1.0,
        channel_axis=2,
    )
    assert ssim(first, second) == pytest.approx(expected, abs=2e-6)
    assert 0.1 < expected < 0.9
    assert ssim(first, first) == pytest.approx(1.0, abs=1e-6)


def test_ssim_refuses_pictures_smaller_than_its_window() -> None:
    with pytest.raises(EvaluationError, match=r"SSIM needs pictures of at least 11×11 px, got 20×10; draw larger ones"):
        ssim(picture(0, 10, 20), picture(1, 10, 20))


def test_blur_has_less_gradient_energy_and_noise_more() -> None:
    expected = np.zeros((8, 8, 3), dtype=np.float32)
    expected[:, 4:] = 0.8  # an edge of 0.8
    softer = expected.copy()
    softer[:, 4] = 0.4  # two of 0.4: half of the squares
    assert gradient_energy(expected, expected) == pytest.approx(100.0)
    assert gradient_energy(softer, expected) == pytest.approx(50.0)
    noise = np.random.default_rng(0).normal(0, 0.1, expected.shape).astype(np.float32)
    assert gradient_energy(expected + noise, expected) > 105
    assert gradient_energy(softer, np.ones_like(expected)) is None


def test_tpsnr_is_of_the_change_of_the_error() -> None:
    error = np.full((4, 4, 3), 0.3, dtype=np.float32)
    assert tpsnr(error, error) == BEST_DB  # an error that stays
    assert tpsnr(error, error - np.float32(0.1)) == pytest.approx(20.0, abs=1e-4)


def test_flicker_of_a_still_camera_is_the_noise_in_levels() -> None:
    rng = np.random.default_rng(3)
    first, second = (rng.normal(0, 0.02, (200, 300, 3)).astype(np.float32) for _ in range(2))
    still = Warp.still(200, 300)
    assert flicker(first, second, still) == pytest.approx(255 * 0.02, rel=0.01)
    assert flicker(first, first, still) == 0.0  # an error that stays does not flicker


def wall_seen_from(x: float) -> Camera:
    return Camera.look_at((x, 0, 0), (x, 0, 1), width=60, height=40, fov_y_deg=60.0)


def test_an_error_that_moves_with_its_surface_does_not_flicker() -> None:
    depth = np.full((40, 60), 2.0, dtype=np.float32)
    error = np.random.default_rng(4).normal(0, 0.1, (40, 60, 3)).astype(np.float32)
    step = 2.0 / wall_seen_from(0).fx  # moves the wall by a pixel to the left
    warp = Warp.between(wall_seen_from(0), wall_seen_from(step), depth, depth)
    assert warp.seen[:, :-1].all() and not warp.seen[:, -1].any()
    moved = np.roll(error, -1, axis=1)
    assert flicker(moved, error, warp) == pytest.approx(0.0, abs=1e-6)
    assert flicker(error, error, warp) > 20  # it slid over the wall


def test_what_was_hidden_or_is_empty_does_not_count() -> None:
    depth = np.full((40, 60), 2.0, dtype=np.float32)
    nearer, empty = depth.copy(), depth.copy()
    nearer[:, 30:] = 1.0  # something stood in front of the right half
    empty[:20] = 0.0
    here = wall_seen_from(0)
    assert Warp.between(here, here, nearer, depth).seen.tolist() == (nearer == 2.0).tolist()
    assert Warp.between(here, here, depth, empty).seen.tolist() == (empty > 0).tolist()
    nothing = np.zeros_like(depth)
    zeros = np.zeros((40, 60, 3), dtype=np.float32)
    assert flicker(zeros, zeros, Warp.between(here, here, nothing, nothing)) is None
