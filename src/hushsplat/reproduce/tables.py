"""The paper's tables with our numbers beside its own."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence

from hushsplat.evaluation.results import Results, Row
from hushsplat.evaluation.tables import FIGURES, Cell, Table, by_frames, mean_of, plus_minus, with_gaps
from hushsplat.reproduce.paper import ABLATION, Numbers, navigation_numbers, static_numbers, time_numbers

STATIC = ("2dgs", "exact", "mean", "st-taa (128)", "svgf (128)", "paper (16)", "paper (equal time)", "paper (128)")
ZERO_SHOT = ("paper-zero-shot (16)", "paper-zero-shot (128)")
NAVIGATION = (
    "mean",
    "exact",
    "raw",
    "ss-1",
    "ss-4",
    "st-taa",
    "svgf",
    "svgf-literal",
    "svgf-tuned",
    "paper",
    "paper-zero-shot",
    "hush",
)
VARIANTS = ("full", "trust 1", "trust heuristic", "trust constant", "no spatial filter", "no stabilisation")
GATES = ("full", "gate 0", "gate 1")
QUALITY, VIDEO = ("psnr", "ssim", "lpips", "lpips_3dgs"), ("cvvdp",)
PAPERS_LPIPS = "lpips_3dgs"  # the paper does not say how it feeds LPIPS; its code base, 2DGS, feeds 0..1


def comparisons(found: Sequence[Results], scenes: Sequence[str]) -> list[Table]:
    """Static, navigation, zero-shot, ablation, gate ablation, convergence, timing, conversion gap, and by scene."""
    static = [{**row, "method": _static_name(row)} for row in _rows(found, "static")]
    moving = _rows(found, "navigation")
    ablation = [{**row, "method": row["method"].split(", ")[0]} for row in _rows(found, "ablation")]
    which, of_static = static_numbers(scenes)
    tables = [_beside("static quality against photographs", static, (*STATIC, *ZERO_SHOT), QUALITY, which, of_static)]
    which, of_moving = navigation_numbers(scenes)
    tables.append(
        _beside(
            "navigation against 2DGS", moving, NAVIGATION, (*QUALITY, *VIDEO), which, of_moving, "effective_samples"
        )
    )
    tables.append(_zero_shot(_rows(found, "zero-shot")))
    tables.append(_beside("ablation", ablation, VARIANTS, QUALITY, "its track of garden", ABLATION))
    tables.append(_beside("gate ablation", ablation, GATES, QUALITY, "its track of garden", ABLATION))
    tables.append(by_frames(_rows(found, "convergence"), "psnr"))
    which, of_time = time_numbers(scenes)
    timed = ("reference", "raw", "st-taa", "svgf", "paper", "paper-zero-shot", "hush")
    tables.append(_beside("milliseconds per frame", _rows(found, "timing"), timed, ("time_ms",), which, of_time))
    tables.append(_conversion(static))
    tables += [
        _by_scene("static PSNR by scene", static, (*STATIC, *ZERO_SHOT), scenes, lambda one: static_numbers(one)[1]),
        _by_scene("navigation PSNR by scene", moving, NAVIGATION, scenes, lambda one: navigation_numbers(one)[1]),
    ]
    return [table for table in tables if table.rows]


def _rows(found: Sequence[Results], experiment: str) -> list[Row]:
    return [row for results in found if results.experiment == experiment for row in results.rows]


def _static_name(row: Row) -> str:
    """The method with its number of frames; `equal time` where it is neither 16 nor 128."""
    name, frames = row["method"], row["frames"]
    if not frames or name == "mean":
        return name
    return f"{name} ({frames if frames in (16, 128) else 'equal time'})"


def _beside(
    title: str,
    rows: Sequence[Row],
    methods: Sequence[str],
    metrics: Sequence[str],
    which: str,  # scenes of the paper's numbers
    papers: Mapping[str, Numbers],
    *more: str,  # metrics that the paper does not have
) -> Table:
    """Methods down; each metric of ours, then the paper's."""
    rows = with_gaps(rows)
    ours = {name: {m: mean_of(rows, m, name) for m in (*metrics, *more)} for name in methods}
    shown = [m for m in (*metrics, *more) if any(ours[name][m] is not None for name in methods)]
    columns: list[str] = ["method"]
    for metric in shown:
        columns.append(FIGURES[metric].heading)
        if _papers_name(metric, papers):
            columns.append(f"{FIGURES[metric].title}, paper")
    lines = []
    for name in methods:
        if all(value is None for value in ours[name].values()):
            continue
        cells = [Cell(name)]
        for metric in shown:
            cells.append(Cell(FIGURES[metric].text(ours[name][metric]) + plus_minus(rows, metric, name)))
            papers_name = _papers_name(metric, papers)
            if papers_name:
                cells.append(Cell(FIGURES[metric].text(papers.get(name, {}).get(papers_name))))
        lines.append(tuple(cells))
    return Table(f"{title} (paper: {which})", tuple(columns), 1, tuple(lines))


def _papers_name(metric: str, papers: Mapping[str, Numbers]) -> str | None:
    """What the paper calls this metric of ours, if it has it."""
    name = {PAPERS_LPIPS: "lpips", "lpips": None}.get(metric, metric)
    return name if name is not None and any(name in numbers for numbers in papers.values()) else None


def _zero_shot(rows: Sequence[Row]) -> Table:
    """Own weights beside those of the source, scene by scene; and the source with weights of the others."""
    lines = []
    for scene in dict.fromkeys(row["scene"] for row in rows):
        here = [row for row in rows if row["scene"] == scene]
        which, papers = navigation_numbers([scene])
        for name in ("paper", "paper-zero-shot"):
            if mean_of(here, "psnr", name) is None:
                continue
            theirs = papers[name] if which == "the same scenes" else {}
            texts = []
            for metric in ("psnr", "ssim", "cvvdp"):
                texts.append(FIGURES[metric].text(mean_of(here, metric, name)) + plus_minus(here, metric, name))
                texts.append(FIGURES[metric].text(theirs.get(metric)))
            lines.append((Cell(scene), Cell(name), *map(Cell, texts)))
    columns = ("scene", "method", "PSNR ↑", "PSNR, paper", "SSIM ↑", "SSIM, paper", "CVVDP ↑", "CVVDP, paper")
    return Table("zero-shot, both ways", columns, 2, tuple(lines))


def _conversion(static: Sequence[Row]) -> Table:
    """What turning the scene into one of per-pixel order costs: `exact` of it less 2DGS of stage 1."""
    lines = []
    for scene in dict.fromkeys(row["scene"] for row in static):
        here = [row for row in static if row["scene"] == scene]
        vanilla, exact = (mean_of(here, "psnr", name) for name in ("2dgs", "exact"))
        if vanilla is None or exact is None:
            continue
        which, papers = static_numbers([scene])
        gap = papers["mean"]["psnr"] - papers["2dgs"]["psnr"] if which != "Mip-NeRF 360" else None
        numbers = (vanilla, exact, exact - vanilla, gap)
        lines.append((Cell(scene), *(Cell(FIGURES["psnr"].text(number)) for number in numbers)))
    return Table("conversion gap, dB", ("scene", "2dgs ↑", "exact ↑", "gap", "gap, paper"), 1, tuple(lines))


def _by_scene(
    title: str,
    rows: Sequence[Row],
    methods: Sequence[str],
    scenes: Sequence[str],
    papers: Callable[[Sequence[str]], Mapping[str, Numbers]],  # of these scenes
) -> Table:
    lines = []
    for name in methods:
        by_scene = [[row for row in rows if row["scene"] == scene] for scene in scenes]
        values = [mean_of(here, "psnr", name) for here in by_scene]
        if all(value is None for value in values):
            continue
        cells = [Cell(name)]
        for scene, here, value in zip(scenes, by_scene, values, strict=True):
            theirs = papers([scene]).get(name, {}).get("psnr") if _is_papers(scene) else None
            text = FIGURES["psnr"].text(value) + plus_minus(here, "psnr", name)
            cells += [Cell(text), Cell(FIGURES["psnr"].text(theirs))]
        lines.append(tuple(cells))
    columns = [column for scene in scenes for column in (scene, f"{scene}, paper")]
    return Table(title, ("method", *columns), 1, tuple(lines))


def _is_papers(scene: str) -> bool:
    return static_numbers([scene])[0] != "Mip-NeRF 360"
