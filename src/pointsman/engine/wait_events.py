"""What the world owes an execution, gave it, or was told by it."""

from __future__ import annotations

from typing import Literal, TypeAlias

from pointsman.engine.facts import Fact
from pointsman.engine.steps import Step
from pointsman.values import Json, JsonObject


class GateOpened(Fact, frozen=True, kw_only=True, tag="gate_opened"):
    """A person owes us an answer; the execution may now wait for months."""

    step: Step
    gate: str
    message: str
    options: tuple[JsonObject, ...] = ()
    form: JsonObject | None = None
    shown: Json = None
    editable: tuple[tuple[str | int, ...], ...] = ()
    approvers: JsonObject | None = None


class GateClosed(Fact, frozen=True, kw_only=True, tag="gate_closed"):
    step: Step
    action: str
    data: Json = None
    comment: str = ""
    by: str = ""


class TimerSet(Fact, frozen=True, kw_only=True, tag="timer_set"):
    timer: str
    purpose: Literal["retry", "delay", "wait", "gate", "join", "deadline", "event"]
    at: float
    step: Step | None = None


class TimerRang(Fact, frozen=True, kw_only=True, tag="timer_rang"):
    timer: str


class EventAwaited(Fact, frozen=True, kw_only=True, tag="event_awaited"):
    step: Step
    name: str


class EventTaken(Fact, frozen=True, kw_only=True, tag="event_taken"):
    """An outside event came. Those who waited for it settle in the same row. Of one `key` only the first is taken."""

    name: str
    data: Json = None
    by: str = ""
    key: str = ""


class Emitted(Fact, frozen=True, kw_only=True, tag="emitted"):
    step: Step
    name: str
    data: Json = None
    told: bool = True
    """False: other executions are to be told; `OrdersDelivered` says when they were."""


class ChildStopAsked(Fact, frozen=True, kw_only=True, tag="child_stop_asked"):
    """The child of this attempt is to be cancelled; `OrdersDelivered` says when it was told."""

    step: Step
    attempt: int = 1


class OrdersDelivered(Fact, frozen=True, kw_only=True, tag="orders_delivered"):
    """Others were told what they were to be told."""

    orders: tuple[str, ...]


class ChildAsked(Fact, frozen=True, kw_only=True, tag="child_asked"):
    step: Step
    workflow: str


class Warned(Fact, frozen=True, kw_only=True, tag="warned"):
    """Something a person should know; nothing stopped."""

    code: str
    message: str
    step: Step | None = None


class LimitHit(Fact, frozen=True, kw_only=True, tag="limit_hit"):
    limit: str
    message: str
    step: Step | None = None


WaitEvent: TypeAlias = (
    GateOpened
    | GateClosed
    | TimerSet
    | TimerRang
    | EventAwaited
    | EventTaken
    | Emitted
    | ChildAsked
    | ChildStopAsked
    | OrdersDelivered
    | Warned
    | LimitHit
)
"""What the world owes, gave, or was told."""
