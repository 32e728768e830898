"""The journal in SQLite: rows in one tree, by execution and seq; chained by hashes."""

from __future__ import annotations

import sqlite3
from collections.abc import AsyncIterator, Mapping, Sequence
from functools import partial
from typing import Final, NamedTuple

from pointsman.engine.events.steps import Event
from pointsman.ports import Row
from pointsman.store.codec import Codec, encoded_row
from pointsman.store.compression import VERIFY, Form
from pointsman.store.coordination import Polling
from pointsman.store.errors import StoreDamaged
from pointsman.store.records import EffectRecord, Summary
from pointsman.store.sql.tables import packed_value, record_effect
from pointsman.store.sql.work import opened
from pointsman.store.sqlite.connection import ReaderPool
from pointsman.store.sqlite.database import put_summary, run
from pointsman.store.sqlite.writer import SEQ_BITS, SEQ_MASK, Transaction, WriterThread, read_head
from pointsman.values import ExecutionId


class PageBounds(NamedTuple):
    """Bounds of one page of a journal."""

    rows_min: int
    rows: int
    bytes: int


LONG: Final = PageBounds(1, 256, 4 * 1024 * 1024)
"""What one step of reading holds in memory; a single larger row is read alone."""
BRIEF: Final = PageBounds(0, 64, 64 * 1024)
"""Short enough for the thread of the event loop; the page ends before a row that refers to another content."""
ALONE: Final = frozenset({Form.PLAIN, Form.ZSTD})
"""Forms of rows that refer to no other content."""


class Stored(NamedTuple):
    """A row as it was read: unpacked, not decoded."""

    seq: int
    at: float
    shape: int
    plain: bytes


class SqliteJournal:
    """Encodes rows in the calling task, so that the caller gets the error of a bad value at once; the writer does
    the rest.
    """

    def __init__(self, writer: WriterThread, reader: ReaderPool, codec: Codec[Event]) -> None:
        self._writer = writer
        self._reader = reader
        self._codec = codec

    async def append(
        self,
        execution: ExecutionId,
        row: Row,
        *,
        summary: Summary | None = None,
        effects: Sequence[EffectRecord] = (),
    ) -> None:
        await self.extend(execution, (row,), summary=summary, effects=effects)

    async def extend(
        self,
        execution: ExecutionId,
        rows: Sequence[Row],
        *,
        summary: Summary | None = None,
        effects: Sequence[EffectRecord] = (),
    ) -> None:
        entries = [encoded_row(row, self._codec) for row in rows]
        answers = [(effect.attempt, effect.number, packed_value(effect.value)) for effect in effects]

        def apply(transaction: Transaction) -> None:
            for entry in entries:
                transaction.append(execution, entry)
            for attempt, number, packed in answers:
                run(record_effect(execution, attempt, number, packed), transaction.connection, transaction)
            if summary is not None:
                put_summary(transaction.connection, summary)

        if not self._writer.at_once(execution, apply):
            await self._writer.submit(apply)

    async def read(self, execution: ExecutionId, *, after: int = 0) -> AsyncIterator[Row]:
        is_last = True
        while True:
            if is_last:
                page = await self._reader.run_brief(partial(read_page, execution=execution, after=after, bounds=BRIEF))
            else:
                page = await self._reader.run(partial(read_page, execution=execution, after=after, bounds=LONG))
            is_last = page.is_last
            if is_last and not page.rows:
                return
            page.rows.reverse()
            while page.rows:
                after += 1
                # Rows that were read are dropped at once: one row may be as large as a state.
                yield self._row(page.rows.pop(), execution, after)

    def _row(self, stored: Stored, execution: ExecutionId, seq: int) -> Row:
        if stored.seq != seq:
            raise StoreDamaged(f"execution {execution!r}: row {seq} is missing", hint=VERIFY)
        content = self._codec.decode(stored.plain, stored.shape)
        return Row(seq, stored.at, content.events, content.cause)

    async def last(self, execution: ExecutionId) -> int:
        return await self._reader.run_brief(lambda connection: read_head(connection, execution).seq)


class Page(NamedTuple):
    """Consecutive rows of a journal."""

    rows: list[Stored]
    is_last: bool


def read_page(connection: sqlite3.Connection, execution: ExecutionId, after: int, bounds: PageBounds) -> Page:
    """Return the next rows, as many as the bounds allow."""
    found = connection.execute("SELECT no FROM executions WHERE id = ?", (execution,)).fetchone()
    if found is None:
        return Page([], is_last=True)
    first = found[0] << SEQ_BITS
    cursor = connection.execute(
        "SELECT place, at, shape, form, data FROM rows WHERE place BETWEEN ? AND ? ORDER BY place LIMIT ?",
        (first | min(after + 1, SEQ_MASK), first | SEQ_MASK, bounds.rows + 1),
    )
    rows: list[Stored] = []
    size = 0
    for number, at, shape, form, data in cursor:
        is_full = len(rows) == bounds.rows or size + len(data) > bounds.bytes
        if len(rows) >= bounds.rows_min and (is_full or (form not in ALONE and not bounds.rows_min)):
            return Page(rows, is_last=False)
        plain = data if form == Form.PLAIN else run(opened(form, data), connection)
        size += len(plain)
        rows.append(Stored(number & SEQ_MASK, at, shape, plain))
    return Page(rows, is_last=True)


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
