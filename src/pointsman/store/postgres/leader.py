"""Coordination of the processes of a PostgreSQL store. The leader holds an advisory lock and writes its epoch to a row.

    locked ─▶ epoch raised ─▶ watching the session ── it broke ─▶ locked again, epoch unchanged? ─ yes ─▶ continues
                                                                              └─ no ─▶ superseded

The leader queries its session every two seconds, which the server records (`pg_stat_activity`). When these queries
stop, the process was stopped or is cut off, and the standby terminates all its sessions. The server releases the lock
with the session. A leader that lost its session remains leader until another process raises the epoch; after that it
writes nothing, because every write locks that row.

Followers of rows that other processes wrote are woken by notifications (LISTEN, one connection for each process).
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Mapping, Sequence
from typing import Final, LiteralString
from uuid import uuid4

import psycopg
from psycopg import sql

from pointsman.errors import PointsmanError
from pointsman.store.coordination import Followers, Leadership, Lease, Listener, leader_exists
from pointsman.store.postgres.connections import (
    STATEMENT_S_MAX,
    Connection,
    Connections,
    fault,
    is_crowded,
    is_lost,
    limited,
)
from pointsman.store.postgres.schema import LOCK
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
        self._announcing: asyncio.Task[None] | None = None
        self._listening: asyncio.Task[None] | None = None

    def wrote(self, executions: Sequence[ExecutionId]) -> None:
        """Announce executions that got rows in this process."""
        self._followers.tell(executions)
        self._news.update(dict.fromkeys(executions))
        if self._announcing is None:
            self._announcing = asyncio.get_running_loop().create_task(self._announce())

    def follow(self, execution: ExecutionId, listener: Listener) -> Callable[[], None]:
        self._connections.check_open()
        leave = self._followers.add(execution, listener)
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
        tasks = [task for task in (self._announcing, self._listening) if task is not None]
        for task in tasks:
            task.cancel()
        if tasks:
            await asyncio.wait(tasks)
        if self._news:
            await self._notify()

    async def _announce(self) -> None:
        try:
            while self._news:
                await self._notify()
                await asyncio.sleep(GATHER_S)
        finally:
            self._announcing = None

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
        (channel,) = await one_row(connection, f"SELECT {CHANNEL}")
        connected = True
        try:
            with limited(connection, STATEMENT_S_MAX):
                await connection.execute(sql.SQL("LISTEN {}").format(sql.Identifier(str(channel))))
        except psycopg.errors.ReadOnlySqlTransaction:
            connected = False  # The server is a standby.
        while executions := self._followers.executions:
            with limited(connection, STATEMENT_S_MAX):
                lasts = await (await connection.execute(LASTS, (executions,))).fetchall()
            self._followers.saw({execution: last for execution, last in lasts if last})
            if not connected:
                await asyncio.sleep(LOOK_S)
                continue
            async for notice in connection.notifies(timeout=LOOK_S):
                self._on_notice(notice.payload)

    def _on_notice(self, payload: str) -> None:
        own, *executions = payload.split(" ")
        if own != self._own:
            self._followers.tell(map(ExecutionId, executions) if executions else self._followers.executions)


STANDBY_S: Final = 0.5
"""How often a standby checks whether the leader is gone."""
WATCH_S: Final = 2.0
HOLDER: Final = """
    SELECT a.pid, a.state_change, a.application_name
    FROM pg_locks AS l JOIN pg_stat_activity AS a ON a.pid = l.pid
    WHERE l.locktype = 'advisory' AND l.granted AND l.objsubid = 2
        AND l.database = (SELECT oid FROM pg_database WHERE datname = current_database())
        AND l.classid::bigint = (%s::bigint & 4294967295)
        AND l.objid::bigint = (hashtext(current_schema())::bigint & 4294967295)
"""
END_SESSIONS: Final = """
    SELECT count(pg_terminate_backend(pid)) FROM pg_stat_activity
    WHERE pid = %s OR (application_name = %s AND starts_with(application_name, 'pointsman ')
        AND datname = current_database() AND usename = current_user)
"""
TRY_LOCK: Final = "SELECT pg_try_advisory_lock(%s, hashtext(current_schema()))"
FIND: Final = "SELECT epoch, holder, since FROM leader"
RAISE: Final = """
    UPDATE leader SET epoch = epoch + 1, holder = %s, since = extract(epoch FROM clock_timestamp()) RETURNING epoch
"""
LEAVE: Final = "UPDATE leader SET holder = '' WHERE epoch = %s"


class PostgresLeader:
    """The leader role of one opened store."""

    def __init__(self, connections: Connections) -> None:
        self._connections = connections
        self._session: Connection | None = None
        self._watching: asyncio.Task[None] | None = None

    async def lead(self, holder: str, *, wait: bool) -> Leadership:
        session, epoch = await self._acquire(holder, wait=wait)
        keep = Leadership(holder, epoch, self.close)
        fence = self._connections.fence
        fence.epoch, fence.on_loss = epoch, keep.lost.set
        self._session = session
        self._watching = asyncio.get_running_loop().create_task(self._watch(epoch))
        return keep

    async def close(self) -> None:
        """Step back: the lock is released with its session."""
        if self._watching is None:
            return
        self._watching.cancel()
        await asyncio.wait([self._watching])
        self._watching = None
        session, self._session = self._session, None
        fence = self._connections.fence
        epoch = fence.epoch
        fence.step_down()
        if session is None:
            return
        try:
            await session.execute(LEAVE, (epoch,))
        except psycopg.Error:
            # The session and its lock are already gone: there is no role to step back from.
            return
        finally:
            await session.close()

    async def _acquire(self, holder: str, *, wait: bool) -> tuple[Connection, int]:
        """Return a session that holds the lock, and the epoch it has begun."""
        while True:
            try:
                session = await self._connections.open()
                try:
                    return session, await take(session, holder, wait=wait)
                except BaseException:
                    await session.close()
                    raise
            except psycopg.Error as why:
                # A standby outlasts a restart of the server.
                if not wait or not (is_lost(why) or is_crowded(why)):
                    raise fault(why, self._connections.shown) from why
            await asyncio.sleep(STANDBY_S)

    async def _watch(self, epoch: int) -> None:
        """Detect a broken session and regain the lock; end when another process is the leader."""
        while True:
            try:
                if self._session is None:
                    self._session = await self._connections.open()
                if (await one_row(self._session, FIND))[0] != epoch:
                    self._connections.fence.broken()
                    return
                # Locking again counts a second time in the server; the end of the session releases both.
                await is_locked(self._session)
                await asyncio.sleep(WATCH_S)
            except psycopg.Error:
                # Whatever the error, nothing is written here while it lasts. Try again.
                if self._session is not None:
                    await self._session.close()
                    self._session = None
                await asyncio.sleep(STANDBY_S)


async def take(session: Connection, holder: str, *, wait: bool) -> int:
    """Acquire the lock and begin an epoch. The server detects within 14 s that the machine of a session is gone
    (`LIMITS`), and releases its lock."""
    lease = Lease(asyncio.get_running_loop().time)
    while not await is_locked(session):
        if not wait:
            _, epoch, since = await one_row(session, FIND)
            raise leader_exists(str(epoch), float(str(since)))
        with limited(session, STATEMENT_S_MAX):
            row = await (await session.execute(HOLDER, (LOCK,))).fetchone()
        # Only a server that shows us the session (same role, or `pg_read_all_stats`) allows to judge whether it works.
        if row is not None and row[1] is not None and lease.is_over(row[:2]):
            await one_row(session, END_SESSIONS, row[0], row[2])
        await asyncio.sleep(STANDBY_S)
    return int(str((await one_row(session, RAISE, holder))[0]))


async def is_locked(session: Connection) -> bool:
    return (await one_row(session, TRY_LOCK, LOCK))[0] is True


async def one_row(session: Connection, statement: LiteralString, *values: object) -> tuple[object, ...]:
    with limited(session, STATEMENT_S_MAX):
        row = await (await session.execute(statement, values)).fetchone()
    assert row is not None, "each of these statements has one row"
    return row
