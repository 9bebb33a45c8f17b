"""Results as tables like those of the paper, and tables as Markdown, LaTeX and CSV."""

from __future__ import annotations

import csv
import io
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Literal

import numpy as np

from hushsplat.evaluation.results import Results, Row, scenes_of
from hushsplat.types.metrics import BEST_DB

UPPER_BOUNDS = ("reference", "exact", "mean", "expected")  # no methods that compete: never marked as the best


@dataclass(frozen=True)
class Figure:
    """How a number is shown."""

    title: str
    better: Literal["↑", "↓", "→ 100"]  # the side, or the value, that is better
    digits: int

    def text(self, value: float | None) -> str:
        """The number, or a dash for what was not measured."""
        return "–" if value is None else f"{value:.{self.digits}f}"

    @property
    def heading(self) -> str:
        """The title with an arrow to the better side."""
        return f"{self.title} {self.better}"

    def badness(self, value: float) -> float:
        """Least for the best value."""
        return {"↑": -value, "↓": value, "→ 100": abs(value - 100)}[self.better]


FIGURES = {
    "psnr": Figure("PSNR", "↑", 2),
    "effective_samples": Figure("effective samples", "↑", 1),
    "gap_closed": Figure("gap closed, %", "↑", 1),
    "ssim": Figure("SSIM", "↑", 3),
    "lpips": Figure("LPIPS", "↓", 3),
    "lpips_3dgs": Figure("LPIPS (3DGS)", "↓", 3),
    "cvvdp": Figure("CVVDP", "↑", 2),
    "gradient_energy": Figure("gradient energy, %", "→ 100", 1),
    "tpsnr": Figure("tPSNR", "↑", 2),
    "flicker": Figure("flicker", "↓", 2),
    "time_ms": Figure("ms", "↓", 1),
    "speedup": Figure("speed-up", "↑", 2),
}
RATIOS = ("effective_samples",)  # their means are geometric: that of the mean of dB


TIMED = {"time_ms": "milliseconds per frame", "speedup": "times as fast as `reference`"}
PARTS_TITLE = "the denoiser's parts"


@dataclass(frozen=True)
class Cell:
    """One field of a table."""

    text: str
    best: bool = False


@dataclass(frozen=True)
class Table:
    """Something to print."""

    title: str
    columns: tuple[str, ...]  # the first ones name the row
    names: int  # how many of the columns name the row
    rows: tuple[tuple[Cell, ...], ...]
    rules: tuple[int, ...] = ()  # a line is drawn before these rows


def tables_of(results: Results) -> list[Table]:
    """The tables that fit the experiment; the first one says it all in short."""
    rows = [{**row, "method": _shown_method(row)} for row in with_gaps(results.rows)]
    if not rows:
        return []
    if results.experiment == "convergence":
        return [by_frames(results.rows, figure) for figure in _measured(rows)]
    if results.experiment == "timing":
        parts = [row for row in rows if ": " in row["method"]]
        whole = [row for row in rows if ": " not in row["method"]]
        tables = [
            _pivot(whole, figure, ("scene", "track"), TIMED[figure]) for figure in TIMED if figure in _measured(whole)
        ]
        return tables + ([_averages(parts, ("scene", "track"), PARTS_TITLE)] if parts else [])
    by = ("scene",) if results.experiment == "static" else ("scene", "track")
    rates = sorted({row.get("fps") or 0.0 for row in rows}, reverse=True)
    means, single = list[Table](), list[Table]()
    for rate in rates:  # a mean over several frame rates says nothing
        here = [row for row in rows if (row.get("fps") or 0.0) == rate]
        at = f" at {rate:g} frames a second" if len(rates) > 1 else ""
        places = len({tuple(row[key] for key in by) for row in here})
        means.append(_averages(here, by, f"{results.experiment}{at}: mean over {places} {by[-1]}{'s' * (places > 1)}"))
        if places > 1:
            single += [_pivot(here, name, by, f"{FIGURES[name].title} by {by[-1]}{at}") for name in _measured(here)]
    return means + single


def with_gaps(rows: Sequence[Row]) -> list[Row]:
    """Along tracks, beside PSNR: effective samples, and the share of the gap from `raw` to `mean` (or `exact`)."""
    reached = {(row["scene"], row.get("track"), row["method"]): row.get("psnr") for row in rows}
    found = []
    for row in rows:
        low, mean, exact = (reached.get((row["scene"], row.get("track"), name)) for name in ("raw", "mean", "exact"))
        high, here = exact if mean is None else mean, row.get("psnr")
        more: Row = {}
        if low is not None and here is not None:
            more["effective_samples"] = 10 ** (max(-BEST_DB, min(BEST_DB, here - low)) / 10)
            if high is not None and high > low:
                more["gap_closed"] = 100 * (here - low) / (high - low)
        found.append({**row, **more})
    return found


def _shown_method(row: Row) -> str:
    """A static row says after how many frames."""
    counts = row["experiment"] == "static" and row.get("frames")
    if counts:
        return f"{row['method']} ({row['frames']})"
    return f"{row['method']} ({row['samples']})" if row.get("samples") and row["method"] == "mean" else row["method"]


def _averages(rows: Sequence[Row], by: tuple[str, ...], title: str) -> Table:
    figures = _measured(rows)
    methods = list(dict.fromkeys(row["method"] for row in rows))
    places = {tuple(row[key] for key in by) for row in rows}
    means = {method: [mean_of(rows, figure, method=method) for figure in figures] for method in methods}
    best = [_best(figure, {method: means[method][i] for method in methods}) for i, figure in enumerate(figures)]
    counted = {method: len({tuple(r[key] for key in by) for r in rows if r["method"] == method}) for method in methods}
    uneven = len(set(counted.values())) > 1  # then a mean over fewer places must say so
    lines = []
    for method in methods:
        texts = [
            FIGURES[figure].text(value) + plus_minus(rows, figure, method)
            for figure, value in zip(figures, means[method], strict=True)
        ]
        cells = [Cell(text, method in best[index]) for index, text in enumerate(texts)]
        lines.append((Cell(method), *([Cell(f"{counted[method]} of {len(places)}")] if uneven else []), *cells))
    columns = ("method", *(["measured on"] if uneven else []), *(FIGURES[figure].heading for figure in figures))
    return Table(title, columns, 1 + uneven, tuple(lines))


def _pivot(rows: Sequence[Row], figure: str, by: tuple[str, ...], title: str) -> Table:
    """Places down, methods across, the mean below."""
    methods = list(dict.fromkeys(row["method"] for row in rows))
    places = list(dict.fromkeys(tuple(row[key] for key in by) for row in rows))
    lines = []
    for place in places:
        here = [row for row in rows if tuple(row[key] for key in by) == place]
        lines.append((*map(Cell, place), *_cells(figure, {m: mean_of(here, figure, method=m) for m in methods})))
    means = {method: mean_of(rows, figure, method=method) for method in methods}
    lines.append((Cell("mean"), *(Cell("") for _ in by[1:]), *_cells(figure, means)))
    return Table(f"{title} {FIGURES[figure].better}", (*by, *methods), len(by), tuple(lines), (len(places),))


def by_frames(rows: Sequence[Row], figure: str) -> Table:
    """Numbers of frames down, methods across; a method without frames, such as `reference`, has the same everywhere."""
    methods = list(dict.fromkeys(row["method"] for row in rows))
    counts = sorted({row["frames"] for row in rows if row["frames"]})
    lines = []
    for count in counts:
        here = [row for row in rows if row["frames"] in (count, 0)]
        lines.append((Cell(str(count)), *_cells(figure, {m: mean_of(here, figure, method=m) for m in methods})))
    scenes = ", ".join(scenes_of(rows))
    return Table(f"{FIGURES[figure].heading} after so many frames: {scenes}", ("frames", *methods), 1, tuple(lines))


def _cells(figure: str, values: dict[str, float | None]) -> list[Cell]:
    best = _best(figure, values)
    return [Cell(FIGURES[figure].text(value), method in best) for method, value in values.items()]


def _best(figure: str, values: dict[str, float | None]) -> set[str]:
    """The best methods, all that look the same after rounding; nobody is the best of one."""
    shown = FIGURES[figure]
    ranks = {
        method: shown.badness(float(shown.text(value)))
        for method, value in values.items()
        if value is not None and method.split(" (")[0] not in UPPER_BOUNDS
    }
    return {method for method, rank in ranks.items() if rank == min(ranks.values())} if len(ranks) > 1 else set()


def _measured(rows: Sequence[Row]) -> list[str]:
    return [figure for figure in FIGURES if any(row.get(figure) is not None for row in rows)]


def mean_of(rows: Sequence[Row], figure: str, method: str) -> float | None:
    """Of a method's rows that have this figure."""
    known = [row[figure] for row in rows if row["method"] == method and row.get(figure) is not None]
    if known and figure in RATIOS:
        return float(np.exp(np.mean(np.log(known))))
    return float(np.mean(known)) if known else None


def plus_minus(rows: Sequence[Row], figure: str, method: str) -> str:
    """Half of the 95 % confidence interval over seeds, of a mean over places with seeds of their own."""
    here = [row for row in rows if row["method"] == method and row.get(figure) is not None]
    known = [row[f"{figure}_ci95"] for row in here if row.get(f"{figure}_ci95") is not None]
    if not known or len(known) < len(here):
        return ""
    return f" ± {FIGURES[figure].text(float(np.sqrt(np.sum(np.square(known)))) / len(known))}"


def to_markdown(table: Table) -> str:
    """A table of GitHub's Markdown; the best in bold."""

    def line(texts: Iterator[str]) -> str:
        return "| " + " | ".join(text.replace("|", "\\|") for text in texts) + " |"

    kinds = ["---"] * table.names + ["---:"] * (len(table.columns) - table.names)
    body = [line(f"**{cell.text}**" if cell.best else cell.text for cell in row) for row in table.rows]
    return "\n".join([f"**{table.title}**", "", line(iter(table.columns)), line(iter(kinds)), *body, ""])


def to_latex(table: Table) -> str:
    """A table with booktabs' rules."""
    kinds = "l" * table.names + "r" * (len(table.columns) - table.names)
    lines = [r"\begin{table}", r"\centering", rf"\begin{{tabular}}{{@{{}}{kinds}@{{}}}}", r"\toprule"]
    lines += [" & ".join(map(_latex, table.columns)) + r" \\", r"\midrule"]
    for index, row in enumerate(table.rows):
        if index in table.rules:
            lines.append(r"\midrule")
        cells = (rf"\textbf{{{_latex(cell.text)}}}" if cell.best else _latex(cell.text) for cell in row)
        lines.append(" & ".join(cells) + r" \\")
    lines += [r"\bottomrule", r"\end{tabular}", rf"\caption{{{_latex(table.title)}}}", r"\end{table}", ""]
    return "\n".join(lines)


def to_csv(rows: Sequence[Row]) -> str:
    """The flat rows, for a spreadsheet; a field that a row does not have is empty."""
    columns = list(dict.fromkeys(key for row in rows for key in row))
    text = io.StringIO()
    writer = csv.DictWriter(text, columns, lineterminator="\n")
    writer.writeheader()
    writer.writerows([{key: _harmless(value) for key, value in row.items()} for row in rows])
    return text.getvalue()


def _harmless(value: object) -> object:
    """A text that a spreadsheet would take for a formula gets a quote in front."""
    return f"'{value}" if isinstance(value, str) and value[:1] in ("=", "+", "-", "@", "\t", "\r") else value


LATEX = {
    "\\": r"\textbackslash{}",
    "↑": r"$\uparrow$",
    "↓": r"$\downarrow$",
    "→": r"$\to$",
    "±": r"$\pm$",
    "σ": r"$\sigma$",
    "×": r"$\times$",
    "–": "--",
    "~": r"\textasciitilde{}",
    "^": r"\textasciicircum{}",
    **{letter: f"\\{letter}" for letter in "&%$#_{}"},
}


def _latex(text: str) -> str:
    return "".join(LATEX.get(letter, letter) for letter in text)
