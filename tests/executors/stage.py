"""A stage for executors: scripted models on the real wire format, recorded effects, commands and specifications."""

from __future__ import annotations

import asyncio
from contextlib import AbstractContextManager, nullcontext

from pointsman.caches import UseCounts
from pointsman.engine.actions import WorkSpec
from pointsman.engine.commands import Execute, Phase
from pointsman.engine.failures import Failure
from pointsman.engine.reports import ToolCallsProposed, Usage, WorkDone, WorkFailed
from pointsman.engine.steps import Scope, Step
from pointsman.executors.memory import MemoryExecutor
from pointsman.executors.registry import Executors
from pointsman.models.script import read_script
from pointsman.models.transport import PydanticModels
from pointsman.ports import EffectKind, ExecutionPort, ModelReply, ModelRequest, Models, Quota, TextCallback
from pointsman.store.memory import MemoryStore
from pointsman.testing.clock import VirtualClock
from pointsman.tools.registry import ToolRegistry
from pointsman.tools.scripted import canned_tools
from pointsman.tools.tool import Tool
from pointsman.values import ExecutionId, Json, JsonObject, NodeId


class RecordedEffects:
    """Effects in memory; `paid` are those that were really performed."""

    def __init__(self, known: dict[int, Json] | None = None) -> None:
        self.values: dict[int, Json] = dict(known or {})
        self.paid: list[tuple[int, str]] = []
        self.calls_max: int | None = None
        """Number of model calls within the budget."""

    def refusal(self, kind: EffectKind, usage: Usage, *, calls: int = 1) -> Failure | None:
        if self.calls_max is None or usage.model_calls < self.calls_max:
            return None
        return Failure(code="budget-spent", message="the budget is spent", details={"limit": "modelCalls"})

    def recorded(self, number: int, *, kind: EffectKind | None = None, request: str = "") -> Json | None:
        return self.values.get(number)

    async def record(
        self, number: int, kind: EffectKind, value: Json, *, request: str = "", later: bool = False
    ) -> None:
        self.paid.append((number, kind))
        self.values[number] = value

    async def flush(self) -> None:
        """Nothing: every answer is recorded at once."""


class StagedRun:
    """One execution, as an executor sees it."""

    def __init__(self, effects: dict[int, Json] | None = None) -> None:
        self.execution = ExecutionId("exec-1")
        self.node = NodeId("node")
        self.revision = ""
        self.effects = RecordedEffects(effects)
        self.deltas: list[JsonObject] = []
        self.uses = UseCounts()

    async def use(self, what: str, *, most: int | None = None) -> int | None:
        return self.uses.use(what, most=most)

    def waiting_for_store(self) -> AbstractContextManager[None]:
        return nullcontext()

    def tries_again(self, failure: Failure | None) -> None:
        """Nothing: a stage has no time limit."""

    def leaves(self, failure: Failure) -> bool:
        return False

    def delta(self, delta: JsonObject) -> None:
        self.deltas.append(delta)


class RecordingModels:
    """Models that record their requests."""

    def __init__(self, models: PydanticModels) -> None:
        self._models = models
        self.requests: list[ModelRequest] = []
        self.messages: list[list[Json]] = []

    async def ask(self, request: ModelRequest, *, on_text: TextCallback | None = None) -> ModelReply:
        self.requests.append(request)
        self.messages.append([*request.messages])
        return await self._models.ask(request, on_text=on_text)


async def no_wait(seconds: float) -> None:
    """Pass control to other tasks once, instead of waiting."""
    await asyncio.sleep(0)


class Stage:
    """Executors with a script."""

    def __init__(self, script: str = "rules: []", *tools: Tool, models: Models | None = None) -> None:
        """`models` answer instead of the script."""
        scripted = read_script(script)
        self.models = RecordingModels(PydanticModels(default="scripted", script=scripted, sleep=no_wait))
        self.tools = ToolRegistry(tools, plugins=False)
        for canned in canned_tools(scripted.tools):
            self.tools.add(canned, origin="scripted")
        self.store = MemoryStore()
        self.memory = self.store.memory
        self.clock = VirtualClock()
        memory = MemoryExecutor(self.memory, self.clock, Quota(100, 100_000))
        self.executors = Executors(models=models or self.models, tools=self.tools, memory=memory, plugins=False)

    async def perform(
        self, command: Execute, spec: WorkSpec, run: ExecutionPort | None = None
    ) -> WorkDone | WorkFailed | ToolCallsProposed:
        return await self.executors.executor_for(command).execute(command, spec, run or StagedRun())

    async def done(self, command: Execute, spec: WorkSpec, run: ExecutionPort | None = None) -> WorkDone:
        report = await self.perform(command, spec, run)
        assert isinstance(report, WorkDone), report
        assert (report.step, report.attempt) == (command.step, command.attempt)
        return report

    async def failure(self, command: Execute, spec: WorkSpec, run: ExecutionPort | None = None) -> Failure:
        report = await self.perform(command, spec, run)
        assert isinstance(report, WorkFailed), report
        assert (report.step, report.attempt) == (command.step, command.attempt)
        return report.failure


def execute(
    kind: str = "agent",
    *,
    node: str = "writer",
    visit: int = 1,
    attempt: int = 1,
    scope: Scope = (),
    messages: list[Json] | None = None,
    phase: Phase = "work",
    **given: Json,
) -> Execute:
    return Execute(
        step=Step(node, scope, visit),
        attempt=attempt,
        work=kind,
        input=given,
        messages=messages or [],
        phase=phase,
    )


def work(kind: str, given: JsonObject, *, visit: int = 1) -> Execute:
    """Return a command with any input."""
    return Execute(step=Step("writer", (), visit), attempt=1, work=kind, input=given)


def agent(
    *,
    node: str = "writer",
    routes: tuple[str, ...] = (),
    conversational: bool = False,
    leaves_calls: bool = False,
    kind: str = "agent",
    settings: JsonObject | None = None,
    **config: Json,
) -> WorkSpec:
    return WorkSpec(
        node=node,
        kind=kind,
        config=config,
        agent=node,
        routes=routes,
        conversational=conversational,
        leaves_calls=leaves_calls,
        settings=settings or {},
    )


def calls_of(report: WorkDone) -> list[tuple[str, JsonObject]]:
    return [(call.name, call.arguments) for call in report.pending]
