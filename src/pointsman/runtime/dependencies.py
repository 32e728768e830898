"""The dependencies of a driver: plans, executors, clock, store access."""

from __future__ import annotations

from typing import Protocol

from pointsman.engine.actions import WorkSpec
from pointsman.engine.commands import Execute, HoldChild, OutboxMessage, StartChild
from pointsman.engine.plan import Plan
from pointsman.engine.reports import Start
from pointsman.engine.state import ExecutionState
from pointsman.ports import Clock, Executor, Memory
from pointsman.runtime.deadlines import Deadlines
from pointsman.runtime.feed import Feed
from pointsman.store.api import EffectStore, StoreJournal
from pointsman.values import ExecutionId, Json, JsonObject


class ExecutorsFor(Protocol):
    """Finds who performs a command."""

    def executor_for(self, command: Execute) -> Executor:
        """Raises a `PointsmanError` if there is none."""
        ...

    def basis(self, command: Execute, spec: WorkSpec) -> Json:
        """Return what the result of an attempt depends on here, beside its definition and its input: models, tools."""
        ...

    async def has(self, need: str) -> bool:
        """Whether this process has what an attempt waits for, named as in `Failure.needs`."""
        ...


class Plans(Protocol):
    """Finds plans: of running executions, and of sub-workflows."""

    async def pinned(self, definition: str, options: JsonObject) -> Plan:
        """The plan of a definition by its digest, compiled as the options of its execution say."""
        ...

    async def child(self, reference: str, parent: ExecutionState, node: str) -> tuple[Plan, Start]:
        """The plan of a sub-workflow as the parent pinned it, and how to start it (without input). Raises a
        `PointsmanError` where this node of the parent may not call it."""
        ...


class RuntimeDeps(Protocol):
    """Journal, hands, time and neighbours of an execution."""

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
        """The name under which this runtime drives executions."""
        ...

    @property
    def deadlines(self) -> Deadlines: ...

    async def start_child(self, parent: ExecutionId, command: StartChild) -> None:
        """Start or find the child of a step, and report its end to the parent."""
        ...

    async def hold_child(self, parent: ExecutionId, command: HoldChild) -> None:
        """A limit stopped the parent: its child stands still with it, and what is below that."""
        ...

    async def tell(self, source: ExecutionId, order: OutboxMessage) -> None:
        """Carry out an order: returns when it is durable where it concerns. May be said again after a crash."""
        ...

    async def turn_ended(self, state: ExecutionState) -> None:
        """An execution has ended; its last row is durable. May be said again after a crash."""
        ...

    def failed(self, execution: ExecutionId, why: BaseException) -> None:
        """It is not driven here any more."""
        ...

    def over(self, state: ExecutionState) -> None:
        """Handle an execution that has ended with an empty outbox."""
        ...
