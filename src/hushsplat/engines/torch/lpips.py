"""LPIPS with VGG16, version 0.1 (Zhang et al. 2018): the perceptual distance of two pictures, differentiable.

The weights are not ours and do not ship: docs/evaluation.md says how to make the file.
"""

from __future__ import annotations

import math
import os
import zipfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import numpy as np
import torch
from jaxtyping import Float, UInt8
from numpy import ndarray as Array
from torch import Tensor
from torch.nn import functional

from hushsplat.types.errors import EvaluationError

# VGG16 up to its last block: numbers of the convolutions in torchvision's `features`, a pooling between blocks.
BLOCKS = ((0, 2), (5, 7), (10, 12, 14), (17, 19, 21), (24, 26, 28))
CHANNELS = (3, 64, 128, 256, 512, 512)  # into the first block, then out of each
# Of ImageNet's pictures, for values -1..1.
SHIFT, SCALE = (-0.030, -0.088, -0.188), (0.458, 0.448, 0.450)
HEADER_BYTES = 4096  # more than any header of an array in the file


class Lpips:
    """`lpips(a, b)` is the distance of two pictures."""

    def __init__(self, weights: dict[str, Tensor], rescale: bool = True) -> None:
        self._weights, self._rescale = weights, rescale

    def __call__(
        self,
        first: Float[Tensor, "n 3 h w"],  # values 0..1
        second: Float[Tensor, "n 3 h w"],
    ) -> Float[Tensor, " n"]:
        """One number for each pair: 0 for equal pictures, about 1 for unrelated ones."""
        total = torch.zeros(len(first), dtype=first.dtype, device=first.device)
        for block, (one, other) in enumerate(zip(self._features(first), self._features(second), strict=True)):
            head = self._weights[f"lin{block}.model.1.weight"]
            total = total + functional.conv2d((one - other) ** 2, head).mean(dim=(1, 2, 3))
        return total

    def _features(self, pictures: Tensor) -> Iterator[Tensor]:
        shift = pictures.new_tensor(SHIFT).view(1, 3, 1, 1)
        signed = 2 * pictures - 1 if self._rescale else pictures
        values = (signed - shift) / pictures.new_tensor(SCALE).view(1, 3, 1, 1)
        for block, layers in enumerate(BLOCKS):
            if block:
                values = functional.max_pool2d(values, 2)
            for layer in layers:
                weight, bias = (self._weights[f"features.{layer}.{kind}"] for kind in ("weight", "bias"))
                values = functional.relu(functional.conv2d(values, weight, bias, padding=1))
            yield values / (values.square().sum(dim=1, keepdim=True).sqrt() + 1e-10)


def load_lpips(
    path: str | os.PathLike[str],
    rescale: bool = True,  # to -1..1, as its authors do; False feeds 0..1, as 3DGS, 2DGS and gsplat do
) -> Lpips:
    """The network with the weights of a .npz file; every array is checked before it is read."""
    path = Path(path)
    try:
        with zipfile.ZipFile(path) as archive:
            sizes = {entry.filename: entry.file_size for entry in archive.infolist()}
        for name, shape in _shapes().items():
            _check_size(path, name, shape, sizes)
        with np.load(path, allow_pickle=False) as arrays:
            weights = {name: _checked(path, name, shape, arrays[name]) for name, shape in _shapes().items()}
    except OSError as error:
        raise EvaluationError(f"{path}: cannot be read: {error.strerror or error}.") from error
    except (ValueError, zipfile.BadZipFile) as error:
        raise EvaluationError(f"{path}: is no .npz of arrays: {error}.") from error
    return Lpips(weights, rescale)


def distances(lpips: Lpips, shown: UInt8[Array, "n h w 3"], expected: UInt8[Array, "n h w 3"]) -> list[float]:
    """Of each pair of pictures, one after the other on one thread."""
    found = []
    with one_thread(), torch.no_grad():
        for pair in zip(shown, expected, strict=True):
            one, other = (torch.from_numpy(picture).permute(2, 0, 1)[None].float() / 255 for picture in pair)
            found.append(float(lpips(one, other)))
    return found


@contextmanager
def one_thread() -> Iterator[None]:
    """PyTorch on one thread: sums come out the same on any machine with any number of workers."""
    before = torch.get_num_threads()
    torch.set_num_threads(1)
    try:
        yield
    finally:
        torch.set_num_threads(before)


def _shapes() -> dict[str, tuple[int, ...]]:
    """What the file must hold."""
    shapes: dict[str, tuple[int, ...]] = {}
    for block, layers in enumerate(BLOCKS):
        wide, width = CHANNELS[block], CHANNELS[block + 1]
        for layer in layers:
            shapes[f"features.{layer}.weight"] = (width, wide, 3, 3)
            shapes[f"features.{layer}.bias"] = (width,)
            wide = width
        shapes[f"lin{block}.model.1.weight"] = (1, width, 1, 1)
    return shapes


def _check_size(path: Path, name: str, shape: tuple[int, ...], sizes: dict[str, int]) -> None:
    if f"{name}.npy" not in sizes:
        raise EvaluationError(f"{path}: the array {name} is missing; is this VGG16 with the heads of LPIPS v0.1?")
    if sizes[f"{name}.npy"] > 8 * math.prod(shape) + HEADER_BYTES:
        raise EvaluationError(
            f"{path}: {name} is larger than {shape} can be; is this VGG16 with the heads of LPIPS v0.1?"
        )


def _checked(path: Path, name: str, shape: tuple[int, ...], array: np.ndarray) -> Tensor:
    if array.shape != shape or array.dtype.kind != "f" or not np.isfinite(array).all():
        raise EvaluationError(f"{path}: {name} is {array.dtype} {array.shape}, expected finite floats {shape}.")
    return torch.from_numpy(array.astype(np.float32))
