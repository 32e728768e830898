"""Lists of executions for people and programs."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Collection
from typing import Final

from msgspec.structs import replace
from typing_extensions import TypedDict

from pointsman.context import AppContext
from pointsman.executions.usage_rollup import UsageRollup
from pointsman.executions.views import ExecutionStatus, need_text, status_shown
from pointsman.store.records import TRIAL, ExecutionQuery, Summary
from pointsman.values import Json, WorkflowId

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
