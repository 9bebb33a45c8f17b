"""Adaptive resolution and detail on machines of different speeds."""

from __future__ import annotations

import pytest

from hushsplat.viewer.pace import HOLD, LEVELS, TARGET_MS, Pace, Step


def drive(pace: Pace, fixed_ms: float, pixels_ms: float, frames: int = 120) -> list[float]:
    """The scales while the camera moves, on a machine with these times."""
    scales = []
    for _ in range(frames):
        scales.append(pace.step.scale)
        pace.took(pace.step, fixed_ms + pixels_ms * pace.step.scale**2)
    return scales


@pytest.mark.parametrize(
    ("fixed_ms", "pixels_ms", "scale"),
    [
        (2.0, 10.0, 1.0),  # a fast machine
        (10.0, 60.0, 0.8),  # 48 ms
        (10.0, 150.0, 0.5),  # 47 ms
        (10.0, 2000.0, 0.25),  # as low as it gets
        (100.0, 400.0, 0.25),  # slow, but without the pixels it would be three times as slow
    ],
)
def test_scale_settles_at_the_largest_within_the_target_time(fixed_ms: float, pixels_ms: float, scale: float) -> None:
    assert drive(Pace(), fixed_ms, pixels_ms)[-60:] == [scale] * 60


def test_scale_is_not_lowered_where_pixels_cost_little() -> None:
    scales = drive(Pace(), 100.0, 40.0, frames=1000)
    assert 0.25 in scales  # it was tried
    assert scales.count(0.64) > 0.9 * len(scales)
    first = scales.index(0.25)
    assert 0.25 not in scales[first + 10 : first + HOLD]


def test_scale_follows_the_load_of_the_machine() -> None:
    pace = Pace()
    calm = drive(pace, 10.0, 60.0)[-1]
    assert drive(pace, 40.0, 240.0)[-1] < calm
    assert drive(pace, 10.0, 60.0)[-1] == calm


def test_scale_ignores_a_single_slow_frame() -> None:
    pace = Pace()
    drive(pace, 10.0, 60.0)
    before = pace.step
    pace.took(before, 1.5 * TARGET_MS)
    assert pace.step == before


def test_scale_ignores_frames_of_another_step() -> None:
    pace = Pace()
    before = pace.step
    for _ in range(20):
        pace.took(Step(0.123), 10 * TARGET_MS)
    assert pace.step == before


def drive_shown(pace: Pace, drawn_ms: float, page_ms: float, frames: int = 300) -> list[float]:
    """The scales where a frame is drawn while the page shows the one before, which takes as long at any size."""
    scales = []
    for _ in range(frames):
        scales.append(pace.step.scale)
        drawn = drawn_ms * (0.35 + 0.65 * pace.step.scale**2)
        waited = max(0.0, page_ms - drawn)
        pace.took(pace.step, waited + drawn, waited)
    return scales


def test_time_of_the_page_is_not_paid_for_with_pixels() -> None:
    assert drive_shown(Pace(), 30.0, 38.0)[-1] == 1.0  # 38 ms at any size
    assert drive_shown(Pace(), 100.0, 43.0)[-1] == 0.5  # 51 ms


def test_sharper_step_that_was_too_slow_is_not_tried_soon_again() -> None:
    pace, scales = Pace(), []
    for _ in range(400):  # a slow connection: the time goes with the pixels, and all of it is waiting
        scales.append(pace.step.scale)
        pace.took(pace.step, 160 * pace.step.scale**2, 150 * pace.step.scale**2)
    changes = [frame for frame in range(1, 400) if scales[frame] != scales[frame - 1]]
    assert 0.5 <= min(scales[50:]) <= max(scales[50:]) <= 0.64
    assert len(changes) < 20
    assert scales[100:].count(0.5) > 0.7 * 300


def drive_levels(gaussians_ms: float, pixels_ms: float) -> Step:
    """Where it settles on a scene with levels, whose Gaussians take so long at a spacing of 15 px."""
    pace = Pace(has_levels=True)
    for _ in range(200):
        pace.took(pace.step, gaussians_ms * (15 / pace.step.spacing_px) ** 0.8 + pixels_ms * pace.step.scale**2)
    return pace.step


def test_with_levels_gaussians_are_fewer_before_pixels_are() -> None:
    assert drive_levels(10.0, 30.0) == LEVELS[0]
    assert drive_levels(80.0, 20.0) == Step(0.64, 45.0)
    assert drive_levels(300.0, 300.0) == LEVELS[-1]
