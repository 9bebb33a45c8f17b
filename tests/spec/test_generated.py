"""Everything that is generated from the declarations is up to date, complete and means the same on both sides."""

from __future__ import annotations

import importlib.util
import re
import subprocess
import sys
from dataclasses import fields
from pathlib import Path
from typing import Any, Literal, get_args, get_origin, get_type_hints

import numpy as np
import pytest

from hushsplat.engines.cpu import _engine
from hushsplat.engines.cpu.arrays import native_settings
from hushsplat.spec.passes import VIEWS, WRITTEN_VIEWS
from hushsplat.spec.settings import (
    DECLARED_SETTINGS,
    LITERAL_SVGF,
    PAPER,
    TUNED_SVGF,
    DenoiserSettings,
)
from hushsplat.spec.state import LAYOUTS
from hushsplat.spec.weights import PACKED, SHAPES, DenoiserWeights, packed
from hushsplat.types.settings import Settings, declared

ROOT = Path(__file__).resolve().parents[2]
GENERATOR = ROOT / "tools" / "generate.py"
SPEC = importlib.util.spec_from_file_location("generate", GENERATOR)
generate = importlib.util.module_from_spec(SPEC)
SPEC.loader.exec_module(generate)
FILES = generate.generated()
EVERY_SETTING = [(kind, each.name) for kind in DECLARED_SETTINGS for each in fields(kind)]
KINDS = pytest.mark.parametrize("kind", DECLARED_SETTINGS, ids=lambda kind: kind.__name__)


@pytest.mark.parametrize("path", FILES, ids=lambda path: path.name)
def test_generated_file_is_up_to_date(path: Path) -> None:
    assert path.read_text(encoding="utf-8") == FILES[path], "run: python tools/generate.py"


def run(root: Path, *arguments: str) -> subprocess.CompletedProcess:
    """The generator of a copy of the tree, of which only what it reads and writes is there."""
    command = [sys.executable, str(root / "tools" / "generate.py"), *arguments]
    return subprocess.run(command, capture_output=True, text=True, check=False)


@pytest.fixture
def copy(tmp_path: Path) -> Path:
    """A copy of every generated file and of the generator."""
    for path in (*FILES, GENERATOR):
        target = tmp_path / path.relative_to(ROOT)
        target.parent.mkdir(parents=True, exist_ok=True)
        target.write_bytes(path.read_bytes())
    return tmp_path


def test_check_names_what_has_drifted_and_writing_mends_it(copy: Path) -> None:
    assert run(copy, "--check").returncode == 0
    header = copy / "src" / "hushsplat" / "engines" / "cpu" / "native" / "spec.h"
    before = header.read_text()
    header.write_text(before.replace("tau_frames", "tau"))
    found = run(copy, "--check")
    assert found.returncode == 1 and "spec.h" in found.stdout and "+    float tau_frames;" in found.stdout
    assert header.read_text() != before  # --check changes nothing
    assert run(copy).stdout == f"wrote {header.relative_to(copy)}\n"
    assert header.read_text() == before


@pytest.mark.parametrize("mark", ["<!-- generated: settings -->", "<!-- end of views -->"])
def test_a_doc_without_its_marks_is_reported(copy: Path, mark: str) -> None:
    doc = copy / "docs" / "denoiser.md"
    doc.write_text(doc.read_text(encoding="utf-8").replace(mark, ""), encoding="utf-8")
    found = run(copy, "--check")
    assert found.returncode != 0
    assert "denoiser.md: the marks" in found.stderr and mark in found.stderr


def choices_of(kind: type[Settings], name: str) -> tuple[Any, ...]:
    hint = get_type_hints(kind)[name]
    return (False, True) if hint is bool else get_args(hint) if get_origin(hint) is Literal else ()


def values_of(kind: type[Settings], name: str) -> list[Any]:
    """Values of a setting that are all allowed: every choice, or the default, the ends and one between."""
    if choices := choices_of(kind, name):
        return list(choices)
    each = declared(kind)[name]
    middle = type(getattr(kind(), name))((each.low + min(each.high, each.low + 7)) / 2)
    return [getattr(kind(), name), type(middle)(each.low), middle, type(middle)(each.high)]


@pytest.mark.parametrize(("kind", "name"), EVERY_SETTING, ids=lambda each: getattr(each, "__name__", each))
def test_every_setting_reaches_the_native_struct_under_its_name(kind: type[Settings], name: str) -> None:
    choices = choices_of(kind, name)
    named = any(isinstance(choice, str) for choice in choices)
    others = {each.name: getattr(native_settings(kind()), each.name) for each in fields(kind) if each.name != name}
    for value in values_of(kind, name):
        native = native_settings(kind(**{name: value}))
        found = getattr(native, name)
        if named:
            assert found == choices.index(value)
        elif isinstance(value, float):
            assert found == np.float32(value)
        else:
            assert found == value and type(found) is type(value)
        assert {each: getattr(native, each) for each in others} == others  # no other field was meant


@pytest.mark.parametrize("settings", [DenoiserSettings(), PAPER, TUNED_SVGF, LITERAL_SVGF], ids=repr)
def test_whole_settings_make_the_round_trip(settings: Settings) -> None:
    native = native_settings(settings)
    for each in fields(settings):
        value, choices = getattr(settings, each.name), choices_of(type(settings), each.name)
        if any(isinstance(choice, str) for choice in choices):
            value = choices.index(value)
        assert getattr(native, each.name) == (np.float32(value) if isinstance(value, float) else value), each.name


@KINDS
def test_the_native_struct_has_the_declared_fields_and_no_others(kind: type[Settings]) -> None:
    native = [name for name in dir(getattr(_engine, kind.__name__)) if not name.startswith("_")]
    assert sorted(native) == sorted(each.name for each in fields(kind))


@pytest.mark.parametrize(("kind", "name"), EVERY_SETTING, ids=lambda each: getattr(each, "__name__", each))
def test_values_out_of_range_are_refused_by_the_native_struct(kind: type[Settings], name: str) -> None:
    native = getattr(_engine, kind.__name__)()
    choices, each = choices_of(kind, name), declared(kind)[name]
    if set(choices) == {False, True}:
        with pytest.raises(TypeError):
            setattr(native, name, 2)
        return
    if any(isinstance(choice, str) for choice in choices):
        outside = [-1, len(choices)]
    elif choices:
        outside = [min(choices) - 1, max(choices) + 1]
    elif isinstance(getattr(kind(), name), int):
        outside = [int(each.low) - 1, int(each.high) + 1]
    else:
        outside = [np.nextafter(np.float32(each.low), np.float32(-np.inf)) - 1e-9, 2 * each.high, np.nan]
    for value in outside:
        with pytest.raises(ValueError, match=f"^{name} is out of range$"):
            setattr(native, name, type(getattr(native, name))(value))


WGSL = FILES[ROOT / "src" / "hushsplat" / "engines" / "webgpu" / "shaders" / "spec.wgsl"]


@KINDS
def test_wgsl_has_every_field_in_order(kind: type[Settings]) -> None:
    body = re.search(rf"struct {kind.__name__} {{\n(.*?)\n}}", WGSL, re.DOTALL).group(1)
    found = re.findall(r"(\w+): (\w+),", body)
    hints = get_type_hints(kind)
    names = [f"{each.name}_" if each.name in generate.WGSL_RESERVED else each.name for each in fields(kind)]
    types = ["f32" if hints[each.name] is float else "u32" for each in fields(kind)]
    assert found == list(zip(names, types, strict=True))


def test_wgsl_declares_no_reserved_word() -> None:
    """A shader that declares one is refused; `smooth` is one of them."""
    names = re.findall(r"(?:const|struct) (\w+)|^    (\w+):", WGSL, re.MULTILINE)
    assert "smooth_" in {name for pair in names for name in pair}
    assert not {name for pair in names for name in pair} & generate.WGSL_RESERVED


def test_wgsl_has_the_place_of_every_channel_and_layer() -> None:
    constants = dict(re.findall(r"const (\w+): u32 = (\d+)u;", WGSL))
    for layout in LAYOUTS.values():
        prefix = layout.name.replace("-", "_").upper()
        assert int(constants[f"{prefix}_FLOATS"]) == layout.floats
        for name, place in layout.places.items():
            assert int(constants[f"{prefix}_{name.upper()}"]) == (place.start if isinstance(place, slice) else place)
    rng = np.random.default_rng(0)
    tensors = {name: rng.random(shape, dtype=np.float32) + 1 for name, shape in SHAPES.items()}
    flat = packed(DenoiserWeights(tensors))
    assert int(constants["WEIGHTS_FLOATS"]) == len(flat) == _engine.DENOISER_FLOATS
    assert flat[int(constants["WEIGHTS_GAMMA"])] == tensors["gate.gamma"]
    for name, tensor in PACKED:
        assert flat[int(constants[f"WEIGHTS_{name.upper()}"])] == tensors[f"{tensor}.weight"].flat[0]
        bias = int(constants[f"WEIGHTS_{name.upper()}_BIAS"])
        np.testing.assert_array_equal(flat[bias : bias + len(tensors[f"{tensor}.bias"])], tensors[f"{tensor}.bias"])


@KINDS
def test_the_stub_has_every_field(kind: type[Settings]) -> None:
    stub = FILES[ROOT / "src" / "hushsplat" / "engines" / "cpu" / "_engine.pyi"]
    body = re.search(rf"class {kind.__name__}:\n((?:    .*\n)+)", stub).group(1)
    assert re.findall(r"    (\w+): \w+", body) == [each.name for each in fields(kind)]


def test_the_written_views_fill_the_native_buffer() -> None:
    assert sum(view.floats for view in WRITTEN_VIEWS) == _engine.VIEW_FLOATS


def test_docs_list_every_setting_channel_and_view() -> None:
    doc = FILES[ROOT / "docs" / "denoiser.md"]
    for name in (*declared(DenoiserSettings), *LAYOUTS["temporal"].places, *VIEWS):
        assert f"| `{name}` |" in doc


def test_every_slider_lies_within_the_range_of_its_setting() -> None:
    sliders = {name: each for name, each in declared(DenoiserSettings).items() if each.slider is not None}
    script = FILES[ROOT / "src" / "hushsplat" / "viewer" / "static" / "settings.js"]
    assert re.findall(r'"name": "(\w+)"', script) == list(sliders)
    for name, each in sliders.items():
        ends = [2.0**end if each.slider.power_of_two else end for end in (each.slider.low, each.slider.high)]
        for end in (*ends, getattr(DenoiserSettings(), name)):
            DenoiserSettings(**{name: float(end)})  # refused if outside
        assert ends[0] <= getattr(DenoiserSettings(), name) <= ends[1]
