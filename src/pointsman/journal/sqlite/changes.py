"""Rows written by other processes: SQLite tells by a number of each connection whether anybody committed anything."""

from __future__ import annotations

import sqlite3
from collections.abc import Mapping, Sequence
from functools import partial
from typing import Final

from pointsman.journal.following import Polling
from pointsman.journal.sqlite.reader import Reader
from pointsman.journal.sqlite.transaction import read_head
from pointsman.values import ExecutionId

LOOK_S: Final = 0.1


def polling(reader: Reader) -> Polling:
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
    return {execution: read_head(connection, execution).seq for execution in executions}
