"""Relations of an execution: parents, sub-workflows and forks, read from lists and few journals.

    parent ─▶ execution ─▶ sub-workflows
                 ├╌╌ row 12 ╌╌▶ fork
                 └╌╌ row 30 ╌╌▶ fork ╌╌ row 41 ╌╌▶ fork

A fork begins with a copy of its origin's rows, so all forks of one origin share its first event and start time. That
finds them without an index. The last `forked` event of each names its origin and the row where it left.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from typing import Final, TypeAlias

from typing_extensions import TypedDict

from pointsman.context import AppContext
from pointsman.engine.events.lifecycle import ExecutionForked
from pointsman.engine.events.steps import Event
from pointsman.executions.deletion import known
from pointsman.executions.lists import ExecutionEntry, summary_view
from pointsman.ports import Row
from pointsman.store.records import ExecutionQuery, Summary
from pointsman.values import ExecutionId, Instant

LOOKED_AT_MAX: Final = 1000
"""Executions whose beginning is compared: the latest ones of the workflow."""
CHILDREN_MAX: Final = 500
ANCESTORS_MAX: Final = 50

Sees: TypeAlias = Callable[[Summary], Awaitable[bool]]


class ForkPoint(TypedDict):
    """Where a fork left its origin."""

    origin: str | None
    """Null: it is the first of its family."""
    row: int | None
    """The last row that it took over."""
    before: str | None
    """The step that it was forked to run again."""


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
    summary = await known(app, ExecutionId(execution))
    forks, all_forks = await _forks(app, summary, sees)
    children = await app.store.executions.list(ExecutionQuery(parent=summary.execution, limit=CHILDREN_MAX + 1))
    shown = [summary_view(one) for one in reversed(children[:CHILDREN_MAX]) if await sees(one)]
    origin = _left(await _rows(app, summary.execution)) if summary.parent is None else None
    return {
        "parents": await _parents(app, summary, sees),
        "children": shown,
        "forks": forks,
        "origin": origin,
        "complete": all_forks and len(children) <= CHILDREN_MAX,
    }


async def _parents(app: AppContext, summary: Summary, sees: Sees) -> list[ExecutionEntry]:
    found: list[ExecutionEntry] = []
    while summary.parent is not None and len(found) < ANCESTORS_MAX:
        above = await app.store.executions.find(summary.parent)
        if above is None or not await sees(above):
            break
        found.append(summary_view(above))
        summary = above
    return found[::-1]


async def _forks(app: AppContext, summary: Summary, sees: Sees) -> tuple[list[ForkEntry], bool]:
    """Return the other copies with the same beginning, and whether the list is complete."""
    began = await _began(app, summary.execution)
    if began is None or summary.parent is not None:
        return [], True
    query = ExecutionQuery(workflow=summary.workflow, since=began[0], limit=LOOKED_AT_MAX)
    looked_at = await app.store.executions.list(query)
    found: list[ForkEntry] = []
    for one in reversed(looked_at):
        if one.execution == summary.execution or one.parent is not None or not await sees(one):
            continue
        if await _began(app, one.execution) == began:
            found.append({**summary_view(one), **(_left(await _rows(app, one.execution)) or _NOWHERE)})
    return found, len(looked_at) < LOOKED_AT_MAX


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
