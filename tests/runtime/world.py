"""A world for the runtime: executors with given behaviour, and plans from small documents."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Sequence
from itertools import pairwise

from pointsman.definition.model.workflow import WorkflowDefinition
from pointsman.engine.actions import WorkSpec
from pointsman.engine.commands import Execute
from pointsman.engine.compile import compile_workflow
from pointsman.engine.plan import Plan
from pointsman.engine.reports import Start, WorkDone, WorkFailed
from pointsman.engine.state import ExecutionState
from pointsman.ports import Clock, ExecutionPort, Executor, Row
from pointsman.runtime.dependencies import Feed, SystemClock
from pointsman.runtime.local import LocalRuntime
from pointsman.store.api import Store, StoreJournal
from pointsman.store.memory import open_memory
from pointsman.store.records import EffectRecord, Summary
from pointsman.values import ExecutionId, Json, JsonObject

Work = Callable[[Execute], Awaitable[Json]]


def plan_of(document: JsonObject) -> Plan:
    workflow, problems = WorkflowDefinition.from_document(document)
    assert workflow is not None, problems
    return compile_workflow(workflow)


def tool(name: str, **more: Json) -> JsonObject:
    return {"id": name, "type": "tool", "config": {"tool": name}, **more}


def chain(*names: str, **more: Json) -> JsonObject:
    edges: list[Json] = [{"source": a, "target": b} for a, b in pairwise(names)]
    return {"id": "chain", "nodes": [tool(name) for name in names], "edges": edges, **more}


class Doing:
    """The executor of every kind of work: records its commands and calls `work`."""

    def __init__(self, work: Work) -> None:
        self.work = work
        self.asked: list[Execute] = []
        self.cancelled: list[str] = []

    def basis(self, command: Execute, spec: WorkSpec) -> Json:
        """A result depends only on the definition and the input."""
        return None

    async def has(self, need: str) -> bool:
        return True

    def executor_for(self, command: Execute) -> Executor:
        return self

    async def execute(self, command: Execute, spec: WorkSpec, run: ExecutionPort) -> WorkDone | WorkFailed:
        self.asked.append(command)
        try:
            result = await self.work(command)
        except asyncio.CancelledError:
            self.cancelled.append(command.step.node)
            raise
        return WorkDone(step=command.step, attempt=command.attempt, result=result)


class LazyLedger:
    """A journal that takes 10 ms for each write."""

    def __init__(self, ledger: StoreJournal) -> None:
        self._ledger = ledger
        self.read = ledger.read
        self.last = ledger.last

    async def append(
        self,
        execution: ExecutionId,
        *rows: Row,
        summary: Summary | None = None,
        effects: Sequence[EffectRecord] = (),
    ) -> None:
        await asyncio.sleep(0.01)
        await self._ledger.append(execution, *rows, summary=summary, effects=effects)


class Shelf:
    """Plans by name: `definition` is the name."""

    def __init__(self, **documents: JsonObject) -> None:
        self.plans = {name: plan_of(document) for name, document in documents.items()}

    async def pinned(self, definition: str, options: JsonObject) -> Plan:
        return self.plans[definition]

    async def child(self, reference: str, parent: ExecutionState, node: str) -> tuple[Plan, Start]:
        return self.plans[reference], Start(input={}, definition=reference)


async def named(command: Execute) -> Json:
    """The default work: the result is the node's name."""
    return command.step.node


async def make_runtime(
    shelf: Shelf, work: Work = named, *, store: Store | None = None, clock: Clock | None = None
) -> tuple[LocalRuntime, Doing]:
    doing = Doing(work)
    runtime = LocalRuntime(
        store if store is not None else await open_memory("memory:"),
        shelf,
        doing,
        clock if clock is not None else SystemClock(),
        Feed(),
    )
    return runtime, doing


FIRST = ExecutionId("exec-first")
