"""`hushsplat`: chooses the command, and turns everything that goes wrong into one line."""

from __future__ import annotations

import io
import os
import sys
from collections.abc import Sequence
from contextlib import redirect_stderr
from typing import Annotated, Any, Protocol, Union, runtime_checkable

import tyro

from hushsplat import __version__
from hushsplat.cli import bench, convert, demo, evaluate, info, render, report, train, view
from hushsplat.cli.console import print_error
from hushsplat.engines.cpu.machine import instruction_set
from hushsplat.types.errors import HushsplatError

DESCRIPTION = """Gaussian splatting without sorting: splat files in, pictures out.

Begin with `hushsplat demo`, which ends in a page of pictures. `synth:500k` is a scene made by code, a room and a
garden of 500,000 surfels, so you can try everything without any file:
  hushsplat render synth:500k -o room.png
  hushsplat view synth:500k
  hushsplat info garden.ply
  hushsplat convert garden.ply garden.sog
  hushsplat render garden.ply -o garden.mp4 --orbit --method raw

`hushsplat COMMAND --help` says more about each command; `hushsplat --version` which version this is.
"""

COMMANDS = {
    "demo": (demo.Demo, demo.DESCRIPTION),
    "info": (info.Info, info.DESCRIPTION),
    "convert": (convert.Convert, convert.DESCRIPTION),
    "render": (render.Render, render.DESCRIPTION),
    "view": (view.View, view.DESCRIPTION),
    "bench": (bench.Bench, bench.DESCRIPTION),
    "evaluate": (evaluate.Evaluate, evaluate.DESCRIPTION),
    "report": (report.Report, report.DESCRIPTION),
    "train": (train.Train, train.DESCRIPTION),
}
CONFIG = (tyro.conf.OmitSubcommandPrefixes, tyro.conf.FlagCreatePairsOff)

USER_ERROR = 2
INTERRUPTED = 130  # 128 + SIGINT, as shells count


@runtime_checkable
class Command(Protocol):
    """What every command is, once its options are read."""

    def run(self) -> None:
        """Do it."""


class UsageError(HushsplatError):
    """The command line itself is wrong."""


def main(arguments: Sequence[str] | None = None) -> int:
    """Run one command and return its exit code: 0, 2 for anything the user can mend, 130 after Ctrl-C."""
    arguments = sys.argv[1:] if arguments is None else arguments
    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, io.TextIOWrapper):
            stream.reconfigure(errors="replace")  # a terminal without × shall show ?, not an error
    try:
        if list(arguments) == ["--version"]:
            print(f"hushsplat {__version__} ({instruction_set()})")
        else:
            parse(arguments).run()
        sys.stdout.flush()
    except HushsplatError as error:
        print_error(str(error))
        return USER_ERROR
    except KeyboardInterrupt:
        print_error("interrupted; files that were not finished are not there.")
        return INTERRUPTED
    except BrokenPipeError:  # the reader of our output, such as `head`, has seen enough
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
    except OSError as error:
        print_error(f"{error.filename or 'the system'}: {error.strerror or error}.")
        return USER_ERROR
    except MemoryError:
        print_error("not enough memory for this; try a smaller picture, fewer samples or a coarser level of detail.")
        return USER_ERROR
    return 0


def parse(arguments: Sequence[str]) -> Command:
    """The command with its options, checked; tyro's boxes become one line."""
    box = io.StringIO()
    try:
        with redirect_stderr(box):
            return tyro.cli(
                _choice(arguments),
                prog="hushsplat",
                description=DESCRIPTION,
                args=arguments or ["--help"],
                config=CONFIG,
            )
    except SystemExit as end:
        if not end.code:  # --help
            raise
        raise UsageError(one_line(box.getvalue())) from None


def _choice(arguments: Sequence[str]) -> Any:
    """All commands as one type for tyro: the chosen one is described in full, the others in their first line."""
    described = []
    for name, (kind, text) in COMMANDS.items():
        if name not in arguments[:1]:
            text = text.split("\n")[0]
        default: dict[str, Any] = {"default": train.with_preset(arguments)} if kind is train.Train else {}
        described.append(Annotated[kind, tyro.conf.subcommand(name, description=text, **default)])
    return Union[tuple(described)]  # noqa: UP007 -- the members are only known here


def one_line(box: str) -> str:
    """What a box of tyro's says first, and the option it thinks was meant; boxes are of ASCII on some terminals."""
    lines = [line.strip().strip("│").strip() for line in box.splitlines() if not line.startswith(("╭", "╰"))]
    if "╭" not in box:
        lines = lines[2:]  # the title and the rule below it
    end = next((index for index, line in enumerate(lines) if not line.strip("─-")), len(lines))  # a rule, or empty
    said = " ".join(" ".join(lines[:end]).split()).rstrip(".")
    meant = next((lines[i + 1].split()[0] for i, line in enumerate(lines) if line.startswith("Perhaps you")), None)
    return f"{said}{f'; perhaps you meant {meant}' if meant else ''}; see `hushsplat COMMAND --help`."
