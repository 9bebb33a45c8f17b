"""What the CPU engine knows about the machine: cores, instruction sets, measured peaks."""

from __future__ import annotations

from hushsplat.engines.cpu import _engine
from hushsplat.types.errors import RenderError


def default_threads() -> int:
    """How many threads `threads=0` stands for."""
    return _engine.default_threads()


def instruction_set() -> str:
    """The one in use."""
    return _engine.instruction_set()


def choose_instruction_set(name: str) -> None:
    """Use this build of the kernels from now on."""
    known = _engine.instruction_sets()
    if name not in known:
        raise RenderError(f"instruction set {name}: this machine runs {', '.join(known)}; choose one of them.")
    _engine.choose_instruction_set(name)


def peak_flops_per_second(threads: int) -> float:
    """Multiply-adds, two operations each, measured now."""
    return _engine.peak_flops(threads)


def peak_bytes_per_second(threads: int) -> float:
    """Bytes read and written by a copy, measured now."""
    return _engine.peak_bytes(threads)
