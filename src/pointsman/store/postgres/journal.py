"""The journal in PostgreSQL: read page by page, written by the appender."""

from __future__ import annotations

from collections.abc import AsyncIterator, Sequence
from functools import partial
from typing import Final

from pointsman.engine.events.steps import Event
from pointsman.ports import Row
from pointsman.store.codec import Codec
from pointsman.store.compression import Form, blobs_behind, unpack
from pointsman.store.postgres.appender import Appender, AppendRequest
from pointsman.store.postgres.connections import Connection, Connections
from pointsman.store.postgres.database import LAST
from pointsman.store.records import Summary
from pointsman.store.row_encoding import encoded_row
from pointsman.store.sql.work import Database, opened
from pointsman.values import ExecutionId

PAGE_ROWS: Final = 1000
PAGE_BYTES: Final = 4 * 1024 * 1024
"""Bytes held in memory by one step of reading, packed; a single larger row is read alone."""
PAGE: Final = """
    SELECT seq, at, shape, form, data FROM (
        SELECT seq, at, shape, form, data, sum(octet_length(data)) OVER (ORDER BY seq) - octet_length(data) AS before
        FROM (
            SELECT * FROM rows WHERE execution = (SELECT no FROM executions WHERE id = %b) AND seq > %b::int4
            ORDER BY seq LIMIT %b::int4
        ) AS near
    ) AS sized WHERE before < %b::int8 ORDER BY seq
"""
SEQ_MAX: Final = 2**31 - 1


class PostgresJournal:
    """Encodes rows in the calling task, so that the caller gets the error of a bad value at once."""

    def __init__(self, connections: Connections, database: Database, appender: Appender, codec: Codec[Event]) -> None:
        self._connections = connections
        self._database = database
        self._appender = appender
        self._codec = codec

    async def append(self, execution: ExecutionId, row: Row, *, summary: Summary | None = None) -> None:
        await self._appender.append(AppendRequest(execution, [encoded_row(row, self._codec)], summary))

    async def extend(self, execution: ExecutionId, rows: Sequence[Row], *, summary: Summary | None = None) -> None:
        await self._appender.append(AppendRequest(execution, [encoded_row(row, self._codec) for row in rows], summary))

    async def read(self, execution: ExecutionId, *, after: int = 0) -> AsyncIterator[Row]:
        while page := await self._page(execution, after):
            for seq, at, shape, form, data in page:
                after = seq
                plain = data if form == Form.PLAIN else await self._plain(form, data)
                content = self._codec.decode(plain, shape)
                yield Row(seq, at, content.events, content.cause)

    async def last(self, execution: ExecutionId) -> int:
        async def query(connection: Connection) -> int:
            found = await (await connection.execute(LAST, (execution,))).fetchone()
            assert found is not None, "an aggregate always has a row"
            return found[0]

        return await self._connections.read(query)

    async def _page(self, execution: ExecutionId, after: int) -> list[tuple[int, float, int, int, bytes]]:
        async def query(connection: Connection) -> list[tuple[int, float, int, int, bytes]]:
            cursor = connection.cursor(binary=True)
            await cursor.execute(PAGE, (execution, min(after, SEQ_MAX), PAGE_ROWS, PAGE_BYTES))
            return [*await cursor.fetchall()]

        return await self._connections.read(query)

    async def _plain(self, form: int, data: bytes) -> bytes:
        if not blobs_behind(form, data):
            return unpack(form, data, lambda _: b"")
        return await self._database.read(partial(opened, form, data))
