"""Waits for a duration, a point in time, or an event. A wait costs nothing while it lasts.

event sent to this execution ─▶ waiting steps take it │ none: buffered, and taken by the first step that waits
event sent to all            ─▶ waiting steps take it │ none: it is dropped and leaves no row
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final, NamedTuple

from pointsman.engine.actions import WaitAction
from pointsman.engine.commands import DropTimer
from pointsman.engine.decide.context import DecisionContext, ExitStep
from pointsman.engine.decide.entry import Entry, fail_open_step, set_timer
from pointsman.engine.decide.outputs import StepRefused, check_writes, evaluate_outputs, event_must_fit, failure_from
from pointsman.engine.events.steps import StepSucceeded
from pointsman.engine.events.waits import BufferedEventUsed, EventAwaited, EventConsumed
from pointsman.engine.failures import Failure
from pointsman.engine.reports import EventReceived
from pointsman.engine.state import StepState
from pointsman.errors import CallerError, PointsmanError
from pointsman.values import Json, JsonObject

BUFFERED_EVENTS_MAX: Final = 100
"""Maximum number of events that one execution buffers for later waits."""


class TooManyBufferedEvents(CallerError):
    """The event buffer of the execution is full, and no step waits for this event. Nothing was written."""

    code = "too-many-buffered-events"


def begin(entry: Entry, action: WaitAction) -> None:
    """Open the wait and set its timer."""
    ctx, scope = entry.ctx, entry.scope
    env = entry.environment()
    now = ctx.state.at
    if action.event is not None:
        name = str(ctx.value(scope, action.event, env))
        entry.open_step()
        ctx.emit(EventAwaited(step=entry.step, name=name))
        if ctx.state.events.buffered and _take_kept(ctx, ctx.state.steps[entry.step]):
            return
        if action.timeout_s is not None:
            set_timer(ctx, entry.step, "event", now + action.timeout_s)
        return
    at = now
    if action.duration is not None:
        at = now + _seconds(entry, ctx.value(scope, action.duration, env))
    elif action.until is not None:
        at = _seconds(entry, ctx.value(scope, action.until, env))
    entry.open_step()
    set_timer(ctx, entry.step, "wait", at)


def _seconds(entry: Entry, value: Json) -> float:
    if isinstance(value, int | float) and not isinstance(value, bool):
        return float(value)
    raise StepRefused(
        Failure(
            code="not-a-time",
            message=f"{entry.node.id!r} cannot wait for {value!r}",
            hint="Give a number with a unit (`30s`, `5m`) or a time like 2027-01-31T12:00:00Z.",
        )
    )


def receive(ctx: DecisionContext, report: EventReceived) -> None:
    """Process an event from outside. Raises `TooManyBufferedEvents` if it must be buffered and the buffer is full."""
    takers = _takers(ctx, report.name, report.data)
    if not takers and not report.keeps:
        return
    event_must_fit(ctx, report)
    buffers = report.keeps and not takers
    if buffers and len(ctx.state.events.buffered) >= BUFFERED_EVENTS_MAX:
        raise TooManyBufferedEvents(
            f"{len(ctx.state.events.buffered)} events are buffered in {ctx.state.id!r}, which is the maximum",
            hint="Send more after its steps have consumed some, or publish the event, which does not buffer it.",
        )
    ctx.emit(EventConsumed(name=report.name, data=report.data, by=report.by, key=report.key, kept=buffers))
    _give(ctx, takers, report.name, report.data)


def deliver(ctx: DecisionContext, name: str, data: Json) -> None:
    """Deliver an event that a step emitted to every waiting step of this execution that accepts it."""
    _give(ctx, _takers(ctx, name, data), name, data)


class EventReceiver(NamedTuple):
    """A step that accepts an event, or whose condition failed on it."""

    at: StepState
    failure: Failure | None = None


def _takers(ctx: DecisionContext, name: str, data: Json) -> list[EventReceiver]:
    """Return the steps that wait for an event and accept it, evaluated on the state before the event."""
    if name not in ctx.state.events.waiters:
        return []
    waits = [at for at in ctx.state.steps.values() if at.event == name]
    return [taker for at in waits if (taker := _taker(ctx, at, data)) is not None]


def _taker(ctx: DecisionContext, at: StepState, data: Json) -> EventReceiver | None:
    node = ctx.node(at.step)
    action = node.action
    if not isinstance(action, WaitAction) or action.match is None:
        return EventReceiver(at)
    try:
        env = ctx.environment(at.scope, node, at.incoming.value, {"event": data, "data": data})
        return EventReceiver(at) if action.match(env) else None
    except PointsmanError as why:
        return EventReceiver(at, failure_from(why))


def _give(ctx: DecisionContext, takers: Sequence[EventReceiver], name: str, data: Json) -> None:
    for at, failure in takers:
        if failure is not None:
            fail_open_step(ctx, at.step, failure)
        else:
            done(ctx, at, {"event": name, "data": data}, data)


def _take_kept(ctx: DecisionContext, at: StepState) -> bool:
    """Continue a wait with the first buffered event that it accepts. Return False if no event fits."""
    for number, event in ctx.state.events.buffered.items():
        if event.name != at.event:
            continue
        taker = _taker(ctx, at, event.data)
        if taker is not None:
            ctx.emit(BufferedEventUsed(step=at.step, number=number))
            _give(ctx, [taker], event.name, event.data)
            return True
    return False


def done(ctx: DecisionContext, at: StepState, view: JsonObject, data: Json) -> None:
    """Complete a wait."""
    node = ctx.node(at.step)
    try:
        writes = evaluate_outputs(ctx, at.scope, node, data, displayed=view)
        check_writes(ctx, at.scope, node, at.incoming.lineage, writes, data)
    except PointsmanError as why:
        fail_open_step(ctx, at.step, failure_from(why))
        return
    for timer in at.timers:
        ctx.command(DropTimer(timer=timer))
    ctx.emit(StepSucceeded(step=at.step, attempt=at.attempt, result=data, keeps=True, annotations=view, writes=writes))
    ctx.dirty_scopes[at.step.scope] = None
    ctx.enqueue(ExitStep(at.step))


def timed_out(ctx: DecisionContext, at: StepState) -> None:
    """Handle the timeout of a wait for an event."""
    action = ctx.node(at.step).action
    if isinstance(action, WaitAction) and action.goes_on_timeout:
        done(ctx, at, {"timedOut": True}, None)
        return
    failure = Failure(code="wait-timeout", message=f"{at.step.node!r} did not receive the event {at.event!r} in time")
    fail_open_step(ctx, at.step, failure)
