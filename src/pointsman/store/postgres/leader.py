"""Leader of a PostgreSQL store: a session-level advisory lock, and the epoch in a row.

    locked ─▶ epoch raised ─▶ watching the session ── it broke ─▶ locked again, epoch unchanged? ─ yes ─▶ continues
                                                                              └─ no ─▶ superseded

The leader queries its session every two seconds, which the server records (`pg_stat_activity`). When these queries
stop, the process was stopped or is cut off, and the standby terminates all its sessions. The server releases the lock
with the session. A leader that lost its session remains leader until another process raises the epoch; after that it
writes nothing, because every write locks that row.
"""

from __future__ import annotations

import asyncio
from typing import Final, LiteralString

import psycopg

from pointsman.store.coordination import Leadership, Lease, leader_exists
from pointsman.store.postgres.connections import Connection, Connections, fault, is_crowded, is_lost
from pointsman.store.postgres.schema import LOCK

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
KEEP_ALIVE: Final = """
    SELECT set_config('tcp_keepalives_idle', '10', false), set_config('tcp_keepalives_interval', '5', false),
        set_config('tcp_keepalives_count', '3', false)
"""
"""The server detects within 25 s that the machine of a session is gone, and releases its lock."""
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

    async def keep(self, holder: str, *, wait: bool) -> Leadership:
        session, epoch = await self._taken(holder, wait=wait)
        keep = Leadership(holder, epoch, self.close)
        fence = self._connections.fence
        fence.epoch, fence.told = epoch, keep.lost.set
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
        epoch, fence.epoch = fence.epoch, None
        if session is None:
            return
        try:
            await session.execute(LEAVE, (epoch,))
        except psycopg.Error:
            # The session and its lock are already gone: there is no role to step back from.
            return
        finally:
            await session.close()

    async def _taken(self, holder: str, *, wait: bool) -> tuple[Connection, int]:
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
    """Acquire the lock and begin an epoch."""
    await session.execute(KEEP_ALIVE)
    lease = Lease(asyncio.get_running_loop().time)
    while not await is_locked(session):
        if not wait:
            _, known, since = await one_row(session, FIND)
            raise leader_exists(str(known), float(str(since)))
        found = await (await session.execute(HOLDER, (LOCK,))).fetchone()
        # Only a server that shows us the session (same role, or `pg_read_all_stats`) allows to judge whether it works.
        if found is not None and found[1] is not None and lease.is_over(found[:2]):
            await session.execute(END_SESSIONS, (found[0], found[2]))
        await asyncio.sleep(STANDBY_S)
    return int(str((await one_row(session, RAISE, holder))[0]))


async def is_locked(session: Connection) -> bool:
    return (await one_row(session, TRY_LOCK, LOCK))[0] is True


async def one_row(session: Connection, statement: LiteralString, *values: object) -> tuple[object, ...]:
    found = await (await session.execute(statement, values)).fetchone()
    assert found is not None, "each of these statements has one row"
    return found
