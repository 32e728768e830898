"""The tables of PostgreSQL (see `sql.schema`), and the preparation of the store at an address.

    nothing ─▶ created      ours, older ─▶ migrated      ours, newer ─▶ refused      anything else ─▶ refused

A store of the present version needs one query and no migration code. Otherwise the migration runs in one transaction
under a lock of the database, because several processes may open a new store at once.
"""

from __future__ import annotations

import asyncio
import time
from typing import Final, NamedTuple

import psycopg
from psycopg import sql

from pointsman.store.errors import StoreFailed, StoreForbidden, StoreForeign, StoreMissing, StoreReadOnly
from pointsman.store.postgres.connections import Address, fault
from pointsman.store.sql.schema import TABLES, Migration, Migrations, Types, run_missing, shared

TYPES: Final = Types(
    key='text COLLATE "C"',
    text="text",
    int="integer",
    long="bigint",
    real="double precision",
    bool="boolean",
    bytes="bytea",
    json="jsonb",
    identity="bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY",
    seal="",
    words="words tsvector NOT NULL,",
    gates="gates jsonb,  -- its open gates; NULL: it never had one",
    table="",
    tree="",
)
OWN_TABLES: Final[Migration] = (
    """
    CREATE TABLE rows (
        execution bigint NOT NULL,  -- executions.no
        seq integer NOT NULL,
        at double precision NOT NULL,  -- unix seconds
        shape integer NOT NULL,        -- the number of upcasters when it was written
        form smallint NOT NULL,        -- compression.Form
        data bytea NOT NULL,
        hash bytea NOT NULL,           -- SHA-256 of the hash before it and this row
        PRIMARY KEY (execution, seq)
    )
    """,
    """
    CREATE VIEW journal AS
        SELECT e.id AS execution, r.seq, to_timestamp(r.at) AS at,
            CASE r.form WHEN 0 THEN convert_from(r.data, 'UTF8') END AS events
        FROM rows AS r JOIN executions AS e ON e.no = r.execution
    """,
    """
    CREATE TABLE blob_uses (
        execution text COLLATE "C" NOT NULL,
        hash bytea NOT NULL,
        PRIMARY KEY (execution, hash)
    )
    """,
    "CREATE INDEX blob_uses_by_hash ON blob_uses (hash)",
    "CREATE INDEX summaries_by_awaited ON summaries USING gin (awaits) WHERE awaits <> '[]'",
    "CREATE INDEX summaries_by_asked ON summaries USING gin (gates jsonb_path_ops) WHERE gates <> '[]'",
    "CREATE INDEX memory_by_words ON memory USING gin (words)",
    "CREATE SEQUENCE versions_of_entries",
    """
    CREATE TABLE entries (
        kind text COLLATE "C" NOT NULL,
        key text COLLATE "C" NOT NULL,
        value bytea NOT NULL,
        version bigint NOT NULL,  -- of the sequence: no version is ever given twice
        PRIMARY KEY (kind, key)
    )
    """,
    """
    CREATE TABLE memory_vectors (
        no bigint NOT NULL REFERENCES memory (no) ON DELETE CASCADE,
        model text COLLATE "C" NOT NULL,
        vector real[] NOT NULL,  -- of length 1; empty: the model gives none for this value
        PRIMARY KEY (no, model)
    )
    """,
    """
    CREATE FUNCTION memory_changed() RETURNS trigger LANGUAGE plpgsql AS $$
    BEGIN
        DELETE FROM memory_vectors WHERE no = NEW.no;
        RETURN NULL;
    END $$
    """,
    """
    CREATE TRIGGER memory_changed AFTER UPDATE OF value ON memory
    FOR EACH ROW WHEN (NEW.value IS DISTINCT FROM OLD.value) EXECUTE FUNCTION memory_changed()
    """,
    # Large data is compressed before it is stored.
    "ALTER TABLE rows ALTER COLUMN data SET STORAGE EXTERNAL",
    "ALTER TABLE blobs ALTER COLUMN data SET STORAGE EXTERNAL",
    "ALTER TABLE effects ALTER COLUMN data SET STORAGE EXTERNAL",
    """
    CREATE TABLE runtimes (
        no bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
        name text NOT NULL,
        beat timestamptz NOT NULL,  -- the runtime is alive while this is recent
        started timestamptz NOT NULL DEFAULT clock_timestamp(),
        queues text[] NOT NULL DEFAULT '{}',  -- those whose steps it performs
        facts text NOT NULL DEFAULT '{}'      -- JSON: coordination.RuntimeFacts
    )
    """,
    "ALTER TABLE executions ADD COLUMN owner bigint",  # runtimes.no; NULL: no runtime drives it
    "ALTER TABLE executions ADD COLUMN token bigint NOT NULL DEFAULT 0",  # grows with each claim
    "CREATE INDEX executions_by_owner ON executions (owner) WHERE owner IS NOT NULL",
    """
    CREATE TABLE mailbox (
        no bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
        execution text COLLATE "C" NOT NULL,
        key text COLLATE "C" NOT NULL,
        report bytea NOT NULL,
        sender bigint NOT NULL,    -- runtimes.no
        sent timestamptz NOT NULL DEFAULT clock_timestamp(),
        seq integer,               -- the row that it caused, 0 for none; NULL: not decided
        refusal bytea,
        UNIQUE (execution, key)
    )
    """,
    "CREATE INDEX mailbox_by_execution ON mailbox (execution, no) WHERE seq IS NULL",
    """
    CREATE TABLE placed_steps (
        no bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
        execution text COLLATE "C" NOT NULL,
        step text COLLATE "C" NOT NULL,
        attempt integer NOT NULL,
        queue text COLLATE "C" NOT NULL,
        share text NOT NULL,               -- starter and workflow: each gets an equal share of the workers
        version integer NOT NULL DEFAULT 1,
        placed timestamptz NOT NULL DEFAULT clock_timestamp(),
        owner bigint,                      -- runtimes.no of the worker that performs it; NULL: none
        UNIQUE (execution, step)
    )
    """,
    "CREATE INDEX placed_steps_by_queue ON placed_steps (queue, no)",
    "CREATE INDEX placed_steps_by_owner ON placed_steps (owner) WHERE owner IS NOT NULL",
    "CREATE TABLE pointsman_version (version integer NOT NULL)",
    "INSERT INTO pointsman_version (version) VALUES (0)",
)
BASELINE: Final[Migration] = (*shared(TABLES, TYPES), *OWN_TABLES)
MIGRATIONS: Final[Migrations] = (BASELINE,)

OLDEST_SERVER: Final = 130000
APART_S: Final = 5.0
"""A greater difference of the clocks causes a warning."""
LOCK: Final = 0x504F494E
"""`POIN` in ASCII: prefix of our lock numbers."""

READ_ONLY: Final = """
    SELECT current_setting('transaction_read_only') = 'on'
        OR has_table_privilege(to_regclass(quote_ident(current_schema()) || '.rows'), 'INSERT') IS FALSE
"""
HAS_SCHEMA: Final = "SELECT to_regnamespace(quote_ident(%s)) IS NOT NULL"
FIND_VERSION: Final = """
    SELECT current_schema(), to_regclass(quote_ident(current_schema()) || '.pointsman_version') IS NOT NULL
"""
LOSES: Final = {
    "fsync": "a crash of its machine can damage the store beyond repair",
    "full_page_writes": "a crash of its machine can damage the store beyond repair",
    "synchronous_commit": "a crash can lose writes acknowledged just before it",
    "data_checksums": "values changed by the disk are only detected in journals (`pg_checksums --enable`)",
}
"""Settings that must not be off, and the consequence if they are."""
FIND_OFF: Final = "SELECT name FROM pg_settings WHERE name = ANY(%s) AND setting = 'off' ORDER BY name"
COUNT_TABLES: Final = """
    SELECT count(*) FROM pg_class AS c WHERE c.relnamespace = to_regnamespace(%s) AND c.relkind IN ('r', 'p', 'v', 'm')
        AND NOT EXISTS (SELECT FROM pg_depend AS d WHERE d.objid = c.oid AND d.deptype = 'e')
"""


class PreparedStore(NamedTuple):
    """A store that is ready to be used."""

    conninfo: str
    """Connection parameters."""
    read_only: bool
    """Whether the server is a standby, or the user may only read."""
    warnings: list[str]
    """Warnings about the server for the operator."""


async def prepare(address: Address) -> PreparedStore:
    """Ensure that the present tables exist. Raises an `OperatorError`."""
    try:
        return await asyncio.to_thread(_prepared, address)
    except psycopg.Error as why:
        raise fault(why, address.shown) from why


def _prepared(address: Address) -> PreparedStore:
    conninfo = address.within(address.schema) if address.schema else address.conninfo
    with psycopg.connect(conninfo, autocommit=True) as connection:
        if connection.info.server_version < OLDEST_SERVER:
            raise StoreFailed(
                f"{address.shown}: PostgreSQL {connection.info.server_version // 10000} is too old",
                hint="Use PostgreSQL 13 or newer.",
            )
        schema, version = found_in(connection)
        if version != len(MIGRATIONS) and is_read_only(connection):
            raise StoreReadOnly(
                f"{address.shown}: the store has an older version, or does not exist, and the database is read-only",
                hint="Open it once where it is writable; that creates or migrates the store.",
            )
        if version != len(MIGRATIONS):
            # Held until this connection is closed; a process that waits too long gets an error.
            connection.execute("SET lock_timeout = '30s'")
            connection.execute("SELECT pg_advisory_lock(%s, 0)", (LOCK,))
            schema = bring_up(connection, address)
        return PreparedStore(address.within(schema), is_read_only(connection), warnings_of(connection))


def is_read_only(connection: psycopg.Connection) -> bool:
    return connection.execute(READ_ONLY).fetchone() == (True,)


def warnings_of(connection: psycopg.Connection) -> list[str]:
    """Return warnings about settings that risk data loss or late failure detection, and about the server's clock."""
    off = connection.execute(FIND_OFF, ([*LOSES],)).fetchall()
    warnings = [f"the server's setting {name!r} is off: {LOSES[name]}" for (name,) in off]
    started = time.time()
    row = connection.execute("SELECT extract(epoch FROM clock_timestamp())::float8").fetchone()
    apart = 0.0 if row is None else max(started - row[0], row[0] - time.time())
    if apart > APART_S:
        warnings.append(f"the clocks of this machine and of the server are {apart:.0f} s apart: correct one of them")
    return warnings


def found_in(connection: psycopg.Connection) -> tuple[str, int]:
    """Return the schema of this connection, empty if there is none, and the version of its store, 0 for none."""
    row = connection.execute(FIND_VERSION).fetchone()
    assert row is not None, "a SELECT without FROM has one row"
    schema, ours = row
    if not ours:
        return schema or "", 0
    written = connection.execute(
        sql.SQL("SELECT version FROM {}.pointsman_version").format(sql.Identifier(schema))
    ).fetchone()
    return schema, 0 if written is None else int(written[0])


def bring_up(connection: psycopg.Connection, address: Address) -> str:
    """Migrate, unless another process did so while this one waited for the lock; return the schema."""
    # To create a schema that exists needs the right to create schemas in the database.
    if address.schema and connection.execute(HAS_SCHEMA, (address.schema,)).fetchone() != (True,):
        connection.execute(sql.SQL("CREATE SCHEMA IF NOT EXISTS {}").format(sql.Identifier(address.schema)))
    schema, version = found_in(connection)
    if not schema and address.schema:
        raise StoreForbidden(
            f"{address.shown}: this user may not use the schema {address.schema!r}",
            hint=f"Let its owner run: GRANT USAGE, CREATE ON SCHEMA {address.schema} TO this user.",
        )
    if not schema:
        raise StoreMissing(
            f"{address.shown}: this user has no schema", hint="Name one, for example …?schema=pointsman; it is created."
        )
    if version == 0 and connection.execute(COUNT_TABLES, (f'"{schema}"',)).fetchone() != (0,):
        raise StoreForeign(
            f"{address.shown}: the schema {schema!r} contains tables of another application",
            hint="Give the store a schema of its own: add ?schema=pointsman to the address.",
        )
    migrate(connection, version)
    return schema


def migrate(connection: psycopg.Connection, version: int, migrations: Migrations = MIGRATIONS) -> None:
    """Run the migrations that a store of this version lacks, all or none. Raises `StoreNewer`."""
    with connection.transaction():
        version = run_missing(connection.execute, version, migrations)
        connection.execute("UPDATE pointsman_version SET version = %s", (version,))
