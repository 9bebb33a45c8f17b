"""The first command, on a scene small enough for a test."""

import re
from pathlib import Path

import numpy as np
import pytest
from PIL import Image

from hushsplat import scenes
from hushsplat.cli.main import main
from hushsplat.evaluation import demo
from hushsplat.evaluation.motions import MOTIONS, SECONDS, bundled_track, bundled_tracks, named_track, viewpoint_in
from hushsplat.evaluation.results import read_results
from hushsplat.scenes import NamedScene, scene_argument
from hushsplat.synth import room_and_garden


def test_the_demo_ends_in_a_page_a_video_and_a_table(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    small = NamedScene("demo", room_and_garden(2_000), is_own=True)
    for module in (scenes, demo):
        monkeypatch.setattr(module, "demo_scene", lambda: small)
    folder = tmp_path / "new" / "demo"
    assert main(["demo", "-o", str(folder), "--frames", "2", "--workers", "1", "--quiet"]) == 0
    out, _ = capsys.readouterr()
    for said in (f"{folder}/report.html", f"{folder}/side-by-side.mp4", f"{folder}/results.json", "temporal-zero-shot"):
        assert said in out
    text = (folder / "report.html").read_text()
    assert text.count("<video") == 2 and text.index("autoplay loop muted") < text.index("<table")
    left, right, share = re.findall(r"<b>([\d.]+)", text)
    assert float(right) > float(left) + 5 and float(share) > 0  # dB to the sorted picture
    assert (folder / "side-by-side.mp4").stat().st_size > 1000
    assert f"hushsplat demo --output {folder} --frames 2<" in text  # the command that makes this page
    rows = read_results(folder / "results.json").rows
    assert [row["method"] for row in rows] == ["raw", "st-taa", "svgf", "temporal-zero-shot", "hush"]


def test_the_demo_needs_a_folder(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (tmp_path / "file").write_text("")
    assert main(["demo", "-o", str(tmp_path / "file")]) == 2
    assert "file: is a file; give the name of a folder." in capsys.readouterr().err


def test_the_demo_scene_has_a_name_for_every_command() -> None:
    assert scene_argument("demo:").name == "demo" and scene_argument("demo:").is_own


def test_every_motion_is_kept_for_our_scene_and_for_bonsai() -> None:
    assert bundled_tracks() == sorted(f"{place}-{name}" for place in ("bonsai", "own") for name in MOTIONS)
    for name in bundled_tracks():
        track = bundled_track(name)
        assert (track.width, track.height) == (800, 532)
        assert track.duration_s == pytest.approx(SECONDS[name.split("-", 1)[1]], abs=0.05)
        steps = np.linalg.norm(np.diff(track.world_from_camera[:, :3, 3], axis=0), axis=1)
        assert steps.max() < 0.15  # nobody jumps


def test_motions_do_what_they_are_called() -> None:
    scene = scene_argument("synth:2k")
    forward = {name: bundled_track(f"own-{name}").world_from_camera[:, :3, 2] for name in MOTIONS}
    turned = np.degrees(np.arccos(np.clip(forward["turn"] @ forward["turn"][0], -1, 1)))
    assert 65 < turned.max() < 72 and turned[-1] < 5
    rests = bundled_track("own-stop-and-go").world_from_camera
    still = (np.abs(np.diff(rests, axis=0)) < 1e-9).all(axis=(1, 2))
    assert 0.3 < still.mean() < 0.8
    straight = bundled_track("own-dolly").world_from_camera[:, :3, 3]
    assert np.linalg.matrix_rank(straight - straight[0], tol=1e-3) == 1
    assert np.degrees(np.arccos(np.clip(forward["head"] @ forward["head"][0], -1, 1))).max() > 15
    assert (named_track("walk", scene).world_from_camera == bundled_track("own-walk").world_from_camera).all()


def test_in_another_scene_motions_begin_where_one_would_stand() -> None:
    scene = NamedScene("file.ply", room_and_garden(2_000), is_own=False)
    viewpoint = viewpoint_in(scene)
    for name in ("walk", "orbit", "turn", "dolly", "stop-and-go", "head"):
        start = named_track(name, scene).world_from_camera[0, :3, 3]
        assert np.linalg.norm(start - viewpoint.eye) < 0.1 * viewpoint.unit


def test_motions_stand_upright_where_up_is_known() -> None:
    scene = NamedScene("file.ply", room_and_garden(2_000), is_own=False)
    up = np.array([0.6, -0.8, 0.0])
    for name in ("walk", "orbit", "turn", "dolly", "stop-and-go", "head"):
        aside = named_track(name, scene, up).world_from_camera[:, :3, 0]
        assert np.abs(aside @ up).max() < 0.05  # a hand-held walk rolls by a degree or two
        assert np.abs(named_track(name, scene).world_from_camera[:, :3, 0] @ up).max() > 0.1


def test_compare_does_the_same_for_anybody(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    pattern = tmp_path / "%02d.png"
    words = ["render", "synth:2k", "-o", str(pattern), "--orbit", "--seconds", "0.1", "--width", "60", "--height", "40"]
    assert main([*words, "--compare", "raw,svgf,temporal,reference"]) == 0
    with Image.open(tmp_path / "00.png") as picture:
        assert picture.size == (4 * 60, 40)
    assert "synth:2k has no payload for temporal; temporal-zero-shot draws it." in capsys.readouterr().err


def test_a_piece_that_is_only_numbered_is_named_with_its_folder_and_a_streamed_scene_by_it() -> None:
    assert scenes.scene_name("data/flowers/lod-meta.json") == "flowers"
    assert scenes.scene_name("data/showroom/3_0") == "showroom/3_0"
    assert scenes.scene_name("data/garden.ply") == "garden.ply"
