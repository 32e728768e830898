"""Copying an SQLite store: read on a connection of its own, in one snapshot; written in one transaction."""

from __future__ import annotations

import sqlite3
from collections.abc import Generator, Iterable, Iterator
from contextlib import closing, contextmanager
from pathlib import Path
from typing import Final, cast

import msgspec
from msgspec.structs import replace

from pointsman.store.compression import Form, needed
from pointsman.store.errors import StoreDamaged
from pointsman.store.records import GateEntry
from pointsman.store.sql.executions import SELECT as SELECT_SUMMARIES
from pointsman.store.sql.executions import summary_of
from pointsman.store.sql.transfer import FILLED, ChainCheck, false_blob, lost_blobs, memory_row
from pointsman.store.sqlite.connection import ReadOnly, connect_reader, connect_writer, explained
from pointsman.store.sqlite.database import SqliteDialect, put_summary, run
from pointsman.store.sqlite.schema import find_broken_seals, migrate
from pointsman.store.sqlite.writer import SEQ_BITS, SEQ_MASK
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
from pointsman.values import ExecutionId

PACKED = (int(Form.BLOB), int(Form.PIECES))


def find_damage(connection: sqlite3.Connection) -> list[str]:
    """Return every contradiction in the file."""
    damage = [f"the file: {line}" for (line,) in connection.execute("PRAGMA integrity_check(20)") if line != "ok"]
    damage.extend(find_breaks(connection))
    known = "SELECT count(*) FROM rows WHERE place >> 32 NOT IN (SELECT no FROM executions)"
    (strays,) = connection.execute(known).fetchone()
    if strays:
        damage.append(f"{strays} rows belong to no execution")
    damage.extend(find_false_blobs(connection))
    damage.extend(find_broken_seals(connection))
    damage.extend(find_unused_needs(connection))
    if wrong := sum(connection.execute(statement).fetchone()[0] for statement in DIFFERENT):
        damage.append(f"{wrong} sums of usage are not what its entries say")
    return damage


def find_breaks(connection: sqlite3.Connection) -> Iterator[str]:
    """Follow the chain of each execution."""
    check = ChainCheck()
    listed = connection.execute("SELECT no, id FROM executions WHERE id NOT LIKE '/deleted/%'").fetchall()
    for no, execution in listed:
        rows = connection.execute(
            "SELECT place & ?, at, shape, form, data, hash FROM rows WHERE place BETWEEN ? AND ? ORDER BY place",
            (SEQ_MASK, no << SEQ_BITS, no << SEQ_BITS | SEQ_MASK),
        )
        for row in rows:
            yield from check.breaks(execution, *row)


def find_unused_needs(connection: sqlite3.Connection) -> Iterator[str]:
    """Report rows that need contents which are not recorded as used: they would be deleted as unused."""
    used: dict[int, set[bytes]] = {}
    for no, digest in connection.execute("SELECT execution, hash FROM blob_uses"):
        used.setdefault(no, set()).add(digest)
    for place, form, data in connection.execute("SELECT place, form, data FROM rows WHERE form IN (?, ?)", PACKED):
        if not set(needed(form, data) or ()) <= used.get(place >> SEQ_BITS, set()):
            yield f"row {place & SEQ_MASK} of execution number {place >> SEQ_BITS} needs contents it is not said to use"


def find_false_blobs(connection: sqlite3.Connection) -> Iterator[str]:
    known = frozenset(digest for (digest,) in connection.execute("SELECT hash FROM blobs"))
    for table in ("rows", "effects"):
        packed = connection.execute(f"SELECT form, data FROM {table} WHERE form IN (?, ?)", PACKED)
        yield from lost_blobs(table, packed, known)
    for digest, form, data in connection.execute("SELECT hash, form, data FROM blobs ORDER BY hash"):
        yield from false_blob(digest, form, data)


LOCKED_WAIT_MS: Final = 10_000
LIVING: Final = "(SELECT no, id FROM executions WHERE id NOT LIKE '/deleted/%')"
SELECTS: Final = {
    "rows": (
        f"SELECT e.id, r.place & {SEQ_MASK}, r.at, r.shape, r.form, r.data, r.hash FROM rows AS r"
        f" JOIN {LIVING} AS e ON e.no = r.place >> {SEQ_BITS} ORDER BY r.no"
    ),
    "blob_uses": f"SELECT e.id, u.hash FROM blob_uses AS u JOIN {LIVING} AS e ON e.no = u.execution",
    "last_version": "SELECT seq FROM sqlite_sequence WHERE name = 'entries'",
}
"""Queries of tables that are not read unchanged."""
INSERT_ROW: Final = "INSERT INTO rows (place, at, shape, form, data, hash) VALUES (?, ?, ?, ?, ?, ?)"


class SqliteTransfer:
    """The implementation of `Copying` for one file."""

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
                check_empty(connection)
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


def check_empty(connection: sqlite3.Connection) -> None:
    for table in FILLED:
        if connection.execute(f"SELECT 1 FROM {table} LIMIT 1").fetchone() is not None:
            raise not_empty(table)


def read_parts(connection: sqlite3.Connection) -> Iterator[TransferPart]:
    """Everything at one moment. Raises `StoreDamaged` for values that are not what was written: the copy seals its own,
    and would hide that."""
    connection.execute("BEGIN")
    for broken in find_broken_seals(connection):
        raise StoreDamaged(broken, hint="`pointsman verify` tells everything that is damaged.")
    for table, columns in COPIED.items():
        if table == "summaries":
            yield from read_summaries(connection)
            continue
        cursor = connection.execute(SELECTS.get(table) or f"SELECT {', '.join(columns)} FROM {table}")
        while rows := cursor.fetchmany(CONTENTS_AT_ONCE if table == "blobs" else ROWS_AT_ONCE):
            yield TransferPart(table, rows)
    connection.execute("COMMIT")


def read_summaries(connection: sqlite3.Connection) -> Iterator[TransferPart]:
    cursor = connection.execute(SELECT_SUMMARIES)
    gates = msgspec.json.Decoder(GateEntry)
    while found := cursor.fetchmany(ROWS_AT_ONCE):
        rows: list[tuple[Value, ...]] = []
        for one in map(summary_of, found):
            mine = connection.execute("SELECT data FROM gates WHERE execution = ? ORDER BY opened", (one.execution,))
            entries = tuple(gates.decode(data) for (data,) in mine)
            rows.append(summary_row(replace(one, gates=entries or None)))
        yield TransferPart("summaries", rows)


def write_parts(connection: sqlite3.Connection, parts: Iterable[TransferPart]) -> None:
    """In the transaction of the connection, which may hold nothing yet."""
    numbers: dict[str, int] = {}

    def number(execution: Value) -> int:
        name = cast("str", execution)
        known = numbers.get(name)
        if known is None:
            inserted = connection.execute("INSERT INTO executions (id) VALUES (?)", (name,)).lastrowid
            assert inserted is not None, "an INSERT into a rowid table has a rowid"
            known = numbers[name] = inserted
        return known

    for table, rows in parts:
        match table:
            case "rows":
                placed = ((number(one[0]) << SEQ_BITS | cast("int", one[1]), *one[2:]) for one in rows)
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


def insert_into(table: str) -> str:
    columns = COPIED[table]
    return f"INSERT INTO {table} ({', '.join(columns)}) VALUES ({', '.join('?' * len(columns))})"


def executions_in(connection: sqlite3.Connection) -> list[ExecutionId]:
    """Those that the lists know."""
    return [ExecutionId(one) for (one,) in connection.execute("SELECT execution FROM summaries ORDER BY execution")]
