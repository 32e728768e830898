"""Commands: what the engine requests from the runtime. They are never journaled; they follow from the state.

A command may be performed more than once (after a crash) and must then have the effect of one.
"""

from __future__ import annotations

from typing import Literal, TypeAlias

from msgspec import Struct

from pointsman.engine.steps import Step
from pointsman.engine.tool_calls import CallVerdict
from pointsman.values import Json, JsonObject

Phase: TypeAlias = Literal["work", "recover"]
"""`work`: the node's own work · `recover`: a model advises what to do after a failure."""


class Execute(Struct, frozen=True, kw_only=True):
    """Perform one attempt of one step and report `WorkDone` or `WorkFailed` for exactly (step, attempt)."""

    step: Step
    attempt: int
    work: str
    """The kind of work: the key of its executor (`agent`, `tool`, `memory` …)."""
    input: JsonObject
    """Everything that came from the execution's data, resolved: prompt, parameters, questions. Shape per executor."""
    messages: tuple[Json, ...] | list[Json] = ()
    """The conversation so far, where this work receives it. Read it, never change it."""
    phase: Phase = "work"
    timeout_s: float | None = None
    call_timeout_s: float | None = None
    """The time of each call of a model or tool inside it, where `nodeTime` was raised."""
    verdicts: tuple[CallVerdict, ...] = ()
    """What people decided about tool calls that this attempt got to before: it is performed again, as the same."""


class Stop(Struct, frozen=True, kw_only=True):
    """Cancel what runs for this step: its result would be refused."""

    step: Step


class SetTimer(Struct, frozen=True, kw_only=True):
    """Report `TimerFired(timer)` at or after `at` (unix seconds)."""

    timer: str
    at: float


class DropTimer(Struct, frozen=True, kw_only=True):
    """Drop a timer that is not needed any more. Firing it has no effect."""

    timer: str


class AnnounceGate(Struct, frozen=True, kw_only=True):
    """A person owes an answer: put it into inboxes, notify. The gate is in the state; this only announces it."""

    step: Step


class StartChild(Struct, frozen=True, kw_only=True):
    """Start (or find) the child execution of this step and report `ChildEnded` when it ends."""

    step: Step
    attempt: int
    workflow: str
    input: JsonObject
    wait: bool = True
    """False: the child continues independently; its end is not awaited."""
    call: int = 0
    """The tool call that it carries out; 0: it is the work of the node."""


class HoldChild(Struct, frozen=True, kw_only=True):
    """Pause the child execution of this attempt of a step: a limit stopped its parent. `StartChild` lets it go on."""

    step: Step
    attempt: int
    call: int = 0


class StopChild(Struct, frozen=True, kw_only=True):
    """Cancel the child execution of this attempt of a step, and report `DeliveryConfirmed`."""

    order: str
    step: Step
    attempt: int
    call: int = 0


class Publish(Struct, frozen=True, kw_only=True):
    """Deliver an emitted event to executions that wait for it, and report `DeliveryConfirmed`."""

    order: str
    name: str
    data: Json = None


OutboxMessage: TypeAlias = StopChild | Publish
"""What others are told without being asked anything. `order` names it: who was told twice knows it by that name."""

Command: TypeAlias = Execute | Stop | SetTimer | DropTimer | AnnounceGate | StartChild | HoldChild | StopChild | Publish
