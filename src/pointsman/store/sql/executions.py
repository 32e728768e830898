"""The list of executions: one row for each, found by status, workflow, owner, time and the like; inboxes; and usage.

Usage by execution and day, and its sums, are written in one transaction.
"""

from __future__ import annotations

import hashlib
from collections.abc import Mapping, Sequence
from functools import partial
from typing import Any, Final, LiteralString, NamedTuple, TypeAlias

import msgspec
from msgspec.structs import astuple

from pointsman.engine.state import ENDED
from pointsman.store.codec import check_summary
from pointsman.store.records import (
    AMOUNT_COLUMNS,
    TRIAL,
    USAGE_COLUMNS,
    About,
    AnswerEntry,
    AnswersQuery,
    BudgetUsage,
    ExecutionQuery,
    GateEntry,
    InboxQuery,
    Measure,
    Spenders,
    SpendingQuery,
    Summary,
    UsageAmounts,
    UsageName,
    UsagePosition,
    UsageQuery,
    UsageRecord,
)
from pointsman.store.sql.work import Database, Lock, Many, Statement, Work, first, marks
from pointsman.values import ExecutionId, Instant, WorkflowId

INSERT_ENTRY: Final = f"INSERT INTO usage ({', '.join(USAGE_COLUMNS)}) VALUES ({marks(len(USAGE_COLUMNS))})"
SUM_NAMES: Final[LiteralString] = "day, place, workflow, revision, node, model, key"
_SUMMED: Final[LiteralString] = ", ".join(f"sum({column})" for column in AMOUNT_COLUMNS.split(", "))
_ADDED: Final[LiteralString] = ", ".join(
    f"{column} = usage_sums.{column} + excluded.{column}" for column in f"{AMOUNT_COLUMNS}, entries".split(", ")
)
_TAKEN_OFF: Final[LiteralString] = ", ".join(
    f"{column} = usage_sums.{column} - u.{column}" for column in AMOUNT_COLUMNS.split(", ")
)

IS_KNOWN: Final = "SELECT 1 FROM usage WHERE day = %s AND execution = %s LIMIT 1"
TAKE_OFF: Final = f"""
    UPDATE usage_sums SET {_TAKEN_OFF}, entries = usage_sums.entries - 1
    FROM (SELECT place, {AMOUNT_COLUMNS} FROM usage WHERE day = %s AND execution = %s) AS u
    WHERE usage_sums.day = %s AND usage_sums.place = u.place
"""
"""Subtract the previous entries from the sums: the first of four statements that put a record."""
FORGET: Final = "DELETE FROM usage WHERE day = %s AND execution = %s"
ADD: Final = f"""
    INSERT INTO usage_sums ({SUM_NAMES}, entries, {AMOUNT_COLUMNS})
    SELECT {SUM_NAMES}, 1, {AMOUNT_COLUMNS} FROM usage WHERE day = %s AND execution = %s
    ON CONFLICT (day, place) DO UPDATE SET {_ADDED}
"""
DROP_EMPTY: Final = "DELETE FROM usage_sums WHERE day = %s AND entries = 0"
"""Sums without entries are deleted."""
_OF_ENTRIES: Final[LiteralString] = f"SELECT {SUM_NAMES}, count(*), {_SUMMED} FROM usage GROUP BY {SUM_NAMES}"
ADD_UP: Final[LiteralString] = f"INSERT INTO usage_sums ({SUM_NAMES}, entries, {AMOUNT_COLUMNS}) {_OF_ENTRIES}"
"""Compute all sums from the entries."""
_STORED: Final[LiteralString] = f"SELECT {SUM_NAMES}, entries, {AMOUNT_COLUMNS} FROM usage_sums"
DIFFERENT: Final[tuple[LiteralString, LiteralString]] = (
    f"SELECT count(*) FROM ({_OF_ENTRIES} EXCEPT {_STORED}) AS missing",
    f"SELECT count(*) FROM ({_STORED} EXCEPT {_OF_ENTRIES}) AS unfounded",
)
"""Count the sums that differ from the entries; both are zero in an undamaged store."""


class SqlUsage:
    """`UsageSums` of the SQL stores: each put changes the sums by the difference from the entries before it."""

    def __init__(self, database: Database) -> None:
        self._database = database

    async def put(self, taking: UsageRecord) -> None:
        await self._database.write(partial(put, taking))

    async def sums(self, query: UsageQuery) -> list[tuple[About, UsageAmounts]]:
        return await self._database.read(partial(sums, query))


def sums(query: UsageQuery) -> Work[list[tuple[About, UsageAmounts]]]:
    result = yield Statement(*select(query))
    return [found_in(query, row) for row in result.rows]


def put(taking: UsageRecord) -> Work[None]:
    yield Lock(("usage",))
    key = taking.day, taking.execution
    row = yield from first(IS_KNOWN, *key)
    if row is not None:
        yield Statement(TAKE_OFF, (*key, taking.day))
        yield Statement(FORGET, key)
    yield Many(INSERT_ENTRY, rows_of(taking))
    yield Statement(ADD, key)
    if row is not None:
        yield Statement(DROP_EMPTY, (taking.day,))


def select(query: UsageQuery) -> tuple[LiteralString, list[str]]:
    """Return a statement and its values. Every value is bound; only names of columns enter the statement."""
    names: LiteralString = ", ".join(_COLUMN[dimension] for dimension in query.by)
    conditions: list[LiteralString] = ["1 = 1"]
    values: list[str] = []
    if query.since:
        conditions.append("day >= %s")
        values.append(query.since)
    if query.until:
        conditions.append("day <= %s")
        values.append(query.until)
    for name, value in query.of.items():
        conditions.append(f"{_COLUMN[name]} = %s")
        values.append(value)
    table: LiteralString = "usage" if query.of_executions else "usage_sums"
    summed: LiteralString = ", ".join(f"CAST(sum({column}) AS BIGINT)" for column in AMOUNT_COLUMNS.split(", "))
    where: LiteralString = " AND ".join(conditions)
    return f"SELECT {names}, {summed} FROM {table} WHERE {where} GROUP BY {names}", values


_COLUMN: Final[Mapping[UsageName, LiteralString]] = {
    "day": "day",
    "execution": "execution",
    "workflow": "workflow",
    "revision": "revision",
    "owner": "owner",
    "node": "node",
    "model": "model",
    "key": "key",
}


def found_in(query: UsageQuery, row: Sequence[str | int]) -> tuple[About, UsageAmounts]:
    """Return the group and the amounts of a row of that statement."""
    count = len(query.by)
    return tuple(row[:count]), UsageAmounts(*(int(amount) for amount in row[count:]))


def rows_of(taking: UsageRecord) -> list[tuple[str | int | bytes, ...]]:
    """Return the rows of a record, in the order of `USAGE_COLUMNS`."""
    return [
        (
            *(taking.day, taking.execution, taking.workflow, taking.revision, taking.owner),
            *(name.replace("\0", "\ufffd") for name in place),  # PostgreSQL stores no NUL.
            cursor_bytes(taking, place),
            *msgspec.structs.astuple(amounts),
        )
        for place, amounts in taking.entries
    ]


def cursor_bytes(taking: UsageRecord, place: UsagePosition) -> bytes:
    return hashlib.sha256(msgspec.msgpack.encode((taking.workflow, taking.revision, *place))).digest()


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
_answers: Final = msgspec.json.Decoder(AnswerEntry)

ANSWER_COLUMNS: Final[LiteralString] = "execution, gate, person, at, workflow, data"
KEPT_ANSWER: Final[LiteralString] = (
    "ON CONFLICT (execution, gate, person) DO UPDATE SET at = excluded.at, data = excluded.data"
)
PUT_ANSWER: Final[LiteralString] = f"INSERT INTO answers ({ANSWER_COLUMNS}) VALUES ({marks(6)}) {KEPT_ANSWER}"
AnswerValues: TypeAlias = tuple[str, str, str, float, str, bytes]


class SqlExecutions:
    """`Executions` of the SQL stores."""

    def __init__(self, database: Database) -> None:
        self._database = database

    async def put(self, summary: Summary, *, seq: int | None = None) -> None:
        check_summary(summary)
        await self._database.write(partial(self._database.dialect.put_summary, summary, seq))

    async def find(self, execution: ExecutionId) -> Summary | None:
        statement = Statement(f"{SELECT} WHERE execution = %s", (execution,))
        result = await self._database.read(partial(summaries, statement), brief=True)
        return result[0] if result else None

    async def list(self, query: ExecutionQuery = ExecutionQuery()) -> list[Summary]:  # noqa: B008 - frozen
        statement = select_summaries(query, awaits=self._database.dialect.awaits)
        return await self._database.read(partial(summaries, statement))

    async def spending(self, query: SpendingQuery) -> list[Spenders]:
        return await self._database.read(partial(spending, query, self._database.dialect.dearest))

    async def inbox(self, query: InboxQuery = InboxQuery()) -> list[GateEntry]:  # noqa: B008 - frozen
        return await self._database.read(partial(inbox, self._database.dialect.select_gates(query)))

    async def answers(self, query: AnswersQuery = AnswersQuery()) -> list[AnswerEntry]:  # noqa: B008 - frozen
        return await self._database.read(partial(answers, query))


def summaries(statement: Statement) -> Work[list[Summary]]:
    result = yield statement
    return [summary_of(row) for row in result.rows]


def inbox(statement: Statement) -> Work[list[GateEntry]]:
    result = yield statement
    return [_gates.decode(data) for (data,) in result.rows]


def answers(query: AnswersQuery) -> Work[list[AnswerEntry]]:
    narrowing: list[LiteralString] = ["1 = 1"]
    values: list[object] = []
    if query.by is not None:
        narrowing.append("person = %s")
        values.append(query.by)
    if query.workflow is not None:
        narrowing.append("workflow = %s")
        values.append(query.workflow)
    if query.before is not None:
        narrowing.append("(at, execution, gate, person) < (%s, %s, %s, %s)")
        values.extend(query.before)
    order: LiteralString = "at DESC, execution DESC, gate DESC, person DESC"
    where: LiteralString = " AND ".join(narrowing)
    statement: LiteralString = f"SELECT data FROM answers WHERE {where} ORDER BY {order} LIMIT %s"
    result = yield Statement(statement, (*values, query.limit))
    return [_answers.decode(data) for (data,) in result.rows]


def answer_values(answer: AnswerEntry) -> AnswerValues:
    """Return the values of `ANSWER_COLUMNS`."""
    return (*answer.key, answer.at, answer.workflow, msgspec.json.encode(answer))


def select_summaries(query: ExecutionQuery, *, awaits: LiteralString) -> Statement:
    """Every value is bound; only constant texts enter the statement."""
    narrowing: list[LiteralString] = []
    values: list[object] = []
    conditions: tuple[tuple[LiteralString, object], ...] = (
        ("workflow = %s", query.workflow),
        ("parent = %s", query.parent),
        ("session = %s", query.session),
        ("owner = %s", query.owner),
        ("wakes <= %s", query.due),
        ("updated >= %s", query.since),
        (awaits, query.awaits),
    )
    for condition, value in conditions:
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
    if query.prefix:
        narrowing.append("substr(execution, 1, %s) = %s")
        values += (len(query.prefix), query.prefix)
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
    conditions: list[LiteralString] = ["1 = 1"]
    values: list[object] = []
    bounds: tuple[tuple[LiteralString, object], ...] = (("updated >= %s", query.since), ("updated < %s", query.until))
    for condition, value in bounds:
        if value is not None:
            conditions.append(condition)
            values.append(value)
    amount: LiteralString = COLUMN[query.measure]
    apart: LiteralString = APART if query.apart else TOGETHER
    grouped: LiteralString = f"GROUP BY {APART}" if query.apart else ""
    statement: LiteralString = (
        "SELECT count(*), count(*) FILTER (WHERE amount >= %s AND amount < %s),"
        f" count(*) FILTER (WHERE amount >= %s AND amount > 0), max(amount), {dearest}, {apart}"
        f" FROM (SELECT execution, {APART}, CAST(coalesce({amount}, 0) AS DOUBLE PRECISION) AS amount FROM summaries"
        f" WHERE workflow = %s AND revision > 0 AND (status NOT IN ({marks(len(ENDED))})"
        f" OR ({' AND '.join(conditions)})))"
        f" AS each_of_them {grouped}"
    )
    result = yield Statement(statement, (query.near, query.most, query.most, query.workflow, *sorted(ENDED), *values))
    return [spenders_in(row) for row in result.rows if row[0]]


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
