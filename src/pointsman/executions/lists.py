"""Lists of executions, and the inbox: the open gates that ask a person."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Collection, Sequence
from typing import ClassVar, Final

import msgspec
from msgspec.structs import replace
from typing_extensions import TypedDict

from pointsman.auth.policy import outermost
from pointsman.context import AppContext
from pointsman.errors import CallerError
from pointsman.executions.usage_rollup import UsageRollup
from pointsman.executions.views import ExecutionStatus, need_text, status_shown
from pointsman.store.records import TRIAL, ExecutionQuery, GateEntry, InboxQuery, Summary
from pointsman.values import ExecutionId, Json, JsonObject, WorkflowId


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


STOPPED: Final = "stopped"


class ExecutionEntry(TypedDict):
    """An execution in a list."""

    executionId: str
    workflowId: str
    revision: int | None
    status: ExecutionStatus
    waitingFor: list[str]
    """What workers must have to perform the steps that wait for a worker."""
    startedAt: float
    updatedAt: float
    parent: str | None
    sessionId: str | None
    scripted: bool
    """Whether the scripted model answers in it, so that what its agents say is made up."""


async def list_executions(
    app: AppContext,
    *,
    statuses: Collection[str] = (),
    workflow: str | None = None,
    session: str | None = None,
    trials: bool = False,
    limit: int = 50,
) -> list[ExecutionEntry]:
    """Return matching executions, newest first; with `trials`, partial runs too."""
    query = ExecutionQuery(
        statuses=stored_statuses(statuses),
        workflow=None if workflow is None else WorkflowId(workflow),
        session=session,
        trials=trials,
        limit=limit,
    )
    fitting: list[Summary] = []
    while len(fitting) < limit:
        found = await app.store.executions.list(query)
        fitting += [one for one in found if is_shown_as(one, statuses)]
        if len(found) < query.limit:
            break
        query = replace(query, before=(found[-1].started, found[-1].execution))
    return [summary_view(summary) for summary in fitting[:limit]]


def stored_statuses(shown: Collection[str]) -> frozenset[str]:
    """Return the stored statuses of executions that are shown with these statuses."""
    return frozenset("running" if status == STOPPED else status for status in shown)


def is_shown_as(one: Summary, statuses: Collection[str]) -> bool:
    """Return whether an execution is shown with one of these statuses; with no statuses, always."""
    return not statuses or status_shown(one.status, one.worker) in statuses


async def found_executions(
    app: AppContext,
    words: str,
    *,
    sees: Callable[[Summary], Awaitable[bool]] | None = None,
    statuses: Collection[str] = (),
    workflow: str | None = None,
    session: str | None = None,
    since: float | None = None,
    until: float | None = None,
    trials: bool = False,
    limit: int = 50,
) -> list[ExecutionEntry]:
    """Return the matching executions that `sees` admits and whose inputs, outputs or errors contain all these words.

    Of the best matches, the newest come first. Running executions are found once they end or stand still.
    """

    async def fits(one: Summary) -> bool:
        narrowed = is_shown_as(one, statuses) and workflow in (None, one.workflow)
        narrowed = narrowed and (since is None or one.started >= since) and (until is None or one.started < until)
        narrowed = narrowed and (trials or not one.execution.startswith(TRIAL))
        return narrowed and session in (None, one.session) and (sees is None or await sees(one))

    return [summary_view(one) for one in await UsageRollup(app).search(words, sees=fits, limit=limit)]


def summary_view(summary: Summary) -> ExecutionEntry:
    return {
        "executionId": summary.execution,
        "workflowId": summary.workflow,
        "revision": summary.revision or None,
        "status": status_shown(summary.status, summary.worker),
        "waitingFor": [need_text(need) for need in summary.needs],
        "startedAt": summary.started,
        "updatedAt": summary.updated,
        "parent": summary.parent,
        "sessionId": summary.session,
        "scripted": summary.scripted,
    }


async def names_of_workflows(app: AppContext, words: str) -> Callable[[str], Json]:
    """Return a lookup of each saved workflow's names in all languages, for a search; they are read only if there are
    words to search for."""
    found: dict[str, Json] = {}
    if words.strip():
        found = {one.id: [one.name, *(one.names or {}).values()] for one in await app.store.workflows.list()}
    return lambda reference: found.get(reference.partition("@")[0])
