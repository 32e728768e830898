"""Row notifications: rows written by one process are noticed by the others.

    group committed ─▶ gathered briefly ─▶ one NOTIFY ─▶ LISTEN, one connection per process ─▶ followers
                                              every second: the last seq of followed executions ─┘

A notification is only a hint and may get lost; the poll every second makes delivery certain. A standby server does not
support LISTEN, so there only the poll works. Neither uses sequence numbers of the server, because rows become visible
in another order.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Mapping, Sequence
from typing import Final
from uuid import uuid4

import psycopg
from psycopg import sql

from pointsman.errors import PointsmanError
from pointsman.store.coordination import Followers, Listener
from pointsman.store.postgres.connections import Connection, Connections
from pointsman.values import ExecutionId

GATHER_S: Final = 0.05
LOOK_S: Final = 1.0
PAYLOAD_BYTES_MAX: Final = 7000
"""A notification holds 8000 bytes; a longer list is replaced by the hint that much has changed."""
CHANNEL: Final = "'pointsman_' || md5(current_schema())"
LASTS: Final = """
    SELECT e.id, (SELECT max(seq) FROM rows WHERE execution = e.no) FROM executions AS e WHERE e.id = ANY(%s)
"""


class RowNotifications:
    """Sends and receives notifications of rows, for one opened store."""

    def __init__(self, connections: Connections) -> None:
        self._connections = connections
        self._followers = Followers()
        self._own = uuid4().hex
        self._news: dict[ExecutionId, None] = {}
        self._telling: asyncio.Task[None] | None = None
        self._listening: asyncio.Task[None] | None = None

    def wrote(self, executions: Sequence[ExecutionId]) -> None:
        """Announce executions that got rows in this process."""
        self._followers.tell(executions)
        self._news.update(dict.fromkeys(executions))
        if self._telling is None:
            self._telling = asyncio.get_running_loop().create_task(self._tell())

    def follow(self, execution: ExecutionId, told: Listener) -> Callable[[], None]:
        self._connections.check_open()
        leave = self._followers.add(execution, told)
        if self._listening is None:
            self._listening = asyncio.get_running_loop().create_task(self._listen())
        return leave

    async def ends(self, executions: Sequence[ExecutionId]) -> Mapping[ExecutionId, int]:
        """Return the last seq of each execution that has rows."""

        async def work(connection: Connection) -> Mapping[ExecutionId, int]:
            cursor = await connection.execute(LASTS, (list(executions),))
            return {execution: last for execution, last in await cursor.fetchall() if last}

        return await self._connections.read(work)

    async def close(self) -> None:
        tasks = [task for task in (self._telling, self._listening) if task is not None]
        for task in tasks:
            task.cancel()
        if tasks:
            await asyncio.wait(tasks)
        if self._news:
            await self._notify()

    async def _tell(self) -> None:
        try:
            while self._news:
                await self._notify()
                await asyncio.sleep(GATHER_S)
        finally:
            self._telling = None

    async def _notify(self) -> None:
        news, self._news = " ".join(self._news), {}
        payload = f"{self._own} {news}" if len(news.encode()) <= PAYLOAD_BYTES_MAX else self._own

        async def work(connection: Connection) -> None:
            await connection.execute(f"SELECT pg_notify({CHANNEL}, %s)", (payload,))

        try:
            await self._connections.read(work)
        except PointsmanError:
            # The other processes poll in any case.
            return

    async def _listen(self) -> None:
        """Listen while anything is followed; reconnect after a broken connection."""
        try:
            while self._followers.executions:
                try:
                    connection = await self._connections.open()
                    async with connection:
                        await self._hear(connection)
                except psycopg.Error:
                    await asyncio.sleep(LOOK_S)
        finally:
            self._listening = None

    async def _hear(self, connection: Connection) -> None:
        (channel,) = await (await connection.execute(f"SELECT {CHANNEL}")).fetchone() or ("",)
        hears = True
        try:
            await connection.execute(sql.SQL("LISTEN {}").format(sql.Identifier(channel)))
        except psycopg.errors.ReadOnlySqlTransaction:
            hears = False  # The server is a standby.
        while executions := self._followers.executions:
            cursor = await connection.execute(LASTS, (executions,))
            self._followers.saw({execution: last for execution, last in await cursor.fetchall() if last})
            if not hears:
                await asyncio.sleep(LOOK_S)
                continue
            async for notice in connection.notifies(timeout=LOOK_S):
                self._heard(notice.payload)

    def _heard(self, payload: str) -> None:
        own, *executions = payload.split(" ")
        if own != self._own:
            self._followers.tell(map(ExecutionId, executions) if executions else self._followers.executions)
