"""Remembered values in SQLite, with full-text search over their keys and texts."""

from __future__ import annotations

from typing import Final

from pointsman.journal.codec import decode_json, encode_json
from pointsman.journal.faults import MemoryNotAList
from pointsman.journal.sqlite.reader import Reader
from pointsman.journal.sqlite.transaction import Transaction
from pointsman.journal.sqlite.writer import Writer
from pointsman.journal.words import texts, words_of
from pointsman.values import Json

FIND: Final = "SELECT value FROM memory WHERE scope = ? AND namespace = ? AND key = ?"
EVERY: Final = "SELECT key, value FROM memory WHERE scope = ? AND namespace = ? ORDER BY key"
SEARCH: Final = """
    SELECT m.key, m.value FROM memory_words AS w JOIN memory AS m ON m.no = w.rowid
    WHERE w.words MATCH ? AND m.scope = ? AND m.namespace = ?
    ORDER BY w.rank, m.key LIMIT ?
"""


class SqliteMemories:
    """One row per value; its words beside it, under the same number."""

    def __init__(self, writer: Writer, reader: Reader) -> None:
        self._submit = writer.submit
        self._read = reader.run

    async def get(self, scope: str, namespace: str, key: str) -> Json | None:
        found = await self._read(lambda connection: connection.execute(FIND, (scope, namespace, key)).fetchone())
        return None if found is None else decode_json(found[0])

    async def put(self, scope: str, namespace: str, key: str, value: Json | None) -> None:
        if value is None:
            await self._submit(lambda transaction: delete(transaction, "AND key = ?", (scope, namespace, key)))
            return
        data = encode_json(value)
        await self._submit(lambda transaction: write(transaction, (scope, namespace, key), value, data))

    async def append(self, scope: str, namespace: str, key: str, value: Json) -> None:
        encode_json(value)
        await self._submit(lambda transaction: append(transaction, (scope, namespace, key), value))

    async def search(self, scope: str, namespace: str, text: str, *, limit: int = 10) -> list[tuple[str, Json]]:
        # Each word is quoted: nothing in the text is an operator of the search language.
        words = " OR ".join(f'"{word}"' for word in words_of(text))
        if not words:
            return []
        values = (words, scope, namespace, limit)
        found: list[tuple[str, bytes]] = await self._read(
            lambda connection: connection.execute(SEARCH, values).fetchall()
        )
        return [(key, decode_json(data)) for key, data in found]

    async def forget(self, scope: str, namespace: str) -> None:
        await self._submit(lambda transaction: delete(transaction, "", (scope, namespace)))

    async def every(self, scope: str, namespace: str) -> list[tuple[str, Json]]:
        found: list[tuple[str, bytes]] = await self._read(
            lambda connection: connection.execute(EVERY, (scope, namespace)).fetchall()
        )
        return [(key, decode_json(data)) for key, data in found]


def write(transaction: Transaction, place: tuple[str, str, str], value: Json, data: bytes) -> None:
    no: int = transaction.execute(
        "INSERT INTO memory (scope, namespace, key, value) VALUES (?, ?, ?, ?)"
        " ON CONFLICT (scope, namespace, key) DO UPDATE SET value = excluded.value RETURNING no",
        (*place, data),
    ).fetchone()[0]
    words = " ".join([place[2], *texts(value)])
    transaction.execute("INSERT OR REPLACE INTO memory_words (rowid, words) VALUES (?, ?)", (no, words))


def append(transaction: Transaction, place: tuple[str, str, str], value: Json) -> None:
    found = transaction.execute(FIND, place).fetchone()
    known: Json = [] if found is None else decode_json(found[0])
    if not isinstance(known, list):
        raise MemoryNotAList(f"what is remembered under {place[2]!r} is no list", hint="Use another key, or set it.")
    longer: list[Json] = [*known, value]
    write(transaction, place, longer, encode_json(longer))


def delete(transaction: Transaction, narrowing: str, values: tuple[str, ...]) -> None:
    """Delete a value, or a whole namespace. `narrowing` is one of the two literals above, never anybody's text."""
    where = f"scope = ? AND namespace = ? {narrowing}"
    chosen = f"SELECT no FROM memory WHERE {where}"
    transaction.execute(f"DELETE FROM memory_words WHERE rowid IN ({chosen})", values)
    transaction.execute(f"DELETE FROM memory WHERE {where}", values)
