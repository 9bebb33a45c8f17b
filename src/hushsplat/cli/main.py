"""`hushsplat`: chooses the command, and turns everything that goes wrong into one line."""

from __future__ import annotations

import difflib
import io
import os
import re
import shlex
import shutil
import sys
import textwrap
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, redirect_stderr, redirect_stdout, suppress
from pathlib import Path
from typing import Annotated, Any, Protocol, Union, runtime_checkable

import tyro

from hushsplat import __version__
from hushsplat.cli import bench, convert, demo, evaluate, info, render, report, reproduce, train, view
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
    "reproduce": (reproduce.Reproduce, reproduce.DESCRIPTION),
}
CONFIG = (tyro.conf.OmitSubcommandPrefixes, tyro.conf.FlagCreatePairsOff)

AXES = ("-x", "-y", "-z")  # values, not options: --up -y
HELP_ALL = "--help-all"  # the settings of a denoiser and of the stages of training, too
HELP_COLUMN = 26  # where the meanings of options begin
HELP_COLUMNS = 120  # at most: boxes of wider pages are beside each other, and no name is broken into two lines
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
    page = io.TextIOWrapper(
        io.BytesIO(), encoding=sys.stdout.encoding or "utf-8", errors="replace"
    )  # by which tyro chooses its boxes
    first = arguments[0] if arguments else ""
    if first and not first.startswith("-") and first not in COMMANDS:
        raise UsageError(_no_command(first))
    in_full = HELP_ALL in arguments
    asked = ["--help" if word == HELP_ALL else word for word in arguments] or ["--help"]
    try:
        columns = min(HELP_COLUMNS, shutil.get_terminal_size().columns)
        with redirect_stderr(box), redirect_stdout(page), _terminal_of(columns):
            return tyro.cli(_choice(asked), prog="hushsplat", description=DESCRIPTION, args=asked, config=CONFIG)
    except SystemExit as end:
        if not end.code:  # --help
            page.seek(0)
            text = page.read()
            print(text if in_full else shortened(text, first), end="")
            raise
        command = first if first in COMMANDS else "COMMAND"
        raise UsageError(_unknown_option(asked, command) or one_line(box.getvalue(), command)) from None


@contextmanager
def _terminal_of(columns: int) -> Iterator[None]:
    """A terminal of this width, as tyro asks for it."""
    before = os.environ.get("COLUMNS")
    os.environ["COLUMNS"] = str(columns)
    try:
        yield
    finally:
        os.environ.pop("COLUMNS") if before is None else os.environ.update(COLUMNS=before)


def _no_command(word: str) -> str:
    """What to type instead of a word that is no command."""
    near = difflib.get_close_matches(word, COMMANDS, 1)
    if near:
        return f"there is no command '{word}'; did you mean {near[0]}?"
    if Path(word).exists() or word.startswith(("synth:", "demo:")):
        return f"there is no command '{word}'; did you mean `hushsplat view {shlex.quote(word)}`?"
    return f"there is no command '{word}'; there are {', '.join(COMMANDS)}."


def _unknown_option(words: Sequence[str], command: str) -> str | None:
    """The first option that the command does not have, and the nearest one that it has; None if it has all of them.

    A value after an unknown option is taken for a scene, so that tyro complains about anything but the option.
    """
    known = _options(command)
    for word in words:
        name = word.partition("=")[0].replace("_", "-")
        if word == "--":  # what follows are no options
            return None
        if re.match(r"--?[A-Za-z]", name) and name not in (*known, *AXES):
            near = difflib.get_close_matches(name, known, 1)
            meant = f"; did you mean {near[0]}?" if near else ";"
            return f"unknown option {name}{meant} see `hushsplat {command} --help`."
    return None


def _options(command: str) -> list[str]:
    """All options of a command, as its page of help lists them."""
    if command not in COMMANDS:
        return ["-h", "--help", HELP_ALL, "--version"]
    page = io.StringIO()
    with suppress(SystemExit), redirect_stdout(page), _terminal_of(HELP_COLUMNS):
        tyro.cli(_choice([command]), prog="hushsplat", args=[command, "--help"], config=CONFIG)
    heads = re.findall(r"(?m)^[│| ] *(-.*?)(?:  |$)", page.getvalue())
    return [HELP_ALL, *(name for head in heads for name in re.findall(r"(?:^|, )(--[a-z][a-z0-9.-]*|-[a-z])\b", head))]


def shortened(page: str, command: str) -> str:
    """A page of --help without settings that have dots in their names or are rarely set, and how to see them."""
    kept: list[str] = []
    left_out = 0
    for box in re.split(r"(?m)^(?=[╭+]-?─?)", page):
        flags = re.findall(r"(?m)^[│|] (--\S+)", box)
        if flags and all("." in flag for flag in flags):
            left_out += len(flags)
        else:
            rarely = [flag for flag in flags if command == "train" and flag in train.RARELY]
            left_out += len(rarely)
            kept.append(_rows(box, rarely) if rarely else box)
    if left_out:
        kept.append(f"{left_out} more settings: hushsplat {command} {HELP_ALL}\n")
    return re.sub(r"\n{3,}", "\n\n", "".join(kept))


def _rows(box: str, left_out: Sequence[str]) -> str:
    """A box of --help with what an option means beside it, without some of the options."""
    top, *lines, bottom = box.rstrip("\n").split("\n")
    edge, width = lines[0][0], len(top) - 4
    rows: list[str] = []
    for entry in re.split(r"\n(?=-)", "\n".join(line[2:-2].rstrip() for line in lines)):
        option, *said = re.split(r"\n+|  +", entry)
        if option.split()[0] not in left_out:
            meaning = textwrap.wrap(" ".join(" ".join(said).split()), width - HELP_COLUMN)
            beside = [""] if len(option) > HELP_COLUMN - 2 else []
            first, *others = [*beside, *meaning]
            rows += [f"{option:{HELP_COLUMN}}{first}", *(f"{'':{HELP_COLUMN}}{other}" for other in others)]
    return "\n".join([top, *(f"{edge} {row:{width}} {edge}" for row in rows), bottom, ""])


def _choice(arguments: Sequence[str]) -> Any:
    """All commands as one type for tyro: the chosen one is described in full, the others in their first line."""
    described = []
    for name, (kind, text) in COMMANDS.items():
        if name not in arguments[:1]:
            text = text.split("\n")[0]
        default: dict[str, Any] = {"default": train.with_preset(arguments)} if kind is train.Train else {}
        described.append(Annotated[kind, tyro.conf.subcommand(name, description=text, **default)])
    return Union[tuple(described)]  # noqa: UP007 -- the members are only known here


def one_line(box: str, command: str) -> str:
    """What a box of tyro's says first; boxes are of ASCII on some terminals."""
    lines = [line.strip().strip("│").strip() for line in box.splitlines() if not line.startswith(("╭", "╰"))]
    if "╭" not in box:
        lines = lines[2:]  # the title and the rule below it
    end = next((index for index, line in enumerate(lines) if not line.strip("─-")), len(lines))  # a rule, or empty
    said = " ".join(" ".join(lines[:end]).split()).rstrip(".")
    return f"{_plain(said)}; see `hushsplat {command} --help`."


def _plain(said: str) -> str:
    """The same without the words of the parser."""
    if value := re.match(r"Missing value for argument '(\S+?)(?:/\S+)?'", said):
        return f"{value[1]} needs a value"
    if missing := re.match(r"Missing from hushsplat (\w+): (.*)", said):
        heads = [re.match(r"\{[^}]*\}|-\w [A-Z]+|\S+", each.strip()) for each in missing[2].split("(required)")]
        return f"{missing[1]} needs {' and '.join(_kind(head[0]) for head in heads if head is not None)}"
    if value := re.match(r"Error parsing (\S+): no type matching (.*) could be instantiated from (.*)", said):
        kinds = [_kind(kind) for kind in re.sub(r"\bNone,|\{None\}\|", "", value[2]).split("|")]
        return f"{value[1]} takes {' or '.join(kinds)}, got {' '.join(_quoted(value[3]))}"
    if number := re.match(r"Error parsing (\S+): (?:could not convert|invalid literal).*: '(.*)'", said):
        return f"{number[1]} takes a number, got {number[2]}"
    return re.sub(r"argument '(\S+)'\. Expected one of \((.*)\)", _choices, said)


def _kind(metavar: str) -> str:
    """What the parser's name for values means."""
    numbers = {"INT": "a whole number", "FLOAT": "a number", "FLOAT FLOAT FLOAT": "three numbers"}
    name = metavar.strip("{}")
    return numbers.get(name, name.replace(",", ", "))


def _choices(found: re.Match[str]) -> str:
    return f"{found[1]}; give one of {found[2].replace(chr(39), '').rstrip(',')}"


def _quoted(said: str) -> list[str]:
    return re.findall(r"'([^']*)'", said)
