"""`hushsplat demo`: the first command to try."""

from __future__ import annotations

from contextlib import ExitStack
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated

import tyro

from hushsplat.cli.console import plan_bar, results, say
from hushsplat.cli.evaluate import terminal_table
from hushsplat.cli.flags import Flag, Force, MaybeInt
from hushsplat.evaluation.demo import run_demo
from hushsplat.evaluation.tables import tables_of
from hushsplat.io.atomic import check_output, make_folder

DESCRIPTION = """Walk through our own scene by every method, with metrics, on one page.

Draws the same walk by raw, ST-TAA, SVGF, temporal and hush beside the reference, and writes a video of all of them
side by side and a page with tables, plots and pictures. Takes about two minutes on two cores.

Examples of use:
  hushsplat demo
  hushsplat demo -o ~/demo
"""
YOURS = "hushsplat render garden.ply -o out.mp4 --orbit --compare raw,svgf,hush,reference"


@dataclass(frozen=True)
class Demo:
    """Walk through our own scene by every method, with metrics, on one page."""

    output: Annotated[Path, tyro.conf.arg(aliases=["-o"], metavar="FOLDER")] = Path("hushsplat-demo")
    """a folder; made if it is not there"""
    frames: MaybeInt = None  # at most so many frames are scored; all of the walk if not said
    workers: int = 0  # processes; 0: one for each core
    force: Force = False
    quiet: Flag = False  # no progress bar

    def run(self) -> None:
        """Evaluate, write, print where the files are."""
        make_folder(self.output)
        check_output(self.output / "report.html", self.force)
        with ExitStack() as stack:
            shown = run_demo(self.output, self.workers, self.frames, plan_bar(stack, "drawing the demo", self.quiet))
        for table in tables_of(shown.results):
            results().print(terminal_table(table))
        say(f"a page with pictures:        {shown.page}")
        say(f"the video, side by side:     {shown.video}")
        say(f"the numbers:                 {self.output / 'results.json'}")
        say(f"and with a scene of yours:   {YOURS}")
