"""Notices: what happened, for somebody outside. They name things and carry no data of the execution."""

from __future__ import annotations

import fnmatch
from collections.abc import AsyncIterator, Iterable
from typing import Final, NamedTuple

import msgspec

from pointsman.context import AppContext
from pointsman.engine.events.lifecycle import (
    ExecutionCancelled,
    ExecutionCompleted,
    ExecutionFailed,
    ExecutionInterrupted,
)
from pointsman.executions.views import failure_view
from pointsman.settings.sections import NotificationSettings
from pointsman.store.records import ExecutionQuery, GateEntry, InboxQuery, Summary
from pointsman.values import ExecutionId, Instant, JsonObject

GATE: Final = "gate"
TAIL: Final = 20
"""An execution ends in one of its last rows: behind it there are only notes that others were told."""
PAGE: Final = 200
NAMES: Final = {
    "completed": "workflow.complete",
    "failed": "workflow.failed",
    "cancelled": "workflow.cancelled",
    "interrupted": "workflow.interrupted",
}
"""Status -> the name of the event, as in the feed."""


class Notice(NamedTuple):
    """`id` is made of its cause: the same cause gives the same notice."""

    id: str
    about: str
    """`gate`, or the status of the execution."""
    workflow: str
    body: JsonObject


def wants(settings: NotificationSettings, notice: Notice) -> bool:
    workflows = (fnmatch.fnmatchcase(notice.workflow, pattern) for pattern in settings.workflows)
    return notice.about in settings.events and any(workflows)


def told_in(notice: Notice, language: str) -> Notice:
    """What a gate asks in this language, where its author wrote it; else as it was asked first."""
    said = notice.body.get("messages")
    if not isinstance(said, dict) or language not in said:
        return notice
    return notice._replace(body={**notice.body, "message": said[language]})


async def notices_since(app: AppContext, since: float, wanted: Iterable[str]) -> AsyncIterator[Notice]:
    """What happened at or after `since` (unix seconds), of these kinds."""
    kinds = frozenset(wanted)
    if GATE in kinds:
        async for gate in _gates(app, since):
            yield gate_notice(gate)
    if kinds - {GATE}:
        async for summary in _ended(app, since, kinds - {GATE}):
            notice = await ended_notice(app, summary)
            if notice is not None:
                yield notice


async def _gates(app: AppContext, since: float) -> AsyncIterator[GateEntry]:
    after = since, ExecutionId(""), ""
    while page := await app.store.executions.inbox(InboxQuery(after=after, limit=PAGE)):
        for gate in page:
            yield gate
        after = page[-1].opened, page[-1].execution, page[-1].gate


async def _ended(app: AppContext, since: float, statuses: frozenset[str]) -> AsyncIterator[Summary]:
    query = ExecutionQuery(statuses=statuses, since=Instant(since), limit=PAGE)
    while page := await app.store.executions.list(query):
        for summary in page:
            if summary.parent is None:
                yield summary
        query = msgspec.structs.replace(query, before=(page[-1].started, page[-1].execution))


def gate_notice(gate: GateEntry) -> Notice:
    """A person owes an answer."""
    body: JsonObject = {
        "event": "workflow.human.required",
        "executionId": gate.execution,
        "workflowId": gate.workflow,
        "at": gate.opened,
        "gateId": gate.gate,
        "nodeId": gate.node,
        "message": gate.message,
        **({"messages": {**gate.messages}} if gate.messages else {}),
        "digest": gate.digest,
        "deadline": gate.deadline,
        "users": [*gate.users],
        "groups": [*gate.groups],
        "scripted": gate.scripted,
    }
    return Notice(f"{gate.execution}/{gate.gate}/{gate.opened * 1e6:.0f}", GATE, gate.workflow, body)


async def ended_notice(app: AppContext, summary: Summary) -> Notice | None:
    """How it ended, or was interrupted; None where it has gone on since."""
    journal = app.store.journal
    last = await journal.last(summary.execution)
    found: Notice | None = None
    async for row in journal.read(summary.execution, after=max(0, last - TAIL)):
        for number, event in enumerate(row.events):
            told: JsonObject = {}
            match event:
                case ExecutionCompleted():
                    about = "completed"
                case ExecutionFailed():
                    node = event.step.node if event.step is not None else None
                    about = "failed"
                    told["error"] = {**failure_view(event.failure, node), "details": None}
                case ExecutionCancelled():
                    about = "cancelled"
                    told |= {"reason": event.reason, "by": event.by}
                case ExecutionInterrupted():
                    about = "interrupted"
                    told |= {"limit": event.limit, "message": event.message}
                case _:
                    continue
            body: JsonObject = {
                "event": NAMES[about],
                "executionId": summary.execution,
                "workflowId": summary.workflow,
                "at": row.at,
                "scripted": summary.scripted,
                **told,
            }
            found = Notice(f"{summary.execution}/{row.seq}-{number}", about, summary.workflow, body)
    return found if found is not None and found.about == summary.status else None
