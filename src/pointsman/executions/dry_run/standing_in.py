"""Stand-ins: models that answer the least that is valid, tools that do nothing, time that is skipped.

Every call that would have been made is noted, with an estimate of its tokens.
"""

from __future__ import annotations

import asyncio
import heapq
import time
from collections.abc import Iterable
from contextvars import ContextVar
from typing import Final

from msgspec import Struct
from msgspec.structs import replace

from pointsman.engine.actions import WorkSpec
from pointsman.engine.commands import Execute
from pointsman.engine.plan import Plan
from pointsman.engine.reports import ToolCall, ToolCallsProposed, Usage, WorkDone, WorkFailed
from pointsman.executors.memory import MemoryExecutor
from pointsman.executors.registry import Executors
from pointsman.models.script import Script
from pointsman.models.scripted import ScriptedModel, ScriptedRequest
from pointsman.ports import ExecutionPort, Executor, Hear, ModelReply, ModelRequest, Quota, SecretRule, Tools, ToolSpec
from pointsman.redaction import NOTHING, Redaction
from pointsman.runtime.local import LocalRuntime
from pointsman.tools.egress.secret_hosts import ANYWHERE
from pointsman.tools.registry import ToolRegistry
from pointsman.tools.scripted import UnscriptedTools, canned_tools
from pointsman.values import ExecutionId, Json
from pointsman.workflows.workflow_tools import PREFIX as WORKFLOW

CHARS_PER_TOKEN: Final = 4
OUTPUT_TOKENS: Final = 500
"""What an answer is taken to have, unless the model may say less."""

OURS: Final = frozenset(
    {"agent", "decision", "judge", "planner", "structured-record", "tool", "tool_executor", "memory", "verifier"}
)
"""Kinds of work that do nothing outside once models and tools are stood in for."""

_here: ContextVar[tuple[ExecutionId, str]] = ContextVar("here", default=(ExecutionId(""), ""))
"""The execution and the node that works in this task."""


class Called(Struct, frozen=True, kw_only=True):
    """A call that would have been made."""

    execution: ExecutionId
    node: str
    kind: str
    """`model`, `tool`, or another kind of work."""
    name: str
    input_tokens: int = 0
    output_tokens: int = 0
    tools: tuple[str, ...] = ()
    """What a model may call."""


class NotedCalls:
    """What would have been called, in order."""

    def __init__(self) -> None:
        self.calls: list[Called] = []
        self.plans: dict[str, Plan] = {}
        """Of every execution that worked."""

    def add(self, kind: str, name: str, *, tokens: tuple[int, int] = (0, 0), tools: tuple[str, ...] = ()) -> None:
        execution, node = _here.get()
        self.calls.append(
            Called(
                execution=execution,
                node=node,
                kind=kind,
                name=name,
                input_tokens=tokens[0],
                output_tokens=tokens[1],
                tools=tools,
            )
        )


class QuietModels:
    """Answers like the scripted model, from no provider."""

    def __init__(self, notes: NotedCalls, default: str, script: Script | None) -> None:
        self._notes = notes
        self._default = default
        self._scripted = ScriptedModel(script)

    async def ask(self, request: ModelRequest, *, on_text: Hear | None = None) -> ModelReply:
        asked = ScriptedRequest.of(request)
        model = request.model or self._default
        hints = {**request.hints}
        said = self._scripted.say(await self._scripted.choose(hints, asked.last, request.run), hints, asked)
        answered = min(OUTPUT_TOKENS, request.max_tokens) if request.max_tokens is not None else OUTPUT_TOKENS
        tokens = (-(-asked.chars // CHARS_PER_TOKEN), answered)
        self._notes.add("model", model, tokens=tokens, tools=tuple(asked.tools))
        return ModelReply(text=said.text, tool_calls=said.calls, usage=Usage(model_calls=1), model=model)


class QuietTools:
    """Knows every tool and runs none: a scripted one answers as scripted, the others with a placeholder."""

    def __init__(self, notes: NotedCalls, tools: Tools, canned: Tools) -> None:
        self._notes = notes
        self._known = UnscriptedTools(tools)
        self._canned = canned

    async def prepare(self, names: Iterable[str]) -> None:
        """Nobody outside is asked; what is saved here is looked up."""
        await self._known.prepare([name for name in names if name.startswith(WORKFLOW)])

    def find(self, name: str) -> ToolSpec | None:
        """A workflow is played; of a call that the caller would carry out nobody is asked what came of it."""
        found = self._canned.find(name) or self._known.find(name)
        return None if found is None else replace(found, side="server")

    async def call(self, call: ToolCall, *, key: str, run: ExecutionPort | None = None) -> Json:
        self._notes.add("tool", call.name)
        if self._canned.find(call.name) is not None:
            return await self._canned.call(call, key=key, run=run)
        return f"(result of {call.name})"


class QuietExecutors:
    """Notes where work happens; what a package would do is not done."""

    def __init__(self, notes: NotedCalls, executors: Executors, runtime: LocalRuntime) -> None:
        self._notes = notes
        self._executors = executors
        self._runtime = runtime

    def basis(self, command: Execute, spec: WorkSpec) -> Json:
        """As what it is around."""
        return self._executors.basis(command, spec)

    async def has(self, need: str) -> bool:
        return await self._executors.has(need)

    def executor_for(self, command: Execute) -> Executor:
        if command.phase == "recover" or command.work in OURS:
            return _Noting(self._executors.executor_for(command), self._notes, self._runtime)
        return _Noting(_Placeholder(self._notes), self._notes, self._runtime)


class _Noting:
    """Notes who works where, for whatever is called inside."""

    def __init__(self, inner: Executor, notes: NotedCalls, runtime: LocalRuntime) -> None:
        self._inner = inner
        self._notes = notes
        self._runtime = runtime

    async def execute(
        self, command: Execute, spec: WorkSpec, run: ExecutionPort
    ) -> WorkDone | WorkFailed | ToolCallsProposed:
        _here.set((run.execution, command.step.node))
        self._notes.plans[run.execution] = self._runtime.drivers[run.execution].plan
        return await self._inner.execute(command, spec, run)


class _Placeholder:
    def __init__(self, notes: NotedCalls) -> None:
        self._notes = notes

    async def execute(self, command: Execute, spec: WorkSpec, run: ExecutionPort) -> WorkDone | WorkFailed:
        self._notes.add(command.work, spec.name or spec.node)
        return WorkDone(step=command.step, attempt=command.attempt, result=f"(result of {spec.node})")


class QuietSecrets:
    """No secret is needed where nothing leaves."""

    async def refresh(self) -> None:
        """They never change."""

    def secret(self, name: str) -> str | None:
        return f"(secret {name})"

    def rule(self, name: str) -> SecretRule:
        """Nothing leaves, so it may go anywhere."""
        return SecretRule(hosts=(ANYWHERE,), tools=("*",))

    async def refusal(self, name: str, revision: str) -> str:
        """Any document may use it."""
        return ""

    @property
    def redaction(self) -> Redaction:
        """There is no secret."""
        return NOTHING


class SkippingClock:
    """Time that passes only when it is told to: on to the next thing that somebody waits for."""

    def __init__(self) -> None:
        self._now = time.time()
        self._sleepers: list[tuple[float, int, asyncio.Event]] = []
        self._count = 0

    def now(self) -> float:
        return self._now

    async def sleep_until(self, at: float) -> None:
        if at <= self._now:
            return
        self._count += 1
        rings = asyncio.Event()
        heapq.heappush(self._sleepers, (at, self._count, rings))
        await rings.wait()

    def skip(self) -> bool:
        """On to the next; False: nobody waits."""
        if not self._sleepers:
            return False
        at, _, rings = heapq.heappop(self._sleepers)
        self._now = max(self._now, at)
        rings.set()
        return True


class Quiet:
    """Everything an installation needs to run without an effect."""

    def __init__(self, tools: Tools, script: Script | None, default: str) -> None:
        self.notes = NotedCalls()
        self.clock = SkippingClock()
        self._tools = tools
        self._script = script
        self._default = default

    def executors(self, runtime: LocalRuntime, quota: Quota) -> QuietExecutors:
        """Hands that do nothing outside."""
        canned = ToolRegistry(canned_tools(self._script.tools) if self._script is not None else ())
        models = QuietModels(self.notes, self._default, self._script)
        tools = QuietTools(self.notes, self._tools, canned)
        memory = MemoryExecutor(runtime.store.memory, self.clock, quota)
        executors = Executors(models=models, tools=tools, memory=memory, secrets=QuietSecrets(), plugins=False)
        return QuietExecutors(self.notes, executors, runtime)
