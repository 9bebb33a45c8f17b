"""The engine's settings that a command line can change."""

from __future__ import annotations

from hushsplat.engines.cpu import _engine
from hushsplat.types.errors import RenderError


def choose_instruction_set(name: str | None) -> None:
    """Draw with this build of the engine from now on; None leaves the best one."""
    if name is None:
        return
    known = _engine.instruction_sets()
    if name not in known:
        raise RenderError(f"--isa {name}: this machine runs {', '.join(known)}; choose one of them.")
    _engine.choose_instruction_set(name)
