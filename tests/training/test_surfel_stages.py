"""Stages 1 to 3: what each adds to the loss, what it trains, how fast, in which order, and what it prunes."""

from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
import torch
from made_capture import made_model, tiny_settings

from hushsplat.engines.torch import ops
from hushsplat.engines.torch.raster import Rasterizer
from hushsplat.io.scenes.scene import load
from hushsplat.training import surfel_stages
from hushsplat.training.losses import distortion, normal_consistency
from hushsplat.training.photographs import Photographs, TargetView
from hushsplat.training.settings import TrainSettings
from hushsplat.training.surfel_model import as_drawn
from hushsplat.training.surfel_stages import OpacityStage, PixelOrderStage, SurfelStage, VanillaStage, all_rates
from hushsplat.types.camera import Camera
from hushsplat.types.image import to_bytes
from hushsplat.types.options import NEAR, RenderOptions

CAMERAS = [Camera.look_at((0.2 * k - 0.3, -0.3, -2.2), (0, 0, 0), width=32, height=24) for k in range(4)]


def photographs(count: int = 30) -> Photographs:
    """Pictures of the model itself: there is nothing to learn from them."""
    with torch.no_grad():
        surfels, raster = as_drawn(made_model(count).values), Rasterizer("center")
        views = [TargetView("", camera, to_bytes(raster.draw(surfels, camera).color.numpy())) for camera in CAMERAS]
    return Photographs(views[:3], views[3:])


def stage(kind: type[SurfelStage], settings: TrainSettings | None = None, **model: int) -> SurfelStage:
    return kind(made_model(**{"count": 30, **model}), photographs(), settings or tiny_settings())


def test_opacities_pay_a_penalty() -> None:
    """Where photographs ask for nothing, the penalty alone decides: every opacity falls."""
    settings = tiny_settings()
    ours = stage(OpacityStage, replace(settings, stage2=replace(settings.stage2, penalty=10.0)))
    before = ours.model.opacities.clone()
    for index in range(3):
        ours.step(index)
    assert (ours.model.opacities < before - 1e-3).all()


def test_the_penalty_is_the_mean_opacity_times_its_weight() -> None:
    ours = stage(OpacityStage)
    surfels = as_drawn(ours.model.values)._replace(opacities=torch.full((30,), 0.25))
    drawn = surfel_stages._Drawn(0, ours.photographs.train[0], None, surfels)  # type: ignore[arg-type]
    assert float(ours.extra_loss(drawn)) == pytest.approx(0.003 * 0.25)


def test_stage_2_trains_opacities_only_and_prunes_at_its_end(tmp_path: Path) -> None:
    ours = stage(OpacityStage)
    before = {name: tensor.clone() for name, tensor in ours.model.values.items()}
    ours.step(0)
    changed = {name for name, tensor in ours.model.values.items() if not torch.equal(tensor, before[name])}
    assert changed == {"logits"}
    ours.model.values["logits"][:2] = torch.tensor([[np.log(0.049 / 0.951)], [np.log(0.051 / 0.949)]])
    ours.finish(tmp_path)
    assert len(load(tmp_path / "stage2.ply")) == 29


def test_stage_3_sorts_in_every_pixel_and_prunes_at_its_end(tmp_path: Path) -> None:
    ours = stage(PixelOrderStage)
    assert ours.raster.order == "pixel" and stage(VanillaStage).raster.order == "center"
    exact = ours.engine.upload(ours.model.gaussians())
    expected = ours.engine.render(exact, CAMERAS[3], "exact", ours.options).numpy().color
    np.testing.assert_array_equal(next(ours.draw(ours.photographs.held_out)), expected)
    before = {name: tensor.clone() for name, tensor in ours.model.values.items()}
    ours.step(0)
    assert all(not torch.equal(tensor, before[name]) for name, tensor in ours.model.values.items())
    ours.model.values["logits"][:2] = torch.tensor([[np.log(0.0049 / 0.9951)], [np.log(0.0051 / 0.9949)]])
    ours.finish(tmp_path)
    assert len(load(tmp_path / "stage3.ply")) == 29


def regularised(**changes: float) -> VanillaStage:
    settings = tiny_settings()
    return stage(VanillaStage, replace(settings, stage1=replace(settings.stage1, **changes)))


@pytest.mark.parametrize("name", ["normal", "distortion"])
def test_regularisers_count_with_their_weight_from_their_step(name: str) -> None:
    ours = regularised(**{f"{name}_weight": 3.0, f"{name}_from": 5})
    view = ours.photographs.train[0]
    surfels = as_drawn(ours.model.values)
    drawing = ours.raster.draw(surfels, view.camera, geometry=True)
    late, early = (ours.extra_loss(surfel_stages._Drawn(n, view, drawing, surfels)) for n in (5, 4))
    expected = {
        "normal": normal_consistency(drawing.geometry, drawing.alpha, view.camera),
        "distortion": distortion(drawing.geometry, drawing.alpha, NEAR, surfel_stages.FAR),
    }[name]
    assert float(late) == pytest.approx(3 * float(expected)) and float(late) != 0 and float(early) == 0
    assert ours.geometry and not regularised().geometry


def test_the_loss_of_a_step_is_photometric_plus_the_extra_one() -> None:
    ours = regularised(normal_weight=2.0, normal_from=0, dssim=0.5)
    view = ours.photographs.at_step(0, ours.settings.seed)
    drawing = ours.raster.draw(as_drawn(ours.model.values), view.camera, geometry=True)
    target = view.target()
    expected = 0.5 * (drawing.color - target).abs().mean() + 0.5 * (1 - ops.ssim(drawing.color, target))
    expected = expected + 2 * normal_consistency(drawing.geometry, drawing.alpha, view.camera)
    assert ours.step(0)["loss"] == pytest.approx(float(expected), rel=1e-5)


def test_harmonics_are_trained_band_by_band() -> None:
    ours = stage(VanillaStage, degree=2)
    assert [ours.coefficients(index) for index in (0, 19, 20, 39, 40, 1000)] == [1, 1, 4, 4, 9, 9]
    assert stage(OpacityStage, degree=2).coefficients(0) == 9


def test_rates_fall_over_the_steps_of_their_own_stage() -> None:
    settings = tiny_settings()
    one, three = stage(VanillaStage), stage(PixelOrderStage)
    assert one.rates(30) == all_rates(settings.stage1.rates, 30, 60, one.extent)
    assert three.rates(5) == all_rates(settings.stage3.rates, 5, 10, three.extent)
    assert one.rates(30)["means"] == pytest.approx(one.extent * 1.6e-5)  # halfway between 1.6e-4 and 1.6e-6
    assert stage(OpacityStage).rates(5) == {"logits": settings.stage2.rate}


def test_stage_1_densifies_until_its_last_step() -> None:
    ours, seen = stage(VanillaStage), []
    drawing = ours.raster.draw(as_drawn(ours.model.values), CAMERAS[0])
    ours.density.observe = lambda *_: None  # type: ignore[method-assign]
    ours.density.after_step = lambda model, step: seen.append(step)  # type: ignore[method-assign]
    for index in (0, 48, 49, 50, 51):
        ours.after_step(index, ours.photographs.train[0], drawing)
    assert seen == [1, 49, 50]


def test_background_and_threads_reach_the_rasterizer_adam_and_ssim(monkeypatch: pytest.MonkeyPatch) -> None:
    ours = stage(VanillaStage, tiny_settings(background=(0.2, 0.4, 0.6), threads=3))
    assert ours.raster.options == ours.options == RenderOptions((0.2, 0.4, 0.6), threads=3)
    asked: dict[str, list[int]] = {"ssim": [], "adam": []}
    ssim, adam = ops._engine.ssim, ops._engine.adam
    monkeypatch.setattr(ops._engine, "ssim", lambda *args: asked["ssim"].append(args[2]) or ssim(*args))
    monkeypatch.setattr(ops._engine, "adam", lambda *args: asked["adam"].append(args[9]) or adam(*args))
    ours.step(0)
    ours.measure()
    assert asked == {"ssim": [3, 3], "adam": [3] * 5}


def test_measure_is_the_mean_over_held_out_views() -> None:
    ours = stage(VanillaStage)
    found = ours.measure()
    assert found["held_out_psnr"] > 45 and found["held_out_ssim"] > 0.99  # equal up to the rounding to bytes
