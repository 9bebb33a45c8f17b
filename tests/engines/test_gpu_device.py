"""Adapters, their choice, and shaders bound by what they declare."""

import subprocess
import sys

import numpy as np
import pytest

from hushsplat.engines.base import Engine, engine
from hushsplat.engines.webgpu import adapters as listing
from hushsplat.engines.webgpu.adapters import Adapter, choose
from hushsplat.engines.webgpu.device import LIMITS, packed, source, struct_fields
from hushsplat.synth import home_camera, room_and_garden
from hushsplat.types.errors import RenderError
from hushsplat.types.options import Noise, RenderOptions


@pytest.fixture
def three_adapters(monkeypatch):
    found = tuple(
        Adapter(number, name, "1.0", "Vulkan", name == "llvmpipe", None)
        for number, name in enumerate(("Radeon RX 7900", "Radeon 780M", "llvmpipe"))
    )
    monkeypatch.setattr(listing, "adapters", lambda: found)


@pytest.mark.parametrize(
    ("wanted", "name"),
    [(None, "Radeon RX 7900"), (1, "Radeon 780M"), ("1", "Radeon 780M"), ("780m", "Radeon 780M"), ("LLVM", "llvmpipe")],
)
def test_an_adapter_is_chosen_by_number_or_part_of_its_name(three_adapters, wanted, name: str) -> None:
    assert choose(wanted).name == name


@pytest.mark.parametrize(
    ("wanted", "message"),
    [
        ("radeon", r"^several adapters match 'radeon'; choose one of 0: Radeon RX 7900 \(Vulkan\), 1: "),
        ("3", r"^no adapter matches '3'; choose one of .* 2: llvmpipe \(Vulkan, software\)\.$"),
    ],
)
def test_a_choice_that_is_not_one_lists_them(three_adapters, wanted: str, message: str) -> None:
    with pytest.raises(RenderError, match=message):
        choose(wanted)


def test_without_an_adapter_the_error_says_what_to_install(monkeypatch) -> None:
    monkeypatch.setattr(listing, "adapters", lambda: ())
    with pytest.raises(
        RenderError, match=r"^no GPU adapter was found; install .* mesa-vulkan-drivers .* or use the cpu"
    ):
        choose()


def test_without_wgpu_the_error_says_what_to_install_and_nothing_else_notices() -> None:
    program = """
import sys
sys.modules["wgpu"] = None
import hushsplat, hushsplat.cli.main
from hushsplat.engines.base import engine
engine("cpu")
try:
    engine("gpu")
except hushsplat.HushsplatError as error:
    print(error)
"""
    found = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)
    assert found.stdout == "the gpu engine needs wgpu; install it with: pip install 'hushsplat[gpu]'\n"


def test_the_engine_is_found_by_name_and_follows_the_protocol(gpu) -> None:
    found = engine("gpu")
    assert isinstance(found, Engine) and found.name == "gpu"


def test_the_device_has_the_limits_of_a_browser(gpu) -> None:
    for name, value in LIMITS.items():
        assert gpu.device.native.limits[name] == value, name


def test_a_struct_is_packed_in_the_order_of_its_declaration() -> None:
    assert struct_fields("levels", "Draw") == (("seed", "u32"), ("time", "u32"))
    assert packed("levels", "Draw", {"time": 7, "seed": 2**32 - 1}) == np.array([2**32 - 1, 7], np.uint32).tobytes()
    with pytest.raises(ValueError, match="Draw has the fields"):
        packed("levels", "Draw", {"seed": 1})


def test_a_file_is_included_once() -> None:
    assert source("raster").count("fn mix32") == 1 and "//!include" not in source("raster")


def test_buffers_are_used_again_and_freed(gpu) -> None:
    device = gpu.device
    device.release_memory()
    first = device.upload(np.arange(1000, dtype=np.float32))
    held = first.native
    np.testing.assert_array_equal(device.read(first), np.arange(1000))
    del first
    again = device.buffer(4000)
    assert again.native is held
    other = device.buffer(4000)
    assert other.native is not held
    del again
    device.release_memory()
    assert device.buffer(4000).native is not held


def test_passes_are_timed_by_name_where_the_adapter_has_a_clock(gpu) -> None:
    scene, camera = room_and_garden(2000, sh_degree=0), home_camera(60, 40)
    uploaded = gpu.upload(scene)
    gpu.sample(uploaded, camera, Noise(), RenderOptions())
    assert not gpu.device.passes_ms  # not unless asked
    with gpu.timed_passes() as passes_ms:
        gpu.sample(uploaded, camera, Noise(3), RenderOptions())
    passes = {
        "levels",
        "chunks",
        "cull",
        "scan",
        "scatter",
        "raster",
        "winners",
    }  # a driver may time fewer
    assert set(passes_ms) <= passes and all(time_ms > 0 for time_ms in passes_ms.values())
    assert bool(passes_ms) == ("timestamp-query" in gpu.device.features)
    before = dict(passes_ms)
    gpu.sample(uploaded, camera, Noise(), RenderOptions())
    assert passes_ms == before


def test_too_large_a_buffer_is_refused_in_one_line(gpu) -> None:
    with pytest.raises(RenderError, match=r"has at most \d+ MiB in one buffer, \d+ are needed; draw a smaller picture"):
        gpu.device.buffer(gpu.device.most_bytes + 1)
