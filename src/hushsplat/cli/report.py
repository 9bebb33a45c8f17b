"""`hushsplat report`: results in, a page or tables out."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Annotated

import tyro

from hushsplat.cli.console import bytes_text, say
from hushsplat.evaluation.report import write_report
from hushsplat.evaluation.results import read_results
from hushsplat.types.errors import EvaluationError

DESCRIPTION = """Make a page of results, or tables.

The page is one file that needs no network: tables, PSNR over time, convergence, frames with a wipe between methods,
error maps, videos, and intermediate results of the denoiser. Several results go onto one page.

Examples of use:
  hushsplat report walk.json                      writes walk.html
  hushsplat report walk.json static.json -o all.html
  hushsplat report walk.json -o walk.md           only the tables: .md, .tex; or all rows: .csv
"""


@dataclass(frozen=True)
class Report:
    """Make a page of results, or tables."""

    results: Annotated[tuple[Path, ...], tyro.conf.Positional, tyro.conf.arg(metavar="RESULTS [RESULTS ...]")]
    """what `hushsplat evaluate` wrote"""
    output: Annotated[Path | None, tyro.conf.arg(aliases=["-o"], metavar="PATH", help_behavior_hint="")] = None
    """what to write: .html, .md, .tex or .csv; beside the first results as .html if not said"""

    def run(self) -> None:
        """Read all, write one."""
        if not self.results:
            raise EvaluationError("give at least one file of results, as `hushsplat evaluate` writes it.")
        output = self.results[0].with_suffix(".html") if self.output is None else self.output
        write_report([read_results(path) for path in self.results], output)
        say(f"{output} ({bytes_text(output.stat().st_size)})")
