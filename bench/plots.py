"""Plots as SVG text: grouped bars and lines, both on logarithmic scales."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from html import escape
from math import ceil, floor, log10
from typing import Final

COLOURS: Final = ("#1f5fbf", "#8a8a8a", "#d9822b", "#2f9e5b", "#b33a3a", "#7a52b3", "#0f8f9c", "#c2a000")
WIDTH: Final = 860
LEFT: Final = 190
RIGHT: Final = 70
ROW: Final = 12


def bars(title: str, unit: str, groups: Mapping[str, Mapping[str, float]]) -> str:
    """Draw one group of horizontal bars for each key of `groups`, with one bar for each name in it."""
    names = list(dict.fromkeys(name for group in groups.values() for name in group))
    least, most = _decades([value for group in groups.values() for value in group.values()])
    across = _across(least, most, LEFT, WIDTH - RIGHT)
    parts, y = _legend(names), 74.0
    for label, group in groups.items():
        middle = y + ROW * len(group) / 2 + 4
        parts.append(f'<text x="{LEFT - 8}" y="{middle:.1f}" text-anchor="end">{escape(label)}</text>')
        for name, value in group.items():
            colour = COLOURS[names.index(name) % len(COLOURS)]
            length = max(across(value) - LEFT, 1)
            parts.append(f'<rect x="{LEFT}" y="{y:.1f}" width="{length:.1f}" height="{ROW - 2}" fill="{colour}"/>')
            parts.append(f'<text x="{LEFT + length + 4:.1f}" y="{y + 9:.1f}" class="small">{_number(value)}</text>')
            y += ROW
        y += 8
    return _svg(title, unit, parts, _grid(least, most, across, 66, y), y + 24)


def lines(title: str, x_unit: str, y_unit: str, series: Mapping[str, Sequence[tuple[float, float]]]) -> str:
    """Draw one line for each name, through its points in order of x."""
    points = [point for one in series.values() for point in one]
    x_least, x_most = _decades([x for x, _ in points if x > 0])
    y_least, y_most = _decades([y for _, y in points if y > 0])
    across, down = _across(x_least, x_most, 70, WIDTH - RIGHT), _across(y_least, y_most, 380, 74)
    parts = _legend(list(series))
    for at, line in enumerate(series.values()):
        drawn = [(across(x), down(y)) for x, y in line if x > 0 and y > 0]
        path = " ".join(f"{x:.1f},{y:.1f}" for x, y in drawn)
        parts.append(f'<polyline points="{path}" fill="none" stroke="{COLOURS[at % len(COLOURS)]}" stroke-width="2"/>')
        parts += [f'<circle cx="{x:.1f}" cy="{y:.1f}" r="3" fill="{COLOURS[at % len(COLOURS)]}"/>' for x, y in drawn]
    for power in range(y_least, y_most + 1):
        y = down(10.0**power)
        parts.append(f'<line x1="70" x2="{WIDTH - RIGHT}" y1="{y:.1f}" y2="{y:.1f}" class="grid"/>')
        parts.append(f'<text x="62" y="{y + 4:.1f}" text-anchor="end" class="small">{_number(10.0**power)}</text>')
    parts.append(f'<text x="{WIDTH - RIGHT}" y="420" text-anchor="end" class="small">{escape(x_unit)}</text>')
    return _svg(title, y_unit, parts, _grid(x_least, x_most, across, 74, 380), 430)


def _decades(values: Sequence[float]) -> tuple[int, int]:
    least, most = floor(log10(min(values))), ceil(log10(max(values)))
    return least, max(most, least + 1)


def _across(least: int, most: int, begin: float, end: float) -> Callable[[float], float]:
    return lambda value: begin + (log10(value) - least) / (most - least) * (end - begin)


def _grid(least: int, most: int, across: Callable[[float], float], top: float, bottom: float) -> list[str]:
    parts: list[str] = []
    for power in range(least, most + 1):
        x = across(10.0**power)
        parts.append(f'<line x1="{x:.1f}" x2="{x:.1f}" y1="{top:.1f}" y2="{bottom:.1f}" class="grid"/>')
        parts.append(
            f'<text x="{x:.1f}" y="{bottom + 14:.1f}" text-anchor="middle" class="small">{_number(10.0**power)}</text>'
        )
    return parts


def _legend(names: Sequence[str]) -> list[str]:
    parts: list[str] = []
    x = 12.0
    for at, name in enumerate(names):
        parts.append(f'<rect x="{x:.1f}" y="38" width="10" height="10" fill="{COLOURS[at % len(COLOURS)]}"/>')
        parts.append(f'<text x="{x + 14:.1f}" y="47" class="small">{escape(name)}</text>')
        x += 26 + 5.6 * len(name)
    return parts


def _number(value: float) -> str:
    return f"{value:,.0f}" if value >= 10 else f"{value:.2g}"


def _svg(title: str, unit: str, parts: Sequence[str], grid: Sequence[str], height: float) -> str:
    style = "text{font:12px sans-serif;fill:#222}.small{font-size:10px;fill:#555}.grid{stroke:#ddd}"
    return "\n".join(
        [
            f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {WIDTH} {height:.0f}" role="img">',
            f'<title>{escape(title)}</title><style>{style}</style><rect width="100%" height="100%" fill="#fff"/>',
            f'<text x="12" y="22" font-weight="bold">{escape(title)} ({escape(unit)}, logarithmic scale)</text>',
            *grid,
            *parts,
            "</svg>\n",
        ]
    )
