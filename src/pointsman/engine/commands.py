"""Commands: what the engine requests from the runtime. They are never journaled; they follow from the state.

A command may be performed more than once (after a crash) and must then have the effect of one.
"""

from __future__ import annotations

from typing import Literal, TypeAlias

from msgspec import Struct

from pointsman.engine.actions import CallVerdict
from pointsman.engine.steps import Step
from pointsman.values import Json, JsonObject

Phase: TypeAlias = Literal["work", "recover"]
"""`work`: the node's own work · `recover`: a model advises what to do after a failure."""


class Execute(Struct, frozen=True, kw_only=True, gc=False):
    """Perform one attempt of one step, and report `WorkDone` or `WorkFailed` for exactly (step, attempt)."""

    step: Step
    attempt: int
    work: str
    """The kind of work: the key of its executor (`agent`, `tool`, `memory` …)."""
    input: JsonObject
    """All resolved data: prompt, parameters, questions. The shape depends on the executor."""
    messages: tuple[Json, ...] | list[Json] = ()
    """The conversation so far, if this work receives it. Read-only."""
    phase: Phase = "work"
    timeout_s: float | None = None
    call_timeout_s: float | None = None
    """Time limit of each model or tool call inside it, if `nodeTime` was raised."""
    verdicts: tuple[CallVerdict, ...] = ()
    """Verdicts on tool calls that this attempt proposed before it was repeated."""


class Stop(Struct, frozen=True, kw_only=True, gc=False):
    """Cancel the work of this step; its result would be refused."""

    step: Step


class SetTimer(Struct, frozen=True, kw_only=True, gc=False):
    """Report `TimerFired(timer)` at or after `at` (unix seconds)."""

    timer: str
    at: float


class DropTimer(Struct, frozen=True, kw_only=True, gc=False):
    """Drop an unneeded timer. If it fires, it has no effect."""

    timer: str


class AnnounceGate(Struct, frozen=True, kw_only=True, gc=False):
    """Announce an open gate to inboxes and notifications. The gate itself is in the state."""

    step: Step


class StartChild(Struct, frozen=True, kw_only=True, gc=False):
    """Start (or find) the child execution of this step and report `ChildEnded` when it ends."""

    step: Step
    attempt: int
    workflow: str
    input: JsonObject
    wait: bool = True
    """False: the child continues independently; its end is not awaited."""
    call: int = 0
    """The tool call that the child performs; 0: the node's own work."""


class HoldChild(Struct, frozen=True, kw_only=True, gc=False):
    """Pause the child execution of this attempt, because a limit stopped its parent. `StartChild` resumes it."""

    step: Step
    attempt: int
    call: int = 0


class StopChild(Struct, frozen=True, kw_only=True, gc=False):
    """Cancel the child execution of this attempt of a step, and report `DeliveryConfirmed`."""

    order: str
    step: Step
    attempt: int
    call: int = 0


class Publish(Struct, frozen=True, kw_only=True, gc=False):
    """Deliver an emitted event to executions that wait for it, and report `DeliveryConfirmed`."""

    order: str
    name: str
    data: Json = None


OutboxMessage: TypeAlias = StopChild | Publish
"""Messages to other executions. `order` is the name by which a receiver recognises a repeated message."""

Command: TypeAlias = Execute | Stop | SetTimer | DropTimer | AnnounceGate | StartChild | HoldChild | StopChild | Publish
