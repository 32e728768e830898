"""Conversations in PostgreSQL: one row per message."""

from __future__ import annotations

from pointsman.store.codec import decode_json, encode_json
from pointsman.store.errors import SessionClosed, SessionMoved
from pointsman.store.postgres.connections import Connection, Connections, alone
from pointsman.store.records import Conversation
from pointsman.values import Json


class PostgresSessions:
    """Messages by session and number; a closed session is listed in a table of its own."""

    def __init__(self, connections: Connections) -> None:
        self._connections = connections

    async def load(self, session: str) -> Conversation:
        return await self._connections.read(lambda connection: load(connection, session))

    async def append(self, session: str, messages: tuple[Json, ...], *, after: int) -> None:
        encoded = [encode_json(message) for message in messages]
        await self._connections.write(lambda connection: append(connection, session, encoded, after))

    async def close(self, session: str, *, closed: bool = True) -> None:
        async def work(connection: Connection) -> None:
            await alone(connection, "session", session)
            if closed:
                insert = "INSERT INTO closed_sessions (session) VALUES (%s) ON CONFLICT DO NOTHING"
                await connection.execute(insert, (session,))
            else:
                await connection.execute("DELETE FROM closed_sessions WHERE session = %s", (session,))

        await self._connections.write(work)

    async def forget(self, session: str) -> bool:
        async def work(connection: Connection) -> bool:
            await alone(connection, "session", session)
            await connection.execute("DELETE FROM closed_sessions WHERE session = %s", (session,))
            return (await connection.execute("DELETE FROM messages WHERE session = %s", (session,))).rowcount > 0

        return await self._connections.write(work)


async def load(connection: Connection, session: str) -> Conversation:
    messages = await said(connection, session, 0)
    closed = await is_closed(connection, session)
    return Conversation(session=session, messages=tuple(map(decode_json, messages)), closed=closed)


async def append(connection: Connection, session: str, messages: list[bytes], after: int) -> None:
    await alone(connection, "session", session)
    there = await said(connection, session, after)
    if len(there) >= len(messages) and there[: len(messages)] == messages:
        return
    if await is_closed(connection, session):
        raise SessionClosed(f"session {session!r} is closed", hint="Reopen it, or start another one.")
    last = await count(connection, session)
    if last != after:
        raise SessionMoved(f"session {session!r} has {last} messages, not {after}")
    await connection.execute(
        "INSERT INTO messages (session, number, message)"
        " SELECT %b, n, m FROM unnest(%b::int4[], %b::bytea[]) AS g (n, m)",
        (session, [*range(after + 1, after + 1 + len(messages))], messages),
    )


async def said(connection: Connection, session: str, after: int) -> list[bytes]:
    cursor = connection.cursor(binary=True)
    statement = "SELECT message FROM messages WHERE session = %b AND number > %b::int8 ORDER BY number"
    await cursor.execute(statement, (session, after))
    return [message for (message,) in await cursor.fetchall()]


async def count(connection: Connection, session: str) -> int:
    cursor = await connection.execute("SELECT coalesce(max(number), 0) FROM messages WHERE session = %s", (session,))
    found = await cursor.fetchone()
    assert found is not None, "an aggregate always has a row"
    return found[0]


async def is_closed(connection: Connection, session: str) -> bool:
    cursor = await connection.execute("SELECT 1 FROM closed_sessions WHERE session = %s", (session,))
    return await cursor.fetchone() is not None
