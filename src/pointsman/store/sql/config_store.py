"""Configuration entries: one row for each kind and key, with a version that no other change ever had."""

from __future__ import annotations

from functools import partial
from typing import Final, LiteralString

from pointsman.store.codec import decode_json, encode_json
from pointsman.store.errors import EntryMoved
from pointsman.store.records import ConfigEntry
from pointsman.store.sql.work import Database, Lock, Statement, Work, first
from pointsman.values import Json

FIND: Final = "SELECT version, value FROM entries WHERE kind = %s AND key = %s"
LIST: Final = "SELECT version, value, key FROM entries WHERE kind = %s ORDER BY key"
DELETE: Final = "DELETE FROM entries WHERE kind = %s AND key = %s"


class SqlConfigStore:
    """`ConfigStore` of the SQL stores. Changes of one entry wait for each other."""

    def __init__(self, database: Database) -> None:
        self._database = database

    async def put(self, kind: str, key: str, value: Json, *, after: int | None = None) -> int:
        work = partial(put, self._database.dialect.put_entry, kind, key, encode_json(value), after)
        # If repeated after a commit whose answer was lost, `after` would reject what this very call wrote.
        return await self._database.write(work, repeatable=after is None)

    async def find(self, kind: str, key: str) -> ConfigEntry | None:
        found = await self._database.read(partial(first, FIND, kind, key))
        return None if found is None else ConfigEntry(kind=kind, key=key, value=decode_json(found[1]), version=found[0])

    async def list(self, kind: str) -> list[ConfigEntry]:
        return await self._database.read(partial(list_entries, kind))

    async def delete(self, kind: str, key: str, *, after: int | None = None) -> bool:
        return await self._database.write(partial(delete, kind, key, after), repeatable=False)


def put(statement: LiteralString, kind: str, key: str, data: bytes, after: int | None) -> Work[int]:
    """Write an entry and return its version."""
    yield from expect(kind, key, after)
    written = yield Statement(statement, (kind, key, data))
    return int(written.rows[0][0])


def list_entries(kind: str) -> Work[list[ConfigEntry]]:
    found = yield Statement(LIST, (kind,))
    return [
        ConfigEntry(kind=kind, key=key, value=decode_json(data), version=version) for version, data, key in found.rows
    ]


def delete(kind: str, key: str, after: int | None) -> Work[bool]:
    yield from expect(kind, key, after)
    return (yield Statement(DELETE, (kind, key))).changed > 0


def expect(kind: str, key: str, after: int | None) -> Work[None]:
    """Raise `EntryMoved` unless the entry has the version that its writer read; lock it."""
    yield Lock(("entry", kind, key))
    if after is None:
        return
    found = yield from first(FIND, kind, key)
    if after != (0 if found is None else found[0]):
        raise EntryMoved(f"{kind} {key!r} was changed meanwhile", hint="Read it again.")
