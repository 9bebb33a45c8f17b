"""Benchmarks: order, medians, ratios and the torch engine beside the CPU engine; the times are not tested."""

import sys
from collections.abc import Callable
from dataclasses import replace

import numpy as np
import pytest

from hushsplat.engines.base import Engine, engine
from hushsplat.engines.cpu.engine import CpuScene
from hushsplat.evaluation import bench
from hushsplat.evaluation.bench import (
    BenchPlan,
    Case,
    Row,
    bytes_per_pixel,
    interleaved_times_ms,
    ratios,
    spread,
    time_methods,
    torch_denoisers,
    with_random_payload,
)
from hushsplat.methods import METHODS
from hushsplat.synth import room_and_garden, walk_track
from hushsplat.types.camera import Camera
from hushsplat.types.errors import HushsplatError, RenderError
from hushsplat.types.gaussians import Gaussians
from hushsplat.types.options import RenderOptions
from hushsplat.types.paths import orbit


def row(scene: str, gaussians: int, method: str, threads: int, median_ms: float, width: int = 80) -> Row:
    return Row(scene, gaussians, width, 60, method, threads, median_ms, median_ms, 1, 1, 100.0)


def cameras(count: int) -> list[Camera]:
    track = orbit(np.zeros(3), 2.0, seconds=float(count), fps=1.0, width=16, height=12)
    return [track.camera(index) for index in range(count)]


def one_gaussian() -> Gaussians:
    return Gaussians(
        means=np.zeros((1, 3), dtype=np.float32),
        scales=np.full((1, 3), 0.2, dtype=np.float32),
        rotations=np.float32([[1, 0, 0, 0]]),
        opacities=np.float32([0.9]),
        sh=np.zeros((1, 1, 3), dtype=np.float32),
    )


def test_ratios_compare_rows_of_one_scene_size_and_thread_count() -> None:
    rows = [
        row("small", 100, "raw", 1, 4.0),
        row("small", 100, "reference", 1, 8.0),
        row("small", 100, "raw", 2, 2.5),
        row("large", 1000, "raw", 1, 12.0),
        row("large", 1000, "raw", 1, 99.0, width=160),
        row("file", 9999, "raw", 1, 50.0),
        row("small", 100, "raw+temporal", 1, 12.0),
        row("small", 100, "temporal", 1, 6.0),
    ]
    found = {(ratio.name, ratio.scene, ratio.width): ratio.value for ratio in ratios(rows, ["small", "large"])}
    assert found == {
        ("raw / reference", "small", 80): 0.5,
        ("raw+temporal / reference", "small", 80): 1.5,
        ("1 thread / 2 threads", "small", 80): 1.6,
        ("10× the Gaussians", "large", 80): 3.0,
    }


def case_of(gaussians: Gaussians, seen: list[Camera], on: Engine | None = None) -> Case:
    on = on or engine("cpu")
    return Case("one", on, on.upload(gaussians), seen)


def test_every_round_takes_one_frame_of_each_and_nobody_is_always_first() -> None:
    calls: list[tuple[str, int]] = []
    steps: list[None] = []

    def variant(name: str) -> bench.Prepare:
        return lambda camera, frame: lambda: calls.append((name, frame))

    interleaved_times_ms([variant("raw"), variant("reference")], cameras(1), 2, lambda: steps.append(None))
    assert calls == [("raw", 0), ("reference", 0), ("reference", 1), ("raw", 1)]
    assert len(steps) == 4


def test_each_method_warms_up_and_gets_a_row_for_each_thread_count() -> None:
    begun: list[str] = []
    case = case_of(one_gaussian(), cameras(1))
    rows = time_methods(case, BenchPlan(("raw", "raw+taa", "reference"), (1, 2), 2), on_warm_up=begun.append)
    assert [(r.method, r.threads, r.rounds, r.cameras, r.gaussians) for r in rows] == [
        (name, threads, 2, 1, 1) for name in ("raw", "raw+taa", "reference") for threads in (1, 2)
    ]
    assert begun == [r.method for r in rows]
    assert [r.bytes_per_pixel for r in rows[::2]] == [0, bytes_per_pixel("taa"), 0]


def test_median_over_rounds_then_mean_over_cameras(monkeypatch: pytest.MonkeyPatch) -> None:
    times = np.array([[[1.0, 2.0, 99.0], [10.0, 20.0, 30.0]]])  # ms, by camera and round
    monkeypatch.setattr(bench, "interleaved_times_ms", lambda *_: times)
    (found,) = time_methods(case_of(one_gaussian(), cameras(2)), BenchPlan(("raw",), (1,), 3))
    assert found.median_ms == pytest.approx((2 + 20) / 2)
    assert found.fastest_ms == pytest.approx((1 + 10) / 2)


class Recording:
    """The CPU engine, noting what it is asked for."""

    def __init__(self) -> None:
        self.calls: list[str] = []
        self._inner = engine("cpu")

    def __getattr__(self, name: str) -> Callable:
        found = getattr(self._inner, name)

        def call(*arguments: object, **named: object) -> object:
            options = ",".join(f"{key}={value}" for key, value in named.items())
            self.calls.append(f"{name}({options})")
            return found(*arguments, **named)

        return call


@pytest.mark.parametrize(
    ("row", "before", "timed"),
    [
        ("raw", ["with_payload()", "sample()", "decode()"], ["sample()", "decode()"]),
        ("reference", [], ["render(with_depth=False)"]),
        ("exact", [], ["render(with_depth=True)"]),
        ("temporal", ["sample()", "decode()", "denoise()", "sample()", "decode()"], ["denoise()"]),
        ("raw+temporal", ["sample()", "decode()", "denoise()"], ["sample()", "decode()", "denoise()"]),
    ],
)
def test_what_is_timed_of_a_row(row: str, before: list[str], timed: list[str]) -> None:
    recording = Recording()
    case = case_of(with_random_payload(one_gaussian()), cameras(1), recording)
    prepare = bench._frames(case, BenchPlan((row,), (1,), 1), row, RenderOptions(threads=1))
    recording.calls.clear()
    draw = prepare(case.cameras[0], 0)
    assert recording.calls == [*before, "finish()"]
    recording.calls.clear()
    draw()
    assert recording.calls == [*timed, "finish()"]


def test_raw_is_timed_without_the_payload(monkeypatch: pytest.MonkeyPatch) -> None:
    drawn: list[bool] = []
    case = case_of(with_random_payload(one_gaussian()), cameras(1))
    decode = case.engine.decode

    def noting(visibility: object, scene: CpuScene, *rest: object) -> object:
        drawn.append(scene.has_payload)
        return decode(visibility, scene, *rest)

    monkeypatch.setattr(case.engine, "decode", noting)
    for row, has_payload in (("raw", False), ("raw+temporal", True)):
        drawn.clear()
        time_methods(case, BenchPlan((row,), (1,), 1))
        assert set(drawn) == {has_payload}


def test_levels_of_detail_are_timed_beside_the_scene_itself(monkeypatch: pytest.MonkeyPatch) -> None:
    gaussians = room_and_garden(20_000)
    track = walk_track(1.0, 2)
    case = case_of(gaussians, [track.camera(0).resized(160, 106)])
    leveled = bench.with_levels(case, gaussians, 400.0)
    shown: list[int] = []
    sample = case.engine.sample

    def noting(scene: CpuScene, *rest: object) -> object:
        shown.append(
            len(scene.gaussians)
            if scene.shown is None
            else int(np.isin(leveled.scene.levels.group, np.flatnonzero(scene.shown)).sum())
        )
        return sample(scene, *rest)

    monkeypatch.setattr(case.engine, "sample", noting)
    plan = BenchPlan(("raw", "reference"), (1,), 1, leveled=leveled)
    rows = time_methods(case, plan)
    assert [r.method for r in rows] == ["raw", "reference", "raw, levels"]
    assert [r.gaussians for r in rows] == [20_000] * 3
    assert set(shown) == {20_000, min(shown)} and min(shown) < 15_000
    assert rows[0].finer_psnr == rows[1].finer_psnr and 10 < rows[2].finer_psnr < rows[0].finer_psnr < 60
    names = [ratio.name for ratio in ratios(rows)]
    assert names == ["raw / reference", "raw, levels / reference"]
    assert time_methods(case, replace(plan, leveled=None))[0].finer_psnr == 0  # not measured


def test_levels_are_compared_with_a_finer_picture() -> None:
    gaussians = room_and_garden(20_000)
    camera = walk_track(1.0, 2).camera(0).resized(80, 53)
    case = case_of(gaussians, [camera])
    fine = case.engine.render(case.scene, camera.resized(240, 159), "reference", RenderOptions()).numpy().color
    target = sum(fine[y::3, x::3] for y in range(3) for x in range(3)) / 9
    drawn = case.engine.render(case.scene, camera, "reference", RenderOptions()).numpy().color
    expected = -10 * np.log10(np.mean((np.clip(drawn, 0, 1) - np.clip(target, 0, 1)) ** 2))
    specks = bench.with_levels(case, gaussians, 1e-9)  # only what is smaller than a pixel becomes coarser
    itself, coarser = bench.finer_psnr(case, (case, specks))
    assert itself == pytest.approx(expected, abs=1e-3) and 10 < coarser != itself


def test_spread_takes_cameras_evenly_and_resizes_them() -> None:
    many = cameras(11)
    few = spread(many, 3, 8, 6)
    assert [camera.position.tolist() for camera in few] == [many[i].position.tolist() for i in (0, 5, 10)]
    assert {(camera.width, camera.height) for camera in few} == {(8, 6)}
    assert len(spread(many, 99, 8, 6)) == 11


def test_wrong_benchmarks_are_refused() -> None:
    case = case_of(one_gaussian(), cameras(1))
    with pytest.raises(
        RenderError, match=r"methods must be of raw, exact, reference, .*temporal, .*raw\+temporal, .*got 'blurry'"
    ):
        time_methods(case, BenchPlan(("blurry",), (1,), 1))
    with pytest.raises(RenderError, match="a benchmark needs at least one round, one camera"):
        time_methods(case, BenchPlan(("raw",), (1,), 0))


def test_bytes_per_pixel_are_two_states_and_the_pyramid_of_the_learned() -> None:
    assert bytes_per_pixel("raw") == bytes_per_pixel("reference") == 0
    assert bytes_per_pixel("mean") == 2 * 12
    for name in ("temporal", "temporal-zero-shot"):
        assert bytes_per_pixel(name) == pytest.approx(2 * 64 + 16 * 85 / 64)
    assert METHODS["svgf"].layout is not None and bytes_per_pixel("svgf") == 8 * METHODS["svgf"].layout.floats


@pytest.mark.parametrize("method", ["temporal", "temporal-zero-shot"])
def test_the_torch_engine_is_timed_beside_the_cpu_engine(method: str) -> None:
    scene = with_random_payload(room_and_garden(2000, sh_degree=0))
    assert scene.payload is not None and scene.payload.shape == (len(scene), 10)
    case = case_of(scene, [walk_track(width=24, height=16).camera(0)])
    others = torch_denoisers([method], None)
    assert list(others) == [f"torch:{method}", f"torch.compile:{method}"]
    eager = {f"torch:{method}": others[f"torch:{method}"]}
    rows = time_methods(case, BenchPlan((method,), (1,), 2, others=eager))
    assert [found.method for found in rows] == [method, f"torch:{method}"]
    (ratio,) = ratios(rows)
    assert (ratio.name, ratio.method) == ("torch / engine", method)
    assert ratio.value == pytest.approx(rows[1].median_ms / rows[0].median_ms)


def test_torch_rows_draw_what_the_cpu_engine_draws() -> None:
    scene = with_random_payload(room_and_garden(2000, sh_degree=0))
    case = case_of(scene, [walk_track(width=24, height=16).camera(0)])
    options = RenderOptions(threads=1)
    eager = torch_denoisers(["temporal"], None)["torch:temporal"](options)
    shown = [
        bench.denoiser_frames(case, each, options, with_raw=False)(case.cameras[0], 3)().images[0].numpy().color
        for each in (eager, replace(eager, engine=case.engine))
    ]
    np.testing.assert_allclose(shown[0], shown[1], atol=1e-3)


def test_without_pytorch_the_error_says_how_to_get_it(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in [name for name in sys.modules if name.startswith("hushsplat.engines.torch")]:
        monkeypatch.delitem(sys.modules, name)
    monkeypatch.setitem(sys.modules, "torch", None)
    with pytest.raises(HushsplatError, match=r"needs PyTorch; install it with: pip install 'hushsplat\[learn\]'"):
        torch_denoisers(["temporal-zero-shot"], None)
