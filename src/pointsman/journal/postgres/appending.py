"""Adding rows to journals: a group of them is one statement, which is one round trip and one commit.

    rows asked for ─▶ chained to the last ones known ─▶ INSERT … ON CONFLICT DO NOTHING RETURNING ─▶ told, row by row

A row that did not come back was there already: another process was faster (`JournalMoved`), or this very row was
committed by a statement whose answer got lost. Its hash tells.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import cache
from typing import Final, LiteralString, NamedTuple

import psycopg

from pointsman.journal.chain import Head, Heads, first_hash, moved, row_hash
from pointsman.journal.codec import Form, pack
from pointsman.journal.postgres.connections import Connection, Connections
from pointsman.journal.postgres.contents import shrunk
from pointsman.journal.postgres.lane import Lane, Request
from pointsman.journal.postgres.sending import FENCE, Sender
from pointsman.journal.postgres.summaries import COLUMNS, REPLACED, TYPES, values_of
from pointsman.journal.records import Summary
from pointsman.values import ExecutionId

TOGETHER_MAX: Final = 1000
HEADS: Final = """
    SELECT e.execution, r.seq, r.hash FROM unnest(%b::text[]) AS e (execution)
    CROSS JOIN LATERAL (SELECT seq, hash FROM rows WHERE execution = e.execution ORDER BY seq DESC LIMIT 1) AS r
"""
STORED: Final = """
    SELECT execution, seq, hash FROM rows JOIN unnest(%b::text[], %b::int4[]) AS g (execution, seq)
    USING (execution, seq)
"""


class Torn(Exception):
    """Of several rows of one execution only later ones would have been written: nothing was."""


class Asked(Request):
    """A row that is to be added, encoded."""

    __slots__ = ("at", "execution", "plain", "seq", "shape", "summary")

    def __init__(
        self, execution: ExecutionId, seq: int, at: float, shape: int, plain: bytes, summary: Summary | None
    ) -> None:
        super().__init__()
        self.execution = execution
        self.seq = seq
        self.at = at
        self.shape = shape
        self.plain = plain
        self.summary = summary


class Chained(NamedTuple):
    """A row as it will lie in the table."""

    execution: ExecutionId
    seq: int
    at: float
    shape: int
    form: int
    data: bytes
    hash: bytes


class Group:
    """What goes into one statement."""

    def __init__(self) -> None:
        self.asked: dict[tuple[ExecutionId, int], Asked] = {}
        self.rows: list[Chained] = []
        self.heads: dict[ExecutionId, Head] = {}
        """The ends of the journals, once the group is written."""
        self.firsts: dict[ExecutionId, int] = {}
        self.blobs: dict[bytes, bytes] = {}
        self.summaries: dict[ExecutionId, Summary] = {}

    def add(self, asked: Asked, head: Head) -> None:
        """Chain a row to the end of its journal."""
        packed = pack(asked.plain)
        if packed.form is Form.BLOB:
            self.blobs[packed.data] = packed.content
        form = int(packed.form)
        chained = row_hash(head.hash, asked.seq, asked.at, asked.shape, form, packed.data)
        row = Chained(asked.execution, asked.seq, asked.at, asked.shape, form, packed.data, chained)
        self.rows.append(row)
        self.asked[asked.execution, asked.seq] = asked
        self.firsts.setdefault(asked.execution, asked.seq)
        self.heads[asked.execution] = Head(asked.seq, chained)
        if asked.summary is not None:
            self.summaries[asked.execution] = asked.summary

    @property
    def in_runs(self) -> bool:
        """Some execution has several rows in it."""
        return len(self.firsts) < len(self.rows)


class Appender:
    """The one who adds rows for this process."""

    def __init__(self, connections: Connections, wrote: Callable[[Sequence[ExecutionId]], None]) -> None:
        """`wrote` hears which executions got rows, once they are committed."""
        self._connections = connections
        self._fence = connections.fence
        self._sender = Sender(connections)
        self._wrote = wrote
        self._heads = Heads()
        self._lane = Lane(self._carry, together_max=TOGETHER_MAX)

    async def append(self, asked: Asked) -> None:
        self._connections.check_open()
        self._fence.check()
        await self._lane.put(asked)

    async def close(self) -> None:
        await self._lane.close()
        await self._sender.close()

    async def _carry(self, requests: Sequence[Asked]) -> None:
        await self._look_up(requests)
        group = Group()
        for asked in requests:
            head = group.heads.get(asked.execution) or self._heads.get(asked.execution)
            if head is None:
                head = Head(0, first_hash(asked.execution))
            if head.seq + 1 == asked.seq:
                group.add(asked, head)
            else:
                asked.refuse(moved(asked.execution, asked.seq, head.seq))
        if group.rows:
            await self._write(group)

    async def _look_up(self, requests: Sequence[Asked]) -> None:
        """Find the ends of journals that are unknown, or not where these rows would follow. A first row needs none:
        if it is not the first one, it will not come back."""
        wanted: dict[ExecutionId, None] = {}
        ends: dict[ExecutionId, int] = {}
        for asked in requests:
            known = self._heads.get(asked.execution)
            end = ends.get(asked.execution, known.seq if known else 0)
            if asked.seq != end + 1:
                wanted[asked.execution] = None
            ends[asked.execution] = asked.seq
        if wanted:
            found = await self._connections.read(lambda connection: read_heads(connection, [*wanted]))
            for execution in wanted:
                self._heads.pop(execution, None)
            for execution, head in found.items():
                self._heads.keep(execution, head)

    async def _write(self, group: Group) -> None:
        try:
            sent = await self._sender.send(*statement_for(group, self._fence.epoch))
        except BaseException as why:
            self._forget(group)
            if isinstance(why.__cause__, psycopg.errors.DivisionByZero):
                raise Torn from why
            raise
        written = {(execution, seq) for execution, seq in sent.rows}
        missing = [row for row in group.rows if (row.execution, row.seq) not in written]
        if missing:
            written |= await self._settle_missing(group, missing, again=sent.again)
        for place in written:
            group.asked[place].done()
        for execution, head in group.heads.items():
            if (execution, head.seq) in written:
                self._heads.keep(execution, head)
            else:
                self._heads.pop(execution, None)
        self._wrote([*{execution for execution, _ in written}])

    async def _settle_missing(
        self, group: Group, missing: Sequence[Chained], *, again: bool
    ) -> set[tuple[ExecutionId, int]]:
        """Refuse the rows that others kept out; those that an earlier sending had committed."""
        committed: set[tuple[ExecutionId, int]] = set()
        if again:
            stored = await self._connections.read(lambda connection: read_hashes(connection, missing))
            committed = {
                (row.execution, row.seq) for row in missing if stored.get((row.execution, row.seq)) == row.hash
            }
        superseded = self._fence.epoch is not None and len(committed) < len(missing) and not await self._is_keeper()
        for row in missing:
            place = row.execution, row.seq
            if place not in committed:
                group.asked[place].refuse(self._fence.broken() if superseded else moved(*place, None))
        return committed

    async def _is_keeper(self) -> bool:
        async def query(connection: Connection) -> bool:
            cursor = await connection.execute("SELECT 1 FROM keeper WHERE epoch = %s", (self._fence.epoch,))
            return await cursor.fetchone() is not None

        return await self._connections.read(query)

    def _forget(self, group: Group) -> None:
        for execution in group.heads:
            self._heads.pop(execution, None)


async def read_heads(connection: Connection, executions: list[ExecutionId]) -> dict[ExecutionId, Head]:
    """The ends of journals; an execution without rows is left out."""
    cursor = connection.cursor(binary=True)
    await cursor.execute(HEADS, (executions,))
    return {ExecutionId(execution): Head(seq, hashed) for execution, seq, hashed in await cursor.fetchall()}


async def read_hashes(connection: Connection, rows: Sequence[Chained]) -> dict[tuple[str, int], bytes]:
    cursor = connection.cursor(binary=True)
    await cursor.execute(STORED, ([row.execution for row in rows], [row.seq for row in rows]))
    return {(execution, seq): hashed for execution, seq, hashed in await cursor.fetchall()}


def statement_for(group: Group, epoch: int | None) -> tuple[LiteralString, list[object]]:
    """The statement that writes a group, and its values."""
    # In one order everywhere: two processes that write the same rows must not wait for each other in a circle.
    rows = sorted(group.rows)
    values: list[object] = [] if epoch is None else [epoch]
    if group.blobs:
        shrunken = [(digest, *shrunk(content)) for digest, content in sorted(group.blobs.items())]
        values += columns(shrunken)
    values += columns(rows)
    if group.summaries:
        summaries = [group.summaries[execution] for execution in sorted(group.summaries)]
        values += columns([(*values_of(one), group.heads[one.execution].seq) for one in summaries])
    if group.in_runs:
        values += columns(sorted(group.firsts.items()))
    return (
        statement(
            fenced=epoch is not None,
            blobs=bool(group.blobs),
            summaries=bool(group.summaries),
            in_runs=group.in_runs,
        ),
        values,
    )


def columns(rows: Sequence[tuple[object, ...]]) -> list[object]:
    return [list(column) for column in zip(*rows, strict=True)]


@cache
def statement(*, fenced: bool, blobs: bool, summaries: bool, in_runs: bool) -> LiteralString:
    """Rows, and what must be committed with them, in one statement. Nothing but these texts ever enters it."""
    behind: LiteralString = ", fence" if fenced else ""
    parts: list[LiteralString] = [FENCE] if fenced else []
    if blobs:
        parts.append(
            "blob AS (INSERT INTO blobs (hash, form, data)"
            f" SELECT g.* FROM unnest(%b::bytea[], %b::int2[], %b::bytea[]) AS g{behind} ON CONFLICT DO NOTHING)"
        )
    parts.append(
        "written AS (INSERT INTO rows (execution, seq, at, shape, form, data, hash) SELECT g.* FROM unnest("
        "%b::text[], %b::int4[], %b::float8[], %b::int4[], %b::int2[], %b::bytea[], %b::bytea[]"
        f") AS g{behind} ON CONFLICT DO NOTHING RETURNING execution, seq)"
    )
    if summaries:
        parts.append(
            f"listed AS (INSERT INTO summaries ({COLUMNS}) SELECT {COLUMNS} FROM unnest({TYPES}, %b::int4[])"
            f" AS g ({COLUMNS}, seq) JOIN written USING (execution, seq)"
            f" ON CONFLICT (execution) DO UPDATE SET {REPLACED})"
        )
    found: LiteralString = "SELECT execution, seq FROM written"
    if in_runs:
        # Where the first row of a run was kept out, the whole statement is: dividing by zero takes it back.
        found = (
            "SELECT w.execution, w.seq FROM (SELECT *, min(seq) OVER (PARTITION BY execution) AS least FROM written)"
            " AS w JOIN unnest(%b::text[], %b::int4[]) AS f (execution, first) USING (execution)"
            " WHERE 1 / CASE WHEN w.least = f.first THEN 1 ELSE 0 END = 1"
        )
    return f"WITH {', '.join(parts)} {found}"
