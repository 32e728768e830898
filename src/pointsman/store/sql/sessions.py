"""Conversations: one row for each message."""

from __future__ import annotations

from functools import partial
from typing import Final

from pointsman.store.codec import decode_json, encode_json
from pointsman.store.errors import SessionClosed, SessionMoved
from pointsman.store.records import Conversation
from pointsman.store.sql.work import NO_LIMIT, Database, Lock, Many, Statement, Work, count, first
from pointsman.values import Json

MESSAGES: Final = "SELECT message FROM messages WHERE session = %s AND number > %s ORDER BY number LIMIT %s"
LAST: Final = "SELECT coalesce(max(number), 0) FROM messages WHERE session = %s"
INSERT: Final = "INSERT INTO messages (session, number, message) VALUES (%s, %s, %s)"
IS_CLOSED: Final = "SELECT 1 FROM closed_sessions WHERE session = %s"
CLOSE: Final = "INSERT INTO closed_sessions (session) VALUES (%s) ON CONFLICT DO NOTHING"
REOPEN: Final = "DELETE FROM closed_sessions WHERE session = %s"
FORGET: Final = "DELETE FROM messages WHERE session = %s"


class SqlSessions:
    """`Sessions` of the SQL stores. A closed session is listed in a table of its own."""

    def __init__(self, database: Database) -> None:
        self._database = database

    async def load(self, session: str) -> Conversation:
        return await self._database.read(partial(load, session))

    async def append(self, session: str, messages: tuple[Json, ...], *, after: int) -> None:
        encoded = [encode_json(message) for message in messages]
        await self._database.write(partial(append, session, encoded, after))

    async def close(self, session: str, *, closed: bool = True) -> None:
        await self._database.write(partial(close, session, closed=closed))

    async def forget(self, session: str) -> bool:
        return await self._database.write(partial(forget, session))


def load(session: str) -> Work[Conversation]:
    messages = yield from read_messages(session, 0)
    closed = yield from first(IS_CLOSED, session)
    return Conversation(session=session, messages=tuple(map(decode_json, messages)), closed=closed is not None)


def read_messages(session: str, after: int, limit: int = NO_LIMIT) -> Work[list[bytes]]:
    found = yield Statement(MESSAGES, (session, after, limit))
    return [message for (message,) in found.rows]


def append(session: str, messages: list[bytes], after: int) -> Work[None]:
    """Add messages behind number `after`, unless the same ones are there. Raises `SessionClosed`, `SessionMoved`."""
    yield Lock(("session", session))
    last = yield from count(LAST, session)
    if last >= after + len(messages) and (yield from read_messages(session, after, len(messages))) == messages:
        return
    if (yield from first(IS_CLOSED, session)) is not None:
        raise SessionClosed(f"session {session!r} is closed", hint="Reopen it, or start another one.")
    if last != after:
        raise SessionMoved(f"session {session!r} has {last} messages, not {after}")
    yield Many(INSERT, [(session, number, message) for number, message in enumerate(messages, start=after + 1)])


def close(session: str, *, closed: bool) -> Work[None]:
    yield Lock(("session", session))
    yield Statement(CLOSE if closed else REOPEN, (session,))


def forget(session: str) -> Work[bool]:
    yield Lock(("session", session))
    yield Statement(REOPEN, (session,))
    return (yield Statement(FORGET, (session,))).changed > 0
