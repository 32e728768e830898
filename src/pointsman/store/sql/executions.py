"""The list of executions: one row for each, found by status, workflow, owner, time and the like; and inboxes."""

from __future__ import annotations

from collections.abc import Mapping
from functools import partial
from typing import Any, Final, LiteralString, NamedTuple, TypeAlias

import msgspec
from msgspec.structs import astuple

from pointsman.engine.state import ENDED
from pointsman.store.records import (
    TRIAL,
    BudgetUsage,
    ExecutionQuery,
    GateEntry,
    InboxQuery,
    Measure,
    Spenders,
    SpendingQuery,
    Summary,
)
from pointsman.store.sql.work import Database, Statement, Work, marks
from pointsman.values import ExecutionId, Instant, WorkflowId


class SummaryColumn(NamedTuple):
    """A column of the table `summaries`."""

    name: LiteralString
    type: LiteralString
    """Type of a parameter in PostgreSQL."""
    json: bool = False
    """Whether it is JSON, written and read as a text."""


SUMMARY_COLUMNS: Final = (
    SummaryColumn("execution", "text"),
    SummaryColumn("workflow", "text"),
    SummaryColumn("revision", "int4"),
    SummaryColumn("status", "text"),
    SummaryColumn("started", "float8"),
    SummaryColumn("updated", "float8"),
    SummaryColumn("parent", "text"),
    SummaryColumn("session", "text"),
    SummaryColumn("owner", "text"),
    SummaryColumn("wakes", "float8"),
    SummaryColumn("worker", "text"),
    SummaryColumn("scripted", "bool"),
    SummaryColumn("tokens", "int8"),
    SummaryColumn("model_calls", "int8"),
    SummaryColumn("tool_calls", "int8"),
    SummaryColumn("cost_usd", "float8"),
    SummaryColumn("needs", "text", json=True),
    SummaryColumn("awaits", "text", json=True),
)
"""Columns of both SQL stores, in the order of `summary_values` and `summary_of`. All statements are made from them."""
COLUMNS: Final = ", ".join([column.name for column in SUMMARY_COLUMNS])
COLUMNS_READ: Final = ", ".join(
    [f"CAST({column.name} AS TEXT)" if column.json else column.name for column in SUMMARY_COLUMNS]
)
SELECT: Final = f"SELECT {COLUMNS_READ} FROM summaries"
LAST_OF_SESSION: Final = (
    "session IS NOT NULL AND parent IS NULL AND NOT EXISTS (SELECT 1 FROM summaries AS later"
    " WHERE later.session = summaries.session AND later.parent IS NULL"
    " AND (later.started, later.execution) > (summaries.started, summaries.execution))"
)
NONE: Final = "[]"

COLUMN: Final[Mapping[Measure, LiteralString]] = {
    "tokens": "tokens",
    "modelCalls": "model_calls",
    "toolCalls": "tool_calls",
    "costUsd": "cost_usd",
}
"""Columns of each measure in SQL stores."""
APART: Final = "revision, owner, session, parent"
TOGETHER: Final = "0, '', NULL, NULL"
"""Constants in place of these columns if the groups are not separated."""

SpendersRow: TypeAlias = tuple[int, int, int, float, str, int, str, str | None, str | None]
SummaryValues: TypeAlias = tuple[str | float | None, ...]
_gates: Final = msgspec.json.Decoder(GateEntry)


class SqlExecutions:
    """`Executions` of the SQL stores."""

    def __init__(self, database: Database) -> None:
        self._database = database

    async def put(self, summary: Summary, *, seq: int | None = None) -> None:
        await self._database.write(partial(self._database.dialect.put_summary, summary, seq))

    async def find(self, execution: ExecutionId) -> Summary | None:
        statement = Statement(f"{SELECT} WHERE execution = %s", (execution,))
        found = await self._database.read(partial(summaries, statement), brief=True)
        return found[0] if found else None

    async def list(self, query: ExecutionQuery = ExecutionQuery()) -> list[Summary]:  # noqa: B008 - frozen
        statement = select_summaries(query, awaits=self._database.dialect.awaits)
        return await self._database.read(partial(summaries, statement))

    async def spending(self, query: SpendingQuery) -> list[Spenders]:
        return await self._database.read(partial(spending, query, self._database.dialect.dearest))

    async def inbox(self, query: InboxQuery = InboxQuery()) -> list[GateEntry]:  # noqa: B008 - frozen
        return await self._database.read(partial(inbox, self._database.dialect.select_gates(query)))


def summaries(statement: Statement) -> Work[list[Summary]]:
    found = yield statement
    return [summary_of(row) for row in found.rows]


def inbox(statement: Statement) -> Work[list[GateEntry]]:
    found = yield statement
    return [_gates.decode(data) for (data,) in found.rows]


def select_summaries(query: ExecutionQuery, *, awaits: LiteralString) -> Statement:
    """Every value is bound; only constant texts enter the statement."""
    narrowing: list[LiteralString] = []
    values: list[object] = []
    wanted: tuple[tuple[LiteralString, object], ...] = (
        ("workflow = %s", query.workflow),
        ("parent = %s", query.parent),
        ("session = %s", query.session),
        ("owner = %s", query.owner),
        ("wakes <= %s", query.due),
        ("updated >= %s", query.since),
        (awaits, query.awaits),
    )
    for condition, value in wanted:
        if value is not None:
            narrowing.append(condition)
            values.append(value)
    if query.statuses:
        narrowing.append(f"status IN ({marks(len(query.statuses))})")
        values.extend(sorted(query.statuses))
    if query.last_of_session:
        narrowing.append(LAST_OF_SESSION)
    if not query.trials:
        narrowing.append("substr(execution, 1, %s) <> %s")
        values += (len(TRIAL), TRIAL)
    if query.before is not None:
        narrowing.append("(started, execution) > (%s, %s)" if query.oldest_first else "(started, execution) < (%s, %s)")
        values.extend(query.before)
    order: LiteralString = "started, execution" if query.oldest_first else "started DESC, execution DESC"
    if query.due is not None:
        order = "wakes, execution"
    where: LiteralString = f"WHERE {' AND '.join(narrowing)}" if narrowing else ""
    return Statement(f"{SELECT} {where} ORDER BY {order} LIMIT %s", (*values, query.limit))


def spending(query: SpendingQuery, dearest: LiteralString) -> Work[list[Spenders]]:
    """Add up what executions spent. Only the names of these columns enter the statement."""
    ended: list[LiteralString] = ["1 = 1"]
    values: list[object] = []
    bounds: tuple[tuple[LiteralString, object], ...] = (("updated >= %s", query.since), ("updated < %s", query.until))
    for condition, value in bounds:
        if value is not None:
            ended.append(condition)
            values.append(value)
    amount: LiteralString = COLUMN[query.measure]
    apart: LiteralString = APART if query.apart else TOGETHER
    grouped: LiteralString = f"GROUP BY {APART}" if query.apart else ""
    statement: LiteralString = (
        "SELECT count(*), count(*) FILTER (WHERE amount >= %s AND amount < %s),"
        f" count(*) FILTER (WHERE amount >= %s AND amount > 0), max(amount), {dearest}, {apart}"
        f" FROM (SELECT execution, {APART}, CAST(coalesce({amount}, 0) AS DOUBLE PRECISION) AS amount FROM summaries"
        f" WHERE workflow = %s AND revision > 0 AND (status NOT IN ({marks(len(ENDED))}) OR ({' AND '.join(ended)})))"
        f" AS each_of_them {grouped}"
    )
    found = yield Statement(statement, (query.near, query.most, query.most, query.workflow, *sorted(ENDED), *values))
    return [spenders_in(row) for row in found.rows if row[0]]


def spenders_in(row: SpendersRow) -> Spenders:
    executions, near, over, highest, dearest, revision, owner, session, parent = row
    return Spenders(
        executions=executions,
        near=near,
        over=over,
        highest=highest,
        dearest=ExecutionId(dearest),
        revision=revision,
        owner=owner,
        session=session,
        parent=None if parent is None else ExecutionId(parent),
    )


def summary_values(summary: Summary) -> SummaryValues:
    """Return the values of `SUMMARY_COLUMNS`."""
    return (
        summary.execution,
        summary.workflow,
        summary.revision,
        summary.status,
        summary.started,
        summary.updated,
        summary.parent,
        summary.session,
        summary.owner,
        summary.wakes,
        summary.worker,
        summary.scripted,
        *astuple(summary.spent),
        names_text(summary.needs),
        names_text(summary.awaits),
    )


def names_text(names: tuple[str, ...]) -> str:
    return msgspec.json.encode(names).decode() if names else NONE


def names_in(text: str) -> tuple[str, ...]:
    return () if text == NONE else msgspec.json.decode(text, type=tuple[str, ...])


def summary_of(row: tuple[Any, ...]) -> Summary:
    """Return the summary in a row of `SELECT`: the values of `SUMMARY_COLUMNS`."""
    execution, workflow, revision, status, started, updated, parent, session, owner, wakes, *others = row
    worker, scripted, tokens, model_calls, tool_calls, cost_usd, needs, awaits = others
    return Summary(
        execution=ExecutionId(execution),
        workflow=WorkflowId(workflow),
        revision=revision,
        status=status,
        started=Instant(started),
        updated=Instant(updated),
        parent=None if parent is None else ExecutionId(parent),
        session=session,
        owner=owner,
        wakes=None if wakes is None else Instant(wakes),
        needs=names_in(needs),
        worker=worker,
        scripted=bool(scripted),
        awaits=names_in(awaits),
        spent=BudgetUsage(tokens=tokens, model_calls=model_calls, tool_calls=tool_calls, cost_usd=cost_usd),
    )
