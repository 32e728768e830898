"""Timeline of an execution, read from the journal: what ran, waited and failed when, and what each node consumed.

The calls of a step are read from its recorded effects. An attempt records each answer as soon as it arrives, so calls
are visible while the step runs and after a crash.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Final, Literal, NotRequired, TypeAlias

import msgspec
from typing_extensions import TypedDict

from pointsman.auth.redaction import Redactor, redactor_for
from pointsman.context import AppContext
from pointsman.definition.model.base import read_text
from pointsman.engine.events import lifecycle as life_events
from pointsman.engine.events import steps as events
from pointsman.engine.events import waits as wait_events
from pointsman.engine.reports import ToolCall, Usage
from pointsman.engine.state import Status, status_of
from pointsman.engine.steps import Step
from pointsman.executions.views import UsageView, observability_of, scope_view, usage_view
from pointsman.executors.effect_ledger import ToolOutcome, fingerprint
from pointsman.ports import ModelReply, Row
from pointsman.store.api import EffectStore
from pointsman.values import ExecutionId, Json, JsonObject

Kind: TypeAlias = Literal["work", "gate", "wait", "child", "parallel"]


class SpanView(TypedDict):
    """A span of time: an attempt, a gate, a timer, a sub-workflow, an open parallel."""

    step: str
    node: str
    name: str
    """The display name of the node."""
    scope: list[Json]
    """The open parallels around the step, outermost first."""
    visit: int
    kind: Kind
    attempt: int
    startMs: float
    """Milliseconds since the execution started."""
    endMs: float | None
    """null: it has not ended."""
    status: str


class AnswererView(TypedDict):
    """The models and keys that answered for a node, each sorted and without duplicates."""

    modelsUsed: list[str]
    keysUsed: list[int]


class NodeUsageView(AnswererView):
    """The consumption of a node in all its visits and attempts."""

    node: str
    name: str
    model: str | None
    """The model that its agent names."""
    keyIndex: int | None
    """The key that its agent names."""
    steps: int
    retries: int
    cached: int
    """Steps that were answered from the cache."""
    status: str
    seconds: float
    modelCalls: int
    toolCalls: int
    inputTokens: int
    outputTokens: int
    cacheReadTokens: int
    costUsd: float | None


class TimelineView(TypedDict):
    """The timeline of an execution: its spans, in the order they began, and the consumption of each node."""

    executionId: str
    workflowId: str
    status: Status
    model: str | None
    """The model that answers all agents of the execution; null: each agent has its own."""
    startedAt: float
    durationMs: float
    spans: list[SpanView]
    nodes: list[NodeUsageView]


class RequestedToolCall(TypedDict):
    """A tool call that a model requested. When it is done, it has a result or an error."""

    tool: str
    arguments: Json
    done: bool
    """False: the call has no result yet."""
    result: NotRequired[Json]
    error: NotRequired[Json]


class StepCallView(TypedDict):
    """A call of a step: a model call with the tool calls that the model requested, or a tool call that no model
    requested."""

    attempt: int
    number: int
    """Position of the call in its attempt."""
    kind: Literal["model", "tool"]
    model: NotRequired[str]
    text: NotRequired[str]
    usage: NotRequired[UsageView]
    tookMs: NotRequired[float]
    """Time from the request to the end of the answer, in milliseconds; absent if it was not recorded."""
    calls: NotRequired[list[RequestedToolCall]]
    done: NotRequired[bool]
    result: NotRequired[Json]
    error: NotRequired[Json]


@dataclass(slots=True)
class TimelineSpan:
    """A span of time: an attempt, a gate, a timer, a sub-workflow, an open parallel."""

    step: Step
    kind: Kind
    begin: float
    attempt: int = 1
    end: float | None = None
    """None: it has not ended."""
    status: str = "open"

    def view(self, origin: float, names: Mapping[str, str]) -> SpanView:
        end = None if self.end is None else round((self.end - origin) * 1000, 3)
        return {
            "step": str(self.step),
            "node": self.step.node,
            "name": names.get(self.step.node, self.step.node),
            "scope": scope_view(self.step.scope),
            "visit": self.step.visit,
            "kind": self.kind,
            "attempt": self.attempt,
            "startMs": round((self.begin - origin) * 1000, 3),
            "endMs": end,
            "status": self.status,
        }


@dataclass(slots=True)
class NodeUsage:
    """The consumption of a node in all its visits and attempts."""

    steps: int = 0
    retries: int = 0
    cached: int = 0
    """Steps that were answered from the cache with the result of an equal step."""
    status: str = "open"
    """How its latest step or attempt ended."""
    work_s: float = 0.0
    model_calls: int = 0
    tool_calls: int = 0
    input_tokens: int = 0
    output_tokens: int = 0
    cache_read_tokens: int = 0
    cost_usd: float | None = None

    def add(self, usage: Usage) -> None:
        self.model_calls += usage.model_calls
        self.tool_calls += usage.tool_calls
        self.input_tokens += usage.input_tokens
        self.output_tokens += usage.output_tokens
        self.cache_read_tokens += usage.cache_read_tokens
        if usage.cost_usd is not None:
            self.cost_usd = (self.cost_usd or 0.0) + usage.cost_usd


@dataclass(slots=True)
class Timeline:
    """Spans in the order they began, and one account per node in the order nodes were first reached."""

    spans: list[TimelineSpan] = field(default_factory=list[TimelineSpan])
    accounts: dict[str, NodeUsage] = field(default_factory=dict[str, NodeUsage])
    begin: float = 0.0
    end: float = 0.0
    _open: dict[Step, TimelineSpan] = field(default_factory=dict[Step, TimelineSpan])

    def take(self, row: Row, event: events.Event) -> None:
        """Add one event, in journal order."""
        at = row.at
        self.begin, self.end = self.begin or at, max(self.end, at)
        match event:
            case wait_events.GateOpened(step=step, about="calls" | "client"):
                self._end(step, at, "done")
                self._begin(step, "gate", at)
            case wait_events.GateOpened(step=step):
                self._turn(step, "gate")
            case wait_events.WorkerAwaited(step=step, attempt=attempt):
                self._end(step, at, "left")
                self._begin(step, "wait", at, attempt=attempt)
            case wait_events.ChildRequested(step=step):
                self._turn(step, "child")
            case wait_events.ToolChildrenRequested(step=step):
                self._end(step, at, "done")
                self._begin(step, "child", at)
            case wait_events.ToolCallEnded(step=step, usage=usage) if usage is not None:
                self._account(step).add(usage)
            case life_events.ExecutionCancelled():
                for step in [*self._open]:
                    self._end(step, at, "cancelled")
            case _:
                self._opens(event, at)
                self._closes(event, at)

    def _opens(self, event: events.Event, at: float) -> None:
        match event:
            case events.StepStarted(step=step):
                self._begin(step, "work" if event.runs else "wait", at)
            case events.AttemptStarted(step=step, attempt=attempt):
                self._end(step, at, "done")
                self._begin(step, "work", at, attempt=attempt)
                self._account(step).retries += event.reason == "retry"
            case events.ScopesOpened(step=step):
                self._end(step, at, "done")
                self._begin(step, "parallel", at)
            case _:
                pass

    def _closes(self, event: events.Event, at: float) -> None:
        match event:
            case events.StepFailed(step=step, final=final):
                self._end(step, at, "failed" if final else "retried", usage=event.usage)
                if not final:
                    self._begin(step, "wait", at, attempt=event.attempt)
            case events.StepSucceeded(step=step):
                status = "cached" if event.cached else "done"
                self._end(step, at, status, usage=event.usage)
                account = self._account(step)
                account.steps, account.status = account.steps + 1, status
                account.cached += event.cached
            case events.StepCancelled(step=step):
                self._end(step, at, "cancelled")
            case events.ScopesClosed(step=step):
                self._end(step, at, "done")
            case _:
                pass

    def _account(self, step: Step) -> NodeUsage:
        return self.accounts.setdefault(step.node, NodeUsage())

    def _begin(self, step: Step, kind: Kind, at: float, *, attempt: int = 1) -> None:
        span = TimelineSpan(step, kind, at, attempt)
        self.spans.append(span)
        self._open[step] = span

    def _turn(self, step: Step, kind: Kind) -> None:
        if step in self._open:
            self._open[step].kind = kind

    def _end(self, step: Step, at: float, status: str, *, usage: Usage | None = None) -> None:
        span = self._open.pop(step, None)
        if span is not None:
            span.end, span.status = at, status
            if span.kind == "work":
                account = self._account(step)
                account.work_s, account.status = account.work_s + at - span.begin, status
        if usage is not None:
            self._account(step).add(usage)


def timeline_of(rows: Iterable[Row]) -> Timeline:
    """Return the timeline of a journal."""
    timeline = Timeline()
    for row in rows:
        for event in row.events:
            timeline.take(row, event)
    return timeline


def _usage_views(
    accounts: Mapping[str, NodeUsage],
    document: JsonObject,
    names: Mapping[str, str],
    answerers: Mapping[str, AnswererView],
) -> list[NodeUsageView]:
    agents = _agents(document)
    return [
        {
            "node": node,
            "name": names.get(node, node),
            "model": agents.get(node, (None, None))[0],
            "keyIndex": agents.get(node, (None, None))[1],
            "modelsUsed": answerers[node]["modelsUsed"] if node in answerers else [],
            "keysUsed": answerers[node]["keysUsed"] if node in answerers else [],
            "steps": account.steps,
            "retries": account.retries,
            "cached": account.cached,
            "status": account.status,
            "seconds": round(account.work_s, 6),
            "modelCalls": account.model_calls,
            "toolCalls": account.tool_calls,
            "inputTokens": account.input_tokens,
            "outputTokens": account.output_tokens,
            "cacheReadTokens": account.cache_read_tokens,
            "costUsd": account.cost_usd,
        }
        for node, account in accounts.items()
    ]


def _names(document: JsonObject, language: str) -> dict[str, str]:
    """Map each node to its display name."""
    nodes = document.get("nodes")
    objects = [node for node in nodes if isinstance(node, dict)] if isinstance(nodes, list) else []
    return {str(node["id"]): read_text(node["name"]).in_(language) for node in objects if node.get("name")}


def _agents(document: JsonObject) -> dict[str, tuple[str | None, int | None]]:
    """Map each agent node to the model and key that the definition names."""
    own_agents, config = document.get("agents"), document.get("config")
    agents: Mapping[str, Json] = own_agents if isinstance(own_agents, dict) else {}
    default = config.get("defaultModel") if isinstance(config, dict) else None
    result: dict[str, tuple[str | None, int | None]] = {}
    nodes = document.get("nodes")
    for node in nodes if isinstance(nodes, list) else []:
        own = node.get("config") if isinstance(node, dict) else None
        if not isinstance(node, dict) or not isinstance(own, dict) or node.get("type") != "agent":
            continue
        agent = agents.get(str(own.get("agent")))
        shared: Mapping[str, Json] = agent if isinstance(agent, dict) else {}
        model = own.get("model") or shared.get("model") or default
        key = own.get("keyIndex", shared.get("keyIndex"))
        result[str(node["id"])] = str(model) if model else None, key if isinstance(key, int) else None
    return result


async def timeline(app: AppContext, execution: str) -> TimelineView:
    """Return the timeline of an execution without opening it."""
    state = await app.runtime.load(ExecutionId(execution))
    rows = [row async for row in app.store.journal.read(ExecutionId(execution))]
    data = await app.store.blobs.get(state.setup.definition)
    document: JsonObject = {} if data is None else msgspec.json.decode(data)
    found = timeline_of(rows)
    names = _names(document, app.settings.current.language)
    answerers = await _answerers(app.store.effects, ExecutionId(execution), found.spans)
    model = state.setup.options.get("model")
    return {
        "executionId": execution,
        "workflowId": state.setup.workflow,
        "status": status_of(state),
        "model": str(model) if model else None,
        "startedAt": state.setup.started_at,
        "durationMs": round((found.end - found.begin) * 1000, 3),
        "spans": [span.view(found.begin, names) for span in found.spans],
        "nodes": _usage_views(found.accounts, document, names, answerers),
    }


async def _answerers(
    effects: EffectStore, execution: ExecutionId, spans: Iterable[TimelineSpan]
) -> dict[str, AnswererView]:
    """Return the models and keys that answered, per node. Costs one read for each attempt with recorded calls."""
    nodes = {f"{span.step}:{span.attempt}": span.step.node for span in spans if span.kind == "work"}
    models: dict[str, set[str]] = {}
    keys: dict[str, set[int]] = {}
    for attempt in await effects.attempts(execution):
        node = nodes.get(attempt)
        if node is None:
            continue
        for value in (await effects.recorded(execution, attempt)).values():
            reply = value[2] if isinstance(value, list) and len(value) == 3 and value[0] == "model" else None
            if not isinstance(reply, dict):
                continue
            if isinstance(model := reply.get("model"), str) and model:
                models.setdefault(node, set()).add(model)
            if isinstance(key := reply.get("key"), int):
                keys.setdefault(node, set()).add(key)
    return {
        node: {"modelsUsed": sorted(models.get(node, ())), "keysUsed": sorted(keys.get(node, ()))}
        for node in models.keys() | keys.keys()
    }


FIELDS: Final = 3
"""Kind, fingerprint of the request, answer."""


async def calls_of(app: AppContext, execution: str, step: str) -> list[StepCallView]:
    """Return the calls of a step in the order they were made, redacted; none if the workflow's level is `minimal`.

    Raises `UnknownExecution`.
    """
    name = ExecutionId(execution)
    state = await app.runtime.load(name)
    if observability_of(state.setup.options) == "minimal":
        return []
    redact = redactor_for(app.settings)
    calls: list[StepCallView] = []
    for attempt in await app.store.effects.attempts(name):
        of, _, number = attempt.rpartition(":")
        if of == step and number.isdecimal():
            calls += _calls_in(await app.store.effects.recorded(name, attempt), int(number), redact)
    return sorted(calls, key=lambda call: (call["attempt"], call["number"]))


def _calls_in(recorded: dict[int, Json], attempt: int, redact: Redactor) -> list[StepCallView]:
    calls: list[StepCallView] = []
    open_: list[tuple[str, RequestedToolCall]] = []
    """Calls that models requested and whose outcome has not been read yet, by the fingerprint of the request."""
    for number, effect in sorted(recorded.items()):
        if not isinstance(effect, list | tuple) or len(effect) != FIELDS:
            continue
        kind, request, answer = effect
        if kind == "model":
            reply = _reply(answer)
            if reply is None:
                continue
            made = [
                (fingerprint(tool_call.name, tool_call.arguments), _requested(tool_call, redact))
                for tool_call in reply.tool_calls
            ]
            open_ += made
            call: StepCallView = {
                "attempt": attempt,
                "number": number,
                "kind": "model",
                "model": reply.model,
                "text": redact.text(reply.text),
                "usage": usage_view(reply.usage),
                "calls": [requested for _, requested in made],
            }
            if reply.took_s is not None:
                call["tookMs"] = round(reply.took_s * 1000, 3)
            calls.append(call)
        elif kind == "tool":
            outcome = msgspec.convert(answer, ToolOutcome)
            at = next((at for at, (mark, _) in enumerate(open_) if mark == request), None)
            if at is None:
                alone: StepCallView = {"attempt": attempt, "number": number, "kind": "tool"}
                calls.append(alone)
                _settle(alone, outcome, redact)
            else:
                _settle(open_.pop(at)[1], outcome, redact)
    return calls


def _requested(call: ToolCall, redact: Redactor) -> RequestedToolCall:
    return {"tool": call.name, "arguments": redact.json(call.arguments), "done": False}


def _reply(value: Json) -> ModelReply | None:
    """Return the recorded reply, or None if the request was refused."""
    try:
        return msgspec.convert(value, ModelReply)
    except msgspec.ValidationError:
        return None


def _settle(call: StepCallView | RequestedToolCall, outcome: ToolOutcome, redact: Redactor) -> None:
    """Add the outcome to a call."""
    call["done"] = True
    if outcome.failure is None:
        call["result"] = redact.json(outcome.result)
    else:
        error: JsonObject = {"code": outcome.failure.code, "message": redact.text(outcome.failure.message)}
        call["error"] = error
