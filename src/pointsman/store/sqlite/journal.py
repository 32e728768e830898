"""The journal in SQLite: rows in one tree, by execution and seq; chained by hashes. Also deletes executions."""

from __future__ import annotations

import sqlite3
import time
from collections.abc import AsyncIterator, Mapping, Sequence
from functools import partial
from typing import Final, NamedTuple

from msgspec import Struct

from pointsman.engine.events.steps import Event
from pointsman.ports import Row
from pointsman.store.codec import Codec, EncodedRow, check_summary, encoded_row, moved
from pointsman.store.compression import VERIFY, Form, Packed
from pointsman.store.coordination import Polling
from pointsman.store.errors import StoreDamaged
from pointsman.store.records import EffectRecord, Summary, SweepResult
from pointsman.store.sql.tables import packed_value
from pointsman.store.sql.work import opened
from pointsman.store.sqlite.connection import ReaderPool
from pointsman.store.sqlite.database import put_summary, run
from pointsman.store.sqlite.writer import SEQ_BITS, SEQ_MASK, Transaction, WriterThread, read_head
from pointsman.values import ExecutionId

ROWS_AT_ONCE: Final = 500
BLOBS_AT_ONCE: Final = 20
PAGES_AT_ONCE: Final = 500
"""Maximum deletions in one transaction, so that other writers get their turn."""
WORDS_MERGED_MIN: Final = 2
"""Fewer changes than this mean, according to SQLite, that the merge had nothing to do."""
UNUSED: Final = (
    "SELECT hash, length(data) FROM blobs AS b WHERE held_until < ?"
    " AND NOT EXISTS (SELECT 1 FROM blob_uses WHERE hash = b.hash)"
)
BY_EXECUTION: Final = ("summaries", "effects", "awaited", "gates", "gate_people", "answers")
"""Tables that refer to executions by id."""


class SqliteRemoval:
    """The SQLite implementation of `Removal`."""

    def __init__(self, writer: WriterThread, reader: ReaderPool) -> None:
        self._writer = writer
        self._submit = writer.submit
        self._read = reader.run

    async def remove(self, execution: ExecutionId, *, at: int) -> bool:
        no = await self._submit(partial(take_away, execution=execution, at=at))
        if no:
            await self._erase(no)
        return no is not None

    async def sweep(self, *, dry_run: bool = False) -> SweepResult:
        if dry_run:
            rows: list[tuple[bytes, int]] = await self._read(
                lambda connection: connection.execute(UNUSED, (time.time(),)).fetchall()
            )
            return SweepResult(blobs=len(rows), bytes=sum(size for _, size in rows))
        halves: list[tuple[int]] = await self._read(
            lambda connection: connection.execute("SELECT no FROM deleted_executions").fetchall()
        )
        for (no,) in halves:
            await self._erase(no)
        swept = SweepResult()
        while (more := await self._submit(delete_unused)).blobs:
            swept = SweepResult(blobs=swept.blobs + more.blobs, bytes=swept.bytes + more.bytes)
        return swept

    async def compact(self) -> int:
        before = await self._read(size_of)
        # Words of deleted memories stay in the index until it is merged: a negative number starts that merge.
        pages = -PAGES_AT_ONCE
        while await self._submit(partial(merge_words, pages=pages)):
            pages = PAGES_AT_ONCE
        while await self._submit(give_back_pages):
            continue
        await self._writer.fold_log()
        return max(0, before - await self._read(size_of))

    async def _erase(self, no: int) -> None:
        while await self._submit(partial(erase_slice, no=no)):
            continue


def take_away(transaction: Transaction, execution: ExecutionId, at: int) -> int | None:
    """Delete an execution by name. Raises `JournalMoved` unless `at` is its last row.

    Return its number for erasing the rest: 0 if it has no rows, None if unknown.
    """
    transaction.flush()
    head = read_head(transaction.connection, execution)
    if head.seq != at:
        raise moved(execution, at + 1, head.seq)
    count = sum(
        transaction.execute(f"DELETE FROM {table} WHERE execution = ?", (execution,)).rowcount for table in BY_EXECUTION
    )
    transaction.forget(execution)
    if not head.no:
        return 0 if count else None
    end = head.no << SEQ_BITS | head.seq + 1
    transaction.execute(
        "INSERT INTO rows (place, at, shape, form, data, hash) VALUES (?, 0, 0, ?, x'', x'')", (end, int(Form.GONE))
    )
    transaction.execute("UPDATE executions SET id = '/deleted/' || no WHERE no = ?", (head.no,))
    transaction.execute("INSERT INTO deleted_executions (no) VALUES (?)", (head.no,))
    return head.no


def erase_slice(transaction: Transaction, no: int) -> bool:
    """Erase some rows and blobs of a deleted execution. Return False when nothing is left."""
    first, last = no << SEQ_BITS, no << SEQ_BITS | SEQ_MASK
    rows = transaction.execute(
        "DELETE FROM rows WHERE no IN (SELECT no FROM rows WHERE place BETWEEN ? AND ? AND form <> ? LIMIT ?)",
        (first, last, int(Form.GONE), ROWS_AT_ONCE),
    ).rowcount
    if rows:
        return True  # Blobs are erased after the rows that refer to them.
    used: list[tuple[bytes]] = transaction.execute(
        "SELECT hash FROM blob_uses WHERE execution = ? LIMIT ?", (no, BLOBS_AT_ONCE)
    ).fetchall()
    for (digest,) in used:
        transaction.execute("DELETE FROM blob_uses WHERE execution = ? AND hash = ?", (no, digest))
        transaction.execute(
            "DELETE FROM blobs WHERE hash = ? AND held_until < ?"
            " AND NOT EXISTS (SELECT 1 FROM blob_uses WHERE hash = blobs.hash)",
            (digest, time.time()),
        )
    if used:
        return True
    transaction.execute("DELETE FROM deleted_executions WHERE no = ?", (no,))
    return False


def delete_unused(transaction: Transaction) -> SweepResult:
    """Delete some of the unused blobs."""
    rows: list[tuple[bytes, int]] = transaction.execute(f"{UNUSED} LIMIT ?", (time.time(), BLOBS_AT_ONCE)).fetchall()
    for digest, _ in rows:
        transaction.execute("DELETE FROM blobs WHERE hash = ?", (digest,))
    return SweepResult(blobs=len(rows), bytes=sum(size for _, size in rows))


def merge_words(transaction: Transaction, pages: int) -> bool:
    """Merge a part of the word index. Return False if there is nothing to merge."""
    before = transaction.connection.total_changes
    transaction.execute("INSERT INTO memory_words (memory_words, rank) VALUES ('merge', ?)", (pages,))
    return transaction.connection.total_changes - before >= WORDS_MERGED_MIN


def give_back_pages(transaction: Transaction) -> bool:
    """Truncate the file by some of its free pages. Return False if it has none or keeps them."""
    before = free_pages(transaction.connection)
    if before:
        transaction.execute(f"PRAGMA incremental_vacuum({PAGES_AT_ONCE})").fetchall()
    return free_pages(transaction.connection) < before


def free_pages(connection: sqlite3.Connection) -> int:
    return int(connection.execute("PRAGMA freelist_count").fetchone()[0])


def size_of(connection: sqlite3.Connection) -> int:
    """Return the bytes of the file once the log is folded into it."""
    pages, bytes_ = (connection.execute(f"PRAGMA {name}").fetchone()[0] for name in ("page_count", "page_size"))
    return int(pages) * int(bytes_)


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


class Append(Struct, frozen=True, gc=False):
    """Encoded rows of one execution, with the answers of effects and the summary of the same transaction."""

    execution: ExecutionId
    entries: tuple[EncodedRow, ...]
    answers: tuple[tuple[str, int, Packed], ...]
    summary: Summary | None

    def __call__(self, transaction: Transaction) -> None:
        for entry in self.entries:
            transaction.append(self.execution, entry)
        for attempt, number, packed in self.answers:
            transaction.record(self.execution, attempt, number, packed)
        if self.summary is not None:
            put_summary(transaction.connection, self.summary)


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
        *rows: Row,
        summary: Summary | None = None,
        effects: Sequence[EffectRecord] = (),
    ) -> None:
        if summary is not None:
            check_summary(summary)
        write = Append(
            execution,
            tuple([encoded_row(row, self._codec) for row in rows]),
            tuple([(effect.attempt, effect.number, packed_value(effect.value)) for effect in effects]),
            summary,
        )
        if not self._writer.at_once(execution, write):
            await self._writer.submit(write)

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
    row = connection.execute("SELECT no FROM executions WHERE id = ?", (execution,)).fetchone()
    if row is None:
        return Page([], is_last=True)
    first = row[0] << SEQ_BITS
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
        unchanged = self._asked if version == self._version else frozenset[ExecutionId]()
        unsure = [execution for execution in executions if execution not in unchanged]
        ends = await self._reader.run(partial(ends_of, executions=unsure))
        self._version, self._asked = version, frozenset(executions)
        return ends


def ends_of(connection: sqlite3.Connection, executions: Sequence[ExecutionId]) -> Mapping[ExecutionId, int]:
    return {execution: read_head(connection, execution).seq for execution in executions}


def polling(reader: ReaderPool) -> Polling:
    """Looks into the journals that are followed, when the file has changed."""
    positions: dict[int, tuple[int, int]] = {}

    async def look(executions: Sequence[ExecutionId]) -> Mapping[ExecutionId, int]:
        return await reader.run(partial(changed, positions=positions, executions=executions))

    return Polling(look, LOOK_S)


def changed(
    connection: sqlite3.Connection, positions: dict[int, tuple[int, int]], executions: Sequence[ExecutionId]
) -> Mapping[ExecutionId, int]:
    """The ends of the journals; nothing where neither the file nor what is followed has changed.

    The number means something only beside an older one of the same connection.
    """
    version = connection.execute("PRAGMA data_version").fetchone()[0], hash(tuple(executions))
    if positions.get(id(connection)) == version:
        return {}
    positions[id(connection)] = version
    return ends_of(connection, executions)
