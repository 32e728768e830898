"""Processes that drive executions: their names, and the detection that another process writes to an execution.

A name is `host/process/start/number`. Process ids are reused, so a name also holds the process's start time (in clock
ticks since boot, where the system reports it). `number` separates runtimes of one process. Only processes of this
machine can be checked; those of other machines count as alive.

    twice a second: a row this process did not write? ─▶ no: nothing else is read
                              └─ yes ─▶ the driver is lost: work cancelled, timers dropped, waiting callers notified

A lost execution is checked further: once one of its steps waits for a worker that this process can be, it continues
here. Without this check a cancelled execution would run here until its next row is refused, as long as a tool or a
model takes. One query covers all executions of the process; none runs without executions or with a private store.
"""

from __future__ import annotations

import asyncio
import os
import socket
from collections.abc import Awaitable, Callable, Mapping
from contextlib import suppress
from itertools import count
from pathlib import Path
from typing import Final

from pointsman.errors import PointsmanError
from pointsman.platforms import process_exists
from pointsman.ports import Clock
from pointsman.runtime.dependencies import SystemClock
from pointsman.runtime.driver import Driver
from pointsman.store.api import Store
from pointsman.store.errors import JournalMoved
from pointsman.values import ExecutionId, Seconds

_LIVE: Final[set[str]] = set()
"""The names of the open runtimes of this process."""
_NUMBERS: Final = count(1)
_STATE, _STARTED = 0, 19
"""Positions in `/proc/PID/stat` after the program name."""


def open_worker() -> str:
    """Return the name of a new runtime in this process."""
    pid = os.getpid()
    name = f"{socket.gethostname()}/{pid}/{_started(pid) or ''}/{next(_NUMBERS)}"
    _LIVE.add(name)
    return name


def close_worker(name: str) -> None:
    """Mark a runtime as closed; it drives nothing any more."""
    _LIVE.discard(name)


def is_gone(name: str) -> bool:
    """Return whether the runtime with this name is known to have ended."""
    host, _, rest = name.partition("/")
    pid, _, rest = rest.partition("/")
    if host != socket.gethostname() or not pid.isdigit():
        return False
    if _started(int(pid)) != rest.partition("/")[0]:
        return True
    return int(pid) == os.getpid() and name not in _LIVE


def _started(pid: int) -> str | None:
    """Return when a process of this machine started, empty if the system does not report it; None: no such process."""
    try:
        stat = Path(f"/proc/{pid}/stat").read_text(encoding="utf-8", errors="replace")
    except OSError:
        return "" if process_exists(pid) else None
    fields = stat.rpartition(")")[2].split()
    return None if fields[_STATE] in ("Z", "X") else fields[_STARTED]


LOOKS_S: Final = Seconds(0.5)
SHARE_MAX: Final = 20
"""Minimum pause between checks, as a multiple of the duration of one: checks take at most a twentieth of the time."""


class ForeignWriters:
    """Checks for rows of other processes while any execution is driven here."""

    def __init__(
        self,
        store: Store,
        drivers: Mapping[ExecutionId, Driver],
        clock: Clock,
        *,
        take_work: Callable[[ExecutionId], Awaitable[object]],
    ) -> None:
        """Call `take_work` for each execution lost to another process, twice a second.

        Other processes live in real time: a runtime with another clock is alone with its store.
        """
        self._take_work = take_work
        self._store = store
        self._drivers = drivers
        self._looks = store.shared and isinstance(clock, SystemClock)
        self._task: asyncio.Task[None] | None = None

    def watch(self) -> None:
        """Start checking, because there is a driver. Free if the check runs already."""
        if self._task is None and self._looks:
            self._task = asyncio.get_running_loop().create_task(self._run())

    async def close(self) -> None:
        if self._task is not None:
            self._task.cancel()
            await asyncio.wait([self._task])

    async def _run(self) -> None:
        loop = asyncio.get_running_loop()
        wait_s: float = LOOKS_S
        try:
            while self._drivers:
                await asyncio.sleep(wait_s)
                began = loop.time()
                # Writers report errors of the store; here the check is only repeated.
                with suppress(PointsmanError):
                    await self._look()
                wait_s = max(LOOKS_S, (loop.time() - began) * SHARE_MAX)
        finally:
            self._task = None

    async def _look(self) -> None:
        driven = [name for name, driver in self._drivers.items() if driver.failure is None]
        for name, last in (await self._store.ends(driven)).items():
            driver = self._drivers.get(name)
            if driver is not None:
                driver.on_foreign_row(last)
        names = [name for name, driver in self._drivers.items() if isinstance(driver.failure, JournalMoved)]
        for name in names:
            await self._take_work(name)
