"""Remembered values in PostgreSQL, found by the words of their keys and texts."""

from __future__ import annotations

import asyncio
from typing import Final, LiteralString

from pointsman.journal.codec import decode_json, encode_json
from pointsman.journal.faults import MemoryNotAList
from pointsman.journal.postgres.connections import Connection, Connections, alone
from pointsman.journal.words import texts, words_of
from pointsman.values import Json

LEXEME_BYTES_MAX: Final = 2000
WORDS_BYTES_MAX: Final = 500_000
"""What one value can be found by: PostgreSQL holds no more than a megabyte of words."""
WHERE: Final = "scope = %s AND namespace = %s AND key = %s"
PUT: Final = """
    INSERT INTO memory (scope, namespace, key, value, words) VALUES (%s, %s, %s, %s, array_to_tsvector(%s::text[]))
    ON CONFLICT (scope, namespace, key) DO UPDATE SET value = excluded.value, words = excluded.words
"""
EVERY: Final = 'SELECT key, value FROM memory WHERE scope = %s AND namespace = %s ORDER BY key COLLATE "C"'
SEARCH: Final = """
    SELECT key, value FROM memory WHERE words @@ %s::tsquery AND scope = %s AND namespace = %s
    ORDER BY ts_rank(words, %s::tsquery) DESC, key LIMIT %s
"""


class PostgresMemories:
    """One row per value, with its words. Those who write are served in the order in which they came."""

    def __init__(self, connections: Connections) -> None:
        self._connections = connections
        self._turn = asyncio.Lock()

    async def get(self, scope: str, namespace: str, key: str) -> Json | None:
        return await self._connections.read(lambda connection: find(connection, (scope, namespace, key)))

    async def put(self, scope: str, namespace: str, key: str, value: Json | None) -> None:
        place = (scope, namespace, key)
        if value is None:
            await self._delete(f"DELETE FROM memory WHERE {WHERE}", place)
            return
        data, words = encode_json(value), lexemes(key, value)

        async def work(connection: Connection) -> None:
            await connection.execute(PUT, (*place, data, words))

        async with self._turn:
            await self._connections.write(work)

    async def append(self, scope: str, namespace: str, key: str, value: Json) -> None:
        encode_json(value)
        place = (scope, namespace, key)

        async def work(connection: Connection) -> None:
            await alone(connection, "memory", *place)
            known = await find(connection, place)
            if known is not None and not isinstance(known, list):
                raise MemoryNotAList(f"what is remembered under {key!r} is no list", hint="Use another key, or set it.")
            longer: list[Json] = [*(known or []), value]
            await connection.execute(PUT, (*place, encode_json(longer), lexemes(key, longer)))

        async with self._turn:
            await self._connections.write(work, repeatable=False)

    async def search(self, scope: str, namespace: str, text: str, *, limit: int = 10) -> list[tuple[str, Json]]:
        # Each word is quoted: nothing in the text is an operator of the search language.
        wanted = " | ".join(f"'{word}'" for word in shortened(words_of(text.casefold())))
        if not wanted:
            return []

        async def query(connection: Connection) -> list[tuple[str, Json]]:
            cursor = await connection.execute(SEARCH, (wanted, scope, namespace, wanted, limit))
            return [(key, decode_json(data)) for key, data in await cursor.fetchall()]

        return await self._connections.read(query)

    async def forget(self, scope: str, namespace: str) -> None:
        await self._delete("DELETE FROM memory WHERE scope = %s AND namespace = %s", (scope, namespace))

    async def every(self, scope: str, namespace: str) -> list[tuple[str, Json]]:
        async def query(connection: Connection) -> list[tuple[str, Json]]:
            cursor = await connection.execute(EVERY, (scope, namespace))
            return [(key, decode_json(data)) for key, data in await cursor.fetchall()]

        return await self._connections.read(query)

    async def _delete(self, statement: LiteralString, values: tuple[str, ...]) -> None:
        async def work(connection: Connection) -> None:
            await connection.execute(statement, values)

        async with self._turn:
            await self._connections.write(work)


async def find(connection: Connection, place: tuple[str, str, str]) -> Json | None:
    found = await (await connection.execute(f"SELECT value FROM memory WHERE {WHERE}", place)).fetchone()
    return None if found is None else decode_json(found[0])


def lexemes(key: str, value: Json) -> list[str]:
    """The words by which a value is found: as many as there is room for."""
    found: list[str] = []
    room = WORDS_BYTES_MAX
    for word in shortened(words_of(" ".join([key, *texts(value)]).casefold())):
        room -= len(word.encode())
        if room < 0:
            break
        found.append(word)
    return found


def shortened(words: list[str]) -> list[str]:
    """A word too long for the index is known by its beginning."""
    short = (word if len(word) < LEXEME_BYTES_MAX // 4 else word[: LEXEME_BYTES_MAX // 4] for word in words)
    return [*dict.fromkeys(short)]
