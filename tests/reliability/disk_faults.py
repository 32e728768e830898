"""The disk becomes full or read-only, or the file disappears, during work: errors are reported and nothing is lost.

In each round, executions append rows until a fault occurs. During the fault, every append must be refused with an error
for the operator, and all acknowledged data must be readable. After the fault, the same store continues.

Some faults are simulated by the disk's functions and affect the next write. Two are real: a file system without space,
and a limit of file size; there rows are appended until one is refused.
"""

from __future__ import annotations

import asyncio
import os
import resource
import subprocess
import tempfile
from collections.abc import Callable, Generator
from contextlib import contextmanager, suppress
from pathlib import Path
from random import Random
from typing import Final, TypeAlias
from unittest.mock import patch

from pointsman.errors import OperatorError, PointsmanError
from pointsman.store.sqlite import SqliteStore, open_sqlite, writer
from pointsman.testing.journals import ONE, row_of, rows_in
from tests.reliability.findings import Finding
from tests.reliability.recording_disk import RecordingDisk

FILE: Final = "store.db"
ROWS_MAX: Final = 12
DISK_BYTES: Final = 24_000_000
PAGE_BYTES: Final = 4096
FILLING_ROWS_MAX: Final = 200
Fault: TypeAlias = Callable[[RecordingDisk, Path], "Generator[None, None, None]"]


def full(disk: RecordingDisk, directory: Path) -> Generator[None, None, None]:
    """Allow no file to grow beyond the size of the largest one."""
    disk.room = max(os.path.getsize(directory / name) for name in os.listdir(directory) if "-shm" not in name)
    yield
    disk.room = None


def refused(disk: RecordingDisk, directory: Path) -> Generator[None, None, None]:
    disk.refuses = True
    yield
    disk.refuses = False


def vanished(disk: RecordingDisk, directory: Path) -> Generator[None, None, None]:
    """Move the file away and back."""
    (directory / FILE).rename(directory / "elsewhere")
    yield
    (directory / "elsewhere").rename(directory / FILE)


def without_room(disk: RecordingDisk, directory: Path) -> Generator[None, None, None]:
    """Fill the file system with other data."""
    ballast = directory / "ballast"
    with suppress(OSError), ballast.open("wb", buffering=0) as file:
        for _ in range(DISK_BYTES):
            file.write(bytes(PAGE_BYTES))
    yield
    ballast.unlink()


def limited(disk: RecordingDisk, directory: Path) -> Generator[None, None, None]:
    """Set an operating system limit, so that no file of this process can grow."""
    before = resource.getrlimit(resource.RLIMIT_FSIZE)
    most = max(os.path.getsize(directory / name) for name in os.listdir(directory) if "-shm" not in name)
    resource.setrlimit(resource.RLIMIT_FSIZE, (most, before[1]))
    try:
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, before)


FAULTS: Final[dict[str, Fault]] = {"full": full, "refused": refused, "vanished": vanished}
REAL_FAULTS: Final[dict[str, Fault]] = {"without room": without_room, "limited": limited}


class Round:
    """One store and one fault that occurs several times."""

    def __init__(self, store: SqliteStore, random: Random) -> None:
        self.store, self.random = store, random
        self.acknowledged = 0
        self.violations: list[str] = []

    async def append(self, *, must: bool) -> None:
        """Append one row, often a large one so that a full disk is noticed. `must`: the append has to succeed,
        otherwise it has to be refused.
        """
        value = self.random.randbytes(200_000).hex()
        try:
            await self.store.journal.append(ONE, row_of(self.acknowledged + 1, value))
        except OperatorError as why:
            if must:
                self.violations.append(f"refused once all was well again: {why}")
            elif not why.hint:
                self.violations.append(f"no hint what to do: {why}")
        except PointsmanError as why:
            self.violations.append(f"not an error for the operator: {why!r}")
        else:
            self.acknowledged += 1
            if not must:
                self.violations.append("a row was acknowledged that had no place")

    async def fill(self) -> None:
        """Append rows until one is refused correctly."""
        for _ in range(FILLING_ROWS_MAX):
            value = self.random.randbytes(200_000).hex()
            try:
                await self.store.journal.append(ONE, row_of(self.acknowledged + 1, value))
            except OperatorError as why:
                if not why.hint:
                    self.violations.append(f"no hint what to do: {why}")
                return
            except PointsmanError as why:
                self.violations.append(f"not an error for the operator: {why!r}")
                return
            self.acknowledged += 1
        self.violations.append(f"{FILLING_ROWS_MAX} rows were acknowledged where there was no place")

    async def all_there(self, when: str) -> None:
        rows = [row.seq for row in await rows_in(self.store.journal, ONE)]
        if rows != list(range(1, self.acknowledged + 1)):
            self.violations.append(f"{when}: {len(rows)} rows, {self.acknowledged} were acknowledged")


async def one_round(name: str, seed: str, times: int) -> list[str]:
    disk = RecordingDisk()
    with tempfile.TemporaryDirectory() as directory, disk.registered(), patch.object(writer, "LOOK_AT_FILE_S", -1.0):
        store = await open_sqlite(f"sqlite:///{directory}/{FILE}")
        try:
            around = Round(store, Random(seed))
            for _ in range(times):
                for _ in range(around.random.randint(1, ROWS_MAX)):
                    await around.append(must=True)
                with contextmanager(FAULTS[name])(disk, Path(directory)):
                    if name == "full":  # Rows that fit into the allocated pages are still accepted.
                        await around.fill()
                    for _ in range(2 if name != "full" else 0):
                        await around.append(must=False)
                    await around.all_there("while it was wrong")
                await around.append(must=True)
                await around.all_there("afterwards")
            around.violations += await store.verify()
            return [f"{name}: {line}" for line in around.violations]
        finally:
            await store.close()


async def one_real_round(name: str, seed: str, directory: Path) -> list[str]:
    """Run one round with a real fault of the operating system."""
    store = await open_sqlite(f"sqlite:///{directory}/{FILE}")
    try:
        around = Round(store, Random(seed))
        for _ in range(around.random.randint(1, ROWS_MAX)):
            await around.append(must=True)
        with contextmanager(REAL_FAULTS[name])(RecordingDisk(), directory):
            await around.fill()
            await around.all_there("while it was wrong")
        await around.append(must=True)
        await around.all_there("afterwards")
        around.violations += await store.verify()
    finally:
        await store.close()
    return [f"{name}: {line}" for line in around.violations]


@contextmanager
def own_file_system() -> Generator[Path | None, None, None]:
    """Mount a small file system in memory; yield None without the permission to mount."""
    with tempfile.TemporaryDirectory() as name:
        options = ["-t", "tmpfs", "-o", f"size={DISK_BYTES}", "tmpfs", name]
        try:
            mounted = subprocess.run(["mount", *options], check=False, capture_output=True).returncode == 0
        except OSError:
            mounted = False
        try:
            yield Path(name) if mounted else None
        finally:
            if mounted:
                subprocess.run(["umount", name], check=True)


def examine(size: int, seed: int) -> Finding:
    """Run `size` rounds of each fault."""
    violations: list[str] = []
    for name in FAULTS:
        violations += asyncio.run(one_round(name, f"{seed}:{name}", size))
    unable = ""
    for number in range(size):
        with tempfile.TemporaryDirectory() as directory:
            violations += asyncio.run(one_real_round("limited", f"{seed}:{number}", Path(directory)))
        with own_file_system() as directory:
            if directory is None:
                unable = "; no file system could be mounted to be filled for real"
            else:
                violations += asyncio.run(one_real_round("without room", f"{seed}:{number}", directory))
    figure = f"{size} × {', '.join([*FAULTS, *REAL_FAULTS])}: {len(violations)} violations{unable}"
    return Finding(figure, tuple(violations))
