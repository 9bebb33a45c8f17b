"""Types of options, with a plain word in --help for what they take, and what options shared by commands mean."""

from __future__ import annotations

import sys
import warnings
from pathlib import Path
from typing import Annotated, Literal

import tyro

from hushsplat.engines.base import AUTO, Engine, engine
from hushsplat.engines.cpu import machine
from hushsplat.engines.fallback import FallbackEngine
from hushsplat.types.errors import RenderError
from hushsplat.types.options import Order

Flag = Annotated[bool, tyro.conf.arg(help_behavior_hint="")]
Force = Annotated[bool, tyro.conf.arg(help="replace files that are there already", help_behavior_hint="")]
MaybeInt = Annotated[int | None, tyro.conf.arg(metavar="INT", help_behavior_hint="")]
MaybeFloat = Annotated[float | None, tyro.conf.arg(metavar="FLOAT", help_behavior_hint="")]
MaybeText = Annotated[str | None, tyro.conf.arg(metavar="NAME", help_behavior_hint="")]
MaybeOrder = Annotated[Order | None, tyro.conf.arg(metavar="{pixel,center}", help_behavior_hint="")]
MaybePath = Annotated[Path | None, tyro.conf.arg(metavar="PATH", help_behavior_hint="")]
MaybeUp = Annotated[
    Literal["-y", "y", "z", "-z", "x", "-x", "+x", "+y", "+z"] | tuple[float, float, float] | None,
    tyro.conf.arg(metavar="{-y,y,z,-z,x,-x}|X Y Z", help_behavior_hint=""),
]
Color = Annotated[Literal["black", "white"] | tuple[float, float, float], tyro.conf.arg(metavar="{black,white}|R G B")]
SceneName = Annotated[str, tyro.conf.Positional, tyro.conf.arg(metavar="SCENE")]
SceneNames = Annotated[tuple[str, ...], tyro.conf.Positional, tyro.conf.arg(metavar="[SCENE ...]")]
AnyPath = Annotated[str, tyro.conf.Positional, tyro.conf.arg(metavar="PATH")]
MaybeTarget = Annotated[Path | None, tyro.conf.Positional, tyro.conf.arg(metavar="TARGET", help_behavior_hint="")]
MaybeOutput = Annotated[Path | None, tyro.conf.arg(aliases=["-o"], metavar="PATH", help_behavior_hint="")]
OutputPath = Annotated[Path, tyro.conf.arg(aliases=["-o"], metavar="PATH")]

EngineName = Literal["cpu", "gpu", "auto"]

BACKGROUNDS = {"black": (0.0, 0.0, 0.0), "white": (1.0, 1.0, 1.0)}


def chosen_engine(name: str, adapter: str | None, *, fixed: bool = False) -> Engine:
    """What --engine and --adapter do; says where `auto` and a software adapter draw.

    Args:
        name: cpu, gpu or auto.
        adapter: of the gpu engine.
        fixed: what is measured must not go on with another engine: `auto` chooses once.
    """
    try:
        with warnings.catch_warnings(record=True) as notes:
            found = engine(name, adapter)
    except RenderError as error:
        raise RenderError(str(error).replace("an adapter is", "--adapter is")) from None
    for note in notes:
        _note(str(note.message))
    on = getattr(found, "adapter", None)
    if name == AUTO and not notes:
        _note(f"drawing on {'the CPU' if on is None else on}.")
    elif on is not None and on.is_software:
        _note(f"{on} is a software adapter; the cpu engine is faster.")
    if isinstance(found, FallbackEngine):
        found.note = _note
        return found.active if fixed else found
    return found


def _note(text: str) -> None:
    print(f"hushsplat: {text}", file=sys.stderr)


def choose_instruction_set(name: str | None) -> None:
    """What --isa does: use this build of the CPU engine from now on; None leaves the best one."""
    if name is None:
        return
    try:
        machine.choose_instruction_set(name)
    except RenderError as error:
        raise RenderError(str(error).replace("instruction set", "--isa")) from None
