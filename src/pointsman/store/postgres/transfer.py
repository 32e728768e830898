"""Copies and verification of a PostgreSQL store. A copy reads one snapshot, and is written in one transaction without
other writers.

It uses its own blocking connections: a copy and a verification run in threads. The pages of the tables are the
server's: `initdb --data-checksums` and `pg_amcheck` check them.
"""

from __future__ import annotations

from collections.abc import Callable, Generator, Iterable, Iterator, Sequence
from contextlib import contextmanager
from functools import partial
from typing import Any, Final, LiteralString, TypeAlias, cast

import psycopg
from psycopg.rows import TupleRow

from pointsman.store.postgres.connections import fault
from pointsman.store.postgres.database import PUT_SUMMARY, PUT_VALUE, put_value_of, put_values_of
from pointsman.store.sql.executions import ADD_UP
from pointsman.store.sql.transfer import (
    FILLED,
    LIVING,
    TransferStatements,
    check_empty,
    find_damage,
    memory_row,
    read_parts,
)
from pointsman.store.transfer import COPIED, ROWS_AT_ONCE, TransferPart, Value, summary_in

Connection: TypeAlias = psycopg.Connection[TupleRow]

STATEMENTS: Final = TransferStatements(
    rows=(
        "SELECT e.id, r.seq, r.at, r.shape, r.form, r.data, r.hash FROM rows AS r"
        f" JOIN {LIVING} AS e ON e.no = r.execution"
    ),
    by_execution="ORDER BY r.execution, r.seq",
    to_copy="ORDER BY r.execution, r.seq",
    strays="SELECT count(*) FROM rows AS r WHERE NOT EXISTS (SELECT FROM executions WHERE no = r.execution)",
    blob_uses="SELECT execution, hash FROM blob_uses",
    gates=(
        "(SELECT jsonb_agg(g.entry->>'entry' ORDER BY g.number)::text"
        " FROM jsonb_array_elements(gates) WITH ORDINALITY AS g (entry, number))"
    ),
    last_version="SELECT CASE WHEN is_called THEN last_value ELSE 0 END FROM versions_of_entries",
)
ONE_MOMENT: Final = "SET TRANSACTION ISOLATION LEVEL REPEATABLE READ READ ONLY"
NUMBER: Final = "INSERT INTO executions (id) SELECT unnest(%s::text[]) RETURNING id, no"


class PostgresTransfer:
    """The implementation of `StoreTransfer` for one schema, and its verification. Every verb blocks."""

    def __init__(self, conninfo: str, address: str) -> None:
        self._conninfo = conninfo
        self._shown = address

    def read(self) -> Iterator[TransferPart]:
        with explained(self._shown), psycopg.connect(self._conninfo) as connection:
            connection.execute(ONE_MOMENT)
            yield from read_parts(partial(read, connection), STATEMENTS)

    def write(self, parts: Iterable[TransferPart]) -> None:
        with explained(self._shown), psycopg.connect(self._conninfo) as connection:
            connection.execute("SET LOCAL lock_timeout = '30s'")
            connection.execute(f"LOCK TABLE {', '.join(FILLED)} IN EXCLUSIVE MODE")
            check_empty(partial(read, connection))
            writing = CopyWriter(connection)
            for table, rows in parts:
                writing.write(table, rows)
            connection.execute(ADD_UP)

    def verify(self) -> list[str]:
        """Return every contradiction in the tables, as they are at one moment."""
        with explained(self._shown), psycopg.connect(self._conninfo) as connection:
            connection.execute(ONE_MOMENT)
            return [*find_damage(partial(read, connection), STATEMENTS)]


def read(
    connection: Connection, statement: LiteralString, values: Sequence[object] = (), *, at_once: int = ROWS_AT_ONCE
) -> Iterator[list[tuple[Any, ...]]]:
    """`Snapshot` of a connection."""
    with connection.cursor("snapshot", binary=True) as cursor:
        cursor.itersize = at_once
        cursor.execute(statement, values)
        while rows := cursor.fetchmany(at_once):
            yield rows


@contextmanager
def explained(address: str) -> Generator[None]:
    """Convert errors of the driver into ours."""
    try:
        yield
    except (psycopg.Error, UnicodeEncodeError) as why:
        raise fault(why, address) from why


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

    def write(self, table: LiteralString, rows: Sequence[tuple[Value, ...]]) -> None:
        special = self._special.get(table)
        if special is not None:
            special(rows)
        else:
            self._copy(table, rows)

    def _copy(self, table: LiteralString, rows: Iterable[tuple[Value, ...]]) -> None:
        statement: LiteralString = f"COPY {table} ({', '.join(COPIED[table])}) FROM STDIN"
        with self._connection.cursor() as cursor, cursor.copy(statement) as copy:
            for row in rows:
                copy.write_row(row)

    def _rows(self, rows: Sequence[tuple[Value, ...]]) -> None:
        names = {cast("str", row[0]) for row in rows}
        new = sorted(names - self._numbers.keys())
        if new:
            self._numbers.update(self._connection.execute(NUMBER, (new,)).fetchall())
        self._copy("rows", ((self._numbers[cast("str", row[0])], *row[1:]) for row in rows))

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
