"""One thread owns the only connection that writes. What many ask for at the same time is committed once.

    append ─┐                 ┌─ one transaction ─────────┐
    append ─┼─▶ queue ─▶ thread ─▶ apply, apply, apply ─ COMMIT (to the disk) ─▶ all futures, in one call
    save   ─┘                 └───────────────────────────┘

While the disk is busy with one commit the next requests gather, so a commit is shared by as many as arrive during
the one before it; a lone request waits for nobody. A request is a function of the open transaction. When one fails,
those that came with it are tried one by one: none suffers for another.
"""

from __future__ import annotations

import asyncio
import sqlite3
import threading
from collections.abc import Callable
from pathlib import Path
from queue import Empty, SimpleQueue
from typing import Final, Generic, TypeVar, cast

from pointsman.errors import PointsmanError
from pointsman.journal.faults import StoreClosed, StoreFailed, StoreMissing
from pointsman.journal.sqlite.connection import connect_writer, explained, fault, identity_of
from pointsman.journal.sqlite.schema import migrate
from pointsman.journal.sqlite.transaction import Conflict, Heads, Transaction

T = TypeVar("T")

TOGETHER_MAX: Final = 1000
"""Requests in one transaction: bounds what one commit can hold up."""


class Request(Generic[T]):
    """One thing to write, who waits for it, and what became of it."""

    __slots__ = ("apply", "error", "future", "loop", "result")

    def __init__(self, apply: Callable[[Transaction], T], loop: asyncio.AbstractEventLoop) -> None:
        self.apply = apply
        self.loop = loop
        self.future: asyncio.Future[T] = loop.create_future()
        self.result: T | None = None
        self.error: Exception | None = None

    def settle(self) -> None:
        """Tell who waits, if anyone still does. Runs in the loop's thread."""
        if self.future.done():
            return
        if self.error is not None:
            self.future.set_exception(self.error)
        else:
            self.future.set_result(cast("T", self.result))


class Writer:
    """The thread, its queue and its connection."""

    def __init__(self, path: Path) -> None:
        self._path = path
        self._queue: SimpleQueue[Request[object] | None] = SimpleQueue()
        self._heads = Heads()
        self._connection = self._open()
        self._closed = False
        self._thread = threading.Thread(target=self._run, name=f"pointsman-writer:{path.name}", daemon=True)
        self._thread.start()

    def submit(self, apply: Callable[[Transaction], T]) -> asyncio.Future[T]:
        """Have `apply` done in a transaction. The future is done when that is on the disk, or failed.

        Requests are applied in the order of these calls. An `apply` that refuses raises before it writes anything.
        """
        if self._closed:
            raise StoreClosed(f"the store {self._path.name!r} was closed")
        request = Request(apply, asyncio.get_running_loop())
        self._queue.put(cast("Request[object]", request))
        return request.future

    def close(self) -> None:
        """Commit what was asked for and let go of the file. Blocks until then."""
        if not self._closed:
            self._closed = True
            self._queue.put(None)
        self._thread.join()

    def _open(self) -> sqlite3.Connection:
        with explained(self._path):
            connection = connect_writer(self._path)
            try:
                migrate(connection)
            except BaseException:
                connection.close()
                raise
        self._identity = identity_of(self._path)
        return connection

    def _run(self) -> None:
        going = True
        while going:
            batch, going = self._gather()
            if batch:
                self._commit(batch)
                tell(batch)
        self._connection.close()

    def _gather(self) -> tuple[list[Request[object]], bool]:
        """Whatever waits now; at least one. False when it is time to end."""
        batch: list[Request[object]] = []
        request = self._queue.get()
        try:
            while request is not None:
                batch.append(request)
                if len(batch) == TOGETHER_MAX:
                    return batch, True
                request = self._queue.get_nowait()
        except Empty:
            return batch, True
        return batch, False

    def _commit(self, batch: list[Request[object]]) -> None:
        try:
            self._stay_with_the_file()
            self._transact(batch)
        except StoreFailed as why:
            for request in batch:
                request.error = why
        except Exception as why:
            # Whatever one request raised belongs to who asked for it; the thread goes on.
            if len(batch) > 1:
                for request in batch:
                    self._commit([request])
            else:
                batch[0].error = fault(why, self._path) if isinstance(why, sqlite3.Error) else why

    def _transact(self, batch: list[Request[object]]) -> None:
        connection = self._connection
        transaction = Transaction(connection, self._heads, alone=len(batch) == 1)
        try:
            connection.execute("BEGIN IMMEDIATE")
            for request in batch:
                self._apply(request, transaction)
            transaction.flush()
            connection.execute("COMMIT")
        except BaseException as why:
            self._undo(transaction)
            # Faults of the store hit everybody; what is wrong with one request (a value, a constraint) is its own.
            if isinstance(why, sqlite3.OperationalError) or type(why) is sqlite3.DatabaseError:
                raise fault(why, self._path) from why
            raise

    def _apply(self, request: Request[object], transaction: Transaction) -> None:
        """A refusal is the request's alone, as long as it came before anything was written for it."""
        before = self._connection.total_changes
        request.error = None
        try:
            request.result = request.apply(transaction)
        except StoreFailed:
            raise
        except PointsmanError as why:
            if self._connection.total_changes != before:
                raise Conflict from why
            request.error = why

    def _undo(self, transaction: Transaction) -> None:
        for execution in transaction.touched:
            self._heads.pop(execution, None)
        if self._connection.in_transaction:
            self._connection.execute("ROLLBACK")

    def _stay_with_the_file(self) -> None:
        """A file that was moved away would take our writes with it, without a word from the system."""
        now = identity_of(self._path)
        if now is None:
            raise StoreMissing(f"{self._path} is gone", hint="Put it back: writing goes on as soon as it is there.")
        if now != self._identity:
            # Its log may lie beside it still: opening would mix the two.
            raise StoreMissing(f"another file took the place of {self._path}", hint="Restart, to use the other one.")


def tell(batch: list[Request[object]]) -> None:
    """Settle all futures of one loop in one call: waking a loop costs more than settling a future."""
    by_loop: dict[asyncio.AbstractEventLoop, list[Request[object]]] = {}
    for request in batch:
        by_loop.setdefault(request.loop, []).append(request)
    for loop, requests in by_loop.items():
        try:
            loop.call_soon_threadsafe(settle, requests)
        except RuntimeError:
            # The loop was closed: nobody waits any more. What was written is written.
            continue


def settle(requests: list[Request[object]]) -> None:
    for request in requests:
        request.settle()
