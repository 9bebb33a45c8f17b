"""The attributes of a Gaussian as SPZ stores them in bytes, and the axes that SPZ stores them in."""

from __future__ import annotations

import numpy as np
from jaxtyping import Float, Float32
from numpy import ndarray as Array

from hushsplat.types.harmonics import sh_basis

COLOR_SCALE = 0.15  # SPZ: a byte covers constant SH coefficients of ±3.3, more than the visible range
SMALLEST_LOG_SCALE = -10.0  # SPZ: byte 0; a byte is a step of 1/16, up to 5.94
FIXED_POINT_MAX = 2**23 - 1  # 24-bit signed positions
MAX_FRACTIONAL_BITS = 23  # the reference library's own limit when it writes

RUB = 4  # right, up, back: SPZ's axes unless an extension of the file names others
LAST_Y_UP_SYSTEM = 8  # SPZ numbers systems from 1: bits 0, 1, 2 of the number - 1 say right, up, front


def unpack_positions(raw: bytes, fractional_bits: int) -> Float32[Array, "n 3"]:
    """24-bit fixed point, exact in float32."""
    parts = np.frombuffer(raw, np.uint8).reshape(-1, 3).astype(np.int32)
    fixed = parts[:, 0] | (parts[:, 1] << 8) | (parts[:, 2] << 16)
    signed = (fixed ^ 0x800000) - 0x800000
    return np.ldexp(signed.astype(np.float32), -fractional_bits).reshape(-1, 3)


def pack_positions(means: Float32[Array, "n 3"], fractional_bits: int) -> bytes:
    """The inverse of `unpack_positions`, to the nearest step."""
    fixed = np.rint(np.ldexp(means.astype(np.float64), fractional_bits)).astype("<i4")
    return fixed.view(np.uint8).reshape(-1, 4)[:, :3].tobytes()


def fitting_fractional_bits(means: Float32[Array, "n 3"]) -> int | None:
    """The most fractional bits with which all positions fit 24 bits, or None if none does."""
    farthest = float(np.abs(means).max()) if len(means) else 1.0
    for bits in range(MAX_FRACTIONAL_BITS, -1, -1):
        if round(farthest * 2**bits) <= FIXED_POINT_MAX:
            return bits
    return None


def unpack_half_positions(raw: bytes) -> Float32[Array, "n 3"]:
    """Positions of version 1."""
    return np.frombuffer(raw, "<f2").reshape(-1, 3).astype(np.float32)


def unpack_first_three(raw: bytes) -> Float32[Array, "n 4"]:
    """Quaternions of versions 1 and 2: x, y, z in a byte each, w >= 0 by the unit length."""
    xyz = np.frombuffer(raw, np.uint8).reshape(-1, 3).astype(np.float32) / np.float32(127.5) - 1
    w = np.sqrt(np.maximum(0, 1 - (xyz * xyz).sum(axis=1, keepdims=True)))
    return np.concatenate([w, xyz], axis=1)


def unpack_smallest_three(raw: bytes) -> Float32[Array, "n 4"]:
    """Quaternions from version 3 on: two bits name the largest component, the others have a sign and nine bits each."""
    packed = np.frombuffer(raw, "<u4").copy()
    largest = packed >> 30
    xyzw = np.zeros((len(packed), 4), np.float32)
    for component in (3, 2, 1, 0):
        stored = largest != component
        magnitude = (packed & 511).astype(np.float32) * np.float32(np.sqrt(0.5) / 511)
        signed = np.where(packed & 512, -magnitude, magnitude)
        xyzw[:, component] = np.where(stored, signed, 0)
        packed = np.where(stored, packed >> 10, packed)
    rest = np.sqrt(np.maximum(0, 1 - (xyzw * xyzw).sum(axis=1)))
    xyzw[np.arange(len(packed)), largest] = rest
    return np.roll(xyzw, 1, axis=1)


def pack_smallest_three(rotations: Float32[Array, "n 4"]) -> bytes:
    """The inverse of `unpack_smallest_three` for unit quaternions wxyz; q and -q are the same rotation."""
    xyzw = np.roll(rotations, -1, axis=1)
    largest = np.abs(xyzw).argmax(axis=1)
    flipped = xyzw[np.arange(len(xyzw)), largest] < 0
    packed = largest.astype(np.uint32)
    for component in range(4):
        value = xyzw[:, component]
        magnitude = np.minimum(np.rint(np.abs(value) * (511 * np.sqrt(2))), 511).astype(np.uint32)
        negative = ((value < 0) ^ flipped).astype(np.uint32)
        packed = np.where(largest != component, (packed << 10) | (negative << 9) | magnitude, packed)
    return packed.astype("<u4").tobytes()


def unpack_scales(raw: bytes) -> Float32[Array, "n 3"]:
    """Logarithms in steps of 1/16."""
    logarithms = np.frombuffer(raw, np.uint8).astype(np.float32) / 16 + np.float32(SMALLEST_LOG_SCALE)
    return np.exp(logarithms).reshape(-1, 3)


def pack_scales(scales: Float32[Array, "n 3"]) -> bytes:
    """The inverse of `unpack_scales`, clamped to 4.5e-5 .. 380 world units."""
    return _to_bytes((np.log(scales) - SMALLEST_LOG_SCALE) * 16)


def unpack_opacities(raw: bytes) -> Float32[Array, " n"]:
    """Opacity in steps of 1/255."""
    return np.frombuffer(raw, np.uint8).astype(np.float32) / 255


def pack_opacities(opacities: Float32[Array, " n"]) -> bytes:
    """The inverse of `unpack_opacities`."""
    return _to_bytes(opacities * 255)


def unpack_sh(colors: bytes, rest: bytes, degree: int) -> Float32[Array, "n k 3"]:
    """SH coefficients from the bytes of the constant band and of the other ones."""
    constant = (np.frombuffer(colors, np.uint8).astype(np.float32) / 255 - 0.5) / np.float32(COLOR_SCALE)
    count = len(constant) // 3
    coefficients = (degree + 1) ** 2
    sh = np.empty((count, coefficients, 3), np.float32)
    sh[:, 0] = constant.reshape(count, 3)
    sh[:, 1:] = (np.frombuffer(rest, np.uint8).reshape(count, coefficients - 1, 3).astype(np.float32) - 128) / 128
    return sh


def pack_sh(sh: Float32[Array, "n k 3"]) -> tuple[bytes, bytes]:
    """The inverse of `unpack_sh`: all eight bits for each coefficient, clamped to ±3.3 and to -1 .. 0.992."""
    return _to_bytes(sh[:, 0] * (COLOR_SCALE * 255) + 127.5), _to_bytes(sh[:, 1:] * 128 + 128)


def flips_to_rdf(system: int) -> Float32[Array, " 3"]:
    """The signs that bring positions from an SPZ axis system (1 to 8) to right, down, front, and back again."""
    is_right, is_up, is_front = ((system - 1) >> bit & 1 for bit in range(3))
    return np.array([1 if is_right else -1, -1 if is_up else 1, 1 if is_front else -1], np.float32)


def quaternion_signs(flips: Float32[Array, " 3"]) -> Float32[Array, " 4"]:
    """The signs of w, x, y, z when axes are flipped: the rotation is conjugated by the flip."""
    x, y, z = flips
    return np.array([1, y * z, x * z, x * y], np.float32)


def sh_signs(flips: Float32[Array, " 3"], degree: int) -> Float32[Array, " k"]:
    """The sign of each SH coefficient when axes are flipped: every basis function is even or odd in each axis."""
    direction: Float[Array, "1 3"] = np.array([[2.0, 3.0, 6.0]]) / 7  # no basis function is 0 there
    return np.sign(sh_basis(direction * flips, degree) * sh_basis(direction, degree))[0].astype(np.float32)


def _to_bytes(values: Float[Array, " ..."]) -> bytes:
    return np.clip(np.rint(values), 0, 255).astype(np.uint8).tobytes()
