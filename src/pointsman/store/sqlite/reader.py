"""Reader pool: a few threads with connections of their own. Reading works when writing does not."""

from __future__ import annotations

import asyncio
import sqlite3
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from queue import SimpleQueue
from typing import Final, TypeVar

from pointsman.store.errors import StoreClosed
from pointsman.store.sqlite.connection import ReadOnly, connect_reader, explained

T = TypeVar("T")

THREADS: Final = 2
"""One long read (an export, a verification) must not block the short ones."""


class ReaderPool:
    """Runs queries in threads. Each sees what was committed when it began.

    The connections are opened at once, and stay open: what was written can be read even while the file is away.
    """

    def __init__(self, path: Path, read_only: ReadOnly | None = None) -> None:
        self._path = path
        self._idle: SimpleQueue[sqlite3.Connection] = SimpleQueue()
        with explained(path):
            for _ in range(THREADS):
                self._idle.put(connect_reader(path, read_only))
        self._threads = ThreadPoolExecutor(THREADS, thread_name_prefix=f"pointsman-reader:{path.name}")
        self._closed = False

    async def run(self, query: Callable[[sqlite3.Connection], T]) -> T:
        if self._closed:
            raise StoreClosed(f"the store {self._path.name!r} was closed")
        return await asyncio.get_running_loop().run_in_executor(self._threads, self._query, query)

    def close(self) -> None:
        """Close the connections. Blocks until running queries are done."""
        self._closed = True
        self._threads.shutdown(wait=True)
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
