"""Timeline of an execution, read from the journal: what ran, waited and failed when, and what each node consumed.

The calls of a step are read from its recorded effects. An attempt records each answer as soon as it arrives, so calls
are visible while the step runs and after a crash.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Final, Literal, TypeAlias

import msgspec

from pointsman.auth.redaction import Redactor, redactor_for
from pointsman.context import AppContext
from pointsman.definition.model.base import read_text
from pointsman.engine.events import lifecycle as life_events
from pointsman.engine.events import steps as events
from pointsman.engine.events import waits as wait_events
from pointsman.engine.reports import ToolCall, Usage
from pointsman.engine.state import status_of
from pointsman.engine.steps import Step
from pointsman.executions.views import observability_of, scope_view, usage_view
from pointsman.executors.effect_ledger import ToolOutcome, fingerprint
from pointsman.ports import ModelReply, Row
from pointsman.store.api import EffectStore
from pointsman.values import ExecutionId, Json, JsonObject, json_of

Kind: TypeAlias = Literal["work", "gate", "wait", "child", "parallel"]


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

    def to_json(self, origin: float) -> JsonObject:
        end = None if self.end is None else round((self.end - origin) * 1000, 3)
        return {
            "step": str(self.step),
            "node": self.step.node,
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


def timeline_view(
    timeline: Timeline, document: JsonObject | None, *, language: str, answerers: Mapping[str, JsonObject]
) -> JsonObject:
    """Return the timeline as JSON: spans in milliseconds from the start; usage per node with the model and key that its
    agent names, and those that answered (`answerers`: see `answerers_of`)."""
    agents = _agents(document or {})
    names = _names(document or {}, language)
    usage: list[Json] = [
        {
            "node": node,
            "name": names.get(node, node),
            **agents.get(node, {"model": None, "keyIndex": None}),
            **answerers.get(node, {"modelsUsed": [], "keysUsed": []}),
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
        for node, account in timeline.accounts.items()
    ]
    spans: list[Json] = [
        {**span.to_json(timeline.begin), "name": names.get(span.step.node, span.step.node)} for span in timeline.spans
    ]
    return {"durationMs": round((timeline.end - timeline.begin) * 1000, 3), "spans": spans, "nodes": usage}


def _names(document: JsonObject, language: str) -> dict[str, str]:
    """Map each node to its display name."""
    nodes = document.get("nodes")
    named = [node for node in nodes if isinstance(node, dict)] if isinstance(nodes, list) else []
    return {str(node["id"]): read_text(node["name"]).in_(language) for node in named if node.get("name")}


def _agents(document: JsonObject) -> dict[str, JsonObject]:
    """Map each agent node to the model and key that the definition names."""
    named, config = document.get("agents"), document.get("config")
    agents: Mapping[str, Json] = named if isinstance(named, dict) else {}
    default = config.get("defaultModel") if isinstance(config, dict) else None
    found: dict[str, JsonObject] = {}
    nodes = document.get("nodes")
    for node in nodes if isinstance(nodes, list) else []:
        own = node.get("config") if isinstance(node, dict) else None
        if not isinstance(node, dict) or not isinstance(own, dict) or node.get("type") != "agent":
            continue
        agent = agents.get(str(own.get("agent")))
        shared: Mapping[str, Json] = agent if isinstance(agent, dict) else {}
        found[str(node["id"])] = {
            "model": own.get("model") or shared.get("model") or default,
            "keyIndex": own.get("keyIndex", shared.get("keyIndex")),
        }
    return found


async def timeline(app: AppContext, execution: str) -> JsonObject:
    """Return the timeline of an execution without opening it."""

    state = await app.runtime.load(ExecutionId(execution))
    rows = [row async for row in app.store.journal.read(ExecutionId(execution))]
    data = await app.store.blobs.get(state.setup.definition)
    document: JsonObject | None = None if data is None else msgspec.json.decode(data)
    told = timeline_of(rows)
    answerers = await answerers_of(app.store.effects, ExecutionId(execution), told.spans)
    return {
        "executionId": execution,
        "workflowId": state.setup.workflow,
        "status": status_of(state),
        "model": state.setup.options.get("model"),
        "startedAt": state.setup.started_at,
        **timeline_view(told, document, language=app.settings.language, answerers=answerers),
    }


Answerers: TypeAlias = Mapping[str, JsonObject]
"""Node -> `{modelsUsed, keysUsed}`, each sorted and without duplicates."""


async def answerers_of(effects: EffectStore, execution: ExecutionId, spans: Iterable[TimelineSpan]) -> Answerers:
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
    return {node: _used(models.get(node, set()), keys.get(node, set())) for node in models.keys() | keys.keys()}


def _used(models: set[str], keys: set[int]) -> JsonObject:
    named: list[Json] = [*sorted(models)]
    numbered: list[Json] = [*sorted(keys)]
    return {"modelsUsed": named, "keysUsed": numbered}


FIELDS: Final = 3
"""Kind, fingerprint of the request, answer."""


async def calls_of(app: AppContext, execution: str, step: str) -> list[JsonObject]:
    """Return the calls of a step in the order they were made, redacted; none if the workflow's level is `minimal`.

    A model call has `model`, `text`, `usage` and `calls`, each with `tool`, `arguments`, `result` or `error`, and
    whether it is `done`. A tool call that no model made has `result` or `error`. Raises `UnknownExecution`.
    """
    name = ExecutionId(execution)
    state = await app.runtime.load(name)
    if observability_of(state.setup.options) == "minimal":
        return []
    redact = redactor_for(app.settings)
    found: list[JsonObject] = []
    for attempt in await app.store.effects.attempts(name):
        of, _, number = attempt.rpartition(":")
        if of == step and number.isdecimal():
            found += _calls_in(await app.store.effects.recorded(name, attempt), int(number), redact)
    return sorted(found, key=lambda call: (call["attempt"], call["number"]))


def _calls_in(recorded: dict[int, Json], attempt: int, redact: Redactor) -> list[JsonObject]:
    found: list[JsonObject] = []
    open_: list[tuple[str, JsonObject]] = []
    """Calls that models made and whose outcome has not been read yet, by the fingerprint of the request."""
    for number, effect in sorted(recorded.items()):
        if not isinstance(effect, list | tuple) or len(effect) != FIELDS:
            continue
        kind, asked, told = effect
        place: JsonObject = {"attempt": attempt, "number": number, "kind": kind}
        if kind == "model":
            reply = _reply(told)
            if reply is None:
                continue
            made = [(fingerprint(one.name, one.arguments), _made(one, redact)) for one in reply.tool_calls]
            open_ += made
            found.append({**place, **_said(reply, redact), "calls": [shown for _, shown in made]})
        elif kind == "tool":
            outcome = _outcome(msgspec.convert(told, ToolOutcome), redact)
            at = next((at for at, (mark, _) in enumerate(open_) if mark == asked), None)
            if at is None:
                found.append({**place, **outcome})
            else:
                open_.pop(at)[1].update(outcome)
    return found


def _made(call: ToolCall, redact: Redactor) -> JsonObject:
    return {"tool": call.name, "arguments": redact.json(call.arguments), "done": False}


def _said(reply: ModelReply, redact: Redactor) -> JsonObject:
    return {"model": reply.model, "text": redact.text(reply.text), "usage": json_of(usage_view(reply.usage))}


def _reply(told: Json) -> ModelReply | None:
    """Return the recorded reply, or None if the request was refused."""
    try:
        return msgspec.convert(told, ModelReply)
    except msgspec.ValidationError:
        return None


def _outcome(outcome: ToolOutcome, redact: Redactor) -> JsonObject:
    if outcome.failure is None:
        return {"done": True, "result": redact.json(outcome.result)}
    return {"done": True, "error": {"code": outcome.failure.code, "message": redact.text(outcome.failure.message)}}
