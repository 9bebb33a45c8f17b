"""The experiments end to end on a tiny scene, and the arithmetic of their rows by hand."""

import json
import signal
import subprocess
import sys
from dataclasses import replace
from itertools import product
from pathlib import Path

import numpy as np
import pytest

import hushsplat
from hushsplat import jobs
from hushsplat.cli.evaluate import Evaluate, _for_scene, scene_names
from hushsplat.cli.main import main
from hushsplat.evaluation import draw_jobs
from hushsplat.evaluation.draw_jobs import StreamsJob, joined
from hushsplat.evaluation.experiments import (
    CONSTANTS,
    SIGMAS,
    FrameSelection,
    ablation_methods,
    best_of_searched,
    equal_time_frames,
    methods_of,
    static_tasks,
    still_rows,
    track_rows,
    track_shot,
    with_seeds,
)
from hushsplat.evaluation.plan import EvaluationOptions, Plan, Scores, Task
from hushsplat.evaluation.results import read_results
from hushsplat.evaluation.shots import Method, SceneSource, Shot
from hushsplat.io.weights import default_weights
from hushsplat.jobs import Processes, digest, stored
from hushsplat.scenes import scene_argument
from hushsplat.spec.settings import PAPER, DenoiserSettings
from hushsplat.synth import home_camera
from hushsplat.types.camera import Camera
from hushsplat.types.errors import EvaluationError
from hushsplat.types.options import Noise
from hushsplat.types.paths import orbit

KINDS = ("heuristic", "constant")
SCENE = SceneSource("synth:2k", None, "synth:2k")
SMALL = ("--width", "48", "--height", "32", "--fps", "30", "--every", "5", "--frames", "2", "--quiet")


def moving(frames: int = 8, every: int = 4) -> Shot:
    track = orbit(np.array([0, -1.0, 0]), 3.0, turns=0.02, seconds=frames / 30, fps=30.0, width=32, height=24)
    return track_shot(SCENE, "ring", track, FrameSelection(None, every))


def test_every_tenth_frame_counts_and_the_rest_is_history() -> None:
    track = orbit(np.zeros(3), 3.0, seconds=1.0, fps=30.0, width=32, height=24)
    shot = track_shot(SCENE, "ring", track, FrameSelection(300.0, 10))
    assert shot.scored == tuple(range(9, 291, 10))  # 29/30 s at 300 frames a second are 291 frames
    assert len(shot.cameras) == 290  # nothing is drawn after the last one that counts
    assert shot.fps == pytest.approx(30.0)
    assert track_shot(SCENE, "ring", track, FrameSelection(None, 10, 2)).scored == (9, 19)
    assert track_shot(SCENE, "ring", track, FrameSelection(None, 1)).scored == tuple(range(30))
    by_rate = track_shot(SCENE, "ring", track, FrameSelection(300.0))
    assert by_rate.scored == shot.scored  # 30 frames a second if --every is not given
    assert track_shot(SCENE, "ring", track, FrameSelection(None)).scored == tuple(range(30))
    with pytest.raises(EvaluationError, match="ring: has 30 frames, so no 31th one; lower --every or raise --fps"):
        track_shot(SCENE, "ring", track, FrameSelection(None, 31))
    with pytest.raises(EvaluationError, match="--every and --frames must be at least 1, got 0 and None"):
        FrameSelection(None, 0)


def test_track_rows_are_means_over_frames() -> None:
    shot = moving()
    task = Task(shot, Method("raw", "raw"), (3, 7))
    scores = [Scores(task, {"psnr": [20.0, 30.0], "flicker": [None, 4.0]}, {"cvvdp": 7.5})]
    rows, series = track_rows("navigation", scores)
    head = {"scene": "synth:2k", "track": "ring", "method": "raw"}
    assert rows == [{"experiment": "navigation", **head, "frames": 2, "psnr": 25.0, "flicker": 4.0, "cvvdp": 7.5}]
    assert series == [{**head, "frame": [3, 7], "psnr": [20.0, 30.0], "flicker": [None, 4.0]}]


def test_still_rows_are_means_over_views() -> None:
    method, reference = Method("temporal", "temporal", DenoiserSettings()), Method("reference", "reference")
    camera = moving().cameras[0]
    shots = [Shot(SCENE, name, (camera,) * 128, (127,)) for name in "ab"]
    tasks = static_tasks(shots, [method, reference])
    assert [task.frames for task in tasks] == [(15, 127), (0,)] * 2
    tasks = static_tasks(shots, [method, reference], equal_time_frames({"st-taa": 2.88, "temporal": 3.75}))
    assert [task.frames for task in tasks] == [(15, 97, 127), (0,)] * 2  # the paper's times, the paper's 98
    assert equal_time_frames({"st-taa": 4.0, "paper": 3.0}) == {"paper": 128}
    values = [[20.0, 26.0, 27.0], [31.0], [22.0, 28.0, 29.0], [33.0]]
    rows = still_rows("static", [Scores(t, {"psnr": v}, {}) for t, v in zip(tasks, values, strict=True)])
    assert [(row["method"], row["frames"], row["views"], row["psnr"]) for row in rows] == [
        ("temporal", 16, 2, 21.0),
        ("temporal", 98, 2, 27.0),
        ("temporal", 128, 2, 28.0),
        ("reference", 0, 2, 32.0),
    ]


def test_of_the_searched_trusts_the_best_over_all_tracks_stay() -> None:
    labels = [method.label for method in ablation_methods(scene_argument("synth:2k"), [])]
    heuristic, constant = ([each for each in labels if each.startswith(f"trust {name}, ")] for name in KINDS)
    assert heuristic[0] == "trust heuristic, σ = 0.05" and "trust constant, t = 0.9" in constant
    assert (len(heuristic), len(constant)) == (len(SIGMAS), len(CONSTANTS))
    fewer = [method.label for method in ablation_methods(scene_argument("synth:2k"), [], "paper", (2.0,), ())]
    assert [each for each in fewer if each.startswith("trust ")] == ["trust 1", "trust heuristic, σ = 2"]
    rows = [{"method": "full", "psnr": 30.0}]
    for first in (25.0, 22.0):  # the first is best on one track, the fourth on both together
        rows += [{"method": label, "psnr": {0: first, 3: 24.0}.get(n, 20.0)} for n, label in enumerate(heuristic)]
        rows += [{"method": label, "psnr": 21.0 + (n == 2)} for n, label in enumerate(constant)]
    notes: list[str] = []
    kept, _ = best_of_searched(rows, [], notes)
    assert [row["method"] for row in kept] == ["full", *(heuristic[3], constant[2]) * 2]
    assert "σ = 0.5: 24.00" in notes[0] and "best of 10" in notes[0] and "t = 0.7: 22.00" in notes[1]


def test_a_scene_without_payload_is_drawn_zero_shot_and_a_note_says_so() -> None:
    scene, notes = scene_argument("synth:2k"), list[str]()
    found = methods_of(("mean", "temporal", "temporal-zero-shot"), scene, 64, notes)
    assert [(method.name, method.samples) for method in found] == [("mean", 64), ("temporal-zero-shot", 0)]
    assert notes == ["synth:2k has no payload for temporal; temporal-zero-shot draws it."]
    with pytest.raises(EvaluationError, match=r"--methods takes of hush, .*, got 'blurry'"):
        methods_of(("blurry",), scene, 64, [])
    (paper,) = methods_of(("paper-zero-shot",), scene, 64, [])
    assert paper.settings == replace(PAPER, zero_shot=True)
    payload = np.zeros((len(scene.gaussians), 10), dtype=np.float32)
    trained = replace(scene, gaussians=replace(scene.gaussians, payload=payload))
    names = [method.name for method in methods_of(("temporal", "temporal-zero-shot"), trained, 64, [])]
    assert names == ["temporal", "temporal-zero-shot"]
    assert {method.name for method in ablation_methods(trained, notes)} == {"temporal"}
    assert {method.name for method in ablation_methods(scene, notes)} == {"temporal-zero-shot"}


def test_the_mean_of_many_samples_comes_near_exact_and_frames_are_independent(tmp_path: Path) -> None:
    shot = moving()
    methods = [Method("mean", "mean", samples=256), Method("raw", "raw"), Method("exact", "exact")]
    plan = Plan(tuple(Task(shot, method, shot.scored) for method in methods), EvaluationOptions(("psnr",)))
    mean, raw, exact = (found.values["psnr"] for found in plan.run(tmp_path, Processes(1)))
    assert np.mean(raw) + 3 < np.mean(mean) < np.mean(exact) + 0.5
    alone = Plan((Task(shot, methods[1], shot.scored[1:]),), EvaluationOptions(("psnr",)))
    assert alone.run(tmp_path / "alone", Processes(1))[0].values["psnr"] == raw[1:]


def test_samples_in_the_order_of_centres_come_near_the_reference(tmp_path: Path) -> None:
    shot = moving()
    by_center = methods_of(("ss-1", "ss-4"), scene_argument("synth:2k"), 0, [])
    assert [(method.label, method.samples, method.order) for method in by_center] == [
        ("ss-1", 1, "center"),
        ("ss-4", 4, "center"),
    ]
    methods = [*by_center, replace(by_center[1], label="many", samples=1024), Method("pixel", "mean", samples=1024)]
    plan = Plan(tuple(Task(shot, method, shot.scored) for method in methods), EvaluationOptions(("psnr",)))
    one, four, many, by_pixel = (np.mean(found.values["psnr"]) for found in plan.run(tmp_path, Processes(1)))
    assert four - one == pytest.approx(6.0, abs=0.7)  # a quarter of the variance
    assert many > by_pixel + 3  # its limit is the reference itself


def test_the_target_may_be_drawn_of_another_scene(tmp_path: Path) -> None:
    shot = moving()
    other = replace(shot, target=SceneSource("synth:1k", None, "synth:1k"))
    exact = Method("reference", "reference")
    same = Plan((Task(shot, exact, shot.scored),), EvaluationOptions(("psnr",))).run(tmp_path / "a", Processes(1))
    else_ = Plan((Task(other, exact, shot.scored),), EvaluationOptions(("psnr",))).run(tmp_path / "b", Processes(1))
    assert same[0].values["psnr"] == [100.0, 100.0]
    assert all(value is not None and value < 40 for value in else_[0].values["psnr"])


def test_ref_n_is_the_mean_of_blocks_with_noise_of_their_own() -> None:
    gaussians, camera = scene_argument("synth:2k").gaussians, moving().cameras[0]
    on = hushsplat.engine("cpu")
    drawing = draw_jobs.Drawing(on, on.upload(gaussians), hushsplat.RenderOptions())
    blocks = [(64, 0), (64, 1), (22, 2)]  # samples, frame
    drawn = [count * hushsplat.render(gaussians, camera, "raw", noise=Noise(count, 7, k)).color for count, k in blocks]
    np.testing.assert_allclose(draw_jobs.mean_of(drawing, camera, 150, 7), sum(drawn) / 150, atol=1e-5)
    shot = Shot(SCENE, "view", (camera,) * 2, (0, 1))
    job = draw_jobs.DrawJob(shot, Method("mean", "mean", samples=4), (0, 1), ("psnr",), Noise())
    (_, first), (_, second) = job._independent(drawing)
    assert np.abs(first - second).max() > 0.01


def test_a_still_camera_shows_the_same_flicker_as_its_noise(tmp_path: Path) -> None:
    camera = Camera.look_at((0, -1, -3), (0, -1, 0), width=32, height=24)
    shot = Shot(SCENE, "view", (camera,) * 16, (15,))
    tasks = tuple(Task(shot, Method(name, name), (15,)) for name in ("raw", "mean", "reference"))
    raw, mean, reference = Plan(tasks, EvaluationOptions(("psnr", "flicker"))).run(tmp_path, Processes(1))
    assert raw.values["flicker"][0] > 8 * mean.values["flicker"][0] > 0
    assert reference.values == {"psnr": [100.0], "flicker": [0.0]}


def test_weights_of_a_scene_are_for_methods_with_payload_and_others_for_zero_shot() -> None:
    own, foreign = default_weights("temporal"), default_weights("temporal")
    names = ("paper", "temporal", "paper-zero-shot", "temporal-zero-shot", "raw")
    methods = [Method(name, name, DenoiserSettings()) for name in names]
    other = replace(moving(), scene=replace(SCENE, name="other"))
    tasks = tuple(Task(shot, method, (3,)) for shot in (moving(), other) for method in methods)
    options = EvaluationOptions(("psnr",), weights={SCENE.name: own}, zero_shot_weights={SCENE.name: foreign})
    given = [jobs[0].weights for jobs in Plan(tasks, options).draws]
    assert all(a is b for a, b in zip(given, [own, own, foreign, foreign, *[None] * 6], strict=True))


def test_means_over_seeds_have_a_confidence_interval(tmp_path: Path) -> None:
    shot = moving()
    methods = with_seeds([Method("raw", "raw"), Method("exact", "exact")], 3)
    assert [(method.name, method.seed) for method in methods] == [("raw", 0), ("raw", 1), ("raw", 2), ("exact", 0)]
    plan = Plan(tuple(Task(shot, method, shot.scored) for method in methods), EvaluationOptions(("psnr",)))
    scores = plan.run(tmp_path, Processes(1))
    by_seed = [np.mean(one.values["psnr"]) for one in scores[:3]]
    assert len(set(by_seed)) == 3
    (raw, exact), (series, _) = track_rows("navigation", scores)
    assert raw["psnr"] == pytest.approx(np.mean(by_seed)) and raw["seeds"] == 3
    assert raw["psnr_ci95"] == pytest.approx(4.303 * np.std(by_seed, ddof=1) / np.sqrt(3))
    assert series["psnr"][0] == pytest.approx(np.mean([one.values["psnr"][0] for one in scores[:3]]))
    assert "seeds" not in exact and "psnr_ci95" not in exact
    still = [
        Scores(replace(one.task, frames=(0,)), {"psnr": [value]}, {})
        for one, value in zip(scores, (1.0, 2.0, 6.0, 9.0), strict=True)
    ]
    assert [(row["psnr"], row.get("psnr_ci95")) for row in still_rows("static", still)] == [
        (3.0, pytest.approx(4.303 * np.sqrt(7 / 3))),
        (9.0, None),
    ]


def test_denoisers_that_share_noisy_frames_have_the_values_of_each_alone(tmp_path: Path) -> None:
    shot, names = moving(), ("raw", "st-taa", "svgf", "paper-zero-shot", "hush")
    methods = with_seeds(methods_of(names, scene_argument(SCENE.text), 0, []), 2)
    options = EvaluationOptions(("psnr", "tpsnr"))
    tasks = [Task(shot, method, shot.scored) for method in methods]
    together = [one.values for one in Plan(tuple(tasks), options).run(tmp_path / "together", Processes(1))]
    alone = [one.values for task in tasks for one in Plan((task,), options).run(tmp_path / "alone", Processes(1))]
    assert together == alone
    for path in (tmp_path / "alone" / "frames").rglob("*.png"):
        assert path.read_bytes() == (tmp_path / "together" / path.relative_to(tmp_path / "alone")).read_bytes()

    jobs = [job for jobs in Plan(tuple(tasks), options).draws for job in jobs]
    bundles = [[part.method.name for part in job.parts] for job in joined(jobs) if isinstance(job, StreamsJob)]
    assert bundles == [["st-taa", "svgf", "paper-zero-shot"]] * 2  # one for each noise; raw and hush take no stream
    more = Plan((*tasks, Task(shot, Method("taa", "taa"), shot.scored)), options)
    left = [job for jobs in more.draws for job in jobs if stored(job, tmp_path / "together") is None]
    assert [job.method.name for job in left] == ["taa"]  # what was drawn together is known one by one


def test_dear_metrics_are_of_the_first_noises_only() -> None:
    shot = moving()
    tasks = tuple(Task(shot, method, shot.scored) for method in with_seeds([Method("raw", "raw")], 3))
    options = EvaluationOptions(("psnr", "cvvdp"), scored_seeds=1)
    assert [len(jobs) for jobs in Plan(tasks, options).scores] == [1, 0, 0]
    assert [len(jobs) for jobs in Plan(tasks, replace(options, scored_seeds=None)).scores] == [1, 1, 1]
    values = {"psnr": [20.0] * len(shot.scored), "lpips": [0.5] * len(shot.scored)}
    first = Scores(tasks[0], values, {"cvvdp": 7.0})
    others = [Scores(task, {"psnr": [21.0] * len(shot.scored)}, {}) for task in tasks[1:]]
    (row,), (series,) = track_rows("navigation", [first, *others])
    assert (row["cvvdp"], row["lpips"], "cvvdp_ci95" in row, "lpips_ci95" in row) == (7.0, 0.5, False, False)
    assert row["psnr_ci95"] > 0 and series["lpips"] == [0.5] * len(shot.scored)


def test_scenes_of_one_name_are_named_by_their_folders() -> None:
    streamed = [f"data/{name}/lod-meta.json" for name in ("flowers", "wall")]
    assert scene_names([*streamed, "synth:1k", "demo:"]) == ["flowers", "wall", "synth:1k", "demo"]
    assert scene_names(["runs/a/stage4.ply", "runs/b/stage4.ply", "c.ply"]) == ["a", "b", "c.ply"]
    assert scene_names(["runs/a/one.ply", "old/a/one.ply", "runs/a/two.ply"])[2] == "two.ply"
    assert len(set(scene_names(["runs/a/one.ply", "old/a/one.ply"]))) == 2
    with pytest.raises(EvaluationError, match=r"garden\.ply: is given twice; give each scene once"):
        scene_names(["garden.ply", "garden.ply"])


def test_jobs_are_named_by_all_that_matters() -> None:
    plan = Plan((Task(moving(), Method("raw", "raw"), (3,)),), EvaluationOptions())
    job = plan.draws[0][0]
    assert digest(job) == digest(Plan((Task(moving(), Method("raw", "raw"), (3,)),), EvaluationOptions()).draws[0][0])
    other_scene = replace(job.shot, scene=replace(SCENE, stamp="newer"))
    others = [
        replace(job, noise=Noise(seed=1)),
        replace(job, frames=(7,)),
        replace(job, metrics=("psnr",)),
        replace(job, shot=other_scene),
        replace(job, shot=replace(job.shot, cameras=job.shot.cameras[::-1])),
    ]
    assert len({digest(one) for one in (job, *others)}) == 6


@pytest.mark.parametrize(
    ("experiment", "tracks"), [("navigation", ("walk", "turn")), ("ablation", ("head",)), ("zero-shot", ("dolly",))]
)
def test_tracks_end_to_end(
    experiment: str, tracks: tuple[str, ...], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    output = tmp_path / "out.json"
    scenes = ("synth:1k", "synth:2k") if experiment == "navigation" else ("synth:1k",)
    words = ["evaluate", experiment, *scenes, "--track", *tracks, "--ref-samples", "4", *SMALL]
    assert main([*words, "-o", str(output), "--workers", "1", "--metrics", "psnr", "ssim", "flicker"]) == 0
    found = read_results(output)
    if experiment == "navigation":
        assert {"hush", "paper-zero-shot"} <= {row["method"] for row in found.rows}
    assert {(row["scene"], row["track"]) for row in found.rows} == set(product(scenes, tracks))
    assert all(row["frames"] == 2 and 0 < row["psnr"] <= 100 for row in found.rows)
    assert found.command.startswith(f"hushsplat evaluate {experiment} {' '.join(scenes)} --output")
    assert found.missing == {} and found.versions["hushsplat"] == hushsplat.__version__
    assert {asset["kind"] for asset in found.assets} == {"frame", "expected", "view", "video"}
    assert all(found.asset_path(asset).is_file() for asset in found.assets)
    views = {asset["name"] for asset in found.assets if asset["kind"] == "view"}
    assert {"trust_s", "accumulated-4", "denoised-4", "composite-4"} <= views and "accumulated-64" not in views
    assert not (tmp_path / "out.files" / "frames").exists()
    out, _ = capsys.readouterr()
    assert f"mean over {len(scenes) * len(tracks)} track" in out and "PSNR" in out and "hushsplat report" in out


@pytest.mark.parametrize("experiment", ["static", "convergence"])
def test_views_end_to_end(
    experiment: str, tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    words = ["evaluate", experiment, "synth:2k", "--views", "2", "--methods", "st-taa", "temporal-zero-shot"]
    size = ("--width", "32", "--height", "24", "--quiet", "--workers", "1", "--metrics", "psnr", "flicker")
    assert main([*words, *size]) == 0
    found = read_results(tmp_path / "results.json")
    counts = {(row["method"], row["frames"]) for row in found.rows}
    if experiment == "static":
        assert counts == {("st-taa", 128), ("temporal-zero-shot", 16), ("temporal-zero-shot", 128)}
    else:
        assert len(counts) == 2 * 14
    psnr = {(row["method"], row["frames"]): row["psnr"] for row in found.rows}
    assert psnr["temporal-zero-shot", 128] > psnr["temporal-zero-shot", 16]
    assert all(row["views"] == 2 for row in found.rows)


def test_several_frame_rates_and_seeds_in_one_run(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    output = tmp_path / "out.json"
    words = ["evaluate", "navigation", "synth:1k", "--methods", "raw", "hush", "--fps", "10", "30", "--seeds", "2"]
    size = ("--width", "48", "--height", "32", "--frames", "3", "--metrics", "psnr", "gradient_energy", "tpsnr")
    assert main([*words, *size, "-o", str(output), "--workers", "1", "--quiet"]) == 0
    found = read_results(output)
    assert [(row["method"], row["track"], row["fps"], row.get("seeds")) for row in found.rows] == [
        (name, f"walk, {fps} fps", fps, seeds) for fps in (10, 30) for name, seeds in (("raw", 2), ("hush", None))
    ]  # hush takes no noise
    assert all(row["tpsnr"] > 0 and row["gradient_energy"] > 0 for row in found.rows)
    assert all(row["psnr_ci95"] > 0 for row in found.rows[::2])
    assert found.rows[1]["psnr"] > found.rows[0]["psnr"] + 10  # hush
    assert "navigation at 30 frames a second: mean over 1 track" in capsys.readouterr().out


def rows_of(path: Path) -> list:
    return [json.loads(path.read_text())[key] for key in ("rows", "series")]


def test_results_do_not_depend_on_the_number_of_workers(tmp_path: Path) -> None:
    words = ["evaluate", "navigation", "synth:2k", "--methods", "raw", "svgf", "temporal-zero-shot", *SMALL]
    for workers in ("1", "2"):
        assert main([*words, "-o", str(tmp_path / f"{workers}.json"), "--workers", workers]) == 0
    assert rows_of(tmp_path / "1.json") == rows_of(tmp_path / "2.json")


KILLED = """
import os, signal, sys
from hushsplat.cli.main import main
from hushsplat import jobs

begun, run = [], jobs.run_job

def run_job(*job):
    begun.append(job)
    if len(begun) == 4:
        os.kill(os.getpid(), signal.SIGKILL)
    return run(*job)

jobs.run_job = run_job
main(sys.argv[1:])
"""


def test_a_killed_run_goes_on_where_it_stopped(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    words = ["evaluate", "navigation", "synth:2k", "--methods", "raw", "exact", "st-taa", "svgf", "temporal-zero-shot"]
    words += [*SMALL[:-3], "--frames", "3", "--quiet", "--workers", "1"]
    killed, whole = tmp_path / "killed.json", tmp_path / "whole.json"
    process = subprocess.run([sys.executable, "-c", KILLED, *words, "-o", str(killed)], timeout=120, check=False)
    assert process.returncode == -signal.SIGKILL
    parts = tmp_path / "killed.files" / "parts"
    kept = len(list(parts.glob("*.json")))
    assert kept == 3 and not killed.exists()

    done: list[str] = []
    run = jobs.run_job
    monkeypatch.setattr(jobs, "run_job", lambda job, *rest: (done.append(digest(job)), run(job, *rest))[1])
    assert main([*words, "-o", str(killed)]) == 0
    again = len(done)
    assert main([*words, "-o", str(whole)]) == 0
    assert again == len(done) - again - kept
    assert rows_of(killed) == rows_of(whole)
    assert not parts.exists()


def test_a_frame_that_is_gone_is_drawn_again(tmp_path: Path) -> None:
    shot = moving()
    plan = Plan((Task(shot, Method("raw", "raw"), shot.scored),), EvaluationOptions(("psnr",)))
    plan.run(tmp_path, Processes(1))
    picture = plan.draws[0][0].files(tmp_path)[0]
    picture.unlink()
    plan.run(tmp_path, Processes(1))
    assert picture.is_file()
    next((tmp_path / "parts").glob("*.json")).write_text("{")  # half a file is none
    plan.run(tmp_path, Processes(1))


def test_timing_end_to_end(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    output = tmp_path / "times.json"
    words = ["evaluate", "timing", "synth:1k", "--width", "32", "--height", "24", "--rounds", "1", "--cameras", "2"]
    assert main([*words, "-o", str(output), "--quiet"]) == 0
    found = read_results(output)
    times = {row["method"]: row for row in found.rows}
    assert list(times)[:4] == ["reference", "raw", "st-taa", "svgf"]
    assert times["raw"]["speedup"] == pytest.approx(times["reference"]["time_ms"] / times["raw"]["time_ms"])
    assert "temporal-zero-shot: spatial filter" in times and times["raw"]["frames"] == 2
    out, _ = capsys.readouterr()
    assert "milliseconds per frame" in out and "the denoiser's parts" in out


def test_what_should_be_seen_is_the_same_kept_or_drawn_again(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    shot = moving()
    plan = Plan((Task(shot, Method("svgf", "svgf"), shot.scored),), EvaluationOptions())
    kept = plan.run(tmp_path / "kept", Processes(1))[0].values
    assert len(list((tmp_path / "kept").rglob("expected/*.npy"))) == 4  # two frames that count and two before them
    monkeypatch.setattr(draw_jobs, "MOST_STORED_BYTES", 0)
    assert plan.run(tmp_path / "drawn", Processes(1))[0].values == kept
    assert not list((tmp_path / "drawn").rglob("*.npy"))


def test_what_was_kept_is_not_done_again_for_one_method_more(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    words = ["evaluate", "navigation", "synth:1k", *SMALL, "--workers", "1", "--keep", "-o", str(tmp_path / "r.json")]
    words += ["--metrics", "psnr", "--methods", "raw"]
    assert main(words) == 0
    done: list[str] = []
    run = jobs.run_job
    monkeypatch.setattr(jobs, "run_job", lambda job, *rest: (done.append(job.method.name), run(job, *rest))[1])
    assert main([*words, "svgf"]) == 0
    assert done == ["svgf"]
    assert [row["method"] for row in read_results(tmp_path / "r.json").rows] == ["raw", "svgf"]


ORPHANS = """
import multiprocessing, os, signal, time
from concurrent.futures import ProcessPoolExecutor
from hushsplat.jobs import _live_with_parent

if __name__ == "__main__":
    context = multiprocessing.get_context("spawn")
    executor = ProcessPoolExecutor(1, mp_context=context, initializer=_live_with_parent)
    print(executor.submit(os.getpid).result(), flush=True)
    executor.submit(time.sleep, 600)
    time.sleep(0.2)
    os.kill(os.getpid(), signal.SIGKILL)
"""


def test_no_worker_outlives_a_run_that_was_killed(tmp_path: Path) -> None:
    script = tmp_path / "orphans.py"
    script.write_text(ORPHANS)
    killed = subprocess.run([sys.executable, str(script)], stdout=subprocess.PIPE, timeout=120, check=False)
    assert killed.returncode == -signal.SIGKILL
    assert int(killed.stdout) > 0  # the pipe's end came only when the worker, which holds it too, had ended


def test_a_track_of_one_scene_only_and_one_moved_to_the_scenes_own_camera() -> None:
    command = Evaluate("navigation", ("synth:1k",), track=("synth:1k=a.json", "other=b.json", "walk"))
    assert list(_for_scene(command.track, "synth:1k")) == ["a.json", "walk"]
    assert list(_for_scene(command.track, "other.ply")) == ["b.json", "walk"]
    ring = orbit(np.array([5.0, 0, 5.0]), 2.0, turns=0.1, seconds=0.5, fps=30.0)
    moved = command._anchored(ring, scene_argument("synth:1k"), 0.5)
    places, before = moved.world_from_camera[:, :3, 3], ring.world_from_camera[:, :3, 3]
    assert places[0] == pytest.approx(home_camera().position)
    assert np.linalg.norm(places[-1] - places[0]) == pytest.approx(0.5 * np.linalg.norm(before[-1] - before[0]))
