"""Rows written by other processes: SQLite tells by a number of each connection whether anybody committed anything."""

from __future__ import annotations

import sqlite3
from collections.abc import Mapping, Sequence
from functools import partial
from typing import Final

from pointsman.store.followers import Polling
from pointsman.store.sqlite.reader import ReaderPool
from pointsman.store.sqlite.transaction import read_head
from pointsman.store.sqlite.writer import WriterThread
from pointsman.values import ExecutionId

LOOK_S: Final = 0.1


class ForeignWrites:
    """Tells what other processes wrote: the connection that writes here does not count its own commits."""

    def __init__(self, writer: WriterThread, reader: ReaderPool) -> None:
        self._writer = writer
        self._reader = reader
        self._version = 0
        self._asked: frozenset[ExecutionId] = frozenset()

    async def ends(self, executions: Sequence[ExecutionId]) -> Mapping[ExecutionId, int]:
        version = self._writer.version_of_others()
        if version is None:
            return {}
        known = self._asked if version == self._version else frozenset[ExecutionId]()
        unsure = [execution for execution in executions if execution not in known]
        found = await self._reader.run(partial(ends_of, executions=unsure))
        self._version, self._asked = version, frozenset(executions)
        return found


def ends_of(connection: sqlite3.Connection, executions: Sequence[ExecutionId]) -> Mapping[ExecutionId, int]:
    return {execution: read_head(connection, execution).seq for execution in executions}


def polling(reader: ReaderPool) -> Polling:
    """Looks into the journals that are followed, when the file has changed."""
    seen: dict[int, tuple[int, int]] = {}

    async def look(executions: Sequence[ExecutionId]) -> Mapping[ExecutionId, int]:
        return await reader.run(partial(changed, seen=seen, executions=executions))

    return Polling(look, LOOK_S)


def changed(
    connection: sqlite3.Connection, seen: dict[int, tuple[int, int]], executions: Sequence[ExecutionId]
) -> Mapping[ExecutionId, int]:
    """The ends of the journals; nothing where neither the file nor what is followed has changed.

    The number means something only beside an older one of the same connection.
    """
    version = connection.execute("PRAGMA data_version").fetchone()[0], hash(tuple(executions))
    if seen.get(id(connection)) == version:
        return {}
    seen[id(connection)] = version
    return ends_of(connection, executions)
