"""Spots lie where the shapes are, evenly, with normals that point outwards."""

import numpy as np
import pytest
from numpy.random import PCG64, Generator

from hushsplat.synth.shapes import Blobs, Pierced, block, displaced, even_pairs, f32, join, lathe, quad, tube
from hushsplat.synth.soft import Blades, Cushions


def rng() -> Generator:
    return Generator(PCG64(0))


def test_even_pairs_fill_the_square() -> None:
    pairs = even_pairs(rng(), 4_096)
    counts, _, _ = np.histogram2d(pairs[0], pairs[1], bins=16, range=[[0, 1], [0, 1]])
    assert pairs.min() >= 0
    assert pairs.max() < 1
    assert counts.min() > 8  # 16 on average; random points would leave some with 5


def test_box_spots_lie_on_the_box_and_look_outwards() -> None:
    spots = block((-1, 1), (0, 0.5), (2, 3)).spots(rng(), 3_000)
    center = np.array([0, -0.25, 2.5])
    local = np.abs(spots.means - center) / [1, 0.25, 0.5]
    assert np.allclose(local.max(axis=1), 1, atol=1e-4)
    assert (np.einsum("ni,ni->n", spots.means - center, spots.normals) > 0).all()


def test_spots_are_shared_by_area() -> None:
    two = join([quad([0, 0, 0], [1, 0, 0], [0, 0, 1]), quad([5, 0, 0], [3, 0, 0], [0, 0, 1])])
    spots = two.spots(rng(), 4_000)
    assert two.area == pytest.approx(4)
    assert (spots.owner == 1).sum() == pytest.approx(3_000, abs=2)
    assert spots.spacing == pytest.approx(np.sqrt(4 / 4_000))


def test_tube_spots_keep_their_radius() -> None:
    straight = tube([[0, 0, 0], [0, -2, 0]], 0.1)
    spots = straight.spots(rng(), 2_000)
    assert straight.area == pytest.approx(2 * np.pi * 0.1 * 2, rel=1e-4)
    assert np.allclose(np.hypot(spots.means[:, 0], spots.means[:, 2]), 0.1, atol=1e-4)
    assert np.abs(spots.normals[:, 1]).max() < 1e-4


def test_a_disc_on_a_lathe_looks_up() -> None:
    spots = lathe([(0.5, 0.4), (0.5, 0.0)]).spots(rng(), 1_000)
    assert np.allclose(spots.normals, [0, -1, 0], atol=1e-4)
    assert np.allclose(spots.means[:, 1], -0.5, atol=1e-5)
    inner = np.hypot(spots.means[:, 0], spots.means[:, 2]) < 0.4 / np.sqrt(2)
    assert inner.mean() == pytest.approx(0.5, abs=0.05)  # even by area


def test_blob_spots_lie_on_the_ellipsoid() -> None:
    spots = Blobs(f32([[1, 2, 3]]), f32([[0.5, 0.2, 0.3]])).spots(rng(), 500)
    assert np.allclose((((spots.means - [1, 2, 3]) / [0.5, 0.2, 0.3]) ** 2).sum(axis=1), 1, atol=1e-4)


def test_pierced_leaves_the_hole_free_and_the_number_exact() -> None:
    plane = quad([-1, 0, -1], [2, 0, 0], [0, 0, 2])
    pierced = Pierced(plane, f32([[[-0.5, -1, -0.5], [0.5, 1, 0.5]]]))
    spots = pierced.spots(rng(), 1_234)
    assert len(spots.means) == 1_234
    assert (np.abs(spots.means[:, [0, 2]]).max(axis=1) >= 0.5).all()
    assert pierced.area == pytest.approx(3, rel=0.02)


def test_displaced_surfaces_get_the_normals_of_the_new_surface() -> None:
    flat = quad([0, 0, 0], [2, 0, 0], [0, 0, 2]).spots(rng(), 200)  # faces up: -y
    spots = displaced(flat, lambda u, v: 0.5 * u)
    assert np.allclose(spots.means[:, 1], -0.5 * spots.means[:, 0], atol=1e-4)
    assert np.allclose(spots.normals, np.array([-0.5, -1, 0]) / np.sqrt(1.25), atol=1e-3)


def test_cushions_are_rounder_than_their_boxes() -> None:
    cushion = Cushions(f32([[0, 0, 0]]), f32([[1, 1, 1]]), f32(np.eye(3))[None], radius=0.3)
    spots = cushion.spots(rng(), 4_000)
    assert np.linalg.norm(spots.means, axis=1).max() < np.sqrt(3) * 0.2 + 0.3 + 1e-3
    assert (np.einsum("ni,ni->n", spots.means, spots.normals) > 0).all()


def test_leaves_are_pointed_and_hang() -> None:
    leaf = Blades(f32([[0, 0, 0]]), f32([[1, 0, 0]]), f32([[0, -1, 0]]), f32([[1, 0.4]]), droop=0.5)
    spots = leaf.spots(rng(), 4_000)
    tip, middle = spots.uv[:, 0] > 0.95, np.abs(spots.uv[:, 0] - 0.5) < 0.05
    assert np.abs(spots.means[tip, 2]).max() < np.abs(spots.means[middle, 2]).max() / 2
    assert spots.means[tip, 1].mean() > spots.means[middle, 1].mean()
