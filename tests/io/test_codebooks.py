"""Codebooks and palettes: exact where they can be, near the best where they cannot."""

import numpy as np
import pytest

from hushsplat.io.scenes import codebooks
from hushsplat.io.scenes.codebooks import fit_codebook, fit_palette, nearest_entries


def error_of(values):
    codebook = fit_codebook(values)
    assert (np.diff(codebook) >= 0).all()
    return np.abs(values - codebook[nearest_entries(values, codebook)])


@pytest.mark.parametrize("count", [0, 1, 255, 256])
def test_few_values_are_exact(count):
    values = np.random.default_rng(0).normal(size=count).astype(np.float32)
    assert not error_of(np.tile(values, (3, 2))).any()


def test_uniform_values_get_even_steps():
    values = np.random.default_rng(0).uniform(size=50_000)
    np.testing.assert_allclose(np.sqrt((error_of(values) ** 2).mean()), 1 / 256 / np.sqrt(12), rtol=0.01)


def test_normal_values_come_near_the_best_codebook():
    """The least mean squared error for a normal distribution is sqrt(3)·pi/2 / 256² (Panter and Dite)."""
    error = error_of(np.random.default_rng(0).normal(size=100_000))
    assert np.sqrt((error**2).mean()) < 1.05 * np.sqrt(np.sqrt(3) * np.pi / 2) / 256
    assert error.max() < 0.1


def test_a_rare_value_is_not_lost():
    values = np.random.default_rng(0).normal(size=10_000)
    values[17] = 1000
    error = error_of(values)
    assert error[17] < 1 and np.sqrt((error**2).mean()) < 0.02


def test_few_vectors_are_exact():
    random = np.random.default_rng(0)
    some = random.normal(size=(300, 9)).astype(np.float32)
    vectors = some[random.integers(0, 300, 5000)]
    palette, labels = fit_palette(vectors, 300)
    assert len(palette) <= 300
    np.testing.assert_array_equal(palette[labels], vectors)


def test_equal_vectors_weigh_more():
    vectors = np.array([[0.0, 5.0]] * 9 + [[1.0, 5.0]], np.float32)
    np.testing.assert_allclose(fit_palette(vectors, 1)[0], [[0.1, 5]])


@pytest.mark.parametrize("size", [1, 50, 1024, 1500, 4096])
def test_palettes_have_their_size(size):
    vectors = np.random.default_rng(0).normal(size=(6000, 3)).astype(np.float32)
    palette, labels = fit_palette(vectors, size)
    assert 0.95 * size <= len(palette) <= size and labels.max() < len(palette)


def test_two_levels_are_nearly_as_good_as_one(monkeypatch):
    vectors = np.random.default_rng(0).normal(size=(8000, 6)).astype(np.float32)

    def error():
        palette, labels = fit_palette(vectors, 1024)
        return np.sqrt(((palette[labels] - vectors) ** 2).mean())

    one = error()
    monkeypatch.setattr(codebooks, "FLAT_SIZE", 64)
    two = error()
    assert one < 0.4 and two < 1.1 * one  # without any structure; 1.0 on the harmonics of real scenes


def test_vectors_that_cells_cannot_part():
    """Nearly all alike and a few far away."""
    vectors = (np.random.default_rng(0).normal(size=(20_000, 3)) * 1e-7).astype(np.float32)
    vectors[:5] *= 1e9
    palette, labels = fit_palette(vectors, 5000)
    np.testing.assert_allclose(palette[labels], vectors, atol=1e-6, rtol=1e-6)
