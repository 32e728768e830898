"""The keeper of an SQLite store: a lock on a file beside it, and an epoch in it.

The system gives the lock up with the process that holds it, however that ends. Should two believe that they hold it
(the file of the lock was deleted, a network file system forgot it), the epoch tells them apart.
"""

from __future__ import annotations

import asyncio
import fcntl
import os
import time
from collections.abc import Callable
from pathlib import Path
from typing import Final

from pointsman.journal.faults import KeeperSuperseded, StoreReadOnly
from pointsman.journal.keeping import Keep, kept_by
from pointsman.journal.sqlite.reader import Reader
from pointsman.journal.sqlite.transaction import Transaction
from pointsman.journal.sqlite.writer import Writer

STANDBY_S: Final = 0.2
"""How often who stands by looks whether the keeper is gone."""
RAISE: Final = "UPDATE keeper SET epoch = epoch + 1, holder = ?, since = ? RETURNING epoch"


class SqliteKeeper:
    """Keeps the store for one opening of it."""

    def __init__(self, path: Path, writer: Writer, reader: Reader) -> None:
        self._path = path.with_name(path.name + "-keeper")
        self._writer = writer
        self._reader = reader
        self._file: int | None = None

    async def keep(self, holder: str, *, wait: bool) -> Keep:
        file = self._locked()
        while file is None:
            if not wait:
                raise await self._reader.run(
                    lambda connection: kept_by(*connection.execute("SELECT holder, since FROM keeper").fetchone())
                )
            await asyncio.sleep(STANDBY_S)
            file = self._locked()
        try:
            epoch = await self._writer.submit(lambda transaction: raise_epoch(transaction, holder))
        except BaseException:
            os.close(file)
            raise
        self._file = file
        keep = Keep(holder, epoch, self._released)
        self._writer.prove(epoch, in_loop(keep.lost.set))
        return keep

    def close(self) -> None:
        """Give the lock up, as the end of the process would."""
        if self._file is not None:
            os.close(self._file)
            self._file = None

    async def _released(self) -> None:
        try:
            await self._writer.submit(lambda transaction: transaction.execute("UPDATE keeper SET holder = ''"))
        except KeeperSuperseded:
            # There is nothing to step back from; and what is refused stays refused.
            return
        finally:
            self.close()
        self._writer.prove(None, lambda: None)

    def _locked(self) -> int | None:
        """The open file, if its lock was free."""
        try:
            file = os.open(self._path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o644)
        except OSError as why:
            raise StoreReadOnly(
                f"{self._path.name} cannot be opened: {why.strerror}", hint="Make its directory writable."
            ) from why
        try:
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            os.close(file)
            return None
        return file


def raise_epoch(transaction: Transaction, holder: str) -> int:
    return int(transaction.execute(RAISE, (holder, time.time())).fetchone()[0])


def in_loop(call: Callable[[], None]) -> Callable[[], None]:
    """The call, to be made from any thread; nobody is told any more once the loop is closed."""
    loop = asyncio.get_running_loop()

    def told() -> None:
        if not loop.is_closed():
            loop.call_soon_threadsafe(call)

    return told
