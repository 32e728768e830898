"""Fold: the state that a list of events means. Needs no plan, no clock, no code of the day the events were decided.

    fold(state, event)   changes the one state it owns, in O(1) whatever its size

`begin_row` comes before the events of a row. Folding the rows of a journal one by one, or in any grouping, gives the
state that deciding them gave.
"""

from __future__ import annotations

from collections import ChainMap
from typing import assert_never

from pointsman.engine import concurrency, events, scopes, tokens
from pointsman.engine.data import Data
from pointsman.engine.events import CourseEvent, Event, LifeEvent, WaitEvent
from pointsman.engine.state import (
    ExecutionState,
    Gate,
    Left,
    LoopState,
    Opening,
    ScopeState,
    StepState,
    Timer,
    Waiting,
)
from pointsman.engine.steps import Scope, Step, Thread
from pointsman.engine.writing import say, show, spend, write
from pointsman.values import Json, JsonObject


def begin_row(state: ExecutionState, seq: int, at: float) -> None:
    """A new decision begins at `at` (unix seconds)."""
    state.seq = seq
    state.at = at
    state.left = {}


def fold(state: ExecutionState, event: Event) -> None:
    """Apply one event. The frequent ones come first."""
    match event:
        case events.StepSucceeded():
            _step_succeeded(state, event)
        case events.StepStarted():
            _step_started(state, event)
        case events.StepPassed():
            _step_passed(state, event)
        case events.BranchSettled():
            scopes.settle_branch(state, event)
        case events.LoopRound():
            _loop_round(state, event)
        case events.TokenEnded():
            _token_ended(state, event)
        case events.Parked():
            _parked(state, event)
        case events.Held():
            _held(state, event)
        case _:
            _fold_course(state, event)


def _fold_course(state: ExecutionState, event: CourseEvent | WaitEvent | LifeEvent) -> None:
    match event:
        case events.StepFailed():
            _step_failed(state, event)
        case events.AttemptStarted():
            _attempt_started(state, event)
        case events.LeavingFailed():
            at = event.step
            state.failed = Waiting(at.node, at.scope, "", state.left[at])
        case events.StepCancelled():
            tokens.settle(state, event.step)
        case events.ScopesOpened():
            _scopes_opened(state, event)
        case events.ScopesClosed():
            scopes.close(state, event)
        case events.LoopEntered():
            state.scopes[event.scope].loops[event.node] = LoopState(items=event.items, item_name=event.item_name)
        case events.LoopLeft():
            state.scopes[event.scope].loops.pop(event.node, None)
        case events.LimitsRaised():
            state.limits.update(event.limits)
        case _:
            _fold_waits(state, event)


def _fold_waits(state: ExecutionState, event: WaitEvent | LifeEvent) -> None:
    match event:
        case events.GateOpened():
            state.steps[event.step].gate = Gate(
                event.gate, event.message, event.options, event.form, event.shown, event.editable, event.approvers
            )
        case events.GateClosed():
            state.steps[event.step].gate = None
        case events.TimerSet():
            _timer_set(state, event)
        case events.TimerRang():
            state.timers.pop(event.timer, None)
        case events.EventAwaited():
            state.steps[event.step].event = event.name
        case events.ChildAsked():
            state.steps[event.step].child = True
        case events.Warned() | events.Emitted() | events.EventTaken() | events.LimitHit():
            pass
        case _:
            _fold_life(state, event)


def _fold_life(state: ExecutionState, event: LifeEvent) -> None:
    match event:
        case events.ExecutionStarted():
            _started(state, event)
        case events.HandedOver():
            state.handed_off = True
            state.left[NOBODY] = Left(event.value)
        case events.ExecutionPaused():
            state.status = "paused"
        case events.ExecutionResumed():
            state.status, state.interruption, state.handed_off = "running", None, False
            _take_up(state)
        case events.ExecutionInterrupted():
            state.status, state.interruption = "interrupted", event.limit
        case events.ExecutionCompleted():
            state.status, state.output, state.closes_session = "completed", event.output, event.closes_session
        case events.ExecutionFailed():
            state.status, state.failure = "failed", event.failure
        case events.ExecutionCancelled():
            state.status = "cancelled"
        case events.ExecutionRetried():
            _retried(state)
        case _:
            assert_never(event)


def _started(state: ExecutionState, event: events.ExecutionStarted) -> None:
    state.status = "running"
    state.workflow, state.version = event.workflow, event.version
    state.input, state.config, state.seed = event.input, event.config, event.seed
    state.session, state.parent, state.attempt = event.session, event.parent, event.attempt
    state.definition, state.options = event.definition, event.options
    state.started_at = state.at
    data = {**event.state, **event.input}
    if event.messages is not None:
        data["messages"] = list(event.messages)
        state.messages = len(event.messages)
    names: dict[str, Json] = {
        "input": event.input,
        "session": event.session,
        "execution": {
            "id": state.id,
            "workflow": event.workflow,
            "version": event.version,
            "attempt": event.attempt,
            "startedAt": state.at,
        },
    }
    state.scopes = {(): ScopeState((), None, None, Data(data), names, {})}


def came(
    state: ExecutionState,
    scope: ScopeState,
    node: str,
    after: Step | None,
    merged: tuple[events.Arrival, ...],
    thread: Thread,
) -> Left:
    """What reaches a step, and take the parked arrivals it consumes."""
    if not merged:
        return (Left(None) if after is None else left_by(state, after))._replace(thread=thread)
    parked = scope.parked[node]
    left = Left(None)
    for arrival in merged:
        left = parked.pop((arrival.edge, arrival.thread)).left
    if not parked:
        del scope.parked[node]
    scope.tokens -= len(merged)  # the step that consumes them counts from here on
    if len(merged) > 1 and scope.trails:
        concurrency.merge(scope, thread)
    return left._replace(thread=thread)


def left_by(state: ExecutionState, step: Step) -> Left:
    """What a step left behind; a parallel that is still open passes on what reached it."""
    left = state.left.get(step)
    return left if left is not None else state.steps[step].left


def scope_of(state: ExecutionState, key: Scope) -> ScopeState:
    """The scope; a branch's is made when its first step comes."""
    scope = state.scopes.get(key)
    return scope if scope is not None else scopes.begin(state, key)


def _step_started(state: ExecutionState, event: events.StepStarted) -> None:
    step = event.step
    scope = scope_of(state, step.scope)
    left = came(state, scope, step.node, event.after, event.merged, event.thread)
    if event.caller is not None:
        left = left._replace(caller=event.caller)
    state.taken += 1
    scope.visits[step.node, step.thread] = step.visit
    tokens.add(state, StepState(step, scope, left, event.input, event.messages, runs=event.runs))


def _step_passed(state: ExecutionState, event: events.StepPassed) -> None:
    step = event.step
    scope = scope_of(state, step.scope)
    left = came(state, scope, step.node, event.after, event.merged, event.thread)
    state.taken += 1
    scope.visits[step.node, step.thread] = step.visit
    if event.replaces:
        left = left._replace(value=event.result, pending=())
    result = left.value if event.takes else event.result
    if event.writes:
        write(state, scope, event.writes, result, event.thread)
    if event.replaces or event.takes or event.said:
        scope.nodes[step.node] = show(result, event.said)
    state.left[step] = left


def _step_succeeded(state: ExecutionState, event: events.StepSucceeded) -> None:
    step = event.step
    at = state.steps[step]
    scope = at.scope
    scope.nodes[step.node] = show(event.result, event.said)
    if event.writes:
        write(state, scope, event.writes, event.result, at.left.thread)
    if event.messages:
        write(state, scope, say(event.messages), None, at.left.thread)
        if not step.scope:
            state.messages += len(event.messages)
    if event.usage is not None:
        spend(state, event.usage)
    if event.repeats:
        state.guard[step.node, step.scope] = (event.mark, event.repeats)
    value = at.left.value if event.keeps else event.result
    state.left[step] = at.left._replace(value=value, pending=event.pending)
    tokens.settle(state, step)


def _step_failed(state: ExecutionState, event: events.StepFailed) -> None:
    at = state.steps[event.step]
    at.failures += 1
    at.failure = event.failure
    if event.usage is not None:
        spend(state, event.usage)
    if at.runs:
        tokens.works(state, -1)
        at.runs = False
    if event.final:
        value: Json = failure_value(event)
        at.scope.nodes[event.step.node] = value
        state.left[event.step] = at.left._replace(value=value)
        state.failed = at
        tokens.settle(state, event.step)


def failure_value(event: events.StepFailed) -> JsonObject:
    """A failure as data, for error edges and joins."""
    failure = event.failure
    return {
        "error": {
            "code": failure.code,
            "message": failure.message,
            "retryable": failure.retryable,
            "node": event.step.node,
            "step": str(event.step),
            "attempt": event.attempt,
            "details": failure.details,
        }
    }


def _attempt_started(state: ExecutionState, event: events.AttemptStarted) -> None:
    at = state.steps[event.step]
    at.attempt, at.phase = event.attempt, event.phase
    if event.phase == "work":
        at.input = event.input if event.input is not None else at.input
        at.advised = None
    else:
        at.advised = event.input
    at.reasks += event.reason == "reask"
    at.advices += event.reason == "advice"
    if not at.runs:
        tokens.works(state, 1)
        at.runs = True


def _parked(state: ExecutionState, event: events.Parked) -> None:
    scope = scope_of(state, event.scope)
    parked = scope.parked.setdefault(event.node, {})
    key = (event.edge, event.thread)
    scope.tokens += key not in parked
    left = left_by(state, event.after)._replace(thread=event.thread)
    parked[key] = Waiting(event.node, event.scope, event.edge, left)


def _held(state: ExecutionState, event: events.Held) -> None:
    if event.scope not in state.scopes:
        scopes.begin(state, event.scope)
    left = Left(None) if event.after is None else left_by(state, event.after)
    left = left._replace(thread=event.thread, caller=event.caller or left.caller)
    state.held.append(Waiting(event.node, event.scope, event.edge, left))
    state.scopes[event.scope].tokens += 1


def _take_up(state: ExecutionState) -> None:
    """What was held may arrive now: it is left by stand-in steps, numbered as it was held."""
    for number, waiting in enumerate(state.held):
        tokens.forget(state.scopes[waiting.scope], 1)
        state.left[held_step(number)] = waiting.left
    state.held = []


NOBODY = Step("", (), 0)
"""The stand-in for who sends control to the node of last resort."""


def held_step(number: int) -> Step:
    """The stand-in for the step that sent a held arrival."""
    return Step("", (), number + 1)


def _token_ended(state: ExecutionState, event: events.TokenEnded) -> None:
    place = (event.after.node, event.after.scope)
    if event.reason == "end":
        state.outputs[place] = event.output
    elif event.answers:
        state.answers[place] = state.left[event.after].value


def _scopes_opened(state: ExecutionState, event: events.ScopesOpened) -> None:
    at = state.steps[event.step]
    scope = at.scope
    nodes: dict[str, Json] = {**scope.base_nodes, **scope.nodes}
    state.openings[event.step] = Opening(
        event.step,
        scope,
        event.starts,
        event.items,
        event.keys,
        event.item_name,
        scope.data.shared(),
        nodes,
        event.joined,
    )


def visible_nodes(scope: ScopeState) -> ChainMap[str, Json] | dict[str, Json]:
    """The latest results as this scope sees them."""
    return ChainMap(scope.nodes, dict(scope.base_nodes)) if scope.base_nodes else scope.nodes


def _loop_round(state: ExecutionState, event: events.LoopRound) -> None:
    loop = state.scopes[event.scope].loops[event.node]
    loop.round = event.round
    loop.previous = state.left[event.after].value if event.round > 1 else None


def _timer_set(state: ExecutionState, event: events.TimerSet) -> None:
    state.timers[event.timer] = Timer(event.at, event.purpose, event.step)
    if event.step is not None and event.step in state.steps:
        state.steps[event.step].timers.append(event.timer)


def _retried(state: ExecutionState) -> None:
    """The failed step is open again; whatever ran beside it still is."""
    state.status, state.failure = "running", None
    at = state.failed
    if isinstance(at, StepState):
        tokens.add(state, at)
