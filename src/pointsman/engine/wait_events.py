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
    """An outside event came. Those who waited for it settle in the same row."""

    name: str
    data: Json = None
    by: str = ""


class Emitted(Fact, frozen=True, kw_only=True, tag="emitted"):
    step: Step
    name: str
    data: Json = None


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
    | Warned
    | LimitHit
)
"""What the world owes, gave, or was told."""
