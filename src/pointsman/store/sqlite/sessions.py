"""Conversations in SQLite: one row per message."""

from __future__ import annotations

import sqlite3

from pointsman.store.codec import decode_json, encode_json
from pointsman.store.errors import SessionClosed, SessionMoved
from pointsman.store.records import Conversation
from pointsman.store.sqlite.reader import Reader
from pointsman.store.sqlite.transaction import Transaction
from pointsman.store.sqlite.writer import Writer
from pointsman.values import Json


class SqliteSessions:
    """Messages by session and number; a closed session is listed in a table of its own."""

    def __init__(self, writer: Writer, reader: Reader) -> None:
        self._submit = writer.submit
        self._read = reader.run

    async def load(self, session: str) -> Conversation:
        return await self._read(lambda connection: load(connection, session))

    async def append(self, session: str, messages: tuple[Json, ...], *, after: int) -> None:
        encoded = [encode_json(message) for message in messages]
        await self._submit(lambda transaction: append(transaction, session, encoded, after))

    async def close(self, session: str, *, closed: bool = True) -> None:
        statement = (
            "INSERT OR IGNORE INTO closed_sessions (session) VALUES (?)"
            if closed
            else "DELETE FROM closed_sessions WHERE session = ?"
        )
        await self._submit(lambda transaction: transaction.execute(statement, (session,)))

    async def forget(self, session: str) -> bool:
        return await self._submit(lambda transaction: forget(transaction, session))


def forget(transaction: Transaction, session: str) -> bool:
    transaction.execute("DELETE FROM closed_sessions WHERE session = ?", (session,))
    return transaction.execute("DELETE FROM messages WHERE session = ?", (session,)).rowcount > 0


def load(connection: sqlite3.Connection, session: str) -> Conversation:
    rows = connection.execute("SELECT message FROM messages WHERE session = ? ORDER BY number", (session,))
    messages = tuple(decode_json(message) for (message,) in rows)
    return Conversation(session=session, messages=messages, closed=is_closed(connection, session))


def append(transaction: Transaction, session: str, messages: list[bytes], after: int) -> None:
    last: int = transaction.execute(
        "SELECT coalesce(max(number), 0) FROM messages WHERE session = ?", (session,)
    ).fetchone()[0]
    if last >= after + len(messages) and said(transaction.connection, session, after, len(messages)) == messages:
        return
    if is_closed(transaction.connection, session):
        raise SessionClosed(f"session {session!r} is closed", hint="Reopen it, or start another one.")
    if last != after:
        raise SessionMoved(f"session {session!r} has {last} messages, not {after}")
    for number, message in enumerate(messages, start=after + 1):
        transaction.execute(
            "INSERT INTO messages (session, number, message) VALUES (?, ?, ?)", (session, number, message)
        )


def said(connection: sqlite3.Connection, session: str, after: int, count: int) -> list[bytes]:
    rows = connection.execute(
        "SELECT message FROM messages WHERE session = ? AND number > ? ORDER BY number LIMIT ?", (session, after, count)
    )
    return [message for (message,) in rows]


def is_closed(connection: sqlite3.Connection, session: str) -> bool:
    return connection.execute("SELECT 1 FROM closed_sessions WHERE session = ?", (session,)).fetchone() is not None
