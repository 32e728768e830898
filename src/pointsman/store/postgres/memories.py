"""Remembered values in PostgreSQL, found by the words of their keys and texts."""

from __future__ import annotations

import asyncio
from typing import Final

import psycopg

from pointsman.ports import Change, Once
from pointsman.store.codec import decode_json, encode_json
from pointsman.store.compression import PACKED_BYTES_MAX, Packed, large_values, pack
from pointsman.store.memory_changes import NUMBER, UNBOUNDED, Made, check_room, made_of
from pointsman.store.memory_history import (
    BEHIND,
    BREAK,
    PAST,
    Current,
    Row,
    Traced,
    number_of,
    past_key,
    past_of,
    recalled,
    traced,
)
from pointsman.store.memory_words import texts, words_of
from pointsman.store.postgres.blobs import keep_blobs, opened
from pointsman.store.postgres.connections import Connection, Connections, alone
from pointsman.store.records import Holding, Recalled, Remembered
from pointsman.values import Json

LEXEME_BYTES_MAX: Final = 2000
WORDS_BYTES_MAX: Final = 500_000
"""What one value can be found by: PostgreSQL holds no more than a megabyte of words."""
LIVES: Final = "(expires IS NULL OR expires > %s)"
FIND: Final = f"SELECT value FROM memory WHERE scope = %s AND namespace = %s AND key = %s AND {LIVES}"
PAST_OF: Final = "scope = %s AND namespace = %s AND key > %s AND key < %s"
"""Where the past of a key lies."""
ROWS: Final = f"SELECT key, value, changed, expires FROM memory WHERE {PAST_OF} ORDER BY key DESC LIMIT %s"
CURRENT: Final = f"""
    SELECT key, value, changed, expires FROM memory
    WHERE scope = %s AND namespace = %s AND key = %s AND {LIVES}
"""
WITH_PAST: Final = f"({CURRENT}) UNION ALL ({ROWS})"
"""What is remembered, and then what is told of it, the latest first. Past keys are told by their sign."""
DELETE: Final = "DELETE FROM memory WHERE scope = %s AND namespace = %s AND key = %s"
COUNT: Final = "SELECT count(*) FROM (SELECT 1 FROM memory WHERE scope = %s AND namespace = %s LIMIT %s) AS keys"
PUT: Final = """
    INSERT INTO memory (scope, namespace, key, value, words, changed, expires)
    VALUES (%s, %s, %s, %s, array_to_tsvector(%s::text[]), %s, %s)
    ON CONFLICT (scope, namespace, key) DO UPDATE
    SET value = excluded.value, words = excluded.words, changed = excluded.changed, expires = excluded.expires
"""
EVERY: Final = f"""
    SELECT key, value, changed, expires FROM memory
    WHERE scope = %s AND namespace = %s AND key > %s AND starts_with(key, %s) AND {LIVES}
    ORDER BY key COLLATE "C" LIMIT %s
"""
SEARCH: Final = f"""
    SELECT key, value FROM memory
    WHERE words @@ %s::tsquery AND scope = %s AND namespace = %s AND starts_with(key, %s) AND {LIVES}
    ORDER BY ts_rank(words, %s::tsquery) DESC, key LIMIT %s
"""
IS_PAST: Final = f"starts_with(scope, '{PAST}')"
EXPIRED: Final = f"expires <= %s AND NOT {IS_PAST}"
DELETE_PAST: Final = f"DELETE FROM memory WHERE {PAST_OF}"
DELETE_PAST_OF_EXPIRED: Final = f"""
    DELETE FROM memory AS p USING memory AS m
    WHERE p.scope = '{PAST}' || m.scope AND p.namespace = m.namespace
        AND p.key > m.key || '{BREAK}' AND p.key < m.key || '{BEHIND}' AND m.expires <= %s
"""
HOLDINGS: Final = f"""
    SELECT scope, namespace, count(*), sum(length(value)), max(changed) FROM memory WHERE {LIVES} AND NOT {IS_PAST}
    GROUP BY scope, namespace ORDER BY scope, namespace
"""
RECORDED: Final = "SELECT form, data FROM effects WHERE execution = %b AND attempt = %b AND number = %b::int4"
RECORD: Final = (
    "INSERT INTO effects (execution, attempt, number, form, data) VALUES (%b, %b, %b::int4, %b::int2, %b::bytea)"
)


class PostgresMemories:
    """One row per value, with its words. Those who write are served in the order in which they came."""

    def __init__(self, connections: Connections) -> None:
        self._connections = connections
        self._turn = asyncio.Lock()

    async def get(self, scope: str, namespace: str, key: str, *, at: float = 0.0) -> Json | None:
        return await self._connections.read(lambda connection: find(connection, (scope, namespace, key), at))

    async def put(self, scope: str, namespace: str, key: str, value: Json | None) -> None:
        change = Change(
            scope=scope, namespace=namespace, key=key, operation="set", value=value, at=0.0, quota=UNBOUNDED
        )
        await self.change(change)

    async def change(self, change: Change, *, once: Once | None = None) -> Json:
        encode_json(change.value)

        async def work(connection: Connection) -> Json:
            # Who adds a key must know how many there are.
            await alone(connection, "memory", change.scope, change.namespace)
            return await change_once(connection, change, once)

        # A list must not grow twice where nobody knows whether it grew; known by a name, nothing happens twice.
        repeatable = once is not None or change.operation != "append"
        async with self._turn:
            return await self._connections.write(work, repeatable=repeatable)

    async def search(
        self, scope: str, namespace: str, text: str, *, limit: int = 10, within: str = "", at: float = 0.0
    ) -> list[tuple[str, Json]]:
        # Each word is quoted: nothing in the text is an operator of the search language.
        wanted = " | ".join(f"'{word}'" for word in shortened(words_of(text)))
        if not wanted:
            return []

        async def query(connection: Connection) -> list[tuple[str, Json]]:
            cursor = await connection.execute(SEARCH, (wanted, scope, namespace, within, at, wanted, limit))
            return [(key, decode_json(data)) for key, data in await cursor.fetchall()]

        return await self._connections.read(query)

    async def forget(self, scope: str, namespace: str, *, within: str = "") -> int:
        async def work(connection: Connection) -> int:
            # Who changes something there meanwhile would leave its past behind.
            await alone(connection, "memory", scope, namespace)
            statement = "DELETE FROM memory WHERE scope = %s AND namespace = %s AND starts_with(key, %s)"
            await connection.execute(statement, (past_of(scope), namespace, within))
            return (await connection.execute(statement, (scope, namespace, within))).rowcount

        async with self._turn:
            return await self._connections.write(work)

    async def every(
        self, scope: str, namespace: str, *, within: str = "", after: str = "", limit: int = -1, at: float = 0.0
    ) -> list[Remembered]:
        async def query(connection: Connection) -> list[Remembered]:
            bound = None if limit < 0 else limit
            cursor = await connection.execute(EVERY, (scope, namespace, after, within, at, bound))
            return [
                Remembered(key=key, value=decode_json(data), changed=changed, expires=expires)
                for key, data, changed, expires in await cursor.fetchall()
            ]

        return await self._connections.read(query)

    async def history(self, scope: str, namespace: str, key: str, *, at: float = 0.0) -> list[Recalled]:
        async def query(connection: Connection) -> list[Recalled]:
            current, rows = await found_with_past(connection, (scope, namespace, key), at)
            return [] if current is None else recalled(current, rows, at=at)

        return await self._connections.read(query)

    async def holdings(self, *, at: float = 0.0) -> list[Holding]:
        async def query(connection: Connection) -> list[Holding]:
            cursor = await connection.execute(HOLDINGS, (at,))
            return [
                Holding(scope=scope, namespace=namespace, keys=keys, bytes=int(size), changed=changed)
                for scope, namespace, keys, size, changed in await cursor.fetchall()
            ]

        return await self._connections.read(query)

    async def purge(self, at: float, *, dry_run: bool = False) -> int:
        async def count(connection: Connection) -> int:
            cursor = await connection.execute(f"SELECT count(*) FROM memory WHERE {EXPIRED}", (at,))
            return await number_in(cursor)

        async def work(connection: Connection) -> int:
            await connection.execute(DELETE_PAST_OF_EXPIRED, (at,))
            await connection.execute(f"DELETE FROM memory WHERE expires <= %s AND {IS_PAST}", (at,))
            return (await connection.execute(f"DELETE FROM memory WHERE {EXPIRED}", (at,))).rowcount

        return await (self._connections.read(count) if dry_run else self._connections.write(work))


async def change_once(connection: Connection, change: Change, once: Once | None) -> Json:
    """Make a change, unless it was made before; its answer."""
    if once is None:
        return (await make(connection, change)).answer
    cursor = connection.cursor(binary=True)
    await cursor.execute(RECORDED, (once.execution, once.name, NUMBER))
    recorded = await cursor.fetchone()
    if recorded is not None:
        return decode_json(await opened(connection, *recorded))
    answer = (await make(connection, change)).answer
    packed = packed_of(answer)
    if packed.blobs:
        await keep_blobs(connection, packed.blobs, user=once.execution)
    await connection.execute(RECORD, (once.execution, once.name, NUMBER, int(packed.form), packed.data))
    return answer


def packed_of(answer: Json) -> Packed:
    plain = encode_json(answer)
    return pack(plain, large_values((answer,)) if len(plain) > PACKED_BYTES_MAX else ())


async def make(connection: Connection, change: Change) -> Made:
    place = (change.scope, change.namespace, change.key)
    if change.by is None:
        current, rows = await found_current(connection, place, change.at), []
    else:
        current, rows = await found_with_past(connection, place, change.at, limit=1)
    made = made_of(change, None if current is None else decode_json(current.data))
    if made.value is None:
        await connection.execute(DELETE_PAST, past_in(place))
        await connection.execute(DELETE, place)
        return made
    if current is None:
        await make_room(connection, change)
    values = (*place, made.data, lexemes(change.key, made.value), change.at, change.expires)
    if change.by is None:
        await connection.execute(PUT, values)
    else:
        await put_with_past(connection, change, traced(change, current, made, rows[0] if rows else None), values)
    return made


async def put_with_past(connection: Connection, change: Change, beside: Traced, values: tuple[object, ...]) -> None:
    """All at once, in one exchange. No words are kept of the past: nobody finds it."""
    past = past_in((change.scope, change.namespace, change.key))
    async with connection.pipeline():
        await connection.execute(PUT, values)
        for row in beside.rows:
            place = (*past[:2], past_key(change.key, row.number))
            await connection.execute(PUT, (*place, row.data, [], row.changed, row.expires))
        if beside.first > 1:
            await connection.execute(DELETE_PAST, (*past[:3], past_key(change.key, beside.first)))


def past_in(place: tuple[str, str, str]) -> tuple[str, str, str, str]:
    """The values for `PAST_OF`."""
    scope, namespace, key = place
    return past_of(scope), namespace, f"{key}{BREAK}", f"{key}{BEHIND}"


async def found_current(connection: Connection, place: tuple[str, str, str], at: float) -> Current | None:
    found = await (await connection.execute(CURRENT, (*place, at))).fetchone()
    return None if found is None else Current(*found[1:])


async def found_with_past(
    connection: Connection, place: tuple[str, str, str], at: float, *, limit: int | None = None
) -> tuple[Current | None, list[Row]]:
    """What is remembered by `at`, and the rows of its past, the latest first: seen at one moment."""
    cursor = await connection.execute(WITH_PAST, (*place, at, *past_in(place), limit))
    found = await cursor.fetchall()
    current = next((Current(*one[1:]) for one in found if one[0] == place[2]), None)
    rows = [Row(number_of(key), *rest) for key, *rest in found if key != place[2]]
    return current, sorted(rows, reverse=True)


async def make_room(connection: Connection, change: Change) -> None:
    """Raises `MemoryFull` where no key more fits, also after what expired is gone."""
    owner, most = (change.scope, change.namespace), change.quota.keys
    keys = await number_in(await connection.execute(COUNT, (*owner, most)))
    if keys >= most:
        past = f"{DELETE_PAST_OF_EXPIRED} AND m.scope = %s AND m.namespace = %s"
        await connection.execute(past, (change.at, *owner))
        statement = "DELETE FROM memory WHERE scope = %s AND namespace = %s AND expires <= %s"
        keys -= (await connection.execute(statement, (*owner, change.at))).rowcount
    check_room(change, keys)


async def find(connection: Connection, place: tuple[str, str, str], at: float) -> Json | None:
    found = await (await connection.execute(FIND, (*place, at))).fetchone()
    return None if found is None else decode_json(found[0])


async def number_in(cursor: psycopg.AsyncCursor[tuple[int]]) -> int:
    found = await cursor.fetchone()
    assert found is not None, "an aggregate always has a row"
    return int(found[0])


def lexemes(key: str, value: Json) -> list[str]:
    """The words by which a value is found: as many as there is room for."""
    found: list[str] = []
    room = WORDS_BYTES_MAX
    for word in shortened(words_of(" ".join([key, *texts(value)]))):
        room -= len(word.encode())
        if room < 0:
            break
        found.append(word)
    return found


def shortened(words: list[str]) -> list[str]:
    """A word too long for the index is known by its beginning."""
    short = (word if len(word) < LEXEME_BYTES_MAX // 4 else word[: LEXEME_BYTES_MAX // 4] for word in words)
    return [*dict.fromkeys(short)]
