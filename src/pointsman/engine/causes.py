"""Infer the report that caused a row from its events. Used by replay and fork only.

A few rows hold less than their report: the answer of an agent that tripped a limit, or a gate's answer whose writes
were refused.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final, cast

from pointsman.engine.decide import workflow_tools
from pointsman.engine.decide.failure_handling import NO_ROUTE, reason_in
from pointsman.engine.events.lifecycle import (
    CompensationBegan,
    ExecutionAdmitted,
    ExecutionCancelled,
    ExecutionFailed,
    ExecutionForked,
    ExecutionMigrated,
    ExecutionPaused,
    ExecutionResumed,
    ExecutionRetried,
    ExecutionStarted,
    ExecutionSteered,
    LimitsRaised,
    UndoEnded,
)
from pointsman.engine.events.steps import (
    ArrivalHeld,
    ArrivalParked,
    AttemptStarted,
    BranchSettled,
    Event,
    InstantStepCompleted,
    StepCancelled,
    StepFailed,
    StepStarted,
    StepSucceeded,
)
from pointsman.engine.events.waits import (
    ChildStopRequested,
    ChildUsageCounted,
    EventConsumed,
    GateClosed,
    GateDelegated,
    GateOpened,
    GateVoted,
    OutboxDelivered,
    TimerElapsed,
    ToolCallEnded,
    ToolChildrenRequested,
    WarningRaised,
    WorkerAwaited,
)
from pointsman.engine.failures import Failure
from pointsman.engine.fold.scopes import failure_of
from pointsman.engine.reports import (
    AdmissionGranted,
    CancelRequested,
    ChildEnded,
    ChildUsageReported,
    DelegationRequested,
    DeliveryConfirmed,
    EventReceived,
    ForkRequested,
    GateAnswered,
    MigrationRequested,
    PauseRequested,
    Report,
    ResumeRequested,
    RetryRequested,
    Start,
    SteerRequested,
    TimerFired,
    ToolCallsProposed,
    WorkDone,
    WorkerMissing,
    WorkerOffered,
    WorkFailed,
)
from pointsman.engine.state import ExecutionState, StepState
from pointsman.values import JsonObject

WORK: Final = "work"
"""Code of warnings about a piece of work."""


def report_of(state: ExecutionState, events: Sequence[Event]) -> Report | None:
    """Return the report that caused a row, from its events and the state before; None if they lack a part of it."""
    said = 0
    while said < len(events) and isinstance(warned := events[said], WarningRaised) and warned.code == WORK:
        said += 1
    warnings = tuple(cast(WarningRaised, event).message for event in events[:said])
    match events[said]:
        case StepSucceeded() as done:
            return _done(state, done, events, warnings)
        case StepFailed() as failed if not warnings:
            return _failed(state, failed, events)
        case AttemptStarted(reason="worker", step=step, attempt=attempt):
            return WorkerOffered(step=step, attempt=attempt)
        case AttemptStarted() as again if again.step in state.steps and not warnings:
            advice: JsonObject = {"choice": "retry", "inputs": again.input, **reason_in(events)}
            return WorkDone(step=again.step, attempt=again.attempt - 1, result=advice)
        case event if not warnings:
            return _told(state, event, events)
        case _:
            return None


def _done(
    state: ExecutionState, done: StepSucceeded, events: Sequence[Event], warnings: tuple[str, ...]
) -> Report | None:
    at = state.steps.get(done.step)
    if at is None:
        return None
    if at.child:
        return ChildEnded(step=done.step, attempt=done.attempt, output=done.result, usage=done.usage)
    if at.phase == "recover":
        return _advised(at, done, events)
    said = done.annotations or {}
    text = said.get("text")
    return WorkDone(
        step=done.step,
        attempt=done.attempt,
        result=done.result,
        next=done.next,
        labels=done.labels,
        text=text if isinstance(text, str) else None,
        pending=done.pending,
        messages=done.messages,
        warnings=warnings,
        usage=done.usage,
        cached=done.cached,
        printed=done.printed,
    )


def _advised(at: StepState, done: StepSucceeded, events: Sequence[Event]) -> WorkDone:
    """Return the report of a model's advice: another route, or a substitute value."""
    advice: JsonObject = {"choice": "substitute", "value": done.result}
    if at.failure is not None and done.result == failure_of(at.failure):
        for event in events:
            match event:
                case StepStarted() | InstantStepCompleted() if event.after == done.step:
                    advice = {"choice": "route", "route": event.step.node}
                case ArrivalParked() | ArrivalHeld() if event.after == done.step:
                    advice = {"choice": "route", "route": event.node}
                case _:
                    pass
    return WorkDone(step=done.step, attempt=done.attempt, result={**advice, **reason_in(events)}, usage=done.usage)


def _failed(state: ExecutionState, failed: StepFailed, events: Sequence[Event]) -> Report | None:
    at = state.steps.get(failed.step)
    if at is None:
        return None
    failure = failed.failure
    if at.child:
        return ChildEnded(step=failed.step, attempt=failed.attempt, failure=failure, usage=failed.usage)
    if not at.is_running:
        return None
    if at.phase == "recover":
        advice: JsonObject = {"choice": "give up", **reason_in(events)}
        return WorkDone(step=failed.step, attempt=failed.attempt, result=advice) if failure == at.failure else None
    left = (failure.details or {}).get("left")
    if failure.code == NO_ROUTE and isinstance(left, list):
        labels = tuple(label for label in left if isinstance(label, str))
        return WorkDone(step=failed.step, attempt=failed.attempt, labels=labels, usage=failed.usage)
    return WorkFailed(step=failed.step, attempt=failed.attempt, failure=failure, usage=failed.usage)


def _told(state: ExecutionState, first: Event, events: Sequence[Event]) -> Report | None:
    """Return the report of a person, a timer or another execution."""
    match first:
        case ExecutionStarted():
            return _start(first)
        case GateClosed() | GateVoted() | GateDelegated() | GateOpened():
            return _said_at_gate(state, first)
        case TimerElapsed(timer=timer):
            return TimerFired(timer=timer)
        case EventConsumed(kept=False) if len(events) == 1:
            return None  # no step consumed it; the present engine writes no such row
        case EventConsumed(name=name, data=data, by=by, key=key, kept=kept):
            return EventReceived(name=name, data=data, by=by, key=key, keeps=kept)
        case ChildUsageCounted(step=step, usage=usage, call=call):
            return ChildUsageReported(step=step, attempt=state.steps[step].attempt, usage=usage, call=call)
        case ToolChildrenRequested(step=step, calls=calls):
            return ToolCallsProposed(step=step, attempt=state.steps[step].attempt, calls=calls)
        case WorkerAwaited(step=step, attempt=attempt, needs=needs, message=message, hint=hint):
            lacking = Failure(code=needs.partition(":")[0], message=message, hint=hint, needs=needs)
            return WorkerMissing(step=step, attempt=attempt, failure=lacking)
        case ToolCallEnded(step=step):
            return workflow_tools.report_of(state.steps[step], first)
        case OutboxDelivered(orders=orders):
            return DeliveryConfirmed(orders=orders)
        case _:
            return _wanted(first, events)


def _wanted(first: Event, events: Sequence[Event]) -> Report | None:
    """Return the request about the execution as a whole."""
    match first:
        case ExecutionAdmitted():
            return AdmissionGranted()
        case ExecutionPaused(by=by):
            return PauseRequested(by=by)
        case LimitsRaised(limits=limits):
            again = next(e for e in events if isinstance(e, ExecutionResumed | ExecutionRetried))
            if isinstance(again, ExecutionResumed):
                return ResumeRequested(limits=limits, by=again.by, step=again.stepping)
            return RetryRequested(limits=limits, by=again.by)
        case ExecutionResumed(by=by, stepping=stepping):
            return ResumeRequested(by=by, step=stepping)
        case ExecutionRetried(by=by):
            return RetryRequested(by=by)
        case ExecutionForked():
            return _fork(first, events)
        case ExecutionSteered(edits=edits, messages=messages, goto=goto, reason=reason, by=by):
            return SteerRequested(edits=edits, messages=messages, goto=goto, reason=reason, by=by)
        case ExecutionMigrated():
            return _move(first)
        case (
            StepCancelled()
            | BranchSettled()
            | ChildStopRequested()
            | CompensationBegan()
            | UndoEnded()
            | ExecutionCancelled()
            | ExecutionFailed()
        ):
            return _cancel(events)
        case _:
            return None


def _cancel(events: Sequence[Event]) -> CancelRequested | None:
    """Return the cancel request. Without compensation, `now` makes no difference."""
    for event in events:
        if isinstance(event, CompensationBegan):
            return CancelRequested(reason=event.reason, by=event.by) if event.failure is None else None
    match events[-1]:
        case ExecutionCancelled(reason=reason, by=by):
            return CancelRequested(reason=reason, by=by, now=True)
        case ExecutionFailed():
            return CancelRequested(now=True)
        case _:
            return None


def _said_at_gate(state: ExecutionState, first: GateClosed | GateVoted | GateDelegated | GateOpened) -> Report:
    """Return the report of a person at a gate, or of the attempt that opened it."""
    match first:
        case GateClosed() | GateVoted():
            return GateAnswered(
                step=first.step,
                action=first.action,
                data=first.data,
                comment=first.comment,
                by=first.by,
                groups=first.groups,
                key=first.key,
                digest=first.digest,
            )
        case GateDelegated(step=step, by=by, to=to, groups=groups, comment=comment):
            return DelegationRequested(step=step, by=by, to=to, groups=groups, comment=comment)
        case GateOpened(step=step, calls=calls):
            return ToolCallsProposed(step=step, attempt=state.steps[step].attempt, calls=calls)


def _start(first: ExecutionStarted) -> Start:
    return Start(
        input=first.input,
        config=first.config,
        session=first.session,
        messages=first.messages or [],
        parent=first.parent,
        definition=first.definition,
        options=first.options,
        seed=first.seed,
        attempt=first.attempt,
        queued=first.queued,
    )


def _move(event: ExecutionMigrated) -> MigrationRequested:
    return MigrationRequested(definition=event.definition, options=event.options, by=event.by)


def _fork(first: ExecutionForked, events: Sequence[Event]) -> ForkRequested:
    raised = [event.limits for event in events if isinstance(event, LimitsRaised)]
    return ForkRequested(
        origin=first.origin,
        row=first.row,
        before=first.before,
        edits=first.edits,
        input=first.input,
        session=first.session,
        limits=raised[0] if raised else {},
        onto=next((_move(event) for event in events if isinstance(event, ExecutionMigrated)), None),
        by=first.by,
        undoes=first.undoes,
    )
