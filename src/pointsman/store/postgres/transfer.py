"""Copy a PostgreSQL store: read in one snapshot, written in one transaction without other writers.

It uses its own blocking connections: a copy runs in a thread.
"""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable, Generator, Iterable, Iterator, Sequence
from contextlib import contextmanager
from typing import Final, LiteralString, TypeAlias, cast

import msgspec
import psycopg
from msgspec.structs import replace
from psycopg import sql
from psycopg.rows import TupleRow

from pointsman.store.compression import Form
from pointsman.store.postgres.connections import Connection, fault
from pointsman.store.postgres.database import PUT_SUMMARY, PUT_VALUE, put_value_of, put_values_of
from pointsman.store.records import GateEntry, Summary
from pointsman.store.sql.executions import COLUMNS_READ, summary_of
from pointsman.store.sql.transfer import FILLED, ChainCheck, false_blob, lost_blobs, memory_row
from pointsman.store.transfer import (
    CONTENTS_AT_ONCE,
    COPIED,
    ROWS_AT_ONCE,
    TransferPart,
    Value,
    not_empty,
    summary_in,
    summary_row,
)
from pointsman.store.usage import ADD_UP, DIFFERENT

BLOBS_AT_ONCE: Final = 8
ROWS: Final = """
    SELECT e.id, r.seq, r.at, r.shape, r.form, r.data, r.hash FROM rows AS r JOIN executions AS e ON e.no = r.execution
    WHERE e.id NOT LIKE '/deleted/%' ORDER BY r.execution, r.seq
"""
STRAYS: Final = "SELECT count(*) FROM rows AS r WHERE NOT EXISTS (SELECT FROM executions WHERE no = r.execution)"
PACKED: Final[tuple[tuple[str, LiteralString], ...]] = (
    ("rows", "SELECT form, data FROM rows WHERE form = ANY(%b::int2[])"),
    ("effects", "SELECT form, data FROM effects WHERE form = ANY(%b::int2[])"),
)


async def find_damage(connection: Connection) -> list[str]:
    """Return every contradiction in the tables, as they are at one moment."""
    async with connection.transaction():
        await connection.execute("SET TRANSACTION ISOLATION LEVEL REPEATABLE READ READ ONLY")
        breaks = [line async for line in find_breaks(connection)]
        strays = await (await connection.execute(STRAYS)).fetchone()
        if strays is not None and strays[0]:
            breaks.append(f"{strays[0]} rows belong to no execution")
        for statement in DIFFERENT:
            wrong = await (await connection.execute(statement)).fetchone()
            if wrong is not None and wrong[0]:
                breaks.append(f"{wrong[0]} sums of usage are not what its entries say")
        return [*breaks, *[line async for line in find_false_blobs(connection)]]


async def find_breaks(connection: Connection) -> AsyncIterator[str]:
    """Follow the chain of each execution."""
    check = ChainCheck()
    async with connection.cursor("rows_to_verify", binary=True) as cursor:
        cursor.itersize = ROWS_AT_ONCE
        await cursor.execute(ROWS)
        async for row in cursor:
            for line in check.breaks(*row):
                yield line


async def find_false_blobs(connection: Connection) -> AsyncIterator[str]:
    cursor = connection.cursor(binary=True)
    await cursor.execute("SELECT hash FROM blobs")
    known = frozenset(digest for (digest,) in await cursor.fetchall())
    for table, statement in PACKED:
        await cursor.execute(statement, ([int(Form.BLOB), int(Form.PIECES)],))
        for line in lost_blobs(table, await cursor.fetchall(), known):
            yield line
    async with connection.cursor("blobs_to_verify", binary=True) as blobs:
        blobs.itersize = BLOBS_AT_ONCE
        await blobs.execute("SELECT hash, form, data FROM blobs ORDER BY hash")
        async for row in blobs:
            for line in false_blob(*row):
                yield line


BlockingConnection: TypeAlias = psycopg.Connection[TupleRow]

SELECTS: Final[dict[str, LiteralString]] = {
    "rows": (
        "SELECT e.id, r.seq, r.at, r.shape, r.form, r.data, r.hash FROM rows AS r"
        " JOIN executions AS e ON e.no = r.execution WHERE e.id NOT LIKE '/deleted/%' ORDER BY r.execution, r.seq"
    ),
    "summaries": f"SELECT {COLUMNS_READ}, gates FROM summaries",
    "last_version": "SELECT CASE WHEN is_called THEN last_value ELSE 0 END FROM versions_of_entries",
}
"""Queries of tables that are not read unchanged."""
ONE_MOMENT: Final = "SET TRANSACTION ISOLATION LEVEL REPEATABLE READ READ ONLY"
NUMBER: Final = "INSERT INTO executions (id) SELECT unnest(%s::text[]) RETURNING id, no"


class PostgresTransfer:
    """The implementation of `Copying` for one schema."""

    def __init__(self, conninfo: str, shown: str) -> None:
        self._conninfo = conninfo
        self._shown = shown

    def read(self) -> Iterator[TransferPart]:
        with explained(self._shown), psycopg.connect(self._conninfo) as connection:
            connection.execute(ONE_MOMENT)
            for table in COPIED:
                yield from read_table(connection, table)

    def write(self, parts: Iterable[TransferPart]) -> None:
        with explained(self._shown), psycopg.connect(self._conninfo) as connection:
            names = sql.SQL(", ").join(map(sql.Identifier, FILLED))
            connection.execute("SET LOCAL lock_timeout = '30s'")
            connection.execute(sql.SQL("LOCK TABLE {} IN EXCLUSIVE MODE").format(names))
            for table in FILLED:
                found = connection.execute(sql.SQL("SELECT 1 FROM {} LIMIT 1").format(sql.Identifier(table)))
                if found.fetchone() is not None:
                    raise not_empty(table)
            writing = CopyWriter(connection)
            for table, rows in parts:
                writing.write(table, rows)
            connection.execute(ADD_UP)


@contextmanager
def explained(shown: str) -> Generator[None]:
    """Convert errors of the driver into ours."""
    try:
        yield
    except (psycopg.Error, UnicodeEncodeError) as why:
        raise fault(why, shown) from why


def read_table(connection: BlockingConnection, table: str) -> Iterator[TransferPart]:
    with connection.cursor(f"copy_of_{table}", binary=True) as cursor:
        cursor.itersize = CONTENTS_AT_ONCE if table == "blobs" else ROWS_AT_ONCE
        cursor.execute(
            sql.SQL(SELECTS[table])
            if table in SELECTS
            else sql.SQL("SELECT {} FROM {}").format(columns_of(COPIED[table]), sql.Identifier(table))
        )
        while rows := cursor.fetchmany(cursor.itersize):
            yield TransferPart(table, [summary_row(listed(row)) for row in rows] if table == "summaries" else rows)


def listed(row: TupleRow) -> Summary:
    """Return a summary with its open gates."""
    *said, gates = row
    decoder = msgspec.json.Decoder(GateEntry)
    entries = [decoder.decode(one["entry"]) for one in cast("list[dict[str, str]]", gates or [])]
    return replace(summary_of(tuple(said)), gates=tuple(entries) or None)


def columns_of(names: Iterable[str]) -> sql.Composed:
    return sql.SQL(", ").join(map(sql.Identifier, names))


class CopyWriter:
    """Writes parts of a copy in the transaction of a connection."""

    def __init__(self, connection: BlockingConnection) -> None:
        self._connection = connection
        self._numbers: dict[str, int] = {}
        self._special: dict[str, Callable[[Sequence[tuple[Value, ...]]], None]] = {
            "rows": self._rows,
            "summaries": self._summaries,
            "memory": self._memory,
            "last_version": self._last_version,
        }

    def write(self, table: str, rows: Sequence[tuple[Value, ...]]) -> None:
        special = self._special.get(table)
        if special is not None:
            special(rows)
        else:
            self._copy(table, COPIED[table], rows)

    def _copy(self, table: str, columns: Iterable[str], rows: Iterable[tuple[Value, ...]]) -> None:
        statement = sql.SQL("COPY {} ({}) FROM STDIN").format(sql.Identifier(table), columns_of(columns))
        with self._connection.cursor() as cursor, cursor.copy(statement) as copy:
            for row in rows:
                copy.write_row(row)

    def _rows(self, rows: Sequence[tuple[Value, ...]]) -> None:
        names = {cast("str", row[0]) for row in rows}
        new = sorted(names - self._numbers.keys())
        if new:
            self._numbers.update(self._connection.execute(NUMBER, (new,)).fetchall())
        self._copy("rows", COPIED["rows"], ((self._numbers[cast("str", row[0])], *row[1:]) for row in rows))

    def _summaries(self, rows: Sequence[tuple[Value, ...]]) -> None:
        with self._connection.cursor() as cursor:
            cursor.executemany(PUT_SUMMARY, [put_values_of(summary_in(row)) for row in rows])

    def _memory(self, rows: Sequence[tuple[Value, ...]]) -> None:
        with self._connection.cursor() as cursor:
            cursor.executemany(PUT_VALUE, [put_value_of(memory_row(row)) for row in rows])

    def _last_version(self, rows: Sequence[tuple[Value, ...]]) -> None:
        for (last,) in rows:
            if last:
                self._connection.execute("SELECT setval('versions_of_entries', %s)", (last,))
