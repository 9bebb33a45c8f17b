"""What goes wrong is one line on stderr and exit code 2; Ctrl-C is one line and 130, and leaves nothing behind."""

import os
import signal
import subprocess
import time
import warnings
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from command import COMMAND, ENVIRONMENT, Run

import hushsplat
from hushsplat.cli.main import COMMANDS, main, one_line
from hushsplat.scenes import LARGE_PACKED_BYTES

WRONG = {
    "rendr PLY -o out.png": "there is no command 'rendr'; did you mean render?",
    "PLY": "did you mean `hushsplat view ",
    "quux": "there is no command 'quux'; there are demo, info, convert, render,",
    "render PLY -o /proc/nowhere.png": "/proc/nowhere.png: cannot be written: ",
    "train CAPTURE -o /proc/nowhere": "/proc/nowhere: the folder cannot be made: ",
    "train CAPTURE -o PLY": "cloud.ply: is a file; give the name of a folder.",
    "convert PLY /proc/nowhere/lod-meta.json": "/proc/nowhere: the folder cannot be made: ",
    "convert PLY /proc/nowhere.ply": "/proc/nowhere.ply: cannot be written: ",
    "infoo": "there is no command 'infoo'; did you mean info?",
    "info": "give a scene, a capture or a track; or --engines alone.",
    "info nowhere.ply": "nowhere.ply: no such file or folder; check the path.",
    "info TRACK --lod 1": "is a track, which has no levels of detail; leave out --lod.",
    "info PLY --lod 1": "has no levels of detail (only a streamed SOG has); leave out lod=1.",
    "info synth:2k --lod 1": "synth:2k: has no levels of detail; say how many surfels instead, such as synth:200k.",
    "info synth:many": "synth:many: is no scene of ours; write synth: and a number of surfels, such as synth:500k.",
    "info synth:10": "count must lie between",
    "info PLY --jsn": "unknown option --jsn; did you mean --json? see `hushsplat info --help`.",
    "--hepl": "unknown option --hepl; did you mean --help? see `hushsplat COMMAND --help`.",
    "render --wdth 3 PLY": "unknown option --wdth; did you mean --width? see `hushsplat render --help`.",
    "render PLY -o out.png --wdth=3": "unknown option --wdth; did you mean --width? see `hushsplat render --help`.",
    "render PLY -o out.png -w 3": "unknown option -w; see `hushsplat render --help`.",
    "train CAPTURE --stage1.stps 3": "unknown option --stage1.stps; did you mean --stage1.steps? see",
    "convert PLY out.ply --sh_degre 2": "unknown option --sh-degre; did you mean --sh-degree? see",
    "render PLY -o out.png --up -y --near q": "--near takes a number, got q; see `hushsplat render --help`.",
    "convert nowhere.ply new/levels/lod-meta.json": "nowhere.ply: no such file",
    "convert PLY": "convert needs one TARGET; see `hushsplat convert --help`.",
    "convert PLY a.ply -o b.ply": "convert needs one TARGET; see `hushsplat convert --help`.",
    "convert nowhere.ply out.ply": "nowhere.ply: no such file; check the path.",
    "convert nowhere.ply out.xyz": "cannot write the format '.xyz'; give a name",  # before anything is read
    "convert PLY out.obj": "cannot write the format '.obj'; give a name that ends in .ply, .splat",
    "convert PLY nowhere/out.ply": "does not exist; create it first.",
    "convert PLY out.ply --sh-degree 4": "the degree of the spherical harmonics must lie in 0..3, got 4.",
    "convert PLY out.ply --min-opacity 2": "the least opacity must lie in 0..1, got 2.0.",
    "render": "render needs SCENE and -o PATH; see `hushsplat render --help`.",
    "render PLY -o out.png --width wide": "--width takes a whole number, got wide; see `hushsplat render --help`.",
    "view PLY --up q": (
        "--up takes -y, y, z, -z, x, -x, +x, +y, +z or three numbers, got q; see `hushsplat view --help`."
    ),
    "render PLY -o": "-o needs a value; see `hushsplat render --help`.",
    "render PLY": "render needs -o PATH; see `hushsplat render --help`.",
    "render PLY -o out.gif": "out.gif: cannot write '.gif'; end the name in .png, .jpg, .jpeg, .webp, .npy, .mp4",
    "render PLY -o out%s.png": "out%s.png: numbered pictures have one number in their name, such as frames/%04d.png.",
    "render nowhere.ply -o out.png": "nowhere.ply: no such file; check the path.",
    "render PLY -o nowhere/out.png": "does not exist; create it first.",
    "render PLY -o out.png --method blurry": "invalid choice 'blurry' for --method; give one of hush, hush-fast,",
    "render PLY -o out.png --sampler blurry": "invalid choice 'blurry' for --sampler; give one of ",
    "render PLY -o out.png --isa 6502": "--isa 6502: this machine runs",
    "render PLY -o out.png --method raw --samples 0": "samples must lie in 1..4096, got 0.",
    "render PLY -o out.png --near 0": "near must be a distance > 0, got 0.0.",
    "render PLY -o out.png --threads -1": "threads must lie in 0 (all cores) .. 256, got -1.",
    "render PLY -o out.png --background nan 0 0": "background must be three finite numbers",
    "render PLY -o out.png --background 1 1": "--background takes black, white or three numbers, got 1 1; see",
    "render PLY -o out.png --width 0": "a picture needs 1 px and a fov between 0 and 180, got 0×1 and 50.0.",
    "render PLY -o out.png --width 99999": "a picture of 99999×66499 px is outside 1..16384 px a side.",
    "render PLY -o out.png --fov 180": "a picture needs 1 px and a fov between 0 and 180, got 800×532 and 180.0.",
    "render PLY -o out.png --up 0 0 0": "up must be one of -y, y, z, -z, x, -x or a direction of three finite numbers",
    "render PLY -o out.png --capture CAPTURE --view 7": "has no view '7'; give a number 0..2 or a name such as",
    "render PLY -o out.png --capture nowhere": "nowhere: does not exist; a capture is a folder or a file of cameras.",
    "render PLY -o out.png --capture CAPTURE --fov 40": "--fov has no effect beside --capture, which has its own lens",
    "render PLY -o out.png --orbit --walk": "--walk and --orbit both say where to look from; give one of them.",
    "render PLY -o out.mp4": "a video needs a moving camera: --orbit, --track or --walk; or write a .png.",
    "render PLY -o out.png --orbit": "240 frames need a video (.mp4) or numbers (frames/%04d.png).",
    "render PLY -o out.mp4 --orbit --crf 99": "crf must lie in 0 (lossless) .. 51 (worst), got 99.",
    "render PLY -o out.mp4 --orbit --seconds 0": "seconds and fps must be finite and > 0, got 0.0 and 30.0.",
    "render PLY -o out.mp4 --orbit --speed 0": "--speed must be a number > 0, got 0.0.",
    "render PLY -o out.mp4 --track nowhere.json": "nowhere.json: does not exist; a track is",
    "render PLY -o out.mp4 --track TRACK --reanchor 0": "scale must be finite and > 0, got 0.0.",
    "render PLY -o out.png --reanchor 1": "--reanchor moves a track, but there is none; give one with --track.",
    "bench PLY --sizes big": "--sizes big: write width x height in px, such as 800x532.",
    "bench PLY --rounds 0": "--cameras and --rounds must be at least 1, got 6 and 0.",
    "bench PLY --methods blurry": "invalid choice 'blurry'",
    "report": "give at least one file of results, as `hushsplat evaluate` writes it.",
    "report nowhere.json": "nowhere.json: cannot be read: No such file or directory.",
    "report TRACK": "ring.json: format is 'hushsplat-track', expected 'hushsplat-results'.",
    "evaluate": "evaluate needs static, navigation, ablation,",
    "evaluate guess PLY": "invalid choice 'guess' for experiment; give one of static, navigation,",
    "evaluate navigation": "give at least one scene, a file or synth:500k.",
    "evaluate navigation PLY -o out.txt": "out.txt: results are written as .json; end the name so.",
    "evaluate navigation PLY -o nowhere/out.json": "does not exist; create it first.",
    "evaluate navigation nowhere.ply": "nowhere.ply: no such file; check the path.",
    "evaluate navigation PLY --views 0": "--views must be at least 1, got 0.",
    "evaluate navigation PLY --workers -1": "--workers must be 0 (one for each core) or more, got -1.",
    "evaluate navigation PLY --track nowhere.json": "nowhere.json: is neither a file nor one of walk, orbit, turn",
    "evaluate navigation PLY --methods blurry": "--methods takes of hush,",
    "evaluate navigation PLY --metrics vmaf": "lpips_3dgs, cvvdp, got 'vmaf'.",
    "evaluate navigation PLY --metrics lpips": "lpips needs VGG16 with the heads of LPIPS v0.1",
    "evaluate navigation PLY --weights nowhere.safetensors": "nowhere.safetensors: ",
    "evaluate static PLY": "static views need a --capture, a folder or a .json list of cameras.",
    "evaluate static PLY --against photographs": "--against photographs needs a --capture with photographs.",
    "evaluate static PLY --capture CAPTURE --against photographs": "photographs are missing; evaluate with --against",
    "evaluate timing PLY --rounds 0": "--rounds must be at least 1, got 0.",
    "bench PLY --methods": "a benchmark needs at least one round, one camera, one method and one thread count.",
}


@pytest.mark.parametrize("words", WRONG)
def test_one_line_and_exit_code_2(
    words: str,
    ply: Path,
    track: Path,
    capture: Path,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    monkeypatch.chdir(tmp_path)
    names = {"PLY": ply, "TRACK": track, "CAPTURE": capture}
    assert main([str(names.get(word, word)) for word in words.split()]) == 2
    out, err = capsys.readouterr()
    assert out == ""
    assert err.startswith("hushsplat: ")
    assert err.count("\n") == 1
    assert WRONG[words] in err
    assert not list(tmp_path.iterdir())


def test_folders_say_what_is_in_them_and_nothing_is_served(
    ply: Path, capture: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "more").mkdir()
    (tmp_path / "empty").mkdir()
    (tmp_path / "a.ply").symlink_to(ply)
    with (tmp_path / "more" / "b.splat").open("wb") as large:
        large.truncate(LARGE_PACKED_BYTES + 1)  # of a large scene the link is printed before it is read
    for folder, said in {
        tmp_path: "is a folder; give one of the scenes in it: a.ply, more/b.splat.",
        tmp_path / "empty": "this folder has no scene; give a .ply, .splat, .spz or .sog file or a SOG folder.",
        capture.parent: "is a capture, photographs with cameras and no scene; `hushsplat train` makes a scene of it.",
    }.items():
        for words in (["view", "--no-browser"], ["render", "-o", str(tmp_path / "out.png")]):
            assert main([words[0], str(folder), *words[1:]]) == 2
            assert capsys.readouterr() == ("", f"hushsplat: {folder}: {said}\n")


def test_a_process_says_the_same_and_no_traceback(run: Run) -> None:
    result = run("render", "nowhere.ply", "-o", "a.png")
    assert (result.returncode, result.stdout) == (2, "")
    assert result.stderr == "hushsplat: nowhere.ply: no such file; check the path.\n"


def test_a_damaged_file_is_one_line(run: Run, tmp_path: Path) -> None:
    (tmp_path / "bad.ply").write_bytes(b"ply\nformat binary_little_endian 1.0\nelement vertex 99999999\n")
    for words in (("info", "bad.ply"), ("render", "bad.ply", "-o", "a.png"), ("convert", "bad.ply", "a.spz")):
        result = run(*words)
        assert result.returncode == 2
        assert result.stderr.startswith("hushsplat: bad.ply: ")
        assert result.stderr.count("\n") == 1


def test_an_output_nobody_reads_is_no_error(ply: Path) -> None:
    command = [*COMMAND, "info", str(ply), "--json"]
    reading, writing = os.pipe()
    os.close(reading)
    result = subprocess.run(command, env=ENVIRONMENT, stdout=writing, stderr=subprocess.PIPE, timeout=60, check=False)
    os.close(writing)
    assert (result.returncode, result.stderr) == (0, b"")


@pytest.mark.parametrize("output", ["a.mp4", "frames/%05d.png"])
def test_ctrl_c_leaves_no_half_written_file(tmp_path: Path, ply: Path, output: str) -> None:
    words = ["render", str(ply), "-o", output, "--orbit", "--seconds", "300", "--width", "64"]
    process = subprocess.Popen(
        [*COMMAND, *words],
        cwd=tmp_path,
        env=ENVIRONMENT,
        stderr=subprocess.PIPE,
        text=True,
        preexec_fn=lambda: signal.signal(signal.SIGINT, signal.default_int_handler),  # even if started in background
    )
    begun = "*.*" if output == "a.mp4" else "0*.png"  # a video has begun; a picture is finished
    until = time.monotonic() + 60
    while not list(tmp_path.rglob(begun)) and time.monotonic() < until:
        time.sleep(0.02)
    assert process.poll() is None
    process.send_signal(signal.SIGINT)
    _, err = process.communicate(timeout=60)
    assert process.returncode == 130
    assert err == "hushsplat: interrupted; files that were not finished are not there.\n"
    left = [path for path in tmp_path.rglob("*") if path.is_file()]
    assert not [path for path in left if path.name.startswith(".")]
    if output == "a.mp4":
        assert not left
    else:  # pictures that were finished are whole
        assert left and all(path.read_bytes().endswith(b"IEND\xaeB`\x82") for path in left)


@pytest.mark.parametrize("columns", ["40", "300"])
@pytest.mark.parametrize("command", COMMANDS)
def test_misspelt_option_is_named_first(
    command: str, columns: str, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("COLUMNS", columns)
    fields = [name for name in ("quiet", "force", "json") if name in COMMANDS[command][0].__dataclass_fields__]
    for name in fields:
        assert main([command, f"--{name[:-2]}{name[-1]}", "3", "x"]) == 2  # a letter is missing
        said = f"hushsplat: unknown option --{name[:-2]}{name[-1]}; did you mean --{name}? "
        assert capsys.readouterr().err == f"{said}see `hushsplat {command} --help`.\n"
    assert fields and os.environ["COLUMNS"] == columns


@pytest.mark.parametrize(
    "box",
    [
        "╭─ Title ──╮\n│ Something is │\n│ wrong.       │\n│ ──────── │\n│ Perhaps you meant: │\n│  --it X │\n╰───╯\n",
        " Title \n ------ \n  Something is \n  wrong.\n  ------\n  Perhaps you meant:\n   --it INT\n\n",
    ],
)
def test_one_line_of_a_box(box: str) -> None:
    assert one_line(box, "COMMAND") == "Something is wrong; see `hushsplat COMMAND --help`."


def test_a_terminal_without_our_letters_is_no_error(ply: Path) -> None:
    environment = {**ENVIRONMENT, "PYTHONUTF8": "0", "PYTHONIOENCODING": "ascii"}
    command = [*COMMAND, "info", str(ply)]
    result = subprocess.run(command, env=environment, capture_output=True, timeout=60, check=False)
    assert (result.returncode, result.stderr) == (0, b"")
    assert b"300" in result.stdout


def test_names_from_files_are_printed_as_text(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """Neither escape sequences nor rich's markup in a name do anything."""
    scene = hushsplat.room_and_garden(1000)
    name = tmp_path / "[red]a\x1b[2J.ply"
    hushsplat.save(scene, name)
    assert main(["convert", str(name), str(tmp_path / "b.splat")]) == 0
    assert main(["info", str(tmp_path / "\x1b[2J.ply")]) == 2
    said = capsys.readouterr()
    assert r"[red]a\x1b[2J.ply" in said.out and "\x1b" not in said.out + said.err


@pytest.mark.parametrize("value", [0.0, 0.37, 1.0])
@pytest.mark.parametrize("scale", [1e-12, 1e-3, 1e30])
def test_info_of_a_scene_whose_gaussians_are_all_equal(
    value: float, scale: float, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    made = hushsplat.room_and_garden(1000)
    equal = {"opacities": np.full(1000, value, np.float32), "scales": np.full((1000, 2), scale, np.float32)}
    for means in (made.means, np.full((1000, 3), 3e38, np.float32), np.zeros((1000, 3), np.float32)):
        hushsplat.save(replace(made, means=means, **equal), tmp_path / "a.ply")
        with warnings.catch_warnings():
            warnings.simplefilter("error")  # none reaches the terminal either
            assert main(["info", str(tmp_path / "a.ply")]) == 0
    assert "opacities" in capsys.readouterr().out
