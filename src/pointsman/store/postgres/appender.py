"""Append rows to journals: a group of rows is one statement, one round trip and one commit.

    requested rows ─▶ chained to the last known ones ─▶ INSERT … ON CONFLICT DO NOTHING RETURNING ─▶ result per row

A row that is not returned existed already: another process was faster (`JournalMoved`), or this very row was committed
by a statement whose answer got lost. Its hash distinguishes the two.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Final, TypeAlias

import psycopg
from msgspec.structs import replace

from pointsman.store.chain import Head, Heads, first_hash, moved
from pointsman.store.postgres.append_statement import Place, RowGroup, statement_for
from pointsman.store.postgres.blobs import RecentBlobs
from pointsman.store.postgres.connections import Connection, Connections
from pointsman.store.postgres.statement_sender import StatementSender
from pointsman.store.postgres.write_batcher import BatchedRequest, WriteBatcher
from pointsman.store.records import Summary
from pointsman.store.row_encoding import EncodedRow
from pointsman.values import ExecutionId

TOGETHER_MAX: Final = 500
"""Maximum requests in one statement: limits the duration of one commit."""
HEADS: Final = """
    SELECT e.id, e.no, r.seq, r.hash FROM executions AS e
    CROSS JOIN LATERAL (SELECT seq, hash FROM rows WHERE execution = e.no ORDER BY seq DESC LIMIT 1) AS r
    WHERE e.id = ANY(%b::text[])
"""
STORED: Final = """
    SELECT g.id, g.seq, r.hash FROM unnest(%b::text[], %b::int4[]) AS g (id, seq)
    JOIN executions AS e USING (id) JOIN rows AS r ON r.execution = e.no AND r.seq = g.seq
"""
Wrote: TypeAlias = Callable[[Sequence[ExecutionId]], None]


class PartialAppend(Exception):
    """Only later rows of an execution would have been written; nothing was written."""


class AppendRequest(BatchedRequest):
    """Encoded rows of one execution that are added together."""

    __slots__ = ("execution", "rows", "summary")

    def __init__(self, execution: ExecutionId, rows: Sequence[EncodedRow], summary: Summary | None) -> None:
        super().__init__()
        self.execution = execution
        self.rows = rows
        self.summary = summary

    def follows(self, seq: int) -> bool:
        """Return whether the rows continue a journal that ends at `seq`."""
        return all(row.seq == seq + number for number, row in enumerate(self.rows, start=1))


class Appender:
    """The writer of journal rows of this process."""

    def __init__(self, connections: Connections, kept: RecentBlobs, wrote: Wrote) -> None:
        """`wrote` is called with the executions whose rows were committed."""
        self._connections = connections
        self._fence = connections.fence
        self._sender = StatementSender(connections)
        self._kept = kept
        self._wrote = wrote
        self._heads = Heads()
        self._lane = WriteBatcher(self._carry, together_max=TOGETHER_MAX)

    async def append(self, asked: AppendRequest) -> None:
        self._connections.check_open()
        self._fence.check()
        await self._lane.put(asked)

    def forget(self, execution: ExecutionId) -> None:
        """Forget the cached end of a journal, because it has changed."""
        self._heads.pop(execution, None)

    async def close(self) -> None:
        await self._lane.close()
        await self._sender.close()

    async def _carry(self, requests: Sequence[AppendRequest]) -> None:
        await self._look_up(requests)
        group = RowGroup()
        taken: list[AppendRequest] = []
        for asked in requests:
            execution = asked.execution
            head = group.heads.get(execution) or self._heads.get(execution) or Head(0, first_hash(execution))
            if asked.follows(head.seq):
                group.add(execution, asked.rows, head, asked.summary)
                taken.append(asked)
            else:
                asked.refuse(moved(execution, asked.rows[0].seq, head.seq))
        if taken:
            await self._write(group, taken)

    async def _look_up(self, requests: Sequence[AppendRequest]) -> None:
        """Read the ends of journals that are unknown or do not precede these rows.

        A first row needs no lookup: if the journal is not empty, the row is not returned.
        """
        wanted: dict[ExecutionId, None] = {}
        ends: dict[ExecutionId, int] = {}
        for asked in requests:
            known = self._heads.get(asked.execution)
            end = ends.get(asked.execution, known.seq if known else 0)
            if asked.rows[0].seq != end + 1:
                wanted[asked.execution] = None
            ends[asked.execution] = asked.rows[-1].seq
        if wanted:
            found = await self._connections.read(lambda connection: read_heads(connection, [*wanted]))
            for execution in wanted:
                self._heads.pop(execution, None)
            for execution, head in found.items():
                self._heads.keep(execution, head)

    async def _write(self, group: RowGroup, taken: Sequence[AppendRequest]) -> None:
        try:
            sent = await self._sender.send(*statement_for(group, self._fence.epoch, self._kept))
        except BaseException as why:
            for execution in group.heads:
                self.forget(execution)
            if not isinstance(why.__cause__, psycopg.errors.DivisionByZero):
                raise
            if len(taken) > 1:
                raise PartialAppend from why
            # It was alone and still not complete: another process wrote its first row.
            raise moved(taken[0].execution, taken[0].rows[0].seq, None) from why
        numbers = {head.no: execution for execution, head in group.heads.items()}
        numbers.update((no, execution) for no, _, execution in sent.rows if execution is not None)
        begun = {execution: no for no, _, execution in sent.rows if execution is not None}
        written: set[Place] = {(numbers[no], seq) for no, seq, _ in sent.rows}
        lost = [row.place for row in group.rows if row.place not in written]
        if lost and sent.again:
            written |= await self._committed_before(group)
        superseded = bool(lost) and self._fence.epoch is not None and not await self._is_leader()
        for asked in taken:
            place = asked.execution, asked.rows[-1].seq
            if place in written:
                asked.done()
            else:
                asked.refuse(self._fence.broken() if superseded else moved(asked.execution, asked.rows[0].seq, None))
        for execution, head in group.heads.items():
            if (execution, head.seq) in written:
                self._heads.keep(execution, replace(head, no=begun.get(execution, head.no)))
            else:
                self.forget(execution)
        self._kept.note(group.blobs)
        self._wrote([*{execution for execution, _ in written}])

    async def _committed_before(self, group: RowGroup) -> set[Place]:
        """Return the rows that exist exactly as this process would have written them."""
        stored = await self._connections.read(
            lambda connection: read_hashes(connection, [row.place for row in group.rows])
        )
        return {row.place for row in group.rows if stored.get(row.place) == row.hash}

    async def _is_leader(self) -> bool:
        async def query(connection: Connection) -> bool:
            cursor = await connection.execute("SELECT 1 FROM leader WHERE epoch = %s", (self._fence.epoch,))
            return await cursor.fetchone() is not None

        return await self._connections.read(query)


async def read_heads(connection: Connection, executions: list[ExecutionId]) -> dict[ExecutionId, Head]:
    """Return the ends of journals; executions without rows are left out."""
    cursor = connection.cursor(binary=True)
    await cursor.execute(HEADS, (executions,))
    return {ExecutionId(execution): Head(seq, hashed, no) for execution, no, seq, hashed in await cursor.fetchall()}


async def read_hashes(connection: Connection, places: Sequence[Place]) -> dict[Place, bytes]:
    cursor = connection.cursor(binary=True)
    await cursor.execute(STORED, ([execution for execution, _ in places], [seq for _, seq in places]))
    return {(execution, seq): hashed for execution, seq, hashed in await cursor.fetchall()}
