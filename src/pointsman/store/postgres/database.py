"""Runs the work of the SQL stores on PostgreSQL, and the dialect of PostgreSQL."""

from __future__ import annotations

import asyncio
from array import array
from collections.abc import Callable, Sequence
from functools import partial
from typing import Any, Final, LiteralString, TypeVar, assert_never, cast

import msgspec
import psycopg
from psycopg.rows import TupleRow

from pointsman.store.postgres.blobs import keep_blobs
from pointsman.store.postgres.connections import Connection, Connections, lock
from pointsman.store.records import InboxQuery, Summary
from pointsman.store.remembered_values import words_of
from pointsman.store.sql.executions import (
    PUT_ANSWER,
    SUMMARY_COLUMNS,
    SummaryColumn,
    SummaryValues,
    answer_values,
    summary_values,
)
from pointsman.store.sql.work import (
    NO_RESULT,
    Batch,
    KeepBlobs,
    Lock,
    Many,
    MemoryRow,
    Native,
    Result,
    Statement,
    Step,
    Work,
    count,
    first,
)
from pointsman.values import ExecutionId

T = TypeVar("T")

LEXEME_LETTERS_MAX: Final = 500
WORDS_BYTES_MAX: Final = 500_000
"""Maximum indexed words of one value: PostgreSQL stores at most one megabyte of them."""
PUT_COLUMNS: Final = (*SUMMARY_COLUMNS, SummaryColumn("gates", "text", json=True))
PUT_NAMES: Final = ", ".join([column.name for column in PUT_COLUMNS])
KEPT_GATES: Final = "COALESCE(excluded.gates, summaries.gates)"
REPLACED: Final = ", ".join(
    [
        f"{column.name} = {KEPT_GATES if column.name == 'gates' else f'excluded.{column.name}'}"
        for column in PUT_COLUMNS
        if column.name != "execution"
    ]
)
PUT_SUMMARY: Final = (
    f"INSERT INTO summaries ({PUT_NAMES})"
    f" VALUES ({', '.join(['%s::jsonb' if column.json else '%s' for column in PUT_COLUMNS])})"
    f" ON CONFLICT (execution) DO UPDATE SET {REPLACED}"
)
LAST: Final = "SELECT coalesce(max(seq), 0) FROM rows WHERE execution = (SELECT no FROM executions WHERE id = %s)"
LOCK_OWNER: Final = "SELECT token, owner IS NOT NULL FROM executions WHERE id = %s FOR SHARE"
LOCK_SUMMARY: Final = "SELECT 1 FROM summaries WHERE execution = %s FOR UPDATE"
SELECT_GATES: Final = (
    "SELECT e->>'entry' FROM summaries AS s, jsonb_array_elements(s.gates) AS e"
    " WHERE s.gates IS NOT NULL AND s.gates <> '[]'"
)
OLDEST_FIRST: Final = " ORDER BY (e->>'opened')::float8, s.execution, e->>'gate' COLLATE \"C\" LIMIT %s"
PUT_VALUE: Final = """
    INSERT INTO memory (scope, namespace, key, value, changed, expires, words)
    VALUES (%s, %s, %s, %s, %s, %s, array_to_tsvector(%s::text[]))
    ON CONFLICT (scope, namespace, key) DO UPDATE
    SET value = excluded.value, words = excluded.words, changed = excluded.changed, expires = excluded.expires
"""
SEARCH: Final = """
    SELECT key, value FROM memory
    WHERE words @@ %s::tsquery AND scope = %s AND namespace = %s AND substr(key, 1, %s) = %s
        AND (expires IS NULL OR expires > %s)
    ORDER BY ts_rank(words, %s::tsquery) DESC, key LIMIT %s
"""
EXTENSION: Final = """
    SELECT quote_ident(n.nspname) FROM pg_extension AS e JOIN pg_namespace AS n ON n.oid = e.extnamespace
    WHERE e.extname = 'vector'
"""


class PostgresDatabase:
    """`Database` of one schema."""

    def __init__(self, connections: Connections, token: Callable[[ExecutionId], int]) -> None:
        """`token`: see `PostgresDialect`."""
        self._connections = connections
        self._turn = asyncio.Lock()
        self.dialect = PostgresDialect(token)

    async def read(self, work: Callable[[], Work[T]], *, brief: bool = False) -> T:
        return await self._connections.read(lambda connection: run(work(), connection))

    async def write(self, work: Callable[[], Work[T]], *, repeatable: bool = True, in_order: bool = False) -> T:
        write = partial(self._connections.write, lambda connection: run(work(), connection), repeatable=repeatable)
        if not in_order:
            return await write()
        async with self._turn:
            return await write()


async def run(work: Work[T], connection: Connection) -> T:
    """Run a work to its end. Raises the errors of its statements."""
    cursor = connection.cursor(binary=True)
    try:
        step = next(work)
        while True:
            step = work.send(await execute(step, connection, cursor))
    except StopIteration as end:
        return cast("T", end.value)


async def execute(step: Step, connection: Connection, cursor: psycopg.AsyncCursor[TupleRow]) -> Result:
    match step:
        case Statement():
            await cursor.execute(step.text, step.values)
            return Result(await cursor.fetchall() if cursor.description else (), cursor.rowcount)
        case Many():
            await cursor.executemany(step.text, step.rows)
        case Batch():
            async with connection.pipeline():
                for statement in step.statements:
                    await connection.execute(statement.text, statement.values)
        case KeepBlobs():
            await keep_blobs(connection, step.blobs, user=step.execution)
        case Lock():
            await lock(connection, *step.names)
        case Native():
            raise TypeError("this dialect has no calls of its own")
        case _:
            assert_never(step)
    return NO_RESULT


class PostgresDialect:
    """`SqlDialect` of PostgreSQL."""

    def __init__(self, token: Callable[[ExecutionId], int]) -> None:
        """`token`: of the claim that this process has, 0 for none."""
        self._token = token

    put_entry: LiteralString = (
        "INSERT INTO entries (kind, key, value, version) VALUES (%s, %s, %s, nextval('versions_of_entries'))"
        " ON CONFLICT (kind, key) DO UPDATE SET value = excluded.value, version = excluded.version RETURNING version"
    )
    workflow_fields: LiteralString = (
        "(SELECT json_build_array(doc->'enabled', doc->'description', doc->'tags', doc->'name')::text"
        " FROM (SELECT convert_from(w.native, 'UTF8')::json AS doc) AS document)"
    )
    awaits: LiteralString = "awaits <> '[]' AND awaits ? %s"
    dearest: LiteralString = "(array_agg(execution ORDER BY amount DESC))[1]"
    vector_length: LiteralString = "cardinality(v.vector)"
    for_share: LiteralString = " FOR SHARE"

    def put_summary(self, summary: Summary, seq: int | None) -> Work[None]:
        if seq is not None:
            owner = yield from first(LOCK_OWNER, summary.execution)
            token = self._token(summary.execution)
            if owner is not None and (owner[0] != token if token else owner[1]):
                return  # The owner keeps the entry up to date.
            yield Statement(LOCK_SUMMARY, (summary.execution,))  # An appender holds this row until it commits.
            if (yield from count(LAST, summary.execution)) > seq:
                return
        yield Statement(PUT_SUMMARY, put_values_of(summary))
        if summary.answers:
            yield Many(PUT_ANSWER, [*map(answer_values, summary.answers)])

    def select_gates(self, query: InboxQuery) -> Statement:
        narrowing: list[LiteralString] = []
        values: list[object] = []
        if query.asked is not None:
            # The first condition finds executions by the index, the second the gates in them.
            places: list[LiteralString] = ["s.gates @> %s::jsonb" for _ in query.asked]
            narrowing.append("(" + " OR ".join(places) + ") AND e->'asked' ?| %s")
            values += [msgspec.json.encode([{"asked": [approver]}]).decode() for approver in query.asked]
            values.append([*query.asked])
        if query.without is not None:
            narrowing.append("NOT e->'asked' ? %s")
            values.append(query.without)
        if query.workflow is not None:
            narrowing.append("s.workflow = %s")
            values.append(query.workflow)
        if query.after is not None:
            narrowing.append("((e->>'opened')::float8, s.execution, e->>'gate' COLLATE \"C\") > (%s, %s, %s)")
            values += query.after
        narrowed: LiteralString = "".join([f" AND {condition}" for condition in narrowing])
        return Statement(SELECT_GATES + narrowed + OLDEST_FIRST, (*values, query.limit))

    def search(
        self, words: Sequence[str], scope: str, namespace: str, *, limit: int, within: str, at: float
    ) -> Statement:
        # Each word is quoted, so that none is an operator of the search language.
        pattern = " | ".join(f"'{word}'" for word in shortened(words))
        return Statement(SEARCH, (pattern, scope, namespace, len(within), within, at, pattern, limit))

    def put_values(self, rows: Sequence[MemoryRow], then: Sequence[Statement] = ()) -> Work[None]:
        yield Batch([*(Statement(PUT_VALUE, put_value_of(row)) for row in rows), *then])

    def vector(self, numbers: array[float]) -> object:
        return numbers.tolist()

    def similarity(self, numbers: array[float]) -> Work[tuple[LiteralString, Sequence[object]]]:
        """Use the extension `vector` (pgvector) if the database has it; otherwise plain SQL, about four times
        slower.
        """
        row = yield from first(EXTENSION)
        if row is None:
            return "(SELECT sum(a * b) FROM unnest(v.vector, %s::real[]) AS ab (a, b))::float8", (numbers.tolist(),)
        schema = cast("LiteralString", row[0])  # Quoted by the server.
        compared: LiteralString = f"v.vector::{schema}.vector OPERATOR({schema}.<=>) %s::real[]::{schema}.vector"
        return f"(1 - ({compared}))::float8", (numbers.tolist(),)


def put_values_of(summary: Summary) -> SummaryValues:
    """Return the values of `PUT_COLUMNS`."""
    return (*summary_values(summary), gates_of(summary))


def gates_of(summary: Summary) -> str | None:
    """Return the open gates as JSON; None: unchanged. An entry is stored as a string, which is returned exactly."""
    if summary.gates is None:
        return None
    rows = [
        {"opened": entry.opened, "gate": entry.gate, "asked": entry.asked, "entry": msgspec.json.encode(entry).decode()}
        for entry in summary.gates
    ]
    return msgspec.json.encode(rows).decode()


def put_value_of(row: MemoryRow) -> tuple[Any, ...]:
    """The values for `PUT_VALUE`."""
    *columns, text = row
    return (*columns, [] if text is None else lexemes(text))


def lexemes(text: str) -> list[str]:
    """Return the words by which a value is found, as many as there is room for."""
    names: list[str] = []
    room = WORDS_BYTES_MAX
    for word in shortened(words_of(text)):
        room -= len(word.encode())
        if room < 0:
            break
        names.append(word)
    return names


def shortened(words: Sequence[str]) -> list[str]:
    """Cut words that are too long for the index."""
    return [*dict.fromkeys(word[:LEXEME_LETTERS_MAX] for word in words)]
