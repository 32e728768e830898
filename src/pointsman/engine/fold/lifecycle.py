"""Fold events of the execution as a whole: status, limits, compensation, forks, migration."""

from __future__ import annotations

from typing import TypeAlias, assert_never

from pointsman.engine.data import Data
from pointsman.engine.events import lifecycle
from pointsman.engine.events.lifecycle import LifecycleEvent
from pointsman.engine.fold import scopes
from pointsman.engine.fold.scopes import NOBODY, edit, held_sender, repark, resume_held
from pointsman.engine.fold.steps import MESSAGES
from pointsman.engine.instants import instant_text
from pointsman.engine.state import Compensation, ExecutionState, ScopeState, StepOutput, StepState
from pointsman.engine.steps import Write
from pointsman.values import Json

Steering: TypeAlias = lifecycle.ExecutionSteered | lifecycle.ControlRedirected
Compensating: TypeAlias = lifecycle.CompensationBegan | lifecycle.UndoBegan | lifecycle.UndoEnded


def fold_lifecycle(state: ExecutionState, event: LifecycleEvent) -> None:
    """Apply one event of the execution as a whole."""
    scopes.tick(state)
    match event:
        case lifecycle.ExecutionStarted():
            _started(state, event)
        case lifecycle.ExecutionAdmitted():
            state.status = "running"
        case lifecycle.LimitsRaised():
            state.limits.raised.update(event.limits)
        case lifecycle.LimitEscalated():
            _handed_over(state, event)
        case lifecycle.ExecutionPaused():
            state.status, state.pause.by = "paused", event.by
            state.pause.breakpoints.stop(event.before)
        case lifecycle.ExecutionResumed():
            if state.status == "interrupted":
                state.limits.interruption, state.limits.escalated_at_step, state.limits.escalation_gate = (
                    None,
                    None,
                    None,
                )
            state.status, state.limits.budget_stopped = "running", []
            state.pause.breakpoints.stepping = event.stepping
            resume_held(state)
        case lifecycle.ExecutionInterrupted():
            state.status, state.limits.interruption = "interrupted", event.limit
        case lifecycle.ExecutionCompleted():
            state.status, state.outcome.output, state.outcome.closes_session = (
                "completed",
                event.output,
                event.closes_session,
            )
            _all_gates(state)
        case lifecycle.ExecutionFailed():
            state.status, state.outcome.failure = "failed", event.failure
            state.outcome.failed_work = [state.row.failures[step] for step in event.steps]
            _all_gates(state)
        case lifecycle.ExecutionCancelled():
            state.status = "cancelled"
            _all_gates(state)
        case _:
            _live_again(state, event)


def _live_again(
    state: ExecutionState,
    event: lifecycle.ExecutionRetried
    | lifecycle.ExecutionForked
    | lifecycle.ExecutionMigrated
    | Compensating
    | Steering,
) -> None:
    match event:
        case lifecycle.ExecutionRetried():
            _retried(state, event)
        case lifecycle.ExecutionForked():
            _forked(state, event)
        case lifecycle.ExecutionMigrated():
            state.setup.workflow, state.setup.version = event.workflow, event.version
            state.setup.definition, state.setup.options = event.definition, event.options
        case lifecycle.ExecutionSteered():
            _steered(state, event)
        case lifecycle.ControlRedirected():
            state.row.outputs[NOBODY] = StepOutput(event.value)
            _forget_tokens(state)
        case _:
            _compensating(state, event)


def _steered(state: ExecutionState, event: lifecycle.ExecutionSteered) -> None:
    for change in event.edits:
        edit(state, change)
    for message in event.messages:
        state.root.data.write(Write(MESSAGES, "append", message), message)
    state.counters.messages += len(event.messages)


def _compensating(state: ExecutionState, event: Compensating) -> None:
    match event:
        case lifecycle.CompensationBegan():
            state.status, state.limits.interruption, state.limits.escalation_gate = "running", None, None
            state.compensation = Compensation(event.failure, event.step, event.reason, event.by)
            _forget_tokens(state)
        case lifecycle.UndoBegan():
            assert state.compensation is not None
            state.compensation.current = undo = state.undo_log.pop()
            state.row.outputs[NOBODY] = StepOutput(undo.result)
        case lifecycle.UndoEnded():
            assert state.compensation is not None
            state.compensation.current = None
            if event.failure is None:
                state.compensation.undone.append(event.step)
            else:
                state.compensation.failed.append((event.step, event.failure))
        case _:
            assert_never(event)


def _all_gates(state: ExecutionState) -> None:
    """Mark all gates as changed: whether they accept answers has changed."""
    for at in state.steps.values():
        if at.gate is not None:
            state.row.changed_gates[at.step] = None


def _started(state: ExecutionState, event: lifecycle.ExecutionStarted) -> None:
    state.status = "pending" if event.queued else "running"
    state.setup.workflow, state.setup.version = event.workflow, event.version
    state.setup.input, state.setup.config, state.setup.seed = event.input, event.config, event.seed
    state.setup.session, state.setup.parent, state.setup.attempt = event.session, event.parent, event.attempt
    state.setup.definition, state.setup.options = event.definition, event.options
    state.setup.started_at = state.at
    data = {**event.state, **event.input}
    if event.messages is not None:
        data["messages"] = list(event.messages)
        state.counters.messages = len(event.messages)
    names: dict[str, Json] = {
        "input": event.input,
        "session": event.session,
        "execution": {
            "id": state.id,
            "workflow": event.workflow,
            "version": event.version,
            "attempt": event.attempt,
            "startedAt": instant_text(state.at),
            **({"by": event.options["by"]} if "by" in event.options else {}),
        },
    }
    state.scopes = {(): ScopeState((), None, None, Data(data), names, {})}


def _handed_over(state: ExecutionState, event: lifecycle.LimitEscalated) -> None:
    """Route to the fallback node and drop all tokens, or open the escalation gate and keep them. The data stay."""
    state.row.outputs[NOBODY] = StepOutput(event.value)
    if event.gate is not None:
        state.limits.escalation_gate = event.gate
        return
    if state.limits.escalation_gate is not None:
        state.status, state.limits.interruption, state.limits.escalation_gate, state.limits.budget_stopped = (
            "running",
            None,
            None,
            [],
        )
    state.limits.escalated_at_step = state.counters.steps
    _forget_tokens(state)


def _forget_tokens(state: ExecutionState) -> None:
    root = state.root
    root.parked, root.open_steps, root.loops, root.tokens = {}, {}, {}, 0
    root.write_log.clear()
    state.scopes = {(): root}
    state.parallel_frames, state.held_arrivals = {}, []


def _retried(state: ExecutionState, event: lifecycle.ExecutionRetried) -> None:
    """Open failed steps again, or turn them into outputs of pseudo-steps numbered after those of held arrivals."""
    state.status, state.outcome.failure = "running", None
    arrivals = resume_held(state)
    for position, failed in enumerate(state.outcome.failed_work):
        if isinstance(failed, StepState) and position not in event.reenter:
            failed.failures = failed.reasks = failed.advices = 0
            scopes.add_step(state, failed)
        elif isinstance(failed, StepState) and position in event.parks:
            repark(failed.scope, failed.arrivals)
        else:
            state.row.outputs[held_sender(arrivals + position)] = failed.incoming
    state.outcome.failed_work = []
    _all_gates(state)


def _forked(state: ExecutionState, event: lifecycle.ExecutionForked) -> None:
    """Give a fork its own id, session and start, without parent and outbox: the origin delivers its messages."""
    state.outbox = {}
    if event.undoes == "own":
        state.undo_log = []
    state.setup.origin, state.setup.parent, state.setup.session = event.origin, None, event.session
    state.setup.started_at = state.at
    if event.input is not None:
        state.setup.input = event.input
    execution = state.root.names["execution"]
    assert isinstance(execution, dict)
    own: dict[str, Json] = {
        "input": state.setup.input,
        "session": event.session,
        "execution": {**execution, "id": state.id},
    }
    for scope in state.scopes.values():
        scope.names |= own
    for change in event.edits:
        edit(state, change)
    _all_gates(state)
