"""What people configured, in PostgreSQL: one row per entry, with a version that no other change ever had."""

from __future__ import annotations

from typing import Final

from pointsman.store.codec import decode_json, encode_json
from pointsman.store.errors import EntryMoved
from pointsman.store.postgres.connections import Connection, Connections, alone
from pointsman.store.records import Entry
from pointsman.values import Json

FIND: Final = "SELECT version, value FROM entries WHERE kind = %s AND key = %s"
LIST: Final = "SELECT version, key, value FROM entries WHERE kind = %s ORDER BY key"
PUT: Final = """
    INSERT INTO entries (kind, key, value, version) VALUES (%s, %s, %s, nextval('versions_of_entries'))
    ON CONFLICT (kind, key) DO UPDATE SET value = excluded.value, version = excluded.version RETURNING version
"""


class PostgresEntries:
    """Changes of one entry wait for each other."""

    def __init__(self, connections: Connections) -> None:
        self._connections = connections

    async def put(self, kind: str, key: str, value: Json, *, after: int | None = None) -> int:
        data = encode_json(value)

        async def work(connection: Connection) -> int:
            await expect(connection, kind, key, after)
            written = await (await connection.execute(PUT, (kind, key, data))).fetchone()
            assert written is not None, "an upsert returns its row"
            return written[0]

        # Said again after a commit whose answer got lost, `after` would refuse what this very call wrote.
        return await self._connections.write(work, repeatable=after is None)

    async def find(self, kind: str, key: str) -> Entry | None:
        async def query(connection: Connection) -> Entry | None:
            found = await (await connection.execute(FIND, (kind, key))).fetchone()
            return None if found is None else Entry(kind=kind, key=key, value=decode_json(found[1]), version=found[0])

        return await self._connections.read(query)

    async def list(self, kind: str) -> list[Entry]:
        async def query(connection: Connection) -> list[Entry]:
            rows = await (await connection.execute(LIST, (kind,))).fetchall()
            return [Entry(kind=kind, key=key, value=decode_json(data), version=version) for version, key, data in rows]

        return await self._connections.read(query)

    async def delete(self, kind: str, key: str, *, after: int | None = None) -> bool:
        async def work(connection: Connection) -> bool:
            await expect(connection, kind, key, after)
            gone = await connection.execute("DELETE FROM entries WHERE kind = %s AND key = %s", (kind, key))
            return gone.rowcount == 1

        return await self._connections.write(work, repeatable=False)


async def expect(connection: Connection, kind: str, key: str, after: int | None) -> None:
    """Raise `EntryMoved` unless it has the version its writer knows; nobody else changes it meanwhile."""
    await alone(connection, "entry", kind, key)
    if after is None:
        return
    found = await (await connection.execute(FIND, (kind, key))).fetchone()
    if after != (0 if found is None else found[0]):
        raise EntryMoved(f"{kind} {key!r} was changed meanwhile", hint="Read it again.")
