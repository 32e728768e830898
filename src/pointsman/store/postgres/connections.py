"""Connections to one database: a few pooled ones, and those that a caller holds.

A connection that broke is dropped, and its work is repeated on another one until the configured patience ends: reads
and writes wait for a server that restarts.
"""

from __future__ import annotations

import asyncio
import secrets
import time
from collections.abc import Awaitable, Callable
from typing import Final, Generic, TypeAlias, TypeVar

import psycopg
from psycopg.conninfo import conninfo_to_dict, make_conninfo
from psycopg.pq import TransactionStatus
from psycopg.rows import TupleRow

from pointsman.store.errors import LeaderSuperseded, StoreClosed
from pointsman.store.leader import superseded
from pointsman.store.postgres.error_mapping import fault, is_crowded, is_lost, is_undone

T = TypeVar("T")
Connection: TypeAlias = psycopg.AsyncConnection[TupleRow]
Work: TypeAlias = Callable[[Connection], Awaitable[T]]

AT_ONCE: Final = 4
"""Connections for reads and for writes other than rows: one long read must not block the others."""
WAIT_S: Final = 0.05
WAIT_S_MAX: Final = 1.0
UNDONE_MAX: Final = 20
FENCE: Final = "SELECT 1 FROM leader WHERE epoch = %s FOR SHARE"


class Fence:
    """The epoch that every write of this opened store checks once it is the leader."""

    def __init__(self) -> None:
        self.epoch: int | None = None
        self._superseded = False
        self.told: Callable[[], None] = lambda: None
        """Called when another process has become the leader."""

    def check(self) -> None:
        if self._superseded:
            raise superseded(self.epoch or 0)

    def broken(self) -> LeaderSuperseded:
        """Record that another process raised the epoch: nothing is written through this opened store any more."""
        if not self._superseded:
            self._superseded = True
            self.told()
        return superseded(self.epoch or 0)


class Patience:
    """Retry policy: how long to retry, with growing pauses."""

    def __init__(self, seconds: float) -> None:
        self._until = time.monotonic() + seconds
        self._wait = WAIT_S
        self._undone = 0

    async def outlasts(self, why: psycopg.Error) -> bool:
        """Return whether to retry after this error; pauses first."""
        if is_undone(why):
            self._undone += 1
            return self._undone <= UNDONE_MAX
        if not (is_lost(why) or is_crowded(why)) or time.monotonic() >= self._until:
            return False
        await asyncio.sleep(self._wait)
        self._wait = min(self._wait * 2, WAIT_S_MAX)
        return True


class Connections:
    """Opens, lends and closes connections. Belongs to one event loop."""

    def __init__(self, conninfo: str, shown: str, *, patience_s: float) -> None:
        self.shown = shown
        self.fence = Fence()
        self.patience_s = patience_s
        # All sessions of this opened store share a name, by which a process that must end them all finds them.
        named = conninfo_to_dict(conninfo).get("application_name") or f"pointsman {secrets.token_hex(8)}"
        self._conninfo = make_conninfo(conninfo, application_name=str(named))
        self._idle: list[Connection] = []
        self._places = asyncio.Semaphore(AT_ONCE)
        self._closed = False

    def check_open(self) -> None:
        if self._closed:
            raise StoreClosed(f"the store {self.shown!r} was closed")

    async def open(self) -> Connection:
        """Open a separate connection in autocommit mode. Raises the driver's errors."""
        return await psycopg.AsyncConnection.connect(self._conninfo, autocommit=True)

    def patience(self) -> Patience:
        return Patience(self.patience_s)

    async def read(self, work: Work[T]) -> T:
        """Run a query; repeat it if the connection breaks."""
        self.check_open()
        patience = self.patience()
        while True:
            try:
                return await self._lent(work)
            except UnicodeEncodeError as why:
                raise fault(why, self.shown) from why
            except psycopg.Error as why:
                if not await patience.outlasts(why):
                    raise fault(why, self.shown) from why

    async def write(self, work: Work[T], *, repeatable: bool = True) -> T:
        """Run a transaction behind the fence.

        If it is unknown whether a transaction that is not `repeatable` was committed, it is not retried:
        `StoreUnreachable` is raised.
        """
        self.check_open()
        self.fence.check()
        patience = self.patience()
        transaction = FencedTransaction(work, self.fence)
        while True:
            try:
                return await self._lent(transaction.run)
            except UnicodeEncodeError as why:
                raise fault(why, self.shown) from why
            except psycopg.Error as why:
                unknown = transaction.began and not repeatable and is_lost(why)
                if unknown or not await patience.outlasts(why):
                    raise fault(why, self.shown) from why

    async def close(self) -> None:
        self._closed = True
        while self._idle:
            await self._idle.pop().close()

    async def _lent(self, work: Work[T]) -> T:
        async with self._places:
            connection = self._idle.pop() if self._idle else await self.open()
            try:
                return await work(connection)
            finally:
                # A connection whose work was cancelled is not idle.
                idle = connection.info.transaction_status == TransactionStatus.IDLE
                if self._closed or connection.closed or not idle:
                    await connection.close()
                else:
                    self._idle.append(connection)


class FencedTransaction(Generic[T]):
    """Work between BEGIN and COMMIT; `began`: whether the server may have executed a part of it."""

    def __init__(self, work: Work[T], fence: Fence) -> None:
        self.began = False
        self._work = work
        self._fence = fence

    async def run(self, connection: Connection) -> T:
        self.began = False
        async with connection.transaction():
            self.began = True
            epoch = self._fence.epoch
            if epoch is not None and await (await connection.execute(FENCE, (epoch,))).fetchone() is None:
                raise self._fence.broken()
            return await self._work(connection)


async def lock(connection: Connection, *names: str) -> None:
    """Wait until no other transaction, of any process, holds the lock of these names; hold it until this one ends."""
    await connection.execute("SELECT pg_advisory_xact_lock(hashtextextended(%s, 0))", (repr(names),))
