"""Baked light: shadows, dark corners, reflections at the right angle."""

from dataclasses import replace

import numpy as np
import pytest
from numpy.random import PCG64, Generator

from hushsplat.synth.gloss import _add_lobe
from hushsplat.synth.light import TO_SUN, displayed, lit, precompute_daylight
from hushsplat.synth.patterns import linear
from hushsplat.synth.shapes import f32
from hushsplat.synth.surfaces import ground
from hushsplat.synth.surfels import Finish, Surfels, random_directions, settle
from hushsplat.types.harmonics import sh_basis

WHITE = Finish(rough=0.0, opacity=(0.95, 1.0))


def plate(x: tuple[float, float], z: tuple[float, float], height: float, n: int) -> Surfels:
    rng = Generator(PCG64(5))
    return settle(rng, ground(x, z, height).spots(rng, n), np.ones((n, 3), np.float32), WHITE)


def test_a_roof_shades_the_lawn_away_from_the_sun() -> None:
    lawn = plate((-4, 4), (2, 9), 0.0, 20_000)
    roof = plate((-1, 1), (5, 7), 1.0, 20_000)
    radiance = lit(Generator(PCG64(6)), precompute_daylight([lawn, roof]), lawn).mean(axis=1)
    shadow = np.array([0, 0, 6]) + TO_SUN * (1 / TO_SUN[1])  # the roof's middle, along the light to the ground
    in_shadow = np.hypot(*(lawn.means - shadow)[:, [0, 2]].T) < 0.7
    in_the_sun = lawn.means[:, 0] > 2.5
    assert radiance[in_shadow].mean() < 0.6 * radiance[in_the_sun].mean()


def test_no_sun_comes_through_the_walls() -> None:
    by_the_door, in_the_back = plate((-0.5, 0.5), (-0.6, -0.2), 0.0, 500), plate((-0.5, 0.5), (-4.8, -4.4), 0.0, 500)
    light = precompute_daylight([])
    bright, dim = (lit(Generator(PCG64(6)), light, batch) for batch in (by_the_door, in_the_back))
    assert bright.min() > 2.5 * dim.max()


def test_light_from_behind_comes_through_leaves_only() -> None:
    leaves = plate((-1, 1), (4, 6), 1.0, 2_000)
    turned_away = replace(leaves, normals=-leaves.normals)
    light = precompute_daylight([])
    matt = lit(Generator(PCG64(6)), light, turned_away)
    leafy = lit(Generator(PCG64(6)), light, replace(turned_away, finish=replace(WHITE, translucency=0.6)))
    assert leafy.mean() > 2 * matt.mean()


def test_displayed_is_monotonic_and_fits_the_display() -> None:
    gray = np.repeat(np.linspace(0, 30, 500, dtype=np.float32)[:, None], 3, axis=1)
    shown = displayed(gray)
    assert (np.diff(shown[:, 0]) >= -1e-6).all()
    assert shown.min() >= 0
    assert shown.max() <= 1


@pytest.mark.parametrize("degree", [1, 2, 3])
def test_a_lobe_peaks_at_its_axis_with_its_strength(degree: int) -> None:
    rng = Generator(PCG64(7))
    axes = random_directions(rng, 50)
    sh = np.zeros((50, (degree + 1) ** 2, 3), dtype=np.float32)
    _add_lobe(sh, axes, np.full((50, 3), 0.7, np.float32), degree, 3.0)
    there = np.einsum("nk,nkc->nc", sh_basis(axes, degree), sh)
    elsewhere = np.einsum("nk,nkc->nc", sh_basis(random_directions(rng, 50), degree), sh)
    assert np.allclose(there, 0.7, atol=1e-5)
    assert (elsewhere <= 0.7 + 1e-5).all()
    assert elsewhere.mean() < 0.3


def test_colours_are_read_as_srgb() -> None:
    assert np.allclose(linear("#000000", "#ffffff", "#808080"), f32([[0] * 3, [1] * 3, [0.21586] * 3]), atol=1e-4)
