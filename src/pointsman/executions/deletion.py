"""Deletion of executions and conversations with their memories, for good.

An execution is deleted with its journal, effects, sub-workflows, its own memory, and cached results that only it could
use. Only ended executions can be deleted. Sub-workflows are deleted first, so that repeating the deletion completes one
that a crash interrupted.
"""

from __future__ import annotations

from collections.abc import AsyncIterator, Iterable
from typing import ClassVar, Final

from msgspec.structs import replace
from typing_extensions import TypedDict

from pointsman.auth.subjects import unknown_session
from pointsman.comments.comments import CommentSubject, delete_comments_of
from pointsman.context import AppContext
from pointsman.engine.state import ENDED
from pointsman.errors import CallerError
from pointsman.executions.inputs import delete_artifacts
from pointsman.executions.opening import open_execution
from pointsman.runtime.attempts import CACHE_SCOPE as CACHE
from pointsman.runtime.local import unknown_execution
from pointsman.store.api import Store
from pointsman.store.errors import JournalMoved
from pointsman.store.records import ExecutionQuery, Summary
from pointsman.values import ExecutionId

SEARCH_SCOPE: Final = "history"
ALL: Final = "all"
"""Scope and namespace of the indexed words, beside the memory tiers."""
PAGE: Final = 200
TITLE: Final = "conversation"
"""The kind of the entries that store titles of conversations."""


class DeletedExecutions(TypedDict):
    """The executions that were deleted."""

    deleted: list[ExecutionId]


class ExecutionUnfinished(CallerError):
    """Only ended executions can be deleted."""

    code: ClassVar[str] = "execution-unfinished"


async def delete(app: AppContext, executions: Iterable[str]) -> list[ExecutionId]:
    """Delete executions and their sub-workflows, and return their ids. Raises `UnknownExecution` or
    `ExecutionUnfinished` before any of them is deleted."""
    members: dict[ExecutionId, Summary] = {}
    for execution in executions:
        top = await existing_summary(app, ExecutionId(execution))
        await _parent_must_have_ended(app, top)
        members.update([(child.execution, child) async for child in with_children(app, top)])
    return await delete_with_children(app, [*members.values()])


async def _parent_must_have_ended(app: AppContext, summary: Summary) -> None:
    above = None if summary.parent is None else await app.store.executions.find(summary.parent)
    if above is not None and above.status not in ENDED:
        raise ExecutionUnfinished(
            f"{summary.execution!r} is a sub-workflow of {above.execution!r}, which has not ended",
            hint=f"`pointsman cancel {above.execution}` first.",
        )


async def delete_with_children(app: AppContext, members: list[Summary]) -> list[ExecutionId]:
    """Delete executions, the last one first. Raises `ExecutionUnfinished` before anything is deleted.

    Messages in their outboxes are delivered first.
    """
    members = [await _delivered(app, one) for one in members]
    _all_ended(members)
    for member in reversed(members):
        await _delete_one(app, member)
    return [one.execution for one in members]


async def with_children(app: AppContext, top: Summary) -> AsyncIterator[Summary]:
    """Yield an execution, then its sub-workflows at any depth."""
    pending = [top]
    while pending:
        one = pending.pop()
        yield one
        pending += [child async for child in summaries(app, ExecutionQuery(parent=one.execution, limit=PAGE))]


async def summaries(app: AppContext, query: ExecutionQuery) -> AsyncIterator[Summary]:
    """Yield every matching execution, newest first, reading page by page."""
    while page := await app.store.executions.list(query):
        for entry in page:
            yield entry
        query = replace(query, before=(page[-1].started, page[-1].execution))


async def delete_session(app: AppContext, session: str) -> list[ExecutionId]:
    """Delete a conversation with its messages, executions and memory. Return the ids of the executions.

    Raises `UnknownSession`, `ExecutionUnfinished`.
    """
    members = [summary async for summary in summaries(app, ExecutionQuery(session=session, limit=PAGE))]
    deleted = await delete_with_children(app, members)
    await app.store.memory.forget("session", session)
    await app.store.memory.forget(CACHE, f"session/{session}")
    await app.store.entries.delete(TITLE, session)
    if not await app.store.sessions.forget(session) and not deleted:
        raise unknown_session(session)
    return deleted


def _all_ended(members: Iterable[Summary]) -> None:
    open_ = [member for member in members if member.status not in ENDED]
    if open_:
        first = open_[0]
        raise ExecutionUnfinished(
            f"{first.execution!r} is {first.status}: only ended executions can be deleted",
            hint=f"`pointsman cancel {first.execution}` ends it.",
        )


async def _delivered(app: AppContext, summary: Summary) -> Summary:
    """Return the summary once the outbox is empty. An ended execution is due only if its outbox is not empty."""
    if summary.status in ENDED and summary.wakes is not None:
        await (await open_execution(app, summary.execution)).settled()
        return await app.store.executions.find(summary.execution) or summary
    return summary


async def existing_summary(app: AppContext, execution: ExecutionId) -> Summary:
    summary = await app.store.executions.find(execution)
    if summary is None:
        raise unknown_execution(execution)
    return summary


async def _delete_one(app: AppContext, summary: Summary) -> None:
    execution, store = summary.execution, app.store
    last = await store.journal.last(execution)
    # Read again after `last`: a process that opens it from here on appends, and then nothing is deleted.
    now = await store.executions.find(execution)
    _all_ended([now] if now is not None else [])
    try:
        await erase(store, execution, at=last)
    except JournalMoved as why:
        raise ExecutionUnfinished(f"{execution!r} was just resumed", hint="Wait until it ends, or cancel it.") from why
    await delete_artifacts(app.settings, execution)
    app.runtime.drivers.pop(execution, None)


async def erase(store: Store, execution: ExecutionId, *, at: int) -> None:
    """Delete the execution's memory, then everything else. Raises `JournalMoved` unless `at` is its last row."""
    for scope, namespace in (
        ("execution", execution),
        ("session", execution),
        (CACHE, f"execution/{execution}"),
        (CACHE, f"session/{execution}"),
    ):
        await store.memory.forget(scope, namespace)
    await store.memory.put(SEARCH_SCOPE, ALL, execution, None)  # Its usage stays in the tables.
    await store.removal.remove(execution, at=at)
    await delete_comments_of(store.entries, CommentSubject("execution", execution))
