"""The page in a real browser, what it is made of, and what it refuses."""

import json
from dataclasses import replace
from pathlib import Path
from xml.etree import ElementTree

import numpy as np
import pytest
from PIL import Image
from playwright.sync_api import Browser, Page

from hushsplat.cli.main import main
from hushsplat.evaluation import report
from hushsplat.evaluation.plots import Line, line_plot
from hushsplat.evaluation.report import page as page_of
from hushsplat.evaluation.report import write_report
from hushsplat.evaluation.results import EXPERIMENTS, Results, read_results
from hushsplat.types.errors import EvaluationError

METHODS = ("raw", "svgf", "temporal-zero-shot")


@pytest.fixture(scope="module")
def results_file(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Results of six small frames."""
    path = tmp_path_factory.mktemp("report") / "walk.json"
    words = ["evaluate", "navigation", "synth:2k", "--methods", *METHODS, "--width", "96", "--height", "64"]
    words += ["--fps", "30", "--every", "2", "--frames", "6", "--workers", "1", "--metrics", "psnr", "--quiet"]
    assert main([*words, "-o", str(path)]) == 0
    return path


@pytest.fixture
def page(browser: Browser, results_file: Path) -> Page:
    """The report on a phone."""
    assert main(["report", str(results_file), "--force"]) == 0
    opened = browser.new_page(viewport={"width": 390, "height": 844})
    complaints: list[str] = []
    opened.on("console", lambda said: complaints.append(said.text))
    opened.on("pageerror", lambda error: complaints.append(str(error)))
    opened.on("request", lambda asked: complaints.append(asked.url) if asked.url.startswith("http") else None)
    opened.goto(results_file.with_suffix(".html").as_uri())
    yield opened
    opened.close()
    assert complaints == []


def test_the_page_shows_the_numbers_and_fits_a_phone(page: Page, results_file: Path) -> None:
    rows = {row["method"]: row["psnr"] for row in read_results(results_file).rows}
    for method in METHODS:
        assert f"{rows[method]:.2f}" in page.locator("table tr", has_text=method).first.inner_text()
    assert page.evaluate("document.documentElement.scrollWidth") == 390
    cut_off = "[...document.querySelectorAll('.scroll, .plot')].filter((e) => e.scrollWidth > e.clientWidth).length"
    assert page.evaluate(cut_off) == 0
    tops = page.evaluate("['.stack', 'table'].map((s) => document.querySelector(s).getBoundingClientRect().top)")
    assert tops[0] < tops[1]  # first something to look at
    assert page.locator("svg polyline").count() == 3
    assert page.locator("code").first.inner_text().startswith("hushsplat evaluate navigation synth:2k")


def test_the_wipe_moves_and_changes_its_pictures(page: Page) -> None:
    stack = page.locator(".stack")
    stack.scroll_into_view_if_needed()
    box = stack.bounding_box()
    assert box is not None
    edge = page.locator(".handle")
    before = edge.bounding_box()
    page.mouse.move(box["x"] + box["width"] / 2, box["y"] + 20)
    page.mouse.down()
    page.mouse.move(box["x"] + box["width"] * 0.8, box["y"] + 20)
    page.mouse.up()
    after = edge.bounding_box()
    assert before is not None and after is not None
    assert after["x"] - before["x"] == pytest.approx(0.3 * box["width"], abs=8)
    assert stack.evaluate("e => getComputedStyle(e.querySelector('.over')).clipPath") != "none"
    under = page.locator(".under")
    shown = under.get_attribute("src")
    page.locator("select.right").select_option(label="reference")
    assert under.get_attribute("src") != shown
    assert under.evaluate("e => e.decode().then(() => e.naturalWidth)") == 96


def test_the_video_plays(page: Page) -> None:
    video, controls = page.locator("video"), page.locator(".controls")
    assert video.get_attribute("controls") is None  # they would lie over the pictures
    controls.locator("button").click()
    page.wait_for_function("() => document.querySelector('video').currentTime > 0", timeout=12_000)
    assert video.evaluate("e => [e.videoWidth, e.error]") == [2 * 96, None]
    page.wait_for_function("() => document.querySelector('.controls button').textContent === 'pause'")
    controls.locator("button").click()
    page.wait_for_function("() => document.querySelector('video').paused")
    picture, below = video.bounding_box(), controls.bounding_box()
    assert picture is not None and below is not None and below["y"] >= picture["y"] + picture["height"]


def test_every_picture_is_one(page: Page) -> None:
    page.evaluate("document.querySelectorAll('details').forEach(e => e.open = true)")
    broken = page.evaluate("Promise.all([...document.images].map(i => i.decode().then(() => 0, () => 1)))")
    assert len(broken) > 10 and sum(broken) == 0


def test_prints_without_controls(page: Page) -> None:
    page.emulate_media(media="print")
    assert not page.locator("video").is_visible()
    assert page.locator("table").first.is_visible()


def test_names_from_files_are_text_not_markup() -> None:
    row = {"experiment": "navigation", "scene": "<script>alert(1)</script>", "track": "t", "method": "m", "frames": 1}
    results = Results("navigation", "<b>", [{**row, "psnr": 3.0}], notes=["<i>"], missing={"lpips": "<u>"})
    text = page_of([results])
    for tag in ("<b>", "<i>", "<u>", "<script>alert"):
        assert tag not in text
    assert "&lt;script&gt;alert(1)" in text


@pytest.mark.parametrize("suffix", [".md", ".tex", ".csv", ".html"])
def test_the_suffix_decides(suffix: str, results_file: Path, tmp_path: Path) -> None:
    output = tmp_path / f"out{suffix}"
    assert main(["report", str(results_file), str(results_file), "-o", str(output)]) == 0
    start = {".md": "**navigation", ".tex": r"\begin{table}", ".csv": "experiment,", ".html": "<!doctype html>"}
    assert output.read_text().startswith(start[suffix])
    assert output.read_text().count("svgf") >= 2


def test_what_cannot_be_shown_is_refused(results_file: Path, tmp_path: Path) -> None:
    found = read_results(results_file)
    with pytest.raises(EvaluationError, match=r"out.pdf: cannot write '.pdf'; end the name in .html, .md, .tex, .csv"):
        write_report([found], tmp_path / "out.pdf")
    with pytest.raises(EvaluationError, match="a picture of the results is not there"):
        page_of([replace(found, folder=tmp_path)])
    frame = next(asset for asset in found.assets if asset["kind"] == "frame")
    small = {**frame, "path": "small.webp"}
    Image.fromarray(np.zeros((8, 8, 3), dtype=np.uint8)).save(results_file.parent / "small.webp")
    assets = [small, *(asset for asset in found.assets if asset["kind"] == "expected")]
    with pytest.raises(EvaluationError, match=r"small.webp: is not of the size of what it is compared with"):
        page_of([replace(found, assets=assets)])
    (results_file.parent / "small.webp").write_bytes(b"RIFF no picture")
    with pytest.raises(EvaluationError, match=r"small.webp: is no readable WebP picture"):
        page_of([replace(found, assets=assets)])


def test_a_plot_is_svg_with_a_line_for_each_run_of_values() -> None:
    lines = [Line("a<b", [1, 2, 3, 4], [1.0, None, 3.0, 2.0]), Line("flat", [1, 4], [2.0, 2.0])]
    drawing = ElementTree.fromstring(line_plot(lines, "frame", "PSNR"))
    assert len(drawing.findall("polyline")) == 2
    assert len(drawing.findall("circle")) == 1  # a value alone between gaps
    assert [text.text for text in drawing.findall("text[@class='key']")] == ["a<b", "flat"]
    points = [tuple(map(float, p.split(","))) for p in drawing.findall("polyline")[1].attrib["points"].split()]
    assert points[0][1] == points[1][1] and points[0][0] < points[1][0]
    assert line_plot([Line("none", [1], [None])], "", "") == ""
    logarithmic = ElementTree.fromstring(line_plot([Line("a", [1, 8], [0.0, 1.0])], "", "", log_x=True))
    assert [t.text for t in logarithmic.findall("text[@class='tick']")] == ["1", "2", "4", "8"]


ROW = {"experiment": "static", "scene": "a", "track": "t", "method": "raw", "frames": 0, "psnr": 20.0, "time_ms": 3.0}


@pytest.mark.parametrize("suffix", [".html", ".md", ".tex", ".csv"])
@pytest.mark.parametrize("experiment", EXPERIMENTS)
@pytest.mark.parametrize(
    ("row", "series"),
    [
        ({"frames": 0}, {}),
        ({"psnr": 5e-324}, {"frame": [0, 5e-324], "psnr": [0, 5e-324]}),
        ({"psnr": -1e12, "frames": 10**12}, {"frame": [-1e12, 1e12], "psnr": [1e12, -1e12]}),
        ({"method": "\ud800", "scene": "\x1b[2J"}, {"frame": [], "psnr": []}),
        ({"ssim": 0, "flicker": 1e-300}, {"frame": [1, 1], "psnr": [None, None]}),
    ],
)
def test_a_report_of_whatever_the_reader_accepts(
    row: dict, series: dict, experiment: str, suffix: str, tmp_path: Path
) -> None:
    rows = [{**ROW, **row}, {**ROW, **row, "method": "mean", "psnr": 30}, {**ROW, "method": "raw", "frames": 4}]
    lists = [{"scene": "a", "track": "t", "method": "raw", **series}] if series else []
    content = {"format": "hushsplat-results", "version": 1, "experiment": experiment, "command": "", "rows": rows}
    (tmp_path / "r.json").write_text(json.dumps({**content, "series": lists}))
    write_report([read_results(tmp_path / "r.json")], tmp_path / f"r{suffix}")
    assert (tmp_path / f"r{suffix}").stat().st_size > 0


def test_pictures_that_are_too_many_together_are_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Each is small, as a file and decoded; the results name them again and again."""
    Image.new("RGB", (40, 30)).save(tmp_path / "x.webp")
    common = {"scene": "a", "track": "t", "path": "x.webp", "name": "0"}
    frames = [{**common, "kind": "frame", "method": f"raw {number}"} for number in range(9)]
    results = Results("navigation", "", [ROW], [], [*frames, {**common, "kind": "expected", "method": "exact"}])
    results = replace(results, folder=tmp_path)
    assert "error of raw 8" in page_of([results])
    monkeypatch.setattr(report, "MAX_TRACK_PX", 10 * 40 * 30 - 1)
    with pytest.raises(EvaluationError, match=r"x\.webp: 40×30 px are too many for a page"):
        page_of([results])
    monkeypatch.setattr(report, "MAX_PAGE_BYTES", 20 * (tmp_path / "x.webp").stat().st_size - 1)
    with pytest.raises(EvaluationError, match=r"pictures and videos of \d+ bytes are too many for a page"):
        page_of([results, results])


@pytest.mark.parametrize("size", [(1, 1), (7, 3), (9, 8)])
def test_a_report_of_small_pictures(size: tuple[int, int], tmp_path: Path) -> None:
    Image.new("RGB", size).save(tmp_path / "x.webp")
    common = {"scene": "a", "track": "t", "path": "x.webp", "name": "0"}
    assets = [{**common, "kind": "frame", "method": "raw"}, {**common, "kind": "expected", "method": "exact"}]
    results = Results("navigation", "", [ROW], [], assets, folder=tmp_path)
    assert "error of raw" in page_of([results])
    only_expected = [assets[1], assets[1]]
    assert "error of" not in page_of([replace(results, assets=only_expected)])
