"""Write batcher: requests that arrive while one group is on its way become the next group.

    put ─┐
    put ─┼─▶ waiting ─▶ carry(group) ─ one round trip ─▶ each is settled
    put ─┘

A lone request is sent at once; under load a round trip and a commit are shared by the requests that arrive during the
one before it. When a group fails, possibly because of one request, the requests are carried one by one.

A statement whose answer got lost may have been committed. It is sent again on another connection, and its result is
marked: it must be idempotent, and return what it finds.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Sequence
from typing import Final, Generic, LiteralString, NamedTuple, TypeVar

import psycopg
from psycopg.rows import TupleRow

from pointsman.errors import OperatorError
from pointsman.store.postgres.connections import STATEMENT_S_MAX, Connection, Connections, fault, is_lost, limited


class BatchedRequest:
    """A request and the future of its caller. Cancelling the future does not take the request back."""

    __slots__ = ("future", "settled")

    def __init__(self) -> None:
        self.future: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        self.settled = False

    def done(self) -> None:
        self.settled = True
        if not self.future.done():
            self.future.set_result(None)

    def refuse(self, why: Exception) -> None:
        self.settled = True
        if not self.future.done():
            self.future.set_exception(why)


R = TypeVar("R", bound=BatchedRequest)


class WriteBatcher(Generic[R]):
    """One task that carries groups one after the other, in the order of the requests."""

    def __init__(self, carry: Callable[[Sequence[R]], Awaitable[None]], *, together_max: int) -> None:
        """`carry` settles the requests of a group, or raises and has written nothing of those it left open."""
        self._carry = carry
        self._together_max = together_max
        self._waiting: list[R] = []
        self._task: asyncio.Task[None] | None = None

    def put(self, request: R) -> asyncio.Future[None]:
        self._waiting.append(request)
        if self._task is None:
            self._task = asyncio.get_running_loop().create_task(self._run())
        return request.future

    async def close(self) -> None:
        """Return when everything that was put is settled."""
        while self._task is not None:
            await asyncio.wait([self._task])

    async def _run(self) -> None:
        while self._waiting:
            group = self._waiting[: self._together_max]
            del self._waiting[: self._together_max]
            try:
                await self._carry(group)
            except Exception as why:
                await self._one_by_one(group, why)
        self._task = None

    async def _one_by_one(self, group: Sequence[R], why: Exception) -> None:
        # Errors of the store concern every request; errors of one request only that one.
        alone = len(group) == 1 or isinstance(why, OperatorError)
        for request in group:
            if request.settled:
                continue
            if alone:
                request.refuse(why)
                continue
            try:
                await self._carry([request])
            except Exception as its_own:
                request.refuse(its_own)


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
        with limited(self._connection, STATEMENT_S_MAX):
            await cursor.execute(statement, values, prepare=True)
            return await cursor.fetchall()
