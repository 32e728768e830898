"""Remembered values in SQLite, with full-text search over their keys and texts."""

from __future__ import annotations

import sqlite3
from typing import Final

from pointsman.ports import Change, Once
from pointsman.store.codec import decode_json, encode_json
from pointsman.store.compression import PACKED_BYTES_MAX, large_values
from pointsman.store.memory_changes import NUMBER, UNBOUNDED, Made, check_room, made_of
from pointsman.store.memory_history import (
    BEHIND,
    BREAK,
    PAST,
    Current,
    Row,
    number_of,
    past_key,
    past_of,
    recalled,
    traced,
)
from pointsman.store.memory_words import folded, texts, words_of
from pointsman.store.records import Holding, Recalled, Remembered
from pointsman.store.sqlite.effects import read_effects
from pointsman.store.sqlite.reader import Reader
from pointsman.store.sqlite.transaction import Transaction
from pointsman.store.sqlite.writer import Writer
from pointsman.values import Json

PLACE: Final = "scope = ? AND namespace = ?"
LIVES: Final = "(expires IS NULL OR expires > ?)"
WITHIN: Final = "substr(key, 1, length(?1)) = ?1"
FIND: Final = f"SELECT value FROM memory WHERE {PLACE} AND key = ? AND {LIVES}"
CURRENT: Final = f"SELECT value, changed, expires FROM memory WHERE {PLACE} AND key = ? AND {LIVES}"
PAST_OF: Final = f"{PLACE} AND key > ? AND key < ?"
"""Where the past of a key lies."""
LAST: Final = f"SELECT key, value, changed, expires FROM memory WHERE {PAST_OF} ORDER BY key DESC LIMIT ?"
EVERY: Final = """
    SELECT key, value, changed, expires FROM memory
    WHERE scope = ?2 AND namespace = ?3 AND key > ?4 AND substr(key, 1, length(?1)) = ?1
        AND (expires IS NULL OR expires > ?5)
    ORDER BY key LIMIT ?6
"""
SEARCH: Final = """
    SELECT m.key, m.value FROM memory_words AS w JOIN memory AS m ON m.no = w.rowid
    WHERE w.words MATCH ?2 AND m.scope = ?3 AND m.namespace = ?4 AND substr(m.key, 1, length(?1)) = ?1
        AND (m.expires IS NULL OR m.expires > ?5)
    ORDER BY w.rank, m.key LIMIT ?6
"""
IS_PAST: Final = f"substr(scope, 1, {len(PAST)}) = '{PAST}'"
HOLDINGS: Final = f"""
    SELECT scope, namespace, count(*), sum(length(value)), max(changed) FROM memory WHERE {LIVES} AND NOT {IS_PAST}
    GROUP BY scope, namespace ORDER BY scope, namespace
"""
EXPIRED: Final = f"expires <= ? AND NOT {IS_PAST}"
PUT: Final = """
    INSERT INTO memory (scope, namespace, key, value, changed, expires) VALUES (?, ?, ?, ?, ?, ?)
    ON CONFLICT (scope, namespace, key) DO UPDATE
    SET value = excluded.value, changed = excluded.changed, expires = excluded.expires RETURNING no
"""


class SqliteMemories:
    """One row per value; its words beside it, under the same number."""

    def __init__(self, writer: Writer, reader: Reader) -> None:
        self._submit = writer.submit
        self._read = reader.run

    async def get(self, scope: str, namespace: str, key: str, *, at: float = 0.0) -> Json | None:
        values = (scope, namespace, key, at)
        found = await self._read(lambda connection: connection.execute(FIND, values).fetchone())
        return None if found is None else decode_json(found[0])

    async def put(self, scope: str, namespace: str, key: str, value: Json | None) -> None:
        change = Change(
            scope=scope, namespace=namespace, key=key, operation="set", value=value, at=0.0, quota=UNBOUNDED
        )
        await self.change(change)

    async def change(self, change: Change, *, once: Once | None = None) -> Json:
        encode_json(change.value)
        return await self._submit(lambda transaction: change_once(transaction, change, once))

    async def search(
        self, scope: str, namespace: str, text: str, *, limit: int = 10, within: str = "", at: float = 0.0
    ) -> list[tuple[str, Json]]:
        # Each word is quoted: nothing in the text is an operator of the search language.
        words = " OR ".join(f'"{word}"' for word in words_of(text))
        if not words:
            return []
        values = (within, words, scope, namespace, at, limit)
        found: list[tuple[str, bytes]] = await self._read(
            lambda connection: connection.execute(SEARCH, values).fetchall()
        )
        return [(key, decode_json(data)) for key, data in found]

    async def forget(self, scope: str, namespace: str, *, within: str = "") -> int:
        where = f"scope = ?2 AND namespace = ?3 AND {WITHIN}"

        def work(transaction: Transaction) -> int:
            transaction.execute(f"DELETE FROM memory WHERE {where}", (within, past_of(scope), namespace))
            return delete(transaction, where, (within, scope, namespace))

        return await self._submit(work)

    async def every(
        self, scope: str, namespace: str, *, within: str = "", after: str = "", limit: int = -1, at: float = 0.0
    ) -> list[Remembered]:
        values = (within, scope, namespace, after, at, limit)
        found: list[tuple[str, bytes, float, float | None]] = await self._read(
            lambda connection: connection.execute(EVERY, values).fetchall()
        )
        return [
            Remembered(key=key, value=decode_json(data), changed=changed, expires=expires)
            for key, data, changed, expires in found
        ]

    async def history(self, scope: str, namespace: str, key: str, *, at: float = 0.0) -> list[Recalled]:
        return await self._read(lambda connection: history(connection, (scope, namespace, key), at))

    async def holdings(self, *, at: float = 0.0) -> list[Holding]:
        found: list[tuple[str, str, int, int, float]] = await self._read(
            lambda connection: connection.execute(HOLDINGS, (at,)).fetchall()
        )
        return [
            Holding(scope=scope, namespace=namespace, keys=keys, bytes=size, changed=changed)
            for scope, namespace, keys, size, changed in found
        ]

    async def purge(self, at: float, *, dry_run: bool = False) -> int:
        if dry_run:
            count = f"SELECT count(*) FROM memory WHERE {EXPIRED}"
            return await self._read(lambda connection: int(connection.execute(count, (at,)).fetchone()[0]))

        def work(transaction: Transaction) -> int:
            transaction.execute(f"DELETE FROM memory WHERE expires <= ? AND {IS_PAST}", (at,))
            return delete_expired(transaction, EXPIRED, (at,))

        return await self._submit(work)


def change_once(transaction: Transaction, change: Change, once: Once | None) -> Json:
    """Make a change, unless it was made before; its answer."""
    if once is None:
        return make(transaction, change)
    recorded = read_effects(transaction.connection, once.execution, once.name)
    if NUMBER in recorded:
        return recorded[NUMBER]
    answer = make(transaction, change)
    plain = encode_json(answer)
    packed = transaction.pack(once.execution, plain, large_values((answer,)) if len(plain) > PACKED_BYTES_MAX else ())
    transaction.execute(
        "INSERT INTO effects (execution, attempt, number, form, data) VALUES (?, ?, ?, ?, ?)",
        (once.execution, once.name, NUMBER, int(packed.form), packed.data),
    )
    return answer


def make(transaction: Transaction, change: Change) -> Json:
    place = (change.scope, change.namespace, change.key)
    found = transaction.execute(CURRENT, (*place, change.at)).fetchone()
    current = None if found is None else Current(*found)
    made = made_of(change, None if current is None else decode_json(current.data))
    if made.value is None:
        transaction.execute(f"DELETE FROM memory WHERE {PAST_OF}", past_in(place))
        delete(transaction, f"{PLACE} AND key = ?", place)
        return made.answer
    if current is None:
        make_room(transaction, change)
    if change.by is not None:
        trace(transaction, change, current, made)
    no: int = transaction.execute(PUT, (*place, made.data, change.at, change.expires)).fetchone()[0]
    words = folded(" ".join([change.key, *texts(made.value)]))
    transaction.execute("INSERT OR REPLACE INTO memory_words (rowid, words) VALUES (?, ?)", (no, words))
    return made.answer


def trace(transaction: Transaction, change: Change, current: Current | None, made: Made) -> None:
    """Write who changes it, and what it was. No words are kept of that: nobody finds it."""
    past = past_in((change.scope, change.namespace, change.key))
    last = rows_of(transaction.connection, past, limit=1)
    beside = traced(change, current, made, last[0] if last else None)
    for row in beside.rows:
        place = (*past[:2], past_key(change.key, row.number))
        transaction.execute(PUT, (*place, row.data, row.changed, row.expires)).fetchone()
    if beside.first > 1:
        until = past_key(change.key, beside.first)
        transaction.execute(f"DELETE FROM memory WHERE {PAST_OF}", (*past[:3], until))


def history(connection: sqlite3.Connection, place: tuple[str, str, str], at: float) -> list[Recalled]:
    connection.execute("BEGIN")
    try:
        found = connection.execute(CURRENT, (*place, at)).fetchone()
        rows = [] if found is None else rows_of(connection, past_in(place), limit=-1)
    finally:
        connection.execute("COMMIT")
    return [] if found is None else recalled(Current(*found), rows, at=at)


def past_in(place: tuple[str, str, str]) -> tuple[str, str, str, str]:
    """The values for `PAST_OF`."""
    scope, namespace, key = place
    return past_of(scope), namespace, f"{key}{BREAK}", f"{key}{BEHIND}"


def rows_of(connection: sqlite3.Connection, past: tuple[str, str, str, str], *, limit: int) -> list[Row]:
    found: list[tuple[str, bytes, float, float | None]] = connection.execute(LAST, (*past, limit)).fetchall()
    return [Row(number_of(key), data, changed, expires) for key, data, changed, expires in found]


def make_room(transaction: Transaction, change: Change) -> None:
    """Raises `MemoryFull` where no key more fits, also after what expired is gone."""
    owner, most = (change.scope, change.namespace), change.quota.keys
    count = f"SELECT count(*) FROM (SELECT 1 FROM memory WHERE {PLACE} LIMIT ?)"
    keys: int = transaction.execute(count, (*owner, most)).fetchone()[0]
    if keys >= most:
        keys -= delete_expired(transaction, f"{PLACE} AND {EXPIRED}", (*owner, change.at))
    check_room(change, keys)


def delete_expired(transaction: Transaction, where: str, values: tuple[str | float, ...]) -> int:
    """As `delete`, with the past of each."""
    past = f"""
        SELECT p.no FROM (SELECT scope, namespace, key FROM memory WHERE {where}) AS m CROSS JOIN memory AS p
        WHERE p.scope = '{PAST}' || m.scope AND p.namespace = m.namespace
            AND p.key > m.key || '{BREAK}' AND p.key < m.key || '{BEHIND}'
    """
    transaction.execute(f"DELETE FROM memory WHERE no IN ({past})", values)
    return delete(transaction, where, values)


def delete(transaction: Transaction, where: str, values: tuple[str | float, ...]) -> int:
    """Delete values. `where` is one of the literals above, never anybody's text."""
    chosen = f"SELECT no FROM memory WHERE {where}"
    transaction.execute(f"DELETE FROM memory_words WHERE rowid IN ({chosen})", values)
    return transaction.execute(f"DELETE FROM memory WHERE {where}", values).rowcount
