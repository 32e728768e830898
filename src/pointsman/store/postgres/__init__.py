"""A store on a PostgreSQL server: for several processes and machines, with one leader and standbys."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Mapping, Sequence

from pointsman.engine.events.steps import Event
from pointsman.platforms import need_posix
from pointsman.store.codec import UPCASTERS, Codec
from pointsman.store.coordination import Claims, Leadership, Listener
from pointsman.store.postgres.blobs import PostgresBlobs, PostgresEffects, RecentBlobs
from pointsman.store.postgres.claims import PostgresClaims
from pointsman.store.postgres.connections import Connection, Connections, address_of
from pointsman.store.postgres.database import PostgresDatabase
from pointsman.store.postgres.journal import Appender, PostgresJournal, PostgresRemoval
from pointsman.store.postgres.leader import PostgresLeader, RowNotifications
from pointsman.store.postgres.schema import READ_ONLY, prepare
from pointsman.store.postgres.transfer import PostgresTransfer
from pointsman.store.sql.executions import SqlExecutions, SqlUsage
from pointsman.store.sql.memories import SqlMemories, SqlVectors
from pointsman.store.sql.tables import SqlConfigStore, SqlSessions, SqlWorkflows
from pointsman.values import ExecutionId


class PostgresStore:
    """Belongs to the event loop on which it was opened: see `open_postgres`."""

    def __init__(
        self, connections: Connections, copying: PostgresTransfer, warnings: list[str], *, read_only: bool
    ) -> None:
        self._read_only = read_only
        self._connections = connections
        self._warnings = warnings
        blobs = RecentBlobs()
        self._changes = RowNotifications(connections)
        self._claims = PostgresClaims(connections)
        self._appender = Appender(connections, blobs, self._changes.wrote, self._claims)
        database = PostgresDatabase(connections, self._claims.token)
        self.journal = PostgresJournal(connections, database, self._appender, Codec[Event](Event, UPCASTERS))
        self.executions = SqlExecutions(database)
        self.workflows = SqlWorkflows(database)
        self.memory = SqlMemories(database)
        self.vectors = SqlVectors(database)
        self.sessions = SqlSessions(database)
        self.entries = SqlConfigStore(database)
        self.usage = SqlUsage(database)
        self.blobs = PostgresBlobs(connections, database, blobs)
        self.effects = PostgresEffects(connections, database, self.blobs, self._claims)
        self.removal = PostgresRemoval(connections, self._appender)
        self.copying = copying
        self._leader = PostgresLeader(connections)

    async def lead(self, holder: str, *, wait: bool = False) -> Leadership:
        return await self._leader.lead(holder, wait=wait)

    def follow(self, execution: ExecutionId, listener: Listener) -> Callable[[], None]:
        return self._changes.follow(execution, listener)

    @property
    def claims(self) -> Claims | None:
        return None if self._read_only else self._claims  # Nothing is driven in a read-only store.

    @property
    def shared(self) -> bool:
        return True

    @property
    def read_only(self) -> bool:
        return self._read_only

    async def is_writable(self) -> bool:
        async def work(connection: Connection) -> bool:
            row = await (await connection.execute(READ_ONLY)).fetchone()
            return row != (True,)

        return await self._connections.read(work)

    async def ends(self, executions: Sequence[ExecutionId]) -> Mapping[ExecutionId, int]:
        return await self._changes.ends(executions)

    async def verify(self) -> list[str]:
        self._connections.check_open()
        return await asyncio.to_thread(self.copying.verify)

    def warnings(self) -> list[str]:
        return [*self._warnings]

    async def close(self) -> None:
        await self._appender.close()
        await self.effects.close()
        await self._claims.close()
        await self._changes.close()
        await self._leader.close()
        await self._connections.close()


async def open_postgres(url: str) -> PostgresStore:
    """Open the store at `postgresql://…`; create its tables if the schema is empty.

    Raises `PlatformUnsupported` on Windows: its default event loop has no support for the sockets of `libpq`."""
    need_posix("A store in PostgreSQL")
    address = address_of(url)
    conninfo, read_only, warnings = await prepare(address)
    connections = Connections(conninfo, address.shown, patience_s=address.patience_s)
    return PostgresStore(connections, PostgresTransfer(conninfo, address.shown), warnings, read_only=read_only)
