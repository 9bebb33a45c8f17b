"""Every engine computes what the torch engine has stored: renderers and denoisers, output by output.

An engine is one line in ENGINES. `python tools/make_conformance.py` makes the stored files anew.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import pytest
from cases import (
    BLENDED,
    DATA,
    DENOISE_CASES,
    RENDER_CASES,
    Arrays,
    DenoiseCase,
    RenderCase,
    denoise_outputs,
    render_outputs,
    resize_outputs,
    stored,
)

from hushsplat.engines.base import Engine, engine
from hushsplat.engines.cpu import _engine
from hushsplat.types.errors import RenderError

sys.path.insert(0, str(Path(__file__).resolve().parents[2] / "tools"))

import make_conformance


@contextmanager
def on_cpu(instruction_set: str) -> Iterator[Engine]:
    """The CPU engine with the kernels of one instruction set."""
    in_use = _engine.instruction_set()
    _engine.choose_instruction_set(instruction_set)
    try:
        yield engine("cpu")
    finally:
        _engine.choose_instruction_set(in_use)


@contextmanager
def on(name: str) -> Iterator[Engine]:
    """An engine that has only one way to run."""
    yield engine(name)


ENGINES: dict[str, Callable[[], object] | None] = {
    **{f"cpu[{name}]": lambda name=name: on_cpu(name) for name in _engine.instruction_sets()},
    "torch": lambda: on("torch"),
    "gpu": None,  # the fixture of that engine: tests say so when there is no adapter
}


MISSING = {"gpu": ("exact",)}  # renderers that an engine refuses by name


@dataclass(frozen=True)
class Tolerance:
    """How far an output may be from the stored one; errors are relative where a value exceeds 1."""

    mean: float  # of all errors
    most: float  # of each error,
    odd: float = 0.0  # but for this share of the values


# Odd values: a fragment with alpha at 1/255 or two depths on each other (renderers); a place on the border of two
# pixels or a depth on a threshold (denoisers). One pixel of a renderer's picture is 0.003 of it, of a denoiser's 0.004.
TOLERANCES = {
    "visibility.id": Tolerance(mean=np.inf, most=0, odd=0.003),  # winners that differ
    "visibility.depth": Tolerance(mean=1e-3, most=1e-4, odd=0.003),
    "decode": Tolerance(mean=1e-5, most=1e-4),
    "reference": Tolerance(mean=5e-5, most=3e-4, odd=0.003),
    "exact": Tolerance(mean=5e-5, most=3e-4, odd=0.003),
    "shown": Tolerance(mean=5e-5, most=3e-4, odd=0.005),
    "view": Tolerance(mean=5e-5, most=3e-4, odd=0.005),
    "state": Tolerance(mean=5e-5, most=3e-4, odd=0.005),
}
DRIFT = 1e-4  # of a value made again by the torch engine, on any machine; relative where it exceeds 1


@pytest.fixture(params=ENGINES)
def each_engine(request: pytest.FixtureRequest) -> Iterator[Engine]:
    if request.param == "gpu":
        yield request.getfixturevalue("exact_gpu")
        return
    with ENGINES[request.param]() as found:
        yield found


def tolerance(output: str) -> Tolerance:
    """Of the longest name in the table that the output has in its own."""
    named = [name for name in TOLERANCES if f".{name}." in f".{output}."]
    return TOLERANCES[max(named, key=len)]


def errors(found: np.ndarray, expected: np.ndarray) -> np.ndarray:
    assert found.shape == expected.shape
    expected = expected.astype(np.float64)
    return np.abs(found - expected) / np.maximum(np.abs(expected), 1)


def assert_conforms(engine: Engine, outputs: Arrays, expected: Arrays) -> None:
    """All outputs within their tolerances; those of the torch engine, which made them, within DRIFT."""
    assert set(outputs) == set(expected)
    for output, found in outputs.items():
        allowed, error = tolerance(output), errors(found, expected[output])
        assert np.isfinite(found).all(), output
        if engine.name == "torch":
            assert error.max() <= DRIFT, output
        assert error.mean() <= allowed.mean, output
        assert (error > allowed.most).mean() <= allowed.odd, output


def outputs_of(arrays: Arrays) -> Arrays:
    return {name: array for name, array in arrays.items() if not name.startswith(("scene.", "camera"))}


@pytest.mark.parametrize("case", RENDER_CASES, ids=lambda case: case.name)
def test_renderers_conform(each_engine: Engine, case: RenderCase) -> None:
    arrays, missing = stored(f"render-{case.name}"), MISSING.get(each_engine.name, ())
    for method in missing:
        with pytest.raises(RenderError, match=f"the {each_engine.name} engine blends .*, not '{method}'; use the cpu"):
            render_outputs(each_engine, case, arrays, [method])
    found = render_outputs(each_engine, case, arrays, [name for name in BLENDED if name not in missing])
    expected = {name: array for name, array in outputs_of(arrays).items() if not name.startswith(missing)}
    assert_conforms(each_engine, found, expected)


@pytest.mark.parametrize("case", DENOISE_CASES, ids=lambda case: case.name)
def test_denoisers_conform(each_engine: Engine, case: DenoiseCase) -> None:
    outputs = denoise_outputs(each_engine, case, stored("stream"))
    assert_conforms(each_engine, outputs, stored(f"denoise-{case.name}"))


def test_resized_states_conform(each_engine: Engine) -> None:
    assert_conforms(each_engine, resize_outputs(each_engine, stored("stream")), stored("resize"))


def test_inputs_are_made_again_and_every_file_is_stored() -> None:
    """What tools/make_conformance.py would write: the inputs here, the outputs by the torch engine above."""
    assert {path.stem for path in DATA.glob("*.npz")} == set(make_conformance.generated_names())
    inputs = {f"render-{case.name}": make_conformance.scene_inputs(case, n) for n, case in enumerate(RENDER_CASES)}
    for name, arrays in {**inputs, "stream": make_conformance.stream_inputs()}.items():
        before = stored(name)
        for key, array in arrays.items():
            assert array.dtype == before[key].dtype, (name, key)
            assert errors(array, before[key]).max() <= DRIFT, (name, key)


def test_a_missing_file_fails() -> None:
    with pytest.raises(FileNotFoundError):
        stored("denoise-nothing")


def test_cases_differ_from_each_other() -> None:
    """Every setting that is switched changes a picture by more than an engine may be off."""
    plain = stored("denoise-temporal")
    for case in DENOISE_CASES:
        if case.method != "temporal" or case.name == "temporal":
            continue
        other = stored(f"denoise-{case.name}")
        assert max(errors(other[name], plain[name]).max() for name in other if "shown" in name) > 1e-2, case.name
    still = stored("denoise-temporal")["7.view.motion_px"]
    assert not still.any() and stored("denoise-temporal")["4.view.motion_px"].any()
