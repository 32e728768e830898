"""Remembered values: one row for each, with full-text search; history and embedding vectors lie beside them.

A vector is deleted with its value, and when that changes (triggers).
"""

from __future__ import annotations

from array import array
from collections.abc import Sequence
from functools import partial
from typing import Final, LiteralString

from pointsman.ports import ChangeId, MemoryChange
from pointsman.store.codec import decode_json, encode_json
from pointsman.store.records import Embedding, Holding, PastValue, RememberedValue, SimilarValue, UnembeddedValue
from pointsman.store.remembered_values import (
    BEHIND,
    BREAK,
    NUMBER,
    PAST,
    UNBOUNDED,
    ChangeResult,
    CurrentValue,
    HistoryRow,
    change_result,
    check_length,
    check_room,
    history_key,
    history_of_rows,
    history_scope,
    history_update,
    mark_of,
    normalized,
    number_of,
    texts,
    words_of,
)
from pointsman.store.sql.tables import packed_value, record_effect, recorded_effects
from pointsman.store.sql.work import NO_LIMIT, Database, Lock, MemoryRow, SqlDialect, Statement, Work, count, first
from pointsman.values import Json

OF_OWNER: Final = "m.scope = %s AND m.namespace = %s"
OWNED_LIVES: Final = "(m.expires IS NULL OR m.expires > %s)"
MISSING_VECTORS: Final = f"""
    SELECT m.key, m.value FROM memory AS m
    WHERE {OF_OWNER} AND {OWNED_LIVES}
        AND NOT EXISTS (SELECT 1 FROM memory_vectors AS v WHERE v.no = m.no AND v.model = %s)
    ORDER BY m.key LIMIT %s
"""
PUT_VECTOR: Final = """
    INSERT INTO memory_vectors (no, model, vector) VALUES (%s, %s, %s)
    ON CONFLICT (no, model) DO UPDATE SET vector = excluded.vector
"""


class SqlVectors:
    """`Vectors` of the SQL stores."""

    def __init__(self, database: Database) -> None:
        self._database = database

    async def missing(self, scope: str, namespace: str, model: str, *, limit: int, at: float) -> list[UnembeddedValue]:
        return await self._database.read(
            partial(missing_vectors, Statement(MISSING_VECTORS, (scope, namespace, at, model, limit)))
        )

    async def place(self, scope: str, namespace: str, model: str, placed: Sequence[Embedding]) -> None:
        await self._database.write(partial(place_vectors, self._database.dialect, (scope, namespace), model, placed))

    async def nearest(
        self, scope: str, namespace: str, model: str, vector: Sequence[float], *, limit: int, within: str, at: float
    ) -> list[SimilarValue]:
        values = (len(within), within, at, limit)
        work = partial(
            nearest_values, self._database.dialect, (scope, namespace), model, query=normalized(vector), values=values
        )
        return await self._database.read(work)

    async def clear(self) -> int:
        return await self._database.write(clear_vectors)


def missing_vectors(statement: Statement) -> Work[list[UnembeddedValue]]:
    result = yield statement
    return [UnembeddedValue(key, decode_json(data), mark_of(data)) for key, data in result.rows]


def place_vectors(dialect: SqlDialect, owner: tuple[str, str], model: str, placed: Sequence[Embedding]) -> Work[None]:
    lengths = yield from lengths_of(dialect, owner, model)
    for value in placed:
        check_length(model, lengths, len(value.vector))
    for value in placed:
        row = yield from first(f"SELECT no, value FROM memory WHERE {PLACE}{dialect.for_share}", *owner, value.key)
        if row is not None and mark_of(row[1]) == value.mark:
            yield Statement(PUT_VECTOR, (row[0], model, dialect.vector(normalized(value.vector))))


def nearest_values(
    dialect: SqlDialect,
    owner: tuple[str, str],
    model: str,
    *,
    query: array[float],
    values: tuple[int, str, float, int],
) -> Work[list[SimilarValue]]:
    """Return the most similar values. `values`: length and text of the beginning of their keys, time, limit."""
    check_length(model, (yield from lengths_of(dialect, owner, model)), len(query))
    similarity, compared = yield from dialect.similarity(query)
    statement: LiteralString = f"""
        WITH near AS (
            SELECT m.no, m.key, {similarity} AS similarity FROM memory AS m JOIN memory_vectors AS v ON v.no = m.no
            WHERE {OF_OWNER} AND v.model = %s AND {dialect.vector_length} > 0
                AND substr(m.key, 1, %s) = %s AND {OWNED_LIVES}
            ORDER BY similarity DESC, m.key LIMIT %s
        )
        SELECT near.key, m.value, near.similarity FROM near JOIN memory AS m ON m.no = near.no
        ORDER BY near.similarity DESC, near.key
    """
    result = yield Statement(statement, (*compared, *owner, model, *values))
    return [SimilarValue(key, decode_json(data), cosine) for key, data, cosine in result.rows]


def lengths_of(dialect: SqlDialect, owner: tuple[str, str], model: str) -> Work[list[int]]:
    statement: LiteralString = (
        f"SELECT DISTINCT {dialect.vector_length} FROM memory AS m JOIN memory_vectors AS v ON v.no = m.no"
        f" WHERE {OF_OWNER} AND v.model = %s"
    )
    result = yield Statement(statement, (*owner, model))
    return [length for (length,) in result.rows]


def clear_vectors() -> Work[int]:
    return (yield Statement("DELETE FROM memory_vectors")).changed


OWNER: Final = "scope = %s AND namespace = %s"
PLACE: Final = f"{OWNER} AND key = %s"
WITHIN: Final = "substr(key, 1, %s) = %s"
LIVES: Final = "(expires IS NULL OR expires > %s)"
IS_PAST: Final[LiteralString] = "substr(scope, 1, 5) = 'past '"
EXPIRED: Final = f"expires <= %s AND NOT {IS_PAST}"
FIND: Final = f"SELECT value FROM memory WHERE {PLACE} AND {LIVES}"
CURRENT: Final = f"SELECT key, value, changed, expires FROM memory WHERE {PLACE} AND {LIVES}"
PAST_OF: Final = f"{OWNER} AND key > %s AND key < %s"
"""The condition of the history of a key: see `history_of`."""
WITH_HISTORY: Final = f"""
    {CURRENT} UNION ALL SELECT * FROM (
        SELECT key, value, changed, expires FROM memory WHERE {PAST_OF} ORDER BY key DESC LIMIT %s
    ) AS past
"""
EVERY: Final = f"""
    SELECT key, value, changed, expires FROM memory WHERE {OWNER} AND key > %s AND {WITHIN} AND {LIVES}
    ORDER BY key LIMIT %s
"""
HOLDINGS: Final = f"""
    SELECT scope, namespace, count(*), sum(length(value)), max(changed) FROM memory WHERE {LIVES} AND NOT {IS_PAST}
    GROUP BY scope, namespace ORDER BY scope, namespace
"""
COUNT: Final = f"SELECT count(*) FROM (SELECT 1 FROM memory WHERE {OWNER} LIMIT %s) AS keys"


class SqlMemories:
    """`Memories` of the SQL stores. Changes of one owner wait for each other."""

    def __init__(self, database: Database) -> None:
        self._database = database

    async def get(self, scope: str, namespace: str, key: str, *, at: float = 0.0) -> Json | None:
        row = await self._database.read(partial(first, FIND, scope, namespace, key, at))
        return None if row is None else decode_json(row[0])

    async def put(self, scope: str, namespace: str, key: str, value: Json | None) -> None:
        change = MemoryChange(
            scope=scope, namespace=namespace, key=key, operation="set", value=value, at=0.0, quota=UNBOUNDED
        )
        await self.change(change)

    async def change(self, change: MemoryChange, *, once: ChangeId | None = None) -> Json:
        encode_json(change.value)
        # A list must not grow twice if it is unknown whether the commit succeeded; `once` prevents that.
        repeatable = once is not None or change.operation != "append"
        work = partial(change_once, self._database.dialect, change, once)
        return await self._database.write(work, repeatable=repeatable, in_order=True)

    async def search(
        self, scope: str, namespace: str, text: str, *, limit: int = 10, within: str = "", at: float = 0.0
    ) -> list[tuple[str, Json]]:
        words = words_of(text)
        if not words:
            return []
        statement = self._database.dialect.search(words, scope, namespace, limit=limit, within=within, at=at)
        return await self._database.read(partial(search, statement))

    async def forget(self, scope: str, namespace: str, *, within: str = "") -> int:
        return await self._database.write(partial(forget, scope, namespace, within), in_order=True)

    async def every(
        self, scope: str, namespace: str, *, within: str = "", after: str = "", limit: int = -1, at: float = 0.0
    ) -> list[RememberedValue]:
        values = (scope, namespace, after, len(within), within, at, NO_LIMIT if limit < 0 else limit)
        return await self._database.read(partial(every, Statement(EVERY, values)))

    async def history(self, scope: str, namespace: str, key: str, *, at: float = 0.0) -> list[PastValue]:
        return await self._database.read(partial(history, (scope, namespace, key), at))

    async def holdings(self, *, at: float = 0.0) -> list[Holding]:
        return await self._database.read(partial(holdings, at))

    async def purge(self, at: float, *, dry_run: bool = False) -> int:
        if dry_run:
            return await self._database.read(partial(count, f"SELECT count(*) FROM memory WHERE {EXPIRED}", at))
        return await self._database.write(partial(purge, at))


def search(statement: Statement) -> Work[list[tuple[str, Json]]]:
    result = yield statement
    return [(key, decode_json(data)) for key, data in result.rows]


def every(statement: Statement) -> Work[list[RememberedValue]]:
    result = yield statement
    return [
        RememberedValue(key=key, value=decode_json(data), changed=changed, expires=expires)
        for key, data, changed, expires in result.rows
    ]


def holdings(at: float) -> Work[list[Holding]]:
    result = yield Statement(HOLDINGS, (at,))
    return [
        Holding(scope=scope, namespace=namespace, keys=keys, bytes=int(size), changed=changed)
        for scope, namespace, keys, size, changed in result.rows
    ]


def change_once(dialect: SqlDialect, change: MemoryChange, once: ChangeId | None) -> Work[Json]:
    """Make a change, unless it was made before; return its answer."""
    # Adding a key needs the number of keys.
    yield Lock(("memory", change.scope, change.namespace))
    if once is None:
        return (yield from make(dialect, change))
    effects = yield from recorded_effects(once.execution, once.name)
    if NUMBER in effects:
        return effects[NUMBER]
    answer = yield from make(dialect, change)
    yield from record_effect(once.execution, once.name, NUMBER, packed_value(answer))
    return answer


def make(dialect: SqlDialect, change: MemoryChange) -> Work[Json]:
    place = (change.scope, change.namespace, change.key)
    current, rows = yield from found_with_history(place, change.at, 0 if change.by is None else 1)
    result = change_result(change, None if current is None else decode_json(current.data))
    if result.value is None:
        yield Statement(f"DELETE FROM memory WHERE {PAST_OF}", history_of(place))
        yield Statement(f"DELETE FROM memory WHERE {PLACE}", place)
        return result.answer
    if current is None:
        yield from make_room(change)
    text = " ".join([change.key, *texts(result.value)])
    value = MemoryRow(*place, result.data, change.at, change.expires, text)
    if change.by is None:
        yield from dialect.put_values([value])
    else:
        yield from put_with_history(dialect, change, result, value, current, rows[0] if rows else None)
    return result.answer


def put_with_history(
    dialect: SqlDialect,
    change: MemoryChange,
    result: ChangeResult,
    value: MemoryRow,
    current: CurrentValue | None,
    last: HistoryRow | None,
) -> Work[None]:
    """Write the value with a history entry: the writer and the former value."""
    beside = history_update(change, current, result, last)
    past = history_of((change.scope, change.namespace, change.key))
    rows = [
        MemoryRow(*past[:2], history_key(change.key, row.number), row.data, row.changed, row.expires, None)
        for row in beside.rows
    ]
    oldest = Statement(f"DELETE FROM memory WHERE {PAST_OF}", (*past[:3], history_key(change.key, beside.first)))
    yield from dialect.put_values([value, *rows], [oldest] if beside.first > 1 else [])


def history(place: tuple[str, str, str], at: float) -> Work[list[PastValue]]:
    current, rows = yield from found_with_history(place, at, NO_LIMIT)
    return [] if current is None else history_of_rows(current, rows, at=at)


def found_with_history(
    place: tuple[str, str, str], at: float, limit: int
) -> Work[tuple[CurrentValue | None, list[HistoryRow]]]:
    """Return the value at this time, and the newest rows of its history, all seen at one moment."""
    if limit == 0:
        row = yield from first(CURRENT, *place, at)
        return None if row is None else CurrentValue(*row[1:]), []
    result = yield Statement(WITH_HISTORY, (*place, at, *history_of(place), limit))
    current = next((CurrentValue(*entry[1:]) for entry in result.rows if entry[0] == place[2]), None)
    rows = [HistoryRow(number_of(key), *rest) for key, *rest in result.rows if key != place[2]]
    return current, sorted(rows, reverse=True)


def history_of(place: tuple[str, str, str]) -> tuple[str, str, str, str]:
    """Return the values for `PAST_OF`."""
    scope, namespace, key = place
    return history_scope(scope), namespace, f"{key}{BREAK}", f"{key}{BEHIND}"


def make_room(change: MemoryChange) -> Work[None]:
    """Raise `MemoryFull` if no more keys fit, even after deleting the expired ones."""
    owner, most = (change.scope, change.namespace), change.quota.keys
    keys = yield from count(COUNT, *owner, most)
    if keys >= most:
        keys -= yield from delete_expired(f"{OWNER} AND {EXPIRED}", (*owner, change.at))
    check_room(change, keys)


def delete_expired(where: LiteralString, values: tuple[str | float, ...]) -> Work[int]:
    """Delete values and their history; return how many values."""
    past: LiteralString = f"""
        SELECT p.no FROM (SELECT scope, namespace, key FROM memory WHERE {where}) AS m CROSS JOIN memory AS p
        WHERE p.scope = '{PAST}' || m.scope AND p.namespace = m.namespace
            AND p.key > m.key || '{BREAK}' AND p.key < m.key || '{BEHIND}'
    """
    yield Statement(f"DELETE FROM memory WHERE no IN ({past})", values)
    return (yield Statement(f"DELETE FROM memory WHERE {where}", values)).changed


def purge(at: float) -> Work[int]:
    yield Statement(f"DELETE FROM memory WHERE expires <= %s AND {IS_PAST}", (at,))
    return (yield from delete_expired(EXPIRED, (at,)))


def forget(scope: str, namespace: str, within: str) -> Work[int]:
    # A change at the same time would leave its history behind.
    yield Lock(("memory", scope, namespace))
    statement: LiteralString = f"DELETE FROM memory WHERE {OWNER} AND {WITHIN}"
    yield Statement(statement, (history_scope(scope), namespace, len(within), within))
    return (yield Statement(statement, (scope, namespace, len(within), within))).changed
