"""Lists of executions, the inbox (open gates that ask a person), and relations (parents, sub-workflows, forks).

    parent ─▶ execution ─▶ sub-workflows
                 ├╌╌ row 12 ╌╌▶ fork
                 └╌╌ row 30 ╌╌▶ fork ╌╌ row 41 ╌╌▶ fork

A fork begins with a copy of its origin's rows, so all forks of one origin share its first event and start time. That
finds them without an index. The last `forked` event of each names its origin and the row where it left.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Collection, Iterable, Sequence
from typing import ClassVar, Final, TypeAlias

import msgspec
from msgspec.structs import replace
from typing_extensions import TypedDict

from pointsman.auth.policy import outermost
from pointsman.context import AppContext
from pointsman.engine.events.lifecycle import ExecutionForked
from pointsman.engine.events.steps import Event
from pointsman.errors import CallerError
from pointsman.executions.children import with_shown_status
from pointsman.executions.deletion import existing_summary
from pointsman.executions.usage_rollup import UsageRollup
from pointsman.executions.views import ExecutionStatus, need_text, status_shown
from pointsman.ports import Row
from pointsman.runtime.local import unknown_execution
from pointsman.store.records import (
    TRIAL,
    AnswerEntry,
    AnswersQuery,
    ExecutionQuery,
    GateEntry,
    InboxQuery,
    Summary,
)
from pointsman.values import ExecutionId, Instant, Json, WorkflowId


class CursorInvalid(CallerError):
    """The cursor is not one that a page contained."""

    code: ClassVar[str] = "cursor-invalid"


class InboxEntry(TypedDict):
    """An open gate in an inbox."""

    executionId: str
    """The execution to send the answer to."""
    inside: str | None
    """The sub-workflow whose gate it is; null: it is a gate of the execution itself."""
    workflowId: str
    gateId: str
    nodeId: str
    nodeName: Json
    """Display name of the node: a text, or one by language; null: its id."""
    message: str
    messages: dict[str, str] | None
    """The message by language, if the workflow defines it in several."""
    about: str
    digest: str
    """Identifies what the gate asks and shows. It changes with them; an answer sends it back."""
    scripted: bool
    """Whether the scripted model answers in the execution, so that the texts of its agents are made up."""
    item: str | None
    round: int | None
    openedAt: float
    deadline: float | None
    users: list[str]
    groups: list[str]
    cursor: str
    """Value of `after` for the page that begins after this entry."""


class InboxPage(TypedDict):
    """Open gates, oldest first."""

    gates: list[InboxEntry]
    next: str | None
    """The `after` of the next page; null: this was the last."""


async def inbox(
    app: AppContext,
    user: str | None = None,
    groups: Sequence[str] = (),
    *,
    workflow: str | None = None,
    after: str | None = None,
    limit: int = 50,
    sees: Callable[[Summary, GateEntry], Awaitable[bool]] | None = None,
) -> list[InboxEntry]:
    """Return one page of the open gates that wait for a person, oldest first; without a user, of all open gates.

    `after`: the `cursor` of the last entry of the previous page. `sees`: whether the caller may see a gate of the
    outermost execution. Raises `CursorInvalid`.
    """
    query = InboxQuery(
        user=user,
        groups=tuple(groups),
        workflow=None if workflow is None else WorkflowId(workflow),
        after=None if after is None else _cursor_position(after),
        limit=limit,
    )
    entries: list[InboxEntry] = []
    while page := await app.store.executions.inbox(query):
        for entry in page:
            name, summary = await outermost(app, entry.execution)
            if sees is None or (summary is not None and await sees(summary, entry)):
                entries.append(entry_view(entry, name))
        if len(page) < query.limit or len(entries) >= limit:
            break
        query = replace(query, after=(page[-1].opened, page[-1].execution, page[-1].gate))
    return entries[:limit]


def inbox_page(gates: list[InboxEntry], limit: int) -> InboxPage:
    """Return a page of at most `limit` entries as JSON."""
    return {"gates": gates, "next": gates[-1]["cursor"] if len(gates) >= limit else None}


def entry_view(entry: GateEntry, outermost: ExecutionId) -> InboxEntry:
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


class AnsweredGate(TypedDict):
    """A person's answer to a gate."""

    executionId: str
    """The execution that a person started."""
    inside: str | None
    """The sub-workflow whose gate it was; null: it was a gate of the execution itself."""
    workflowId: str
    gateId: str
    nodeId: str
    nodeName: Json
    """Display name of the node: a text, or one by language; null: its id."""
    message: str
    """The question of the gate."""
    messages: dict[str, str] | None
    """The question by language, if the workflow defines it in several."""
    about: str
    item: str | None
    round: int | None
    by: str
    action: str
    comment: str | None
    closed: bool
    """Whether this answer closed the gate; false: it was one of several votes."""
    answeredAt: float
    visible: bool
    """Whether the caller may open the execution."""


class AnsweredPage(TypedDict):
    """Answers, newest first."""

    answers: list[AnsweredGate]
    next: str | None
    """The `after` of the next page; null: this was the last."""


async def answered(
    app: AppContext,
    by: str | None,
    *,
    workflow: str | None = None,
    after: str | None = None,
    limit: int = 50,
    sees: Callable[[Summary], Awaitable[bool]],
) -> AnsweredPage:
    """Return one page of the answers of a person, newest first; without a person, of the answers of all people in
    executions that `sees` admits.

    A person's own answers are listed even if the person may not open the execution any more. Raises `CursorInvalid`.
    """
    query = AnswersQuery(
        by=by,
        workflow=None if workflow is None else WorkflowId(workflow),
        before=None if after is None else _answer_position(after),
        limit=limit + 1,
    )
    found: list[tuple[AnswerEntry, AnsweredGate]] = []
    while page := await app.store.executions.answers(query):
        for entry in page:
            name, summary = await outermost(app, entry.execution)
            visible = summary is not None and await sees(summary)
            if visible or by is not None:
                found.append((entry, _answer_view(entry, name, visible=visible)))
        if len(page) < query.limit or len(found) > limit:
            break
        query = replace(query, before=page[-1].place)
    more = found[limit - 1][0] if len(found) > limit else None
    cursor = None if more is None else msgspec.json.encode(more.place).decode()
    return {"answers": [view for _, view in found[:limit]], "next": cursor}


def _answer_view(entry: AnswerEntry, outermost: ExecutionId, *, visible: bool) -> AnsweredGate:
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
        "item": entry.item,
        "round": entry.round,
        "by": entry.by,
        "action": entry.action,
        "comment": entry.comment or None,
        "closed": entry.closed,
        "answeredAt": entry.at,
        "visible": visible,
    }


def _answer_position(cursor: str) -> tuple[float, ExecutionId, str, str]:
    try:
        at, execution, gate, by = msgspec.json.decode(cursor, type=tuple[float, str, str, str])
    except (msgspec.DecodeError, UnicodeEncodeError):
        raise CursorInvalid(
            f"{cursor[:60]!r} is not a position in a list of answers", hint="Use the `next` of a page."
        ) from None
    return at, ExecutionId(execution), gate, by


def _cursor(entry: GateEntry) -> str:
    return msgspec.json.encode((entry.opened, entry.execution, entry.gate)).decode()


def _cursor_position(cursor: str) -> tuple[float, ExecutionId, str]:
    try:
        opened, execution, gate = msgspec.json.decode(cursor, type=tuple[float, str, str])
    except (msgspec.DecodeError, UnicodeEncodeError):
        raise CursorInvalid(
            f"{cursor[:60]!r} is not a position in an inbox", hint="Use the `cursor` of an entry."
        ) from None
    return opened, ExecutionId(execution), gate


STOPPED: Final = "stopped"


class ExecutionEntry(TypedDict):
    """An execution in a list."""

    executionId: str
    workflowId: str
    revision: int | None
    status: ExecutionStatus
    waitingFor: list[str]
    """Requirements of workers for the steps that wait for a worker."""
    startedAt: float
    startedBy: str | None
    """The user who started it; null: nobody who is known."""
    updatedAt: float
    parent: str | None
    sessionId: str | None
    scripted: bool
    """Whether the scripted model answers in it, so that the texts of its agents are made up."""


def stored_statuses(names: Collection[str]) -> frozenset[str]:
    """Return the stored statuses of executions that are shown with these statuses."""
    return frozenset("running" if status == STOPPED else status for status in names) | (
        frozenset({"running"} if "waiting" in names else ())
    )


def is_shown_as(summary: Summary, statuses: Collection[str]) -> bool:
    """Return whether an execution, after `with_shown_status`, has one of these statuses; with no statuses, always."""
    return not statuses or status_shown(summary.status, summary.worker) in statuses


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

    async def fits(summary: Summary) -> bool:
        narrowed = workflow in (None, summary.workflow) and is_shown_as(
            await with_shown_status(app.runtime, summary), statuses
        )
        narrowed = (
            narrowed and (since is None or summary.started >= since) and (until is None or summary.started < until)
        )
        narrowed = narrowed and (trials or not summary.execution.startswith(TRIAL))
        return narrowed and session in (None, summary.session) and (sees is None or await sees(summary))

    return await entries_of(app, await UsageRollup(app).search(words, sees=fits, limit=limit))


async def entries_of(app: AppContext, summaries: Iterable[Summary]) -> list[ExecutionEntry]:
    """Return the entries of a list, with the statuses that views of the executions show."""
    return [summary_view(await with_shown_status(app.runtime, summary)) for summary in summaries]


def summary_view(summary: Summary) -> ExecutionEntry:
    return {
        "executionId": summary.execution,
        "workflowId": summary.workflow,
        "revision": summary.revision or None,
        "status": status_shown(summary.status, summary.worker),
        "waitingFor": [need_text(need) for need in summary.needs],
        "startedAt": summary.started,
        "startedBy": summary.owner or None,
        "updatedAt": summary.updated,
        "parent": summary.parent,
        "sessionId": summary.session,
        "scripted": summary.scripted,
    }


async def names_of_workflows(app: AppContext, words: str) -> Callable[[str], Json]:
    """Return a lookup of each saved workflow's names in all languages, for a search; they are read only if there are
    words to search for."""
    result: dict[str, Json] = {}
    if words.strip():
        result = {
            workflow.id: [workflow.name, *(workflow.names or {}).values()]
            for workflow in await app.store.workflows.list()
        }
    return lambda reference: result.get(reference.partition("@")[0])


LOOKED_AT_MAX: Final = 1000
"""Executions whose beginning is compared: the latest ones of the workflow."""
CHILDREN_MAX: Final = 500
ANCESTORS_MAX: Final = 50

Sees: TypeAlias = Callable[[Summary], Awaitable[bool]]

LAST: Final = "last"
"""Reference to the execution that started last."""
ID_PREFIXES: Final = ("", "exec-", TRIAL)
"""What a person may leave out at the beginning of an id."""
CANDIDATES_MAX: Final = 10


class ExecutionAmbiguous(CallerError):
    """The ids of several executions begin with the reference."""

    code: ClassVar[str] = "execution-ambiguous"


async def execution_named(app: AppContext, reference: str, *, sees: Sees) -> ExecutionId:
    """Return the id of the execution that a person means: by its id, by the beginning of its id (also without `exec-`)
    if no other id begins so, or by `last`, which started last and is not a sub-workflow.

    Raises `UnknownExecution`, and `ExecutionAmbiguous` with the candidates.
    """
    exact = ExecutionId(reference)
    if reference and await app.runtime.journal.last(exact):
        return exact  # The verb that receives the id checks whether the caller may see it.
    if reference == LAST:
        matches = await _first_seen(app, ExecutionQuery(), sees, most=1, outermost_only=True)
    else:
        prefixes = [f"{start}{reference}" for start in ID_PREFIXES] if reference else []
        queries = [ExecutionQuery(prefix=prefix) for prefix in prefixes]
        matches = [one for query in queries for one in await _first_seen(app, query, sees, most=CANDIDATES_MAX + 1)]
    if not matches:
        raise unknown_execution(reference)
    if len(matches) > 1:
        listed = [f"{match.execution}  {match.status}  {match.workflow}" for match in matches[:CANDIDATES_MAX]]
        more = ["… and more"] if len(matches) > CANDIDATES_MAX else []
        raise ExecutionAmbiguous(
            f"the ids of several executions begin with {reference!r}",
            hint="\n    ".join(["Write more of the id of one of these, newest first:", *listed, *more]),
        )
    return matches[0].execution


async def _first_seen(
    app: AppContext, query: ExecutionQuery, sees: Sees, *, most: int, outermost_only: bool = False
) -> list[Summary]:
    """Return the newest executions of a query that are visible."""
    visible: list[Summary] = []
    while page := await app.store.executions.list(query):
        for entry in page:
            if not (outermost_only and entry.parent is not None) and await sees(entry):
                visible.append(entry)
            if len(visible) == most:
                return visible
        query = replace(query, before=(page[-1].started, page[-1].execution))
    return visible


class ForkPoint(TypedDict):
    """Where a fork left its origin."""

    origin: str | None
    """Null: it has no parent."""
    row: int | None
    """The last row that it copied."""
    before: str | None
    """The step that the fork runs again."""


class ForkEntry(ExecutionEntry, ForkPoint):
    """A fork in a list."""


class Relations(TypedDict):
    """The relatives of an execution."""

    parents: list[ExecutionEntry]
    """The outermost first."""
    children: list[ExecutionEntry]
    """Its sub-workflows, oldest first."""
    forks: list[ForkEntry]
    """All copies with the same beginning, except the execution itself, oldest first."""
    origin: ForkPoint | None
    """Where the execution was forked itself."""
    complete: bool
    """False: there may be more forks, or more sub-workflows."""


async def relations_of(app: AppContext, execution: str, *, sees: Sees) -> Relations:
    """Return the related executions that `sees` admits. Raises `UnknownExecution`."""
    summary = await existing_summary(app, ExecutionId(execution))
    forks, all_forks = await _forks(app, summary, sees)
    children = await app.store.executions.list(ExecutionQuery(parent=summary.execution, limit=CHILDREN_MAX + 1))
    shown = await entries_of(app, [child for child in reversed(children[:CHILDREN_MAX]) if await sees(child)])
    origin = _left(await _rows(app, summary.execution)) if summary.parent is None else None
    return {
        "parents": await _parents(app, summary, sees),
        "children": shown,
        "forks": forks,
        "origin": origin,
        "complete": all_forks and len(children) <= CHILDREN_MAX,
    }


async def _parents(app: AppContext, summary: Summary, sees: Sees) -> list[ExecutionEntry]:
    entries: list[ExecutionEntry] = []
    while summary.parent is not None and len(entries) < ANCESTORS_MAX:
        above = await app.store.executions.find(summary.parent)
        if above is None or not await sees(above):
            break
        entries += await entries_of(app, [above])
        summary = above
    return entries[::-1]


async def _forks(app: AppContext, summary: Summary, sees: Sees) -> tuple[list[ForkEntry], bool]:
    """Return the other copies with the same beginning, and whether the list is complete."""
    began = await _began(app, summary.execution)
    if began is None or summary.parent is not None:
        return [], True
    query = ExecutionQuery(workflow=summary.workflow, since=began[0], limit=LOOKED_AT_MAX)
    looked_at = await app.store.executions.list(query)
    entries: list[ForkEntry] = []
    for one in reversed(looked_at):
        if one.execution == summary.execution or one.parent is not None or not await sees(one):
            continue
        if await _began(app, one.execution) == began:
            (entry,) = await entries_of(app, [one])
            entries.append({**entry, **(_left(await _rows(app, one.execution)) or _NOWHERE)})
    return entries, len(looked_at) < LOOKED_AT_MAX


async def _began(app: AppContext, execution: ExecutionId) -> tuple[Instant, Event] | None:
    """Return its start time and first event (which has a seed). A fork may leave out the rest of the first row."""
    async for row in app.store.journal.read(execution):
        return Instant(row.at), row.events[0]
    return None


async def _rows(app: AppContext, execution: ExecutionId) -> list[Row]:
    return [row async for row in app.store.journal.read(execution)]


_NOWHERE: Final[ForkPoint] = {"origin": None, "row": None, "before": None}
"""For the first execution, which is not a fork."""


def _left(rows: list[Row]) -> ForkPoint | None:
    """Return where it left its origin; None: it is not a fork."""
    left: ForkPoint | None = None
    for row in rows:
        for event in row.events:
            if isinstance(event, ExecutionForked):
                before = None if event.before is None else str(event.before)
                left = {"origin": event.origin, "row": event.row, "before": before}
    return left
