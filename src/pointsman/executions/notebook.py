"""Pictures of executions in notebooks: the timeline as bars, open gates with the calls that answer them, the failure.

The HTML needs no script and no style sheet. Every text of a workflow is escaped.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Sequence
from html import escape
from typing import Final

from pointsman.engine.state import ExecutionState, status_of
from pointsman.executions.timeline import timeline_of
from pointsman.executions.views import GateView, waiting_view
from pointsman.ports import Row
from pointsman.values import Json

SPANS_MAX: Final = 200
"""Bars of one timeline; longer executions show the last ones."""
SHOWN_CHARS_MAX: Final = 2_000
COLORS: Final = {"failed": "#d64545", "running": "#3b82c4", "waiting": "#d9a400", "cancelled": "#888888"}
DONE: Final = "#3c9a5f"


def execution_html(state: ExecutionState, rows: Sequence[Row] = ()) -> str:
    """Return an execution as HTML: its status and gates, and with the rows of its journal also its timeline."""
    parts = [f"<b>{escape(state.setup.workflow)}</b> <code>{escape(state.id)}</code>: {escape(status_of(state))}"]
    failure = state.outcome.failure
    if failure is not None:
        parts.append(f"<div style='color:#d64545'>[{escape(failure.code)}] {escape(failure.message)}</div>")
    parts += [gate_html(gate) for gate in waiting_view(state)]
    if rows:
        parts.append(timeline_html(rows))
    return "<div>" + "".join(parts) + "</div>"


def gate_html(gate: GateView) -> str:
    """Return an open gate as HTML: what it asks and shows, and the calls that answer it."""
    node = gate["nodeId"]
    calls = [f"execution.answer({node!r}, {_value(option)!r})" for option in gate["options"]]
    shown = "" if gate["shown"] is None else json.dumps(gate["shown"], ensure_ascii=False, indent=2)
    data = f"<pre>{escape(shown[:SHOWN_CHARS_MAX])}</pre>" if shown else ""
    code = "".join(f"<div><code>{escape(call)}</code></div>" for call in calls)
    style = "border-left:3px solid #d9a400;padding-left:8px;margin:6px 0"
    return f"<div style='{style}'><b>{escape(node)}</b>: {escape(gate['message'])}{data}{code}</div>"


def timeline_html(rows: Iterable[Row]) -> str:
    """Return the timeline as a table with one bar for each span."""
    timeline = timeline_of(rows)
    spans = [span.view(timeline.begin, {}) for span in timeline.spans]
    whole_ms = max((timeline.end - timeline.begin) * 1000, 1.0)
    lines: list[str] = []
    for span in spans[-SPANS_MAX:]:
        end_ms = whole_ms if span["endMs"] is None else span["endMs"]
        left, width = 100 * span["startMs"] / whole_ms, 100 * (end_ms - span["startMs"]) / whole_ms
        color = COLORS.get(span["status"], DONE)
        bar = f"margin-left:{left:.2f}%;width:{max(width, 0.3):.2f}%;background:{color};height:10px"
        took = f"{(end_ms - span['startMs']) / 1000:.2f} s"
        lines.append(
            f"<tr><td>{escape(span['step'])}</td><td>{escape(span['status'])}</td><td>{took}</td>"
            f"<td style='width:400px'><div style='{bar}'></div></td></tr>"
        )
    more = len(spans) - SPANS_MAX
    note = f"<div>{more} earlier spans are not shown.</div>" if more > 0 else ""
    return f"{note}<table>{''.join(lines)}</table>"


def _value(option: Json) -> str:
    return str(option.get("value")) if isinstance(option, dict) else str(option)
