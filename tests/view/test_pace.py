"""How sharp moving frames are, on machines of all speeds."""

from __future__ import annotations

import pytest

from hushsplat.view.pace import SCALES, TARGET_MS, Pace


def driven(fixed_ms: float, pixels_ms: float, frames: int = 80) -> list[float]:
    """The scales on a machine with these times: a few sharp frames, then a moving camera."""
    pace, scales = Pace(), []
    for _ in range(3):
        pace.took_sharp(fixed_ms + pixels_ms)
    for _ in range(frames):
        scale = pace.scale
        scales.append(scale)
        pace.took(scale, fixed_ms + pixels_ms * scale**2)
    return scales


@pytest.mark.parametrize(
    ("fixed_ms", "pixels_ms", "scale"),
    [
        (2.0, 10.0, 1.0),  # a fast machine
        (10.0, 60.0, 0.8),  # 48 ms
        (10.0, 150.0, 0.5),  # 47 ms
        (10.0, 2000.0, 0.25),  # as low as it gets
        (100.0, 40.0, 1.0),  # fewer pixels would hardly help
        (100.0, 400.0, 0.32),  # but here they do: half as long as what is fixed
    ],
)
def test_settles_at_the_sharpest_that_is_in_time(fixed_ms: float, pixels_ms: float, scale: float) -> None:
    assert driven(fixed_ms, pixels_ms)[-20:] == [scale] * 20


def test_begins_near_where_it_settles() -> None:
    scales = driven(10.0, 150.0)
    assert abs(SCALES.index(scales[0]) - SCALES.index(scales[-1])) <= 1


def test_follows_a_machine_that_gets_busy_and_free_again() -> None:
    pace = Pace()

    def drive(slower: float) -> float:
        for _ in range(20):
            pace.took_sharp(70.0 * slower)
        for _ in range(60):
            pace.took(pace.scale, slower * (10 + 60 * pace.scale**2))
        return pace.scale

    calm = drive(1.0)
    assert drive(4.0) < calm
    assert drive(1.0) == calm


def test_a_frame_of_another_scale_teaches_nothing() -> None:
    pace = Pace()
    before = pace.scale
    for _ in range(20):
        pace.took(0.123, 10 * TARGET_MS)
    assert pace.scale == before
