"""Every command end to end, as a user runs it: in a process of its own."""

import json
import re
import subprocess
import sys
from dataclasses import replace
from pathlib import Path

import av
import numpy as np
import pytest
from command import ENVIRONMENT, Run
from PIL import Image

import hushsplat
from hushsplat.cli.main import main
from hushsplat.engines.cpu.machine import instruction_set
from hushsplat.home import orbit_scene
from hushsplat.types import summary


def test_version_names_the_instruction_set(run: Run) -> None:
    result = run("--version")
    assert result.returncode == 0
    assert result.stdout == f"hushsplat {hushsplat.__version__} ({instruction_set()})\n"


def test_help_teaches(run: Run) -> None:
    for words in ((), ("--help",)):
        result = run(*words)
        assert result.returncode == 0
        for command in ("info", "convert", "render", "bench"):
            assert command in result.stdout
        assert "hushsplat render synth:500k -o room.png" in result.stdout


@pytest.mark.parametrize("command", ["info", "convert", "render", "bench"])
def test_help_of_a_command_has_examples_and_explains_its_options(run: Run, command: str) -> None:
    result = run(command, "--help")
    assert result.returncode == 0
    assert result.stdout.count(f"hushsplat {command} ") >= 4
    assert "{None}" not in result.stdout
    if command == "render":
        for word in ("--method {hush,", "--sampler {independent,stratified}", "world units"):
            assert word in result.stdout


def test_info_of_a_scene_as_table_and_as_json(run: Run, ply: Path) -> None:
    result = run("info", ply)
    assert result.returncode == 0, result.stderr
    for word in ("PLY, 3DGS", "300", "ellipsoids", "-y (a guess)", "50 %"):
        assert word in result.stdout
    found = json.loads(run("info", ply, "--json").stdout)
    assert (found["gaussians"], found["kind"], found["sh_degree"]) == (300, "ellipsoids", 2)
    assert found["bytes_on_disk"] == ply.stat().st_size
    assert found["levels_of_detail"] is None


def test_info_guesses_up_once(ply: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    guessed: list[object] = []
    monkeypatch.setattr(summary, "guess_up", lambda gaussians: guessed.append(gaussians) or "z")
    assert main(["info", str(ply), "--json"]) == 0
    assert json.loads(capsys.readouterr().out)["up"] == "z" and len(guessed) == 1


def test_commands_do_not_wait_for_the_server_to_be_imported() -> None:
    code = "import sys, hushsplat.cli.main; print('aiohttp' in sys.modules)"
    assert subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stdout == "False\n"


def test_info_of_our_own_scene(run: Run) -> None:
    found = json.loads(run("info", "synth:2k", "--json").stdout)
    assert (found["format"], found["gaussians"], found["kind"]) == ("made by code", 2000, "surfels")


def test_info_of_a_track_and_of_a_capture(run: Run, track: Path, capture: Path) -> None:
    found = json.loads(run("info", track, "--json").stdout)
    assert (found["frames"], found["size"], found["frames_per_second"]) == (4, "24×16", 10)
    for path in (capture, capture.parent):
        found = json.loads(run("info", path, "--json").stdout)
        assert (found["views"], found["sizes"], found["photographs"]) == (3, ["40×30"], 0)
    assert "40×30" in run("info", capture).stdout


@pytest.mark.parametrize("suffix", [".ply", ".splat", ".spz", ".sog"])
def test_convert_to_every_format(run: Run, tmp_path: Path, ply: Path, suffix: str) -> None:
    target = tmp_path / f"out{suffix}"
    result = run("convert", ply, *(("-o", target) if suffix == ".spz" else (target,)))
    assert result.returncode == 0, result.stderr
    assert "300 Gaussians" in result.stdout
    assert "kB →" in result.stdout
    assert len(hushsplat.load(target)) == 300


def test_convert_thins_out_and_is_quiet(run: Run, tmp_path: Path, ply: Path) -> None:
    result = run("convert", ply, "out.ply", "--sh-degree", 1, "--min-opacity", 0.5, "--quiet")
    assert (result.returncode, result.stdout, result.stderr) == (0, "", "")
    thin = hushsplat.load(tmp_path / "out.ply")
    assert thin.sh_degree == 1
    assert len(thin) < 200
    assert thin.opacities.min() > 0.49


def test_convert_says_what_a_format_drops(run: Run, tmp_path: Path, ply: Path) -> None:
    scene = replace(hushsplat.load(ply), antialiased=True, payload=None)
    with_payload = replace(scene, payload=np.zeros((len(scene), 10), np.float32))
    hushsplat.save(scene, tmp_path / "mip.ply")
    hushsplat.save(with_payload, tmp_path / "payload.ply")
    assert "; .splat drops spherical harmonics and anti-aliasing\n" in run("convert", "mip.ply", "a.splat").stdout
    assert "; .sog drops the payload\n" in run("convert", "payload.ply", "a.sog").stdout
    assert "drops" not in run("convert", "mip.ply", "a.spz").stdout + run("convert", "payload.ply", "b.ply").stdout


def test_convert_replaces_only_by_force(run: Run, tmp_path: Path, ply: Path) -> None:
    target = tmp_path / "out.splat"
    target.write_bytes(b"mine")
    result = run("convert", ply, target)
    assert (result.returncode, target.read_bytes()) == (2, b"mine")
    assert result.stderr == f"hushsplat: {target}: is there already; say --force to replace it.\n"
    assert run("convert", ply, target, "--force").returncode == 0
    assert target.stat().st_size == 300 * 32


@pytest.mark.parametrize("method", ["raw", "exact", "reference"])
def test_render_our_scene_is_what_python_renders(run: Run, tmp_path: Path, method: str) -> None:
    result = run("render", "synth:2k", "-o", "a.npy", "--method", method, "--width", 60, "--threads", 1)
    assert (result.returncode, result.stderr) == (0, "")
    scene, camera = hushsplat.room_and_garden(2000), hushsplat.home_camera(60, 40)
    np.testing.assert_array_equal(np.load(tmp_path / "a.npy"), hushsplat.render(scene, camera, method).color)


def test_render_options_reach_the_renderer(run: Run, tmp_path: Path, ply: Path) -> None:
    noise = ("--samples", 3, "--seed", 5, "--frame", 7, "--sampler", "stratified")
    where = ("--width", 40, "--height", 30, "--up", "z", "--fov", 40, "--near", 1.5, "--background", 0.2, 0.4, 0.6)
    result = run("render", ply, "-o", "a.npy", "--method", "raw", *noise, *where, "--isa", "portable")
    assert result.returncode == 0, result.stderr
    scene = hushsplat.load(ply)
    camera = hushsplat.frame_scene(scene, 40, 30, up=(0.0, 0.0, 1.0), fov_y_deg=40.0)
    options = hushsplat.RenderOptions(background=(0.2, 0.4, 0.6), near=1.5)
    expected = hushsplat.render(scene, camera, "raw", noise=hushsplat.Noise(3, 5, 7, "stratified"), options=options)
    same = np.isclose(np.load(tmp_path / "a.npy"), expected.color, atol=1e-3).all(axis=-1)
    assert same.mean() > 0.99  # another instruction set may round a winner away


@pytest.mark.parametrize(("view", "name"), [("1", "b"), ("images/b.png", "b"), ("b", "b")])
def test_render_from_a_capture(run: Run, tmp_path: Path, ply: Path, capture: Path, view: str, name: str) -> None:
    result = run("render", ply, "-o", "a.png", "--capture", capture, "--view", view, "--background", "white")
    assert result.returncode == 0, result.stderr
    pixels = np.asarray(Image.open(tmp_path / "a.png"))
    assert pixels.shape == (30, 40, 3)
    assert tuple(pixels[0, 0]) == (255, 255, 255)
    found = {v.name: v.camera for v in hushsplat.load_capture(capture, require_photographs=False).views}
    camera = next(camera for key, camera in found.items() if Path(key).stem == name)
    options = hushsplat.RenderOptions(background=(1.0, 1.0, 1.0))
    expected = hushsplat.render(hushsplat.load(ply), camera, options=options).color
    assert np.abs(pixels / 255 - expected.clip(0, 1)).max() < 0.01


def test_render_a_track_to_a_video(run: Run, tmp_path: Path, ply: Path, track: Path) -> None:
    result = run("render", ply, "-o", "a.mp4", "--track", track, "--crf", 5)
    assert result.returncode == 0, result.stderr
    with av.open(str(tmp_path / "a.mp4")) as video:
        frames = [frame.to_ndarray(format="rgb24") for frame in video.decode(video=0)]
        assert float(video.streams.video[0].average_rate) == 10
    assert [frame.shape for frame in frames] == [(16, 24, 3)] * 4


def test_render_an_orbit_to_numbered_pictures_with_new_noise_each(run: Run, tmp_path: Path, ply: Path) -> None:
    words = ("--orbit", "--seconds", 1, "--fps", 3, "--width", 20, "--height", 20, "--method", "raw")
    result = run("render", ply, "-o", "frames/%02d.npy", *words)
    assert result.returncode == 0, result.stderr
    assert sorted(path.name for path in (tmp_path / "frames").iterdir()) == ["00.npy", "01.npy", "02.npy"]
    scene = hushsplat.load(ply)
    camera = orbit_scene(scene, 20, 20, seconds=1.0, fps=3.0).camera(2)
    expected = hushsplat.render(scene, camera, "raw", noise=hushsplat.Noise(frame=2)).color
    np.testing.assert_array_equal(np.load(tmp_path / "frames" / "02.npy"), expected)
    (tmp_path / "there").mkdir()
    assert run("render", ply, "-o", "there", *words, "--speed", 3).returncode == 0
    assert [path.name for path in (tmp_path / "there").iterdir()] == ["00000.png"]


def test_render_a_walk_and_a_track_moved_into_the_scene(run: Run, tmp_path: Path, track: Path) -> None:
    words = ("--walk", "--seconds", 1, "--fps", 2, "--width", 24)
    assert run("render", "synth:2k", "-o", "w%d.png", *words).returncode == 0
    result = run("render", "synth:2k", "-o", "m%d.npy", "--track", track, "--reanchor", 0.1, "--fps", 20)
    assert result.returncode == 0, result.stderr
    names = sorted(path.name for path in tmp_path.iterdir())
    assert names == [*(f"m{i}.npy" for i in range(7)), "w0.png", "w1.png"]


def test_bench_json_has_flat_rows_and_the_machine(run: Run) -> None:
    words = ("--sizes", "32x24", "48x32", "--rounds", 2, "--cameras", 2, "--threads", 1, 2, "--json")
    result = run("bench", "synth:2k", "synth:4k", *words)
    assert result.returncode == 0, result.stderr
    found = json.loads(result.stdout)
    kinds = {
        "scene": str,
        "gaussians": int,
        "width": int,
        "height": int,
        "method": str,
        "threads": int,
        "median_ms": float,
        "fastest_ms": float,
        "cameras": int,
        "rounds": int,
        "engine_bytes_per_gaussian": float,
        "bytes_per_pixel": float,
        "engine": str,
        "adapter": str,
        "passes_ms": dict,
        "fragments_per_pixel": dict,
        "finer_psnr": float,
    }
    assert len(found["rows"]) == 2 * 2 * 2 * 2
    for row in found["rows"]:
        assert {key: type(value) for key, value in row.items()} == kinds
        assert 0 < row["fastest_ms"] <= row["median_ms"]
    assert {(row["scene"], row["gaussians"]) for row in found["rows"]} == {("synth:2k", 2000), ("synth:4k", 4000)}
    names = {ratio["name"] for ratio in found["ratios"]}
    assert names == {"raw / reference", "1 thread / 2 threads", "2× the Gaussians"}
    assert found["version"] == hushsplat.__version__
    assert found["python"] == ".".join(map(str, sys.version_info[:3]))
    for key in ("cpu", "instruction_set", "platform"):
        assert isinstance(found[key], str) and found[key]
    assert found["cores"] >= 1


def test_bench_of_a_file_prints_tables(run: Run, ply: Path, capture: Path) -> None:
    words = ("--sizes", "32x24", "--rounds", 1, "--cameras", 2, "--threads", 1)
    result = run("bench", ply, "--capture", capture, "--methods", "raw", "exact", "reference", *words)
    assert result.returncode == 0, result.stderr
    assert str(ply.parent) not in result.stdout
    for word in ("cloud.ply", "ms per frame", "exact", "raw / reference", "32×24"):
        assert word in result.stdout
    assert run("bench", ply, *words).returncode == 0  # without cameras: an orbit


def test_render_says_what_it_wrote_and_replaces_nothing_unasked(run: Run, ply: Path, tmp_path: Path) -> None:
    size = ("--width", 60, "--height", 40)
    first = run("render", ply, "-o", tmp_path / "a.png", *size)
    assert first.returncode == 0, first.stderr
    assert re.fullmatch(r".*a\.png: 60×40, reference, up -y \(a guess\), .* (k?B|bytes), \d+\.\d s\n", first.stdout)
    before = (tmp_path / "a.png").read_bytes()
    again = run("render", ply, "-o", tmp_path / "a.png", *size, "--method", "raw")
    assert again.returncode == 2 and "a.png: is there already; say --force to replace it." in again.stderr
    assert (tmp_path / "a.png").read_bytes() == before
    forced = run("render", ply, "-o", tmp_path / "a.png", *size, "--method", "raw", "--force", "--quiet")
    assert forced.returncode == 0 and forced.stdout == ""
    assert (tmp_path / "a.png").read_bytes() != before
    assert [file.name for file in tmp_path.iterdir()] == ["a.png"]


def test_walk_goes_through_any_scene(run: Run, ply: Path, tmp_path: Path) -> None:
    options = ("--walk", "--seconds", 0.5, "--fps", 8, "--width", 30, "--height", 20, "--method", "raw")
    result = run("render", ply, "-o", tmp_path / "walk.mp4", *options)
    assert result.returncode == 0, result.stderr
    assert "30×20, 4 frames, raw" in result.stdout


@pytest.mark.parametrize("words", [("--up", "+z"), ("--up=+z",)])
def test_up_takes_the_names_of_the_page(run: Run, ply: Path, tmp_path: Path, words: tuple[str, ...]) -> None:
    for output, up in (("a.npy", words), ("b.npy", ("--up", "0", "0", "1"))):
        result = run("render", ply, "-o", output, *up, "--width", 24)
        assert result.returncode == 0, result.stderr
    assert (np.load(tmp_path / "a.npy") == np.load(tmp_path / "b.npy")).all()


def test_help_of_train_is_short_and_help_all_is_not(run: Run) -> None:
    short, full = (run("train", option).stdout for option in ("--help", "--help-all"))
    assert "--stage1.rates.scale" not in short
    assert re.search(r"\d+ more settings: hushsplat train --help-all", short)
    assert "--stage1.rates.scale" in full and "--width" in short
    assert "--log-every" in full and "--log-every" not in short


def test_help_is_there_for_terminals_of_ascii(run: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(ENVIRONMENT, "PYTHONUTF8", "0")
    monkeypatch.setitem(ENVIRONMENT, "PYTHONIOENCODING", "ascii")
    result = run("train", "--help")
    assert result.returncode == 0 and result.stdout.isascii(), result.stderr
    assert "--images NAME" in result.stdout


@pytest.mark.parametrize("command", ["render", "train"])
def test_help_is_whole_in_wide_terminals(run: Run, monkeypatch: pytest.MonkeyPatch, command: str) -> None:
    pages = {}
    for columns in (120, 121, 160, 300):
        monkeypatch.setitem(ENVIRONMENT, "COLUMNS", str(columns))
        pages[columns] = run(command, "--help").stdout
    assert "--output PATH" in pages[120]
    assert pages[121] == pages[160] == pages[300] == pages[120]


@pytest.mark.parametrize(("columns", "rows"), [(80, 24), (100, 40), (120, 50)])
def test_help_of_train_fits_two_screens(run: Run, monkeypatch: pytest.MonkeyPatch, columns: int, rows: int) -> None:
    monkeypatch.setitem(ENVIRONMENT, "COLUMNS", str(columns))
    lines = run("train", "--help").stdout.splitlines()
    assert sum(max(1, -(-len(line) // columns)) for line in lines) <= 2 * rows - 1  # and the prompt
    assert max(len(line) for line in lines if line[:1] in ("│", "|")) <= columns
