"""Measure one shape in a process of its own. Standard library only: the environments of the peers import it too.

    case(size, place) ─▶ run()   once, to warm up: code is specialised, graphs are compiled, caches are filled
                      ─▶ run()   measured
                                 in durable shapes between two loops of bare commits in the same process

A case counts each call of a node function in `CALLS`; times are divided by these calls, so that a framework gains
nothing from visits of control that others do not make.
"""

from __future__ import annotations

import asyncio
import gc
import json
import resource
import sqlite3
import sys
import tempfile
import time
from collections.abc import AsyncGenerator, Awaitable, Callable, Generator, Mapping
from contextlib import AbstractAsyncContextManager, AbstractContextManager, contextmanager
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Final, TypeAlias

COMMITS: Final = 300
ROW: Final = b"x" * 200


class Spent:
    """CPU time of all threads of this process, and wall time, since it was made, in µs."""

    def __init__(self) -> None:
        self._cpu, self._wall = time.process_time(), time.perf_counter()

    def cpu(self) -> float:
        return (time.process_time() - self._cpu) * 1e6

    def wall(self) -> float:
        return (time.perf_counter() - self._wall) * 1e6


class Calls:
    """The number of calls of node functions."""

    def __init__(self) -> None:
        self.count = 0


CALLS: Final = Calls()


async def answer() -> int:
    """Answer at once: the node function of most shapes."""
    CALLS.count += 1
    return 1


def answer_sync() -> int:
    """Answer at once, as a function that is not async."""
    CALLS.count += 1
    return 1


async def add_one(number: int) -> int:
    """Return the number after this one."""
    CALLS.count += 1
    return number + 1


async def wide(keys: int) -> dict[str, int]:
    """Return an object with that many keys."""
    CALLS.count += 1
    return {f"key_{number}": number for number in range(keys)}


async def look(place: str) -> str:
    """Look at a place and describe it."""
    CALLS.count += 1
    return f"There is nothing at {place}."


@dataclass(frozen=True)
class Place:
    """The store of one measurement, and the address of the model server."""

    store: str
    """`memory`, or the kind of durable store."""
    folder: Path
    """A new, empty folder."""
    address: str
    """Of the model server, up to `/v1`; or of the database; else empty."""


Run: TypeAlias = Callable[[], Awaitable[None]]
"""Perform the shape once, from its start to its checked result."""
Case: TypeAlias = Callable[[int, Place], AbstractAsyncContextManager[Run]]
Runs: TypeAlias = AsyncGenerator[Run, None]
"""Return type of the generator behind a case."""


@dataclass(frozen=True)
class Sample:
    """The figures of one process: times in µs per call of a node function."""

    calls: int
    first: float
    """CPU of the first run, with everything that happens only once."""
    cpu: float
    wall: float
    bare_cpu: float
    """CPU of one bare commit; 0 where nothing is durable."""
    bare_wall: float
    peak_mb: float


async def measure(case: Case, size: int, place: Place) -> Sample:
    spent = Spent()
    async with case(size, place) as run:
        await run()
        first = spent.cpu() / max(CALLS.count, 1)
        bare = bare_commits(place, "before.db")
        gc.collect()  # Otherwise garbage of the preparation is collected in some measured runs only.
        CALLS.count, spent = 0, Spent()
        await run()
        cpu, wall, calls = spent.cpu(), spent.wall(), CALLS.count
        assert calls, "no node function was called"
        after = bare_commits(place, "after.db")
    return Sample(
        calls, first, cpu / calls, wall / calls, (bare[0] + after[0]) / 2, (bare[1] + after[1]) / 2, peak_mb()
    )


def peak_mb() -> float:
    """Return the greatest resident size. On Linux `ru_maxrss` includes that of the parent process, `VmHWM` does not."""
    if sys.platform == "linux":
        status = Path("/proc/self/status").read_text(encoding="utf-8")
        return int(status.partition("VmHWM:")[2].split()[0]) / 1024
    unit = 1 if sys.platform == "darwin" else 1024
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * unit / 1024**2


def bare_commits(place: Place, name: str) -> tuple[float, float]:
    """CPU and wall time of one bare SQLite commit in a new file, in µs; zeros where nothing is durable."""
    return each(in_sqlite(place.folder / name)) if place.store.startswith("sqlite") else (0.0, 0.0)


def each(connected: AbstractContextManager[Callable[[], object]]) -> tuple[float, float]:
    with connected as commit_one:
        for _ in range(COMMITS // 10):
            commit_one()
        spent = Spent()
        for _ in range(COMMITS):
            commit_one()
        return spent.cpu() / COMMITS, spent.wall() / COMMITS


@contextmanager
def in_sqlite(path: Path) -> Generator[Callable[[], object], None, None]:
    connection = sqlite3.connect(path, isolation_level=None)
    connection.execute("PRAGMA journal_mode = WAL").fetchone()
    connection.execute("PRAGMA synchronous = FULL")
    connection.execute("CREATE TABLE rows (id INTEGER PRIMARY KEY, data BLOB)")
    yield lambda: connection.execute("INSERT INTO rows (data) VALUES (?)", (ROW,))
    connection.close()


def main(cases: Mapping[str, Case]) -> None:
    """Measure the case that the command line names (`SHAPE SIZE STORE [ADDRESS]`) and print the sample as JSON."""
    shape, size, store, *rest = sys.argv[1:]
    with tempfile.TemporaryDirectory(prefix="bench-") as folder:
        place = Place(store, Path(folder), rest[0] if rest else "")
        sample = asyncio.run(measure(cases[shape], int(size), place))
    sys.stdout.write(json.dumps(asdict(sample)) + "\n")
