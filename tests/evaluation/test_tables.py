"""The arithmetic and the writing of tables, by hand."""

from hushsplat.evaluation.results import Results
from hushsplat.evaluation.tables import tables_of, to_csv, to_latex, to_markdown


def row(scene: str, track: str, method: str, psnr: float | None, **more: object) -> dict:
    return {
        "experiment": "navigation",
        "scene": scene,
        "track": track,
        "method": method,
        "frames": 2,
        "psnr": psnr,
        **more,
    }


ROWS = [
    row("a", "walk", "mean", 35.0, samples=64),
    row("a", "walk", "raw", 16.0, flicker=30.0),
    row("a", "walk", "temporal", 28.004, flicker=2.0),
    row("a", "walk", "svgf", 28.001, flicker=5.0),
    row("b_1", "walk", "mean", 33.0, samples=64),
    row("b_1", "walk", "raw", 20.0, flicker=20.0),
    row("b_1", "walk", "svgf", 24.0, flicker=None),
]


def navigation() -> list:
    return tables_of(Results("navigation", "", ROWS))


def test_means_over_tracks_say_over_how_many() -> None:
    average = navigation()[0]
    assert average.title == "navigation: mean over 2 tracks"
    names = ("method", "measured on", "PSNR ↑", "effective samples ↑", "gap closed, % ↑", "flicker ↓")
    assert average.columns == names
    assert [[cell.text for cell in line] for line in average.rows] == [
        ["mean (64)", "2 of 2", "34.00", "39.8", "100.0", "–"],
        ["raw", "2 of 2", "18.00", "1.0", "0.0", "25.00"],
        ["temporal", "1 of 2", "28.00", "15.9", "63.2", "2.00"],
        ["svgf", "2 of 2", "26.00", "6.3", "47.0", "5.00"],  # 10^(8/10): the mean is geometric
    ]
    assert [[cell.best for cell in line[2:]] for line in average.rows] == [
        [False, False, False, False],  # a ceiling does not compete
        [False, False, False, False],
        [True, True, True, True],
        [False, False, False, False],
    ]


def test_by_track_with_the_mean_below_and_all_that_look_best_marked() -> None:
    psnr = navigation()[1]
    assert psnr.columns == ("scene", "track", "mean (64)", "raw", "temporal", "svgf")
    assert [[cell.text for cell in line] for line in psnr.rows] == [
        ["a", "walk", "35.00", "16.00", "28.00", "28.00"],
        ["b_1", "walk", "33.00", "20.00", "–", "24.00"],
        ["mean", "", "34.00", "18.00", "28.00", "26.00"],
    ]
    assert [cell.best for cell in psnr.rows[0]] == [False, False, False, False, True, True]
    assert psnr.rules == (2,)


def test_the_gap_is_closed_from_raw_to_the_mean_or_else_to_exact() -> None:
    rows = [row("a", "walk", name, psnr) for name, psnr in (("raw", 20.0), ("temporal", 26.0), ("exact", 30.0))]
    rows += [row("b", "walk", name, psnr) for name, psnr in (("raw", 10.0), ("temporal", 26.0), ("exact", 40.0))]
    rows.append(row("b", "walk", "mean", 30.0))
    first, _, _, closed, *_ = tables_of(Results("navigation", "", rows))
    assert "gap closed, % ↑" in first.columns
    assert closed.title == "gap closed, % by track ↑"
    temporal = closed.columns.index("temporal")
    assert [line[temporal].text for line in closed.rows] == ["60.0", "80.0", "70.0"]
    no_raw = tables_of(Results("navigation", "", rows[1:3]))
    assert "gap closed, % ↑" not in no_raw[0].columns


def test_frame_rates_have_tables_of_their_own() -> None:
    rows = [row("a", f"walk, {fps} fps", "raw", 10.0 + fps / 10, fps=float(fps)) for fps in (30, 300)]
    rows += [row("b", f"walk, {fps} fps", "raw", 20.0, fps=float(fps)) for fps in (30, 300)]
    tables = tables_of(Results("navigation", "", rows))
    assert [table.title for table in tables[:2]] == [
        "navigation at 300 frames a second: mean over 2 tracks",
        "navigation at 30 frames a second: mean over 2 tracks",
    ]
    assert [table.rows[0][1].text for table in tables[:2]] == ["30.00", "16.50"]
    assert tables[2].title == "PSNR by track at 300 frames a second ↑" and len(tables[2].rows) == 3


def test_the_best_gradient_energy_is_the_nearest_to_that_of_the_target() -> None:
    rows = [row("a", "walk", name, 20.0, gradient_energy=e) for name, e in (("x", 70.0), ("y", 120.0), ("z", 400.0))]
    (table,) = tables_of(Results("navigation", "", rows))
    assert table.columns[-1] == "gradient energy, % → 100"
    assert [line[-1].best for line in table.rows] == [False, True, False]


def test_confidence_intervals_of_several_tracks_are_those_of_their_mean() -> None:
    rows = [row(scene, "walk", "raw", 20.0, psnr_ci95=ci) for scene, ci in (("a", 0.3), ("b", 0.4))]
    rows += [row(scene, "walk", "exact", 30.0) for scene in "ab"]
    table = tables_of(Results("navigation", "", rows))[0]
    assert [line[1].text for line in table.rows] == ["20.00 ± 0.25", "30.00"]


def test_static_rows_are_named_by_their_frames() -> None:
    rows = [
        {"experiment": "static", "scene": "a", "track": "views", "method": "temporal", "frames": frames, "psnr": psnr}
        for frames, psnr in ((16, 26.0), (128, 28.0))
    ]
    rows.append({**rows[0], "method": "reference", "frames": 0, "psnr": 30.0})
    (table,) = tables_of(Results("static", "", rows))
    assert [line[0].text for line in table.rows] == ["temporal (16)", "temporal (128)", "reference"]
    assert [line[1].best for line in table.rows] == [False, True, False]


def test_convergence_has_frames_down_and_a_flat_reference() -> None:
    rows = [
        {"experiment": "convergence", "scene": s, "track": "views", "method": m, "frames": f, "psnr": p}
        for s, m, f, p in (
            ("a", "temporal", 1, 20.0),
            ("b", "temporal", 1, 22.0),
            ("a", "temporal", 4, 24.0),
            ("a", "reference", 0, 30.0),
        )
    ]
    (table,) = tables_of(Results("convergence", "", rows))
    assert table.columns == ("frames", "temporal", "reference")
    assert [[c.text for c in line] for line in table.rows] == [["1", "21.00", "30.00"], ["4", "24.00", "30.00"]]


def test_no_rows_no_tables() -> None:
    assert tables_of(Results("static", "", [])) == []


def test_markdown() -> None:
    lines = to_markdown(navigation()[1]).splitlines()
    assert lines[0] == "**PSNR by track ↑**"
    assert lines[3] == "| --- | --- | ---: | ---: | ---: | ---: |"
    assert lines[4] == "| a | walk | 35.00 | 16.00 | **28.00** | **28.00** |"


def test_latex_is_escaped_and_ruled() -> None:
    text = to_latex(navigation()[1])
    assert r"b\_1 & walk & 33.00 & 20.00 & -- & \textbf{24.00} \\" in text
    assert text.count(r"\midrule") == 2
    assert r"\caption{PSNR by track $\uparrow$}" in text
    assert r"\begin{tabular}{@{}llrrrr@{}}" in text


def test_csv_has_every_field_once_and_no_formulas() -> None:
    lines = to_csv([ROWS[0], {**ROWS[1], "track": "=1+1"}]).splitlines()
    assert lines[0] == "experiment,scene,track,method,frames,psnr,samples,flicker"
    assert lines[1:] == ["navigation,a,walk,mean,2,35.0,64,", "navigation,a,'=1+1,raw,2,16.0,,30.0"]
