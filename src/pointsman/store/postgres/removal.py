"""Deletion in PostgreSQL: an execution in one transaction that blocks no other; then the blobs that only it used.

The place behind its last row stays taken for ever, under its number: a process that still drives the execution, or a
late
report, would append there and is rejected like any writer whose journal has moved.
"""

from __future__ import annotations

from typing import Final, LiteralString

from pointsman.store.chain import Head, moved
from pointsman.store.compression import Form
from pointsman.store.postgres.connections import Connection, Connections
from pointsman.store.postgres.journal import Appender, read_heads
from pointsman.store.records import SweepResult
from pointsman.values import ExecutionId

TAKE_PLACE: Final = """
    INSERT INTO rows (execution, seq, at, shape, form, data, hash) VALUES (%s, %s, 0, 0, %s, '', '')
    ON CONFLICT DO NOTHING
"""
BY_NAME: Final[tuple[LiteralString, ...]] = (
    "DELETE FROM summaries WHERE execution = %s",
    "DELETE FROM effects WHERE execution = %s",
    "DELETE FROM blob_uses WHERE execution = %s",
)
UNUSED: Final = """
    blobs AS b WHERE held_until < extract(epoch FROM clock_timestamp())
        AND NOT EXISTS (SELECT FROM blob_uses WHERE hash = b.hash)
"""
TABLES: Final[tuple[LiteralString, ...]] = ("rows", "blobs", "blob_uses", "effects", "summaries", "messages", "memory")
SIZE: Final = "SELECT sum(pg_total_relation_size(name::regclass))::int8 FROM unnest(%s::text[]) AS t (name)"


class PostgresRemoval:
    """The PostgreSQL implementation of `Removal`."""

    def __init__(self, connections: Connections, appender: Appender) -> None:
        self._connections = connections
        self._forget = appender.forget

    async def remove(self, execution: ExecutionId, *, at: int) -> bool:
        async def work(connection: Connection) -> bool:
            found = await read_heads(connection, [execution])
            head = found.get(execution, Head(0, b""))
            if head.seq != at:
                raise moved(execution, at + 1, head.seq)
            if head.no:
                await take_away(connection, execution, head)
            gone = [(await connection.execute(statement, (execution,))).rowcount for statement in BY_NAME]
            return bool(head.no) or any(gone)

        removed = await self._connections.write(work)
        self._forget(execution)
        await self.sweep()
        return removed

    async def sweep(self, *, dry_run: bool = False) -> SweepResult:
        statement: LiteralString = f"DELETE FROM {UNUSED} RETURNING octet_length(b.data)"
        if dry_run:
            statement = f"SELECT octet_length(b.data) FROM {UNUSED}"

        async def work(connection: Connection) -> SweepResult:
            sizes = [size for (size,) in await (await connection.execute(statement)).fetchall()]
            return SweepResult(blobs=len(sizes), bytes=sum(sizes))

        return await (self._connections.read(work) if dry_run else self._connections.write(work))

    async def compact(self) -> int:
        """Free space at the end of the tables and return its bytes; the server reuses gaps in between."""

        async def work(connection: Connection) -> int:
            before = await size_of(connection)
            await connection.execute(f"VACUUM {', '.join(TABLES)}")
            return max(0, before - await size_of(connection))

        return await self._connections.read(work)


async def take_away(connection: Connection, execution: ExecutionId, head: Head) -> None:
    """Delete the name and the rows of an execution."""
    taken = await connection.execute(TAKE_PLACE, (head.no, head.seq + 1, int(Form.GONE)))
    if taken.rowcount == 0:
        raise moved(execution, head.seq + 1, None)
    await connection.execute("UPDATE executions SET id = '/deleted/' || no WHERE no = %s", (head.no,))
    await connection.execute("DELETE FROM rows WHERE execution = %s AND seq <= %s", (head.no, head.seq))


async def size_of(connection: Connection) -> int:
    """Return the bytes of the growing tables with their indexes."""
    found = await (await connection.execute(SIZE, ([*TABLES],))).fetchone()
    assert found is not None, "an aggregate always has a row"
    return found[0]
