"""A whole run: it learns, the same seed gives the same bytes, and a run that was killed is resumed unharmed."""

import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Mapping
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
import torch
from made_capture import STEPS, flags_of, made_scene, tiny_settings, write_capture
from torch import Tensor

import hushsplat
from hushsplat.io.captures.capture import load_capture
from hushsplat.io.scenes.scene import load, save
from hushsplat.io.weights import read_weights
from hushsplat.training.api import TrainResult, train
from hushsplat.training.log import TrainProgress
from hushsplat.training.photographs import load_photographs, made_up_photographs
from hushsplat.training.plans import plans_from_capture, plans_from_scene
from hushsplat.training.runner import begin_run, read_run, run_stages
from hushsplat.training.settings import PRESETS, Stage3, TrainSettings
from hushsplat.training.stage import Plan
from hushsplat.types.errors import HushsplatError, TrainingError

ENVIRONMENT = {**os.environ, "PYTHONPATH": str(Path(hushsplat.__file__).parents[1])}
PATIENCE_S = 300  # of a busy machine; nothing is timed


@pytest.fixture(scope="session")
def capture(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return write_capture(tmp_path_factory.mktemp("capture") / "ring")


def trained(capture: Path, folder: Path, settings: TrainSettings) -> tuple[TrainResult, list[TrainProgress]]:
    told: list[TrainProgress] = []
    return train(capture, folder, settings=settings, on_progress=told.append), told


@pytest.fixture(scope="session")
def finished(capture: Path, tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, list[TrainProgress]]:
    result, told = trained(capture, tmp_path_factory.mktemp("runs") / "whole", tiny_settings())
    return result.folder, told


def entries(folder: Path) -> list[dict]:
    return [json.loads(line) for line in (folder / "log.jsonl").read_text().splitlines()]


def held_out(folder: Path) -> dict[str, float]:
    return {entry["stage"]: entry["held_out_psnr"] for entry in entries(folder) if "held_out_psnr" in entry}


def test_it_learns(finished: tuple[Path, list[TrainProgress]]) -> None:
    folder, told = finished
    assert [p.step for p in told] == [step for steps in STEPS for step in range(1, steps + 1)]
    log = entries(folder)
    assert held_out(folder)["stage1"] > told[0].metrics["psnr"] + 3
    assert held_out(folder)["stage3"] > told[0].metrics["psnr"] + 3
    assert told[5].metrics["surfels"] == 150 < told[50].metrics["surfels"] <= 220
    names = [entry["stage"] for entry in log]
    assert names == sorted(names) and log[0]["step"] == 5


def test_what_a_run_leaves(finished: tuple[Path, list[TrainProgress]]) -> None:
    folder, _ = finished
    for name in ("stage1.ply", "stage2.ply", "stage3.ply", "stage4.ply"):
        scene = load(folder / name)
        assert scene.is_surfels and scene.sh_degree == 1
        assert (scene.payload is not None) == (name == "stage4.ply")
    assert read_weights(folder / "denoiser.safetensors").tensors["gate.gamma"] > 0
    assert len(load_capture(folder, require_photographs=False).views) == 12  # they tell which way is up
    previews = sorted(path.stem for path in (folder / "previews").iterdir())
    assert previews == ["stage1-000040", "stage1-000060", "stage2-000010", "stage3-000010", "stage4-000008"]
    assert not (folder / "checkpoint.safetensors").exists()
    assert {path.parent.name for path in folder.glob("events/*/events.out.tfevents.*")} == set(held_out(folder))
    assert read_run(folder) == (tiny_settings(), read_run(folder)[1])


def test_same_seed_same_bytes(capture: Path, finished: tuple[Path, list[TrainProgress]], tmp_path: Path) -> None:
    result, _ = trained(capture, tmp_path / "again", tiny_settings(threads=1))
    trained(capture, tmp_path / "other", tiny_settings(seed=1))
    assert [path.name for path in result.files] == [*(f"stage{k}.ply" for k in (1, 2, 3, 4)), "denoiser.safetensors"]
    assert {stage: numbers["held_out_psnr"] for stage, numbers in result.metrics.items()} == held_out(result.folder)
    whole = (finished[0] / "stage3.ply").read_bytes()
    assert (tmp_path / "again" / "stage3.ply").read_bytes() == whole
    assert (tmp_path / "other" / "stage3.ply").read_bytes() != whole
    assert same_weights(finished[0], tmp_path / "again") and not same_weights(finished[0], tmp_path / "other")


def same_weights(one: Path, other: Path) -> bool:
    """Networks up to rounding: PyTorch's convolutions differ in the last bit from process to process."""
    first, second = (read_weights(folder / "denoiser.safetensors").tensors for folder in (one, other))
    return all(np.allclose(first[name], second[name], atol=1e-6) for name in first)


def command(capture: Path, folder: Path, *words: str) -> list[str]:
    return [sys.executable, "-m", "hushsplat", "train", str(capture), "-o", str(folder), *words]


def has_logged(folder: Path, stage: str, step: int) -> bool:
    log = folder / "log.jsonl"
    return log.exists() and f'"stage": "{stage}", "step": {step},' in log.read_text()


def wait_for(event: Callable[[], bool], process: subprocess.Popen) -> None:
    """Until it has happened; a process that ends before, or hangs, fails."""
    end = time.monotonic() + PATIENCE_S
    while not event():
        assert process.poll() is None, f"ended with {process.returncode} before"
        assert time.monotonic() < end, f"did not happen in {PATIENCE_S} s"
        time.sleep(0.01)


def test_killed_and_resumed(capture: Path, finished: tuple[Path, list[TrainProgress]], tmp_path: Path) -> None:
    """SIGKILL in the middle of a step of stage 1, and again in stages 3 and 4."""
    folder = tmp_path / "killed"
    begun = [*command(capture, folder, "--quiet"), *flags_of(tiny_settings())]
    resumed = [*command(capture, folder, "--quiet"), "--resume"]
    for stage, words in (("stage1", begun), ("stage3", resumed), ("stage4", resumed)):
        process = subprocess.Popen(words, env=ENVIRONMENT)
        try:
            wait_for(lambda: has_logged(folder, stage, step=5), process)  # noqa: B023 -- called at once
        finally:
            process.send_signal(signal.SIGKILL)
            process.wait()
    assert not (folder / "stage4.ply").exists()
    subprocess.run([*command(capture, folder), "--resume", "--quiet"], env=ENVIRONMENT, check=True)
    whole = finished[0]
    for name in ("stage1.ply", "stage2.ply", "stage3.ply"):
        assert (folder / name).read_bytes() == (whole / name).read_bytes(), name
    assert same_weights(folder, whole)


def test_a_trained_scene_enters_at_stage_3(tmp_path: Path) -> None:
    settings = tiny_settings()
    scene = made_scene(40)
    views = made_up_photographs(scene, settings)
    assert (len(views.train), len(views.held_out)) == (8, 2)
    assert np.mean([view.pixels.mean() for view in views.train]) > 5  # they see the scene
    begin_run(tmp_path / "run", settings, {})
    told: list[TrainProgress] = []
    run_stages(tmp_path / "run", plans_from_scene(scene, views, settings), settings, told.append)
    assert {p.stage for p in told} == {"stage3", "stage4"}
    assert told[settings.stage3.steps - 1].metrics["held_out_psnr"] > 25  # it was right already, but for the order


def test_a_scene_may_go_to_stage_4_alone(tmp_path: Path) -> None:
    settings = tiny_settings(stage3=Stage3(steps=0, made_up_views=10))
    scene = made_scene(40)
    plans = plans_from_scene(scene, made_up_photographs(scene, settings), settings)
    begin_run(tmp_path / "run", settings, {})
    told: list[TrainProgress] = []
    run_stages(tmp_path / "run", plans, settings, told.append)
    assert {p.stage for p in told} == {"stage4"}
    np.testing.assert_allclose(load(tmp_path / "run" / "stage4.ply").means, scene.means, atol=1e-6)


def test_stage_4_needs_a_scene(capture: Path, tmp_path: Path) -> None:
    settings, loaded = tiny_settings(), load_capture(capture)
    plan = plans_from_capture(loaded, load_photographs(loaded, settings), settings)[-1]
    with pytest.raises(TrainingError, match="stage 4 needs a scene"):
        plan.begin(tmp_path)


def test_the_command_takes_scenes(capture: Path, tmp_path: Path) -> None:
    save(made_scene(40), tmp_path / "scene.ply")
    small = flags_of(tiny_settings())
    run = subprocess.run(
        [*command(tmp_path / "scene.ply", tmp_path / "alone"), *small],
        env=ENVIRONMENT,
        capture_output=True,
        text=True,
        check=True,
    )
    assert "stage3 10/10 loss" in run.stderr and "held-out-psnr" in run.stderr
    wrong = subprocess.run(
        command(tmp_path / "scene.ply", tmp_path / "x", "--scene", "y.ply"),
        env=ENVIRONMENT,
        capture_output=True,
        text=True,
        check=False,
    )
    assert wrong.returncode == 2 and "is a scene; --scene and --images belong to a capture." in wrong.stderr


class Counting:
    """A stage that adds up its steps, and fails as told."""

    def __init__(self, fail: dict[int, BaseException | float]) -> None:
        self.total, self.fail = torch.zeros(1), fail

    def step(self, index: int) -> dict[str, float]:
        trouble = self.fail.get(index)
        if isinstance(trouble, BaseException):
            raise trouble
        self.total = self.total + index
        return {"loss": 1.0 if trouble is None else trouble}

    def preview(self) -> np.ndarray:
        return np.zeros((2, 2, 3), np.float32)

    def measure(self) -> dict[str, float]:
        return {}

    def state(self) -> dict[str, Tensor]:
        return {"total": self.total}

    def load(self, state: Mapping[str, Tensor]) -> None:
        self.total = state["total"]

    def finish(self, folder: Path) -> None:
        (folder / "total.txt").write_text(str(int(self.total)))


def counted(folder: Path, fail: dict[int, BaseException | float], steps: int = 20) -> None:
    run_stages(folder, [Plan("count", steps, lambda _: Counting(fail))], tiny_settings(), lambda _: None)


@pytest.mark.parametrize(
    ("trouble", "message"),
    [
        (float("nan"), "count stopped at step 18 of 20: the loss became nan; the last checkpoint is kept; go on with"),
        (MemoryError(), "count stopped at step 18 of 20: not enough memory; the last checkpoint is kept"),
        (
            RuntimeError("DefaultCPUAllocator: can't allocate memory"),
            "count stopped at step 18 of 20: not enough memory",
        ),
    ],
)
def test_trouble_is_one_line_and_keeps_the_checkpoint(
    trouble: BaseException | float, message: str, tmp_path: Path
) -> None:
    begin_run(tmp_path / "run", tiny_settings(), {})
    with pytest.raises(TrainingError, match=message):
        counted(tmp_path / "run", {17: trouble})
    counted(tmp_path / "run", {step: RuntimeError("done twice") for step in range(14)})  # goes on after step 14
    assert (tmp_path / "run" / "total.txt").read_text() == str(sum(range(20)))


def test_other_errors_are_not_swallowed(tmp_path: Path) -> None:
    begin_run(tmp_path / "run", tiny_settings(), {})
    with pytest.raises(RuntimeError, match="a bug"):
        counted(tmp_path / "run", {3: RuntimeError("a bug")})


def test_errors_of_a_folder(tmp_path: Path, finished: tuple[Path, list[TrainProgress]]) -> None:
    with pytest.raises(
        TrainingError, match=r"there is no run to resume \(config.json is missing\); leave out --resume"
    ):
        read_run(tmp_path)
    with pytest.raises(TrainingError, match="there is a run already; go on with --resume, or choose another folder"):
        begin_run(finished[0], tiny_settings(), {})
    begin_run(tmp_path / "run", tiny_settings(), {})
    (tmp_path / "run" / "checkpoint.safetensors").write_bytes(b"\x10\0\0\0\0\0\0\0nothing")
    with pytest.raises(TrainingError, match=r"checkpoint.safetensors: cannot be read: .* remove it to begin its stage"):
        counted(tmp_path / "run", {})
    (tmp_path / "run" / "checkpoint.safetensors").unlink()
    (tmp_path / "run" / "finished.json").write_text("{}")
    with pytest.raises(TrainingError, match=r"finished.json: must be a list of names of stages"):
        counted(tmp_path / "run", {})
    (tmp_path / "run" / "finished.json").write_text("{")
    with pytest.raises(TrainingError, match=r"finished.json: is not JSON"):
        counted(tmp_path / "run", {})
    (tmp_path / "run" / "config.json").write_text("[]")
    with pytest.raises(TrainingError, match="is not the config of a run; expected 'source' and 'config'"):
        read_run(tmp_path / "run")
    (tmp_path / "run" / "config.json").write_text("[")
    with pytest.raises(TrainingError, match=r"config.json: cannot be read"):
        read_run(tmp_path / "run")


def test_a_foreign_checkpoint_is_refused(tmp_path: Path) -> None:
    from safetensors.torch import save_file

    begin_run(tmp_path / "run", tiny_settings(), {})
    save_file({"x": torch.zeros(1)}, tmp_path / "run" / "checkpoint.safetensors")
    with pytest.raises(TrainingError, match="is not a checkpoint of hushsplat; remove it"):
        counted(tmp_path / "run", {})


def test_what_is_wrong_with_photographs_is_said_at_once(capture: Path, tmp_path: Path) -> None:
    broken = write_capture(tmp_path / "broken", views=3)
    (broken / "images" / "01.png").unlink()

    def said(folder: Path, *words: str) -> str:
        run = subprocess.run(
            command(folder, tmp_path / "run", *words),
            env=ENVIRONMENT,
            capture_output=True,
            text=True,
            check=False,
        )
        assert run.returncode == 2 and len(run.stderr.splitlines()) == 1
        return run.stderr

    assert "the photograph of view 'images/01.png' is missing" in said(broken).replace("'01", "'images/01")
    from PIL import Image

    Image.new("RGB", (50, 50)).save(broken / "images" / "01.png")
    assert "the photograph is 50×50 px, but its camera is of another shape" in said(broken)
    assert not (tmp_path / "run").exists()


@pytest.mark.parametrize("given", ["scene", "reference_scene", "start", "lpips"])
def test_inputs_are_checked_before_photographs_are_read(
    given: str, capture: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def read(*_: object, **__: object) -> None:
        raise AssertionError("a photograph was read")

    monkeypatch.setattr("hushsplat.training.photographs.load_photograph", read)
    missing = tmp_path / {"start": "no.safetensors", "lpips": "no.npz"}.get(given, "no.ply")
    with pytest.raises(HushsplatError, match=rf"{missing.name}: "):
        train(capture, tmp_path / "run", settings=tiny_settings(), **{given: missing})
    with pytest.raises(AssertionError, match="a photograph was read"):  # the test can tell
        train(capture, tmp_path / "run", settings=tiny_settings())


def test_resuming_with_another_capture_is_refused(capture: Path, finished: tuple[Path, list[TrainProgress]]) -> None:
    with pytest.raises(TrainingError, match=r"was begun with capture .*, not with capture elsewhere"):
        train("elsewhere", finished[0], resume=True)


def test_resuming_a_finished_run_changes_nothing(capture: Path, finished: tuple[Path, list[TrainProgress]]) -> None:
    before, told = {path: path.read_bytes() for path in finished[0].glob("*.*")}, []
    result = train(capture, finished[0], resume=True, on_progress=told.append)
    assert not told and len(result.files) == 5 and set(result.metrics) == {"stage1", "stage2", "stage3", "stage4"}
    assert {path: path.read_bytes() for path in finished[0].glob("*.*")} == before


def test_train_takes_what_is_in_memory(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    threads, scene = torch.get_num_threads(), made_scene(40)
    settings = tiny_settings(stage3=Stage3(steps=1, made_up_views=10), stage4=replace(tiny_settings().stage4, steps=1))
    monkeypatch.setitem(PRESETS, "small", settings)
    result = hushsplat.train(scene, tmp_path / "run")
    assert [path.name for path in result.files] == ["stage3.ply", "stage4.ply", "denoiser.safetensors"]
    assert read_run(tmp_path / "run")[1] == {"capture": "40 Gaussians in memory"}
    assert torch.get_num_threads() == threads


def test_train_refuses_what_does_not_fit(tmp_path: Path) -> None:
    with pytest.raises(TrainingError, match="preset must be one of paper, small, got 'large'"):
        train("x", tmp_path / "run", preset="large")
    with pytest.raises(TrainingError, match="40 Gaussians in memory: is a scene; --scene and --images belong"):
        train(made_scene(40), tmp_path / "run", images="images_4")
    assert not (tmp_path / "run").exists()


WITHOUT_TORCH = """
import sys
sys.modules["torch"] = None
import hushsplat
import hushsplat.cli.train
try:
    hushsplat.train("x", "y")
except hushsplat.HushsplatError as error:
    print(error)
"""


def test_train_without_pytorch_says_how_to_install_it() -> None:
    run = subprocess.run([sys.executable, "-c", WITHOUT_TORCH], env=ENVIRONMENT, capture_output=True, text=True)
    assert run.stdout == "this needs PyTorch; install it with: pip install 'hushsplat[learn]'\n", run.stderr
