"""The list of executions in SQLite."""

from __future__ import annotations

import sqlite3
from typing import Final

import msgspec

from pointsman.store.budget_usage import Spenders, SpendingQuery, Spent, SpentRow, spent_in, values_of
from pointsman.store.records import TRIAL, ExecutionQuery, GateEntry, InboxQuery, Summary
from pointsman.store.sqlite.budget_usage import SPENT, put_spent, select_spenders
from pointsman.store.sqlite.inbox import put_gates, select_gates
from pointsman.store.sqlite.reader import Reader
from pointsman.store.sqlite.transaction import Transaction, read_head
from pointsman.store.sqlite.writer import Writer
from pointsman.values import ExecutionId, Instant, WorkflowId

KNOWN: Final = "execution, workflow, revision, status, started, parent, session, owner, wakes, needs, worker, scripted"
COLUMNS: Final = f"{KNOWN}, updated, {SPENT}"
PUT: Final = f"INSERT OR REPLACE INTO summaries ({COLUMNS}) VALUES ({', '.join('?' * 17)})"
PAY: Final = (
    f"UPDATE summaries SET (updated, {SPENT}) = (?, ?, ?, ?, ?) WHERE execution = ? AND workflow = ? AND revision = ?"
    " AND status = ? AND started = ? AND parent IS ? AND session IS ? AND owner = ? AND wakes IS ?"
    " AND needs = ? AND worker = ? AND scripted = ?"
)
"""Where it only paid: replacing the row would write a page of every index into the log."""
AWAITS: Final = "(SELECT json_group_array(name) FROM awaited AS a WHERE a.execution = summaries.execution)"

SEPARATOR: Final = "\n"
"""Between several needs."""

SummaryRow = tuple[
    str, str, int, str, float, str | None, str | None, str, float | None, str, str, int, float, *SpentRow, str
]


def put_summary(transaction: Transaction, summary: Summary) -> None:
    known = (
        summary.execution,
        summary.workflow,
        summary.revision,
        summary.status,
        summary.started,
        summary.parent,
        summary.session,
        summary.owner,
        summary.wakes,
        SEPARATOR.join(summary.needs),
        summary.worker,
        summary.scripted,
    )
    spent = values_of(summary.spent)
    is_more = summary.gates is not None
    if is_more or transaction.execute(PAY, (summary.updated, *spent, *known)).rowcount == 0:
        transaction.execute(PUT, (*known, summary.updated, *spent))
    transaction.execute("DELETE FROM awaited WHERE execution = ?", (summary.execution,))
    for name in summary.awaits:
        transaction.execute("INSERT INTO awaited (name, execution) VALUES (?, ?)", (name, summary.execution))
    put_gates(transaction, summary)


class SqliteExecutions:
    """Summaries, written with the rows that change them."""

    def __init__(self, writer: Writer, reader: Reader) -> None:
        self._submit = writer.submit
        self._read = reader.run

    async def put(self, summary: Summary, *, seq: int | None = None) -> None:
        def apply(transaction: Transaction) -> None:
            if seq is None or read_head(transaction.connection, summary.execution).seq <= seq:
                put_summary(transaction, summary)

        await self._submit(apply)

    async def find(self, execution: ExecutionId) -> Summary | None:
        found = await self._read(
            lambda connection: connection.execute(
                f"SELECT {COLUMNS}, {AWAITS} FROM summaries WHERE execution = ?", (execution,)
            ).fetchone()
        )
        return None if found is None else summary_of(found)

    async def list(self, query: ExecutionQuery = ExecutionQuery()) -> list[Summary]:  # noqa: B008 - frozen
        return await self._read(lambda connection: select(connection, query))

    async def count(self, execution: ExecutionId, spent: Spent) -> None:
        await self._submit(lambda transaction: put_spent(transaction, execution, spent))

    async def spending(self, query: SpendingQuery) -> list[Spenders]:
        return await self._read(lambda connection: select_spenders(connection, query))

    async def inbox(self, query: InboxQuery = InboxQuery()) -> list[GateEntry]:  # noqa: B008 - frozen
        return await self._read(lambda connection: select_gates(connection, query))


LAST_OF_SESSION: Final = (
    "session IS NOT NULL AND parent IS NULL AND NOT EXISTS (SELECT 1 FROM summaries AS later"
    " WHERE later.session = summaries.session AND later.parent IS NULL"
    " AND (later.started, later.execution) > (summaries.started, summaries.execution))"
)


def select(connection: sqlite3.Connection, query: ExecutionQuery) -> list[Summary]:
    """Every value is bound; only these column names ever enter the statement."""
    narrowing: list[str] = []
    values: list[str | float | int] = []
    for column, value in (
        ("workflow", query.workflow),
        ("parent", query.parent),
        ("session", query.session),
        ("owner", query.owner),
    ):
        if value is not None:
            narrowing.append(f"{column} = ?")
            values.append(value)
    if query.statuses:
        narrowing.append(f"status IN ({', '.join('?' * len(query.statuses))})")
        values.extend(sorted(query.statuses))
    if query.before is not None:
        narrowing.append(f"(started, execution) {'>' if query.oldest_first else '<'} (?, ?)")
        values.extend(query.before)
    if query.awaits is not None:
        narrowing.append("execution IN (SELECT execution FROM awaited WHERE name = ?)")
        values.append(query.awaits)
    if query.since is not None:
        narrowing.append("updated >= ?")
        values.append(query.since)
    if query.uncounted:
        narrowing.append("tokens IS NULL")
    if query.last_of_session:
        narrowing.append(LAST_OF_SESSION)
    if not query.trials:
        narrowing.append(f"substr(execution, 1, {len(TRIAL)}) <> '{TRIAL}'")
    order = "started, execution" if query.oldest_first else "started DESC, execution DESC"
    if query.due is not None:
        narrowing.append("wakes <= ?")
        values.append(query.due)
        order = "wakes, execution"
    where = f"WHERE {' AND '.join(narrowing)}" if narrowing else ""
    cursor = connection.execute(
        f"SELECT {COLUMNS}, {AWAITS} FROM summaries {where} ORDER BY {order} LIMIT ?",
        (*values, query.limit),
    )
    return [summary_of(row) for row in cursor]


def summary_of(row: SummaryRow) -> Summary:
    execution, workflow, revision, status, started, parent, session, owner, wakes, needs, worker, *_ = row
    scripted, updated, tokens, model_calls, tool_calls, cost_usd, awaits = row[11:]
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
        needs=tuple(needs.split(SEPARATOR)) if needs else (),
        worker=worker,
        scripted=bool(scripted),
        awaits=tuple(sorted(msgspec.json.decode(awaits, type=list[str]))),
        spent=spent_in((tokens, model_calls, tool_calls, cost_usd)),
    )
