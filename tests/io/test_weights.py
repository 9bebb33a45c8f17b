"""The denoiser's weights file: round trip, and every way in which a file does not fit."""

import json
import subprocess
import sys

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from safetensors.numpy import save

from hushsplat.io import weights as module
from hushsplat.io.weights import METADATA, read_weights, write_weights
from hushsplat.spec.weights import SHAPES, DenoiserWeights
from hushsplat.types.errors import HushsplatError, WeightsError


@pytest.fixture
def tensors():
    rng = np.random.default_rng(0)
    made = {name: rng.normal(size=shape).astype(np.float32) for name, shape in SHAPES.items()}
    made["gate.gamma"] = np.array(3.5, dtype=np.float32)
    return made


def refused(path, tensors, message, metadata=METADATA):
    path.write_bytes(save(tensors, metadata=metadata))
    with pytest.raises(WeightsError, match=message) as error:
        read_weights(path)
    assert str(error.value).startswith(f"{path}: ")


def test_round_trip(tmp_path, tensors):
    write_weights(DenoiserWeights(tensors), tmp_path / "w.safetensors")
    again = read_weights(tmp_path / "w.safetensors")
    assert set(again.tensors) == set(SHAPES)
    for name, tensor in tensors.items():
        np.testing.assert_array_equal(again[name], tensor)
        assert again[name].shape == SHAPES[name]
    assert again.gamma == 3.5


def test_metadata_names_format_version_and_width(tmp_path, tensors):
    write_weights(DenoiserWeights(tensors), tmp_path / "w.safetensors")
    content = (tmp_path / "w.safetensors").read_bytes()
    header = json.loads(content[8 : 8 + int.from_bytes(content[:8], "little")])
    assert header["__metadata__"] == {"format": "hushsplat-denoiser", "version": "1", "width": "8"}
    assert header["accumulated.4.weight"]["shape"] == [8, 1, 3, 3]
    assert len(content) < 8192


def test_arrays_in_any_memory_order_are_written(tmp_path, tensors):
    tensors["accumulated.0.weight"] = np.asfortranarray(tensors["accumulated.0.weight"])
    write_weights(DenoiserWeights(tensors), tmp_path / "w.safetensors")
    again = read_weights(tmp_path / "w.safetensors")
    np.testing.assert_array_equal(again["accumulated.0.weight"], tensors["accumulated.0.weight"])


def test_a_tensor_that_does_not_fit_is_named(tmp_path, tensors):
    path = tmp_path / "w.safetensors"
    wide = {**tensors, "accumulated.3.weight": np.zeros((16, 16, 1, 1), np.float32)}
    refused(path, wide, r"'accumulated\.3\.weight' has shape \[16, 16, 1, 1\], expected \[8, 8, 1, 1\]")
    refused(path, {**tensors, "extra": np.zeros(1, np.float32)}, "'extra' is unknown")
    half = {**tensors, "denoised.head.bias": np.zeros(1, np.float16)}
    refused(path, half, r"'denoised\.head\.bias' is of type float16, expected float32")
    whole = {**tensors, "denoised.head.bias": np.zeros(1, np.int8)}
    refused(path, whole, r"'denoised\.head\.bias' is of type I8, expected float32")
    broken = {**tensors, "denoised.head.bias": np.full(1, np.nan, np.float32)}
    refused(path, broken, r"'denoised\.head\.bias' holds values that are not finite")
    flat = {**tensors, "gate.gamma": np.ones(1, np.float32)}
    refused(path, flat, r"'gate\.gamma' has shape \[1\], expected \[\]")
    negative = {**tensors, "gate.gamma": np.array(-1, np.float32)}
    refused(path, negative, r"'gate\.gamma' is -1; it must be at least")
    del tensors["accumulated.head.weight"]
    refused(path, tensors, r"'accumulated\.head\.weight' is missing")


def test_metadata_that_does_not_fit_is_named(tmp_path, tensors):
    path = tmp_path / "w.safetensors"
    refused(path, tensors, "metadata 'format' is missing, expected 'hushsplat-denoiser'", metadata=None)
    refused(path, tensors, "metadata 'version' is '2', expected '1'", metadata={**METADATA, "version": "2"})
    refused(path, tensors, "metadata 'width' is '16', expected '8'", metadata={**METADATA, "width": "16"})


def test_files_that_are_no_weights_are_refused(tmp_path):
    path = tmp_path / "w.safetensors"
    path.write_bytes(b"not weights at all")
    with pytest.raises(WeightsError, match="is not a safetensors file"):
        read_weights(path)
    path.write_bytes(b"")
    with pytest.raises(WeightsError, match=r"w\.safetensors: "):
        read_weights(path)
    with pytest.raises(WeightsError, match="cannot be read: No such file"):
        read_weights(tmp_path / "absent.safetensors")
    with pytest.raises(WeightsError, match=r"^/.*: "):
        read_weights(tmp_path)


def test_a_file_too_large_is_not_opened(tmp_path, monkeypatch):
    path = tmp_path / "w.safetensors"
    with path.open("wb") as file:
        file.truncate(module.MAX_BYTES + 1)
    monkeypatch.setattr(module, "safe_open", None)
    with pytest.raises(WeightsError, match="has 1048577 bytes; weights of this denoiser have at most 1048576"):
        read_weights(path)


@settings(max_examples=200, deadline=None)
@given(data=st.data())
def test_a_damaged_file_is_read_or_refused(tmp_path_factory, data):
    tensors = {name: np.ones(shape, dtype=np.float32) for name, shape in SHAPES.items()}
    content = bytearray(save(tensors, metadata=METADATA))
    for _ in range(data.draw(st.integers(1, 3))):
        content[data.draw(st.integers(0, len(content) - 1))] = data.draw(st.integers(0, 255))
    del content[data.draw(st.integers(0, len(content))) :]
    path = tmp_path_factory.getbasetemp() / "damaged.safetensors"
    path.write_bytes(bytes(content))
    try:
        weights = read_weights(path)
    except WeightsError:
        return
    assert all(np.isfinite(weights[name]).all() for name in SHAPES)


def test_writing_fails_in_one_line(tmp_path, tensors):
    with pytest.raises(HushsplatError, match="does not exist; create it first"):
        write_weights(DenoiserWeights(tensors), tmp_path / "nowhere" / "w.safetensors")


def test_the_same_weights_make_the_same_bytes(tmp_path, tensors):
    """In other processes, too: the library orders metadata by a hash with a random seed."""
    write_weights(DenoiserWeights(tensors), tmp_path / "a.safetensors")
    code = (
        "import sys; from hushsplat.io.weights import read_weights, write_weights;"
        "write_weights(read_weights(sys.argv[1]), sys.argv[2])"
    )
    for name in "bcde":
        copy = tmp_path / f"{name}.safetensors"
        subprocess.run([sys.executable, "-c", code, str(tmp_path / "a.safetensors"), str(copy)], check=True)
        assert copy.read_bytes() == (tmp_path / "a.safetensors").read_bytes()
