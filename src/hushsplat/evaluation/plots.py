"""Line plots as SVG: no library, no script, sharp on any screen and on paper."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from html import escape

WIDTH, HEIGHT = 720, 360  # of the drawing's own units
LEFT, RIGHT, TOP, BOTTOM = 56, 16, 12, 44
LEGEND_COLUMNS, LEGEND_ROW = 2, 24  # wide enough for the larger letters that a phone has
# Told apart by people who see few colours too (Okabe and Ito), and by dashes in print.
COLORS = ("#0072b2", "#d55e00", "#009e73", "#cc79a7", "#e69f00", "#56b4e9", "#000000", "#8c6d31", "#7f7f7f")
DASHES = ("", "6 3", "2 3", "8 3 2 3")


Number = float | int


@dataclass(frozen=True)
class Line:
    """Points to join; where a value is None the line breaks."""

    label: str
    x: Sequence[Number]
    y: Sequence[Number | None]


def line_plot(lines: Sequence[Line], x_title: str, y_title: str, *, log_x: bool = False) -> str:
    """An SVG with axes, a grid and a legend; empty if there is nothing to draw."""
    xs = [x for line in lines for x, y in zip(line.x, line.y, strict=True) if y is not None]
    ys = [y for line in lines for y in line.y if y is not None]
    if not xs:
        return ""
    legend_rows = math.ceil(len(lines) / LEGEND_COLUMNS)
    height = HEIGHT + LEGEND_ROW * legend_rows
    place_x = _axis([math.log2(x) for x in xs] if log_x else xs, LEFT, WIDTH - RIGHT, pad=0.0)
    place_y = _axis(ys, HEIGHT - BOTTOM, TOP, pad=0.06)

    def at(x: Number, y: Number) -> str:
        return f"{place_x.at(math.log2(x) if log_x else x):.1f},{place_y.at(y):.1f}"

    parts = [f'<svg viewBox="0 0 {WIDTH} {height}" role="img" aria-label="{escape(y_title)} over {escape(x_title)}">']
    parts += _grid(place_x, place_y, log_x)
    parts.append(f'<text class="axis" x="{(LEFT + WIDTH - RIGHT) / 2}" y="{HEIGHT - 8}">{escape(x_title)}</text>')
    middle = (TOP + HEIGHT - BOTTOM) / 2
    parts.append(f'<text class="axis" transform="translate(14 {middle}) rotate(-90)">{escape(y_title)}</text>')
    for index, line in enumerate(lines):
        style = f'stroke="{COLORS[index % len(COLORS)]}" stroke-dasharray="{DASHES[index % len(DASHES)]}"'
        for run in _runs(line):
            points = " ".join(at(x, y) for x, y in run)
            if len(run) > 1:
                title = f"<title>{escape(line.label)}</title>"
                parts.append(f'<polyline class="line" {style} points="{points}">{title}</polyline>')
            else:
                x, y = points.split(",")
                parts.append(f'<circle cx="{x}" cy="{y}" r="3" fill="{COLORS[index % len(COLORS)]}"/>')
        row, column = divmod(index, LEGEND_COLUMNS)
        left, top = LEFT + column * (WIDTH - LEFT - RIGHT) / LEGEND_COLUMNS, HEIGHT + 12 + LEGEND_ROW * row
        parts.append(f'<line class="line" {style} x1="{left:.0f}" y1="{top}" x2="{left + 26:.0f}" y2="{top}"/>')
        parts.append(f'<text class="key" x="{left + 32:.0f}" y="{top + 4}">{escape(line.label)}</text>')
    parts.append("</svg>")
    return "".join(parts)


@dataclass(frozen=True)
class Axis:
    """Values low..high drawn from start to end."""

    low: Number
    high: Number
    start: Number
    end: Number

    def at(self, value: Number) -> float:
        """Where a value is drawn."""
        return self.start + (value - self.low) / (self.high - self.low) * (self.end - self.start)

    def ticks(self) -> list[Number]:
        """About five round numbers."""
        rough = (self.high - self.low) / 5
        power = 10 ** math.floor(math.log10(rough))
        step = next(power * factor for factor in (1, 2, 5, 10) if power * factor >= rough)
        first = math.ceil(self.low / step - 1e-9)
        return [step * k for k in range(first, math.floor(self.high / step + 1e-9) + 1)]


def _axis(values: Sequence[Number], start: Number, end: Number, pad: float) -> Axis:
    low, high = min(values), max(values)
    is_flat = high - low <= 1e-9 * max(1.0, abs(low), abs(high))  # no steps between them that a float could count
    room = max(0.5, 1e-6 * abs(high)) if is_flat else pad * (high - low)
    return Axis(low - room, high + room, start, end)


def _grid(place_x: Axis, place_y: Axis, log_x: bool) -> list[str]:
    parts = []
    for tick in place_y.ticks():
        y = place_y.at(tick)
        parts.append(f'<line class="grid" x1="{LEFT}" x2="{WIDTH - RIGHT}" y1="{y:.1f}" y2="{y:.1f}"/>')
        parts.append(f'<text class="tick end" x="{LEFT - 6}" y="{y + 4:.1f}">{tick:g}</text>')
    ticks = list(map(float, range(math.ceil(place_x.low), math.floor(place_x.high) + 1))) if log_x else place_x.ticks()
    for tick in ticks:
        x = place_x.at(tick)
        text = f"{2**tick:g}" if log_x else f"{tick:g}"
        parts.append(f'<line class="grid" y1="{TOP}" y2="{HEIGHT - BOTTOM}" x1="{x:.1f}" x2="{x:.1f}"/>')
        parts.append(f'<text class="tick" x="{x:.1f}" y="{HEIGHT - BOTTOM + 16}">{text}</text>')
    return parts


def _runs(line: Line) -> list[list[tuple[Number, Number]]]:
    """Pieces of the line without gaps."""
    runs: list[list[tuple[Number, Number]]] = [[]]
    for x, y in zip(line.x, line.y, strict=True):
        if y is None:
            runs.append([])
        else:
            runs[-1].append((x, y))
    return [run for run in runs if run]
