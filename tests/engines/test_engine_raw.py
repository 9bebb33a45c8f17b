"""The engine's stochastic frames against the twin's: the same winners at the same depths."""

from dataclasses import replace
from functools import cache

import numpy as np
import pytest
from drawing import sample_visibility
from random_scenes import alone, away_from_pixel_borders, beside, crowd, odd_camera

from hushsplat.engines.torch import renderers as twin
from hushsplat.spec import sampling
from hushsplat.types.camera import Camera
from hushsplat.types.gaussians import Gaussians
from hushsplat.types.options import RenderOptions

KINDS = pytest.mark.parametrize("columns", [2, 3], ids=["surfels", "ellipsoids"])
FLIPS = 5e-5  # share of pixels with another winner (two at one depth, D² at its limit); measured 0 of 2.4 million
DEPTH = 1e-3  # relative error of the depth elsewhere


@cache
def crowded(columns: int, seed: int) -> tuple[Camera, Gaussians, twin.Fragments]:
    rng = np.random.default_rng([columns, seed])
    camera = odd_camera(rng)
    gaussians = away_from_pixel_borders(crowd(rng, camera, columns), camera)
    return camera, gaussians, twin.fragments_of(gaussians, camera)


def assert_same(found, primitive_id, depth):
    """One plane of the engine against one of the twin's; returns how many winners differ."""
    flipped = found.primitive_id[0] != primitive_id
    same = ~flipped
    np.testing.assert_allclose(found.depth[0][same], depth[same], rtol=DEPTH)
    return int(flipped.sum())


@KINDS
@pytest.mark.parametrize("sampler", sampling.SAMPLERS)
def test_the_same_winners_as_the_twin(columns, sampler):
    flips = pixels = 0
    winners = set()
    for scene_seed in range(3):
        camera, gaussians, fragments = crowded(columns, scene_seed)
        for seed, frame in ((0, 0), (7, 255), (7, 256), (2**32 - 1, 123456789)):
            expected = twin.nearest_kept(fragments, sampler, seed, frame)
            found = sample_visibility(gaussians, camera, seed=seed, frame=frame, sampler=sampler)
            flips += assert_same(found, *expected)
            pixels += expected[0].size
            winners |= {(scene_seed, i) for i in np.unique(expected[0])}
    assert flips <= FLIPS * pixels
    assert len(winners) > 200  # the comparison is about many Gaussians, not a few that hide the others


@KINDS
@pytest.mark.parametrize("side", range(4), ids=["left", "right", "top", "bottom"])
def test_chunk_beside_the_picture_and_behind_the_eye_still_reaches_into_it(columns, side):
    flips = pixels = seen = 0
    for seed in range(12):
        rng = np.random.default_rng([columns, side, seed])
        camera = replace(odd_camera(rng), world_from_camera=np.eye(4))
        gaussians = away_from_pixel_borders(beside(rng, camera, columns, side), camera)
        expected = twin.nearest_kept(twin.fragments_of(gaussians, camera), "stratified", seed, 0)
        flips += assert_same(sample_visibility(gaussians, camera, seed=seed, sampler="stratified"), *expected)
        pixels += expected[0].size
        seen += int((expected[0] >= 0).sum())
    assert flips <= FLIPS * pixels
    assert seen > 50


@KINDS
def test_the_same_winners_as_the_twin_in_the_order_of_centres(columns):
    """The nearest centre wins; the depth is still that of its fragment."""
    flips = pixels = others = 0
    for scene_seed in range(3):
        camera, gaussians, fragments = crowded(columns, scene_seed)
        for seed, frame in ((0, 0), (7, 255)):
            expected = twin.nearest_kept(fragments, "independent", seed, frame, "center")
            found = sample_visibility(gaussians, camera, seed=seed, frame=frame, options=RenderOptions(order="center"))
            flips += assert_same(found, *expected)
            pixels += expected[0].size
            others += (twin.nearest_kept(fragments, "independent", seed, frame)[0] != expected[0]).sum()
    assert flips <= FLIPS * pixels
    assert others > 0.01 * pixels


@KINDS
@pytest.mark.parametrize("sampler", sampling.SAMPLERS)
def test_samples_of_a_frame_follow_each_other(columns, sampler):
    camera, gaussians, fragments = crowded(columns, 0)
    found = sample_visibility(gaussians, camera, samples=3, seed=5, frame=85, sampler=sampler)  # t = 255, 256, 257
    for sample in range(3):
        primitive_id, _ = twin.nearest_kept(fragments, sampler, 5, 3 * 85 + sample)
        flips = (found.primitive_id[sample] != primitive_id).sum()
        assert flips <= 1
    assert found.primitive_id.dtype == np.int32 and found.depth.dtype == np.float32


@KINDS
def test_each_gaussian_alone(columns):
    """150 scenes of one: sizes, places and shapes that a crowd would hide."""
    kept = flips = 0
    for seed in range(150):
        rng = np.random.default_rng([columns, seed, 1])
        camera = odd_camera(rng, width=83, height=71)
        gaussians = away_from_pixel_borders(alone(rng, camera, columns), camera)
        fragments = twin.fragments_of(gaussians, camera)
        primitive_id, depth = twin.nearest_kept(fragments, "independent", seed, 3)
        found = sample_visibility(gaussians, camera, seed=seed, frame=3)
        flips += (found.primitive_id[0] != primitive_id).sum()
        kept += (primitive_id >= 0).sum()
        both = (found.primitive_id[0] >= 0) & (primitive_id >= 0)
        # Needles of 1:1000 that point at the eye lose digits in the float32 adjugate of their covariance.
        np.testing.assert_allclose(found.depth[0][both], depth[both], rtol=DEPTH if columns == 2 else 5e-3)
    assert kept > 15_000
    assert flips <= FLIPS * kept


@KINDS
def test_many_chunks_hide_each_other(columns):
    """Enough Gaussians for half a dozen chunks, most of them opaque: what is skipped as hidden must be hidden."""
    rng = np.random.default_rng([columns, 9])
    camera = odd_camera(rng, width=70, height=34)
    gaussians = crowd(rng, camera, columns, count=800, coefficients=1)
    gaussians = away_from_pixel_borders(replace(gaussians, opacities=np.sqrt(gaussians.opacities)), camera)
    fragments = twin.fragments_of(gaussians, camera)
    flips = 0
    for seed in range(4):
        found = sample_visibility(gaussians, camera, seed=seed)
        flips += assert_same(found, *twin.nearest_kept(fragments, "independent", seed, 0))
    assert flips <= FLIPS * 4 * fragments.depth[0].size


@KINDS
def test_the_near_plane_is_an_option(columns):
    camera, gaussians, _ = crowded(columns, 1)
    for near in (0.01, 2.0):
        expected = twin.raw(gaussians, camera, near=near, seed=3)
        found = sample_visibility(gaussians, camera, seed=3, options=RenderOptions(near=near))
        assert (found.primitive_id != expected.primitive_id).mean() <= FLIPS
        assert found.depth[found.primitive_id >= 0].min() > near * (1 - 1e-6)


def facing(depth, scale, opacity) -> tuple[np.ndarray, ...]:
    """Surfels on the optical axis that face the camera."""
    count = len(depth)
    means = np.stack([np.zeros(count), np.zeros(count), depth], axis=1)
    return means, np.stack([scale, scale], axis=1), np.tile([1.0, 0, 0, 0], (count, 1)), np.asarray(opacity)


def scene_of(*parts: tuple[np.ndarray, ...]) -> Gaussians:
    arrays = [np.concatenate(columns) for columns in zip(*parts, strict=True)]
    return Gaussians(*(array.astype(np.float32) for array in arrays), np.zeros((len(arrays[0]), 1, 3), np.float32))


def test_a_chunk_just_before_a_wall_is_not_hidden_by_it():
    """The wall is drawn first, because one of its chunk is very near; the second chunk is a thousandth nearer."""
    wall = facing(np.append(np.full(127, 2.0), 1.0), np.full(128, 1e2), np.append(np.ones(127), 0.01))
    front = facing(np.full(128, 1.998), np.full(128, 1e4), np.ones(128))  # of another size, hence in another chunk
    found = sample_visibility(scene_of(wall, front), VIEW, samples=4)
    hits = np.unique(found.depth)
    np.testing.assert_allclose(hits, [1, 1.998], rtol=1e-6)


def test_a_surfel_that_just_comes_through_a_wall_is_seen():
    """Its centre is behind the wall, a part of its footprint a hundredth before it."""
    wall = facing(np.full(300, 2.0), np.full(300, 1e2), np.ones(300))
    center, scale, angle = 2.03, 0.3, 0.05  # it comes forward to 2.03 - 3.33 · 0.3 · 0.05 = 1.98
    means, scales, rotations, opacities = facing(np.array([center]), np.array([scale]), np.array([1.0]))
    rotations[0] = [np.cos(angle / 2), 0, np.sin(angle / 2), 0]
    camera = replace(VIEW, cx=32.3, cy=30.3)
    gaussians = scene_of((means, scales, rotations, opacities), wall)
    found = sample_visibility(gaussians, camera, samples=8)
    expected = twin.raw(gaussians.take(np.array([0, 1])), camera, samples=8)
    through = found.depth < 1.9999
    np.testing.assert_array_equal(through, (expected.depth < 1.9999) & (expected.primitive_id == 0))
    assert through.sum() > 50 and (found.primitive_id[through] == 0).all()


def flat_and_wide(index: int, center_px: tuple[float, float], opacity: float) -> Gaussians:
    """A surfel so wide that D² is 0 all over the picture; others before it in the file cannot be seen."""
    count = index + 1
    means = np.zeros((count, 3))
    means[:, 2] = 2
    means[index, :2] = [2 * px / VIEW.fx for px in center_px]
    opacities = np.full(count, 0.001)
    opacities[index] = opacity
    arrays = (means, np.full((count, 2), 1e9), np.tile([1.0, 0, 0, 0], (count, 1)), opacities, np.zeros((count, 1, 3)))
    return Gaussians(*(array.astype(np.float32) for array in arrays))


VIEW = Camera(75, 70, 64.0, 64.0, 0.0, 0.0, np.eye(4))


def mix32(x: int) -> int:
    """Wellons' lowbias32, on Python's integers."""
    x ^= x >> 16
    x = x * 0x7FEB352D % 2**32
    x ^= x >> 15
    x = x * 0x846CA68B % 2**32
    return x ^ x >> 16


@pytest.mark.parametrize("sampler", sampling.SAMPLERS)
@pytest.mark.parametrize(
    ("index", "center_px", "anchor"),
    [
        (0, (40.5, 33.5), (40, 33)),
        (1, (-3.25, 70.75), (-4, 70)),
        (1000, (12.5, -20.5), (12, -21)),
        (77, (-70000.5, 5.5), (-70001, 5)),
        (77, (2e6, -3e6), (1000000, -1000000)),  # beyond a million pixels the anchor stays there
    ],
)
def test_kept_pixels_are_those_of_the_table(sampler, index, center_px, anchor):
    """Hash and walk through the table, bit by bit: where D² = 0, a pixel is kept iff its level exceeds -2 ln o."""
    gaussians = flat_and_wide(index, center_px, 0.4)
    limit = -2 * np.log(0.4)
    for seed, t in ((0, 0), (3, 255), (2**32 - 5, 257), (11, 2**32 - 1)):
        period = t if sampler == "independent" else t // 256
        key = mix32(index ^ mix32((seed + 0x9E3779B9 * period) % 2**32))
        table = sampling.level_table(sampler, seed, t)
        found = sample_visibility(gaussians, VIEW, seed=seed, frame=t, sampler=sampler)
        expected = np.empty((VIEW.height, VIEW.width))
        for row, column in np.ndindex(VIEW.height, VIEW.width):
            expected[row, column] = table[(key + 1087 * (row - anchor[1]) + column - anchor[0]) % 4096]
        certain = np.abs(expected - limit) > 1e-4
        assert certain.mean() > 0.99
        np.testing.assert_array_equal((found.primitive_id[0] == index)[certain], (expected > limit)[certain])
        assert set(np.unique(found.primitive_id)) == {-1, index}


def test_a_wrong_anchor_would_be_noticed():
    """Test of the comparison: one pixel off in the anchor gives another picture."""
    camera, gaussians, fragments = crowded(2, 0)
    shifted = replace(fragments, center_px=fragments.center_px + np.array([1, 0]))
    found = sample_visibility(gaussians, camera)
    expected = twin.nearest_kept(shifted, "independent", 0, 0)[0]
    assert (found.primitive_id[0] != expected).mean() > 100 * FLIPS


@KINDS
def test_centres_on_pixel_borders_only_change_their_own_pattern(columns):
    """Where float32 puts the centre into the neighbouring pixel, other pixels are kept; but no more than usual."""
    rng = np.random.default_rng(columns)
    camera = odd_camera(rng)
    gaussians = crowd(rng, camera, columns)
    expected = twin.raw(gaussians, camera)
    found = sample_visibility(gaussians, camera)
    assert (found.primitive_id != expected.primitive_id).mean() < 0.02


def test_depth_ties_go_to_the_smaller_index():
    """Opaque surfels of many sizes in one plane, all of them kept in the middle: the first of the file is seen."""
    rng, count = np.random.default_rng(0), 700
    order = rng.permutation(count)
    scales = np.linspace(50, 5000, count)[order]  # the engine keeps them in another order than the file
    found = sample_visibility(scene_of(facing(np.full(count, 2.0), scales, np.ones(count))), VIEW, samples=3)
    assert (found.primitive_id == 0).mean() > 0.9  # levels near 0 drop one now and then
    last = scene_of(facing(np.append(np.full(count, 2.0), 1.99), np.append(scales, 1e4), np.ones(count + 1)))
    assert (sample_visibility(last, VIEW, samples=3).primitive_id == count).mean() > 0.9
