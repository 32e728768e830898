"""Pages of executions and of their events, and executions as of an earlier row.

    page 1 ── a long row, decoded ──▶ cached ──▶ page 2, 3, … ──▶ the last page drops it

One decision may be 100 000 events in one row, and a page holds some thousands. A stored row never changes, so the cache
is never stale. A row is dropped when it was read to its end, when other rows displace it, or when reading stops.
"""

from __future__ import annotations

import asyncio
from collections import OrderedDict
from collections.abc import AsyncIterator, Awaitable, Callable, Collection, Iterable
from typing import ClassVar, Final, NotRequired, cast

import msgspec
from msgspec.structs import replace
from typing_extensions import TypedDict

from pointsman.context import AppContext, Part
from pointsman.definition.graph.analysis import GraphView, graph_view
from pointsman.dialects.detect import write_workflow
from pointsman.errors import CallerError
from pointsman.executions.children import with_shown_status
from pointsman.executions.lists import ExecutionEntry, is_shown_as, stored_statuses, summary_view
from pointsman.executions.public_events import Redact, level_of, redacted_event
from pointsman.executions.views import (
    ExecutionStatus,
    ExecutionView,
    event_view,
    execution_view,
    observability_of,
    status_shown,
)
from pointsman.ports import Row
from pointsman.runtime.local import folded
from pointsman.store.records import ExecutionQuery, Summary
from pointsman.values import ExecutionId, Instant, JsonObject, WorkflowId
from pointsman.workflows.document_work import beside
from pointsman.workflows.library import LIBRARY, size_of

PLACE_CHARS_MAX = 40
PAGE: Final = 200
LOOKED_AT_MAX: Final = 10_000
"""Most executions read for one page; a caller who may see few of very many asks for the next page."""
DIGITS_MAX = 15
"""Stores count in 64 bits, and browsers in 53."""


class ExecutionDefinition(TypedDict):
    """The definition that an execution runs on."""

    document: JsonObject
    """In the native dialect."""
    graph: GraphView


class PositionInvalid(CallerError):
    """A given position is not one of a list or journal."""

    code: ClassVar[str] = "position-invalid"


class EventPage(TypedDict):
    """Events, oldest first."""

    events: list[EventView]
    last: str | None
    """The `after` of the next page."""
    status: ExecutionStatus


class EventView(TypedDict):
    """One event, with its place in the journal; what else it has depends on its kind."""

    seq: int
    n: int
    at: float
    kind: str
    withheld: NotRequired[list[str]]
    """Fields that `minimal` removes."""


class ExecutionPage(TypedDict):
    """Executions, newest first."""

    executions: list[ExecutionEntry]
    next: str | None
    """The `before` of the next page; null: this is the last page."""


async def executions_page(
    app: AppContext,
    *,
    sees: Callable[[Summary], Awaitable[bool]],
    statuses: Collection[str] = (),
    workflow: str | None = None,
    session: str | None = None,
    since: float | None = None,
    until: float | None = None,
    trials: bool = False,
    before: str | None = None,
    oldest_first: bool = False,
    limit: int = 50,
) -> ExecutionPage:
    """Return one page of the executions that `sees` admits and that started at or after `since` and before `until`;
    with `trials`, partial runs too. A page is shorter than `limit` only at the end of the list, or if `LOOKED_AT_MAX`
    executions were read and few of them are visible.

    Pages are ordered by start time, which never changes, so no execution is repeated or skipped while others are added
    or deleted. Raises `PositionInvalid`.
    """
    edge = since if oldest_first else until
    first = None if edge is None else (edge, ExecutionId(""))
    query = ExecutionQuery(
        statuses=stored_statuses(statuses),
        workflow=None if workflow is None else WorkflowId(workflow),
        session=session,
        before=first if before is None else parse_list_position(before),
        oldest_first=oldest_first,
        trials=trials,
        limit=limit,
    )
    visible: list[Summary] = []
    looked_at = 0
    while True:
        summaries = await app.store.executions.list(query)
        for summary in summaries:
            if _is_beyond(summary, since=since, until=until, oldest_first=oldest_first):
                return page_of(visible, None)
            shown = await with_shown_status(app.runtime, summary)
            if is_shown_as(shown, statuses) and await sees(summary):
                visible.append(shown)
            if len(visible) == limit:
                return page_of(visible, list_position(summary))
        looked_at += len(summaries)
        if len(summaries) < query.limit:
            return page_of(visible, None)
        if looked_at >= LOOKED_AT_MAX:
            return page_of(visible, list_position(summaries[-1]))
        query = replace(query, before=(summaries[-1].started, summaries[-1].execution), limit=max(limit, PAGE))


def page_of(summaries: Iterable[Summary], next: str | None = None) -> ExecutionPage:
    return {"executions": [summary_view(summary) for summary in summaries], "next": next}


def _is_beyond(summary: Summary, *, since: float | None, until: float | None, oldest_first: bool) -> bool:
    """Return whether the execution, and so every later one in the list, is outside the requested period."""
    if oldest_first:
        return until is not None and summary.started >= until
    return since is not None and summary.started < since


def list_position(summary: Summary) -> str:
    """Return an execution's position in a list, to continue after it."""
    return msgspec.json.encode((summary.started, summary.execution)).decode()


async def events_page(
    app: AppContext, execution: str, *, redact: Redact, after: str | None = None, limit: int = 200
) -> EventPage:
    """Return events after a position, oldest first, as far as the execution's redaction level allows: `events`, `last`
    (the position to continue from), `status`.

    The status was read before the events: if the execution has ended by then, the events are complete.
    """
    name = ExecutionId(execution)
    seq, number = parse_event_position(after)
    summary = await app.store.executions.find(name)
    level = await level_of(app, name)
    events: list[EventView] = []
    last = after
    async for row in rows_on(app, name, seq):
        first = number + 1 if row.seq == seq else 0
        for n, event in enumerate(row.events[first : first + limit - len(events)], first):
            events.append(cast("EventView", redacted_event(event_view(row, n, event), level, redact)))
            last = f"{row.seq}.{n}"
            first = n + 1
        begun_in(app).leave(name, row, sent_events=first)
        if len(events) == limit:
            break
    return {
        "events": events,
        "last": last,
        "status": "pending" if summary is None else status_shown(summary.status, ""),
    }


async def state_at(app: AppContext, execution: str, at: int | None) -> ExecutionView:
    """Return an execution as of a row of its journal; None: as it is now. Its redaction level is the present one."""
    now = await app.runtime.load(ExecutionId(execution))
    rows: list[Row] = []
    async for row in app.store.journal.read(ExecutionId(execution)):
        if at is not None and row.seq > at:
            break
        rows.append(row)
    return {**execution_view(folded(execution, rows), rows), "observability": observability_of(now.setup.options)}


async def definition_of(app: AppContext, execution: str) -> ExecutionDefinition:
    """Return the definition that an execution runs on, in the native dialect, with its regions.

    Raises `UnknownExecution`, `DefinitionMissing`.
    """
    state = await app.runtime.load(ExecutionId(execution))
    workflow = await app[LIBRARY].kept(state.setup.definition)
    return await beside(
        size_of(workflow),
        lambda: {"document": write_workflow(workflow, dialect="native").document, "graph": graph_view(workflow)},
    )


async def conversation_of(app: AppContext, execution: str) -> tuple[str, str | None]:
    """Return an execution's workflow and the session that it is a turn of. Raises `UnknownExecution`."""
    state = await app.runtime.load(ExecutionId(execution))
    return state.setup.workflow, state.setup.session


def parse_event_position(place: str | None) -> tuple[int, int]:
    """Parse a position `seq.n`, as events are numbered; None: before the first event. Raises `PositionInvalid`."""
    if not place:
        return 0, -1
    seq, dot, number = place.partition(".")
    if len(place) > PLACE_CHARS_MAX or not _is_number(seq) or (dot and not _is_number(number)):
        raise PositionInvalid(
            f"{place[:PLACE_CHARS_MAX]!r} is not a position in a journal",
            hint="Positions have the form `seq.n`, as in `17.0`.",
        )
    return int(seq), int(number) if dot else -1


def _is_number(text: str) -> bool:
    return text.isascii() and text.isdigit() and len(text) <= DIGITS_MAX


def parse_list_position(before: str) -> tuple[float, ExecutionId]:
    """Parse a position that `list_position` returned. Raises `PositionInvalid`."""
    try:
        started, execution = msgspec.json.decode(before, type=tuple[float, str])
    except (msgspec.DecodeError, UnicodeEncodeError):
        raise PositionInvalid(
            f"{before[:PLACE_CHARS_MAX]!r} is not a position in a list", hint="Use `next` of the previous page."
        ) from None
    return Instant(started), ExecutionId(execution)


LONG: Final = 1000
"""Rows with fewer events are decoded as quickly as they are found."""
CACHED_MAX: Final = 2
"""Rows per installation at a time: one may take some hundred megabytes."""
CACHED_S: Final = 60.0
"""Seconds since the last request."""


class RowCache:
    """The partly read long rows of one installation."""

    def __init__(self) -> None:
        self._rows: OrderedDict[tuple[ExecutionId, int], tuple[Row, asyncio.TimerHandle]] = OrderedDict()

    @property
    def rows(self) -> list[Row]:
        """The cached rows, the most recently used last."""
        return [row for row, _ in self._rows.values()]

    def find(self, execution: ExecutionId, seq: int) -> Row | None:
        row = self._rows.get((execution, seq))
        return None if row is None else row[0]

    def leave(self, execution: ExecutionId, row: Row, *, sent_events: int) -> None:
        """Cache a row in which a page ended after `sent_events` of its events."""
        self._drop((execution, row.seq))
        if sent_events < len(row.events) and len(row.events) > LONG:
            key = (execution, row.seq)
            self._rows[key] = (row, asyncio.get_running_loop().call_later(CACHED_S, self._drop, key))
            while len(self._rows) > CACHED_MAX:
                self._drop(next(iter(self._rows)))

    def _drop(self, key: tuple[ExecutionId, int]) -> None:
        entry = self._rows.pop(key, None)
        if entry is not None:
            entry[1].cancel()


async def rows_on(app: AppContext, execution: ExecutionId, seq: int) -> AsyncIterator[Row]:
    """Yield the rows of a journal from row `seq` on."""
    cached = begun_in(app).find(execution, seq)
    if cached is not None:
        yield cached
    async for row in app.store.journal.read(execution, after=max(seq - 1, 0) if cached is None else seq):
        yield row


def begun_in(app: AppContext) -> RowCache:
    return app[BEGUN]


BEGUN: Final = Part[RowCache]("long rows", lambda _: RowCache())
