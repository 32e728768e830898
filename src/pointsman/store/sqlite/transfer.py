"""Copies and verification of an SQLite store. A copy reads one snapshot, and is written in one transaction."""

from __future__ import annotations

import sqlite3
from collections.abc import Generator, Iterable, Iterator, Sequence
from contextlib import closing, contextmanager
from functools import partial
from pathlib import Path
from typing import Any, Final, LiteralString, cast

from pointsman.store.errors import StoreDamaged
from pointsman.store.sql import transfer as sql
from pointsman.store.sql.executions import ADD_UP
from pointsman.store.sql.transfer import LIVING, TransferStatements, memory_row
from pointsman.store.sqlite.connection import ReadOnly, connect_reader, connect_writer, explained
from pointsman.store.sqlite.database import SqliteDialect, marked, put_summary, run
from pointsman.store.sqlite.schema import find_broken_seals, migrate
from pointsman.store.sqlite.writer import SEQ_BITS
from pointsman.store.transfer import COPIED, ROWS_AT_ONCE, TransferPart, Value, summary_in
from pointsman.values import ExecutionId

LOCKED_WAIT_MS: Final = 10_000
STATEMENTS: Final = TransferStatements(
    rows=(
        "SELECT e.id, r.place & 4294967295, r.at, r.shape, r.form, r.data, r.hash FROM rows AS r"
        f" JOIN {LIVING} AS e ON e.no = r.place >> 32"
    ),
    by_execution="ORDER BY r.place",
    to_copy="ORDER BY r.no",
    strays="SELECT count(*) FROM rows WHERE place >> 32 NOT IN (SELECT no FROM executions)",
    blob_uses=f"SELECT e.id, u.hash FROM blob_uses AS u JOIN {LIVING} AS e ON e.no = u.execution",
    gates=(
        "(SELECT json_group_array(CAST(g.data AS TEXT)) FROM (SELECT data FROM gates"
        " WHERE gates.execution = summaries.execution ORDER BY opened) AS g)"
    ),
    last_version="SELECT seq FROM sqlite_sequence WHERE name = 'entries'",
)
INSERT_ROW: Final = "INSERT INTO rows (place, at, shape, form, data, hash) VALUES (?, ?, ?, ?, ?, ?)"


class SqliteTransfer:
    """The implementation of `StoreTransfer` for one file."""

    def __init__(self, path: Path, read_only: ReadOnly | None = None) -> None:
        self._read_only = read_only
        self._path = path

    def read(self) -> Iterator[TransferPart]:
        with explained(self._path), closing(connect_reader(self._path, self._read_only)) as connection:
            yield from read_parts(connection)

    def write(self, parts: Iterable[TransferPart]) -> None:
        with explained(self._path), closing(connect_writer(self._path)) as connection:
            connection.execute(f"PRAGMA busy_timeout = {LOCKED_WAIT_MS}")
            with transaction(connection):
                sql.check_empty(partial(read, connection))
                write_parts(connection, parts)
            connection.execute("PRAGMA wal_checkpoint(TRUNCATE)").fetchone()


@contextmanager
def transaction(connection: sqlite3.Connection) -> Generator[None]:
    connection.execute("BEGIN IMMEDIATE")
    try:
        yield
        connection.execute("COMMIT")
    except BaseException:
        if connection.in_transaction:
            connection.execute("ROLLBACK")
        raise


def write_new(connection: sqlite3.Connection, parts: Iterable[TransferPart]) -> None:
    """Fill a file that is not a store yet. Nothing is logged, because a crash leaves nothing of value in it."""
    connection.execute("PRAGMA journal_mode = OFF").fetchone()
    connection.execute("PRAGMA synchronous = OFF")
    migrate(connection)
    with transaction(connection):
        write_parts(connection, parts)


def read_parts(connection: sqlite3.Connection) -> Iterator[TransferPart]:
    """Yield everything at one moment. Raises `StoreDamaged` for values that are not what was written: the copy seals
    its own, and would hide that."""
    connection.execute("BEGIN")
    for broken in find_broken_seals(connection):
        raise StoreDamaged(broken, hint="`pointsman verify` lists everything that is damaged.")
    yield from sql.read_parts(partial(read, connection), STATEMENTS)
    connection.execute("COMMIT")


def read(
    connection: sqlite3.Connection,
    statement: LiteralString,
    values: Sequence[object] = (),
    *,
    at_once: int = ROWS_AT_ONCE,
) -> Iterator[list[tuple[Any, ...]]]:
    """`Snapshot` of a connection."""
    cursor = connection.execute(marked(statement), values)
    while rows := cursor.fetchmany(at_once):
        yield rows


def find_damage(connection: sqlite3.Connection) -> list[str]:
    """Return every contradiction in the pages of the file, in what both SQL stores verify, and in the seals."""
    damage = [f"the file: {line}" for (line,) in connection.execute("PRAGMA integrity_check(20)") if line != "ok"]
    return [*damage, *sql.find_damage(partial(read, connection), STATEMENTS), *find_broken_seals(connection)]


def write_parts(connection: sqlite3.Connection, parts: Iterable[TransferPart]) -> None:
    """In the transaction of the connection, which may hold nothing yet."""
    numbers: dict[str, int] = {}

    def number(execution: Value) -> int:
        name = cast("str", execution)
        no = numbers.get(name)
        if no is None:
            inserted = connection.execute("INSERT INTO executions (id) VALUES (?)", (name,)).lastrowid
            assert inserted is not None, "an INSERT into a rowid table has a rowid"
            no = numbers[name] = inserted
        return no

    for table, rows in parts:
        match table:
            case "rows":
                placed = ((number(row[0]) << SEQ_BITS | cast("int", row[1]), *row[2:]) for row in rows)
                connection.executemany(INSERT_ROW, placed)
            case "blob_uses":
                used = ((number(execution), digest) for execution, digest in rows)
                connection.executemany(insert_into(table), used)
            case "summaries":
                for row in rows:
                    put_summary(connection, summary_in(row))
            case "memory":
                run(SqliteDialect().put_values([memory_row(row) for row in rows]), connection)
            case "last_version":
                connection.execute("DELETE FROM sqlite_sequence WHERE name = 'entries'")
                connection.executemany("INSERT INTO sqlite_sequence (name, seq) VALUES ('entries', ?)", rows)
            case _:
                connection.executemany(insert_into(table), rows)
    connection.execute(ADD_UP)


def insert_into(table: LiteralString) -> str:
    columns = COPIED[table]
    return f"INSERT INTO {table} ({', '.join(columns)}) VALUES ({', '.join('?' * len(columns))})"


def executions_in(connection: sqlite3.Connection) -> list[ExecutionId]:
    """Those that the lists know."""
    return [
        ExecutionId(execution)
        for (execution,) in connection.execute("SELECT execution FROM summaries ORDER BY execution")
    ]
