"""The mean of many stochastic frames of the CPU engine is its exact picture, on a scene of common size and kind.

Each test sees what another is blind to: every pixel's colour (with the closed-form variance) an error at one place, the
spread of all these errors one that is small at many places, the mean of the whole picture (t-test over the frames) one
that is small everywhere, and every pixel's hits (binomial) one of the coverage.
"""

from dataclasses import dataclass, replace
from functools import cache

import numpy as np
import pytest
from drawing import decode_color, render_exact, render_reference, sample_visibility, uploaded
from scipy.stats import binom, ttest_1samp
from ztest import SIGNIFICANT

from hushsplat.spec import sampling
from hushsplat.synth import home_camera, room_and_garden
from hushsplat.types.camera import Camera
from hushsplat.types.gaussians import Gaussians
from hushsplat.types.harmonics import SH_C0, sh_colors
from hushsplat.types.image import Image
from hushsplat.types.options import RenderOptions
from hushsplat.types.rotations import matrix_from_quaternion, quaternion_from_matrix

FRAMES = 400
SPREAD = 0.05  # how far the spread of the errors may be from 1; measured 0.01, and 0.1 for opacities that are 5 % off
OPTIONS = RenderOptions(background=(0.1, 0.9, 0.4))
VIEW = home_camera(160, 106)
KINDS = pytest.mark.parametrize("columns", [2, 3], ids=["surfels", "ellipsoids"])


@dataclass(frozen=True)
class Stream:
    """What is kept of many frames."""

    frames: int
    color: np.ndarray  # mean over the frames
    hits: np.ndarray  # frames in which a pixel hit anything
    picture_colors: np.ndarray  # [call, channel] mean over the picture, of independent calls


@cache
def scene(columns: int) -> Gaussians:
    surfels = room_and_garden(50_000)
    thickness = 0.4 * surfels.scales.mean(axis=1, keepdims=True)
    return surfels if columns == 2 else replace(surfels, scales=np.concatenate([surfels.scales, thickness], axis=1))


def drawn(gaussians: Gaussians, camera: Camera, sampler: str, frames: int, options=OPTIONS) -> Stream:
    """Independent frames: of one seed, or for `stratified`, whose frames depend on each other, of as many seeds."""
    prepared = uploaded(gaussians)
    color = np.zeros((camera.height, camera.width, 3))
    hits = np.zeros((camera.height, camera.width), dtype=int)
    picture_colors = []
    samples = 8 if sampler == "independent" else 1
    for call in range(frames // samples):
        seed, frame = (1, call) if sampler == "independent" else (call, 37 * call % 1000)
        visibility = sample_visibility(
            prepared, camera, samples=samples, seed=seed, frame=frame, sampler=sampler, options=options
        )
        decoded = decode_color(visibility, prepared, camera, options)
        color += decoded
        hits += (visibility.primitive_id >= 0).sum(axis=0)
        picture_colors.append(decoded.mean(axis=(0, 1), dtype=np.float64))
    return Stream(frames, color / len(picture_colors), hits, np.array(picture_colors))


@cache
def stream(columns: int, sampler: str) -> Stream:
    return drawn(scene(columns), VIEW, sampler, FRAMES)


@cache
def exact(columns: int) -> Image:
    return render_exact(scene(columns), VIEW, OPTIONS)


def p_color(found: Stream, expected: Image) -> float:
    """The largest error of all pixels and channels: how probable one at least as large is, Bonferroni.

    Bernstein's inequality with the closed-form variance: a z-test that also holds where a colour is seen once in some
    hundred frames and 400 of them have no normal distribution. No colour of a frame is more than 1 off the mean.
    """
    error = np.abs(found.color - expected.color)
    exponent = found.frames * error**2 / (2 * (expected.variance + error / 3 + 1e-9))
    return float(2 * np.exp(-exponent.max()) * error.size)


def spread(found: Stream, expected: Image) -> float:
    """The mean square of the errors in units of what the variance says: 1, and more if there is a bias."""
    random = expected.variance > 1e-3
    variance = expected.variance[random] / found.frames
    return float(np.mean((found.color - expected.color)[random] ** 2 / variance))


def p_picture(found: Stream, expected: Image) -> float:
    """Of the mean colour of the whole picture, three channels."""
    mean = expected.color.mean(axis=(0, 1), dtype=np.float64)
    return float(3 * ttest_1samp(found.picture_colors, mean).pvalue.min())


def p_hits(found: Stream, expected: Image) -> float:
    """Two-sided exact binomial test of every pixel, Bonferroni."""
    miss = np.clip(1 - expected.alpha.astype(np.float64), 1e-7, 1)
    misses = found.frames - found.hits
    tail = np.minimum(binom.cdf(misses, found.frames, miss), binom.sf(misses - 1, found.frames, miss))
    return float(2 * tail.min() * tail.size)


@KINDS
@pytest.mark.parametrize("sampler", sampling.SAMPLERS)
def test_the_mean_of_raw_frames_is_the_exact_picture(columns, sampler):
    found, expected = stream(columns, sampler), exact(columns)
    assert p_color(found, expected) > SIGNIFICANT
    assert p_picture(found, expected) > SIGNIFICANT
    assert p_hits(found, expected) > SIGNIFICANT
    assert abs(spread(found, expected) - 1) < SPREAD
    assert (expected.variance > 1e-3).mean() > 0.5


@KINDS
@pytest.mark.parametrize("factor", [0.95, 1.05])
def test_biased_opacities_would_be_noticed(columns, factor):
    """The room is closed, so that no pixel changes much; but all do."""
    opacities = np.minimum(scene(columns).opacities * np.float32(factor), 1)
    expected = render_exact(replace(scene(columns), opacities=opacities), VIEW, OPTIONS)
    for sampler in sampling.SAMPLERS:
        assert p_picture(stream(columns, sampler), expected) < SIGNIFICANT
        assert spread(stream(columns, sampler), expected) > 1 + SPREAD


@KINDS
def test_the_order_of_centres_would_be_noticed(columns):
    by_center = replace(render_reference(scene(columns), VIEW, OPTIONS), variance=exact(columns).variance)
    for sampler in sampling.SAMPLERS:
        found = stream(columns, sampler)
        assert p_color(found, by_center) < SIGNIFICANT
        assert spread(found, by_center) > 1 + SPREAD
        assert p_hits(found, by_center) > SIGNIFICANT  # the order changes who is seen, not whether anything is


def by_center(columns: int) -> Image:
    """`reference` with the variance of one sample: colours squared, blended, less the square of the mean."""
    gaussians = scene(columns)
    colors = sh_colors(gaussians.sh.astype(np.float64), gaussians.means.astype(np.float64), VIEW.position)
    squared = replace(gaussians, sh=((colors**2 - 0.5) / SH_C0).astype(np.float32)[:, None])
    background = tuple(channel**2 for channel in OPTIONS.background)
    mean = render_reference(gaussians, VIEW, OPTIONS)
    second = render_reference(squared, VIEW, replace(OPTIONS, background=background)).color
    return replace(mean, variance=np.maximum(second - mean.color**2, 0))


@KINDS
@pytest.mark.parametrize("sampler", sampling.SAMPLERS)
def test_the_mean_of_raw_frames_in_the_order_of_centres_is_the_reference(columns, sampler):
    found, expected = drawn(scene(columns), VIEW, sampler, FRAMES, replace(OPTIONS, order="center")), by_center(columns)
    assert p_color(found, expected) > SIGNIFICANT
    assert p_picture(found, expected) > SIGNIFICANT
    assert p_hits(found, expected) > SIGNIFICANT
    assert abs(spread(found, expected) - 1) < SPREAD
    assert spread(found, exact(columns)) > 1 + SPREAD


def wall(count: int, tilt: tuple[float, ...], pose: np.ndarray) -> Gaussians:
    """Half-transparent surfels in one plane: which of them is in front is a matter of rounding, or of the index."""
    rng = np.random.default_rng(count)
    plane = matrix_from_quaternion(np.array(tilt, dtype=np.float64))
    flat = np.stack([rng.uniform(-2, 2, count), rng.uniform(-2, 2, count), np.zeros(count)], axis=1)
    arrays = (
        (flat @ plane.T + [0, 0, 2.5]) @ pose[:3, :3].T + pose[:3, 3],
        rng.uniform(0.05, 0.4, (count, 2)),
        np.tile(quaternion_from_matrix(pose[:3, :3] @ plane), (count, 1)),
        rng.uniform(0.1, 0.9, count),
        rng.normal(size=(count, 1, 3)),
    )
    return Gaussians(*(array.astype(np.float32) for array in arrays))


@pytest.mark.parametrize("tilt", [(1, 0, 0, 0), (1, 0.2, 0.1, 0), (1, 0.2, 0.4, 0)], ids=["facing", "tilted", "steep"])
@pytest.mark.parametrize("turned", [False, True])
def test_surfels_in_one_plane_have_one_order_in_raw_and_in_exact(tilt, turned):
    pose = np.eye(4)
    if turned:
        pose[:3, :3] = matrix_from_quaternion(np.array([0.3, -0.5, 0.7, 0.2]))
        pose[:3, 3] = [0.3, -0.8, 0.4]
    camera = Camera(80, 72, 40.0, 40.0, 40.0, 36.0, pose)
    gaussians = wall(600, tilt, pose)
    found = drawn(gaussians, camera, "independent", 320)
    assert p_color(found, render_exact(gaussians, camera, OPTIONS)) > SIGNIFICANT
