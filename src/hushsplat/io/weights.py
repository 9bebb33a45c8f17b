"""The denoiser's weights as a safetensors file with a format tag in its metadata (docs/denoiser.md, "Weights")."""

from __future__ import annotations

import json
import os
import struct
from functools import cache
from importlib.resources import as_file, files
from pathlib import Path

import numpy as np
from safetensors import SafetensorError, safe_open
from safetensors.numpy import save

from hushsplat.io.atomic import atomic_write
from hushsplat.spec.weights import SHAPES, WIDTH, DenoiserWeights, check_tensor
from hushsplat.types.errors import WeightsError

METADATA = {"format": "hushsplat-denoiser", "version": "1", "width": str(WIDTH)}
MAX_BYTES = 1 << 20  # ours: the weights are 3 kB; the rest is room for a trainer's notes in the metadata
_NUMPY_TYPES = {"F64": "float64", "F32": "float32", "F16": "float16", "BF16": "bfloat16"}  # the likely ones, for errors


def read_weights(path: str | os.PathLike[str]) -> DenoiserWeights:
    """Read the weights of a learned denoiser.

    Args:
        path: of a .safetensors file.

    Returns:
        The weights, checked.

    Raises:
        WeightsError: if the file is damaged or does not fit this denoiser; it names the tensor.
    """
    try:
        return _read(Path(path))
    except WeightsError as error:
        raise WeightsError(f"{path}: {error}") from error
    except SafetensorError as error:
        raise WeightsError(f"{path}: is not a safetensors file: {error}.") from error
    except OSError as error:
        raise WeightsError(f"{path}: cannot be read: {error.strerror or error}.") from error


@cache
def default_weights(name: str) -> DenoiserWeights:
    """Weights that come with the package: `paper` or `temporal`."""
    resource = files("hushsplat").joinpath("data", f"{name}.safetensors")
    if not resource.is_file():
        raise WeightsError(
            f"{resource}: the weights of the package are not there; install it again, or give a file of weights."
        )
    with as_file(resource) as path:
        return read_weights(path)


def write_weights(weights: DenoiserWeights, path: str | os.PathLike[str]) -> None:
    """Write the weights of a learned denoiser.

    Args:
        weights: to write.
        path: of the .safetensors file.
    """
    content = save({name: np.asarray(weights[name], order="C") for name in SHAPES}, metadata=METADATA)
    with atomic_write(path) as temporary:
        temporary.write_bytes(sorted_header(content))


def sorted_header(content: bytes) -> bytes:
    """The same safetensors file with its header in order: the library writes metadata in a random one."""
    (size,) = struct.unpack_from("<Q", content)
    header = json.loads(content[8 : 8 + size])
    header["__metadata__"] = dict(sorted(header.get("__metadata__", {}).items()))
    text = json.dumps(header, separators=(",", ":"), ensure_ascii=False).encode()
    text += b" " * (-len(text) % 8)  # tensors begin at a multiple of eight bytes
    return struct.pack("<Q", len(text)) + text + content[8 + size :]


def _read(path: Path) -> DenoiserWeights:
    size = path.stat().st_size
    if size > MAX_BYTES:
        raise WeightsError(f"has {size} bytes; weights of this denoiser have at most {MAX_BYTES}.")
    with safe_open(os.fspath(path), framework="numpy") as file:
        _check_metadata(file.metadata() or {})
        names = list(file.keys())
        for name in names:  # before any of them is read
            tensor = file.get_slice(name)
            kind = tensor.get_dtype()
            check_tensor(name, tuple(tensor.get_shape()), _NUMPY_TYPES.get(kind, kind))
        return DenoiserWeights({name: file.get_tensor(name) for name in names})


def _check_metadata(metadata: dict[str, str]) -> None:
    for key, expected in METADATA.items():
        if metadata.get(key) != expected:
            found = f"is '{metadata[key]}'" if key in metadata else "is missing"
            raise WeightsError(f"metadata '{key}' {found}, expected '{expected}'; is this a denoiser of hushsplat?")
