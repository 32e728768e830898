"""Embedding vectors of remembered values: at most one for each value and model, compared one by one.

A vector is deleted with its value, and when that changes (triggers).
"""

from __future__ import annotations

from array import array
from collections.abc import Sequence
from functools import partial
from typing import Final, LiteralString

from pointsman.store.codec import decode_json
from pointsman.store.records import Embedding, SimilarValue, UnembeddedValue
from pointsman.store.sql.memories import PLACE
from pointsman.store.sql.work import Database, SqlDialect, Statement, Work, first
from pointsman.store.vectors import check_length, mark_of, normalized

OF_OWNER: Final = "m.scope = %s AND m.namespace = %s"
LIVES: Final = "(m.expires IS NULL OR m.expires > %s)"
MISSING: Final = f"""
    SELECT m.key, m.value FROM memory AS m
    WHERE {OF_OWNER} AND {LIVES}
        AND NOT EXISTS (SELECT 1 FROM memory_vectors AS v WHERE v.no = m.no AND v.model = %s)
    ORDER BY m.key LIMIT %s
"""
PUT: Final = """
    INSERT INTO memory_vectors (no, model, vector) VALUES (%s, %s, %s)
    ON CONFLICT (no, model) DO UPDATE SET vector = excluded.vector
"""


class SqlVectors:
    """`Vectors` of the SQL stores."""

    def __init__(self, database: Database) -> None:
        self._database = database

    async def missing(self, scope: str, namespace: str, model: str, *, limit: int, at: float) -> list[UnembeddedValue]:
        return await self._database.read(partial(missing, Statement(MISSING, (scope, namespace, at, model, limit))))

    async def place(self, scope: str, namespace: str, model: str, placed: Sequence[Embedding]) -> None:
        await self._database.write(partial(place, self._database.dialect, (scope, namespace), model, placed))

    async def nearest(
        self, scope: str, namespace: str, model: str, vector: Sequence[float], *, limit: int, within: str, at: float
    ) -> list[SimilarValue]:
        values = (len(within), within, at, limit)
        work = partial(
            nearest, self._database.dialect, (scope, namespace), model, wanted=normalized(vector), values=values
        )
        return await self._database.read(work)

    async def clear(self) -> int:
        return await self._database.write(clear)


def missing(statement: Statement) -> Work[list[UnembeddedValue]]:
    found = yield statement
    return [UnembeddedValue(key, decode_json(data), mark_of(data)) for key, data in found.rows]


def place(dialect: SqlDialect, owner: tuple[str, str], model: str, placed: Sequence[Embedding]) -> Work[None]:
    lengths = yield from lengths_of(dialect, owner, model)
    for one in placed:
        check_length(model, lengths, len(one.vector))
    for one in placed:
        found = yield from first(f"SELECT no, value FROM memory WHERE {PLACE}{dialect.for_share}", *owner, one.key)
        if found is not None and mark_of(found[1]) == one.mark:
            yield Statement(PUT, (found[0], model, dialect.vector(normalized(one.vector))))


def nearest(
    dialect: SqlDialect,
    owner: tuple[str, str],
    model: str,
    *,
    wanted: array[float],
    values: tuple[int, str, float, int],
) -> Work[list[SimilarValue]]:
    """Return the most similar values. `values`: length and text of the beginning of their keys, time, limit."""
    check_length(model, (yield from lengths_of(dialect, owner, model)), len(wanted))
    similarity, compared = yield from dialect.similarity(wanted)
    statement: LiteralString = f"""
        WITH near AS (
            SELECT m.no, m.key, {similarity} AS similarity FROM memory AS m JOIN memory_vectors AS v ON v.no = m.no
            WHERE {OF_OWNER} AND v.model = %s AND {dialect.vector_length} > 0
                AND substr(m.key, 1, %s) = %s AND {LIVES}
            ORDER BY similarity DESC, m.key LIMIT %s
        )
        SELECT near.key, m.value, near.similarity FROM near JOIN memory AS m ON m.no = near.no
        ORDER BY near.similarity DESC, near.key
    """
    found = yield Statement(statement, (*compared, *owner, model, *values))
    return [SimilarValue(key, decode_json(data), cosine) for key, data, cosine in found.rows]


def lengths_of(dialect: SqlDialect, owner: tuple[str, str], model: str) -> Work[list[int]]:
    statement: LiteralString = (
        f"SELECT DISTINCT {dialect.vector_length} FROM memory AS m JOIN memory_vectors AS v ON v.no = m.no"
        f" WHERE {OF_OWNER} AND v.model = %s"
    )
    found = yield Statement(statement, (*owner, model))
    return [length for (length,) in found.rows]


def clear() -> Work[int]:
    return (yield Statement("DELETE FROM memory_vectors")).changed
