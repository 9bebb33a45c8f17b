"""The denoisers as a user runs them: in pictures and videos, their views, side by side, and timed."""

import json
from pathlib import Path

import av
import numpy as np
import pytest
from command import Run
from PIL import Image

import hushsplat
from hushsplat.cli.main import main
from hushsplat.io.weights import write_weights
from hushsplat.methods import DENOISERS, LEARNED, METHODS, denoiser
from hushsplat.spec.views import SHOWN
from hushsplat.spec.weights import SHAPES, DenoiserWeights
from hushsplat.types.gaussians import Gaussians


@pytest.fixture(scope="module")
def weights() -> DenoiserWeights:
    tensors = {name: np.zeros(shape, dtype=np.float32) for name, shape in SHAPES.items()}
    tensors["accumulated.head.bias"][:] = 3.0
    tensors["denoised.head.bias"][:] = 2.0
    tensors["gate.gamma"] = np.array(10.0, dtype=np.float32)
    return DenoiserWeights(tensors)


@pytest.fixture(scope="module")
def file(weights: DenoiserWeights, tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("weights") / "w.safetensors"
    write_weights(weights, path)
    return path


@pytest.fixture(scope="module")
def with_payload(ply: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    scene = hushsplat.load(ply)
    arrays = {name: getattr(scene, name) for name in ("means", "scales", "rotations", "opacities", "sh")}
    payload = np.random.default_rng(1).normal(0, 3, (len(scene), 10)).astype(np.float32)
    path = tmp_path_factory.mktemp("payload") / "trained.ply"
    hushsplat.save(Gaussians(**arrays, payload=payload), path)
    return path


def test_a_still_picture_is_what_many_frames_come_to(
    run: Run, tmp_path: Path, file: Path, weights: DenoiserWeights
) -> None:
    words = ("--method", "temporal-zero-shot", "--weights", file, "--frames", 5, "--width", 60, "--seed", 2)
    result = run("render", "synth:2k", "-o", "a.npy", *words)
    assert (result.returncode, result.stderr) == (0, "")
    scene, camera = hushsplat.room_and_garden(2000), hushsplat.home_camera(60, 40)
    it = denoiser("temporal-zero-shot", weights=weights)
    *_, last = hushsplat.play(scene, [camera] * 5, it, noise=hushsplat.Noise(seed=2))
    np.testing.assert_array_equal(np.load(tmp_path / "a.npy"), last.color)


def test_a_track_carries_the_state_and_hush_falls_back_aloud(
    run: Run, tmp_path: Path, ply: Path, with_payload: Path, track: Path, file: Path, weights: DenoiserWeights
) -> None:
    words = ("--method", "temporal", "--weights", file, "--track", track)
    for path, name, said in (
        (ply, "temporal-zero-shot", "hushsplat: cloud.ply has no payload for temporal; temporal-zero-shot draws it.\n"),
        (with_payload, "temporal", ""),
    ):
        result = run("render", path, "-o", "f%d.npy", *words, "--force")
        assert (result.returncode, result.stderr) == (0, said)
        played = hushsplat.play(hushsplat.load(path), hushsplat.load_track(track), denoiser(name, weights=weights))
        for index, frame in enumerate(played):
            np.testing.assert_array_equal(np.load(tmp_path / f"f{index}.npy"), frame.color)
        assert index == 3


def test_settings_reach_the_denoiser(run: Run, tmp_path: Path, track: Path, ply: Path, file: Path) -> None:
    words = ("--weights", file, "--track", track, "--method", "temporal-zero-shot")
    switches = ("--denoiser.trust", "one", "--denoiser.no-spatial-filter", "--denoiser.no-stabilise")
    numbers = ("--denoiser.gate", 0, "--denoiser.tau-frames", 3)
    assert run("render", ply, "-o", "f%d.npy", *words, *switches, *numbers).returncode == 0
    settings = hushsplat.DenoiserSettings(trust="one", spatial_filter=False, stabilise=False, gate=0, tau_frames=3.0)
    it = hushsplat.denoiser("temporal-zero-shot", weights=file, settings=settings)
    *_, last = hushsplat.play(hushsplat.load(ply), hushsplat.load_track(track), it)
    np.testing.assert_array_equal(np.load(tmp_path / "f3.npy"), last.color)


@pytest.mark.parametrize("show", SHOWN)
def test_show(
    show: str,
    ply: Path,
    file: Path,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    monkeypatch.chdir(tmp_path)
    words = (
        "--method",
        "temporal-zero-shot",
        "--show",
        show,
        "--background",
        "white",
        "--orbit",
        "--seconds",
        "0.3",
        "--fps",
        "10",
    )
    assert main(["render", str(ply), "-o", "%d.png", "--width", "200", "--weights", str(file), *words]) == 0
    assert capsys.readouterr().err == ""
    pixels = np.asarray(Image.open(tmp_path / "2.png"))
    assert pixels.shape == (133, 200, 3)
    corner_is_black = (pixels[-50:, :4] == 0).all()  # the margin beside the scale
    assert corner_is_black == (show not in ("accumulated", "smoothed", "denoised", "filtered", "composite"))


def test_compare_draws_all_methods_beside_each_other(
    run: Run, tmp_path: Path, track: Path, ply: Path, file: Path
) -> None:
    compare = ("--compare", "raw,temporal-zero-shot,reference", "--weights", file)
    result = run("render", ply, "-o", "c.mp4", "--track", track, *compare)
    assert (result.returncode, result.stderr) == (0, "")
    with av.open(str(tmp_path / "c.mp4")) as video:
        assert [frame.to_ndarray(format="rgb24").shape for frame in video.decode(video=0)] == [(16, 72, 3)] * 4
    assert run("render", ply, "-o", "c.npy", *compare, "--width", 90, "--height", 60, "--frames", 2).returncode == 0
    picture = np.load(tmp_path / "c.npy")
    assert picture.shape == (60, 270, 3)
    reference = hushsplat.render(hushsplat.load(ply), hushsplat.frame_scene(hushsplat.load(ply), 90, 60)).color
    below_labels = picture[30:, 180:]
    assert np.abs(below_labels - reference[30:].clip(0, 1)).max() < 0.01


def test_help_lists_methods_views_and_switches(run: Run) -> None:
    text = "".join(run("render", "--help-all").stdout.split())
    for name in (*METHODS, *SHOWN, "--denoiser.no-spatial-filter", "--denoiser.trust{learned,one,heuristic,constant}"):
        assert name in text


def test_bench_times_denoisers_beside_renderers(run: Run, with_payload: Path, file: Path) -> None:
    words = ("--sizes", "32x24", "--rounds", 1, "--cameras", 1, "--threads", 1, "--weights", file)
    result = run("bench", with_payload, "synth:2k", "--denoisers", "--json", *words)
    assert result.returncode == 0, result.stderr
    found = json.loads(result.stdout)
    rows = {(row["scene"], row["method"]): row for row in found["rows"]}
    for scene, names in (
        ("trained.ply", DENOISERS),
        ("synth:2k", [name for name in DENOISERS if name not in ("paper", "temporal")]),
    ):
        expected = {"raw", "reference", *names, *(f"raw+{name}" for name in names)}
        assert {method for of, method in rows if of == scene} == expected
    held = rows["trained.ply", "temporal"]["bytes_per_pixel"]
    assert held == rows["trained.ply", "raw+temporal"]["bytes_per_pixel"]
    assert 149 <= held <= 160
    assert rows["trained.ply", "raw"]["bytes_per_pixel"] == 0
    assert {"raw / reference", "raw+temporal / reference"} <= {ratio["name"] for ratio in found["ratios"]}
    result = run("bench", "synth:2k", "--methods", "temporal-zero-shot", *words)
    assert "temporal-zero-shot" in result.stdout and " 149 " in result.stdout


WRONG = {
    "--method raw --show gate": f"--show is for {', '.join(LEARNED)}, not for raw; leave it out.",
    "--denoiser.sigma 3": f"--denoiser.* is for {', '.join(LEARNED)}, not for reference; leave it out.",
    "--method exact --weights W": f"--weights is for {', '.join(LEARNED)}, not for exact; leave it out.",
    "--compare raw,exact --weights W": f"--weights is for {', '.join(LEARNED)}, not for raw; leave it out.",
    "--method temporal --weights nowhere": "nowhere: cannot be read: No such file or directory.",
    "--method temporal --weights W --denoiser.sigma -1": "sigma must be a number from 0 to 1e+06, got -1.0.",
    "--method temporal --weights W --denoiser.gate 3": "invalid choice '3' for --denoiser.gate; give one of",
    "--method temporal --weights W --show mood": "invalid choice 'mood' for --show; give one of",
    "--method temporal --weights W --frames 0": "--frames must be at least 1, got 0.",
    "--method raw --frames 3": "--frames is for denoisers, which see many; renderers draw one, leave it out.",
    "--method temporal --weights W --frames 3 --orbit": "--frames is for a still camera; a track has frames of its own",
    "--compare raw,blurry": "--compare takes of hush,",
    "--compare raw,temporal --weights W --show gate": "--show and --compare do not go together; leave one of them out.",
}


@pytest.mark.parametrize("words", WRONG)
def test_one_line_and_exit_code_2(
    words: str,
    ply: Path,
    file: Path,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    monkeypatch.chdir(tmp_path)
    given = [str(file) if word == "W" else word for word in words.split()]
    assert main(["render", str(ply), "-o", "out.png", *given]) == 2
    out, err = capsys.readouterr()
    assert out == ""
    assert err.startswith("hushsplat: ")
    assert err.count("\n") == 1
    assert WRONG[words] in err
    assert not list(tmp_path.iterdir())


def test_bench_of_a_scene_without_payload_is_zero_shot_and_says_so(
    ply: Path, file: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    words = ["--sizes", "32x24", "--rounds", "1", "--cameras", "1", "--threads", "1", "--weights", str(file), "--json"]
    assert main(["bench", str(ply), *words, "--methods", "temporal", "raw+temporal"]) == 0
    out, err = capsys.readouterr()
    assert [row["method"] for row in json.loads(out)["rows"]] == ["temporal-zero-shot", "raw+temporal-zero-shot"]
    assert err == "hushsplat: cloud.ply has no payload for temporal; temporal-zero-shot draws it.\n"


@pytest.mark.parametrize("method", METHODS)
def test_render_takes_every_method(
    method: str, ply: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    frames = ["--frames", "3"] if method in DENOISERS else []
    words = ["--method", method, "--width", "40", "--height", "30", *frames]
    assert main(["render", str(ply), "-o", "a.npy", *words]) == 0
    assert (capsys.readouterr().err != "") == (method in ("paper", "temporal"))
    scene = hushsplat.load(ply)
    camera = hushsplat.frame_scene(scene, 40, 30)
    expected = hushsplat.render(scene, camera, method, frames=3 if frames else None).color
    np.testing.assert_array_equal(np.load(tmp_path / "a.npy"), expected)
