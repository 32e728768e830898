"""The leader: the one process of a store that resumes executions without a caller.

    start ─▶ resume the executions that ran when their process ended
    then, once a second or when the next timer is due:
        passivate idle executions ─▶ rows in the store, and an entry in its list
        resume due executions     ─▶ timers, undelivered messages, parents of children that ended elsewhere
        run periodic jobs         ─▶ schedules
        at longer intervals       ─▶ resume executions without progress

A temporarily unavailable store (full disk, server away) is reported once and retried; a permanently lost store stops
the leader. One sleeper serves all, so a passivated execution costs neither memory nor time here. Executions of another
process (a command line) are left to it, unless that process is gone.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Iterable, Sequence
from typing import Final, Protocol, TypeAlias

from pointsman.errors import AuthorError, CallerError, Outage, PointsmanError
from pointsman.runtime.local import LocalRuntime, UnknownExecution
from pointsman.store.errors import JournalMoved, StoreClosed
from pointsman.store.records import ExecutionQuery, Summary
from pointsman.values import ExecutionId, Instant, Seconds

LOOKS_S: Final = Seconds(1.0)
"""Interval between queries of the store, to which other processes write as well."""
NEAR_S: Final = Seconds(5.0)
"""An execution whose next timer is this near is not passivated."""
AGAIN_S: Final = Seconds(60.0)
"""Delay before retrying executions that could not be resumed."""
SWEEPS_S: Final = Seconds(60.0)
ABANDONED_S: Final = Seconds(900.0)
"""An execution that no known process drives and that got no row for this long is resumed."""
STORE_AGAIN_S: Final = Seconds(5.0)
AT_ONCE: Final = 8
"""Number of executions that are resumed concurrently."""
PAGE: Final = 200
RUNNING: Final = frozenset({"running", "pending"})

Resume: TypeAlias = Callable[[ExecutionId], Awaitable[object]]
"""Opens an execution so that it continues here."""
ReportFailure: TypeAlias = Callable[[ExecutionId | None, BaseException], None]
"""Called with executions that could not be resumed; None: the store cannot be used for a while (an `Outage`), or a
periodic job failed.
"""


class PeriodicJob(Protocol):
    """A job that runs when its time comes."""

    async def next_due(self) -> float | None:
        """Return when it is due next (unix seconds); None: never."""
        ...

    async def fire(self, now: float) -> object:
        """Run the jobs that are due."""
        ...


def ignore(execution: ExecutionId | None, why: BaseException) -> None:
    """Ignore a failure."""


class Leader:
    """The leader of a store. Run it in one process per store, for the life of that process."""

    def __init__(
        self,
        runtime: LocalRuntime,
        take_up: Resume,
        *,
        chores: Sequence[PeriodicJob] = (),
        tell: ReportFailure = ignore,
    ) -> None:
        self._runtime = runtime
        self._take_up = take_up
        self._jobs = chores
        self._tell = tell
        self._put_off: dict[ExecutionId, float] = {}
        """Executions that could not be resumed, and when to retry."""
        self._resting: dict[PeriodicJob, float] = {}
        """Jobs that failed, and when to retry."""
        self._seen: dict[ExecutionId, tuple[int, float]] = {}
        """Executions driven elsewhere: the last row, and since when it is the last one."""
        self._swept_at = 0.0

    async def run(self) -> None:
        """Run until cancelled."""
        self._runtime.is_leading = True
        recovered, wrong = False, ""
        try:
            while True:
                try:
                    if not recovered:
                        await self.recover()
                        recovered = True
                    again, wrong = await self.look(), ""
                except Outage as why:
                    if why.code != wrong:
                        self._tell(None, why)
                    again, wrong = self._runtime.clock.now() + STORE_AGAIN_S, why.code
                await self._runtime.clock.sleep_until(again)
        finally:
            self._runtime.is_leading = False

    async def recover(self) -> None:
        """Resume all executions that ran when their process ended."""
        self._swept_at = self._runtime.clock.now()
        before: tuple[float, ExecutionId] | None = None
        while page := await self._list(ExecutionQuery(statuses=RUNNING, before=before, limit=PAGE)):
            await self._open(summary.execution for summary in page)
            before = page[-1].started, page[-1].execution
            await self.passivate_idle()

    async def look(self) -> float:
        """Do everything that is due; return when to check again."""
        await self.passivate_idle()
        now = self._runtime.clock.now()
        due = await self._list(ExecutionQuery(due=Instant(now), limit=PAGE))
        await self._open([*(summary.execution for summary in due), *await self._runtime.ownership.granted()])
        again = now + LOOKS_S
        for chore in self._jobs:
            at = await self._do(chore, now)
            again = again if at is None else min(again, max(at, now))
        if now - self._swept_at >= SWEEPS_S:
            self._swept_at = now
            await self._sweep(now)
        nearest = await self._list(ExecutionQuery(due=Instant(again), limit=1))
        wakes = nearest[0].wakes if nearest else None
        return again if wakes is None or wakes <= now else min(again, wakes)

    async def _do(self, chore: PeriodicJob, now: float) -> float | None:
        """Run a due job and return when it is due next. A failed job pauses; the others continue."""
        if (rests_until := self._resting.get(chore, 0.0)) > now:
            return rests_until
        try:
            at = await chore.next_due()
            if at is not None and at <= now:
                await chore.fire(now)
                at = await chore.next_due()
        except StoreClosed:
            raise
        except (AuthorError, CallerError) as why:
            self._tell(None, why)
            at = self._resting[chore] = now + AGAIN_S
        return at

    async def passivate_idle(self) -> None:
        """Drop the drivers of executions that only wait, together with their parents and children."""
        runtime = self._runtime
        horizon = runtime.clock.now() + NEAR_S
        for driver in [
            driver for driver in runtime.drivers.values() if driver.failure is not None and not driver.is_waited_for
        ]:
            runtime.drivers.pop(driver.execution, None)
            released = isinstance(driver.failure, Outage) and runtime.store.claims is not None  # It wakes at once.
            if not released and not isinstance(driver.failure, JournalMoved):
                self._put_off[driver.execution] = runtime.clock.now() + AGAIN_S
        for driver in runtime.children.resting(horizon):
            await runtime.park(driver)

    async def _open(self, executions: Iterable[ExecutionId]) -> None:
        """Resume executions. Raises an `Outage` if the store is unavailable, after resuming the others."""
        now = self._runtime.clock.now()
        drives = self._runtime.drives
        waiting = [
            execution for execution in executions if not drives(execution) and self._put_off.get(execution, 0.0) <= now
        ]
        limit = asyncio.Semaphore(AT_ONCE)
        outages: list[Outage] = []

        async def one_of_them(execution: ExecutionId) -> None:
            async with limit:
                try:
                    if await self._runtime.ownership.resume(execution):  # else it continues in another process
                        await self._take_up(execution)
                    self._put_off.pop(execution, None)
                except UnknownExecution:
                    self._put_off.pop(execution, None)  # It was deleted meanwhile.
                except Outage as why:
                    outages.append(why)  # Not specific to this execution: `run` reports the store once and retries all.
                except PointsmanError as why:
                    self._put_off[execution] = now + AGAIN_S
                    self._tell(execution, why)

        async with asyncio.TaskGroup() as group:
            for execution in waiting:
                group.create_task(one_of_them(execution))
        if outages:
            raise outages[0]

    async def _sweep(self, now: float) -> None:
        """Resume executions that no process drives."""
        previous, self._seen = self._seen, {}
        abandoned: list[ExecutionId] = []
        before: tuple[float, ExecutionId] | None = None
        while page := await self._list(ExecutionQuery(statuses=RUNNING, before=before, limit=PAGE)):
            before = page[-1].started, page[-1].execution
            for summary in page:
                name = summary.execution
                if self._runtime.drives(name):
                    continue
                last = await self._runtime.journal.last(name)
                known, since = previous.get(name, (last, now))
                if known == last and now - since >= ABANDONED_S:
                    abandoned.append(name)
                else:
                    self._seen[name] = last, since if known == last else now
        await self._open([*abandoned, *(name for name, at in self._put_off.items() if at <= now)])

    async def _list(self, query: ExecutionQuery) -> list[Summary]:
        return await self._runtime.store.executions.list(query)
