"""The tables of PostgreSQL (see `sql.schema`)."""

from __future__ import annotations

from typing import Final

from pointsman.store.sql.schema import Migration, Migrations, Types, shared_tables

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
    "CREATE TABLE pointsman_version (version integer NOT NULL)",
    "INSERT INTO pointsman_version (version) VALUES (0)",
)
BASELINE: Final[Migration] = (*shared_tables(TYPES), *OWN_TABLES)
MIGRATIONS: Final[Migrations] = (BASELINE,)
