"""Public events: the events of an execution as streams send them.

The journal contains every event; streams send those that concern people. Which ones depends on the workflow's
`observability`: `minimal` sends ends and errors, `standard` also each step, `full` also inputs and results.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Final, TypeAlias

from pointsman.auth.redaction import redactor_for
from pointsman.engine.events import lifecycle as life_events
from pointsman.engine.events import steps as events
from pointsman.engine.events import waits as wait_events
from pointsman.engine.steps import Step
from pointsman.executions.views import HIDDEN, approvers_view, failure_view, observability_of, usage_view
from pointsman.ports import Row
from pointsman.runtime.local import LocalRuntime
from pointsman.settings import Settings
from pointsman.settings.sections import Level as Observability
from pointsman.values import ExecutionId, JsonObject, json_of

Redact: TypeAlias = Callable[[JsonObject], JsonObject]
"""Removes what must never be sent."""

MINIMAL: Final = frozenset(
    {
        "workflow.node.error",
        "workflow.human.required",
        "workflow.complete",
        "workflow.failed",
        "workflow.cancelled",
        "workflow.interrupted",
    }
)
"""Events of every level: errors, ends, and gates that wait for a person."""
CALLS: Final = frozenset({"tool_call", "tool_result"})
HEARTBEAT_S: Final = 15.0
"""Seconds between heartbeats of a silent stream: proxies close streams that send nothing."""
SHOWN_OF_CALLS: Final = frozenset({"arguments", "result"})
"""Fields that only `full` includes in live events of tool calls."""


def unchanged(told: JsonObject) -> JsonObject:
    return told


def bulletins(
    execution: ExecutionId, row: Row, observability: Observability = "standard", redact: Redact = unchanged
) -> Iterator[JsonObject]:
    """Yield the public events of a committed row, in order. `id` is `<seq>.<n>`: a subscriber continues after the last
    one it received."""
    number = -1
    for event in row.events:
        for name, told, shown in _said(event):
            number += 1  # Events that a level leaves out are counted too, so that ids are the same on every level.
            if observability == "minimal" and name not in MINIMAL:
                continue
            step: Step | None = getattr(event, "step", None)
            if step is not None and step.node.endswith(HIDDEN):
                continue
            said = told | shown if observability == "full" else told
            yield _bulletin(execution, row, number, name, step) | redact(said)
    if observability != "minimal":
        yield _bulletin(execution, row, number + 1, "workflow.checkpoint.saved", None)


def _bulletin(execution: ExecutionId, row: Row, number: int, name: str, step: Step | None) -> JsonObject:
    found: JsonObject = {
        "id": f"{row.seq}.{number}",
        "event": name,
        "executionId": execution,
        "seq": row.seq,
        "at": row.at,
    }
    if step is not None:
        found["nodeId"] = step.node
        found["step"] = str(step)
    return found


Said: TypeAlias = tuple[str, JsonObject, JsonObject]
"""Name, fields for every reader, fields that only `full` includes."""


def _said(event: events.Event) -> Iterator[Said]:
    match event:
        case events.StepStarted():
            yield "workflow.node.start", {}, {"input": event.input}
        case events.StepSucceeded():
            yield "workflow.node.complete", {"attempt": event.attempt}, {"result": event.result}
            if event.usage is not None:
                yield "workflow.usage", {"usage": json_of(usage_view(event.usage))}, {}
        case events.InstantStepCompleted(annotations={"skipped": True}):
            yield "workflow.node.skipped", {}, {}
        case events.InstantStepCompleted():
            yield "workflow.node.complete", {}, {"result": event.result}
        case events.StepFailed():
            error = json_of(failure_view(event.failure, event.step.node))
            name = "workflow.node.error" if event.final else "workflow.node.retry"
            yield name, {"attempt": event.attempt, "error": error}, {}
        case events.ExitFailed():
            yield "workflow.node.error", {"error": json_of(failure_view(event.failure, event.step.node))}, {}
        case wait_events.GateOpened():
            asked: JsonObject = {
                "gateId": event.gate,
                "message": event.message,
                "options": [*event.options],
                "about": event.about,
                "approvers": approvers_view(event.approvers),
                "deadline": event.deadline,
                "digest": event.digest,
            }
            yield "workflow.human.required", asked, {"shown": event.shown}
        case wait_events.GateChanged():
            again: JsonObject = {
                "gateId": event.gate,
                "message": event.message,
                "options": [*event.options],
                "approvers": approvers_view(event.approvers),
                "digest": event.digest,
                "again": True,
            }
            yield "workflow.human.required", again, {"shown": event.shown}
        case wait_events.GateEscalated():
            now: JsonObject = {"approvers": approvers_view(event.approvers), "deadline": event.deadline}
            yield "workflow.human.required", {"level": event.level, **now}, {}
        case wait_events.GateClosed():
            yield "workflow.human.answered", {"action": event.action, "by": event.by}, {"data": event.data}
        case _:
            yield from _life(event)


def _life(event: events.Event) -> Iterator[Said]:
    match event:
        case life_events.ExecutionStarted():
            yield "workflow.start", {"workflowId": event.workflow}, {"input": event.input}
        case life_events.ExecutionPaused():
            yield "workflow.paused", {"by": event.by}, {}
        case life_events.ExecutionResumed() | life_events.ExecutionRetried():
            yield "workflow.resumed", {"by": event.by}, {}
        case life_events.ExecutionInterrupted():
            yield "workflow.interrupted", {"limit": event.limit, "message": event.message}, {}
        case life_events.ExecutionCompleted():
            yield "workflow.complete", {}, {"output": event.output}
        case life_events.ExecutionFailed():
            failed = event.step.node if event.step is not None else None
            yield "workflow.failed", {"error": json_of(failure_view(event.failure, failed))}, {}
        case life_events.ExecutionCancelled():
            yield "workflow.cancelled", {"reason": event.reason, "by": event.by}, {}
        case _:
            pass


def live_told(delta: JsonObject, observability: Observability, redact: Redact = unchanged) -> JsonObject | None:
    """Return the public form of a live delta of a step; None: it is not sent."""
    if observability == "minimal":
        return None
    if observability == "standard" and delta.get("kind") in CALLS:
        delta = {name: value for name, value in delta.items() if name not in SHOWN_OF_CALLS}
    return redact(delta)


async def bulletins_of(
    runtime: LocalRuntime, execution: ExecutionId, settings: Settings, *, after: int
) -> list[JsonObject]:
    """Return the public events of an execution after row `after`, as far as its redaction level allows."""
    level = observability_of((await runtime.load(execution)).setup.options)
    redact = redactor_for(settings)
    rows = [row async for row in runtime.journal.read(execution, after=after)]
    return [one for row in rows for one in bulletins(execution, row, level, redact)]
