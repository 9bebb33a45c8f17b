"""The roofline's arithmetic by hand, and that its counts are those of the code."""

import numpy as np
import pytest

from hushsplat.evaluation.bench import Row, bytes_per_pixel
from hushsplat.evaluation.roofline import SIGMOID, SILU, Peak, measure_peak, network_flops, passes, rooflines
from hushsplat.spec.state import TEMPORAL

CHANNELS = TEMPORAL.floats


def row(method: str, median_ms: float) -> Row:
    return Row("scene", 1000, 1000, 500, method, 2, median_ms, median_ms, 1, 1, 100.0)


def test_the_roofline_is_the_longer_of_arithmetic_and_memory() -> None:
    work = passes(zero_shot=True)
    flops, moved = sum(part.flops for part in work), sum(part.bytes for part in work)
    peak = Peak(flops_per_second=flops * 50e6, bytes_per_second=moved * 100e6)
    (found,) = rooflines([row("temporal-zero-shot", 30.0), row("raw", 3.0), row("raw+temporal", 4.0)], {2: peak})
    assert found.compute_ms == pytest.approx(10.0)  # half a million pixels at fifty million a second
    assert found.memory_ms == pytest.approx(5.0)
    assert found.bound_ms == pytest.approx(10.0)
    assert found.ratio == pytest.approx(3.0)
    slow_memory = Peak(peak.flops_per_second, peak.bytes_per_second / 4)
    (found,) = rooflines([row("temporal-zero-shot", 30.0)], {2: slow_memory})
    assert found.bound_ms == pytest.approx(20.0)
    assert found.ratio == pytest.approx(1.5)


def test_the_network_is_counted_layer_by_layer() -> None:
    pointwise, depthwise, head = 2 * 8 * 8, 2 * 8 * 9, 2 * 8
    accumulated = 4 * pointwise + 2 * depthwise + head + 32 * SILU + SIGMOID
    denoised = depthwise + head + 8 * SILU + SIGMOID
    assert network_flops() == accumulated + denoised


def test_bytes_are_what_a_step_is_given_and_gives_back() -> None:
    given = 3 + 1 + CHANNELS  # colour, depth, state; floats
    back = CHANNELS + 3  # state, picture
    held = bytes_per_pixel("temporal-zero-shot")
    pyramid = held - 2 * CHANNELS * 4
    zero_shot = sum(part.bytes for part in passes(zero_shot=True))
    assert zero_shot == pytest.approx(4 * (given + back) + 2 * pyramid)  # the pyramid is written and read again
    assert sum(part.bytes for part in passes(zero_shot=False)) == pytest.approx(zero_shot + 4 * 4)  # V0 .. V3


def test_only_trust_and_filter_differ_with_a_payload() -> None:
    differing = {a.name for a, b in zip(passes(True), passes(False), strict=True) if a != b}
    assert differing == {"trust", "filter"}


def test_the_peak_of_this_machine_is_a_number() -> None:
    peak = measure_peak(1)
    assert np.isfinite([peak.flops_per_second, peak.bytes_per_second]).all()
    assert min(peak.flops_per_second, peak.bytes_per_second) > 1e7
