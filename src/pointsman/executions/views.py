"""JSON views of an execution for people and programs. Built from the state and the journal, never stored."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Final, Literal, NotRequired, TypeAlias, TypeGuard, cast

import msgspec
from typing_extensions import TypedDict

from pointsman.engine.actions import GateApprovers
from pointsman.engine.data import dotted
from pointsman.engine.decide.limits import RaisableLimit
from pointsman.engine.digests import SHORT_CHARS
from pointsman.engine.events import lifecycle as life_events
from pointsman.engine.events import steps as events
from pointsman.engine.events import waits as wait_events
from pointsman.engine.failures import Failure
from pointsman.engine.plan import PARTIAL_RUN_OPTION
from pointsman.engine.reports import Usage
from pointsman.engine.state import ExecutionState, Status, StepState, UsageTotal, is_scripted, status_of
from pointsman.engine.steps import Scope, Step
from pointsman.ports import Row
from pointsman.runtime.driver import QUEUE
from pointsman.runtime.workers import is_gone
from pointsman.settings.sections import Level as Observability
from pointsman.values import Json, JsonObject

ExecutionStatus: TypeAlias = Literal[Status, "stopped"]
"""`stopped`: stored as `running`, but the process that executed it has ended."""


class UsageView(TypedDict):
    """The consumption of the execution."""

    inputTokens: int
    outputTokens: int
    cacheReadTokens: int
    cacheWriteTokens: int
    costUsd: float | None
    modelCalls: int
    toolCalls: int


class VoteView(TypedDict):
    """An answer of a person to a gate that is still open."""

    by: str
    action: str
    comment: str
    data: Json


class GateView(TypedDict):
    """The question to a person."""

    gateId: str
    nodeId: str
    nodeName: Json
    """How people know the node: a text, or one by language; null: by its id."""
    message: str
    messages: dict[str, str] | None
    """The message by language, if its workflow defines it in several."""
    options: list[Json]
    form: Json
    shown: Json
    editable: list[str]
    """The fields that `edit` may change."""
    values: dict[str, Json]
    """The present values of the editable fields."""
    digest: str
    """Identifies what the gate asks and shows. It changes with them; an answer sends it back."""
    approvers: Json
    """Who may answer; null: anyone."""
    about: str
    step: str
    item: str | None
    round: int | None
    visit: int
    openedAt: float | None
    deadline: float | None
    level: int
    """Number of escalations so far."""
    votes: list[VoteView]
    delegated: dict[str, str]
    """Delegated rights: from person to delegate."""
    executionId: NotRequired[str]
    """The sub-workflow that has the gate, if it is one."""


class AwaitedEvent(TypedDict):
    """An outside event that a step waits for."""

    nodeId: str
    event: Json
    executionId: NotRequired[str]
    """The sub-workflow that waits, if it is one."""


class NeededWorker(TypedDict):
    """A step that waits for a worker: the process that drove the execution lacks something for it."""

    nodeId: str
    step: str
    needs: str
    """The requirement of the worker, as `kind:name`, such as `tool:search`."""
    reason: str
    """The same in words."""
    executionId: NotRequired[str]
    """The sub-workflow of the step, if it is one."""


class TimerView(TypedDict):
    """A timer of a step."""

    nodeId: str
    step: str
    purpose: str
    """Purpose: `retry`, `delay` or `wait` of the step; the deadline of a `gate`, a `join` or an `event`."""
    at: float
    """Unix seconds."""
    executionId: NotRequired[str]
    """The sub-workflow of the step, if it is one."""


class ErrorView(TypedDict):
    """An error of an execution."""

    code: str
    message: str
    nodeId: str | None
    hint: NotRequired[str]
    details: NotRequired[Json]


class WarningView(TypedDict):
    """Something to know although nothing stopped."""

    code: str
    message: str
    nodeId: str | None


class DataChange(TypedDict):
    """A field that an answer changed."""

    path: str
    before: Json
    after: Json


class GateOutcome(TypedDict):
    """How a gate was closed."""

    nodeId: str
    step: str
    action: str
    by: str
    cause: str
    comment: str
    data: Json
    changes: list[DataChange]
    digest: str
    at: float


class ProgressMessage(TypedDict):
    """A message of a progress node."""

    nodeId: str
    message: str
    at: float


class CompensationView(TypedDict):
    """The steps that were undone, and those that are not undone (yet)."""

    undone: list[str]
    notUndone: list[str]


class LimitView(TypedDict):
    """The limit that stopped an execution, and what would be enough to go on."""

    name: str
    """The name under which it can be raised."""
    now: float
    used: float
    next: float | None
    """A suggestion for a higher limit; null: the operator allows none."""
    most: float | None
    """The maximum that the operator allows; null: any."""


class ArtifactView(TypedDict):
    """A file that an execution keeps."""

    path: str
    bytes: int


class ExecutionView(TypedDict):
    """An execution, built from its journal."""

    executionId: str
    workflowId: str
    version: str | None
    status: ExecutionStatus
    trial: Json
    """The part of the workflow that is performed; null: all of it."""
    pausedBefore: str | None
    """The step at whose breakpoint it is paused."""
    phase: Literal["compensating"] | None
    compensation: CompensationView | None
    """null: compensation never began."""
    model: str | None
    """The model of all its agents, if it was started with one."""
    observability: Literal["minimal", "standard", "full"]
    """The level of detail that readers receive."""
    seq: int
    """The last row of its journal."""
    input: Json
    output: Json
    scripted: bool
    """Whether the scripted model answers in it, so that the texts of its agents are made up."""
    currentNodes: list[str]
    """Steps that have not ended."""
    state: Json
    path: list[str]
    """The nodes of finished steps, in the order of the journal."""
    steps: int
    waiting: list[GateView]
    awaiting: list[AwaitedEvent]
    waitingFor: list[NeededWorker]
    """The steps that wait for a worker."""
    timers: list[TimerView]
    """Deadlines and delays of its steps."""
    errors: list[ErrorView]
    answers: list[GateOutcome]
    progress: list[ProgressMessage]
    warnings: list[WarningView]
    """Warnings, which do not stop the execution."""
    usage: UsageView
    sessionId: str | None
    trigger: Json
    startedAt: float
    durationMs: int
    limit: NotRequired[LimitView | None]
    """The limit that stopped the execution, if one did."""
    artifacts: NotRequired[list[ArtifactView]]
    withheld: NotRequired[list[str]]
    """Fields that `minimal` removes."""


class SignalledExecution(ExecutionView):
    """An execution that received an event."""

    outcome: Literal["delivered", "stored", "duplicate"]
    """`delivered`: waiting steps received the event; `stored`: it is stored for later steps."""
    became: Literal["taken", "kept", "known"]
    """Deprecated: `taken`, `kept` and `known` are `delivered`, `stored` and `duplicate` of `outcome`."""


SIGNAL_OUTCOMES: Final[Mapping[Literal["taken", "kept", "known"], Literal["delivered", "stored", "duplicate"]]] = {
    "taken": "delivered",
    "kept": "stored",
    "known": "duplicate",
}


class StartedExecution(TypedDict):
    """An execution that began."""

    executionId: str
    status: ExecutionStatus
    scripted: bool
    """Whether the scripted model answers in it, so that the texts of its agents are made up."""
    warnings: list[WarningView]
    """Warnings about how the answers will be obtained."""


class StartedTurn(StartedExecution):
    """A turn of a conversation that began."""

    sessionId: str
    """The conversation, for the next message; `DELETE /api/sessions/{id}` deletes it."""


PROGRESS: str = "progress"
"""The name of the event that progress nodes emit."""
HIDDEN: str = "?"
"""Suffix of nodes that the compiler made; paths do not show them."""


def observability_of(options: JsonObject) -> Observability:
    """Return the redaction level that an execution was started with."""
    level = options.get("observability")
    return level if level in ("minimal", "full") else "standard"


def event_view(row: Row, number: int, event: events.Event) -> JsonObject:
    """Return one event with its position in the journal: `seq` and `n` together are its id. `due`: when a timer
    fires."""
    facts: JsonObject = msgspec.to_builtins(event)
    if "at" in facts:
        facts["due"] = facts.pop("at")
    result: JsonObject = {"seq": row.seq, "n": number, "at": row.at, **facts}
    step = getattr(event, "step", None)
    if step is not None:
        result["step"] = str(step)
        result["node"] = step.node
        if step.scope:
            result["scope"] = scope_view(step.scope)
    after = getattr(event, "after", None)
    if after is not None:
        result["after"] = str(after)
    return result


def scope_view(scope: Scope) -> list[Json]:
    """Return the open branches around a step, outermost first."""
    return [{"parallel": level.parallel, "visit": level.visit, "branch": level.branch} for level in scope]


def path_of(rows: Iterable[Row]) -> list[str]:
    """Return the node ids of finished steps, in journal order."""
    path: list[str] = []
    for row in rows:
        for event in row.events:
            match event:
                case events.StepSucceeded() | events.InstantStepCompleted():
                    path.append(event.step.node)
                case events.ScopesClosed():
                    path.append(event.step.node)
                case events.StepFailed(final=True):
                    path.append(event.step.node)
                case _:
                    pass
    return [node for node in path if not node.endswith(HIDDEN)]


def waiting_view(state: ExecutionState) -> list[GateView]:
    """Return the open gates, in the order of their steps."""
    return [gate_view(at) for at in state.open_gates]


def awaiting_view(state: ExecutionState) -> list[AwaitedEvent]:
    """Return the outside events that steps wait for. An execution that has ended waits for none."""
    steps = () if state.ended else sorted(state.steps.values(), key=lambda a: a.step)
    waits = [at for at in steps if at.event is not None]
    return [{"nodeId": at.step.node, "event": at.event} for at in waits]


def timers_view(state: ExecutionState) -> list[TimerView]:
    """Return the pending timers of steps, the next one first. An execution that has ended has none."""
    pending = () if state.ended else sorted(state.timers.values(), key=lambda timer: timer.at)
    return [
        {"nodeId": one.step.node, "step": str(one.step), "purpose": one.purpose, "at": one.at}
        for one in pending
        if one.step is not None
    ]


def need_text(need: str) -> str:
    """Describe what a worker must have: `tool:search` becomes "a worker with the tool 'search'"."""
    kind, _, name = need.partition(":")
    return f"a worker of the queue {name!r}" if kind == QUEUE else f"a worker with the {kind} {name!r}"


def needs_view(state: ExecutionState) -> list[NeededWorker]:
    """Return the steps that wait for a worker, and what the worker must have."""
    steps = () if state.ended else sorted(state.steps_without_worker)
    return [
        {"nodeId": step.node, "step": str(step), "needs": need, "reason": need_text(need)}
        for step in steps
        if (need := state.steps[step].needs)
    ]


def status_shown(status: str, worker: str) -> ExecutionStatus:
    """Return the status to show: `stopped` instead of `running` if the worker process has ended and no other process
    continued the execution."""
    worker_gone = status == "running" and worker and is_gone(worker)
    return "stopped" if worker_gone else cast("Status", status)


def gate_view(at: StepState) -> GateView:
    """Return a gate as a person sees it."""
    gate = at.gate
    assert gate is not None
    options: list[Json] = [dict(option) for option in gate.options]
    editable = [".".join(str(part) for part in path) for path in gate.editable]
    return {
        "gateId": gate.id,
        "nodeId": at.step.node,
        "nodeName": gate.display_name,
        "message": gate.message,
        "messages": {**gate.messages} or None,
        "options": options,
        "form": gate.form,
        "shown": gate.displayed,
        "editable": [*editable],
        "values": dict(zip(editable, gate.values, strict=True)),
        "digest": gate.digest,
        "approvers": approvers_view(gate.approvers),
        "about": gate.about,
        "step": str(at.step),
        "item": gate.item,
        "round": gate.round,
        "visit": at.step.visit,
        "openedAt": gate.opened,
        "deadline": gate.deadline,
        "level": gate.level,
        "votes": [
            {"by": by, "action": vote.action, "comment": vote.comment, "data": vote.data}
            for by, vote in gate.votes.items()
        ],
        "delegated": dict(gate.delegations),
    }


def short_digest(gate: Mapping[str, object]) -> str:
    """Return the digest of a gate's view in the short form that people type."""
    return str(gate["digest"])[:SHORT_CHARS]


def approvers_view(approvers: GateApprovers | None) -> Json:
    """Return who may answer; None: anyone."""
    if approvers is None:
        return None
    result: JsonObject = {"quorum": approvers.quorum, "rejectQuorum": approvers.reject_quorum}
    if approvers.groups is not None:
        result["groups"] = [*approvers.groups]
    if approvers.users is not None:
        result["users"] = [*approvers.users]
    result["delegable"] = approvers.delegable
    return result | {"byLink": True} if approvers.by_link else result


def failure_view(failure: Failure, node: str | None) -> ErrorView:
    """Return a failure for people and programs."""
    return {
        "code": failure.code,
        "message": failure.message,
        "nodeId": node,
        "hint": failure.hint,
        "details": failure.details,
    }


def errors_of(rows: Iterable[Row]) -> list[ErrorView]:
    """Return final errors: the failure of the execution, and failures that were handled on the way.

    Errors that a retry repeated or that a resumption continued from are left out.
    """
    result: list[tuple[Step | None, ErrorView]] = []
    retried: tuple[Step | None, ...] = ()
    for row in rows:
        for event in row.events:
            match event:
                case events.StepFailed(final=True) | events.ExitFailed():
                    result.append((event.step, failure_view(event.failure, event.step.node)))
                case life_events.ExecutionFailed():
                    retried = (None, event.step, *event.steps)
                    if event.step is None or _left_undone(event.failure):
                        result.append((None, failure_view(event.failure, None)))
                case life_events.ExecutionInterrupted() | wait_events.LimitHit():
                    hint = f"Raise it: --limit {event.limit}=NUMBER."
                    code = f"limit-{event.limit}"
                    result.append((None, {"code": code, "message": event.message, "nodeId": None, "hint": hint}))
                case life_events.ExecutionRetried():
                    result = [one for one in result if one[0] not in retried]
                case life_events.ExecutionResumed():
                    result = [one for one in result if one[0] is not None]
                case _:
                    pass
    return [error for _, error in result]


def _left_undone(failure: Failure) -> bool:
    compensation = (failure.details or {}).get("compensation")
    return isinstance(compensation, dict) and bool(compensation["notUndone"])


SCRIPTED: Final[WarningView] = {
    "code": "scripted-answers",
    "message": "the scripted model or a scripted tool answers here: its answers are made up",
    "nodeId": None,
}


def scripted_warnings(state: ExecutionState) -> list[WarningView]:
    """Return the warning that answers are made up, if the scripted model or a scripted tool gives them."""
    return [{**SCRIPTED}] if is_scripted(state) else []


def warnings_of(rows: Iterable[Row]) -> list[WarningView]:
    """Return warnings: what people should know although it stopped nothing."""
    return [
        {"code": e.code, "message": e.message, "nodeId": e.step.node if e.step is not None else None}
        for row in rows
        for e in row.events
        if isinstance(e, wait_events.WarningRaised)
    ]


PAUSED_BY_LIMIT: Final = "limits."
"""Prefix of the `by` of a pause that a budget caused; the limit's name follows."""


def stopped_by(state: ExecutionState, rows: Sequence[Row]) -> str | None:
    """Return the limit that stopped an execution, by an interruption or by a budget's pause; None if no limit did."""
    if state.status != "paused":
        return state.limits.interruption
    paused = (
        e.by for row in reversed(rows) for e in reversed(row.events) if isinstance(e, life_events.ExecutionPaused)
    )
    by = next(paused, "")
    return by.removeprefix(PAUSED_BY_LIMIT) if by.startswith(PAUSED_BY_LIMIT) else None


def limit_view(offer: RaisableLimit | None) -> LimitView | None:
    """Return the limit that stopped the execution and the value it may be raised to."""
    if offer is None:
        return None
    return {"name": offer.name, "now": offer.now, "used": offer.used, "next": offer.next, "most": offer.most}


def answers_of(rows: Iterable[Row]) -> list[GateOutcome]:
    """Return how its gates were closed, with the fields that people changed."""
    outcomes: list[GateOutcome] = []
    for row in rows:
        for event in row.events:
            if isinstance(event, wait_events.GateClosed):
                changes: list[DataChange] = [
                    {"path": dotted(change.path), "before": change.before, "after": change.after}
                    for change in event.changes
                ]
                outcomes.append(
                    {
                        "nodeId": event.step.node,
                        "step": str(event.step),
                        "action": event.action,
                        "by": event.by,
                        "cause": event.cause,
                        "comment": event.comment,
                        "data": event.data,
                        "changes": changes,
                        "digest": event.digest,
                        "at": row.at,
                    }
                )
    return outcomes


def progress_of(rows: Iterable[Row]) -> list[ProgressMessage]:
    """Return the messages of its progress nodes, oldest first."""
    return [
        {"nodeId": event.step.node, "message": cast("str", event.data), "at": row.at}
        for row in rows
        for event in row.events
        if is_progress(event)
    ]


def is_progress(event: events.Event) -> TypeGuard[wait_events.EventEmitted]:
    """Return whether the event is the message of a progress node."""
    return isinstance(event, wait_events.EventEmitted) and event.name == PROGRESS and isinstance(event.data, str)


def compensation_view(state: ExecutionState) -> CompensationView | None:
    """Return what was undone and what is not undone (yet); None if compensation never began."""
    if state.compensation is None:
        return None
    open_ = [entry.step for entry in reversed(state.undo_log)]
    if state.compensation.current is not None:
        open_ = [state.compensation.current.step, *open_]
    undone = [str(step) for step in state.compensation.undone]
    not_undone = [str(step) for step in (*(step for step, _ in state.compensation.failed), *open_)]
    return {"undone": undone, "notUndone": not_undone}


def current_nodes(state: ExecutionState) -> list[str]:
    """Return the nodes with an unfinished step, in the order of the steps."""
    nodes = (step.node.removesuffix(HIDDEN) for step in sorted(state.steps))
    return [*dict.fromkeys(nodes)]


def usage_view(usage: Usage | UsageTotal) -> UsageView:
    return {
        "inputTokens": usage.input_tokens,
        "outputTokens": usage.output_tokens,
        "cacheReadTokens": usage.cache_read_tokens,
        "cacheWriteTokens": usage.cache_write_tokens,
        "costUsd": usage.cost_usd,
        "modelCalls": usage.model_calls,
        "toolCalls": usage.tool_calls,
    }


def execution_view(state: ExecutionState, rows: list[Row]) -> ExecutionView:
    """Return an execution as `--json` and the API show it."""
    ended = rows[-1].at if rows else state.setup.started_at
    return {
        "executionId": state.id,
        "workflowId": state.setup.workflow,
        "version": state.setup.version,
        "status": status_of(state),
        "trial": state.setup.options.get(PARTIAL_RUN_OPTION),
        "pausedBefore": str(state.pause.breakpoints.at)
        if state.status == "paused" and state.pause.breakpoints.at is not None
        else None,
        "phase": "compensating" if state.compensating else None,
        "compensation": compensation_view(state),
        "model": cast("str | None", state.setup.options.get("model")),
        "observability": observability_of(state.setup.options),
        "seq": state.seq,
        "input": state.setup.input,
        "output": state.outcome.output,
        "scripted": is_scripted(state),
        "currentNodes": current_nodes(state),
        "state": state.root.data.root if state.scopes else {},
        "path": path_of(rows),
        "steps": state.counters.steps,
        "waiting": waiting_view(state),
        "awaiting": awaiting_view(state),
        "waitingFor": needs_view(state),
        "timers": timers_view(state),
        "errors": errors_of(rows),
        "answers": answers_of(rows),
        "progress": progress_of(rows),
        "warnings": [*scripted_warnings(state), *warnings_of(rows)],
        "usage": usage_view(state.usage),
        "sessionId": state.setup.session,
        "trigger": state.setup.options.get("trigger"),
        "startedAt": state.setup.started_at,
        "durationMs": round((ended - state.setup.started_at) * 1000),
    }
