"""Dry runs: the path that an execution would take, and its cost, without a call of a model or a tool.

An application in memory performs the workflow with models that give the shortest valid answer, tools that return a
placeholder, and a clock that skips waits. Every call that would have been made is recorded with an estimate of its
tokens. A cost is exact for the calls of this path, a range if loops may take more rounds, and unknown without a price.
"""

from __future__ import annotations

import asyncio
import heapq
import time
from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from collections.abc import Set as AbstractSet
from contextlib import AbstractAsyncContextManager
from contextvars import ContextVar
from typing import TYPE_CHECKING, Final, TypeAlias

from msgspec import Struct
from msgspec.structs import replace
from typing_extensions import TypedDict

from pointsman.auth.callers import LOCAL, Caller
from pointsman.context import AppContext, Part
from pointsman.engine.actions import LoopAction, WorkSpec
from pointsman.engine.commands import Execute
from pointsman.engine.decide.human_task_answers import EDIT, edit_of_nothing
from pointsman.engine.events.steps import LoopRound
from pointsman.engine.events.waits import TimerElapsed
from pointsman.engine.plan import Plan
from pointsman.engine.reports import ToolCall, ToolCallsProposed, Usage, WorkDone, WorkFailed
from pointsman.engine.state import GateState
from pointsman.engine.steps import Step
from pointsman.executions.children import OpenGate
from pointsman.executions.execution import Execution
from pointsman.executions.opening import GivenAnswer
from pointsman.executions.start import prepared_for, start, trial_of
from pointsman.executions.views import ErrorView, ExecutionStatus, WarningView, errors_of, path_of, warnings_of
from pointsman.executors.memory import MemoryExecutor
from pointsman.executors.registry import Executors
from pointsman.models.prices import Prices
from pointsman.models.script import Script
from pointsman.models.scripted import ScriptedModel, ScriptedRequest, sample
from pointsman.ports import (
    Clock,
    ExecutionPort,
    Executor,
    ModelReply,
    ModelRequest,
    Quota,
    Row,
    SecretRule,
    TextCallback,
    Tools,
    ToolSpec,
)
from pointsman.redaction import NOTHING, Redaction
from pointsman.runtime.driver import Driver
from pointsman.runtime.local import LocalRuntime
from pointsman.tools.egress.addresses import ANYWHERE
from pointsman.tools.registry import ToolRegistry
from pointsman.tools.scripted import UnscriptedTools, canned_tools
from pointsman.values import ExecutionId, Json, JsonObject
from pointsman.workflows.authors import Party
from pointsman.workflows.definitions import source_of_saved
from pointsman.workflows.document_work import beside
from pointsman.workflows.library import LIBRARY
from pointsman.workflows.sources import Workflow, draft_of
from pointsman.workflows.tools import PREFIX as WORKFLOW

if TYPE_CHECKING:
    from pointsman.executions.opening import GivenAnswer


OpenAside: TypeAlias = Callable[[AppContext, Clock, ToolRegistry], AbstractAsyncContextManager[AppContext]]
"""Opens an application in memory, with the settings of another one and the given tools, that checks no models."""
ASIDE: Final = Part[OpenAside]("aside")


async def dry_run(
    app: AppContext,
    workflow: Workflow | str,
    input: Json = None,
    *,
    answers: Sequence[GivenAnswer] = (),
    trial: JsonObject | None = None,
    caller: Caller = LOCAL,
    written_by: Iterable[Party] = (),
) -> DryRun:
    """Run a workflow in an application of its own that keeps nothing and has the workflows that may be called.

    Returns the path that the execution, or a partial run, takes, its calls and its cost. Raises `UnknownWorkflow` for
    calls of workflows that the caller may not see.
    """
    source = await source_of_saved(app, workflow) if isinstance(workflow, str) else workflow
    prepared = await prepared_for(app, workflow, caller=caller, written_by=written_by)
    called = {reference.partition("@")[0] for reference in await app[LIBRARY].pins(prepared)}
    quiet = Quiet(app.tools, app.services.script, app.settings.model)
    async with app[ASIDE](app, quiet.clock, app.tools) as aside:
        if called:
            await app[LIBRARY].copy_into(aside.store, called)
        aside.runtime.executors = quiet.executors(aside.runtime, app.settings.memory.quota)
        started = await start(aside, source, input, trial=trial)
        return await play(aside.runtime, started, quiet, answers, app.settings.price_list)


async def scripted_run(
    app: AppContext,
    workflow: Workflow,
    input: Json,
    script: Script,
    *,
    called: Iterable[Workflow] = (),
    pinned: Mapping[str, Json] | None = None,
    by: str,
) -> DryRun:
    """Run a document as `dry_run` does, with a script of its own. `called`: the workflows that it calls. `pinned`: node
    -> its result, without performing it. `by`: who starts it."""
    tools = app.tools.with_scripted(canned_tools(script.tools))
    quiet = Quiet(tools, script, SCRIPTED)
    async with app[ASIDE](app, quiet.clock, tools) as aside:
        for one in called:
            await aside.store.workflows.save(draft_of(one, app.settings.current.language))
        aside.runtime.executors = quiet.executors(aside.runtime, app.settings.memory.quota)
        started = await start(aside, workflow, input, trial=trial_of(pinned=pinned) or None, by=by)
        return await play(aside.runtime, started, quiet, (), app.settings.price_list)


TURNS: Final = 20
"""This many turns of the event loop without progress count as standing still."""
ANSWERS_MAX: Final = 1000
"""An execution that opens more gates than this is taken for an endless loop."""
ROW_CHARS: Final = 200
"""A journal row takes about as long to read as this many characters of a document."""


class DryRun(Struct, frozen=True, kw_only=True):
    """The path that the execution would take, and its cost."""

    workflow: str
    status: ExecutionStatus
    output: Json
    path: list[str]
    steps: int
    waits: list[JsonObject]
    """The waits, and what was assumed to end each."""
    calls: list[Estimate]
    errors: list[ErrorView]
    warnings: list[WarningView]


class CallEstimate(TypedDict):
    """Calls of a node to one model or tool, and their cost."""

    nodeId: str
    kind: str
    """`model` or `tool`."""
    name: str
    calls: int
    """Calls on the path of the dry run."""
    callsMax: int | None
    """Calls if every loop runs as often as it may; null: unbounded."""
    inputTokens: int
    outputTokens: int
    costUsd: float | None
    """null: the price is unknown."""
    costMaxUsd: float | None
    tools: list[str]


class CostEstimate(TypedDict):
    """Bounds of the cost of models; null: a price is unknown."""

    lowUsd: float | None
    highUsd: float | None
    unpriced: list[str]
    """Models without a known price."""


class EstimateAssumptions(TypedDict):
    """Assumptions of the estimate."""

    charsPerToken: float
    outputTokensPerAnswer: int


class DryRunView(TypedDict):
    """The path that an execution would take, its calls and its cost."""

    dryRun: bool
    workflowId: str
    status: ExecutionStatus
    output: Json
    path: list[str]
    steps: int
    waits: list[JsonObject]
    """Where it waited, and the assumed outcome of each wait."""
    calls: list[CallEstimate]
    cost: CostEstimate
    assumptions: EstimateAssumptions
    errors: list[ErrorView]
    warnings: list[WarningView]


async def play(
    runtime: LocalRuntime, execution: Execution, quiet: Quiet, answers: Sequence[GivenAnswer], prices: Prices
) -> DryRun:
    """Drive the execution to its end, or until nothing more can happen. Gates without a given answer get their first
    option."""
    waits: list[JsonObject] = []
    left, sent = [*answers], set[tuple[str, Step]]()
    for _ in range(ANSWERS_MAX):
        await _quiet(runtime)
        if execution.state.ended or execution.state.is_halted:
            break
        if execution.gates:
            waits.append(await _answer(execution, execution.gates[0], left))
        elif (event := _awaited(runtime, sent)) is not None:
            driver, step, name = event
            sent.add((driver.state.id, step))
            waits.append({"nodeId": step.node, "kind": "event", "event": name, "answered": None})
            await Execution(runtime, driver).signal(name)
        elif not quiet.clock.skip():
            break
    rows, rounds = await execution.rows(), await _rounds(runtime, quiet.notes.plans)
    # Beside the loop: a thousand steps take about 8 ms.
    return await beside(len(rows) * ROW_CHARS, lambda: _summary(execution, quiet, rows, waits, rounds, prices))


def _summary(
    execution: Execution,
    quiet: Quiet,
    rows: Sequence[Row],
    waits: list[JsonObject],
    rounds: Rounds,
    prices: Prices,
) -> DryRun:
    return DryRun(
        workflow=execution.state.setup.workflow,
        status=execution.status,
        output=execution.state.outcome.output,
        path=path_of(rows),
        steps=execution.state.counters.steps,
        waits=[*waits, *_elapsed_timers(rows)],
        calls=estimates(quiet.notes.calls, quiet.notes.plans, rounds, prices),
        errors=errors_of(rows),
        warnings=warnings_of(rows),
    )


async def _quiet(runtime: LocalRuntime) -> None:
    """Return when only time and people can continue the executions."""
    still = 0
    while still < TURNS:
        await asyncio.sleep(0)
        drivers = [*runtime.drivers.values()]
        busy = any(driver.busy or driver.ready or driver.committing for driver in drivers)
        still = 0 if busy else still + 1


async def _answer(execution: Execution, gate: OpenGate, left: list[GivenAnswer]) -> JsonObject:
    """Answer the gate as given, else with its first option, by as many people as must agree."""
    at = gate.at.gate
    assert at is not None
    answer = next((one for one in left if one.node in (gate.id, gate.node)), None)
    if answer is not None:
        left.remove(answer)
    action = answer.action if answer is not None else str(at.options[0]["value"])
    data = answer.data if answer is not None else _data(at, action)
    users = (at.approvers.users if at.approvers is not None else None) or ()
    groups = (at.approvers.groups if at.approvers is not None else None) or ()
    voter = 0
    while any(one.id == gate.id and one.at is gate.at for one in execution.gates) and voter < TURNS:
        by = users[voter] if voter < len(users) else f"dry-run-{voter + 1}"
        await execution.answer(gate.id, action, data, by=by, groups=groups)
        voter += 1
    return {"nodeId": gate.node, "kind": "gate", "event": None, "answered": action}


def _data(gate: GateState, action: str) -> Json:
    """Return data that the gate accepts with the action: an edit changes no field."""
    if action == EDIT and gate.editable:
        return edit_of_nothing(gate)
    return None if gate.form is None else sample(gate.form, "dry run")


def _awaited(runtime: LocalRuntime, sent: AbstractSet[tuple[str, Step]]) -> tuple[Driver, Step, str] | None:
    """Return a step that waits for an event which was not sent to it: one with conditions may not accept it."""
    for driver in runtime.drivers.values():
        for at in sorted(driver.state.steps.values(), key=lambda at: at.step):
            if at.event is not None and (driver.state.id, at.step) not in sent:
                return driver, at.step, at.event
    return None


def _elapsed_timers(rows: Sequence[Row]) -> list[JsonObject]:
    """Return the timers that the execution would have waited for."""
    elapsed = [event.timer for row in rows for event in row.events if isinstance(event, TimerElapsed)]
    return [{"nodeId": None, "kind": "timer", "event": timer, "answered": None} for timer in elapsed]


async def _rounds(runtime: LocalRuntime, plans: dict[str, Plan]) -> Rounds:
    """Return the rounds of each loop, by execution and loop."""
    result: dict[tuple[str, str], int] = {}
    for name in plans:
        async for row in runtime.journal.read(ExecutionId(name)):
            for event in row.events:
                if isinstance(event, LoopRound):
                    result[name, event.node] = max(result.get((name, event.node), 0), event.round)
    return result


def dry_view(run: DryRun) -> DryRunView:
    """Return the dry run as JSON. Costs are in dollars; null: not known."""
    models = [call for call in run.calls if call.kind == "model"]
    low = [model.cost_usd for model in models]
    high = [model.cost_max_usd for model in models]
    unpriced = [*dict.fromkeys(model.name for model in models if model.cost_usd is None)]
    return {
        "dryRun": True,
        "workflowId": run.workflow,
        "status": run.status,
        "output": run.output,
        "path": run.path,
        "steps": run.steps,
        "waits": run.waits,
        "calls": [call_view(call) for call in run.calls],
        "cost": {
            "lowUsd": None if None in low else sum(one for one in low if one is not None),
            "highUsd": None if None in high else sum(one for one in high if one is not None),
            "unpriced": unpriced,
        },
        "assumptions": {"charsPerToken": CHARS_PER_TOKEN, "outputTokensPerAnswer": OUTPUT_TOKENS},
        "errors": run.errors,
        "warnings": run.warnings,
    }


def call_view(estimate: Estimate) -> CallEstimate:
    return {
        "nodeId": estimate.node,
        "kind": estimate.kind,
        "name": estimate.name,
        "calls": estimate.calls,
        "callsMax": estimate.calls_max,
        "inputTokens": estimate.input_tokens,
        "outputTokens": estimate.output_tokens,
        "costUsd": estimate.cost_usd,
        "costMaxUsd": estimate.cost_max_usd,
        "tools": [*estimate.tools],
    }


Rounds: TypeAlias = Mapping[tuple[str, str], int]
"""(execution, loop) -> how many rounds it took."""

SCRIPTED: Final = "scripted"


class Estimate(Struct, frozen=True, kw_only=True):
    """The estimated calls of one node to one model or one tool."""

    node: str
    kind: str
    name: str
    calls: int
    """On the way that the dry run took."""
    calls_max: int | None
    """If every enclosing loop takes its most rounds; None: no bound is known."""
    input_tokens: int
    output_tokens: int
    cost_usd: float | None
    """Of `calls`; None: no price is known, which is not zero."""
    tools: tuple[str, ...] = ()

    @property
    def cost_max_usd(self) -> float | None:
        if self.cost_usd is None or self.calls_max is None:
            return None
        return self.cost_usd * self.calls_max / self.calls


def estimates(calls: Sequence[NotedCall], plans: Mapping[str, Plan], rounds: Rounds, prices: Prices) -> list[Estimate]:
    """Return the estimates by node and name, in the order of the first call."""
    groups: dict[tuple[str, str, str], list[NotedCall]] = {}
    for call in calls:
        groups.setdefault((call.node, call.kind, call.name), []).append(call)
    return [_estimate(several, plans, rounds, prices) for several in groups.values()]


def _estimate(several: list[NotedCall], plans: Mapping[str, Plan], rounds: Rounds, prices: Prices) -> Estimate:
    first = several[0]
    sent_tokens, answered = sum(c.input_tokens for c in several), sum(c.output_tokens for c in several)
    most: int | None = 0
    for execution, count in Counter(call.execution for call in several).items():
        bound = _bound(execution, first.node, count, plans, rounds)
        most = None if most is None or bound is None else most + bound
    cost = None
    if first.kind == "model":
        cost = price(prices, first.name, sent_tokens, answered)
    return Estimate(
        node=first.node,
        kind=first.kind,
        name=first.name,
        calls=len(several),
        calls_max=most,
        input_tokens=sent_tokens,
        output_tokens=answered,
        cost_usd=cost,
        tools=tuple(dict.fromkeys(tool for call in several for tool in call.tools)),
    )


def _bound(execution: str, node: str, count: int, plans: Mapping[str, Plan], rounds: Rounds) -> int | None:
    """Return the most calls, if every round makes as many calls as the rounds of this run; None: no bound is known."""
    plan = plans[execution]
    share = float(count)
    for loop in plan.nodes[node].position.loops:
        action = plan.nodes[loop].action
        if isinstance(action, LoopAction) and action.items is None:
            if action.rounds_max is None:
                return None
            share *= action.rounds_max / max(1, min(rounds.get((execution, loop), 1), action.rounds_max))
    return max(count, round(share))


def price(prices: Prices, model: str, input_tokens: int, output_tokens: int) -> float | None:
    """Return the price in dollars; None if none is known. The scripted model costs nothing."""
    if model == SCRIPTED:
        return 0.0
    provider, _, name = model.partition(":")
    provider, name = (provider, name) if name else ("", provider)
    return prices.cost_usd(provider, name, input_tokens=input_tokens, output_tokens=output_tokens)


CHARS_PER_TOKEN: Final = 4
OUTPUT_TOKENS: Final = 500
"""Assumed tokens of an answer, unless the limit of the request is lower."""

OURS: Final = frozenset(
    {"agent", "decision", "judge", "planner", "structured-record", "tool", "tool_executor", "memory", "verifier"}
)
"""Kinds of work that have no outside effect once models and tools are replaced."""

_here: ContextVar[tuple[ExecutionId, str]] = ContextVar("here", default=(ExecutionId(""), ""))
"""The execution and the node that works in this task."""


class NotedCall(Struct, frozen=True, kw_only=True):
    """A call that would have been made."""

    execution: ExecutionId
    node: str
    kind: str
    """`model`, `tool`, or another kind of work."""
    name: str
    input_tokens: int = 0
    output_tokens: int = 0
    tools: tuple[str, ...] = ()
    """Tools that the model may call."""


class NotedCalls:
    """The calls that would have been made, in order."""

    def __init__(self) -> None:
        self.calls: list[NotedCall] = []
        self.plans: dict[str, Plan] = {}
        """Plans of all executions that performed work."""

    def add(self, kind: str, name: str, *, tokens: tuple[int, int] = (0, 0), tools: tuple[str, ...] = ()) -> None:
        execution, node = _here.get()
        self.calls.append(
            NotedCall(
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

    async def ask(self, request: ModelRequest, *, on_text: TextCallback | None = None) -> ModelReply:
        scripted = ScriptedRequest.of(request)
        model = request.model or self._default
        hints = {**request.hints}
        reply = self._scripted.say(await self._scripted.choose(hints, scripted.last, request.run), hints, scripted)
        answered = min(OUTPUT_TOKENS, request.max_tokens) if request.max_tokens is not None else OUTPUT_TOKENS
        tokens = (-(-scripted.chars // CHARS_PER_TOKEN), answered)
        self._notes.add("model", model, tokens=tokens, tools=tuple(scripted.tools))
        return ModelReply(text=reply.text, tool_calls=reply.calls, usage=Usage(model_calls=1), model=model)


class QuietTools:
    """Knows every tool and runs none: a scripted one answers as scripted, the others with a placeholder."""

    def __init__(self, notes: NotedCalls, tools: Tools, canned: Tools) -> None:
        self._notes = notes
        self._known = UnscriptedTools(tools)
        self._canned = canned

    async def prepare(self, names: Iterable[str]) -> None:
        """Look up saved workflows only; remote tools are not asked for their descriptions."""
        await self._known.prepare([name for name in names if name.startswith(WORKFLOW)])

    def find(self, name: str) -> ToolSpec | None:
        """Return the tool as one that the server calls: a tool of the caller is not called either."""
        tool = self._canned.find(name) or self._known.find(name)
        return None if tool is None else replace(tool, side="server")

    async def call(self, call: ToolCall, *, key: str, run: ExecutionPort | None = None) -> Json:
        self._notes.add("tool", call.name)
        if self._canned.find(call.name) is not None:
            return await self._canned.call(call, key=key, run=run)
        return f"(result of {call.name})"


class QuietExecutors:
    """Executors that record which node works, and replace the work of plugins by a placeholder."""

    def __init__(self, notes: NotedCalls, executors: Executors, runtime: LocalRuntime) -> None:
        self._notes = notes
        self._executors = executors
        self._runtime = runtime

    def basis(self, command: Execute, spec: WorkSpec) -> Json:
        """Return the basis of the wrapped executors."""
        return self._executors.basis(command, spec)

    async def has(self, need: str) -> bool:
        return await self._executors.has(need)

    def executor_for(self, command: Execute) -> Executor:
        if command.phase == "recover" or command.work in OURS:
            return _CallRecorder(self._executors.executor_for(command), self._notes, self._runtime)
        return _CallRecorder(_Placeholder(self._notes), self._notes, self._runtime)


class _CallRecorder:
    """Records the execution and the node, for the calls that the inner executor makes."""

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
    """Placeholder secrets: nothing leaves the process."""

    is_fresh = True

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
        """Nothing to redact: placeholders are not secret."""
        return NOTHING


class SkippingClock:
    """Clock that advances only by `skip`, to the next time that a sleeper waits for."""

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
        """Advance to the next sleeper's time; False: there is no sleeper."""
        if not self._sleepers:
            return False
        at, _, rings = heapq.heappop(self._sleepers)
        self._now = max(self._now, at)
        rings.set()
        return True


class Quiet:
    """Clock and executors of an application whose work has no outside effect."""

    def __init__(self, tools: Tools, script: Script | None, default: str) -> None:
        self.notes = NotedCalls()
        self.clock = SkippingClock()
        self._tools = tools
        self._script = script
        self._default = default

    def executors(self, runtime: LocalRuntime, quota: Quota) -> QuietExecutors:
        """Return executors without outside effects."""
        scripted = canned_tools(self._script.tools) if self._script is not None else ()
        canned = ToolRegistry(scripted, plugins=False)  # Tools of packages would act.
        models = QuietModels(self.notes, self._default, self._script)
        tools = QuietTools(self.notes, self._tools, canned)
        memory = MemoryExecutor(runtime.store.memory, self.clock, quota)
        executors = Executors(models=models, tools=tools, memory=memory, secrets=QuietSecrets(), plugins=False)
        return QuietExecutors(self.notes, executors, runtime)
