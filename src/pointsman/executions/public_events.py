"""Public events: the events of an execution as streams send them, to whom, and in which words.

The journal contains every event; streams send those that concern people. Which ones depends on the workflow's
`observability`: `minimal` sends ends and errors, `standard` also each step, `full` also inputs and results.

    event or view ─▶ its level: content is removed ─▶ secrets are masked ─▶ words of the dialect ─▶ reader

At `minimal` readers receive the shape of what happened (what ran when, how often, how long, how it ended) without the
content. Removed fields are named, so that readers do not take them for empty. The fields of `minimal` are listed and
everything else counts as content, so a new event reveals nothing by mistake.

One word of a dialect may stand for several native ones; events for which a dialect has no word are left out.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import AsyncIterator, Callable, Collection, Iterator, Mapping
from typing import Final, Literal, TypeAlias, cast, get_args

from pointsman.auth.redaction import redactor_for
from pointsman.client.events import DeltaEvent
from pointsman.context import AppContext, Part
from pointsman.engine.events import lifecycle as life_events
from pointsman.engine.events import steps as events
from pointsman.engine.events import waits as wait_events
from pointsman.engine.state import Status, status_of
from pointsman.engine.steps import Step
from pointsman.errors import CallerError
from pointsman.executions.views import (
    HIDDEN,
    ExecutionView,
    approvers_view,
    event_view,
    failure_view,
    is_progress,
    observability_of,
    usage_view,
)
from pointsman.ports import Row
from pointsman.runtime.dependencies import Committed, Delta, Watcher
from pointsman.settings.sections import Level as Observability
from pointsman.values import ExecutionId, Instant, Json, JsonObject, json_of

LOG: Final = logging.getLogger("pointsman.executions")

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


def unchanged(fields: JsonObject) -> JsonObject:
    return fields


def public_events(
    execution: ExecutionId, row: Row, observability: Observability = "standard", redact: Redact = unchanged
) -> Iterator[JsonObject]:
    """Yield the public events of a committed row, in order. `id` is `<seq>.<n>`: a subscriber continues after the last
    one it received."""
    number = -1
    for event in row.events:
        for name, fields, shown in _public_parts(event):
            number += 1  # Events that a level leaves out are counted too, so that ids are the same on every level.
            if observability == "minimal" and name not in MINIMAL:
                continue
            step: Step | None = getattr(event, "step", None)
            if step is not None and step.node.endswith(HIDDEN):
                continue
            data = fields | shown if observability == "full" else fields
            yield _public_event(execution, row, number, name, step) | redact(data)
    if observability != "minimal":
        yield _public_event(execution, row, number + 1, "workflow.checkpoint.saved", None)


def _public_event(execution: ExecutionId, row: Row, number: int, name: str, step: Step | None) -> JsonObject:
    result: JsonObject = {
        "id": f"{row.seq}.{number}",
        "event": name,
        "executionId": execution,
        "seq": row.seq,
        "at": row.at,
    }
    if step is not None:
        result["nodeId"] = step.node
        result["step"] = str(step)
    return result


EventParts: TypeAlias = tuple[str, JsonObject, JsonObject]
"""Name, fields for every reader, fields that only `full` includes."""


def _public_parts(event: events.Event) -> Iterator[EventParts]:
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
            question: JsonObject = {
                "gateId": event.gate,
                "message": event.message,
                "options": [*event.options],
                "about": event.about,
                "approvers": approvers_view(event.approvers),
                "deadline": event.deadline,
                "digest": event.digest,
            }
            yield "workflow.human.required", question, {"shown": event.shown}
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
            yield from _lifecycle_parts(event)


def _lifecycle_parts(event: events.Event) -> Iterator[EventParts]:
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


def public_delta(delta: JsonObject, observability: Observability, redact: Redact = unchanged) -> JsonObject | None:
    """Return the public form of a live delta of a step; None: it is not sent."""
    if observability == "minimal":
        return None
    if observability == "standard" and delta.get("kind") in CALLS:
        delta = {name: value for name, value in delta.items() if name not in SHOWN_OF_CALLS}
    return redact(delta)


def delta_event(update: Delta) -> DeltaEvent:
    """Return live output as an event, with all its fields."""
    step = update.step
    return DeltaEvent(execution_id=update.execution, node_id=step.node, step=str(step), delta=update.delta)


async def public_events_of(app: AppContext, execution: str, *, after: int = 0) -> list[JsonObject]:
    """Return the public events after row `after`, at the level of the workflow's `observability`."""
    name, runtime = ExecutionId(execution), app.runtime
    level = observability_of((await runtime.load(name)).setup.options)
    redact = redactor_for(app.settings)
    rows = [row async for row in runtime.journal.read(name, after=after)]
    return [event for row in rows for event in public_events(name, row, level, redact)]


See: TypeAlias = Callable[[JsonObject], None]

SETTLED: Final = frozenset({"completed", "failed", "cancelled", "waiting", "paused", "interrupted"})


def watcher_for(see: See) -> Watcher:
    """Return a watcher that passes events with `execution` and `parent`, and deltas as `{kind: delta, execution, step,
    node, delta}`."""

    def watch(update: Committed | Delta) -> None:
        try:
            for view in _views(update):
                see(view)
        except Exception:
            LOG.exception("the function that watches executions raised: %r", see)

    return watch


def _views(update: Committed | Delta) -> Iterator[JsonObject]:
    """Yield an update as watchers receive it."""
    if isinstance(update, Delta):
        step = update.step
        yield {
            "kind": "delta",
            "execution": update.execution,
            "step": str(step),
            "node": step.node,
            "delta": update.delta,
        }
        return
    for number, event in enumerate(update.row.events):
        view = event_view(update.row, number, event)
        view["execution"], view["parent"] = update.execution, update.state.setup.parent
        yield view


def watch_progress(app: AppContext, see: Callable[[str], None]) -> Callable[[], None]:
    """Pass the messages of progress nodes to `see` once they are durable. The returned function ends it."""

    def watch(update: Committed | Delta) -> None:
        if isinstance(update, Committed):
            for event in update.row.events:
                if is_progress(event):
                    see(str(event.data))

    return app.feed.watch(watch)


def watch_deltas(app: AppContext, see: Callable[[DeltaEvent], None]) -> Callable[[], None]:
    """Pass the partial output of models and tools to `see`. The returned function ends it."""

    def watch(update: Committed | Delta) -> None:
        if isinstance(update, Delta):
            see(delta_event(update))

    return app.feed.watch(watch)


async def follow_events(
    app: AppContext, execution: str, *, after: int = 0, follow: bool, words: Dialect | None = None
) -> AsyncIterator[JsonObject]:
    """Yield the events of an execution; with `follow`, also those that other processes add, until nothing more happens.
    `words`: as public events of that dialect."""
    level = observability_of((await app.runtime.load(ExecutionId(execution))).setup.options) if words else "standard"
    redact = redactor_for(app.settings)
    async for row in follow_rows(app, execution, after=after, follow=follow):
        if words is not None:
            for public in events_in(words, ExecutionId(execution), row, level, redact):
                yield public
            continue
        for number, event in enumerate(row.events):
            yield event_view(row, number, event)


async def follow_rows(app: AppContext, execution: str, *, after: int, follow: bool) -> AsyncIterator[Row]:
    """Yield the rows of its journal."""
    name = ExecutionId(execution)
    woken = asyncio.Event()
    leave = app.store.follow(name, woken.set) if follow else None
    try:
        state = await app.runtime.load(name)
        while True:
            woken.clear()
            async for row in app.store.journal.read(name, after=after):
                after = row.seq
                yield row
            if not follow or (status_of(state) in SETTLED and state.seq <= after):
                return
            await woken.wait()
            state = await app.runtime.load(name) if await app.store.journal.last(name) > state.seq else state
    finally:
        if leave is not None:
            leave()


Dialect: TypeAlias = Literal["native", "rows", "graph", "steps", "plan"]
DIALECTS: Final[tuple[Dialect, ...]] = get_args(Dialect)

_STEPS: Final[Mapping[Status, str]] = {
    "pending": "pending",
    "running": "running",
    "waiting": "waiting",
    "paused": "paused",
    "interrupted": "paused",
    "completed": "completed",
    "failed": "failed",
    "cancelled": "cancelled",
}
_NATIVE: Final[Mapping[Status, str]] = {
    **_STEPS,
    "pending": "running",
    "waiting": "paused",
    "cancelled": "failed",
}
_OWN: Final[Mapping[Status, str]] = {status: status for status in get_args(Status)}

STATUSES: Final[Mapping[Dialect, Mapping[Status, str]]] = {
    "native": _NATIVE,
    "rows": _OWN,
    "graph": _OWN,
    "steps": _STEPS,
    "plan": _STEPS,
}
"""Statuses of executions. `native` has four words; `rows` and `graph` define none, so the native ones are used."""

_STEP_EVENTS: Final = {
    "workflow.node.start": "step_start",
    "workflow.node.retry": "step_progress",
    "workflow.usage": "step_progress",
    "workflow.node.skipped": "step_complete",
    "workflow.node.complete": "step_complete",
    "workflow.human.required": "checkpoint",
    "workflow.node.error": "error",
    "workflow.failed": "error",
    "workflow.interrupted": "error",
    "workflow.complete": "complete",
    "workflow.cancelled": "cancelled",
}
_NODE_RESULTS: Final = {
    "workflow.node.complete": "SUCCESS",
    "workflow.node.error": "FAILED",
    "workflow.node.skipped": "SKIPPED",
}


def view_in(dialect: Dialect, view: JsonObject) -> JsonObject:
    """Return an execution view with the status in the dialect's word; `is` holds the native status."""
    status = view["status"]
    return {**view, "status": STATUSES[dialect].get(status, status), "is": status}  # pyright: ignore[reportArgumentType, reportCallIssue] - a view has a status


def events_in(
    dialect: Dialect,
    execution: ExecutionId,
    row: Row,
    observability: Observability = "standard",
    redact: Redact = unchanged,
) -> Iterator[JsonObject]:
    """Yield the public events of a row in the dialect's words. Each keeps its `id`, by which a reader continues."""
    for public_event in public_events(execution, row, observability, redact):
        translated = _in_dialect(dialect, public_event)
        if translated is not None:
            yield translated


def _in_dialect(dialect: Dialect, public_event: JsonObject) -> JsonObject | None:
    name = str(public_event["event"])
    match dialect:
        case "native" | "rows":
            return public_event
        case "steps" | "plan":
            word = _STEP_EVENTS.get(name)
            return None if word is None else _renamed(public_event, event=word)
        case "graph":
            word = _NODE_RESULTS.get(name)
            return None if word is None else _renamed(public_event, event="node_result", status=word)


def _renamed(public_event: JsonObject, **words: Json) -> JsonObject:
    return {**public_event, **words}


LEVELS_MAX: Final = 10_000

_SHAPE: Final = frozenset(
    {
        *(
            "kind",
            "step",
            "node",
            "scope",
            "after",
            "edge",
            "thread",
            "merged",
            "starts",
            "branches",
            "steps",
            "before",
        ),
        *("next", "labels", "undone_by", "caller", "timer", "purpose", "phase", "cause", "outcome", "about", "limit"),
        *("gate", "by", "to", "groups", "approvers", "action", "name", "workflow", "version", "definition", "session"),
        *("parent", "origin", "undoes", "usage", "limits", "code", "message", "orders", "paths", "dropped", "brought"),
    }
)
"""Fields of events that every level includes; numbers are included too."""
_SHAPE_OF: Final[Mapping[str, frozenset[str]]] = {
    "attempt_started": frozenset({"reason"}),
    "token_ended": frozenset({"reason"}),
    "cancelled": frozenset({"reason"}),
    "gate_opened": frozenset({"options", "form"}),
}
_OF_FAILURES: Final = frozenset({"code", "message", "retryable", "nodeId"})
_CONTENT: Final = ("input", "state", "output", "waiting", "answers", "progress")
"""Fields of the execution view."""


class HiddenByRedaction(CallerError):
    """The execution's redaction level does not allow this."""

    code = "hidden-by-redaction"


def redacted_event(event: JsonObject, level: Observability, redact: Redact) -> JsonObject:
    """Return an event of the journal (`event_view`) at a level. `withheld` names the removed fields."""
    return redact(_shape(event) if level == "minimal" else event)


def redacted_view(execution: ExecutionView, redact: Redact, *, keeps: Collection[str] = ()) -> ExecutionView:
    """Return the view of an execution at its own level. Fields in `keeps`, which the caller asked for, are included at
    every level and unmasked."""
    view = json_of(execution)
    fields = {name: view[name] for name in keeps if name in view}
    if view.get("observability") == "minimal":
        withheld = [name for name in _CONTENT if name not in keeps and view.get(name)]
        view = {**view, **{name: _empty(view[name]) for name in withheld}}
        if withheld:
            view["withheld"] = cast("list[Json]", withheld)
        view["errors"] = [_failure(cast("JsonObject", error)) for error in cast("list[Json]", view["errors"])]
    return cast("ExecutionView", {**redact(view), **fields})


async def level_of(app: AppContext, execution: str) -> Observability:
    """Return the redaction level of an execution. Raises `UnknownExecution`."""
    name = ExecutionId(execution)
    driver = app.runtime.drivers.get(name)
    if driver is not None:
        return observability_of(driver.state.setup.options)
    summary = await app.store.executions.find(name)
    levels = app[LEVELS]
    known_level = levels.get(name)
    # Its journal may be long, and a reader that pages through it asks for every page.
    if known_level is not None and summary is not None and known_level[0] == summary.updated:
        return known_level[1]
    level = observability_of((await app.runtime.load(name)).setup.options)
    if summary is not None:
        if len(levels) >= LEVELS_MAX:
            levels.clear()
        levels[name] = (summary.updated, level)
    return level


async def must_be_visible(app: AppContext, execution: str, what: str) -> None:
    """Raises `HiddenByRedaction`, `UnknownExecution`."""
    if await level_of(app, execution) == "minimal":
        raise HiddenByRedaction(
            f"{execution!r} has the redaction level 'minimal': {what} would reveal its content",
            hint="`pointsman export` on the machine of the store exports it.",
        )


LEVELS: Final = Part[dict[ExecutionId, tuple[Instant, Observability]]]("levels", lambda _: {})
"""The level, with the update time of the summary when it was read."""


def _shape(event: JsonObject) -> JsonObject:
    plain_fields = _SHAPE | _SHAPE_OF.get(str(event["kind"]), frozenset())
    result: JsonObject = {}
    withheld: list[Json] = []
    for name, value in event.items():
        if name in plain_fields or value is None or isinstance(value, int | float):
            result[name] = value
        elif name == "failure" and isinstance(value, dict):
            result[name] = _failure(value)
        else:
            withheld.append(name)
    if withheld:
        result["withheld"] = withheld
    return result


def _failure(failure: JsonObject) -> JsonObject:
    return {name: value for name, value in failure.items() if name in _OF_FAILURES}


def _empty(value: Json) -> Json:
    return {} if isinstance(value, dict) else [] if isinstance(value, list) else None
