"""The parts of training one by one: settings, Adam, first surfels, photographs, the log."""

import json
import subprocess
import sys
import time
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
import torch
from made_capture import made_model, made_scene, tiny_settings, write_capture
from tensorboard.backend.event_processing.event_accumulator import EventAccumulator

from hushsplat.cli.train import with_preset
from hushsplat.io.captures.capture import load_capture
from hushsplat.training.first_surfels import first_surfels, flattened, neighbour_distance
from hushsplat.training.log import RunLog, TimeLeft, last_entries
from hushsplat.training.photographs import Photographs, TargetView, load_photographs
from hushsplat.training.settings import PRESETS, TrainSettings, settings_from_json, settings_json
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
    settings = PRESETS[name]
    assert settings_from_json(TrainSettings, json.loads(json.dumps(settings_json(settings))), "config.json") == settings


def changed(path: str, value: object) -> dict:
    """The settings as JSON values with one of them changed, or removed if it becomes None."""
    values = settings_json(TrainSettings())
    *places, name = path.split(".")
    part = values
    for place in places:
        part = part[place]
    if value is None:
        del part[name]
    else:
        part[name] = value
    return values


@pytest.mark.parametrize(
    ("values", "message"),
    [
        ([], "x.json: the file must be an object of settings"),
        (changed("stage1.steps", None), r"setting 'stage1\.steps' is missing"),
        (changed("stage1.rates.speed", 1), r"setting 'stage1\.rates\.speed' is unknown"),
        (changed("stage1.rates", 3), r"x.json: stage1\.rates must be an object of settings"),
        (changed("stage1.dssim", 1.5), r"x.json: stage1\.dssim must be a number from 0 to 1, got 1\.5"),
        (changed("width", 4), "x.json: width must be a whole number of at least 8, got 4"),
        (changed("stage3.rates.scale", -1.0), r"stage3\.rates\.scale must be a number of at least 0, got -1"),
        (changed("stage2.penalty", float("inf")), r"stage2\.penalty must be a number of at least 0, got inf"),
        (changed("stage1.sh_degree", 4), r"stage1\.sh_degree must be a whole number from 0 to 3, got 4"),
        (changed("stage1.steps", 0), r"stage1\.steps must be a whole number of at least 1, got 0"),
        (changed("seed", -1), "seed must be a whole number from 0 to"),
        (changed("background", [0.0, 0.0, 1.5]), r"background must be 3 numbers each from 0 to 1, got \(0.0, 0.0, 1.5"),
        (changed("stage4.window", [-1, 0]), r"stage4\.window must be 2 numbers each of at least 0, got \(-1, 0\)"),
        (changed("stage4.chains.meter", 0.0), r"stage4\.chains\.meter must be a number above 0, got 0"),
        (changed("stage4.chains.pace_px", [0.0, 1.0]), r"chains\.pace_px must be 2 numbers each above 0, got"),
        (changed("stage4.chains.pace_share", 1.5), r"chains\.pace_share must be a number from 0 to 1, got 1\.5"),
        (changed("stage4.chains.drift_share", 0.8), r"drift_share and dolly_share must not be more than 1 together"),
        (changed("stage4.chains.dolly_m", [1.0, 0.5]), r"dolly_m must be a number and one that is not smaller, got 1"),
    ],
)
def test_settings_out_of_range_are_named(values: object, message: str) -> None:
    with pytest.raises(TrainingError, match=message):
        settings_from_json(TrainSettings, values, "x.json")


WRONG_TYPES = """
import sys, json
from hushsplat.training.settings import *
for name, value in [("width", 10.5), ("seed", "1"), ("background", [1, 2]), ("background", 3), ("threads", True)]:
    try:
        settings_from_json(TrainSettings, {**settings_json(TrainSettings()), name: value}, "x.json")
    except TrainingError as error:
        print(error)
try:
    TrainSettings(stage1=3)
except TrainingError as error:
    print(error)
assert "torch" not in sys.modules, "settings need no PyTorch"
"""


def test_settings_of_another_type_are_named() -> None:
    """In a process of its own: here beartype would be first."""
    run = [sys.executable, "-c", WRONG_TYPES]
    found = subprocess.run(run, capture_output=True, text=True, check=True).stdout.splitlines()
    assert found == [
        "x.json: width must be a whole number of at least 8, got 10.5.",
        "x.json: seed must be a whole number from 0 to 4.29497e+09, got '1'.",
        "x.json: background must be 3 numbers each from 0 to 1, got (1, 2).",
        "x.json: background must be 3 numbers each from 0 to 1, got 3.",
        "x.json: threads must be a whole number from 0 to 256, got True.",
        "stage1 must be Stage1, got 3.",
    ]


def test_the_preset_is_where_flags_begin() -> None:
    assert with_preset(["train", "x", "--preset", "paper"]).settings == PRESETS["paper"]
    assert with_preset(["train", "x", "--preset=paper"]).settings == PRESETS["paper"]
    assert with_preset(["train", "x"]).settings == PRESETS["small"]


def test_the_model_draws_what_it_was_made_of() -> None:
    scene, again = made_scene(9), SurfelModel.from_gaussians(made_scene(9)).gaussians()
    for name in ("means", "scales", "rotations", "opacities", "sh"):
        np.testing.assert_allclose(getattr(again, name), getattr(scene, name), rtol=1e-5, atol=1e-6)


def test_adam_is_pytorchs() -> None:
    ours = made_model()
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
    ours = made_model()
    before = ours.values["sh"].clone()
    leaves = ours.leaves(1)
    leaves["sh"].grad = torch.ones_like(leaves["sh"])
    ours.update(leaves, {"sh": 0.1}, threads=1)
    assert torch.equal(ours.values["sh"][:, 1:], before[:, 1:]) and not torch.equal(ours.values["sh"], before)


def test_a_parameter_without_gradient_is_a_mistake() -> None:
    ours = made_model()
    with pytest.raises(TrainingError, match="means has no gradient"):
        ours.update(ours.leaves(1), {"means": 0.1}, threads=1)


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
    found = first_surfels(given, views(3), tiny_settings().stage1, seed=0)
    np.testing.assert_array_equal(found.values["means"], points)
    scene = found.gaussians()
    np.testing.assert_allclose(0.5 + 0.28209479 * scene.sh[:, 0], colors / np.float32(255), atol=1e-5)
    np.testing.assert_allclose(scene.opacities, 0.1, rtol=1e-5)
    fewer = first_surfels(given, views(3), replace(tiny_settings().stage1, most_points=7), seed=0)
    assert len(fewer) == 7 and set(map(tuple, fewer.values["means"].tolist())) <= set(map(tuple, points.tolist()))


def test_without_points_surfels_are_scattered_in_view(tmp_path: Path) -> None:
    capture = load_capture(write_capture(tmp_path / "c", views=3))
    found = first_surfels(Capture(capture.views, capture.folder), views(3), tiny_settings().stage1, seed=0)
    assert len(found) == 150 and bool((found.values["means"][:, 2] > -2).all())


def test_every_view_once_and_then_again() -> None:
    order = [int(views(5).at_step(index, seed=3).name) for index in range(15)]
    assert [sorted(order[k : k + 5]) for k in (0, 5, 10)] == [list(range(5))] * 3
    assert order[:5] != order[5:10] or order[5:10] != order[10:]


def test_pixels_without_photograph_have_no_gradient() -> None:
    covered = np.ones((10, 20), bool)
    covered[3, 4] = False
    view = replace(views(1).train[0], covered=covered)
    color = torch.rand(10, 20, 3, requires_grad=True)
    view.compared(color, view.target()).sum().backward()
    assert not color.grad[3, 4].any() and float(color.grad.sum()) == 10 * 20 * 3 - 3


def test_photographs_at_the_width_of_training(tmp_path: Path) -> None:
    capture = load_capture(write_capture(tmp_path / "c", views=9))
    loaded: list[None] = []
    found = load_photographs(capture, tiny_settings(width=16), lambda: loaded.append(None))
    assert (len(found.train), len(found.held_out), len(loaded)) == (7, 2, 9)
    assert found.train[0].pixels.shape == (12, 16, 3)
    assert load_photographs(capture, tiny_settings(width=999)).train[0].pixels.shape == (24, 32, 3)


def test_one_view_is_not_enough(tmp_path: Path) -> None:
    capture = load_capture(write_capture(tmp_path / "c", views=1))
    with pytest.raises(TrainingError, match="has 1 view; training needs at least 2"):
        load_photographs(capture, tiny_settings())


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
    assert np.shares_memory(flattened(scene).scales, scene.scales)


def test_the_log_drops_steps_that_will_be_repeated(tmp_path: Path) -> None:
    log = RunLog(tmp_path, [], None, 0)
    for stage, step in (("stage1", 5), ("stage1", 10), ("stage2", 5), ("stage2", 10)):
        log.write(stage, step, {"loss": 1.0})
    log.close()
    with (tmp_path / "log.jsonl").open("a") as file:
        file.write('{"stage": "sta')  # killed while writing
    RunLog(tmp_path, ["stage1"], "stage2", 7).close()
    left = [json.loads(line) for line in (tmp_path / "log.jsonl").read_text().splitlines()]
    assert [(entry["stage"], entry["step"]) for entry in left] == [("stage1", 5), ("stage1", 10), ("stage2", 5)]
    (tmp_path / "log.jsonl").write_text("something else\n")
    with pytest.raises(TrainingError, match=r"log.jsonl: is not the log of a run; remove it to go on"):
        RunLog(tmp_path, [], None, 0)


def test_a_half_written_first_line_does_not_block_the_log(tmp_path: Path) -> None:
    (tmp_path / "log.jsonl").write_bytes(b'{"stage": "sta\xc3')
    log = RunLog(tmp_path, [], None, 0)
    log.write("stage1", 1, {"loss": 1.0})
    log.close()
    assert json.loads((tmp_path / "log.jsonl").read_text()) == {"stage": "stage1", "step": 1, "loss": 1.0}


def test_the_log_is_replaced_as_a_whole(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    log = RunLog(tmp_path, [], None, 0)
    log.write("stage1", 1, {"loss": 1.0})
    log.close()
    before = (tmp_path / "log.jsonl").read_bytes()

    def killed(self: Path, *arguments: object, **options: object) -> int:
        self.write_bytes(before[:7])
        raise KeyboardInterrupt

    monkeypatch.setattr(Path, "write_text", killed)
    with pytest.raises(KeyboardInterrupt):
        RunLog(tmp_path, ["stage1"], None, 0)
    assert (tmp_path / "log.jsonl").read_bytes() == before


def scalars(folder: Path) -> dict[str, list[tuple[int, float]]]:
    """What TensorBoard itself shows of a folder of events."""
    accumulator = EventAccumulator(str(folder))
    accumulator.Reload()
    tags = accumulator.Tags()["scalars"]
    return {tag: [(event.step, event.value) for event in accumulator.Scalars(tag)] for tag in tags}


def test_tensorboard_reads_the_events_and_drops_steps_that_were_repeated(tmp_path: Path) -> None:
    log = RunLog(tmp_path, [], None, 0)
    log.begin_stage("stage1", 0)
    for step in (1, 2, 3):
        log.write("stage1", step, {"loss": 0.5 / step, "psnr": 20.0})
    log.begin_stage("stage2", 0)
    log.write("stage2", 1, {"loss": 4.0})
    log.close()
    assert scalars(tmp_path / "events" / "stage1")["psnr"] == [(1, 20.0), (2, 20.0), (3, 20.0)]
    assert scalars(tmp_path / "events" / "stage2") == {"loss": [(1, 4.0)]}
    (first,) = (tmp_path / "events" / "stage1").iterdir()
    first.rename(first.with_name(f"events.out.tfevents.{int(time.time())}.~"))  # last of the names of this second
    again = RunLog(tmp_path, [], "stage1", 1)  # killed after step 3, the checkpoint was at step 1
    again.begin_stage("stage1", 1)
    again.write("stage1", 2, {"loss": 9.0})
    again.close()
    assert scalars(tmp_path / "events" / "stage1")["loss"] == [(1, 0.5), (2, 9.0)]
    assert last_entries(tmp_path) == {"stage1": {"loss": 9.0}}


def test_without_tensorboard_the_log_says_so_once(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "torch.utils.tensorboard", None)
    for done in (0, 1):
        log = RunLog(tmp_path, [], "stage1", done)
        log.begin_stage("stage1", done)
        log.write("stage1", done + 1, {"loss": 1.0})
        log.close()
    first, *rest = map(json.loads, (tmp_path / "log.jsonl").read_text().splitlines())
    assert first["note"] == "no events are written; install TensorBoard with: pip install 'hushsplat[tensorboard]'"
    assert [entry["step"] for entry in rest] == [1, 2] and not (tmp_path / "events").exists()


def test_how_long_it_will_take() -> None:
    assert TimeLeft(20, 5, clock=iter([0.0, 10.0]).__next__).seconds(5) == float("inf")
    assert TimeLeft(20, 5, clock=iter([0.0, 10.0]).__next__).seconds(10) == pytest.approx(20)
