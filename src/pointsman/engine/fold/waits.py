"""Fold events of gates, awaited events and the outbox.

The outbox holds messages owed to other executions: an emitted event, a child to cancel.

    EventEmitted, ChildStopRequested ─▶ outbox ─▶ sent, perhaps twice ─▶ DeliveryConfirmed ─▶ OutboxDelivered

A message is not sent by the row that decides it, so a crash can come between. It stays in the outbox until the journal
holds its delivery; a receiver recognises a repeated message by its name. This also applies to ended executions.
"""

from __future__ import annotations

from typing import Final, TypeAlias, assert_never

from pointsman.engine.actions import Vote
from pointsman.engine.commands import Publish, StopChild
from pointsman.engine.digests import digest_of, values_at
from pointsman.engine.events.waits import (
    ChildStopRequested,
    EventAwaited,
    EventConsumed,
    EventEmitted,
    GateChanged,
    GateClosed,
    GateDelegated,
    GateEscalated,
    GateOpened,
    GateVoted,
    OutboxDelivered,
    ToolCallsReviewed,
)
from pointsman.engine.fold import scopes
from pointsman.engine.state import ExecutionState, GateState, StepState
from pointsman.engine.steps import BufferedEvent, Step

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
            gate = state.row.answered_gates[at.step] = gate_of(at)
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
            state.row.answered_gates[at.step] = gate_of(at)
            scopes.remove_gate(state, at)
            for timer in at.timers:  # an open gate has only its own timers
                state.timers.pop(timer, None)
            at.timers = ()
        case ToolCallsReviewed():
            at.verdicts = {**(at.verdicts or {}), **{verdict.number: verdict for verdict in event.verdicts}}
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
        scopes.tick(state, -1)
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


def await_event(state: ExecutionState, event: EventAwaited) -> None:
    """Fold: a step waits for an event."""
    state.steps[event.step].event = event.name
    state.events.waiters[event.name] = state.events.waiters.get(event.name, 0) + 1


SEEN_KEYS_MAX: Final = 1000
"""Number of event keys kept for deduplication: senders repeat a delivery soon."""


def consume_event(state: ExecutionState, event: EventConsumed) -> None:
    """Fold: remember the key of a delivery (the oldest is dropped), and buffer the event if no step waited for it."""
    if event.key:
        state.events.seen_keys[event.key] = None
        if len(state.events.seen_keys) > SEEN_KEYS_MAX:
            del state.events.seen_keys[next(iter(state.events.seen_keys))]
    if event.kept:
        state.events.last_number += 1
        state.events.buffered[state.events.last_number] = BufferedEvent(event.name, event.data)


def update_outbox(state: ExecutionState, event: EventEmitted | ChildStopRequested | OutboxDelivered) -> None:
    """Fold: add or remove messages of the outbox."""
    match event:
        case EventEmitted(told=False):
            name = publication_name(event.step)
            state.outbox[name] = Publish(order=name, name=event.name, data=event.data)
        case ChildStopRequested():
            name = stop_name(event.step, event.attempt, event.call)
            state.outbox[name] = StopChild(order=name, step=event.step, attempt=event.attempt, call=event.call)
        case OutboxDelivered():
            for order in event.orders:
                state.outbox.pop(order, None)
        case _:
            pass  # delivered by the process that emitted it, or never: journals of older versions do not record it


def publication_name(step: Step) -> str:
    """Return the outbox name of the message that publishes an emitted event."""
    return f"emit:{step}"


def stop_name(step: Step, attempt: int, call: int = 0) -> str:
    """Return the outbox name of the message that cancels a child execution."""
    return f"stop:{step}:{attempt}.{call}" if call else f"stop:{step}:{attempt}"
