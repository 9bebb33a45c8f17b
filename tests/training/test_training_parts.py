"""The parts of training one by one: settings, Adam, densification, first surfels, photographs, logs."""

import json
import struct
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
import torch
from hushsplat.io.tensorboard import EventWriter, _checksum
from hushsplat.training.flatten import flattened
from made_capture import made_scene, tiny_config, write_capture

from hushsplat.cli.train import with_preset
from hushsplat.engines.torch.raster import ScreenGradients
from hushsplat.io.captures.capture import load_capture
from hushsplat.training.densify import Density
from hushsplat.training.first_surfels import first_surfels, neighbour_distance
from hushsplat.training.log import Journal, Ticker
from hushsplat.training.photographs import Photographs, TargetView, load_photographs
from hushsplat.training.settings import PRESETS, Densification, TrainConfig, checked, config_from_text, config_text
from hushsplat.training.surfel_model import SurfelModel
from hushsplat.training.surfel_stages import all_rates
from hushsplat.types.camera import Camera
from hushsplat.types.capture import Capture
from hushsplat.types.errors import TrainingError
from hushsplat.types.gaussians import Gaussians
from hushsplat.types.rotations import matrix_from_quaternion


def test_the_papers_numbers() -> None:
    paper = PRESETS["paper"]
    assert (paper.stage1.steps, paper.stage2.steps, paper.stage3.steps) == (30_000, 1_000, 3_000)
    assert (paper.stage2.penalty, paper.stage2.prune_opacity) == (0.003, 0.05)
    assert paper.stage1.densification.most_surfels == 3_000_000
    assert (paper.stage1.normal_weight, paper.width) == (0.0, 1600)


@pytest.mark.parametrize("name", sorted(PRESETS))
def test_settings_survive_the_file(name: str) -> None:
    config = checked(PRESETS[name])
    assert config_from_text(config_text(config), "config.json") == config


def changed(path: str, value: object) -> str:
    """The settings as JSON with one of them changed, or removed if it becomes None."""
    values = json.loads(config_text(TrainConfig()))
    *places, name = path.split(".")
    part = values
    for place in places:
        part = part[place]
    if value is None:
        del part[name]
    else:
        part[name] = value
    return json.dumps(values)


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("{", r"x.json: is not JSON"),
        ("[]", "x.json: the file must be an object of settings"),
        (changed("stage1.steps", None), r"setting 'stage1\.steps' is missing"),
        (changed("stage1.rates.speed", 1), r"setting 'stage1\.rates\.speed' is unknown"),
        (changed("stage1.steps", 1.5), r"setting 'stage1\.steps' is 1\.5, which is of another kind"),
        (changed("background", [1, 2]), r"setting 'background' is \[1, 2\], which is of another kind"),
        (changed("stage1.rates", 3), r"stage1\.rates\. must be an object of settings"),
        (changed("stage1.dssim", 1.5), r"stage1\.dssim must lie in 0\.\.1, got 1\.5"),
        (changed("width", 4), "width must be at least 8, got 4"),
        (changed("stage3.rates.scale", -1), r"stage3\.rates\.scale must be at least 0, got -1"),
        (changed("stage2.penalty", float("inf")), r"stage2\.penalty must be at least 0, got inf"),
        (changed("stage1.sh_degree", 4), r"stage1\.sh_degree must lie in 0\.\.3, got 4"),
        (changed("stage1.steps", 0), r"stage1\.steps must be at least 1, got 0"),
        (changed("seed", -1), "seed must lie in"),
    ],
)
def test_settings_that_make_no_sense(text: str, message: str) -> None:
    with pytest.raises(TrainingError, match=message):
        config_from_text(text, "x.json")


def test_the_preset_is_where_flags_begin() -> None:
    assert with_preset(["train", "x", "--preset", "paper"]).config == PRESETS["paper"]
    assert with_preset(["train", "x", "--preset=paper"]).config == PRESETS["paper"]
    assert with_preset(["train", "x"]).config == PRESETS["small"]


def model(count: int = 12, degree: int = 1) -> SurfelModel:
    scene = made_scene(count)
    sh = np.zeros((count, (degree + 1) ** 2, 3), np.float32)
    sh[:, :1] = scene.sh
    return SurfelModel.from_gaussians(replace(scene, sh=sh))


def test_the_model_draws_what_it_was_made_of() -> None:
    scene, again = made_scene(9), SurfelModel.from_gaussians(made_scene(9)).gaussians()
    for name in ("means", "scales", "rotations", "opacities", "sh"):
        np.testing.assert_allclose(getattr(again, name), getattr(scene, name), rtol=1e-5, atol=1e-6)


def test_adam_is_pytorchs() -> None:
    ours = model()
    values = {name: tensor.clone().requires_grad_() for name, tensor in ours.values.items()}
    split = ours.values["sh"][:, :1], ours.values["sh"][:, 1:]
    bands = [band.clone().requires_grad_() for band in split]
    rates = {"means": 0.1, "log_scales": 0.2, "quaternions": 0.3, "logits": 0.4}
    groups = [{"params": [values[name]], "lr": rate} for name, rate in rates.items()]
    groups += [{"params": [bands[0]], "lr": 0.5}, {"params": [bands[1]], "lr": 0.5 / 20}]
    theirs = torch.optim.Adam(groups, eps=1e-15)
    rng = torch.Generator().manual_seed(0)
    for _ in range(5):
        leaves = ours.leaves(4)
        for leaf in leaves.values():
            leaf.grad = torch.randn(leaf.shape, generator=rng)
        for name in rates:
            values[name].grad = leaves[name].grad.clone()
        bands[0].grad, bands[1].grad = leaves["sh"].grad[:, :1].clone(), leaves["sh"].grad[:, 1:].clone()
        ours.update(leaves, {**rates, "sh": 0.5}, threads=1)
        theirs.step()
    for name in rates:
        torch.testing.assert_close(ours.values[name], values[name].detach(), rtol=1e-4, atol=1e-5)
    torch.testing.assert_close(ours.values["sh"], torch.cat(bands, dim=1).detach(), rtol=1e-4, atol=1e-5)


def test_bands_that_are_not_trained_stay() -> None:
    ours = model()
    before = ours.values["sh"].clone()
    leaves = ours.leaves(1)
    leaves["sh"].grad = torch.ones_like(leaves["sh"])
    ours.update(leaves, {"sh": 0.1}, threads=1)
    assert torch.equal(ours.values["sh"][:, 1:], before[:, 1:]) and not torch.equal(ours.values["sh"], before)


def test_a_parameter_without_gradient_is_a_mistake() -> None:
    ours = model()
    with pytest.raises(TrainingError, match="means has no gradient"):
        ours.update(ours.leaves(1), {"means": 0.1}, threads=1)


def wishes(count: int, *strong: int) -> ScreenGradients:
    screen = ScreenGradients()
    screen.by_center, screen.seen = torch.zeros(count, 2), torch.ones(count, dtype=torch.bool)
    screen.by_center[list(strong)] = 1.0
    return screen


CAMERA = Camera.look_at((0, 0, -2), (0, 0, 0), width=20, height=10)
SETTINGS = Densification(first_step=0, last_step=100, every=1, gradient=1.0, reset_every=10, most_surfels=100)


def test_small_surfels_are_cloned_and_large_ones_split() -> None:
    ours = model()
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
    ours = model()
    mean, axes = ours.values["means"][5].clone(), matrix_from_quaternion(ours.values["quaternions"][5].numpy())
    density = Density(SETTINGS, extent=1.0, seed=0)
    density.observe(wishes(12, 5), CAMERA, 12)
    density.after_step(ours, 1)
    np.testing.assert_allclose((ours.values["means"][-2:] - mean).numpy() @ axes[:, 2], 0, atol=1e-6)


def test_never_more_than_allowed_and_the_strongest_first() -> None:
    ours = model()
    ours.values["log_scales"][:] = np.log(1e-4)
    density = Density(replace(SETTINGS, most_surfels=13), extent=1.0, seed=0)
    screen = wishes(12, 2, 3, 4)
    screen.by_center[3] *= 2
    density.observe(screen, CAMERA, 12)
    density.after_step(ours, 1)
    assert len(ours) == 13 and torch.equal(ours.values["means"][12], ours.values["means"][3])


def test_faint_and_huge_surfels_are_removed() -> None:
    ours = model()
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
    ours = model()
    ours.values["log_scales"][:] = np.log(1e-4)
    density = Density(replace(SETTINGS, last_step=4, most_surfels=20, even_growth=True), extent=1.0, seed=0)
    counts = []
    for step in range(1, 5):
        density.observe(wishes(len(ours), *range(len(ours))), CAMERA, len(ours))
        density.after_step(ours, step)
        counts.append(len(ours))
    assert counts == [14, 16, 18, 20]


def test_opacities_are_reset_and_forgotten() -> None:
    ours = model()
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


def test_rates_fall() -> None:
    rates = PRESETS["paper"].stage1.rates
    assert all_rates(rates, 0, 100, extent=2.0)["means"] == pytest.approx(2 * 1.6e-4)
    assert all_rates(rates, 100, 100, extent=2.0)["means"] == pytest.approx(2 * 1.6e-6)
    assert all_rates(rates, 100, 100, extent=2.0)["sh"] == 2.5e-3
    assert all_rates(replace(rates, end_share=0.1), 100, 100, extent=1.0)["sh"] == pytest.approx(2.5e-4)
    assert all_rates(replace(rates, end_share=0.0), 100, 100, extent=1.0)["sh"] == 0


def test_neighbours() -> None:
    points = torch.tensor([[0.0, 0, 0], [1, 0, 0], [0, 2, 0], [0, 0, 2], [50, 0, 0]])
    assert float(neighbour_distance(points)[0]) == pytest.approx(np.sqrt((1 + 4 + 4) / 3))
    assert neighbour_distance(points[:1]).tolist() == [1]
    many = torch.rand(700, 3, generator=torch.Generator().manual_seed(0))
    expected = torch.cdist(many.double(), many.double()).square().sort(dim=1).values[:, 1:4].mean(dim=1).sqrt()
    torch.testing.assert_close(neighbour_distance(many), expected.float(), rtol=1e-4, atol=1e-6)


def views(count: int) -> Photographs:
    pixels = np.zeros((10, 20, 3), np.uint8)
    cameras = [Camera.look_at((0.1 * k, 0, -2), (0, 0, 0), width=20, height=10) for k in range(count)]
    train = [TargetView(str(index), camera, pixels) for index, camera in enumerate(cameras)]
    return Photographs(train, train[:1])


def test_first_surfels_are_the_points(tmp_path: Path) -> None:
    capture = load_capture(write_capture(tmp_path / "c", views=3))
    rng = np.random.default_rng(0)
    points = rng.normal(size=(30, 3)).astype(np.float32)
    colors = rng.integers(0, 256, (30, 3), dtype=np.uint8)
    given = Capture(capture.views, capture.folder, points, colors)
    found = first_surfels(given, views(3), tiny_config().stage1, seed=0)
    np.testing.assert_array_equal(found.values["means"], points)
    scene = found.gaussians()
    np.testing.assert_allclose(0.5 + 0.28209479 * scene.sh[:, 0], colors / np.float32(255), atol=1e-5)
    np.testing.assert_allclose(scene.opacities, 0.1, rtol=1e-5)
    fewer = first_surfels(given, views(3), replace(tiny_config().stage1, most_points=7), seed=0)
    assert len(fewer) == 7 and set(map(tuple, fewer.values["means"].tolist())) <= set(map(tuple, points.tolist()))


def test_without_points_surfels_are_scattered_in_view(tmp_path: Path) -> None:
    capture = load_capture(write_capture(tmp_path / "c", views=3))
    found = first_surfels(Capture(capture.views, capture.folder), views(3), tiny_config().stage1, seed=0)
    assert len(found) == 150 and bool((found.values["means"][:, 2] > -2).all())


def test_every_view_once_and_then_again() -> None:
    order = [int(views(5).at_step(index, seed=3).name) for index in range(15)]
    assert [sorted(order[k : k + 5]) for k in (0, 5, 10)] == [list(range(5))] * 3
    assert order[:5] != order[5:10] or order[5:10] != order[10:]


def test_pixels_without_photograph_teach_nothing() -> None:
    covered = np.ones((10, 20), bool)
    covered[3, 4] = False
    view = replace(views(1).train[0], covered=covered)
    color = torch.rand(10, 20, 3, requires_grad=True)
    view.compared(color, view.target()).sum().backward()
    assert not color.grad[3, 4].any() and float(color.grad.sum()) == 10 * 20 * 3 - 3


def test_photographs_at_the_width_of_training(tmp_path: Path) -> None:
    capture = load_capture(write_capture(tmp_path / "c", views=9))
    loaded: list[None] = []
    found = load_photographs(capture, tiny_config(width=16), lambda: loaded.append(None))
    assert (len(found.train), len(found.held_out), len(loaded)) == (7, 2, 9)
    assert found.train[0].pixels.shape == (12, 16, 3)
    assert load_photographs(capture, tiny_config(width=999)).train[0].pixels.shape == (24, 32, 3)


def test_one_view_is_not_enough(tmp_path: Path) -> None:
    capture = load_capture(write_capture(tmp_path / "c", views=1))
    with pytest.raises(TrainingError, match="has 1 view; training needs at least 2"):
        load_photographs(capture, tiny_config())


def test_flattened_ellipsoids_keep_their_long_axes() -> None:
    scene = made_scene(20)
    rng = np.random.default_rng(1)
    scales = rng.uniform(0.1, 1.0, (20, 3)).astype(np.float32)
    ellipsoids = Gaussians(scene.means, scales, scene.rotations, scene.opacities, scene.sh)
    flat = flattened(ellipsoids)
    axes, before = matrix_from_quaternion(flat.rotations), matrix_from_quaternion(scene.rotations)
    np.testing.assert_allclose(np.linalg.det(axes), 1, atol=1e-5)
    for index in range(20):
        covariance = axes[index][:, :2] @ np.diag(flat.scales[index] ** 2) @ axes[index][:, :2].T
        kept = scales[index].copy()
        kept[scales[index].argmin()] = 0
        np.testing.assert_allclose(covariance, before[index] @ np.diag(kept**2) @ before[index].T, atol=1e-4)
    assert flattened(scene).scales is scene.scales


def test_events_are_records_that_tensorboard_reads(tmp_path: Path) -> None:
    writer = EventWriter(tmp_path)
    writer.begin_session(0)
    writer.scalars(300, {"stage1/loss": 0.5})
    writer.close()
    content, events = writer.path.read_bytes(), []
    while content:
        (length,) = struct.unpack("<Q", content[:8])
        assert content[8:12] == _checksum(content[:8])
        event = content[12 : 12 + length]
        assert content[12 + length : 16 + length] == _checksum(event)
        events.append(event)
        content = content[16 + length :]
    assert b"brain.Event:2" in events[0]
    assert events[2][9:] == b"\x10\xac\x02" + b"\x2a\x14" + b"\x0a\x12" + b"\x0a\x0bstage1/loss" + b"\x15\0\0\0\x3f"


def test_the_checksum_is_the_published_one() -> None:
    """CRC32C of 123456789 is e3069283; the format turns it by 15 bits and adds a constant."""
    turned = (0xE3069283 >> 15 | 0xE3069283 << 17) + 0xA282EAD8
    assert _checksum(b"123456789") == struct.pack("<I", turned & 0xFFFFFFFF)


def test_the_journal_forgets_what_will_be_done_again(tmp_path: Path) -> None:
    journal = Journal(tmp_path, [], None, 0)
    for stage, step in (("stage1", 5), ("stage1", 10), ("stage2", 5), ("stage2", 10)):
        journal.write(stage, step, {"loss": 1.0})
    journal.close()
    with (tmp_path / "log.jsonl").open("a") as file:
        file.write('{"stage": "sta')  # killed while writing
    Journal(tmp_path, ["stage1"], "stage2", 7).close()
    left = [json.loads(line) for line in (tmp_path / "log.jsonl").read_text().splitlines()]
    assert [(entry["stage"], entry["step"]) for entry in left] == [("stage1", 5), ("stage1", 10), ("stage2", 5)]
    (tmp_path / "log.jsonl").write_text("something else\n")
    with pytest.raises(TrainingError, match=r"log.jsonl: is not the log of a run; remove it to go on"):
        Journal(tmp_path, [], None, 0)


def test_how_long_it_will_take() -> None:
    assert Ticker(20, 5, clock=iter([0.0, 10.0]).__next__).seconds_left(5) == float("inf")
    assert Ticker(20, 5, clock=iter([0.0, 10.0]).__next__).seconds_left(10) == pytest.approx(20)
