"""Group commit: one thread owns the writing connection and commits simultaneous requests together.

    append ─┐                 ┌─ one transaction ─────────┐
    append ─┼─▶ queue ─▶ thread ─▶ apply, apply, apply ─ COMMIT (to the disk) ─▶ all futures, in one call
    save   ─┘                 └───────────────────────────┘

Requests that arrive during a commit share the next one; a lone request is committed at once. A request is a function
of the open transaction. If one fails, the requests of its group are tried one by one.

Waking the thread and being woken by it costs as much as a commit on a fast disk. While one execution is the only writer
and commits take at most a few milliseconds, its rows are therefore committed on the thread of the caller (`at_once`);
the event loop still gets its turn as often as on a faster disk.

    blobs ◀── blob_uses (execution, hash) ── written with the row or effect that needs the content
      └─ held_until: not used yet (a definition is stored before the execution that runs it has begun)

A content without uses whose hold has expired may be deleted.
"""

from __future__ import annotations

import asyncio
import sqlite3
import threading
import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from pathlib import Path
from queue import SimpleQueue
from typing import Final, Generic, TypeVar, cast

from msgspec import Struct
from msgspec.structs import replace

from pointsman.errors import PointsmanError
from pointsman.store.codec import EncodedRow, Head, Heads, first_hash, moved, row_hash
from pointsman.store.compression import HOLD_S, Packed, content_hash, pack, squeezed
from pointsman.store.coordination import superseded
from pointsman.store.errors import StoreClosed, StoreFailed, StoreLocked, StoreMissing, StoreReadOnly
from pointsman.store.sql.tables import RECORD_EFFECT
from pointsman.store.sqlite.connection import ReadOnly, connect_reader, connect_writer, explained, fault, identity_of
from pointsman.store.sqlite.schema import is_current, migrate
from pointsman.values import ExecutionId, Json

T = TypeVar("T")

TOGETHER_MAX: Final = 1000
"""Maximum number of requests in one transaction: limits the duration of one commit."""
LOCKED_WAIT_S: Final = 5.0
"""How long to wait for another process before the store counts as locked."""
LOCKED_RETRY_S: Final = 0.01
LOG_PAGES_MAX: Final = 1000
"""Checkpoint after about 4 MB of log: overwriting its old blocks is cheaper than extending it."""
LOG_PAGES_PER_COMMIT: Final = 3
PAGE_BYTES: Final = 4096
AT_ONCE_AFTER: Final = 4
"""After this many consecutive rows of one execution it counts as the only writer."""
AT_ONCE_S_MAX: Final = 0.003
"""Longest usual duration of a commit that may run on the event loop's thread."""
COMMIT_S_GUESS: Final = 0.01
"""The disk counts as slow until some commits were measured."""
AT_ONCE_IN_A_ROW_S_MAX: Final = 0.01
"""After this total time one commit goes through the thread, so that the event loop runs and the log is checkpointed."""
LOOK_AT_FILE_S: Final = 0.2
"""How often to check that the file is still at its path."""


class WriteRequest(Struct, Generic[T], eq=False, gc=False):
    """A write, the future of its caller, and its result."""

    apply: Callable[[Transaction], T] | None
    loop: asyncio.AbstractEventLoop
    future: asyncio.Future[T]
    result: T | None = None
    error: Exception | None = None

    def settle(self) -> None:
        """Set the result of the caller's future unless it is done. Runs in the loop's thread."""
        # Drop the request: what it wrote may be as large as a state, and the thread holds its last batch until the next
        # one.
        self.apply = None
        if self.future.done():
            return
        if self.error is not None:
            self.future.set_exception(self.error)
        else:
            self.future.set_result(cast("T", self.result))


class WriterThread:
    """The writer thread, its queue and its connection."""

    def __init__(self, path: Path, read_only: ReadOnly | None = None) -> None:
        """`read_only`: the file cannot be written; every write raises `StoreReadOnly`."""
        self._path = path
        self._read_only = read_only
        self._queue: SimpleQueue[WriteRequest[object] | None] = SimpleQueue()
        self._heads = Heads()
        self._connection = self._open(wait_s=LOCKED_WAIT_S)
        self._identity = identity_of(path)
        self._looked_at = 0.0
        self._log_pages = 0
        self._commit_s = COMMIT_S_GUESS
        self._closed = False
        self._busy = threading.Lock()
        """Held while the connection is in use."""
        self._counting = threading.Lock()
        self._asked, self._answered = 0, 0
        self._author, self._streak = "", 0
        self._in_a_row_s = 0.0
        self._epoch: int | None = None
        self._tell_superseded: Callable[[], None] = lambda: None
        self._thread = threading.Thread(target=self._run, name=f"pointsman-writer:{path.name}", daemon=True)
        self._thread.start()

    def check_writable(self) -> None:
        """Raise `StoreReadOnly` if the store cannot be written."""
        if self._read_only is not None:
            raise StoreReadOnly(f"{self._path.name}: the store can only be read", hint=self._read_only.hint)

    def submit(self, apply: Callable[[Transaction], T]) -> asyncio.Future[T]:
        """Run `apply` in a transaction. The future completes when the transaction is on the disk, or has failed.

        Requests are applied in the order of these calls. An `apply` that rejects its request raises before it writes
        anything.
        """
        if self._closed:
            raise StoreClosed(f"the store {self._path.name!r} was closed")
        self.check_writable()
        loop = asyncio.get_running_loop()
        request = WriteRequest(apply, loop, loop.create_future())
        with self._counting:
            self._asked += 1
            self._queue.put(cast("WriteRequest[object]", request))
        return request.future

    def at_once(self, author: str, apply: Callable[[Transaction], object]) -> bool:
        """Run and commit `apply` on this thread if that is cheaper than using the writer thread; False: nothing was
        done.

        `author` identifies the requester: only one that writes repeatedly and alone is served in this way.
        """
        if self._read_only is not None:
            return False
        if author != self._author:
            self._author, self._streak = author, 0
            return False
        self._streak += 1
        if (
            self._streak < AT_ONCE_AFTER
            or self._in_a_row_s > AT_ONCE_IN_A_ROW_S_MAX
            or self._commit_s > AT_ONCE_S_MAX
            or self._asked != self._answered
            or not self._busy.acquire(blocking=False)
        ):
            return False
        try:
            if self._closed:
                return False
            self._alone(apply, wait_s=0.0)
        except StoreLocked:
            return False
        finally:
            self._busy.release()
        return True

    def prove(self, epoch: int | None, superseded: Callable[[], None]) -> None:
        """From now on write only while the store is in this epoch; `superseded` is called when it is not."""
        self._epoch, self._tell_superseded = epoch, superseded

    def version_of_others(self) -> int | None:
        """Return a number that changes when another connection commits; None: the connection is in use, ask again."""
        if self._closed or not self._busy.acquire(blocking=False):
            return None
        try:
            with explained(self._path):
                return cast(int, self._connection.execute("PRAGMA data_version").fetchone()[0])
        finally:
            self._busy.release()

    async def fold_log(self) -> None:
        """Fold the whole log into the file and truncate it, if no reader needs it at present."""
        await asyncio.to_thread(self._fold_log)

    def _fold_log(self) -> None:
        if self._read_only is not None:
            return
        with self._busy, explained(self._path):
            self._connection.execute("PRAGMA wal_checkpoint(TRUNCATE)").fetchone()

    def close(self) -> None:
        """Commit pending requests and close the file. Blocks until done."""
        if not self._closed:
            self._closed = True
            self._queue.put(None)
        self._thread.join()

    def _open(self, *, wait_s: float = 0.0) -> sqlite3.Connection:
        """Connect, and migrate if necessary. Retries, because SQLite does not wait for another process that does the
        same.
        """
        began = time.monotonic()
        while True:
            try:
                return self._opened()
            except StoreLocked:
                if time.monotonic() - began >= wait_s:
                    raise
            time.sleep(LOCKED_RETRY_S)

    def _opened(self) -> sqlite3.Connection:
        with explained(self._path):
            if self._read_only is not None:
                return self._opened_to_read(self._read_only)
            connection = connect_writer(self._path)
            try:
                migrate(connection)
            except BaseException:
                connection.close()
                raise
        return connection

    def _opened_to_read(self, read_only: ReadOnly) -> sqlite3.Connection:
        """Open a read-only store. Raises `StoreReadOnly` for one of an older version, which would need a migration."""
        connection = connect_reader(self._path, read_only)
        try:
            if not is_current(connection):
                message = f"{self._path.name}: the store is of an older version, and can only be read"
                raise StoreReadOnly(message, hint=f"{read_only.hint} The store is then migrated.")
        except BaseException:
            connection.close()
            raise
        return connection

    def _run(self) -> None:
        going = True
        while going:
            batch, going = self._gather()
            if batch:
                with self._busy:
                    self._commit(batch)
                    self._answered += len(batch)
                    self._in_a_row_s = 0.0
                # Only after the connection is free: the callback may use it at once.
                settle_futures(batch)
                self._checkpoint()
        with self._busy:
            self._connection.close()

    def _gather(self) -> tuple[list[WriteRequest[object]], bool]:
        """Return all waiting requests, at least one. False: the thread must end."""
        batch: list[WriteRequest[object]] = []
        while True:
            request = self._queue.get()
            if request is None:
                return batch, False
            batch.append(request)
            if self._queue.empty() or len(batch) == TOGETHER_MAX:
                return batch, True

    def _commit(self, batch: list[WriteRequest[object]]) -> None:
        """Commit a batch, or else each request by itself. Errors go to the callers; the thread continues."""
        if len(batch) > 1:
            try:
                self._together(batch)
                return
            except StoreFailed as why:
                for request in batch:
                    request.error = why
                return
            except Exception:
                pass
        for request in batch:
            try:
                assert request.apply is not None, "it is not settled yet"
                request.result, request.error = self._alone(request.apply, wait_s=LOCKED_WAIT_S), None
            except Exception as why:
                request.error = why

    def _alone(self, apply: Callable[[Transaction], T], *, wait_s: float) -> T:
        """Apply one request in its own transaction. Raises its errors and those of the store."""
        began = self._begin(wait_s)
        connection = self._connection
        transaction = Transaction(connection, self._heads, alone=True)
        try:
            result = apply(transaction)
            transaction.flush()
            connection.execute("COMMIT")
        except sqlite3.Error as why:
            self._undo(transaction)
            raise fault(why, self._path) from why
        except BaseException:
            self._undo(transaction)
            raise
        self._committed(began, transaction)
        return result

    def _together(self, batch: list[WriteRequest[object]]) -> None:
        """Apply all requests in one transaction. A request that fails before writing anything fails alone."""
        began = self._begin(LOCKED_WAIT_S)
        connection = self._connection
        transaction = Transaction(connection, self._heads, alone=False)
        try:
            for request in batch:
                assert request.apply is not None, "it is not settled yet"
                before = connection.total_changes
                try:
                    request.result = request.apply(transaction)
                except PointsmanError as why:
                    if connection.total_changes != before:
                        raise Conflict from why
                    request.error = why
            transaction.flush()
            connection.execute("COMMIT")
        except BaseException as why:
            self._undo(transaction)
            # Errors of the store concern every request; errors of one request (a value, a constraint) only that one.
            if isinstance(why, sqlite3.OperationalError) or type(why) is sqlite3.DatabaseError:
                raise fault(why, self._path) from why
            raise
        self._committed(began, transaction)

    def _begin(self, wait_s: float) -> float:
        """Open a transaction and return its start time. Waits up to `wait_s` for the transaction of another process."""
        now = time.monotonic()
        if now - self._looked_at > LOOK_AT_FILE_S:
            self._stay_with_the_file()
            self._looked_at = now
        while True:
            try:
                self._connection.execute("BEGIN IMMEDIATE")
                self._check_epoch()
                return now
            except sqlite3.Error as why:
                error = fault(why, self._path)
                if not isinstance(error, StoreLocked) or time.monotonic() - now >= wait_s:
                    raise error from why
            time.sleep(LOCKED_RETRY_S)

    def _check_epoch(self) -> None:
        epoch = self._epoch
        if epoch is None or self._connection.execute("SELECT epoch FROM leader").fetchone() == (epoch,):
            return
        self._connection.execute("ROLLBACK")
        self._tell_superseded()
        raise superseded(epoch)

    def _committed(self, began: float, transaction: Transaction) -> None:
        took = time.monotonic() - began
        self._commit_s += (took - self._commit_s) / 8
        self._in_a_row_s += took
        self._log_pages += LOG_PAGES_PER_COMMIT + transaction.bytes_written // PAGE_BYTES

    def _undo(self, transaction: Transaction) -> None:
        for execution in transaction.touched:
            self._heads.pop(execution, None)
        if self._connection.in_transaction:
            self._connection.execute("ROLLBACK")

    def _checkpoint(self) -> None:
        """Fold the log into the file, as far as no reader needs it. No caller waits for this."""
        if self._log_pages < LOG_PAGES_MAX:
            return
        try:
            with self._busy:
                self._log_pages = 0
                self._connection.execute("PRAGMA wal_checkpoint(PASSIVE)").fetchone()
        except sqlite3.Error:
            # The log is complete and the next checkpoint repeats this; a real fault appears at the next commit.
            return

    def _stay_with_the_file(self) -> None:
        """Detect a file that was moved: writes would silently follow it."""
        now = identity_of(self._path)
        if now is None:
            raise StoreMissing(
                f"{self._path} does not exist any more", hint="Restore the file: writing then continues."
            )
        if now != self._identity:
            # The log may still be at the old path: opening a new file would mix the two.
            raise StoreMissing(f"another file has replaced {self._path}", hint="Restart, to use the other one.")


def settle_futures(batch: list[WriteRequest[object]]) -> None:
    """Settle all futures of one loop in one call: waking a loop costs more than settling a future."""
    by_loop: dict[asyncio.AbstractEventLoop, list[WriteRequest[object]]] = {}
    for request in batch:
        by_loop.setdefault(request.loop, []).append(request)
    for loop, requests in by_loop.items():
        try:
            loop.call_soon_threadsafe(settle, requests)
        except RuntimeError:
            # The loop was closed, so no caller waits any more. The rows are written.
            continue


def settle(requests: list[WriteRequest[object]]) -> None:
    for request in requests:
        request.settle()


SEQ_BITS: Final = 32
SEQ_MASK: Final = (1 << SEQ_BITS) - 1
INSERT_ROW: Final = (
    "INSERT INTO rows (place, at, shape, form, data, hash) VALUES (?, ?, ?, ?, ?, ?) ON CONFLICT DO NOTHING"
)
INSERT_ANSWER: Final = RECORD_EFFECT.replace("%s", "?")


class Conflict(Exception):
    """The transaction cannot be committed as a group; its requests must be tried one by one."""


class Transaction:
    """The writing interface of requests. Lives from BEGIN to COMMIT."""

    __slots__ = ("_alone", "_answers", "_heads", "_rows", "bytes_written", "connection", "touched")

    def __init__(self, connection: sqlite3.Connection, heads: Heads, *, alone: bool) -> None:
        self.connection = connection
        self.touched: set[ExecutionId] = set()
        self.bytes_written = 0
        self._heads = heads
        self._alone = alone
        self._rows: list[tuple[int, float, int, int, bytes, bytes]] = []
        self._answers: list[tuple[str, str, int, int, bytes]] = []

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

    def record(self, execution: ExecutionId, attempt: str, number: int, answer: Packed) -> None:
        """Store the answer of an effect, unless it has one."""
        if answer.blobs:
            self.keep_blobs(execution, answer.blobs)
        self._answers.append((execution, attempt, number, int(answer.form), answer.data))

    def flush(self) -> None:
        """Write the gathered rows and answers. Raises if another process wrote one of the rows first."""
        answers, self._answers = self._answers, []
        if len(answers) == 1:
            self.connection.execute(INSERT_ANSWER, answers[0])
        elif answers:
            self.connection.executemany(INSERT_ANSWER, answers)
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
        row = self.connection.execute("SELECT no FROM executions WHERE id = ?", (execution,)).fetchone()
        if row is not None:
            return int(row[0])
        number = self.connection.execute("INSERT INTO executions (id) VALUES (?)", (execution,)).lastrowid
        assert number is not None, "an INSERT into a rowid table has a rowid"
        return number


def read_head(connection: sqlite3.Connection, execution: ExecutionId) -> Head:
    """Read the end of a journal from the tables."""
    known_no = connection.execute("SELECT no FROM executions WHERE id = ?", (execution,)).fetchone()
    if known_no is None:
        return Head(0, first_hash(execution))
    (no,) = known_no
    first, last = no << SEQ_BITS, no << SEQ_BITS | SEQ_MASK
    row = connection.execute(
        "SELECT place, hash FROM rows WHERE place BETWEEN ? AND ? ORDER BY place DESC LIMIT 1", (first, last)
    ).fetchone()
    return Head(row[0] & SEQ_MASK, row[1], no) if row else Head(0, first_hash(execution), no)


def put_blob(connection: sqlite3.Connection, digest: bytes, content: bytes, *, held_until: float = 0.0) -> int:
    """Store content under its hash, once, compressed if that helps. Return the bytes written."""
    row = connection.execute("SELECT held_until FROM blobs WHERE hash = ?", (digest,)).fetchone()
    if row is None:
        form, data = squeezed(content)
        connection.execute(
            "INSERT INTO blobs (hash, form, data, held_until) VALUES (?, ?, ?, ?)",
            (digest, int(form), data, held_until),
        )
        return len(data)
    # Not at every start of one workflow: half of the time is enough.
    if row[0] < held_until - HOLD_S / 2:
        connection.execute("UPDATE blobs SET held_until = ? WHERE hash = ?", (held_until, digest))
    return 0


def hold_blob(connection: sqlite3.Connection, content: bytes) -> bytes:
    """Store content that is about to be used, and return its hash."""
    digest = content_hash(content)
    put_blob(connection, digest, content, held_until=time.time() + HOLD_S)
    return digest


def use_blobs(connection: sqlite3.Connection, no: int, digests: Iterable[bytes]) -> None:
    """Record that the execution with that number uses these contents."""
    connection.executemany(
        "INSERT OR IGNORE INTO blob_uses (execution, hash) VALUES (?, ?)", ((no, digest) for digest in digests)
    )
