"""The tables of SQLite, the migration of its files (see `sql.schema`), and the seals of their rows.

The version of a store is SQLite's `user_version`, its kind is `application_id`: both lie in the header of the file and
change in the transaction that migrates.

A seal is a hash beside each value that no chain and no content hash covers, so that a changed value is found. The
tables seal their rows themselves (triggers), so every writer seals; writing needs the function `seal`. Summaries need
no seal: they are compared with the journals.
"""

from __future__ import annotations

import hashlib
import sqlite3
from collections.abc import Iterator, Mapping
from typing import Final, LiteralString

import msgspec

from pointsman.store.errors import StoreDamaged, StoreForeign
from pointsman.store.records import AMOUNT_COLUMNS
from pointsman.store.sql.schema import TABLES, Migration, Migrations, Types, missing, run_missing, shared
from pointsman.values import Json

SEALED: Final[Mapping[LiteralString, LiteralString]] = {
    "effects": "execution, attempt, number, form, data",
    "messages": "session, number, message",
    "memory": "scope, namespace, key, value, changed, expires",
    "entries": "kind, key, value",
    "usage": f"day, execution, workflow, revision, owner, node, model, key, place, {AMOUNT_COLUMNS}",
    "workflows": "id, revision, version, name, dialect, created, author, digest, text, native",
}
"""Table -> the columns under its seal. A new column needs a migration with new triggers."""


def triggers(table: LiteralString) -> tuple[LiteralString, LiteralString]:
    """Return the statements that make a table seal its rows."""
    columns = SEALED[table]
    new: LiteralString = ", ".join([f"NEW.{column}" for column in columns.split(", ")])
    seal: LiteralString = f"BEGIN UPDATE {table} SET seal = seal({new}) WHERE rowid = NEW.rowid; END"
    return (
        f"CREATE TRIGGER {table}_sealed AFTER INSERT ON {table} {seal}",
        f"CREATE TRIGGER {table}_resealed AFTER UPDATE OF {columns} ON {table} {seal}",
    )


def seal(*values: Json | bytes) -> bytes:
    return hashlib.sha256(msgspec.msgpack.encode(values)).digest()


def add_seal_function(connection: sqlite3.Connection) -> None:
    """Let a connection write sealed tables."""
    connection.create_function("seal", -1, seal, deterministic=True)


def find_broken_seals(connection: sqlite3.Connection) -> Iterator[str]:
    """Yield one sentence for each table with values that are not what was written."""
    for table, columns in SEALED.items():
        rows = connection.execute(f"SELECT seal, {columns} FROM {table}")
        broken = sum(stored != seal(*values) for stored, *values in rows)
        if broken:
            yield f"{broken} rows of {table} are not what was written"


APPLICATION_ID: Final = 0x504F494E
"""`POIN` in ASCII."""
TYPES: Final = Types(
    key="TEXT",
    text="TEXT",
    int="INTEGER",
    long="INTEGER",
    real="REAL",
    bool="INTEGER",
    bytes="BLOB",
    json="TEXT",
    identity="INTEGER PRIMARY KEY",
    seal="seal BLOB,",
    words="",
    gates="",
    table=" STRICT",
    tree=" STRICT, WITHOUT ROWID",
)
OWN_TABLES: Final = (
    """
    CREATE TABLE rows (
        no INTEGER PRIMARY KEY,         -- in the order of writing: rows of one commit share their pages
        place INTEGER NOT NULL UNIQUE,  -- executions.no << 32 | seq
        at REAL NOT NULL,        -- unix seconds
        shape INTEGER NOT NULL,  -- the number of upcasters when it was written
        form INTEGER NOT NULL,   -- compression.Form
        data BLOB NOT NULL,
        hash BLOB NOT NULL       -- SHA-256 of the hash before it and this row
    ) STRICT
    """,
    """
    CREATE VIEW journal AS
        SELECT e.id AS execution, r.place & 4294967295 AS seq, datetime(r.at, 'unixepoch') AS at,
            CASE r.form WHEN 0 THEN CAST(r.data AS TEXT) END AS events
        FROM rows AS r JOIN executions AS e ON e.no = r.place >> 32
    """,
    """
    CREATE TABLE blob_uses (
        execution INTEGER NOT NULL,  -- executions.no
        hash BLOB NOT NULL,
        PRIMARY KEY (execution, hash)
    ) STRICT, WITHOUT ROWID
    """,
    "CREATE INDEX blob_uses_by_hash ON blob_uses (hash)",
    "CREATE TABLE deleted_executions (no INTEGER PRIMARY KEY) STRICT  -- those with rows that are left to delete",
    """
    CREATE TABLE entries (
        version INTEGER PRIMARY KEY AUTOINCREMENT,  -- a change is a new row: no version is ever given twice
        kind TEXT NOT NULL,
        key TEXT NOT NULL,
        value BLOB NOT NULL,
        seal BLOB,
        UNIQUE (kind, key)
    ) STRICT
    """,
    """
    CREATE TABLE awaited (
        name TEXT NOT NULL,
        execution TEXT NOT NULL,
        PRIMARY KEY (execution, name)
    ) STRICT, WITHOUT ROWID
    """,
    "CREATE INDEX awaited_by_name ON awaited (name)",
    """
    CREATE TABLE gates (
        opened REAL NOT NULL,
        execution TEXT NOT NULL,
        gate TEXT NOT NULL,
        workflow TEXT NOT NULL,
        data BLOB NOT NULL,
        PRIMARY KEY (opened, execution, gate)
    ) STRICT, WITHOUT ROWID
    """,
    "CREATE INDEX gates_by_execution ON gates (execution)",
    """
    CREATE TABLE gate_people (
        who TEXT NOT NULL,  -- `user:NAME`, `group:NAME`, or `without:NAME` for people whose answer it has
        opened REAL NOT NULL,
        execution TEXT NOT NULL,
        gate TEXT NOT NULL,
        PRIMARY KEY (who, opened, execution, gate)
    ) STRICT, WITHOUT ROWID
    """,
    "CREATE INDEX gate_people_by_execution ON gate_people (execution)",
    "CREATE VIRTUAL TABLE memory_words USING fts5 (words)  -- by memory.no",
    """
    CREATE TABLE memory_vectors (
        no INTEGER NOT NULL,   -- memory.no
        model TEXT NOT NULL,
        vector BLOB NOT NULL,  -- 32-bit floats, of length 1; empty: the model gives none for this value
        PRIMARY KEY (no, model)
    ) STRICT, WITHOUT ROWID
    """,
    """
    CREATE TRIGGER memory_deleted AFTER DELETE ON memory
    BEGIN
        DELETE FROM memory_words WHERE rowid = OLD.no;
        DELETE FROM memory_vectors WHERE no = OLD.no;
    END
    """,
    """
    CREATE TRIGGER memory_changed AFTER UPDATE OF value ON memory WHEN NEW.value IS NOT OLD.value
    BEGIN DELETE FROM memory_vectors WHERE no = NEW.no; END
    """,
)
BASELINE: Final[Migration] = (
    *shared(TABLES, TYPES),
    *OWN_TABLES,
    *(trigger for table in SEALED for trigger in triggers(table)),
)
MIGRATIONS: Final[Migrations] = (BASELINE,)


def is_current(connection: sqlite3.Connection, migrations: Migrations = MIGRATIONS) -> bool:
    """Return whether it has today's tables. Raises `StoreForeign`, `StoreNewer`."""
    refuse_foreign(connection)
    return not missing(migrations, pragma(connection, "user_version")) and is_ours(connection)


def migrate(connection: sqlite3.Connection, migrations: Migrations = MIGRATIONS) -> None:
    """Bring the store to today's tables, all or nothing. Two processes may try at once: one waits and finds it done."""
    if is_current(connection, migrations):
        return
    connection.execute("BEGIN IMMEDIATE")
    try:
        refuse_foreign(connection)
        version = run_missing(connection.execute, pragma(connection, "user_version"), migrations)
        connection.execute(f"PRAGMA application_id = {APPLICATION_ID}")
        connection.execute(f"PRAGMA user_version = {version}")
        connection.execute("COMMIT")
    except BaseException:
        connection.execute("ROLLBACK")
        raise


def refuse_foreign(connection: sqlite3.Connection) -> None:
    """Raise `StoreForeign` for a database of another program, before anything in it is changed."""
    if is_ours(connection) or (pragma(connection, "user_version") == 0 and is_empty(connection)):
        return
    if is_ours(connection):  # Another process made the store between the first look and the second.
        return
    raise StoreForeign("the file is a database of another application", hint="Give the store a file of its own.")


def is_empty(connection: sqlite3.Connection) -> bool:
    return connection.execute("SELECT count(*) FROM sqlite_schema").fetchone()[0] == 0


def is_ours(connection: sqlite3.Connection) -> bool:
    return pragma(connection, "application_id") == APPLICATION_ID


def pragma(connection: sqlite3.Connection, name: str) -> int:
    row = connection.execute(f"PRAGMA {name}").fetchone()
    if row is None:
        raise StoreDamaged(f"the store does not have the value {name}")
    return int(row[0])
