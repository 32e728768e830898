"""Bulk operations: one verb for every execution that matches a query, several at a time, each with its own result."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Iterable
from typing import ClassVar, Final, Literal, NamedTuple, TypeAlias

from typing_extensions import TypedDict

from pointsman.auth.callers import Caller
from pointsman.auth.policy import must_run
from pointsman.context import AppContext
from pointsman.errors import CallerError, PointsmanError
from pointsman.executions.authority import join
from pointsman.executions.children import with_shown_status
from pointsman.executions.deletion import delete, summaries
from pointsman.executions.lists import is_shown_as, stored_statuses
from pointsman.executions.opening import drive, open_execution, reach_execution
from pointsman.executions.views import status_shown
from pointsman.runtime.local import UnknownExecution
from pointsman.store.records import ExecutionQuery, Summary
from pointsman.values import ExecutionId, WorkflowId

Verb: TypeAlias = Literal["cancel", "pause", "resume", "retry", "delete"]
FITTING: Final[dict[Verb, frozenset[str]]] = {
    "cancel": frozenset({"pending", "running", "stopped", "waiting", "paused", "interrupted"}),
    "pause": frozenset({"running", "stopped", "waiting"}),
    "resume": frozenset({"paused", "interrupted", "stopped"}),
    "retry": frozenset({"failed"}),
    "delete": frozenset({"completed", "failed", "cancelled"}),
}
"""Statuses to which each verb applies."""

AT_ONCE: Final = 8
PAGE: Final = 200


class VerbUnfit(CallerError):
    """A verb does not apply to an execution in its present status."""

    code: ClassVar[str] = "verb-not-applicable"


class BulkResult(NamedTuple):
    """The result for one execution."""

    execution: ExecutionId
    status: str
    """The status afterwards; `deleted`, or `refused`."""
    error: str = ""


class BulkSelection(NamedTuple):
    """A query for executions; an absent field does not narrow it. Sub-workflows match only by their parent."""

    workflow: str | None = None
    statuses: frozenset[str] = frozenset()
    session: str | None = None
    parent: str | None = None
    since: float | None = None
    """Started at or after, unix seconds."""
    until: float | None = None
    """Started before, unix seconds."""

    def given(self) -> dict[str, object]:
        """Return the fields that narrow the query."""
        return {name: value for name, value in self._asdict().items() if value is not None and value != frozenset()}


async def fitting(app: AppContext, verb: Verb, which: BulkSelection) -> list[Summary]:
    """Return the executions that match the query and to which the verb applies, newest first."""
    statuses = which.statuses & FITTING[verb] if which.statuses else FITTING[verb]
    if not statuses:
        return []
    query = ExecutionQuery(
        statuses=stored_statuses(statuses),
        workflow=None if which.workflow is None else WorkflowId(which.workflow),
        session=which.session,
        parent=None if which.parent is None else ExecutionId(which.parent),
        before=None if which.until is None else (which.until, ExecutionId("")),
        limit=PAGE,
    )
    matches: list[Summary] = []
    async for stored in summaries(app, query):
        one = await with_shown_status(app.runtime, stored)
        if which.since is not None and one.started < which.since:
            break
        if one.parent == which.parent and is_shown_as(one, statuses):
            matches.append(one)
    return matches


async def named_executions(
    app: AppContext, verb: Verb, executions: Iterable[str], sees: Callable[[Summary], Awaitable[bool]]
) -> tuple[list[Summary], list[BulkResult]]:
    """Return the named executions to which the verb applies, and refusals for the others."""
    summaries: list[Summary] = []
    others: list[BulkResult] = []
    for name in dict.fromkeys(map(ExecutionId, executions)):
        summary = await app.store.executions.find(name)
        if summary is None or not await sees(summary):
            others.append(_refused(name, UnknownExecution(f"there is no execution {name!r}")))
            continue
        summary = await with_shown_status(app.runtime, summary)
        if not is_shown_as(summary, FITTING[verb]):
            status = status_shown(summary.status, summary.worker)
            others.append(_refused(name, VerbUnfit(f"{name!r} is {status}: there is nothing to {verb}")))
        else:
            summaries.append(summary)
    return summaries, others


async def apply_to_each(app: AppContext, verb: Verb, summaries: list[Summary], *, by: str = "") -> list[BulkResult]:
    """Apply the verb to all of them, `AT_ONCE` at a time. A refusal of one does not stop the others."""
    turns = asyncio.Semaphore(AT_ONCE)

    async def one(summary: Summary) -> BulkResult:
        async with turns:
            try:
                return BulkResult(summary.execution, await VERBS[verb](app, summary.execution, by))
            except PointsmanError as why:
                return _refused(summary.execution, why)

    return [*await asyncio.gather(*(one(summary) for summary in summaries))]


async def runnable(app: AppContext, caller: Caller, summaries: list[Summary]) -> tuple[list[Summary], list[BulkResult]]:
    """Return the executions that the caller may run again, and refusals for the others. The returned executions act for
    the caller too from now on."""
    may: list[Summary] = []
    refused: list[BulkResult] = []
    for summary in summaries:
        try:
            await must_run(app, caller, summary.execution)
        except CallerError as why:
            refused.append(_refused(summary.execution, why))
        else:
            await join(app, caller, summary.execution)
            may.append(summary)
    return may, refused


def _refused(execution: ExecutionId, why: PointsmanError) -> BulkResult:
    return BulkResult(execution, "refused", f"[{why.code}] {why}")


async def _cancel(app: AppContext, execution: str, by: str) -> str:
    reached = await reach_execution(app, execution)
    await reached.cancel(by=by)
    await reached.drained()
    return reached.status


async def _pause(app: AppContext, execution: str, by: str) -> str:
    reached = await reach_execution(app, execution)
    await reached.pause(by=by)
    return reached.status


async def _resume(app: AppContext, execution: str, by: str) -> str:
    taken = await open_execution(app, execution)
    await taken.resume(by=by)
    await drive(taken)
    return taken.status


async def _retry(app: AppContext, execution: str, by: str) -> str:
    taken = await open_execution(app, execution)
    await taken.retry(by=by)
    await drive(taken)
    return taken.status


async def _delete(app: AppContext, execution: str, by: str) -> str:
    await delete(app, [execution])
    return "deleted"


VERBS: Final[dict[Verb, Callable[[AppContext, str, str], Awaitable[str]]]] = {
    "cancel": _cancel,
    "pause": _pause,
    "resume": _resume,
    "retry": _retry,
    "delete": _delete,
}


class BulkResultView(TypedDict):
    """The result for one execution."""

    executionId: str
    status: str
    """The status afterwards; `deleted`, or `refused`; of a dry run the present status."""
    error: str | None


def bulk_result_view(result: BulkResult) -> BulkResultView:
    """Return a result as JSON."""
    return {"executionId": result.execution, "status": result.status, "error": result.error or None}
