"""A Gaussian in the words that shaders/lib_gaussian.wgsl and lib_color.wgsl read: compact, or as float32.

| compact | bytes | |
| --- | --- | --- |
| mean | 12 | float32 |
| rotation | 8 | quaternion, 4 × 16 bits |
| scales | 6 | 3 × 16 bits of log2, from the smallest to the largest scale of the scene |
| opacity | 2 | 16 bits of the level, 2 ln(255 opacity) |
| constant band | 6 | 3 × float16 |
| higher bands | 0, 10, 25, 46 | 8 bits a coefficient, in a unit of the Gaussian that has 8 bits of log2 |
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from jaxtyping import Float32, UInt32
from numpy import ndarray as Array

from hushsplat.spec.sampling import MAX_LEVEL
from hushsplat.types.gaussians import Gaussians
from hushsplat.types.rotations import matrix_from_quaternion

FIXED_WORDS = {True: 7, False: 10}  # by whether compact: mean, shape, opacity
OCTAVES = 40.0  # of scales below the largest that 16 bits cover at most
UNIT_STEPS, UNIT_BIAS = 8, 160  # a unit of the higher bands is 2^((byte - 160) / 8) coefficients
TRANSPARENT = -1e3  # stands for 2 ln(0): never drawn


@dataclass(frozen=True)
class ScaleRange:
    """What the 16 bits of a scale stand for: 2^(first + bits · step)."""

    first: float
    step: float

    @staticmethod
    def of(scales: Float32[Array, "n s"]) -> ScaleRange:
        """From the smallest to the largest."""
        largest = float(np.log2(max(scales.max(initial=0.0), 1e-30)))
        smallest = float(np.log2(max(scales.min(initial=np.inf), 1e-30))) if len(scales) else largest
        first = max(smallest, largest - OCTAVES)
        return ScaleRange(first, max(largest - first, 1e-6) / 65535)


def levels(opacities: Float32[Array, " n"]) -> Float32[Array, " n"]:
    """2 ln(255 opacity): D² up to which a fragment counts; negative: never drawn."""
    return _log_opacities(opacities) + np.float32(MAX_LEVEL)


def _log_opacities(opacities: Float32[Array, " n"]) -> Float32[Array, " n"]:
    with np.errstate(divide="ignore"):
        return np.maximum(2 * np.log(opacities), np.float32(TRANSPARENT))


def axes_of(gaussians: Gaussians) -> Float32[Array, "n 3 s"]:
    """The axes of a Gaussian as columns."""
    return matrix_from_quaternion(gaussians.rotations)[..., : gaussians.scales.shape[1]] * gaussians.scales[:, None]


def packed_fixed(gaussians: Gaussians, scales: ScaleRange, *, compact: bool) -> UInt32[Array, "n w"]:
    """What does not depend on the camera: mean, shape, opacity."""
    if not compact:
        return _float_fixed(gaussians)
    words = np.zeros((len(gaussians), FIXED_WORDS[True]), dtype=np.uint32)
    words[:, :3] = _bits(gaussians.means)
    unit = gaussians.rotations / np.maximum(np.linalg.norm(gaussians.rotations, axis=1, keepdims=True), 1e-30)
    words[:, 3:5] = np.rint(32767 * unit).astype(np.int16).view(np.uint32)
    logarithms = np.log2(np.maximum(gaussians.scales, np.float32(1e-30)))
    shape = np.zeros((len(gaussians), 4), dtype=np.uint16)
    columns = gaussians.scales.shape[1]
    shape[:, :columns] = np.clip(np.rint((logarithms - scales.first) / scales.step), 0, 65535)
    level = levels(gaussians.opacities)
    shape[:, 3] = np.where(level >= 0, np.rint(np.minimum(level / MAX_LEVEL, 1) * 65534) + 1, 0)
    words[:, 5:] = shape.view(np.uint32)
    return words


def _float_fixed(gaussians: Gaussians) -> UInt32[Array, "n 10"]:
    """Mean, axes of a surfel or covariance of an ellipsoid, 2 ln(opacity)."""
    axes = axes_of(gaussians)
    if gaussians.is_surfels:
        shape = np.moveaxis(axes, -1, -2).reshape(-1, 6)
    else:
        covariance = axes @ np.moveaxis(axes, -1, -2)
        rows, columns = np.triu_indices(3)
        shape = covariance[:, rows, columns]
    return _bits(np.concatenate([gaussians.means, shape, _log_opacities(gaussians.opacities)[:, None]], axis=1))


def color_words(coefficients: int, *, compact: bool) -> int:
    """Words of the colour of a Gaussian."""
    if not compact:
        return 3 * coefficients
    return 2 if coefficients == 1 else -(-(7 + 3 * (coefficients - 1)) // 4)


def packed_colors(sh: Float32[Array, "n k 3"], *, compact: bool) -> UInt32[Array, "n w"]:
    """The spherical harmonics."""
    count, coefficients = sh.shape[:2]
    if not compact:
        return _bits(sh.reshape(count, 3 * coefficients))
    content = np.zeros((count, 4 * color_words(coefficients, compact=True)), dtype=np.uint8)
    constant = np.clip(sh[:, 0], -65504, 65504).astype(np.float16)
    content[:, :6] = np.ascontiguousarray(constant).view(np.uint8)
    if coefficients > 1:
        higher = sh[:, 1:].reshape(count, 3 * (coefficients - 1))
        with np.errstate(divide="ignore"):
            steps = np.ceil(UNIT_STEPS * np.log2(np.abs(higher).max(axis=1) / 127)) + UNIT_BIAS
        unit = np.clip(steps, 0, 255)
        values = np.rint(higher / np.exp2((unit - UNIT_BIAS) / UNIT_STEPS)[:, None])
        content[:, 6] = unit
        content[:, 7 : 7 + higher.shape[1]] = np.clip(values, -127, 127).astype(np.int8).view(np.uint8)
    return content.view(np.uint32)


def _bits(values: Float32[Array, "n w"]) -> UInt32[Array, "n w"]:
    return np.ascontiguousarray(values, dtype=np.float32).view(np.uint32)
