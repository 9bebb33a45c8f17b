"""The frame loop."""

from __future__ import annotations

from dataclasses import replace

import pytest

import hushsplat
from hushsplat.engines.base import engine
from hushsplat.methods import configure
from hushsplat.spec.settings import DenoiserSettings
from hushsplat.stream import Stream

CAMERA = hushsplat.home_camera(48, 32)


@pytest.fixture(scope="module")
def stream() -> Stream:
    cpu = engine()
    return Stream(cpu, cpu.upload(hushsplat.room_and_garden(2_000)), [])


def test_replaced_methods_keep_states_by_name(stream: Stream) -> None:
    stream.replace_methods(["mean", "hush", "raw"])  # without payload hush-zero-shot draws
    for _ in range(3):
        stream.step(CAMERA)
    settings = replace(DenoiserSettings(), accumulated_cap_frames=50.0)
    stream.replace_methods(["exact", configure("hush-zero-shot", settings=settings), "taa"])
    kept = stream.states
    assert [state and state.method for state in kept] == [None, "hush-zero-shot", None]
    stream.step(CAMERA)
    assert stream.states[1].accumulated_frames.max() == 4
    stream.replace_methods(["raw", "mean"])
    assert stream.states == [None, None]
