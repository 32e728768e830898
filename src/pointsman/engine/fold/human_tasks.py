"""Fold events of gates: opened, changed, voted, delegated, escalated, closed."""

from __future__ import annotations

from typing import TypeAlias, assert_never

from pointsman.engine.approvers import Vote
from pointsman.engine.digests import digest_of, values_at
from pointsman.engine.events.waits import (
    GateChanged,
    GateClosed,
    GateDelegated,
    GateEscalated,
    GateOpened,
    GateVoted,
    ToolCallsReviewed,
)
from pointsman.engine.fold import counters
from pointsman.engine.state import ExecutionState, GateState, StepState

GateEvent: TypeAlias = (
    GateOpened | GateChanged | GateVoted | GateDelegated | GateEscalated | GateClosed | ToolCallsReviewed
)


def fold_gate(state: ExecutionState, event: GateEvent) -> None:
    """Apply one event of a gate."""
    state.row.changed_gates[event.step] = None
    at = state.steps[event.step]
    match event:
        case GateOpened():
            _opened(state, at, event)
        case GateChanged():
            _changed(state, at, event)
        case GateVoted():
            gate = gate_of(at)
            gate.votes[event.by] = Vote(event.action, event.data, event.comment, event.key)
            if event.key:
                gate.keyed_votes[event.key] = (event.by, event.action, event.data)
        case GateDelegated():
            _delegated(gate_of(at), event)
        case GateEscalated():
            gate = gate_of(at)
            gate.level, gate.approvers, gate.deadline = event.level, event.approvers, event.deadline
            gate.votes, gate.delegations, gate.delegates = {}, {}, {}
        case GateClosed():
            counters.shut(state, at)
            for timer in at.timers:  # an open gate has only its own timers
                state.timers.pop(timer, None)
            at.timers = ()
        case ToolCallsReviewed():
            at.verdicts = {**(at.verdicts or {}), **{one.number: one for one in event.verdicts}}
        case _:
            assert_never(event)


def gate_of(at: StepState) -> GateState:
    """Return the gate of a step that must have one."""
    assert at.gate is not None
    return at.gate


def _opened(state: ExecutionState, at: StepState, event: GateOpened) -> None:
    values = values_at(at, event.editable)
    at.gate = GateState(
        event.gate,
        event.message,
        event.options,
        event.form,
        event.shown,
        event.editable,
        event.approvers,
        event.about,
        event.calls,
        event.item,
        event.round,
        state.at,
        event.deadline,
        messages=event.messages,
        display_name=event.called,
        values=values,
        digest=event.digest or digest_of(event, values),
        number=len(state.counters.visited_nodes),
    )
    state.gates.setdefault(at.step.scope, {})[at.step] = None
    at.unapproved = event.about == "start"
    if at.is_running:  # no work runs until the gate is answered
        counters.tick(state, -1)
        at.is_running = False


def _changed(state: ExecutionState, at: StepState, event: GateChanged) -> None:
    gate = gate_of(at)
    gate.message, gate.messages, gate.display_name = event.message, event.messages, event.called
    gate.options, gate.form, gate.displayed, gate.editable = event.options, event.form, event.shown, event.editable
    gate.approvers, gate.digest, gate.opened = event.approvers, event.digest, state.at
    gate.values, gate.votes, gate.changed = values_at(at, event.editable), {}, True
    if event.input is not None:
        at.input = event.input


def _delegated(gate: GateState, event: GateDelegated) -> None:
    gate.votes.pop(event.by, None)
    gate.delegates.pop(event.by, None)
    gate.delegations.pop(event.to, None)
    gate.delegations[event.by] = event.to
    gate.delegates[event.to] = event.by
