"""Telling others: what is owed to them until it was delivered (see `orders`), and what is news from them."""

from __future__ import annotations

from pointsman.engine.decide.context import Desk
from pointsman.engine.events.waits import ChildStopAsked, Emitted, OrdersDelivered
from pointsman.engine.fold.outbox import emitted, stopped
from pointsman.engine.reports import Delivered, EventReceived
from pointsman.engine.state import ExecutionState, StepState
from pointsman.engine.steps import Step
from pointsman.values import Json


def publish(desk: Desk, step: Step, name: str, data: Json) -> None:
    """Have an event told to other executions."""
    desk.emit(Emitted(step=step, name=name, data=data, told=False))
    desk.command(desk.state.undelivered[emitted(step)])


def stop_children(desk: Desk, at: StepState) -> None:
    """Have the children of the current attempt cancelled."""
    for call in at.children:
        desk.emit(ChildStopAsked(step=at.step, attempt=at.attempt, call=call))
        desk.command(desk.state.undelivered[stopped(at.step, at.attempt, call)])


def delivered(desk: Desk, report: Delivered) -> None:
    """Others know."""
    known = tuple(order for order in report.orders if order in desk.state.undelivered)
    if known:
        desk.emit(OrdersDelivered(orders=known))


def is_news(state: ExecutionState, report: EventReceived) -> bool:
    """An outside event that may still change something."""
    return not state.ended and report.key not in state.heard
