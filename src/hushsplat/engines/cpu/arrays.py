"""Arrays for the engine to write to."""

from __future__ import annotations

from jaxtyping import Float32, Int32
from numpy import ndarray as Array

from hushsplat.engines.cpu import _engine


def empty_float32(*shape: int) -> Float32[Array, " ..."]:
    """An uninitialised array; its memory is used again once nobody holds it, so that a stream of frames stays cheap."""
    return _engine.empty_float32(shape)


def empty_int32(*shape: int) -> Int32[Array, " ..."]:
    """The same for 32-bit integers."""
    return _engine.empty_int32(shape)
