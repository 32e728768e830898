"""A timeline as bars of characters: one lane per node and branch, in the order they began."""

from __future__ import annotations

import shutil
from typing import Final, cast

import click

from pointsman.cli.printing import shown
from pointsman.cli.results import cost_text
from pointsman.values import JsonObject

LABEL_CHARS_MAX: Final = 34
BARS_CHARS_MAX: Final = 80
LANES_MAX: Final = 200
KINDS: Final = {"work": "█", "gate": "◆", "wait": "·", "child": "▓", "parallel": "─"}
COLOURS: Final = {"failed": "red", "retried": "yellow", "cancelled": "bright_black", "open": "blue"}

Lane = tuple[str, str]


def bar_lines(timeline: JsonObject) -> list[str]:
    """The lanes and the scale under them."""
    spans = cast("list[JsonObject]", timeline["spans"])
    whole = max(cast(float, timeline["durationMs"]), 0.001)
    lanes = _lanes(spans)
    label = min(LABEL_CHARS_MAX, max((len(_label(lane)) for lane in lanes.values()), default=0))
    width = max(20, min(BARS_CHARS_MAX, shutil.get_terminal_size().columns - label - 12))
    lines = [
        f"{_label(lane)[:label]:{label}} │{_bar(lane, whole, width)}│ {_took(lane, whole)}"
        for lane in [*lanes.values()][:LANES_MAX]
    ]
    if len(lanes) > LANES_MAX:
        lines.append(f"… and {len(lanes) - LANES_MAX} more lanes: `--json` has them all")
    lines.append(f"{'':{label}} 0{seconds(whole):>{width}}")
    used = {str(span["kind"]) for span in spans}
    lines.append("  ".join(f"{mark} {kind}" for kind, mark in KINDS.items() if kind in used))
    return lines


def _lanes(spans: list[JsonObject]) -> dict[Lane, list[JsonObject]]:
    """Visits of one node in one branch share a lane; the lanes of a branch stand together."""
    lanes: dict[Lane, list[JsonObject]] = {}
    for span in spans:
        lanes.setdefault((str(span["scope"]), str(span["node"])), []).append(span)
    first: dict[str, float] = {}
    for (scope, _), lane in lanes.items():
        first.setdefault(scope, cast(float, lane[0]["startMs"]))

    def place(item: tuple[Lane, list[JsonObject]]) -> tuple[float, str, float]:
        scope, began = item[0][0], cast(float, item[1][0]["startMs"])
        return (began, "", began) if scope == "[]" else (first[scope], scope, began)

    return dict(sorted(lanes.items(), key=place))


def _label(lane: list[JsonObject]) -> str:
    scope = cast("list[JsonObject]", lane[0]["scope"])
    inside = "".join(f"{one['parallel']}[{one['branch']}] " for one in scope)
    return shown("  " * len(scope) + inside + str(lane[0]["name"]))


def _bar(lane: list[JsonObject], whole: float, width: int) -> str:
    cells = [" "] * width
    for span in lane:
        begin = cast(float, span["startMs"])
        end = whole if span["endMs"] is None else cast(float, span["endMs"])
        first = min(width - 1, int(begin / whole * width))
        last = max(first + 1, min(width, round(end / whole * width)))
        colour = COLOURS.get(str(span["status"]))
        mark = KINDS[str(span["kind"])]
        cells[first:last] = [click.style(mark, fg=colour) if colour else mark] * (last - first)
    return "".join(cells)


def _took(lane: list[JsonObject], whole: float) -> str:
    total = sum((whole if s["endMs"] is None else cast(float, s["endMs"])) - cast(float, s["startMs"]) for s in lane)
    return seconds(total)


def seconds(milliseconds: float) -> str:
    return f"{milliseconds / 1000:.2f} s" if milliseconds >= 100 else f"{milliseconds:.1f} ms"


def _key(node: JsonObject) -> str:
    """The keys that paid; where none is known to have (a scripted run has none), the one that its agent names."""
    used = cast("list[int]", node["keysUsed"])
    if used:
        return ",".join(map(str, used))
    return "–" if node["keyIndex"] is None else str(node["keyIndex"])


def account_lines(timeline: JsonObject) -> list[str]:
    """What each node consumed, and all of them together."""
    nodes = cast("list[JsonObject]", timeline["nodes"])
    asked = [node for node in nodes if node["modelCalls"] or node["toolCalls"]]
    if not asked:
        return ["no model or tool was called"]
    names = max(5, *(len(shown(node["name"])) for node in asked))
    lines = [
        f"{'node':{names}}  {'calls':>5}  {'tools':>5}  {'tokens in':>9}  {'out':>7}  {'key':>4}  {'time':>9}  cost"
    ]
    for node in asked:
        key = _key(node)
        took = seconds(cast(float, node["seconds"]) * 1000)
        lines.append(
            f"{shown(node['name']):{names}}  {node['modelCalls']:>5}  {node['toolCalls']:>5}  {node['inputTokens']:>9}"
            f"  {node['outputTokens']:>7}  {key:>4}  {took:>9}  {cost_text(node['costUsd'], timeline['model'])}"
        )
    sums = {
        key: sum(cast(int, node[key]) for node in asked)
        for key in ("modelCalls", "toolCalls", "inputTokens", "outputTokens")
    }
    costs = [cast(float, node["costUsd"]) for node in asked if node["costUsd"] is not None]
    lines.append(
        f"{'all':{names}}  {sums['modelCalls']:>5}  {sums['toolCalls']:>5}  {sums['inputTokens']:>9}"
        f"  {sums['outputTokens']:>7}  {'':>4}  {'':>9}  {cost_text(sum(costs) if costs else None, timeline['model'])}"
    )
    return lines
