"""A store in one SQLite file: one thread writes, others read, every acknowledged row is on the disk."""

from __future__ import annotations

import asyncio
import shutil
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path

from pointsman.engine.events.steps import Event
from pointsman.store.codec import UPCASTERS, Codec
from pointsman.store.coordination import Leadership, Listener
from pointsman.store.sql.executions import SqlExecutions, SqlUsage
from pointsman.store.sql.memories import SqlMemories, SqlVectors
from pointsman.store.sql.tables import SqlConfigStore, SqlEffects, SqlSessions, SqlWorkflows
from pointsman.store.sqlite.connection import (
    ReaderPool,
    can_be_written,
    explained,
    path_of,
    read_only_at,
    version_warnings,
)
from pointsman.store.sqlite.database import SqliteBlobs, SqliteDatabase
from pointsman.store.sqlite.journal import ForeignWrites, SqliteJournal, SqliteRemoval, polling
from pointsman.store.sqlite.leader import SqliteLeader
from pointsman.store.sqlite.transfer import SqliteTransfer, find_damage
from pointsman.store.sqlite.writer import WriterThread
from pointsman.values import ExecutionId


class SqliteStore:
    """Opening blocks for some milliseconds (the file is created or migrated): see `open_sqlite`."""

    def __init__(self, path: Path) -> None:
        with explained(path):
            self._read_only = read_only_at(path)
        self._path = path
        self._writer = WriterThread(path, self._read_only)
        self._reader = ReaderPool(path, self._read_only)
        parts = (self._writer, self._reader)
        self.journal = SqliteJournal(*parts, Codec[Event](Event, UPCASTERS))
        database = SqliteDatabase(*parts)
        self.executions = SqlExecutions(database)
        self.workflows = SqlWorkflows(database)
        self.memory = SqlMemories(database)
        self.vectors = SqlVectors(database)
        self.sessions = SqlSessions(database)
        self.effects = SqlEffects(database)
        self.entries = SqlConfigStore(database)
        self.usage = SqlUsage(database)
        self.blobs = SqliteBlobs(*parts)
        self.removal = SqliteRemoval(*parts)
        self.copying = SqliteTransfer(path, self._read_only)
        self._changes = polling(self._reader)
        self._others = ForeignWrites(self._writer, self._reader)
        self._leader = SqliteLeader(path, *parts)

    async def lead(self, holder: str, *, wait: bool = False) -> Leadership:
        self._writer.check_writable()
        return await self._leader.lead(holder, wait=wait)

    def follow(self, execution: ExecutionId, listener: Listener) -> Callable[[], None]:
        return self._changes.follow(execution, listener)

    @property
    def claims(self) -> None:
        return None

    @property
    def shared(self) -> bool:
        return True

    @property
    def read_only(self) -> bool:
        return self._read_only is not None

    async def is_writable(self) -> bool:
        return not self.read_only and can_be_written(self._path)

    async def ends(self, executions: Sequence[ExecutionId]) -> Mapping[ExecutionId, int]:
        return await self._others.ends(executions)

    async def verify(self) -> list[str]:
        return await self._reader.run(find_damage)

    def warnings(self) -> list[str]:
        return version_warnings()

    async def close(self) -> None:
        await self._changes.close()
        await self._leader.stop()
        await asyncio.to_thread(self._close)

    def _close(self) -> None:
        # The writer last: the last connection to close folds the log into the file.
        self._reader.close()
        self._writer.close()
        self._leader.close()
        if self._read_only is not None and self._read_only.copy is not None:
            shutil.rmtree(self._read_only.copy, ignore_errors=True)


async def open_sqlite(url: str) -> SqliteStore:
    """Open the store in the file of `sqlite:///path`; create the file if missing, in an existing directory."""
    return await asyncio.to_thread(SqliteStore, path_of(url))
