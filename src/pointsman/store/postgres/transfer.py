"""Copy a PostgreSQL store: read in one snapshot, written in one transaction without other writers.

It uses its own blocking connections: a copy runs in a thread.
"""

from __future__ import annotations

from collections.abc import Callable, Generator, Iterable, Iterator, Sequence
from contextlib import contextmanager
from typing import Final, LiteralString, TypeAlias, cast

import msgspec
import psycopg
from msgspec.structs import replace
from psycopg import sql
from psycopg.rows import TupleRow

from pointsman.store.postgres.database import PUT_SUMMARY, PUT_VALUE, put_value_of, put_values_of
from pointsman.store.postgres.error_mapping import fault
from pointsman.store.records import GateEntry, Summary
from pointsman.store.sql.executions import COLUMNS_READ, summary_of
from pointsman.store.sql.transfer import FILLED, memory_row
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
from pointsman.store.usage import ADD_UP

Connection: TypeAlias = psycopg.Connection[TupleRow]

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


def read_table(connection: Connection, table: str) -> Iterator[TransferPart]:
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

    def __init__(self, connection: Connection) -> None:
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
