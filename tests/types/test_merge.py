"""Coarser levels of detail keep the moments, and look like the scene."""

import numpy as np
import pytest
from drawing import render_reference

from hushsplat.synth import home_camera, room_and_garden
from hushsplat.types.gaussians import Gaussians
from hushsplat.types.merge import merged
from hushsplat.types.options import RenderOptions
from hushsplat.types.rotations import matrix_from_quaternion


def gaussians(means, scales, opacities, rotations=None, sh=None) -> Gaussians:
    n = len(means)
    turned = np.tile([1.0, 0, 0, 0], (n, 1)) if rotations is None else rotations
    colors = np.zeros((n, 1, 3)) if sh is None else sh
    return Gaussians(*(np.array(array, dtype=np.float32) for array in (means, scales, turned, opacities, colors)))


def covariances(scene: Gaussians) -> np.ndarray:
    columns = scene.scales.shape[1]
    axes = matrix_from_quaternion(scene.rotations.astype(np.float64))[:, :, :columns] * scene.scales[:, None]
    return axes @ axes.transpose(0, 2, 1)


def test_two_ellipsoids_keep_mass_mean_covariance_and_colour():
    rng = np.random.default_rng(3)
    turned = rng.normal(size=(2, 4))
    turned /= np.linalg.norm(turned, axis=1, keepdims=True)
    scene = gaussians([[0, 0, 0], [1, 0.5, 0]], [[0.3, 0.2, 0.1], [0.2, 0.3, 0.25]], [0.5, 0.3], turned)
    scene = Gaussians(
        scene.means, scene.scales, scene.rotations, scene.opacities, 0.2 * rng.normal(size=(2, 4, 3)).astype("f")
    )
    one = merged(scene)
    assert len(one) == 1 and not one.is_surfels
    mass = scene.opacities * np.array([0.3 * 0.2, 0.3 * 0.25])
    share = mass / mass.sum()
    middle = share @ scene.means
    np.testing.assert_allclose(one.means[0], middle, atol=1e-6)
    offset = scene.means - middle
    expected = np.einsum("n,nij->ij", share, covariances(scene) + offset[:, :, None] * offset[:, None])
    np.testing.assert_allclose(covariances(one)[0], expected, atol=1e-6)
    np.testing.assert_allclose(one.sh[0], np.einsum("n,nkc->kc", share, scene.sh), atol=1e-6)
    assert one.opacities[0] * one.scales[0, 0] * one.scales[0, 1] == pytest.approx(mass.sum(), rel=1e-5)


def test_surfels_stay_surfels_in_their_plane():
    grid = np.stack(np.meshgrid(np.arange(8.0), np.arange(8.0), [0.0]), axis=-1).reshape(-1, 3)
    coarse = merged(gaussians(grid, np.full((64, 2), 0.5), np.full(64, 0.9)))
    assert coarse.is_surfels and 8 <= len(coarse) <= 32
    np.testing.assert_allclose(coarse.means[:, 2], 0, atol=1e-6)
    normals = matrix_from_quaternion(coarse.rotations.astype(np.float64))[:, :, 2]
    np.testing.assert_allclose(np.abs(normals[:, 2]), 1, atol=1e-6)


def test_large_and_small_are_not_merged():
    coarse = merged(gaussians(np.zeros((4, 3)), [[100.0] * 3] + [[0.01] * 3] * 3, [0.5] * 4))
    assert len(coarse) == 2 and sorted(coarse.scales.max(axis=1).round(3)) == pytest.approx([0.01, 100.0])


def test_what_differs_in_colour_is_not_merged():
    means = np.stack([np.linspace(0, 1, 8), np.zeros(8), np.zeros(8)], axis=1)
    sh = np.zeros((8, 1, 3))
    sh[::2, 0, 2] = 1.0  # blue is 0.28 apart, the others are as they were
    coarse = merged(gaussians(means, np.full((8, 3), 0.1), np.full(8, 0.5), sh=sh))
    assert sorted(coarse.sh[:, 0, 2]) == [0.0, 1.0]
    alike = merged(gaussians(means, np.full((8, 3), 0.1), np.full(8, 0.5), sh=0.5 * sh))
    assert alike.sh[:, 0, 2] == pytest.approx([0.25])


@pytest.mark.parametrize("count", [0, 1])
def test_nothing_to_merge(count):
    scene = room_and_garden(1000).take(np.arange(count))
    assert len(merged(scene)) == count


def test_a_level_looks_more_like_the_scene_than_as_many_of_its_gaussians():
    scene, camera = room_and_garden(30_000), home_camera(150, 100)
    coarse = merged(scene)
    assert 0.2 < len(coarse) / len(scene) < 0.5
    some = scene.take(np.linspace(0, len(scene) - 1, len(coarse)).astype(np.int64))
    full, level, subset = (render_reference(one, camera, RenderOptions()).color for one in (scene, coarse, some))
    assert ((level - full) ** 2).mean() < 0.5 * ((subset - full) ** 2).mean()
