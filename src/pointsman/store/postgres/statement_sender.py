"""Sends the statements of a write batcher, each in a transaction of its own, on a connection of its own.

When the connection breaks under a statement, it is unknown whether it was committed. The statement is sent again on
another connection, and its result is marked: it must be idempotent, and return what it finds.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final, LiteralString, NamedTuple

import psycopg
from psycopg.rows import TupleRow

from pointsman.store.postgres.connections import Connection, Connections
from pointsman.store.postgres.error_mapping import fault, is_lost

FENCE: Final = "fence AS MATERIALIZED (SELECT epoch FROM leader WHERE epoch = %b::int8 FOR SHARE)"
"""Blocks a new leader until this statement is committed; has no row once another process leads."""


class StatementResult(NamedTuple):
    """The result of a statement, and whether it may have been committed once before."""

    rows: Sequence[TupleRow]
    again: bool


class StatementSender:
    """One connection, opened when it is needed and again when it broke."""

    def __init__(self, connections: Connections) -> None:
        self._connections = connections
        self._connection: Connection | None = None

    async def send(self, statement: LiteralString, values: Sequence[object]) -> StatementResult:
        """Send a statement. Raises the store error; then nothing was written, unless it is `StoreUnreachable`."""
        patience = self._connections.patience()
        again = False
        while True:
            try:
                return StatementResult(await self._execute(statement, values), again)
            except UnicodeEncodeError as why:
                raise fault(why, self._connections.shown) from why
            except psycopg.Error as why:
                again = again or is_lost(why)
                if not await patience.outlasts(why):
                    raise fault(why, self._connections.shown) from why

    async def close(self) -> None:
        if self._connection is not None:
            await self._connection.close()

    async def _execute(self, statement: LiteralString, values: Sequence[object]) -> Sequence[TupleRow]:
        if self._connection is None or self._connection.closed:
            self._connection = await self._connections.open()
        cursor = self._connection.cursor(binary=True)
        await cursor.execute(statement, values, prepare=True)
        return await cursor.fetchall()
