"""Deletion in SQLite: logically immediate, physically in slices.

    remove ── one transaction: name, summary and effects are gone; the place behind the last row is taken for ever
       └────▶ slices: rows, uses of blobs, unused blobs ── `sweep` continues what a crash interrupted

A process that still drives the execution, or a late report, would append at the taken place and is rejected like any
writer whose journal has moved. The number of the execution is never reused.
"""

from __future__ import annotations

import sqlite3
import time
from functools import partial
from typing import Final

from pointsman.store.chain import moved
from pointsman.store.compression import Form
from pointsman.store.records import SweepResult
from pointsman.store.sqlite.connection import ReaderPool
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
BY_EXECUTION: Final = ("summaries", "effects", "awaited", "gates", "gate_people")
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
            found: list[tuple[bytes, int]] = await self._read(
                lambda connection: connection.execute(UNUSED, (time.time(),)).fetchall()
            )
            return SweepResult(blobs=len(found), bytes=sum(size for _, size in found))
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
    gone = sum(
        transaction.execute(f"DELETE FROM {table} WHERE execution = ?", (execution,)).rowcount for table in BY_EXECUTION
    )
    transaction.forget(execution)
    if not head.no:
        return 0 if gone else None
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
    found: list[tuple[bytes, int]] = transaction.execute(f"{UNUSED} LIMIT ?", (time.time(), BLOBS_AT_ONCE)).fetchall()
    for digest, _ in found:
        transaction.execute("DELETE FROM blobs WHERE hash = ?", (digest,))
    return SweepResult(blobs=len(found), bytes=sum(size for _, size in found))


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
