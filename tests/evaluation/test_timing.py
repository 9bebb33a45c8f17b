"""What is said about times, by hand; the times themselves are not tested."""

import numpy as np
import pytest

from hushsplat.evaluation import bench as timing
from hushsplat.evaluation.bench import Case, Row, measure, ratios, spread
from hushsplat.types.camera import Camera
from hushsplat.types.errors import RenderError
from hushsplat.types.gaussians import Gaussians
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


def test_ratios_hold_like_against_like() -> None:
    rows = [
        row("small", 100, "raw", 1, 4.0),
        row("small", 100, "reference", 1, 8.0),
        row("small", 100, "raw", 2, 2.5),
        row("large", 1000, "raw", 1, 12.0),
        row("large", 1000, "raw", 1, 99.0, width=160),
        row("file", 9999, "raw", 1, 50.0),
        row("small", 100, "raw+hush", 1, 12.0),
        row("small", 100, "hush", 1, 6.0),
    ]
    found = {(ratio.name, ratio.scene, ratio.width): ratio.value for ratio in ratios(rows, ["small", "large"])}
    assert found == {
        ("raw / reference", "small", 80): 0.5,
        ("raw+hush / reference", "small", 80): 1.5,
        ("1 thread / 2 threads", "small", 80): 1.6,
        ("10× the Gaussians", "large", 80): 3.0,
    }


def test_every_round_takes_one_frame_of_each_and_nobody_is_always_first(monkeypatch: pytest.MonkeyPatch) -> None:
    calls: list[tuple[str, int]] = []
    for name in ("raw", "reference"):
        monkeypatch.setitem(timing.FRAMES, name, lambda g, c, options, frame, name=name: calls.append((name, frame)))
    steps: list[None] = []
    case = Case("one", one_gaussian(), cameras(1))
    rows = measure(case, ("raw", "reference"), (1,), 2, lambda: steps.append(None))
    warm_up, timed = calls[:2], calls[2:]
    assert [name for name, _ in warm_up] == ["raw", "reference"]
    assert timed == [("raw", 0), ("reference", 0), ("reference", 1), ("raw", 1)]
    assert len(steps) == 4
    assert [(r.method, r.threads, r.rounds, r.cameras) for r in rows] == [("raw", 1, 2, 1), ("reference", 1, 2, 1)]


def test_median_over_rounds_then_mean_over_cameras(monkeypatch: pytest.MonkeyPatch) -> None:
    clock = iter(np.cumsum([0, 1, 0, 10, 0, 2, 0, 20, 0, 99, 0, 30]) / 1000)  # rounds 1, 2, 99 and 10, 20, 30 ms
    monkeypatch.setattr(timing, "perf_counter", lambda: float(next(clock)))
    monkeypatch.setitem(timing.FRAMES, "raw", lambda *_: None)
    (found,) = measure(Case("one", one_gaussian(), cameras(2)), ("raw",), (1,), 3)
    assert found.median_ms == pytest.approx((2 + 20) / 2)
    assert found.fastest_ms == pytest.approx((1 + 10) / 2)


def test_spread_takes_cameras_evenly_and_resizes_them() -> None:
    many = cameras(11)
    few = spread(many, 3, 8, 6)
    assert [camera.position.tolist() for camera in few] == [many[i].position.tolist() for i in (0, 5, 10)]
    assert {(camera.width, camera.height) for camera in few} == {(8, 6)}
    assert len(spread(many, 99, 8, 6)) == 11


def test_wrong_measurements_are_refused() -> None:
    case = Case("one", one_gaussian(), cameras(1))
    with pytest.raises(
        RenderError, match=r"methods must be of raw, reference, exact, .*hush, .*raw\+hush, .*got 'blurry'"
    ):
        measure(case, ("blurry",), (1,), 1)
    with pytest.raises(RenderError, match="a measurement needs at least one round, one camera"):
        measure(case, ("raw",), (1,), 0)
