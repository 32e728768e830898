"""Fold: apply events to the state. Needs no plan, no clock and no code from the time of the decision.

    fold(state, event)   changes the given state in place, in O(1) for any size of the state

`begin_decision` precedes the events of a row. Folding the rows of a journal one by one, or in any grouping, gives the
same state as the original decisions.
"""

from __future__ import annotations

from typing import Final, cast, get_args

from pointsman.engine.events import steps as step_events
from pointsman.engine.events import waits as wait_events
from pointsman.engine.events.lifecycle import LifecycleEvent
from pointsman.engine.events.steps import ControlEvent, Event
from pointsman.engine.events.waits import WaitEvent
from pointsman.engine.fold import lifecycle, scopes, steps, waits
from pointsman.engine.state import ExecutionState, LoopState, Timer

LIFECYCLE: Final = frozenset(get_args(LifecycleEvent))
"""Every execution has two of these events; forty failed matches would precede each."""


def begin_decision(state: ExecutionState, seq: int, at: float) -> None:
    """Begin a new decision at `at` (unix seconds)."""
    state.seq = seq
    state.at = at
    row = state.row
    row.outputs = {}
    if row.failures:
        row.failures = {}
    if row.changed_gates:
        row.changed_gates = {}
        row.answered_gates = {}


def fold(state: ExecutionState, event: Event) -> None:
    """Apply one event.

    Frequent events come first and are tested by identity: a failed `match` costs more than most of the folding.
    """
    if type(event) is step_events.StepSucceeded:
        steps.succeeded(state, event)
    elif type(event) is step_events.StepStarted:
        steps.started(state, event)
    elif type(event) is step_events.InstantStepCompleted:
        steps.instant_completed(state, event)
    elif type(event) is step_events.BranchSettled:
        scopes.settle_branch(state, event)
    elif type(event) is step_events.LoopRound:
        _loop_round(state, event)
    elif type(event) is step_events.TokenEnded:
        steps.token_ended(state, event)
    elif type(event) is step_events.ArrivalParked:
        scopes.park_arrival(state, event)
    elif type(event) is step_events.ArrivalHeld:
        scopes.hold_arrival(state, event)
    elif type(event) in LIFECYCLE:
        lifecycle.fold_lifecycle(state, cast(LifecycleEvent, event))
    else:
        _fold_course(state, event)


def _fold_course(state: ExecutionState, event: ControlEvent | WaitEvent | LifecycleEvent) -> None:
    match event:
        case step_events.StepFailed():
            steps.failed(state, event)
        case step_events.AttemptStarted():
            steps.attempt_started(state, event)
        case step_events.ExitFailed():
            steps.leaving_failed(state, event)
        case step_events.StepCancelled():
            scopes.settle_step(state, event.step)
        case step_events.ScopesOpened():
            scopes.opened(state, event)
        case step_events.ScopesClosed():
            scopes.close_scopes(state, event)
        case step_events.LoopEntered():
            state.scopes[event.scope].loops[event.node] = LoopState(items=event.items, item_name=event.item_name)
        case step_events.LoopLeft():
            del state.scopes[event.scope].loops[event.node]
        case step_events.StateRead():
            for path in event.paths:
                state.scopes[event.scope].write_log.read(path, event.lineage, event.node)
        case step_events.LoopRoundFailed():
            _loop_round_failed(state, event)
        case _:
            _fold_wait(state, event)


def _fold_wait(state: ExecutionState, event: WaitEvent | LifecycleEvent) -> None:
    match event:
        case (
            wait_events.GateOpened()
            | wait_events.GateChanged()
            | wait_events.GateVoted()
            | wait_events.GateDelegated()
            | wait_events.GateEscalated()
            | wait_events.GateClosed()
            | wait_events.ToolCallsReviewed()
        ):
            waits.fold_gate(state, event)
        case wait_events.ToolCallEnded() | wait_events.WorkerAwaited():
            steps.suspended_attempt(state, event)
        case wait_events.TimerSet():
            _timer_set(state, event)
        case wait_events.TimerElapsed():
            state.timers.pop(event.timer, None)
        case wait_events.EventAwaited():
            waits.await_event(state, event)
        case wait_events.EventConsumed():
            waits.consume_event(state, event)
        case wait_events.BufferedEventUsed():
            del state.events.buffered[event.number]
        case wait_events.ChildRequested():
            steps.child_asked(state, event)
        case wait_events.ToolChildrenRequested():
            steps.children_asked(state, event)
        case wait_events.EventEmitted() | wait_events.ChildStopRequested() | wait_events.OutboxDelivered():
            waits.update_outbox(state, event)
        case wait_events.WarningRaised() | wait_events.LimitHit() | wait_events.ChildUsageCounted():
            _notice(state, event)
        case _:
            lifecycle.fold_lifecycle(state, event)


def _notice(
    state: ExecutionState, event: wait_events.WarningRaised | wait_events.LimitHit | wait_events.ChildUsageCounted
) -> None:
    match event:
        case wait_events.WarningRaised(code=code, about=about) if about:
            state.warning_keys.add(f"{code}:{about}")
        case wait_events.LimitHit(step=step) if step is not None:
            state.limits.budget_stopped.append(step)
        case wait_events.ChildUsageCounted():
            steps.spent_below(state, event)
        case _:
            pass


def _loop_round(state: ExecutionState, event: step_events.LoopRound) -> None:
    loop = state.scopes[event.scope].loops[event.node]
    loop.round, loop.failure = event.round, None
    loop.previous = state.row.outputs[event.after].value if event.round > 1 else None


def _loop_round_failed(state: ExecutionState, event: step_events.LoopRoundFailed) -> None:
    scope = state.scopes[event.scope]
    scope.loops[event.node].failure = event.failure
    for node in event.dropped:
        scope.tokens -= len(scope.parked.pop(node))


def _timer_set(state: ExecutionState, event: wait_events.TimerSet) -> None:
    state.timers[event.timer] = Timer(event.at, event.purpose, event.step)
    if event.step is not None and event.step in state.steps:
        at = state.steps[event.step]
        at.timers = (*at.timers, event.timer)
