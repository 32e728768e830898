"""The tables of both SQL stores, and how a store is brought to today's version.

    version 0 ─▶ MIGRATIONS[0], the baseline ─▶ version 1 ─▶ MIGRATIONS[1] ─▶ … ─▶ version len(MIGRATIONS)

A store records its version: SQLite in the header of the file, PostgreSQL in the table `pointsman_version`. A migration
is a tuple of statements. Releases only append migrations; a released one is never changed. All that are missing run in
one transaction under a lock of the store, so several processes may open an old store at once. A store with a higher
version than this code knows is refused before anything in it is changed.

To change a table of both stores, write the statements here, with the types as in `TABLES`, and append them to the
`MIGRATIONS` of each store (`sqlite.schema`, `postgres.schema`). `TABLES` itself stays as it is:

    NOTE_OF_SUMMARIES: Final = ("ALTER TABLE summaries ADD COLUMN note {text} NOT NULL DEFAULT ''",)
    MIGRATIONS: Final[Migrations] = (BASELINE, shared(NOTE_OF_SUMMARIES, TYPES))
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Final, LiteralString, NamedTuple, TypeAlias, cast

from pointsman.store.errors import StoreNewer

Migration: TypeAlias = tuple[LiteralString, ...]
Migrations: TypeAlias = Sequence[Migration]


class Types(NamedTuple):
    """The differences between the stores in the definitions of tables."""

    key: LiteralString
    """Texts that are compared by their bytes."""
    text: LiteralString
    int: LiteralString
    long: LiteralString
    """Integers of 64 bits."""
    real: LiteralString
    bool: LiteralString
    bytes: LiteralString
    json: LiteralString
    identity: LiteralString
    """A number that the store gives each row; never given twice."""
    seal: LiteralString
    """Another column, for a hash over the others."""
    words: LiteralString
    """Another column of remembered values, for their words."""
    gates: LiteralString
    """Another column of summaries, for open gates."""
    table: LiteralString
    """Behind the columns."""
    tree: LiteralString
    """Behind the columns of a table whose rows lie in the order of its key."""


AMOUNTS: Final = (
    "steps {long} NOT NULL, retries {long} NOT NULL, failures {long} NOT NULL, cached {long} NOT NULL,"
    " micros {long} NOT NULL, model_calls {long} NOT NULL, tool_calls {long} NOT NULL, input_tokens {long} NOT NULL,"
    " output_tokens {long} NOT NULL, cache_read_tokens {long} NOT NULL, nanos {long} NOT NULL,"
    " priced_calls {long} NOT NULL, unpriced_calls {long} NOT NULL, scripted_calls {long} NOT NULL"
)
TABLES: Final = (
    """
    CREATE TABLE executions (
        no {identity},
        id {key} NOT NULL UNIQUE  -- /deleted/no: its number is never given again
    ){table}
    """,
    """
    CREATE TABLE blobs (
        hash {bytes} NOT NULL PRIMARY KEY,  -- SHA-256 of the plain content
        form {int} NOT NULL,
        data {bytes} NOT NULL,
        held_until {real} NOT NULL  -- unix seconds: kept so long for an execution that has not begun to use it
    ){table}
    """,
    """
    CREATE TABLE effects (
        execution {key} NOT NULL,
        attempt {key} NOT NULL,
        number {int} NOT NULL,
        form {int} NOT NULL,
        data {bytes} NOT NULL,
        {seal}
        PRIMARY KEY (execution, attempt, number)
    ){table}
    """,
    """
    CREATE TABLE summaries (
        execution {key} NOT NULL PRIMARY KEY,
        workflow {key} NOT NULL,
        revision {int} NOT NULL,
        status {key} NOT NULL,
        started {real} NOT NULL,  -- unix seconds
        updated {real} NOT NULL,
        parent {key},
        session {key},
        owner {key} NOT NULL,
        wakes {real},            -- unix seconds; NULL: nothing wakes it
        worker {key} NOT NULL,   -- the process that wrote its last row
        scripted {bool} NOT NULL,
        tokens {long} NOT NULL,  -- what it has spent, with its sub-workflows
        model_calls {long} NOT NULL,
        tool_calls {long} NOT NULL,
        cost_usd {real} NOT NULL,
        {gates}
        needs {json} NOT NULL,   -- what workers must have to perform its steps
        awaits {json} NOT NULL   -- the names of the events it waits for
    ){table}
    """,
    "CREATE INDEX summaries_by_start ON summaries (started, execution)",
    "CREATE INDEX summaries_by_status ON summaries (status, started, execution)",
    "CREATE INDEX summaries_by_workflow ON summaries (workflow, started, execution)",
    "CREATE INDEX summaries_by_change ON summaries (updated)",
    "CREATE INDEX summaries_by_parent ON summaries (parent, started) WHERE parent IS NOT NULL",
    "CREATE INDEX summaries_by_session ON summaries (session, started) WHERE session IS NOT NULL",
    "CREATE INDEX summaries_by_wake ON summaries (wakes, execution) WHERE wakes IS NOT NULL",
    """
    CREATE TABLE answers (
        execution {key} NOT NULL,
        gate {key} NOT NULL,
        person {key} NOT NULL,
        at {real} NOT NULL,  -- unix seconds
        workflow {key} NOT NULL,
        data {bytes} NOT NULL,
        PRIMARY KEY (execution, gate, person)
    ){tree}
    """,
    "CREATE INDEX answers_by_person ON answers (person, at, execution, gate)",
    "CREATE INDEX answers_by_time ON answers (at, execution, gate, person)",
    """
    CREATE TABLE workflows (
        id {key} NOT NULL,
        revision {int} NOT NULL,
        version {key} NOT NULL,
        name {text} NOT NULL,
        dialect {key} NOT NULL,
        created {real} NOT NULL,
        author {text} NOT NULL,
        digest {key} NOT NULL,
        text {text} NOT NULL,
        native {bytes} NOT NULL,
        {seal}
        PRIMARY KEY (id, revision)
    ){table}
    """,
    "CREATE TABLE deleted_workflows (id {key} NOT NULL PRIMARY KEY){table}",
    """
    CREATE TABLE memory (
        no {identity},
        scope {key} NOT NULL,
        namespace {key} NOT NULL,
        key {key} NOT NULL,
        value {bytes} NOT NULL,
        {words}
        changed {real} NOT NULL,  -- unix seconds
        expires {real},           -- unix seconds; NULL: never
        {seal}
        UNIQUE (scope, namespace, key)
    ){table}
    """,
    "CREATE INDEX memory_by_expiry ON memory (expires) WHERE expires IS NOT NULL",
    """
    CREATE TABLE messages (
        session {key} NOT NULL,
        number {int} NOT NULL,  -- 1, 2, …
        message {bytes} NOT NULL,
        {seal}
        PRIMARY KEY (session, number)
    ){table}
    """,
    "CREATE TABLE closed_sessions (session {key} NOT NULL PRIMARY KEY){table}",
    f"""
    CREATE TABLE usage (
        day {{key}} NOT NULL,        -- of UTC
        execution {{key}} NOT NULL,  -- it may be deleted
        workflow {{key}} NOT NULL,
        revision {{int}} NOT NULL,
        owner {{key}} NOT NULL,
        node {{key}} NOT NULL,
        model {{key}} NOT NULL,
        key {{key}} NOT NULL,
        place {{bytes}} NOT NULL,    -- a digest of workflow, revision, node, model and key
        {AMOUNTS},
        {{seal}}
        PRIMARY KEY (day, execution, place)
    ){{table}}
    """,
    f"""
    CREATE TABLE usage_sums (
        day {{key}} NOT NULL,
        place {{bytes}} NOT NULL,
        workflow {{key}} NOT NULL,
        revision {{int}} NOT NULL,
        node {{key}} NOT NULL,
        model {{key}} NOT NULL,
        key {{key}} NOT NULL,
        entries {{long}} NOT NULL,  -- so many rows of usage are in it
        {AMOUNTS},
        PRIMARY KEY (day, place)
    ){{tree}}
    """,
    """
    CREATE TABLE leader (
        one {int} NOT NULL PRIMARY KEY CHECK (one = 1),
        epoch {long} NOT NULL,  -- raised by each process that becomes the leader
        holder {text} NOT NULL, -- empty: the store has no leader
        since {real} NOT NULL
    ){table}
    """,
    "INSERT INTO leader (one, epoch, holder, since) VALUES (1, 0, '', 0)",
)
"""The tables that both stores have."""


def shared(statements: Migration, types: Types) -> Migration:
    """Return statements of this module for a store with these types."""
    # Only the constants of this module and of `types` enter a statement.
    return cast("Migration", tuple(statement.format(**types._asdict()) for statement in statements))


def missing(migrations: Migrations, version: int) -> Sequence[Migration]:
    """Return the migrations that a store of this version lacks. Raises `StoreNewer`."""
    if version > len(migrations):
        raise StoreNewer(
            f"the store has version {version}; this Pointsman supports versions up to {len(migrations)}",
            hint="Upgrade Pointsman, or use another store.",
        )
    return migrations[version:]


def run_missing(execute: Callable[[LiteralString], object], version: int, migrations: Migrations) -> int:
    """Run the migrations that a store of this version lacks, in the caller's transaction. Return the new version, which
    the caller records. Raises `StoreNewer`.
    """
    for migration in missing(migrations, version):
        for statement in migration:
            execute(statement)
    return len(migrations)
