"""The commands on the gpu engine, and the choice of an engine."""

import json
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from command import Run
from PIL import Image

from hushsplat.cli.flags import chosen_engine
from hushsplat.engines.base import engine
from hushsplat.engines.webgpu import adapters as listing
from hushsplat.engines.webgpu.adapters import Adapter
from hushsplat.synth import room_and_garden
from hushsplat.types.errors import EngineError, RenderError

pytestmark = pytest.mark.usefixtures("gpu")  # says so when there is no adapter


def notes(stderr: str) -> list[str]:
    """What the command says; a driver may have words of its own."""
    return [line for line in stderr.splitlines() if line.startswith("hushsplat: ")]


@pytest.mark.parametrize("method", ["hush", "temporal-zero-shot"])
def test_render_draws_the_same_picture_on_both_engines(run: Run, ply: Path, tmp_path: Path, method: str) -> None:
    frames = ("--frames", 3) if method == "temporal-zero-shot" else ()
    pictures = []
    for name in ("cpu", "gpu"):
        words = ("render", ply, "-o", f"{name}.png", "--method", method, "--width", 60, *frames, "--engine", name)
        result = run(*words, "--quiet")
        assert result.returncode == 0, result.stderr
        pictures.append(np.asarray(Image.open(tmp_path / f"{name}.png")).astype(float))
    difference = np.abs(pictures[0] - pictures[1])
    assert np.median(difference) <= 1 and (difference > 30).mean() < 0.05
    assert pictures[0].std() > 10


def test_render_refuses_what_the_engine_lacks_in_one_line(run: Run, ply: Path, tmp_path: Path) -> None:
    result = run("render", ply, "-o", "a.png", "--engine", "gpu", "--method", "exact")
    assert result.returncode == 2
    assert notes(result.stderr)[-1] == "hushsplat: the gpu engine blends reference, not 'exact'; use the cpu engine."
    assert not (tmp_path / "a.png").exists()
    result = run("render", ply, "-o", "a.png", "--adapter", "0")
    assert result.returncode == 2
    assert notes(result.stderr) == ["hushsplat: --adapter is for the gpu engine, not for cpu; leave it out."]
    result = run("render", ply, "-o", "a.png", "--engine", "gpu", "--adapter", "no such")
    assert result.returncode == 2
    assert notes(result.stderr)[0].startswith("hushsplat: no adapter matches 'no such'; choose one of 0: ")


def test_info_lists_engines_and_adapters(run: Run, ply: Path, gpu) -> None:
    found = json.loads(run("info", "--engines", "--json").stdout)
    assert found["cpu"].endswith("threads") and gpu.adapter.name in found["gpu_0"]
    for words in ((), (ply, "--engines")):
        result = run("info", *words)
        assert result.returncode == 2
        assert notes(result.stderr) == ["hushsplat: give a scene, a capture or a track; or --engines alone."]


def test_bench_times_both_engines_and_names_the_adapter(run: Run, ply: Path, gpu) -> None:
    methods = ("--methods", "raw", "reference", "hush", "raw+temporal-zero-shot")
    result = run("bench", ply, *methods, "--engine", "gpu", "--sizes", "32x20", "--rounds", 1, "--cameras", 1, "--json")
    assert result.returncode == 0, result.stderr
    found = json.loads(result.stdout)
    on_gpu = [row for row in found["rows"] if row["engine"] == "gpu"]
    assert [row["method"] for row in on_gpu] == list(methods[1:])
    assert {row["adapter"] for row in on_gpu} == {str(gpu.adapter)} and all(row["median_ms"] > 0 for row in on_gpu)
    assert {row["adapter"] for row in found["rows"] if row["engine"] == "cpu"} == {""}
    assert {"levels", "chunks", "cull", "scan", "scatter", "raster", "winners", "decode"} >= set(on_gpu[0]["passes_ms"])
    passes = [set(row["fragments_per_pixel"]) for row in on_gpu]
    assert passes == [{"raster"}, {"blend"}, {"raster", "blend"}, {"raster"}]
    tested, shaded = on_gpu[0]["fragments_per_pixel"]["raster"]
    assert tested > shaded > 0
    assert all(not row["fragments_per_pixel"] for row in found["rows"] if row["engine"] == "cpu")
    names = [ratio["name"] for ratio in found["ratios"]]
    assert names.count("gpu / cpu") == 4 and "raw / reference, gpu" in names


@pytest.mark.parametrize(("software", "expected"), [(True, "cpu"), (False, "gpu")])
def test_auto_takes_a_gpu_that_is_no_software(monkeypatch, gpu, software: bool, expected: str) -> None:
    found = Adapter(0, "A", "1.0", "Vulkan", software, gpu.adapter.native)
    monkeypatch.setattr(listing, "adapters", lambda: (found,))
    assert engine("auto").name == expected
    monkeypatch.setattr(listing, "adapters", lambda: ())
    assert engine("auto").name == "cpu"


def test_a_command_with_auto_notes_that_the_gpu_failed_and_a_benchmark_fails(monkeypatch, capsys, gpu) -> None:
    hardware = replace(gpu.adapter, is_software=False)
    monkeypatch.setattr(listing, "adapters", lambda: (hardware,))
    drawing = chosen_engine("auto", None)
    assert notes(capsys.readouterr().err) == [f"hushsplat: drawing on {hardware}."]
    drawing.active.device.native.destroy()
    drawing.upload(room_and_garden(1000, sh_degree=0))
    (note,) = notes(capsys.readouterr().err)
    assert note.endswith("is lost: drawing on the CPU from now on.")
    timed = chosen_engine("auto", None, fixed=True)
    timed.device.native.destroy()
    with pytest.raises(EngineError, match="is lost; use the cpu engine"):
        timed.upload(room_and_garden(1000, sh_degree=0))


def test_an_engine_is_refused_by_name() -> None:
    with pytest.raises(RenderError, match=r"^engine must be one of cpu, torch, gpu, auto, got 'cuda'\.$"):
        engine("cuda")
    with pytest.raises(RenderError, match=r"^an adapter is for the gpu engine, not for torch; leave it out\.$"):
        engine("torch", adapter=0)


def test_evaluate_draws_on_the_gpu_engine(run: Run, ply: Path, track: Path, tmp_path: Path, gpu) -> None:
    words = ("--track", track, "--methods", "raw", "hush", "--metrics", "psnr", "--width", 32, "--height", 20)
    result = run("evaluate", "navigation", ply, *words, "--fps", 0, "--every", 1, "--workers", 1, "--engine", "gpu")
    assert result.returncode == 0, result.stderr
    found = json.loads((tmp_path / "results.json").read_text())
    assert (found["protocol"]["engine"], found["protocol"]["adapter"]) == ("gpu", str(gpu.adapter))
    scores = {row["method"]: row["psnr"] for row in found["rows"]}
    assert scores["hush"] > scores["raw"] + 3
    assert "--engine gpu" in found["command"]


def test_evaluate_times_the_gpu_engine(run: Run, tmp_path: Path, gpu) -> None:
    words = ("--methods", "raw", "reference", "--width", 32, "--height", 20, "--rounds", 1, "--cameras", 1)
    result = run("evaluate", "timing", "synth:1k", *words, "--engine", "gpu")
    assert result.returncode == 0, result.stderr
    found = json.loads((tmp_path / "results.json").read_text())
    assert found["protocol"]["adapter"] == str(gpu.adapter)
    assert {row["method"] for row in found["rows"]} >= {"raw", "reference"}
