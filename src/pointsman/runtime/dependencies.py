"""The dependencies of a driver: plans, executors, clock, store access, and the feed that shows its rows to watchers."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable
from typing import NamedTuple, Protocol, TypeAlias

from pointsman.deadlines import Deadlines
from pointsman.engine.actions import WorkSpec
from pointsman.engine.commands import Execute, HoldChild, OutboxMessage, StartChild
from pointsman.engine.plan import Plan
from pointsman.engine.reports import Start
from pointsman.engine.state import ExecutionState
from pointsman.engine.steps import Step
from pointsman.ports import Clock, Executor, Memory, Row
from pointsman.runtime.ownership import Ownership
from pointsman.store.api import EffectStore, StoreJournal
from pointsman.values import ExecutionId, Json, JsonObject


class Committed(NamedTuple):
    """A committed row. `state` is live: read it at once and do not keep it."""

    execution: ExecutionId
    row: Row
    state: ExecutionState


class Delta(NamedTuple):
    """Live output inside a step: a token of text, a tool call. Never stored."""

    execution: ExecutionId
    step: Step
    delta: JsonObject


Watcher: TypeAlias = Callable[[Committed | Delta], None]
"""Called on the event loop; must not block or raise."""


class Feed:
    """Passes rows and deltas to watchers."""

    def __init__(self) -> None:
        self._watchers: list[Watcher] = []
        self.watched = False
        """A plain attribute because it is read for every row and every delta."""

    def watch(self, watcher: Watcher) -> Callable[[], None]:
        """Register a watcher; the returned function removes it."""
        self._have([*self._watchers, watcher])
        return lambda: self._have([other for other in self._watchers if other is not watcher])

    def _have(self, watchers: list[Watcher]) -> None:
        self._watchers, self.watched = watchers, bool(watchers)

    def show(self, update: Committed | Delta) -> None:
        for watcher in self._watchers:
            watcher(update)


class ExecutorsFor(Protocol):
    """Finds the executor of a command."""

    def executor_for(self, command: Execute) -> Executor:
        """Return the executor. Raises a `PointsmanError` for an unknown kind."""
        ...

    def basis(self, command: Execute, spec: WorkSpec) -> Json:
        """Return what the result depends on in this process, beside definition and input: models and tools."""
        ...

    async def has(self, need: str) -> bool:
        """Return whether this process has what an attempt waits for, named as in `Failure.needs`."""
        ...


class Plans(Protocol):
    """Finds the plans of running executions and of sub-workflows."""

    async def pinned(self, definition: str, options: JsonObject) -> Plan:
        """Return the plan of a definition by its digest, compiled with the options of its execution."""
        ...

    async def child(self, reference: str, parent: ExecutionState, node: str) -> tuple[Plan, Start]:
        """Return the plan of a sub-workflow as the parent pinned it, and its start report (without input).

        Raises a `PointsmanError` if this node of the parent may not call it.
        """
        ...


class RuntimeDeps(Protocol):
    """The services that a driver needs: journal, executors, clock and other executions."""

    @property
    def journal(self) -> StoreJournal: ...
    @property
    def effects(self) -> EffectStore: ...
    @property
    def memory(self) -> Memory: ...
    @property
    def executors(self) -> ExecutorsFor: ...
    @property
    def clock(self) -> Clock: ...
    @property
    def feed(self) -> Feed: ...
    @property
    def worker(self) -> str:
        """Return the name under which this runtime drives executions."""
        ...

    @property
    def ownership(self) -> Ownership: ...
    @property
    def deadlines(self) -> Deadlines: ...

    async def start_child(self, parent: ExecutionId, command: StartChild) -> None:
        """Start or find the child of a step, and report its end to the parent."""
        ...

    async def hold_child(self, parent: ExecutionId, command: HoldChild) -> None:
        """Pause the child of a halted parent, and the children below it."""
        ...

    async def tell(self, source: ExecutionId, order: OutboxMessage) -> None:
        """Deliver an outbox message; return when it is durable at the receiver. May be repeated after a crash."""
        ...

    async def turn_ended(self, state: ExecutionState) -> None:
        """Handle the end of an execution whose last row is durable. May be repeated after a crash."""
        ...

    def failed(self, execution: ExecutionId, why: BaseException) -> None:
        """Handle an execution that can no longer be driven here."""
        ...

    def over(self, state: ExecutionState) -> None:
        """Handle an execution that has ended with an empty outbox."""
        ...


class SystemClock:
    """Unix time; sleeping yields to the event loop."""

    def now(self) -> float:
        return time.time()

    async def sleep_until(self, at: float) -> None:
        """Sleep in short sections, because clocks are adjusted and machines suspend."""
        while (remaining_s := at - time.time()) > 0:  # noqa: ASYNC110 - it waits for a time, not for an event
            await asyncio.sleep(min(remaining_s, 60.0))
