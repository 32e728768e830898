"""Connections to one SQLite file: addresses, opening, errors for an operator, and the threads that read."""

from __future__ import annotations

import asyncio
import math
import os
import shutil
import sqlite3
import tempfile
import threading
import time
from collections.abc import Callable, Generator
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing, contextmanager, suppress
from functools import partial
from pathlib import Path
from queue import SimpleQueue
from typing import Final, NamedTuple, TypeAlias, TypeVar
from urllib.parse import unquote

from pointsman.store.errors import (
    StoreClosed,
    StoreDamaged,
    StoreFailed,
    StoreForeign,
    StoreFull,
    StoreLocked,
    StoreMissing,
    StoreReadOnly,
)
from pointsman.store.sqlite.schema import add_seal_function, is_empty, refuse_foreign

READ_WAIT_MS: Final = 5000
"""How long a read waits for another process that repairs or folds the log."""
OLDEST: Final = (3, 37, 0)
"""First SQLite version with STRICT tables."""
ROOM_BYTES_MIN: Final = 65_536
"""Space for the index of a log: SQLite does not distinguish a full disk from a broken one when it cannot create it."""
WAL_RESET_FIXED: Final = (3, 51, 3)

DAMAGED: Final = "Restore a backup; `pointsman verify` lists what is damaged."

Identity: TypeAlias = tuple[int, int]
"""Device and number of a file; a file that replaces a moved one has a different identity."""


def path_of(url: str) -> Path:
    """Return the file of `sqlite:///relative`, `sqlite:////absolute` or `sqlite:///~/home`."""
    scheme, _, rest = url.partition("://")
    if scheme != "sqlite" or not rest.startswith("/") or rest == "/":
        raise StoreMissing(f"{url!r} names no file", hint="Write sqlite:///name.db, or sqlite:////absolute/name.db.")
    try:
        return Path(unquote(rest[1:])).expanduser().absolute()
    except (FileNotFoundError, RuntimeError):
        raise StoreMissing(
            f"{url!r} cannot be resolved: the working directory was deleted, or the home directory does not exist",
            hint="Write sqlite:////absolute/name.db.",
        ) from None


def identity_of(path: Path) -> Identity | None:
    """Return the identity of a file; None if there is none."""
    try:
        info = os.stat(path)
    except OSError:
        return None
    return info.st_dev, info.st_ino


def connect_writer(path: Path) -> sqlite3.Connection:
    """Open the only writing connection.

    Every commit reaches the disk before it returns. Checkpoints happen only on request. The connection does not wait
    for locks: its user decides whether waiting is allowed.
    """
    if sqlite3.sqlite_version_info < OLDEST:
        raise StoreFailed(
            f"SQLite {sqlite3.sqlite_version} is too old: STRICT tables came with 3.37",
            hint="Use a Python with a newer SQLite.",
        )
    connection = connect(f"{path.as_uri()}?mode=rwc")
    try:
        refuse_foreign(connection)
        if is_empty(connection):
            # An older file keeps its free pages.
            connection.execute("PRAGMA auto_vacuum = INCREMENTAL")
        # Overwrite deleted content.
        connection.execute("PRAGMA secure_delete = ON").fetchone()
        connection.execute("PRAGMA journal_mode = WAL").fetchone()
        connection.execute("PRAGMA synchronous = FULL")
        # On macOS a plain sync leaves the data in the disk's own cache. Elsewhere these settings have no effect.
        connection.execute("PRAGMA fullfsync = ON")
        connection.execute("PRAGMA checkpoint_fullfsync = ON")
        connection.execute("PRAGMA journal_size_limit = 67108864")
    except BaseException:
        connection.close()
        raise
    return connection


class ReadOnly(NamedTuple):
    """How to read a file that cannot be written, or whose directory cannot."""

    uri: str
    hint: str
    copy: Path | None = None
    """Directory of the copy that is read instead."""


def can_be_written(path: Path) -> bool:
    """Return whether the file and its directory, where its log lies, can be written."""
    return os.access(path, os.W_OK) and os.access(path.parent, os.W_OK)


def read_only_at(path: Path) -> ReadOnly | None:
    """Return how to read a file that cannot be written; None: it can be written or does not exist.

    SQLite cannot read every such file itself: its log needs an index beside it, which cannot be created there.
    """
    if not path.is_file() or can_be_written(path):
        return None
    hint = f"Make {path} and its directory writable."
    log = path.with_name(path.name + "-wal")
    if not log.is_file() or log.stat().st_size == 0:
        # All data are in the file, and a process that could write here would use a log.
        return ReadOnly(f"{path.as_uri()}?mode=ro&immutable=1", hint)
    uri = f"{path.as_uri()}?mode=ro"
    if path.with_name(path.name + "-shm").is_file():
        with suppress(sqlite3.Error), closing(connect(uri)) as connection:
            connection.execute("SELECT count(*) FROM sqlite_schema").fetchone()
            return ReadOnly(uri, hint)
    folder = Path(tempfile.mkdtemp(prefix="pointsman-read-"))
    shutil.copyfile(path, folder / path.name)
    shutil.copyfile(log, folder / log.name)
    return ReadOnly(f"{(folder / path.name).as_uri()}?mode=rw", hint, folder)


def connect_reader(path: Path, read_only: ReadOnly | None = None) -> sqlite3.Connection:
    """Open a connection that can only read; it never checkpoints."""
    connection = connect(f"{path.as_uri()}?mode=rw" if read_only is None else read_only.uri)
    try:
        connection.execute(f"PRAGMA busy_timeout = {READ_WAIT_MS}")
        connection.execute("PRAGMA query_only = 1")
        # The first read opens the log by its name: it must not happen after the file was moved.
        connection.execute("SELECT count(*) FROM sqlite_schema").fetchone()
    except BaseException:
        connection.close()
        raise
    return connection


def connect(uri: str) -> sqlite3.Connection:
    connection = sqlite3.connect(
        uri, uri=True, timeout=0, isolation_level=None, check_same_thread=False, cached_statements=64
    )
    connection.execute("PRAGMA wal_autocheckpoint = 0")
    add_seal_function(connection)
    return connection


@contextmanager
def explained(path: Path) -> Generator[None, None, None]:
    """Convert SQLite's errors into ours."""
    try:
        yield
    except sqlite3.Error as why:
        raise fault(why, path) from why
    except UnicodeDecodeError as why:  # The binding decodes names of a damaged schema, also in error messages.
        raise StoreDamaged(f"{path.name}: {why}", hint=DAMAGED) from why


def fault(why: sqlite3.Error, path: Path) -> StoreFailed:
    """Return an SQLite error as a store error with a hint for the operator."""
    # Errors that the binding itself finds (a closed connection, an unsupported type) have no code.
    code = getattr(why, "sqlite_errorcode", sqlite3.SQLITE_ERROR) & 0xFF
    message = f"{path.name}: {why}"
    match code:
        case sqlite3.SQLITE_FULL:
            return StoreFull(message, hint="Free space on the disk; no restart is needed.")
        case sqlite3.SQLITE_READONLY | sqlite3.SQLITE_PERM | sqlite3.SQLITE_AUTH:
            return StoreReadOnly(message, hint=f"Make {path} and its directory writable.")
        case sqlite3.SQLITE_BUSY | sqlite3.SQLITE_LOCKED:
            return StoreLocked(message, hint="End the other process that holds it, or give each a store of its own.")
        case sqlite3.SQLITE_CANTOPEN if path.is_file() and not os.access(path.parent, os.W_OK):
            return StoreReadOnly(message, hint=f"Make {path} and its directory writable.")
        case sqlite3.SQLITE_CANTOPEN:
            return StoreMissing(message, hint=f"Check that the directory {path.parent} exists and is writable.")
        case sqlite3.SQLITE_NOTADB:
            return StoreForeign(message, hint="Give the store a file of its own.")
        case sqlite3.SQLITE_CORRUPT:
            return StoreDamaged(message, hint=DAMAGED)
        case sqlite3.SQLITE_IOERR if room_at(path) < ROOM_BYTES_MIN:
            return StoreFull(message, hint="Free space on the disk; no restart is needed.")
        case sqlite3.SQLITE_IOERR:
            return StoreFailed(message, hint="The disk reports an error: check the system log.")
        case _:
            missing = "Use a Python whose SQLite has full-text search (FTS5)." if "fts5" in message else ""
            return StoreFailed(message, hint=missing)


def room_at(path: Path) -> float:
    """Return the free bytes at a file's location; infinite if unknown."""
    try:
        return shutil.disk_usage(path.parent).free
    except OSError:
        return math.inf


def version_warnings() -> list[str]:
    """Return warnings for an operator about the SQLite version of this Python."""
    if sqlite3.sqlite_version_info >= WAL_RESET_FIXED:
        return []
    warning = (
        f"SQLite {sqlite3.sqlite_version} has a rare bug, fixed in 3.51.3: two connections that checkpoint at once can"
        " damage the file. Each process checkpoints in one thread only; let no two share it, or use a newer SQLite."
    )
    return [warning]


T = TypeVar("T")

THREADS: Final = 2
"""One long read (an export, a verification) must not block the short ones."""
BRIEF_S_MAX: Final = 0.002
"""Longest usual duration of a brief query that may run on the event loop's thread."""
BRIEF_IN_A_ROW_S_MAX: Final = 0.005
"""After this total time one brief query goes through a thread, so that the event loop runs."""


class ReaderPool:
    """Runs queries in threads. Each sees what was committed when it began.

    The connections are opened at once, and stay open: what was written can be read even while the file is away.

    Waking a thread and being woken by it costs several times as much as finding a row by its key: brief queries
    therefore run on the thread of the caller while they are fast.
    """

    def __init__(self, path: Path, read_only: ReadOnly | None = None) -> None:
        self._path = path
        self._idle: SimpleQueue[sqlite3.Connection] = SimpleQueue()
        with explained(path):
            for _ in range(THREADS):
                self._idle.put(connect_reader(path, read_only))
            self._own = connect_reader(path, read_only)
        self._own.execute("PRAGMA busy_timeout = 0")
        self._own_in_use = threading.Lock()
        self._brief_s, self._in_a_row_s = 0.0, 0.0
        self._threads = ThreadPoolExecutor(THREADS, thread_name_prefix=f"pointsman-reader:{path.name}")
        self._closed = False

    async def run(self, query: Callable[[sqlite3.Connection], T]) -> T:
        if self._closed:
            raise StoreClosed(f"the store {self._path.name!r} was closed")
        return await asyncio.get_running_loop().run_in_executor(self._threads, self._query, query)

    async def run_brief(self, query: Callable[[sqlite3.Connection], T]) -> T:
        """Run a query that finds a few short rows by their keys."""
        is_slow = self._brief_s > BRIEF_S_MAX or self._in_a_row_s > BRIEF_IN_A_ROW_S_MAX
        if is_slow or not self._own_in_use.acquire(blocking=False):
            self._in_a_row_s = 0.0
            return await self.run(partial(self._timed, query))
        try:
            if not self._closed:
                return self._timed(query, self._own)
        except (sqlite3.Error, UnicodeDecodeError):
            pass  # The thread below waits if the file is locked, and explains other errors.
        finally:
            self._own_in_use.release()
        return await self.run(query)

    def _timed(self, query: Callable[[sqlite3.Connection], T], connection: sqlite3.Connection) -> T:
        began = time.perf_counter()
        try:
            return query(connection)
        finally:
            took = time.perf_counter() - began
            self._brief_s += 0.2 * (took - self._brief_s)
            self._in_a_row_s += took

    def close(self) -> None:
        """Close the connections. Blocks until running queries are done."""
        self._closed = True
        self._threads.shutdown(wait=True)
        with self._own_in_use:
            self._own.close()
        while not self._idle.empty():
            self._idle.get().close()

    def _query(self, query: Callable[[sqlite3.Connection], T]) -> T:
        # There are as many connections as threads: one is always idle for this one.
        connection = self._idle.get()
        try:
            with explained(self._path):
                return query(connection)
        finally:
            self._idle.put(connection)
