"""Leader of an SQLite store: a lock on a file beside the store, and an epoch in the store.

The operating system releases the lock when the process ends, in whatever way. A stopped process (SIGSTOP, a debugger)
keeps the lock. A leader therefore writes a counter into the file every two seconds; when the counter stops, the standby
raises the epoch and replaces the lock file by its own. If two processes believe they hold the lock, the epoch decides.
"""

from __future__ import annotations

import asyncio
import itertools
import os
import signal
import sys
import time
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from typing import Final

from pointsman.file_locks import OPEN_FLAGS, lock_file, write_at_start
from pointsman.store.coordination import BEAT_S, Leadership, Lease, leader_exists
from pointsman.store.errors import LeaderSuperseded, StoreFailed, StoreLocked, StoreReadOnly
from pointsman.store.sqlite.connection import ReaderPool
from pointsman.store.sqlite.writer import Transaction, WriterThread

STANDBY_S: Final = 0.2
"""How often a standby checks whether the leader is gone."""
EPOCH: Final = "SELECT epoch FROM leader"
RAISE: Final = "UPDATE leader SET epoch = epoch + 1, holder = ?, since = ? RETURNING epoch"
RAISE_AFTER: Final = "UPDATE leader SET epoch = epoch + 1, holder = ?, since = ? WHERE epoch = ? RETURNING epoch"
BEAT_BYTES: Final = 64


class SqliteLeader:
    """The leader role of one opened store."""

    def __init__(self, path: Path, writer: WriterThread, reader: ReaderPool) -> None:
        self._path = path.with_name(path.name + "-keeper")
        self._writer = writer
        self._reader = reader
        self._file: int | None = None
        self._beating: asyncio.Task[None] | None = None

    async def lead(self, holder: str, *, wait: bool) -> Leadership:
        file, epoch = self._locked(), None
        if file is None and not wait:
            raise await self._reader.run(
                lambda connection: leader_exists(*connection.execute("SELECT holder, since FROM leader").fetchone())
            )
        if file is None:
            file, epoch = await self._stood_by(holder)
        try:
            if epoch is None:
                epoch = await self._writer.submit(lambda transaction: raise_epoch(transaction, holder))
        except BaseException:
            os.close(file)
            raise
        self._file = file
        keep = Leadership(holder, epoch, self._released)
        self._writer.prove(epoch, in_loop(keep.lost.set))
        self._beating = asyncio.get_running_loop().create_task(self._beat(file, epoch, keep.lost))
        return keep

    async def _stood_by(self, holder: str) -> tuple[int, int | None]:
        """Wait for the lock. Return it when its holder releases it, or, when the holder stands still, with the
        raised epoch.
        """
        lease = Lease(asyncio.get_running_loop().time)
        while True:
            await asyncio.sleep(STANDBY_S)
            if (file := self._locked()) is not None:
                return file, None
            epoch = await self._epoch()
            if lease.is_over((epoch, self._shown())) and (lock := await self._taken_from(epoch, holder)) is not None:
                return lock

    async def _taken_from(self, current: int, holder: str) -> tuple[int, int] | None:
        """Take the role from a leader that stands still, raising the epoch first so that it can write nothing more.

        None: another process was faster, or the leader was stopped in the middle of a write.
        """

        if sys.platform == "win32":
            return None  # A file that another process holds open cannot be replaced there.

        def raised(transaction: Transaction) -> int | None:
            row = transaction.execute(RAISE_AFTER, (holder, time.time(), current)).fetchone()
            return None if row is None else int(row[0])

        try:
            epoch = await self._writer.submit(raised)
        except StoreLocked:
            # It was stopped in the middle of a write, whose lock only it can release. It will finish that write; the
            # epoch is raised before its next one.
            if not wake(self._shown()):
                return None
            try:
                epoch = await self._writer.submit(raised)
            except StoreLocked:
                return None
        return None if epoch is None else (self._replaced(), epoch)

    def _replaced(self) -> int:
        """Replace the lock file that a stopped process holds by a new, locked one."""
        fresh = self._path.with_name(f"{self._path.name}-{os.getpid()}")
        file = os.open(fresh, os.O_RDWR | os.O_CREAT | OPEN_FLAGS, 0o644)
        lock_file(file)  # No other process knows this name.
        os.replace(fresh, self._path)
        return file

    async def _epoch(self) -> int:
        return await self._reader.run(lambda connection: int(connection.execute(EPOCH).fetchone()[0]))

    def _shown(self) -> bytes:
        """Return the last heartbeat of the leader."""
        try:
            return self._path.read_bytes()[:BEAT_BYTES]
        except OSError:
            return b""

    async def _beat(self, file: int, epoch: int, superseded: asyncio.Event) -> None:
        """Write the heartbeat, and detect that another process took over while this one was stopped."""
        for count in itertools.count():
            with suppress(OSError):  # With a full disk, the epoch decides.
                write_at_start(file, f"{os.getpid()} {began_at(os.getpid())} {count}".ljust(BEAT_BYTES).encode())
            with suppress(StoreFailed):  # The next round checks again.
                if not self._is_in_place(file) and await self._epoch() != epoch:
                    superseded.set()
                    return
            await asyncio.sleep(BEAT_S)

    def _is_in_place(self, file: int) -> bool:
        try:
            return os.path.samestat(os.stat(self._path), os.fstat(file))
        except OSError:
            return False

    async def stop(self) -> None:
        """Stop the heartbeat; the lock stays held."""
        if self._beating is not None:
            self._beating.cancel()
            await asyncio.wait([self._beating])
            self._beating = None

    def close(self) -> None:
        """Release the lock, as the end of the process would. Call `stop` first."""
        if self._file is not None:
            os.close(self._file)
            self._file = None

    async def _released(self) -> None:
        await self.stop()
        try:
            await self._writer.submit(lambda transaction: transaction.execute("UPDATE leader SET holder = ''"))
        except LeaderSuperseded:
            # There is no role to step back from; rejected writes stay rejected.
            return
        finally:
            self.close()
        self._writer.prove(None, lambda: None)

    def _locked(self) -> int | None:
        """Return the open lock file if its lock was free."""
        try:
            file = os.open(self._path, os.O_RDWR | os.O_CREAT | OPEN_FLAGS, 0o644)
        except OSError as why:
            raise StoreReadOnly(
                f"{self._path.name} cannot be opened: {why.strerror}", hint="Make its directory writable."
            ) from why
        if not lock_file(file):
            os.close(file)
            return None
        return file


def began_at(process: int) -> str:
    """Return when a process of this machine started, in ticks since boot; empty: no such process, or unknown."""
    try:
        return Path(f"/proc/{process}/stat").read_text().rpartition(")")[2].split()[19]
    except (OSError, IndexError):
        return ""


def wake(sign: bytes) -> bool:
    """Resume a stopped leader (SIGCONT) if it is a process of this machine. Harmless for one that runs.

    False without /proc, because another process may have the id of the leader by now.
    """
    if sys.platform != "linux":
        return False
    parts = sign.decode(errors="replace").split()
    if len(parts) != 3 or not parts[0].isdecimal() or began_at(int(parts[0])) != parts[1]:
        return False
    try:
        os.kill(int(parts[0]), signal.SIGCONT)
    except OSError:
        return False
    return True


def raise_epoch(transaction: Transaction, holder: str) -> int:
    return int(transaction.execute(RAISE, (holder, time.time())).fetchone()[0])


def in_loop(call: Callable[[], None]) -> Callable[[], None]:
    """Wrap a call so that any thread can schedule it on the loop; no effect once the loop is closed."""
    loop = asyncio.get_running_loop()

    def told() -> None:
        if not loop.is_closed():
            loop.call_soon_threadsafe(call)

    return told
