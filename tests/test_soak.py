"""Short runs of tools/soak.py, and that it finds what it looks for."""

from __future__ import annotations

import sys
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

sys.path.insert(0, str(Path(__file__).resolve().parent.parent / "tools"))
import soak

pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="reads memory from /proc")


@pytest.fixture
def run() -> soak.DenoiserSoak:
    return soak.DenoiserSoak(24, 16, 1000, say=lambda text: None)


def test_hostile_frames_leave_nothing_behind(run: soak.DenoiserSoak, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(soak, "STEADY_FRAMES", 40)
    for action in run.counts:
        for _ in range(3):
            run.step(action)
    assert run.run(60) == []


def test_drift_and_values_that_are_not_finite_are_found(
    run: soak.DenoiserSoak, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(soak, "STEADY_FRAMES", 3)
    step = run.stream.step

    def brighter(camera: Any) -> Any:
        frame = step(camera)
        images = [replace(image.numpy(), color=image.numpy().color + np.float32(0.1)) for image in frame.images]
        return replace(frame, images=tuple(images))

    run.stream.step = brighter  # type: ignore[method-assign, assignment]
    assert "above that of a fresh start" in run.run(5)[-1]

    def broken(camera: Any) -> Any:
        frame = step(camera)
        return replace(
            frame, images=(replace(frame.images[0], color=frame.images[0].color * np.nan), *frame.images[1:])
        )

    run.stream.step = broken  # type: ignore[method-assign, assignment]
    run.step("still")
    assert "temporal-zero-shot: frame" in run.problems[-1] and "is not finite" in run.problems[-1]


def test_clients_come_and_go() -> None:
    with ThreadPoolExecutor(1) as threads:  # a browser of other tests may have left an event loop in this one
        problems = threads.submit(soak.run_viewer, minutes=0, clients=4, at_once=3, scene="synth:1k").result()
    assert problems == []
