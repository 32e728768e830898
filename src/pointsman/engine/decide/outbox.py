"""Outbox: request the delivery of messages to other executions, and recognise messages that were received before."""

from __future__ import annotations

from pointsman.engine.decide.context import DecisionContext
from pointsman.engine.events.waits import ChildStopRequested, EventEmitted, OutboxDelivered
from pointsman.engine.fold.outbox import emitted, stopped
from pointsman.engine.reports import DeliveryConfirmed, EventReceived
from pointsman.engine.state import ExecutionState, StepState
from pointsman.engine.steps import Step
from pointsman.values import Json


def publish(ctx: DecisionContext, step: Step, name: str, data: Json) -> None:
    """Publish an event to other executions."""
    ctx.emit(EventEmitted(step=step, name=name, data=data, told=False))
    ctx.command(ctx.state.outbox[emitted(step)])


def stop_children(ctx: DecisionContext, at: StepState) -> None:
    """Request cancellation of the child executions of the current attempt."""
    for call in at.children:
        ctx.emit(ChildStopRequested(step=at.step, attempt=at.attempt, call=call))
        ctx.command(ctx.state.outbox[stopped(at.step, at.attempt, call)])


def delivered(ctx: DecisionContext, report: DeliveryConfirmed) -> None:
    """Remove delivered messages from the outbox."""
    known = tuple(order for order in report.orders if order in ctx.state.outbox)
    if known:
        ctx.emit(OutboxDelivered(orders=known))


def is_news(state: ExecutionState, report: EventReceived) -> bool:
    """Return whether an event from outside was not seen before and can still change the execution."""
    return not state.ended and report.key not in state.events.seen_keys
