"""Densification: which surfels are cloned, split, pruned and reset, and when."""

from dataclasses import replace

import numpy as np
import pytest
import torch
from made_capture import made_model

from hushsplat.engines.torch.raster import ScreenGradients
from hushsplat.training.densify import Density
from hushsplat.training.settings import Densification
from hushsplat.training.surfel_model import SurfelModel
from hushsplat.types.camera import Camera
from hushsplat.types.rotations import matrix_from_quaternion


def wishes(count: int, *strong: int) -> ScreenGradients:
    screen = ScreenGradients()
    screen.by_center, screen.seen = torch.zeros(count, 2), torch.ones(count, dtype=torch.bool)
    screen.by_center[list(strong)] = 1.0
    return screen


CAMERA = Camera.look_at((0, 0, -2), (0, 0, 0), width=20, height=10)
SETTINGS = Densification(first_step=0, last_step=100, every=1, gradient=1.0, reset_every=10, most_surfels=100)


def test_small_surfels_are_cloned_and_large_ones_split() -> None:
    ours = made_model()
    ours.values["log_scales"][3] = np.log(1e-4)
    ours.moments["first"]["means"] += 1.0
    density = Density(SETTINGS, extent=1.0, seed=0)
    density.observe(wishes(12, 3, 5), CAMERA, 12)
    kept = ours.values["means"][3].clone()
    old = ours.values["log_scales"][5].clone()
    density.after_step(ours, 1)
    assert len(ours) == 12 + 1 - 1 + 2
    assert torch.equal(ours.values["means"][3], kept) and torch.equal(ours.values["means"][11], kept)
    torch.testing.assert_close(ours.values["log_scales"][12:], (old - np.log(1.6)).expand(2, 2))
    assert not torch.equal(ours.values["means"][12], ours.values["means"][13])
    assert ours.moments["first"]["means"][:11].eq(1).all() and ours.moments["first"]["means"][11:].eq(0).all()
    assert len(density.gradients) == len(ours)


def test_parts_lie_in_the_plane_of_the_whole() -> None:
    ours = made_model()
    mean, axes = ours.values["means"][5].clone(), matrix_from_quaternion(ours.values["quaternions"][5].numpy())
    density = Density(SETTINGS, extent=1.0, seed=0)
    density.observe(wishes(12, 5), CAMERA, 12)
    density.after_step(ours, 1)
    np.testing.assert_allclose((ours.values["means"][-2:] - mean).numpy() @ axes[:, 2], 0, atol=1e-6)


def test_never_more_than_allowed_and_the_strongest_first() -> None:
    ours = made_model()
    ours.values["log_scales"][:] = np.log(1e-4)
    density = Density(replace(SETTINGS, most_surfels=13), extent=1.0, seed=0)
    screen = wishes(12, 2, 3, 4)
    screen.by_center[3] *= 2
    density.observe(screen, CAMERA, 12)
    density.after_step(ours, 1)
    assert len(ours) == 13 and torch.equal(ours.values["means"][12], ours.values["means"][3])


def test_faint_and_huge_surfels_are_removed() -> None:
    ours = made_model()
    ours.values["logits"][1] = -5.0
    ours.values["log_scales"][2, 0] = np.log(11.0)
    density = Density(SETTINGS, extent=100.0, seed=0)
    density.observe(wishes(12), CAMERA, 12)
    density.after_step(ours, 9)
    assert len(ours) == 11  # the huge one may stay until opacities were reset
    density.observe(wishes(11), CAMERA, 11)
    density.after_step(ours, 11)
    assert len(ours) == 10 and float(ours.values["log_scales"].max()) < 0


def test_growth_can_be_spread_evenly() -> None:
    ours = made_model()
    ours.values["log_scales"][:] = np.log(1e-4)
    density = Density(replace(SETTINGS, last_step=4, most_surfels=20, even_growth=True), extent=1.0, seed=0)
    counts = []
    for step in range(1, 5):
        density.observe(wishes(len(ours), *range(len(ours))), CAMERA, len(ours))
        density.after_step(ours, step)
        counts.append(len(ours))
    assert counts == [14, 16, 18, 20]


def test_opacities_are_reset_and_forgotten() -> None:
    ours = made_model()
    ours.moments["first"]["logits"] += 1
    density = Density(replace(SETTINGS, first_step=50), extent=1.0, seed=0)
    density.observe(wishes(12), CAMERA, 12)
    density.after_step(ours, 10)
    torch.testing.assert_close(ours.opacities, torch.full((12,), 0.01))
    assert not ours.moments["first"]["logits"].any()


def test_gradients_are_means_over_the_pictures_that_saw_a_surfel() -> None:
    density = Density(SETTINGS, extent=1.0, seed=0)
    screen = wishes(2, 0)
    screen.seen[1] = False
    density.observe(screen, CAMERA, 2)
    density.observe(wishes(2), CAMERA, 2)
    assert density.views.tolist() == [2, 1]
    assert float(density.gradients[0]) == pytest.approx(np.hypot(10, 5))


def grown(gradient: float, settings: Densification, scale: float = 1e-4, step: int = 1) -> SurfelModel:
    """Twelve surfels of one size after a step in which the fourth had this gradient (picture = -1..1)."""
    ours = made_model()
    ours.values["log_scales"][:] = np.log(scale)
    density, screen = Density(settings, extent=1.0, seed=0), wishes(12)
    screen.by_center[3, 0] = gradient / (CAMERA.width / 2)
    density.observe(screen, CAMERA, 12)
    density.after_step(ours, step)
    return ours


@pytest.mark.parametrize(("gradient", "count"), [(1.01, 13), (0.99, 12)])
def test_the_gradient_threshold_is_where_it_is_set(gradient: float, count: int) -> None:
    assert len(grown(gradient, SETTINGS)) == count
    assert len(grown(2e-4 * gradient, replace(SETTINGS, gradient=2e-4))) == count


@pytest.mark.parametrize(("scale", "copies"), [(0.0099, 2), (0.0101, 0)])
def test_surfels_above_a_share_of_the_extent_are_split_others_cloned(scale: float, copies: int) -> None:
    ours = grown(2.0, SETTINGS, scale)
    same = (ours.values["means"] == made_model().values["means"][3]).all(dim=1)
    assert len(ours) == 13 and int(same.sum()) == copies


@pytest.mark.parametrize(("opacity", "count"), [(0.0505, 12), (0.0495, 11)])
def test_surfels_below_the_opacity_are_pruned(opacity: float, count: int) -> None:
    ours = made_model()
    ours.values["logits"][7] = np.log(opacity / (1 - opacity))
    density = Density(SETTINGS, extent=100.0, seed=0)
    density.observe(wishes(12), CAMERA, 12)
    density.after_step(ours, 1)
    assert len(ours) == count


@pytest.mark.parametrize(("scale", "count"), [(9.9, 12), (10.1, 11)])
def test_surfels_above_a_tenth_of_the_extent_are_pruned_after_the_reset(scale: float, count: int) -> None:
    ours = made_model()
    ours.values["log_scales"][2, 0] = np.log(scale)
    density = Density(SETTINGS, extent=100.0, seed=0)
    density.observe(wishes(12), CAMERA, 12)
    density.after_step(ours, 11)
    assert len(ours) == count


@pytest.mark.parametrize(("step", "count"), [(20, 12), (25, 12), (30, 13), (40, 13), (50, 12)])
def test_growth_keeps_to_its_first_and_last_step_and_its_interval(step: int, count: int) -> None:
    settings = replace(SETTINGS, first_step=20, last_step=40, every=10, reset_every=1000)
    assert len(grown(2.0, settings, step=step)) == count


def test_resets_come_at_their_interval_and_leave_fainter_surfels() -> None:
    ours = made_model()
    ours.values["logits"][0] = -6.0
    density = Density(replace(SETTINGS, first_step=1000), extent=1.0, seed=0)
    density.after_step(ours, 9)
    assert float(ours.opacities[1]) == pytest.approx(0.9, abs=1e-4)
    density.after_step(ours, 20)
    assert float(ours.opacities[1]) == pytest.approx(0.01) and float(ours.values["logits"][0]) == -6.0


def test_the_last_surfel_is_never_removed() -> None:
    ours = made_model()
    ours.values["logits"][:] = -9.0
    density = Density(SETTINGS, extent=1.0, seed=0)
    density.observe(wishes(12), CAMERA, 12)
    density.after_step(ours, 1)
    assert len(ours) == 12
