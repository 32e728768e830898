"""Remembered values in SQLite, with full-text search over their keys and texts."""

from __future__ import annotations

from typing import Final

from pointsman.journal.codec import decode_json, encode_json
from pointsman.journal.packing import PACKED_BYTES_MAX, large_values
from pointsman.journal.records import Holding, Remembered
from pointsman.journal.remembering import NUMBER, UNBOUNDED, check_room, made_of
from pointsman.journal.sqlite.contents import read_effects
from pointsman.journal.sqlite.reader import Reader
from pointsman.journal.sqlite.transaction import Transaction
from pointsman.journal.sqlite.writer import Writer
from pointsman.journal.words import folded, texts, words_of
from pointsman.ports import Change, Once
from pointsman.values import Json

PLACE: Final = "scope = ? AND namespace = ?"
LIVES: Final = "(expires IS NULL OR expires > ?)"
WITHIN: Final = "substr(key, 1, length(?1)) = ?1"
FIND: Final = f"SELECT value FROM memory WHERE {PLACE} AND key = ? AND {LIVES}"
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
HOLDINGS: Final = f"""
    SELECT scope, namespace, count(*), sum(length(value)), max(changed) FROM memory WHERE {LIVES}
    GROUP BY scope, namespace ORDER BY scope, namespace
"""
EXPIRED: Final = "expires <= ?"


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
        where, values = f"scope = ?2 AND namespace = ?3 AND {WITHIN}", (within, scope, namespace)
        return await self._submit(lambda transaction: delete(transaction, where, values))

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
        return await self._submit(lambda transaction: delete(transaction, EXPIRED, (at,)))


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
    found = transaction.execute(FIND, (*place, change.at)).fetchone()
    made = made_of(change, None if found is None else decode_json(found[0]))
    if made.value is None:
        delete(transaction, f"{PLACE} AND key = ?", place)
        return made.answer
    if found is None:
        make_room(transaction, change)
    no: int = transaction.execute(
        "INSERT INTO memory (scope, namespace, key, value, changed, expires) VALUES (?, ?, ?, ?, ?, ?)"
        " ON CONFLICT (scope, namespace, key) DO UPDATE"
        " SET value = excluded.value, changed = excluded.changed, expires = excluded.expires RETURNING no",
        (*place, made.data, change.at, change.expires),
    ).fetchone()[0]
    words = folded(" ".join([change.key, *texts(made.value)]))
    transaction.execute("INSERT OR REPLACE INTO memory_words (rowid, words) VALUES (?, ?)", (no, words))
    return made.answer


def make_room(transaction: Transaction, change: Change) -> None:
    """Raises `MemoryFull` where no key more fits, also after what expired is gone."""
    owner, most = (change.scope, change.namespace), change.quota.keys
    count = f"SELECT count(*) FROM (SELECT 1 FROM memory WHERE {PLACE} LIMIT ?)"
    keys: int = transaction.execute(count, (*owner, most)).fetchone()[0]
    if keys >= most:
        keys -= delete(transaction, f"{PLACE} AND {EXPIRED}", (*owner, change.at))
    check_room(change, keys)


def delete(transaction: Transaction, where: str, values: tuple[str | float, ...]) -> int:
    """Delete values. `where` is one of the literals above, never anybody's text."""
    chosen = f"SELECT no FROM memory WHERE {where}"
    transaction.execute(f"DELETE FROM memory_words WHERE rowid IN ({chosen})", values)
    return transaction.execute(f"DELETE FROM memory WHERE {where}", values).rowcount
