"""The list of executions in PostgreSQL."""

from __future__ import annotations

from functools import partial
from typing import Final, LiteralString, cast

import msgspec

from pointsman.store.budget_usage import Spenders, SpendingQuery, Spent, SpentRow, spent_in
from pointsman.store.budget_usage import values_of as spent_values
from pointsman.store.postgres.budget_usage import COUNT, SPENT, select_spenders
from pointsman.store.postgres.connections import Connection, Connections
from pointsman.store.postgres.inbox import gates_of, select_gates
from pointsman.store.records import TRIAL, ExecutionQuery, GateEntry, InboxQuery, Summary
from pointsman.values import ExecutionId, Instant, WorkflowId

COLUMNS: Final = (
    "execution, workflow, revision, status, started, updated, parent, session, owner, wakes, needs, worker,"
    f" scripted, {SPENT}, awaits"
)
PUT_COLUMNS: Final = f"{COLUMNS}, gates"
GIVEN: Final = (
    "g.execution, g.workflow, g.revision, g.status, g.started, g.updated, g.parent, g.session, g.owner, g.wakes,"
    " g.needs::jsonb, g.worker, g.scripted, g.tokens, g.model_calls, g.tool_calls, g.cost_usd, g.awaits::jsonb,"
    " g.gates::jsonb"
)
TYPES: Final = (
    "%b::text[], %b::text[], %b::int4[], %b::text[], %b::float8[], %b::float8[], %b::text[], %b::text[], %b::text[],"
    " %b::float8[], %b::text[], %b::text[], %b::bool[], %b::int8[], %b::int8[], %b::int8[], %b::float8[],"
    " %b::text[], %b::text[]"
)
REPLACED: Final = (
    "workflow = excluded.workflow, revision = excluded.revision, status = excluded.status, started = excluded.started,"
    " updated = excluded.updated, parent = excluded.parent, session = excluded.session, owner = excluded.owner,"
    " wakes = excluded.wakes, needs = excluded.needs, worker = excluded.worker, scripted = excluded.scripted,"
    " tokens = excluded.tokens, model_calls = excluded.model_calls,"
    " tool_calls = excluded.tool_calls, cost_usd = excluded.cost_usd, awaits = excluded.awaits,"
    " gates = COALESCE(excluded.gates, summaries.gates)"
)
PUT: Final = (
    f"INSERT INTO summaries ({PUT_COLUMNS})"
    " VALUES (%s, %s, %s, %s, %s, %s, %s, %s, %s, %s, %s::jsonb, %s, %s, %s, %s, %s, %s, %s::jsonb, %s::jsonb)"
    f" ON CONFLICT (execution) DO UPDATE SET {REPLACED}"
)

LAST: Final = "SELECT coalesce(max(seq), 0) FROM rows WHERE execution = (SELECT no FROM executions WHERE id = %s)"
LOCK: Final = "SELECT 1 FROM summaries WHERE execution = %s FOR UPDATE"

LAST_OF_SESSION: Final = (
    "session IS NOT NULL AND parent IS NULL AND NOT EXISTS (SELECT 1 FROM summaries AS later"
    " WHERE later.session = summaries.session AND later.parent IS NULL"
    " AND (later.started, later.execution) > (summaries.started, summaries.execution))"
)

About = tuple[str, str, int, str, float, float, str | None, str | None, str, float | None]
Values = tuple[*About, str, str, bool, *SpentRow, str, str | None]
SummaryRow = tuple[*About, list[str], str, bool, *SpentRow, list[str]]


def values_of(summary: Summary) -> Values:
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
        msgspec.json.encode(summary.needs).decode(),
        summary.worker,
        summary.scripted,
        *spent_values(summary.spent),
        msgspec.json.encode(summary.awaits).decode(),
        gates_of(summary),
    )


class PostgresExecutions:
    """Summaries, written with the rows that change them."""

    def __init__(self, connections: Connections) -> None:
        self._connections = connections

    async def put(self, summary: Summary, *, seq: int | None = None) -> None:
        async def work(connection: Connection) -> None:
            if seq is not None:
                await connection.execute(LOCK, [summary.execution])  # Whoever appends has it until it commits.
                found = await (await connection.execute(LAST, [summary.execution])).fetchone()
                if found is not None and found[0] > seq:
                    return
            await connection.execute(PUT, values_of(summary))

        await self._connections.write(work)

    async def find(self, execution: ExecutionId) -> Summary | None:
        found = await self._query(f"SELECT {COLUMNS} FROM summaries WHERE execution = %s", [execution])
        return found[0] if found else None

    async def list(self, query: ExecutionQuery = ExecutionQuery()) -> list[Summary]:  # noqa: B008 - frozen
        narrowing, values = narrowed(query)
        where: LiteralString = f"WHERE {' AND '.join(narrowing)}" if narrowing else ""
        order: LiteralString = "started, execution" if query.oldest_first else "started DESC, execution DESC"
        if query.due is not None:
            order = "wakes, execution"
        return await self._query(
            f"SELECT {COLUMNS} FROM summaries {where} ORDER BY {order} LIMIT %s",
            [*values, query.limit],
        )

    async def count(self, execution: ExecutionId, spent: Spent) -> None:
        async def work(connection: Connection) -> None:
            await connection.execute(COUNT, (*spent_values(spent), execution))

        await self._connections.write(work)

    async def spending(self, query: SpendingQuery) -> list[Spenders]:
        return await self._connections.read(partial(select_spenders, query=query))

    async def inbox(self, query: InboxQuery = InboxQuery()) -> list[GateEntry]:  # noqa: B008 - frozen
        return await self._connections.read(partial(select_gates, query=query))

    async def _query(self, statement: LiteralString, values: list[object]) -> list[Summary]:
        async def work(connection: Connection) -> list[Summary]:
            cursor = await connection.execute(statement, values)
            return [summary_of(row) for row in await cursor.fetchall()]

        return await self._connections.read(work)


def narrowed(query: ExecutionQuery) -> tuple[list[LiteralString], list[object]]:
    """Every value is bound; only these texts ever enter the statement."""
    narrowing: list[LiteralString] = []
    values: list[object] = []
    wanted: tuple[tuple[LiteralString, object], ...] = (
        ("workflow = %s", query.workflow),
        ("parent = %s", query.parent),
        ("session = %s", query.session),
        ("owner = %s", query.owner),
        ("status = ANY(%s)", sorted(query.statuses) or None),
        ("wakes <= %s", query.due),
        ("updated >= %s", query.since),
        ("awaits <> '[]' AND awaits ? %s", query.awaits),
    )
    for condition, value in wanted:
        if value is not None:
            narrowing.append(condition)
            values.append(value)
    if query.uncounted:
        narrowing.append("tokens IS NULL")
    if query.last_of_session:
        narrowing.append(LAST_OF_SESSION)
    if not query.trials:
        narrowing.append("NOT starts_with(execution, %s)")
        values.append(TRIAL)
    if query.before is not None:
        narrowing.append("(started, execution) > (%s, %s)" if query.oldest_first else "(started, execution) < (%s, %s)")
        values.extend(query.before)
    return narrowing, values


def summary_of(row: tuple[object, ...]) -> Summary:
    said = cast("SummaryRow", row)
    (
        execution,
        workflow,
        revision,
        status,
        started,
        updated,
        parent,
        session,
        owner,
        wakes,
        needs,
        worker,
        scripted,
        *_,
    ) = said
    tokens, model_calls, tool_calls, cost_usd, awaits = said[13:]
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
        needs=tuple(needs),
        worker=worker,
        scripted=scripted,
        awaits=tuple(awaits),
        spent=spent_in((tokens, model_calls, tool_calls, cost_usd)),
    )
