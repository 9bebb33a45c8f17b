"""How options look in --help: a plain word for what they take, no `{None}|INT` and no `(default: None)`."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Literal

import tyro

Flag = Annotated[bool, tyro.conf.arg(help_behavior_hint="")]
MaybeInt = Annotated[int | None, tyro.conf.arg(metavar="INT", help_behavior_hint="")]
MaybeFloat = Annotated[float | None, tyro.conf.arg(metavar="FLOAT", help_behavior_hint="")]
MaybeText = Annotated[str | None, tyro.conf.arg(metavar="NAME", help_behavior_hint="")]
MaybePath = Annotated[Path | None, tyro.conf.arg(metavar="PATH", help_behavior_hint="")]
MaybeUp = Annotated[
    Literal["-y", "y", "z"] | tuple[float, float, float] | None,
    tyro.conf.arg(metavar="{-y,y,z}|X Y Z", help_behavior_hint=""),
]
Color = Annotated[Literal["black", "white"] | tuple[float, float, float], tyro.conf.arg(metavar="{black,white}|R G B")]
SceneName = Annotated[str, tyro.conf.Positional, tyro.conf.arg(metavar="SCENE")]
SceneNames = Annotated[tuple[str, ...], tyro.conf.Positional, tyro.conf.arg(metavar="[SCENE ...]")]
AnyPath = Annotated[str, tyro.conf.Positional, tyro.conf.arg(metavar="PATH")]
TargetPath = Annotated[Path, tyro.conf.Positional, tyro.conf.arg(metavar="TARGET")]
OutputPath = Annotated[Path, tyro.conf.arg(aliases=["-o"], metavar="PATH")]
