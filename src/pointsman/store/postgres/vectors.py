"""What remembered values mean, in PostgreSQL: one vector per value and model, compared one by one.

The table is made when it is first asked for; a vector goes with its value, whoever changes that. Where the database has
the extension `vector` (pgvector), it compares; else plain SQL does, some four times slower.
"""

from __future__ import annotations

from array import array
from collections.abc import Sequence
from typing import Final

from psycopg import sql

from pointsman.store.codec import decode_json
from pointsman.store.postgres.connections import Connection, Connections, alone
from pointsman.store.records import Near, Placed, Unplaced
from pointsman.store.vectors import check_length, mark_of, normalized

MAKE: Final = (
    """
    CREATE TABLE memory_vectors (
        scope text NOT NULL,
        namespace text NOT NULL,
        key text COLLATE "C" NOT NULL,
        model text NOT NULL,
        vector real[] NOT NULL,  -- of length 1; empty: it cannot be said of this value
        PRIMARY KEY (scope, namespace, model, key),
        FOREIGN KEY (scope, namespace, key) REFERENCES memory (scope, namespace, key) ON DELETE CASCADE
    )
    """,
    "CREATE INDEX memory_vectors_by_value ON memory_vectors (scope, namespace, key)",
    """
    CREATE FUNCTION memory_changed() RETURNS trigger LANGUAGE plpgsql AS $$
    BEGIN
        DELETE FROM memory_vectors WHERE scope = NEW.scope AND namespace = NEW.namespace AND key = NEW.key;
        RETURN NULL;
    END $$
    """,
    """
    CREATE TRIGGER memory_changed AFTER UPDATE OF value ON memory
    FOR EACH ROW WHEN (NEW.value IS DISTINCT FROM OLD.value) EXECUTE FUNCTION memory_changed()
    """,
)
IS_MADE: Final = "SELECT to_regclass(quote_ident(current_schema()) || '.memory_vectors') IS NOT NULL"
MISSING: Final = """
    SELECT m.key, m.value FROM memory AS m
    WHERE m.scope = %(scope)s AND m.namespace = %(namespace)s AND (m.expires IS NULL OR m.expires > %(at)s)
        AND NOT EXISTS (
            SELECT FROM memory_vectors AS v
            WHERE v.scope = m.scope AND v.namespace = m.namespace AND v.key = m.key AND v.model = %(model)s
        )
    ORDER BY m.key COLLATE "C" LIMIT %(limit)s
"""
LENGTHS: Final = """
    SELECT DISTINCT cardinality(vector) FROM memory_vectors WHERE scope = %s AND namespace = %s AND model = %s
"""
VALUE: Final = "SELECT value FROM memory WHERE scope = %s AND namespace = %s AND key = %s FOR SHARE"
PUT: Final = """
    INSERT INTO memory_vectors (scope, namespace, model, key, vector) VALUES (%s, %s, %s, %s, %s::real[])
    ON CONFLICT (scope, namespace, model, key) DO UPDATE SET vector = excluded.vector
"""
NEAREST: Final = """
    WITH near AS (
        SELECT v.key, {similarity} AS similarity
        FROM memory_vectors AS v JOIN memory AS m USING (scope, namespace, key)
        WHERE v.scope = %(scope)s AND v.namespace = %(namespace)s AND v.model = %(model)s AND cardinality(v.vector) > 0
            AND starts_with(v.key, %(within)s) AND (m.expires IS NULL OR m.expires > %(at)s)
        ORDER BY similarity DESC, v.key LIMIT %(limit)s
    )
    SELECT near.key, m.value, near.similarity
    FROM near JOIN memory AS m ON m.scope = %(scope)s AND m.namespace = %(namespace)s AND m.key = near.key
    ORDER BY near.similarity DESC, near.key
"""
EXTENSION: Final = """
    SELECT n.nspname FROM pg_extension AS e JOIN pg_namespace AS n ON n.oid = e.extnamespace WHERE e.extname = 'vector'
"""
BY_SQL: Final = sql.SQL(
    "(SELECT sum(one * other) FROM unnest(v.vector, %(vector)s::real[]) AS both_of (one, other))::float8"
)
BY_THE_EXTENSION: Final = (
    "(1 - (v.vector::{schema}.vector OPERATOR({schema}.<=>) %(vector)s::real[]::{schema}.vector))::float8"
)


class PostgresVectors:
    """Each value has at most one vector of a model."""

    def __init__(self, connections: Connections) -> None:
        self._connections = connections
        self._similarity: sql.Composable | None = None
        """How vectors are compared here; None: it was not needed yet."""

    async def missing(self, scope: str, namespace: str, model: str, *, limit: int, at: float) -> list[Unplaced]:
        await self._make()
        given = {"scope": scope, "namespace": namespace, "model": model, "limit": limit, "at": at}

        async def query(connection: Connection) -> list[Unplaced]:
            cursor = await connection.execute(MISSING, given)
            return [Unplaced(key, decode_json(data), mark_of(data)) for key, data in await cursor.fetchall()]

        return await self._connections.read(query)

    async def place(self, scope: str, namespace: str, model: str, placed: Sequence[Placed]) -> None:
        await self._make()

        async def work(connection: Connection) -> None:
            lengths = await lengths_of(connection, scope, namespace, model)
            for one in placed:
                check_length(model, lengths, len(one.vector))
                found = await (await connection.execute(VALUE, (scope, namespace, one.key))).fetchone()
                if found is not None and mark_of(found[0]) == one.mark:
                    vector = normalized(one.vector).tolist()
                    await connection.execute(PUT, (scope, namespace, model, one.key, vector))

        await self._connections.write(work)

    async def nearest(
        self, scope: str, namespace: str, model: str, vector: Sequence[float], *, limit: int, within: str, at: float
    ) -> list[Near]:
        similarity = await self._make()
        wanted: array[float] = normalized(vector)
        given = {
            "scope": scope,
            "namespace": namespace,
            "model": model,
            "vector": wanted.tolist(),
            "limit": limit,
            "within": within,
            "at": at,
        }

        async def query(connection: Connection) -> list[Near]:
            check_length(model, await lengths_of(connection, scope, namespace, model), len(wanted))
            cursor = await connection.execute(sql.SQL(NEAREST).format(similarity=similarity), given)
            return [Near(key, decode_json(data), cosine) for key, data, cosine in await cursor.fetchall()]

        return await self._connections.read(query)

    async def clear(self) -> int:
        await self._make()

        async def work(connection: Connection) -> int:
            return (await connection.execute("DELETE FROM memory_vectors")).rowcount

        return await self._connections.write(work)

    async def _make(self) -> sql.Composable:
        if self._similarity is None:
            self._similarity = await self._connections.write(make)
        return self._similarity


async def make(connection: Connection) -> sql.Composable:
    """See that the table is there; how vectors are compared."""
    await alone(connection, "memory vectors")
    if await (await connection.execute(IS_MADE)).fetchone() != (True,):
        for statement in MAKE:
            await connection.execute(statement)
    found = await (await connection.execute(EXTENSION)).fetchone()
    return BY_SQL if found is None else sql.SQL(BY_THE_EXTENSION).format(schema=sql.Identifier(found[0]))


async def lengths_of(connection: Connection, scope: str, namespace: str, model: str) -> list[int]:
    """In numbers."""
    return [length for (length,) in await (await connection.execute(LENGTHS, (scope, namespace, model))).fetchall()]
