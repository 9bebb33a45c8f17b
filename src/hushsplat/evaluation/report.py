"""One self-contained page of results: tables, plots, pictures with a wipe, error maps, videos, views."""

from __future__ import annotations

import base64
import io
import json
from collections.abc import Callable, Sequence
from html import escape
from importlib.resources import files
from pathlib import Path

import numpy as np
from jaxtyping import UInt8
from numpy import ndarray as Array
from PIL import Image

from hushsplat.evaluation.draw_jobs import PATHS
from hushsplat.evaluation.plots import Line, line_plot
from hushsplat.evaluation.results import Results, Row
from hushsplat.evaluation.tables import UPPER_BOUNDS, Table, tables_of, to_csv, to_latex, to_markdown
from hushsplat.io.atomic import atomic_write
from hushsplat.spec.views import map_colors
from hushsplat.types.errors import EvaluationError
from hushsplat.types.image import to_bytes

ERROR_SHOWN = 0.25  # the error, as a mean over channels, that is drawn brightest
MAX_ASSET_BYTES = 64 * 2**20  # a picture or a video of a page
MAX_PAGE_BYTES = 512 * 2**20  # all pictures and videos of a page
MAX_TRACK_PX = 128_000_000  # all pictures of a track: a small file can decode to many
VIEW_TITLES = {
    "trust_s": "trust in the accumulated path",
    "frames_s": "its history, in frames",
    "gate": "share of the denoised path",
    "motion": "motion since the frame before",
    "variance": "variance of the luma",
    "ellipse": "kernels of the spatial filter",
    **{name: f"{view}, after {count} frames" for name, (view, count) in PATHS.items()},
}

WRITERS: dict[str, Callable[[Sequence[Results]], str]] = {
    ".html": lambda found: page(found),
    ".md": lambda found: "\n".join(to_markdown(table) for one in found for table in tables_of(one)),
    ".tex": lambda found: "\n".join(to_latex(table) for one in found for table in tables_of(one)),
    ".csv": lambda found: to_csv([row for one in found for row in one.rows]),
}


def write_report(found: Sequence[Results], path: Path, top: str = "") -> None:
    """Write what the suffix asks for: a page, or only the tables; `top` is HTML that a page begins with."""
    writer = WRITERS.get(path.suffix.lower())
    if writer is None:
        raise EvaluationError(f"{path}: cannot write '{path.suffix}'; end the name in {', '.join(WRITERS)}.")
    content = page(found, top) if top else writer(found)
    with atomic_write(path) as temporary:
        temporary.write_bytes(content.encode("utf-8", "replace"))  # JSON can hold halves of surrogate pairs


def page(found: Sequence[Results], top: str = "") -> str:
    """The whole page; it loads nothing from anywhere."""
    total = sum(_size(one, asset) for one in found for asset in one.assets)
    if total > MAX_PAGE_BYTES:
        raise EvaluationError(f"{found[0].folder}: pictures and videos of {total} bytes are too many for a page.")
    parts = files("hushsplat").joinpath("evaluation", "page")
    style, script = (parts.joinpath(name).read_text("utf-8") for name in ("report.css", "report.js"))
    titles = list(dict.fromkeys(one.experiment for one in found))
    body = "".join(_section(one, index) for index, one in enumerate(found))
    return (
        '<!doctype html>\n<html lang="en"><head><meta charset="utf-8">'
        '<meta name="viewport" content="width=device-width, initial-scale=1">'
        f"<title>hushsplat: {escape(', '.join(titles))}</title><style>{style}</style></head><body>"
        f"<header><h1>hushsplat</h1><p>{escape(_headline(found))}</p></header>{top}<main>{body}</main>"
        f"<footer>{_about(found)}</footer><script>{script}</script></body></html>\n"
    )


def _headline(found: Sequence[Results]) -> str:
    scenes = list(dict.fromkeys(row["scene"] for one in found for row in one.rows))
    experiments = list(dict.fromkeys(one.experiment for one in found))
    return f"{', '.join(experiments)} on {', '.join(scenes)}"


def _section(found: Results, index: int) -> str:
    parts = [f'<section id="r{index}"><h2>{escape(found.experiment)}</h2>']
    parts.append(f'<p class="command"><code>{escape(found.command)}</code></p>')
    places = list(dict.fromkeys((asset["scene"], asset["track"]) for asset in found.assets))
    parts += [_wipe(found, place) for place in places[:1]]  # first something to look at
    tables = tables_of(found)
    parts += [table_html(table) for table in tables[:1]]
    parts += [f'<p class="note">Not measured: {escape(reason)}.</p>' for reason in found.missing.values()]
    parts += [f'<p class="note">{escape(note)}</p>' for note in found.notes]
    if len(tables) > 1:
        more = "".join(table_html(table) for table in tables[1:])
        parts.append(f"<details><summary>{len(tables) - 1} more tables</summary>{more}</details>")
    parts.append(_plots(found))
    for place in places:
        parts.append(_pictures(found, place, with_wipe=place != places[0]))
    parts.append("</section>")
    return "".join(parts)


def table_html(table: Table) -> str:
    """A table of the page."""
    head = "".join(f'<th class="{_side(i, table)}">{escape(column)}</th>' for i, column in enumerate(table.columns))
    lines = []
    for number, row in enumerate(table.rows):
        cells = "".join(
            f'<td class="{_side(i, table)}{" best" if cell.best else ""}">{escape(cell.text)}</td>'
            for i, cell in enumerate(row)
        )
        lines.append(f"<tr{' class=rule' if number in table.rules else ''}>{cells}</tr>")
    return (
        f'<figure class="table"><figcaption>{escape(table.title)}</figcaption><div class="scroll"><table>'
        f"<thead><tr>{head}</tr></thead><tbody>{''.join(lines)}</tbody></table></div></figure>"
    )


def _side(column: int, table: Table) -> str:
    return "name" if column < table.names else "number"


def _plots(found: Results) -> str:
    if found.experiment == "convergence":
        return "".join(_convergence(found.rows, scene) for scene in dict.fromkeys(row["scene"] for row in found.rows))
    parts = []
    for place in dict.fromkeys((one["scene"], one["track"]) for one in found.series):
        series = [one for one in found.series if (one["scene"], one["track"]) == place and one.get("psnr")]
        drawing = line_plot([Line(one["method"], one["frame"], one["psnr"]) for one in series], "frame", "PSNR, dB")
        if drawing:
            title = f"PSNR over time: {place[0]}, {place[1]}"
            parts.append(_plot(title, drawing))
    return "".join(parts)


def _convergence(rows: Sequence[Row], scene: str) -> str:
    here = [row for row in rows if row["scene"] == scene and row.get("psnr") is not None]
    longest = max((row["frames"] for row in here), default=0)
    lines = []
    for method in dict.fromkeys(row["method"] for row in here):
        points = [(row["frames"], row["psnr"]) for row in here if row["method"] == method]
        if points[0][0] == 0:  # drawn the same in every frame: a line across
            points = [(1, points[0][1]), (max(longest, 1), points[0][1])]
        points = [(frames, psnr) for frames, psnr in points if frames > 0]
        lines.append(Line(method, [x for x, _ in points], [y for _, y in points]))
    drawing = line_plot(lines, "frames of a still camera", "PSNR, dB", log_x=True)
    return _plot(f"convergence: {scene}", drawing)


def _plot(title: str, drawing: str) -> str:
    return f'<figure><figcaption>{escape(title)}</figcaption><div class="plot">{drawing}</div></figure>'


def _assets(found: Results, place: tuple[str, str], *kinds: str) -> list[Row]:
    """What there is to look at of one track."""
    return [one for one in found.assets if (one["scene"], one["track"]) == place and one["kind"] in kinds]


def _pictures(found: Results, place: tuple[str, str], with_wipe: bool) -> str:
    """Everything that can be looked at of one track."""
    parts = [f"<h3>{escape(place[0])}, {escape(place[1])}</h3>"]
    for video in _assets(found, place, "video"):
        data = _data_url(found, video, "video/mp4")
        parts.append(  # the browser's own controls would lie over the lower pictures
            f'<figure class="player"><figcaption>{escape(video["name"])}: the middle of the picture, pixel by pixel'
            f'</figcaption><video loop muted playsinline preload="auto" src="{data}"></video>'
            '<div class="controls"><button type="button">play</button>'
            '<input type="range" min="0" max="1" value="0" step="any" aria-label="time"></div></figure>'
        )
    if with_wipe:
        parts.append(_wipe(found, place))
    parts.append(_error_maps(found, place))
    views = _assets(found, place, "view")
    if views:
        parts.append(_views(found, views))
    return "".join(parts)


def _frames(found: Results, place: tuple[str, str]) -> tuple[list[Row], Row] | None:
    """The pictures of one frame by all methods, and the one that is expected; None if there is nothing to compare."""
    frames = _assets(found, place, "frame", "expected")
    expected = next((asset for asset in frames if asset["kind"] == "expected"), None)
    return None if len(frames) < 2 or expected is None else (frames, expected)


def _wipe(found: Results, place: tuple[str, str]) -> str:
    """Two of the methods over each other, a slider between them."""
    compared = _frames(found, place)
    if compared is None:
        return ""
    frames, expected = compared
    pictures = [{"label": asset["method"], "src": _data_url(found, asset, "image/webp")} for asset in frames]
    labels = [picture["label"] for picture in pictures]
    competing = [label for label in labels if label not in UPPER_BOUNDS and label != expected["method"]]
    left = labels.index("raw" if "raw" in labels else labels[0])
    right = labels.index(competing[-1] if competing else labels[-1])  # ours are below the baselines

    def choice(side: str, chosen: int) -> str:
        options = "".join(
            f'<option value="{i}"{" selected" if i == chosen else ""}>{escape(label)}</option>'
            for i, label in enumerate(labels)
        )
        return f'<select class="{side}" aria-label="{side} picture">{options}</select>'

    stored = escape(json.dumps(pictures), quote=True)
    title = escape(f"{place[0]}, {place[1]}, frame {expected['name']}")
    return (
        f'<figure class="wipe" data-pictures="{stored}"><figcaption>{title}: drag to compare'
        f'</figcaption><div class="choices">{choice("left", left)}{choice("right", right)}</div>'
        f'<div class="stack"><img class="under" alt="" src="{pictures[right]["src"]}">'
        f'<img class="over" alt="" src="{pictures[left]["src"]}"><div class="handle"></div>'
        '<input type="range" min="0" max="100" value="50" step="0.1" aria-label="wipe"></div></figure>'
    )


def _error_maps(found: Results, place: tuple[str, str]) -> str:
    """Crops of each method where they differ most, and the error of the whole picture."""
    known = _frames(found, place)
    if known is None:
        return ""
    frames, expected = known
    compared = [asset for asset in frames if asset["kind"] == "frame"]
    truth = _pixels(found, expected, 1 + len(compared))
    shown = []
    for asset in compared:
        pixels = _pixels(found, asset, 1 + len(compared))
        if pixels.shape != truth.shape:
            raise EvaluationError(f"{found.asset_path(asset)}: is not of the size of what it is compared with.")
        shown.append((asset["method"], pixels))
    if not shown:
        return ""
    errors = [np.abs(pixels.astype(np.float32) - truth).mean(axis=2) / 255 for _, pixels in shown]
    window = _crop(truth, np.mean(errors, axis=0))
    cells = [_cell(expected["method"], truth[window], None)]
    for (label, pixels), error in zip(shown, errors, strict=True):
        cells.append(_cell(label, pixels[window], to_bytes(map_colors(np.clip(error / ERROR_SHOWN, 0, 1)))))
    return (
        f"<figure><figcaption>a part, twice as large, and below it the error of the whole picture (yellow: "
        f'{ERROR_SHOWN:g} or more)</figcaption><div class="grid">{"".join(cells)}</div></figure>'
    )


def _cell(label: str, crop: UInt8[Array, "h w 3"], error: UInt8[Array, "h2 w2 3"] | None) -> str:
    large = crop.repeat(2, axis=0).repeat(2, axis=1)
    name = escape(label)
    below = "" if error is None else f'<img alt="error of {name}" src="{_encoded(error, "WEBP", 80)}">'
    return f'<div><span>{name}</span><img alt="{name}" src="{_encoded(large, "WEBP", 95)}">{below}</div>'


def _crop(picture: UInt8[Array, "h w 3"], error: Array) -> tuple[slice, slice]:
    """A window of a fifth of the picture where the methods are furthest from what should be seen."""
    height, width = picture.shape[:2]
    high, wide = min(height, max(8, height // 4)), min(width, max(8, width // 4))
    sums = np.pad(error.astype(np.float64).cumsum(axis=0).cumsum(axis=1), ((1, 0), (1, 0)))
    totals = sums[high:, wide:] - sums[:-high, wide:] - sums[high:, :-wide] + sums[:-high, :-wide]
    top, left = np.unravel_index(int(np.argmax(totals)), totals.shape)
    return slice(int(top), int(top) + high), slice(int(left), int(left) + wide)


def _views(found: Results, views: Sequence[Row]) -> str:
    """What lies behind the picture of a denoiser."""
    parts = []
    for method in dict.fromkeys(asset["method"] for asset in views):
        for title, of_paths in (
            ("what {} sees behind this frame", False),
            ("the two paths of {} and their composition", True),
        ):
            cells = "".join(
                f"<div><span>{escape(VIEW_TITLES.get(asset['name']) or asset['name'])}</span>"
                f'<img alt="{escape(asset["name"])}" src="{_data_url(found, asset, "image/webp")}"></div>'
                for asset in views
                if asset["method"] == method and (asset["name"] in PATHS) == of_paths
            )
            if cells:
                summary = escape(title.format(method))
                parts.append(f'<details><summary>{summary}</summary><div class="grid">{cells}</div></details>')
    return "".join(parts)


def _about(found: Sequence[Results]) -> str:
    said = []
    for one in found:
        facts = {**one.machine, **one.versions, **one.protocol, "seconds": one.seconds}
        known = {key: str(value) for key, value in facts.items() if value is not None}
        pairs = "".join(f"<dt>{escape(key)}</dt><dd>{escape(value)}</dd>" for key, value in known.items())
        said.append(f"<details><summary>how {escape(one.experiment)} was measured</summary><dl>{pairs}</dl></details>")
    return "".join(said)


def _data_url(found: Results, asset: Row, kind: str) -> str:
    return f"data:{kind};base64,{base64.b64encode(_bytes(found, asset)).decode()}"


def _bytes(found: Results, asset: Row) -> bytes:
    path = found.asset_path(asset)
    if _size(found, asset) > MAX_ASSET_BYTES:
        raise EvaluationError(f"{path}: is larger than {MAX_ASSET_BYTES} bytes, too large for a page.")
    try:
        return path.read_bytes()
    except OSError as error:
        raise EvaluationError(f"{path}: a picture of the results cannot be read: {error.strerror or error}.") from error


def _size(found: Results, asset: Row) -> int:
    path = found.asset_path(asset)
    try:
        if not path.is_file():
            raise EvaluationError(f"{path}: a picture of the results is not there, or is no file.")
        return path.stat().st_size
    except OSError as error:
        raise EvaluationError(f"{path}: a picture of the results cannot be read: {error.strerror or error}.") from error


def _pixels(found: Results, asset: Row, count: int) -> UInt8[Array, "h w 3"]:
    """One of so many pictures that are held at once."""
    try:
        with Image.open(io.BytesIO(_bytes(found, asset)), formats=("WEBP",)) as image:
            if image.width * image.height * count > MAX_TRACK_PX:
                size = f"{image.width}×{image.height}"
                raise EvaluationError(f"{found.asset_path(asset)}: {size} px are too many for a page.")
            return np.asarray(image.convert("RGB"))
    except (OSError, ValueError, SyntaxError, Image.DecompressionBombError) as error:
        raise EvaluationError(f"{found.asset_path(asset)}: is no readable WebP picture: {error}.") from error


def _encoded(pixels: UInt8[Array, "h w 3"], kind: str, quality: int) -> str:
    file = io.BytesIO()
    Image.fromarray(pixels).save(file, format=kind, quality=quality)
    return f"data:image/{kind.lower()};base64,{base64.b64encode(file.getvalue()).decode()}"
