"""What people configured, in SQLite: one row per entry, its version the number of the row."""

from __future__ import annotations

from typing import Final

from pointsman.store.codec import decode_json, encode_json
from pointsman.store.errors import EntryMoved
from pointsman.store.records import Entry
from pointsman.store.sqlite.reader import Reader
from pointsman.store.sqlite.transaction import Transaction
from pointsman.store.sqlite.writer import Writer
from pointsman.values import Json

FIND: Final = "SELECT version, value FROM entries WHERE kind = ? AND key = ?"
LIST: Final = "SELECT version, key, value FROM entries WHERE kind = ? ORDER BY key"


class SqliteEntries:
    """Replacing an entry deletes its row and inserts another one."""

    def __init__(self, writer: Writer, reader: Reader) -> None:
        self._submit = writer.submit
        self._read = reader.run

    async def put(self, kind: str, key: str, value: Json, *, after: int | None = None) -> int:
        data = encode_json(value)
        return await self._submit(lambda transaction: put(transaction, kind, key, data, after))

    async def find(self, kind: str, key: str) -> Entry | None:
        found = await self._read(lambda connection: connection.execute(FIND, (kind, key)).fetchone())
        return None if found is None else Entry(kind=kind, key=key, value=decode_json(found[1]), version=found[0])

    async def list(self, kind: str) -> list[Entry]:
        rows: list[tuple[int, str, bytes]] = await self._read(
            lambda connection: connection.execute(LIST, (kind,)).fetchall()
        )
        return [Entry(kind=kind, key=key, value=decode_json(data), version=version) for version, key, data in rows]

    async def delete(self, kind: str, key: str, *, after: int | None = None) -> bool:
        return await self._submit(lambda transaction: delete(transaction, kind, key, after))


def put(transaction: Transaction, kind: str, key: str, data: bytes, after: int | None) -> int:
    expect(transaction, kind, key, after)
    statement = "INSERT OR REPLACE INTO entries (kind, key, value) VALUES (?, ?, ?) RETURNING version"
    return int(transaction.execute(statement, (kind, key, data)).fetchone()[0])


def delete(transaction: Transaction, kind: str, key: str, after: int | None) -> bool:
    expect(transaction, kind, key, after)
    gone = transaction.execute("DELETE FROM entries WHERE kind = ? AND key = ? RETURNING version", (kind, key))
    return gone.fetchone() is not None


def expect(transaction: Transaction, kind: str, key: str, after: int | None) -> None:
    """Raise `EntryMoved` unless it has the version its writer knows."""
    if after is None:
        return
    found = transaction.execute(FIND, (kind, key)).fetchone()
    if after != (0 if found is None else found[0]):
        raise EntryMoved(f"{kind} {key!r} was changed meanwhile", hint="Read it again.")
