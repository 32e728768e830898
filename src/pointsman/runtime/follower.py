"""A follower: the state of an execution that another runtime owns, as this runtime reads it.

    row of the owner ─▶ notification ─▶ read, fold ─▶ waiters         report ─▶ mailbox ─▶ owner ─▶ row, or refusal

It performs nothing. The verbs of the domains use it like a driver: a report that it delivers is decided by the owner.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Sequence
from typing import Protocol
from weakref import finalize, ref

from pointsman.engine.events.steps import Event
from pointsman.engine.fold.dispatch import begin_decision, fold
from pointsman.engine.plan import Plan
from pointsman.engine.reports import MigrationRequested, Report
from pointsman.engine.state import ExecutionState
from pointsman.ports import Row
from pointsman.runtime.dependencies import RuntimeDeps
from pointsman.runtime.driver import Driver
from pointsman.runtime.ownership import Mailbox
from pointsman.store.coordination import Listener
from pointsman.values import ExecutionId

LOOK_S = 1.0
"""How often a waiting follower reads without a notification."""


class Followed(Protocol):
    """Calls back soon after an execution got rows, until the returned function is called."""

    def follow(self, execution: ExecutionId, listener: Listener) -> Callable[[], None]: ...


class Follower(Driver):
    """Reads an execution and sends reports to its owner."""

    def __init__(
        self,
        execution: ExecutionId,
        plan: Plan,
        state: ExecutionState,
        world: RuntimeDeps,
        *,
        mailbox: Mailbox,
        store: Followed,
        changed: Callable[[Follower], Awaitable[None]],
        take_over: Callable[[ExecutionId], Awaitable[object]],
    ) -> None:
        """`changed` is called after further rows were read, `take_over` once a second while a caller waits: the owner
        may be gone."""
        super().__init__(execution, plan, state, world)
        self.below: dict[ExecutionId, Driver] = {}
        """The sub-workflows that it waits for."""
        self._mailbox = mailbox
        self._reading = asyncio.Lock()
        self._moved = changed
        self._take_over = take_over
        self._store = store
        me = ref(self)

        def told() -> None:
            if (follower := me()) is not None and not follower.tasks:
                follower.spawn(follower.read())

        finalize(self, store.follow(execution, told))

    async def deliver(self, report: Report) -> Sequence[Event]:
        """Let the owner decide a report; return its events. Raises the owner's refusal."""
        seq = await self._mailbox.wake(self.execution, report)
        rows = await self.catch_up()
        if seq == 0:
            return ()
        if not any(row.seq == seq for row in rows):
            rows = [row async for row in self.journal.read(self.execution, after=seq - 1)]
        return next((row.events for row in rows if row.seq == seq), ())

    async def leave(self, report: Report) -> None:
        await self.deliver(report)

    async def move(self, plan: Plan, report: MigrationRequested) -> None:
        await self.deliver(report)
        self.plan = plan

    async def catch_up(self) -> list[Row]:
        """Fold the rows that the owner has written since the last look, and return them."""
        rows: list[Row] = []
        async with self._reading:
            async for row in self.journal.read(self.execution, after=self.state.seq):
                begin_decision(self.state, row.seq, row.at)
                for event in row.events:
                    fold(self.state, event)
                rows.append(row)
        if rows:
            self.notify()
            await self._moved(self)
        return rows

    async def read(self) -> None:
        """Catch up with the owner."""
        await self.catch_up()

    def recover(self) -> None:
        """Do nothing: the owner carries out the commands."""

    def offer(self) -> None:
        """Do nothing: the owner decides where its steps run."""

    async def until(self, holds: Callable[[], bool]) -> None:
        """Return when `holds` is true of the state in the journal."""
        await self.catch_up()
        while self.successor is None and not holds():
            future: asyncio.Future[None] = asyncio.get_running_loop().create_future()
            self._changed.append(future)
            done, _ = await asyncio.wait({future}, timeout=LOOK_S)
            if not done:
                await self._take_over(self.execution)
            await self.catch_up()
        if self.successor is not None:
            await self.successor.until(holds)
