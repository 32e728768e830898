"""Outbox: messages owed to other executions (an emitted event, a child to cancel), and keys of received events.

    EventEmitted, ChildStopRequested ─▶ outbox ─▶ sent, perhaps twice ─▶ DeliveryConfirmed ─▶ OutboxDelivered

A message is not sent by the row that decides it, so a crash can come between. It stays in the outbox until the journal
holds its delivery; a receiver recognises a repeated message by its name. This also applies to ended executions.
"""

from __future__ import annotations

from typing import Final

from pointsman.engine.commands import Publish, StopChild
from pointsman.engine.events.waits import (
    ChildStopRequested,
    EventAwaited,
    EventConsumed,
    EventEmitted,
    OutboxDelivered,
)
from pointsman.engine.state import ExecutionState
from pointsman.engine.steps import Step
from pointsman.engine.writes import BufferedEvent

HEARD_MAX: Final = 1000
"""Number of event keys kept for deduplication: senders repeat a delivery soon."""


def update_outbox(state: ExecutionState, event: EventEmitted | ChildStopRequested | OutboxDelivered) -> None:
    """Fold: add or remove messages of the outbox."""
    match event:
        case EventEmitted(told=False):
            name = emitted(event.step)
            state.outbox[name] = Publish(order=name, name=event.name, data=event.data)
        case ChildStopRequested():
            name = stopped(event.step, event.attempt, event.call)
            state.outbox[name] = StopChild(order=name, step=event.step, attempt=event.attempt, call=event.call)
        case OutboxDelivered():
            for order in event.orders:
                state.outbox.pop(order, None)
        case _:
            pass  # delivered by the process that emitted it, or never: journals of older versions do not record it


def await_event(state: ExecutionState, event: EventAwaited) -> None:
    """Fold: a step waits for an event."""
    state.steps[event.step].event = event.name
    state.events.waiters[event.name] = state.events.waiters.get(event.name, 0) + 1


def consume_event(state: ExecutionState, event: EventConsumed) -> None:
    """Fold: remember the key of a delivery (the oldest is dropped), and buffer the event if no step waited for it."""
    if event.key:
        state.events.seen_keys[event.key] = None
        if len(state.events.seen_keys) > HEARD_MAX:
            del state.events.seen_keys[next(iter(state.events.seen_keys))]
    if event.kept:
        state.events.last_number += 1
        state.events.buffered[state.events.last_number] = BufferedEvent(event.name, event.data)


def emitted(step: Step) -> str:
    """Return the outbox name of the message that publishes an emitted event."""
    return f"emit:{step}"


def stopped(step: Step, attempt: int, call: int = 0) -> str:
    """Return the outbox name of the message that cancels a child execution."""
    return f"stop:{step}:{attempt}.{call}" if call else f"stop:{step}:{attempt}"
