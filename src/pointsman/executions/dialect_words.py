"""Words of dialects: statuses and events in the terms of the systems whose documents the product reads.

    journal ─▶ native statuses and public events, which distinguish more ─▶ the words of one dialect

One word of a dialect may stand for several native ones; events for which a dialect has no word are left out.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Final, Literal, TypeAlias, get_args

from pointsman.engine.state import Status
from pointsman.executions.public_events import Observability, Redact, bulletins, unchanged
from pointsman.ports import Row
from pointsman.values import ExecutionId, Json, JsonObject

Dialect: TypeAlias = Literal["native", "rows", "graph", "steps", "plan"]
DIALECTS: Final[tuple[Dialect, ...]] = get_args(Dialect)

_STEPS: Final[Mapping[Status, str]] = {
    "pending": "pending",
    "running": "running",
    "waiting": "waiting",
    "paused": "paused",
    "interrupted": "paused",
    "completed": "completed",
    "failed": "failed",
    "cancelled": "cancelled",
}
_NATIVE: Final[Mapping[Status, str]] = {
    **_STEPS,
    "pending": "running",
    "waiting": "paused",
    "cancelled": "failed",
}
_OWN: Final[Mapping[Status, str]] = {status: status for status in get_args(Status)}

STATUSES: Final[Mapping[Dialect, Mapping[Status, str]]] = {
    "native": _NATIVE,
    "rows": _OWN,
    "graph": _OWN,
    "steps": _STEPS,
    "plan": _STEPS,
}
"""Statuses of executions. `native` has four words; `rows` and `graph` define none, so the native ones are used."""

_STEP_EVENTS: Final = {
    "workflow.node.start": "step_start",
    "workflow.node.retry": "step_progress",
    "workflow.usage": "step_progress",
    "workflow.node.skipped": "step_complete",
    "workflow.node.complete": "step_complete",
    "workflow.human.required": "checkpoint",
    "workflow.node.error": "error",
    "workflow.failed": "error",
    "workflow.interrupted": "error",
    "workflow.complete": "complete",
    "workflow.cancelled": "cancelled",
}
_NODE_RESULTS: Final = {
    "workflow.node.complete": "SUCCESS",
    "workflow.node.error": "FAILED",
    "workflow.node.skipped": "SKIPPED",
}


def status_in(dialect: Dialect, status: Status) -> str:
    """Return the dialect's word for the status of an execution."""
    return STATUSES[dialect][status]


def view_in(dialect: Dialect, view: JsonObject) -> JsonObject:
    """Return an execution view with the status in the dialect's word; `is` holds the native status."""
    status = view["status"]
    return {**view, "status": STATUSES[dialect].get(status, status), "is": status}  # pyright: ignore[reportArgumentType, reportCallIssue] - a view has a status


def events_in(
    dialect: Dialect,
    execution: ExecutionId,
    row: Row,
    observability: Observability = "standard",
    redact: Redact = unchanged,
) -> Iterator[JsonObject]:
    """Yield the public events of a row in the dialect's words. Each keeps its `id`, by which a reader continues."""
    for bulletin in bulletins(execution, row, observability, redact):
        told = _told(dialect, bulletin)
        if told is not None:
            yield told


def _told(dialect: Dialect, bulletin: JsonObject) -> JsonObject | None:
    name = str(bulletin["event"])
    match dialect:
        case "native" | "rows":
            return bulletin
        case "steps" | "plan":
            word = _STEP_EVENTS.get(name)
            return None if word is None else _renamed(bulletin, event=word)
        case "graph":
            word = _NODE_RESULTS.get(name)
            return None if word is None else _renamed(bulletin, event="node_result", status=word)


def _renamed(bulletin: JsonObject, **words: Json) -> JsonObject:
    return {**bulletin, **words}
