"""The tables, and how older stores become today's.

A store's version is SQLite's `user_version`, its kind is `application_id`: both lie in the file's header and change in
the transaction that migrates. A migration is a tuple of statements; it is only ever appended, never changed.

Plain statements, not a migration framework: the schema has one writer and one reader, both here, and a framework
would cost every command of the command line the time to load it.
"""

from __future__ import annotations

import sqlite3
from typing import Final

from pointsman.store.errors import StoreDamaged, StoreForeign, StoreNewer
from pointsman.store.sqlite.seals import sealing, sealing_more

APPLICATION_ID: Final = 0x504F494E
"""`POIN` in ASCII."""

FIRST: Final = (
    """
    CREATE TABLE executions (
        no INTEGER PRIMARY KEY,
        id TEXT NOT NULL UNIQUE
    ) STRICT
    """,
    """
    CREATE TABLE rows (
        no INTEGER PRIMARY KEY,         -- in the order of writing: rows of one commit share their pages
        place INTEGER NOT NULL UNIQUE,  -- executions.no << 32 | seq
        at REAL NOT NULL,        -- unix seconds
        shape INTEGER NOT NULL,  -- how many lifts existed when it was written
        form INTEGER NOT NULL,   -- codec.Form: how data is packed
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
    CREATE TABLE blobs (
        hash BLOB NOT NULL UNIQUE,  -- SHA-256 of the plain content
        form INTEGER NOT NULL,
        data BLOB NOT NULL
    ) STRICT
    """,
    """
    CREATE TABLE summaries (
        execution TEXT NOT NULL PRIMARY KEY,
        workflow TEXT NOT NULL,
        revision INTEGER NOT NULL,
        status TEXT NOT NULL,
        started REAL NOT NULL,
        updated REAL NOT NULL,
        parent TEXT,
        session TEXT,
        owner TEXT NOT NULL
    ) STRICT
    """,
    "CREATE INDEX summaries_by_start ON summaries (started, execution)",
    "CREATE INDEX summaries_by_status ON summaries (status, started, execution)",
    "CREATE INDEX summaries_by_workflow ON summaries (workflow, started, execution)",
    "CREATE INDEX summaries_by_parent ON summaries (parent) WHERE parent IS NOT NULL",
    "CREATE INDEX summaries_by_session ON summaries (session, started) WHERE session IS NOT NULL",
    """
    CREATE TABLE workflows (
        id TEXT NOT NULL,
        revision INTEGER NOT NULL,
        version TEXT NOT NULL,
        name TEXT NOT NULL,
        dialect TEXT NOT NULL,
        created REAL NOT NULL,
        author TEXT NOT NULL,
        digest TEXT NOT NULL,
        text TEXT NOT NULL,
        native BLOB NOT NULL,
        UNIQUE (id, revision)
    ) STRICT
    """,
    "CREATE TABLE deleted_workflows (id TEXT NOT NULL PRIMARY KEY) STRICT",
    """
    CREATE TABLE memory (
        no INTEGER PRIMARY KEY,
        scope TEXT NOT NULL,
        namespace TEXT NOT NULL,
        key TEXT NOT NULL,
        value BLOB NOT NULL,
        UNIQUE (scope, namespace, key)
    ) STRICT
    """,
    "CREATE VIRTUAL TABLE memory_words USING fts5 (words)",
    """
    CREATE TABLE messages (
        session TEXT NOT NULL,
        number INTEGER NOT NULL,  -- 1, 2, …
        message BLOB NOT NULL,
        UNIQUE (session, number)
    ) STRICT
    """,
    "CREATE TABLE closed_sessions (session TEXT NOT NULL PRIMARY KEY) STRICT",
    """
    CREATE TABLE effects (
        execution TEXT NOT NULL,
        attempt TEXT NOT NULL,
        number INTEGER NOT NULL,
        form INTEGER NOT NULL,
        data BLOB NOT NULL,
        UNIQUE (execution, attempt, number)
    ) STRICT
    """,
)

SECOND: Final = (
    """
    CREATE TABLE entries (
        version INTEGER PRIMARY KEY AUTOINCREMENT,  -- a change is a new row: no version is ever given twice
        kind TEXT NOT NULL,
        key TEXT NOT NULL,
        value BLOB NOT NULL,
        UNIQUE (kind, key)
    ) STRICT
    """,
    # A store from before uses were recorded cannot know who uses its blobs: they are held for ever.
    "ALTER TABLE blobs ADD COLUMN held_until REAL NOT NULL DEFAULT 9e99",
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
    CREATE TABLE keeper (
        one INTEGER PRIMARY KEY CHECK (one = 1),
        epoch INTEGER NOT NULL,  -- raised by each that becomes the keeper
        holder TEXT NOT NULL,    -- empty: nobody keeps the store
        since REAL NOT NULL
    ) STRICT
    """,
    "INSERT INTO keeper (one, epoch, holder, since) VALUES (1, 0, '', 0)",
    "ALTER TABLE summaries ADD COLUMN wakes REAL",  # unix seconds; NULL: nothing wakes it
    "CREATE INDEX summaries_by_wake ON summaries (wakes, execution) WHERE wakes IS NOT NULL",
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
        who TEXT NOT NULL,  -- `user:NAME`, `group:NAME`, or `without:NAME` for those it does not wait for any more
        opened REAL NOT NULL,
        execution TEXT NOT NULL,
        gate TEXT NOT NULL,
        PRIMARY KEY (who, opened, execution, gate)
    ) STRICT, WITHOUT ROWID
    """,
    "CREATE INDEX gate_people_by_execution ON gate_people (execution)",
    "CREATE INDEX summaries_by_change ON summaries (updated)",
    *sealing("effects"),
    *sealing("messages"),
    *sealing("memory", ("scope", "namespace", "key", "value")),
    *sealing("entries"),
    *sealing("workflows"),
)

THIRD: Final = (
    "ALTER TABLE memory ADD COLUMN changed REAL NOT NULL DEFAULT 0",  # unix seconds
    "ALTER TABLE memory ADD COLUMN expires REAL",  # unix seconds; NULL: never
    "CREATE INDEX memory_by_expiry ON memory (expires) WHERE expires IS NOT NULL",
    # What a workflow remembers is its own, whatever it is called; everything else under a name is shared.
    "UPDATE memory SET scope = 'workflow' WHERE scope = 'long_term' AND namespace IN (SELECT id FROM workflows)",
    "UPDATE memory SET scope = 'shared' WHERE scope = 'long_term'",
    *sealing_more("memory"),
)

FOURTH: Final = (
    # What it has spent, with its sub-workflows; NULL: it was written before this was counted.
    "ALTER TABLE summaries ADD COLUMN tokens INTEGER",
    "ALTER TABLE summaries ADD COLUMN model_calls INTEGER",
    "ALTER TABLE summaries ADD COLUMN tool_calls INTEGER",
    "ALTER TABLE summaries ADD COLUMN cost_usd REAL",
    "CREATE INDEX summaries_uncounted ON summaries (started, execution) WHERE tokens IS NULL",
)

AMOUNTS: Final = """
        steps INTEGER NOT NULL, retries INTEGER NOT NULL, failures INTEGER NOT NULL, cached INTEGER NOT NULL,
        micros INTEGER NOT NULL, model_calls INTEGER NOT NULL, tool_calls INTEGER NOT NULL,
        input_tokens INTEGER NOT NULL, output_tokens INTEGER NOT NULL, cache_read_tokens INTEGER NOT NULL,
        nanos INTEGER NOT NULL, priced_calls INTEGER NOT NULL, unpriced_calls INTEGER NOT NULL,
        scripted_calls INTEGER NOT NULL
"""
FIFTH: Final = (
    f"""
    CREATE TABLE usage (
        day TEXT NOT NULL,        -- of UTC
        execution TEXT NOT NULL,  -- it may be gone
        workflow TEXT NOT NULL,
        revision INTEGER NOT NULL,
        owner TEXT NOT NULL,
        node TEXT NOT NULL,
        model TEXT NOT NULL,
        key TEXT NOT NULL,
        place BLOB NOT NULL,      -- a digest of workflow, revision, node, model and key
        {AMOUNTS},
        UNIQUE (day, execution, place)
    ) STRICT
    """,
    f"""
    CREATE TABLE usage_sums (
        day TEXT NOT NULL,
        place BLOB NOT NULL,
        workflow TEXT NOT NULL,
        revision INTEGER NOT NULL,
        node TEXT NOT NULL,
        model TEXT NOT NULL,
        key TEXT NOT NULL,
        entries INTEGER NOT NULL,  -- so many rows of usage are in it
        {AMOUNTS},
        PRIMARY KEY (day, place)
    ) STRICT, WITHOUT ROWID
    """,
    *sealing("usage"),
)

SIXTH: Final = (
    # What workers must have to perform its steps (one a line), and the process that wrote its last row.
    "ALTER TABLE summaries ADD COLUMN needs TEXT NOT NULL DEFAULT ''",
    "ALTER TABLE summaries ADD COLUMN worker TEXT NOT NULL DEFAULT ''",
)

SEVENTH: Final = (
    # Whether the scripted model answers in it.
    "ALTER TABLE summaries ADD COLUMN scripted INTEGER NOT NULL DEFAULT 0",
)

MIGRATIONS: Final[tuple[tuple[str, ...], ...]] = (FIRST, SECOND, THIRD, FOURTH, FIFTH, SIXTH, SEVENTH)


def is_of_today(connection: sqlite3.Connection, migrations: tuple[tuple[str, ...], ...] = MIGRATIONS) -> bool:
    """Whether it has today's tables. Raises `StoreForeign`, `StoreNewer`."""
    refuse_foreign(connection)
    refuse_newer(connection, migrations)
    return pragma(connection, "user_version") == len(migrations) and is_ours(connection)


def refuse_newer(connection: sqlite3.Connection, migrations: tuple[tuple[str, ...], ...]) -> None:
    """Raises `StoreNewer`."""
    version = pragma(connection, "user_version")
    if version > len(migrations):
        raise StoreNewer(
            f"the store has version {version}, this Pointsman knows {len(migrations)}",
            hint="Upgrade Pointsman, or use another store.",
        )


def migrate(connection: sqlite3.Connection, migrations: tuple[tuple[str, ...], ...] = MIGRATIONS) -> None:
    """Bring the store to today's tables, all or nothing. Two processes may try at once: one waits and finds it done."""
    if is_of_today(connection, migrations):
        return
    connection.execute("BEGIN IMMEDIATE")
    try:
        apply(connection, migrations)
        connection.execute("COMMIT")
    except BaseException:
        connection.execute("ROLLBACK")
        raise


def apply(connection: sqlite3.Connection, migrations: tuple[tuple[str, ...], ...]) -> None:
    version = pragma(connection, "user_version")
    refuse_foreign(connection)
    refuse_newer(connection, migrations)
    for statements in migrations[version:]:
        for statement in statements:
            connection.execute(statement)
    connection.execute(f"PRAGMA application_id = {APPLICATION_ID}")
    connection.execute(f"PRAGMA user_version = {len(migrations)}")


def refuse_foreign(connection: sqlite3.Connection) -> None:
    """Raise `StoreForeign` for a database of something else, before anything in it is touched."""
    if is_ours(connection) or (pragma(connection, "user_version") == 0 and is_empty(connection)):
        return
    raise StoreForeign("the file is a database of something else", hint="Give the store a file of its own.")


def is_empty(connection: sqlite3.Connection) -> bool:
    return connection.execute("SELECT count(*) FROM sqlite_schema").fetchone()[0] == 0


def is_ours(connection: sqlite3.Connection) -> bool:
    return pragma(connection, "application_id") == APPLICATION_ID


def pragma(connection: sqlite3.Connection, name: str) -> int:
    found = connection.execute(f"PRAGMA {name}").fetchone()
    if found is None:
        raise StoreDamaged(f"the store does not say its {name}")
    return int(found[0])
