"""A reproduction of two tiny captures end to end, its resumption, and the paper's numbers beside ours."""

import json
import re
import sys
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from hushsplat import jobs
from hushsplat.cli import reproduce as command
from hushsplat.cli.main import main
from hushsplat.evaluation.results import Results, read_results
from hushsplat.io.tracks import write_track
from hushsplat.reproduce import paper
from hushsplat.reproduce.run import Reproduction
from hushsplat.reproduce.tables import comparisons
from hushsplat.reproduce.training_jobs import SIZES, Size
from hushsplat.types.errors import EvaluationError
from hushsplat.types.paths import orbit

sys.path.insert(0, str(Path(__file__).parents[1] / "training"))
from made_capture import tiny_settings, write_capture

pytest.importorskip("torch", reason="needs PyTorch: pip install '.[dev,learn]'")


@pytest.fixture
def tiny(monkeypatch: pytest.MonkeyPatch) -> Size:
    size = Size(
        "seconds",
        tiny_settings(),
        transfer_steps=3,
        width=32,
        samples=4,
        every=2,
        frames=2,
        views=1,
        fps=30.0,
        rounds=1,
        figure_metrics=("psnr",),
    )
    monkeypatch.setitem(command.SIZES, "small", size)
    monkeypatch.setattr("hushsplat.evaluation.experiments.CONVERGENCE_FRAMES", (1, 4))
    return size


@pytest.mark.parametrize(
    ("content", "said"), [("{", "is not JSON"), ("[]", "holds a list of 0, expected"), ("[" * 100_000, "is not JSON")]
)
def test_damaged_folder_is_refused(tiny: Size, tmp_path: Path, content: str, said: str) -> None:
    begun = Reproduction(tmp_path / "data", tmp_path / "run", tiny, ("room",), "room")
    begun.check()
    begun.check()
    (tmp_path / "run" / "reproduce.json").write_text(content)
    with pytest.raises(EvaluationError, match=rf"reproduce\.json: {said}"):
        begun.check()


def test_a_folder_is_bound_to_its_training_and_not_to_its_evaluation(tiny: Size, tmp_path: Path) -> None:
    begun = Reproduction(tmp_path / "data", tmp_path / "run", tiny, ("room",), "room")
    begun.check()
    replace(begun, seeds=5, tracks=("orbit",), size=replace(tiny, every=7, samples=9)).check()
    for size in (replace(tiny, transfer_steps=4), replace(tiny, training=replace(tiny.training, width=48))):
        with pytest.raises(EvaluationError, match="was begun with another size; give the same"):
            replace(begun, size=size).check()


def test_end_to_end_and_again(
    tiny: Size, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    for views, name in ((10, "bonsai"), (12, "room")):
        write_capture(tmp_path / "data" / name, views)
    track = tmp_path / "ring.json"
    write_track(orbit(np.zeros(3), 2.2, turns=0.1, seconds=0.2, fps=30.0, width=32, height=24), track)
    (tmp_path / "data" / "notes").mkdir()  # no capture
    run = tmp_path / "run"
    words = ["reproduce", str(tmp_path / "data"), "-o", str(run), "--workers", "1", "--quiet", "--track", str(track)]
    words += ["--seeds", "2"]
    assert main([*words, "--dry-run"]) == 0
    listed = capsys.readouterr().out.splitlines()
    assert listed[:4] == [
        "to do train scenes/bonsai: 80 steps",
        "to do train scenes/room: 80 steps",
        "to do train denoisers/room: 8 steps",  # the paper's source scene
        "to do train denoisers/bonsai: 3 steps",
    ]
    assert len(listed) == 10 and not run.exists()

    done: list[str] = []
    run_job = jobs.run_job

    def killed_in_transfer(job: jobs.Job, *rest: object) -> dict:
        if getattr(job, "output", "") == "denoisers/bonsai":
            raise KeyboardInterrupt
        done.append(getattr(job, "output", type(job).__name__))
        return run_job(job, *rest)

    monkeypatch.setattr(jobs, "run_job", killed_in_transfer)
    assert main(words) == 130
    assert done == ["scenes/bonsai", "scenes/room", "denoisers/room"]
    monkeypatch.setattr(jobs, "run_job", lambda job, *rest: (done.append(type(job).__name__), run_job(job, *rest))[1])
    assert main(words) == 0
    assert done[3:5] == ["TrainJob", "TimeJob"] and done.count("TrainJob") == 1  # what was trained is not trained again
    begun = json.loads((run / "denoisers" / "bonsai" / "config.json").read_text())["source"]
    assert begun["start"] == str(run / "denoisers" / "room" / "denoiser.safetensors")
    assert begun["reference_scene"].endswith("/stage1.ply")  # the target is the vanilla scene, not the converted one
    assert begun["scene"] == str(run / "scenes" / "bonsai" / "stage3.ply")

    static = read_results(run / "static.json")
    assert {"2dgs", "exact", "mean", "st-taa", "paper", "paper-zero-shot"} <= {row["method"] for row in static.rows}
    zero_shot = read_results(run / "zero-shot.json")
    assert {row["scene"] for row in zero_shot.rows} == {"bonsai", "room", "room, network of bonsai"}
    psnr = {(row["scene"], row["method"]): row["psnr"] for row in zero_shot.rows}
    assert psnr["room", "paper-zero-shot"] != psnr["room, network of bonsai", "paper-zero-shot"]
    navigation = read_results(run / "navigation.json")
    assert {"ss-1", "ss-4", "hush", "paper", "svgf", "svgf-literal"} <= {row["method"] for row in navigation.rows}
    assert all(row["frames"] == 2 and "ssim" in row for row in navigation.rows)
    assert navigation.command.endswith(f"--size small --seeds 2 --track {track}")
    seeds = {row["method"]: row.get("seeds", 1) for row in navigation.rows}
    assert {name: seeds[name] for name in ("exact", "hush", "raw", "ss-1", "paper", "mean")} == {
        "exact": 1,
        "hush": 1,
        "raw": 2,
        "ss-1": 2,
        "paper": 2,
        "mean": 1,
    }
    in_navigation = {(row["scene"], row["method"]): row["psnr"] for row in navigation.rows}
    for scene in ("bonsai", "room"):  # the source's network on every scene is drawn once
        assert psnr[scene, "paper-zero-shot"] == in_navigation[scene, "paper-zero-shot"]
    assert all(row["experiment"] == "zero-shot" and row["seeds"] == 2 for row in zero_shot.rows)
    ablation = read_results(run / "ablation.json")
    assert all("psnr" in row and "ssim" not in row for row in ablation.rows)
    tables = (run / "tables.md").read_text()
    assert "| trust constant |" in tables and "| trust heuristic |" in tables
    for title in ("static", "navigation", "zero-shot", "ablation", "gate ablation", "after so many", "millisec", "gap"):
        assert title in tables
    assert "32.12" in tables  # of bonsai in the paper
    assert re.search(r"\| paper \| \d+\.\d\d ± \d+\.\d\d \|", tables)
    page = (run / "report.html").read_text()
    assert page.index("beside the paper") < page.index("32.12") < page.index("<footer>")

    done.clear()
    assert main(words) == 0
    assert done == []  # all is there
    assert main([*words, "--dry-run"]) == 0
    assert "to do" not in capsys.readouterr().out.splitlines()[-10:]
    assert main([*words, "--source", "bonsai"]) == 2
    assert "was begun with another source; give the same, or choose another folder" in capsys.readouterr().err
    assert main([*words, "--seeds", "0"]) == 2
    assert "--seeds must be at least 1, got 0" in capsys.readouterr().err
    assert main([*words, "--scenes", "garden"]) == 2
    assert "garden: is no scene of" in capsys.readouterr().err


def test_what_is_no_dataset_is_refused(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["reproduce", str(tmp_path), "-o", str(tmp_path / "run")]) == 2
    assert "none of its folders is a capture" in capsys.readouterr().err
    assert main(["reproduce", str(tmp_path / "nowhere"), "-o", str(tmp_path / "run")]) == 2
    assert "is no folder; give one with a capture in each" in capsys.readouterr().err


def test_the_papers_numbers_have_the_means_that_it_prints() -> None:
    which, all_of_them = paper.navigation_numbers(paper.MIPNERF360)
    assert which == "the same scenes"
    printed = {
        "mean": (32.96, 0.950, 0.080, 8.73),
        "raw": (18.26, 0.282, 0.671, 4.94),
        "ss-1": (17.86, 0.292, 0.659, 4.67),
        "ss-4": (22.54, 0.526, 0.540, 6.87),
        "st-taa": (21.48, 0.418, 0.615, 5.95),
        "svgf": (25.57, 0.785, 0.297, 6.29),
        "paper": (29.80, 0.867, 0.244, 7.57),
        "paper-zero-shot": (29.34, 0.873, 0.223, 7.38),
    }
    for name, values in printed.items():
        ours = all_of_them[name]
        got = [ours[metric] for metric in ("psnr", "ssim", "lpips", "cvvdp")]
        np.testing.assert_allclose(got[::3], values[::3], rtol=0, atol=0.008)  # of numbers that are rounded themselves
        np.testing.assert_allclose(got[1:3], values[1:3], rtol=0, atol=0.0011)
    for dataset, by_method in paper.STATIC_PSNR.items():
        for name, values in by_method.items():
            assert np.mean(values) == pytest.approx(paper.STATIC[dataset][name]["psnr"], abs=0.0101)
    means = {name: numbers["time_ms"] for name, numbers in paper.time_numbers([])[1].items()}
    expected = {"reference": 7.99, "raw": 2.71, "st-taa": 2.88, "svgf": 2.86, "paper": 3.75, "paper-zero-shot": 3.64}
    assert means == pytest.approx(expected, abs=0.006)


def test_tables_say_which_of_the_papers_numbers_they_show() -> None:
    row = {"experiment": "static", "scene": "bonsai", "track": "views", "frames": 102, "psnr": 30.0, "method": "paper"}
    found = [Results("static", "", [row, {**row, "method": "2dgs", "frames": 0, "psnr": 31.0}])]
    table = comparisons(found, ["bonsai"])[0]
    assert table.title == "static quality against photographs (paper: the same scenes)"
    assert [[cell.text for cell in line] for line in table.rows] == [
        ["2dgs", "31.00", "32.12"],
        ["paper (equal time)", "30.00", "30.20"],
    ]
    other = comparisons([replace(found[0], rows=[{**row, "scene": "hall"}])], ["hall"])[0]
    assert other.title.endswith("(paper: Mip-NeRF 360)") and other.rows[0][2].text == "27.94"


def test_sizes_are_the_papers_recipe() -> None:
    size = SIZES["paper"]
    assert (size.training.stage1.steps, size.training.stage2.steps, size.training.stage3.steps) == (
        30_000,
        1_000,
        3_000,
    )
    assert (size.only_stage4().stage4.steps, size.transfer().stage4.steps) == (15_000, 4_000)
    assert size.transfer().stage4.transfer and not size.only_stage4().stage4.transfer
    for each in SIZES.values():
        assert each.frames is None and each.fps == 300  # whole tracks, at the paper's pace
        assert each.training.stage4.trust_loss == 0  # a single photometric loss
        assert each.training.stage4.gate_warmup < each.training.stage4.steps
        assert each.surfels().stage4.steps == 0 and each.only_stage4().stage3.steps == 0
