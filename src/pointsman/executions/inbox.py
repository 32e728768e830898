"""Inbox: the open gates that wait for a person, in all executions of the store. Reads an index; opens no execution."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Sequence
from typing import ClassVar

import msgspec
from msgspec.structs import replace

from pointsman.auth.policy import outermost
from pointsman.context import AppContext
from pointsman.errors import CallerError
from pointsman.store.records import GateEntry, InboxQuery, Summary
from pointsman.values import ExecutionId, JsonObject, WorkflowId


class CursorInvalid(CallerError):
    """The cursor is not one that a page contained."""

    code: ClassVar[str] = "cursor-invalid"


async def inbox(
    app: AppContext,
    user: str | None = None,
    groups: Sequence[str] = (),
    *,
    workflow: str | None = None,
    after: str | None = None,
    limit: int = 50,
    sees: Callable[[Summary, GateEntry], Awaitable[bool]] | None = None,
) -> list[JsonObject]:
    """Return one page of the open gates that wait for a person, oldest first; without a user, of all open gates.

    `after`: the `cursor` of the last entry of the previous page. `sees`: whether the caller may see a gate of the
    outermost execution. Raises `CursorInvalid`.
    """
    query = InboxQuery(
        user=user,
        groups=tuple(groups),
        workflow=None if workflow is None else WorkflowId(workflow),
        after=None if after is None else _place(after),
        limit=limit,
    )
    found: list[JsonObject] = []
    while page := await app.store.executions.inbox(query):
        for entry in page:
            name, summary = await outermost(app, entry)
            if sees is None or (summary is not None and await sees(summary, entry)):
                found.append(entry_view(entry, name))
        if len(page) < query.limit or len(found) >= limit:
            break
        query = replace(query, after=(page[-1].opened, page[-1].execution, page[-1].gate))
    return found[:limit]


def entry_view(entry: GateEntry, outermost: ExecutionId) -> JsonObject:
    """Return an entry as JSON. `executionId`: the execution to send the answer to; `inside`: the sub-workflow whose
    gate it is, if that is another one."""
    return {
        "executionId": outermost,
        "inside": entry.execution if entry.execution != outermost else None,
        "workflowId": entry.workflow,
        "gateId": entry.gate,
        "nodeId": entry.node,
        "nodeName": entry.called,
        "message": entry.message,
        "messages": {**entry.messages} or None,
        "about": entry.about,
        "digest": entry.digest,
        "scripted": entry.scripted,
        "item": entry.item,
        "round": entry.round,
        "openedAt": entry.opened,
        "deadline": entry.deadline,
        "users": [*entry.users],
        "groups": [*entry.groups],
        "cursor": _cursor(entry),
    }


def _cursor(entry: GateEntry) -> str:
    return msgspec.json.encode((entry.opened, entry.execution, entry.gate)).decode()


def _place(cursor: str) -> tuple[float, ExecutionId, str]:
    try:
        opened, execution, gate = msgspec.json.decode(cursor, type=tuple[float, str, str])
    except (msgspec.DecodeError, UnicodeEncodeError):
        raise CursorInvalid(f"{cursor[:60]!r} is no place in an inbox", hint="Use the `cursor` of an entry.") from None
    return opened, ExecutionId(execution), gate
