"""An open transaction of the writer: adds rows to journals, chained by hashes, and lets others execute statements."""

from __future__ import annotations

import sqlite3
from collections.abc import Mapping, Sequence
from typing import Final

from msgspec.structs import replace

from pointsman.store.chain import Head, Heads, first_hash, moved, row_hash
from pointsman.store.compression import pack
from pointsman.store.row_encoding import EncodedRow
from pointsman.store.sqlite.blobs import put_blob, use_blobs
from pointsman.values import ExecutionId, Json

SEQ_BITS: Final = 32
SEQ_MASK: Final = (1 << SEQ_BITS) - 1
INSERT_ROW: Final = (
    "INSERT INTO rows (place, at, shape, form, data, hash) VALUES (?, ?, ?, ?, ?, ?) ON CONFLICT DO NOTHING"
)


class Conflict(Exception):
    """The transaction cannot be committed as a group; its requests must be tried one by one."""


class Transaction:
    """The writing interface of requests. Lives from BEGIN to COMMIT."""

    __slots__ = ("_alone", "_heads", "_rows", "bytes_written", "connection", "touched")

    def __init__(self, connection: sqlite3.Connection, heads: Heads, *, alone: bool) -> None:
        self.connection = connection
        self.touched: set[ExecutionId] = set()
        self.bytes_written = 0
        self._heads = heads
        self._alone = alone
        self._rows: list[tuple[int, float, int, int, bytes, bytes]] = []

    def append(self, execution: ExecutionId, entry: EncodedRow) -> None:
        """Add one row. Raises `JournalMoved` unless it follows the last one."""
        seq, at, shape = entry.seq, entry.at, entry.shape
        head = self._heads.get(execution)
        if head is None or (head.seq + 1 != seq and execution not in self.touched):
            # Unknown, or another process has appended since; this cannot apply to rows of this transaction.
            head = read_head(self.connection, execution)
        if head.seq + 1 != seq:
            raise moved(execution, seq, head.seq)
        packed = pack(entry.plain, entry.large)
        if head.no == 0:
            head = replace(head, no=self.number(execution))
        if packed.blobs or entry.names:
            self._use(head.no, packed.blobs, entry.names)
        form, data = int(packed.form), packed.data
        chained = row_hash(head.hash, seq, at, shape, form, data)
        self._rows.append((head.no << SEQ_BITS | seq, at, shape, form, data, chained))
        self.touched.add(execution)
        self.bytes_written += len(data)
        self._heads.keep(execution, Head(seq, chained, head.no))

    def flush(self) -> None:
        """Write the gathered rows. Raises if another process wrote one of them first."""
        rows, self._rows = self._rows, []
        if not rows:
            return
        # For one row the plain call is measurably cheaper.
        cursor = (
            self.connection.executemany(INSERT_ROW, rows)
            if len(rows) > 1
            else self.connection.execute(INSERT_ROW, rows[0])
        )
        if cursor.rowcount != len(rows):
            if not self._alone:
                raise Conflict
            raise moved(next(iter(self.touched)), rows[-1][0] & SEQ_MASK, None)

    def keep_blobs(self, execution: ExecutionId, blobs: Mapping[bytes, bytes]) -> None:
        """Store blobs by their hashes, and record that an execution uses them."""
        self._use(self.number(execution), blobs)

    def forget(self, execution: ExecutionId) -> None:
        """Forget the cached end of a journal, because it has changed."""
        self.touched.add(execution)
        self._heads.pop(execution, None)

    def _use(self, no: int, blobs: Mapping[bytes, bytes], names: Sequence[bytes] = ()) -> None:
        for digest, content in blobs.items():
            self.bytes_written += put_blob(self.connection, digest, content)
        use_blobs(self.connection, no, (*blobs, *names))

    def execute(self, statement: str, values: tuple[Json | bytes, ...] = ()) -> sqlite3.Cursor:
        return self.connection.execute(statement, values)

    def number(self, execution: ExecutionId) -> int:
        """Return the number of an execution, assigning one if necessary."""
        found = self.connection.execute("SELECT no FROM executions WHERE id = ?", (execution,)).fetchone()
        if found is not None:
            return int(found[0])
        number = self.connection.execute("INSERT INTO executions (id) VALUES (?)", (execution,)).lastrowid
        assert number is not None, "an INSERT into a rowid table has a rowid"
        return number


def read_head(connection: sqlite3.Connection, execution: ExecutionId) -> Head:
    """Read the end of a journal from the tables."""
    found = connection.execute("SELECT no FROM executions WHERE id = ?", (execution,)).fetchone()
    if found is None:
        return Head(0, first_hash(execution))
    (no,) = found
    first, last = no << SEQ_BITS, no << SEQ_BITS | SEQ_MASK
    row = connection.execute(
        "SELECT place, hash FROM rows WHERE place BETWEEN ? AND ? ORDER BY place DESC LIMIT 1", (first, last)
    ).fetchone()
    return Head(row[0] & SEQ_MASK, row[1], no) if row else Head(0, first_hash(execution), no)
