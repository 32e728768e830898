"""Events: the only truth. One decision is one row of events; `fold` rebuilds the state from them alone.

    steps      steps, tokens, parallels and loops: what most rows consist of
    waits      gates, timers, outside events, child executions, the outbox, warnings
    lifecycle  the execution as a whole

An event holds what changed and nothing that follows from earlier events: a value travels by the name of the step it
comes from (`after`); a write of the whole result is marked `whole`. Stored as JSON objects tagged by `kind`.
"""

from __future__ import annotations

from typing import Literal, TypeAlias, final

from msgspec import field

from pointsman.engine.commands import Phase
from pointsman.engine.events.lifecycle import LifecycleEvent
from pointsman.engine.events.waits import WaitEvent
from pointsman.engine.failures import Failure
from pointsman.engine.reports import ToolCall, Usage
from pointsman.engine.steps import Lineage, Scope, Step
from pointsman.engine.writes import Arrival, EventBase, Write
from pointsman.values import Json, JsonObject, Path


@final
class StepStarted(EventBase, frozen=True, kw_only=True, tag="step_started"):
    """Work, a gate, a timer or a child begins; a settling event will follow."""

    step: Step
    edge: str = ""
    after: Step | None = None
    """The step whose value reaches it."""
    merged: tuple[Arrival, ...] = ()
    """The parked arrivals it consumes, in document order; the last one's value reaches it, `after` is absent."""
    lineage: Lineage = field(default=(), name="thread")
    input: JsonObject | None = None
    messages: int = 0
    """How many messages of the conversation it receives."""
    runs: bool = True
    """False: nothing was asked of an executor yet (gate, timer, child, delay)."""
    caller: str | None = None


@final
class InstantStepCompleted(EventBase, frozen=True, kw_only=True, tag="step_passed"):
    """Control went through a node that takes no time."""

    step: Step
    edge: str = ""
    after: Step | None = None
    merged: tuple[Arrival, ...] = ()
    lineage: Lineage = field(default=(), name="thread")
    replaces: bool = False
    """`result` is the value that goes on; otherwise the value that reached it does."""
    takes: bool = False
    """The value that reached it is its result."""
    result: Json = None
    annotations: JsonObject | None = field(default=None, name="said")
    """Fields that `nodes.<id>` shows beside the result (`branch`, `round` …)."""
    writes: tuple[Write, ...] = ()
    pinned: bool = False
    """It was not performed: a partial run gave its result."""


@final
class StepSucceeded(EventBase, frozen=True, kw_only=True, tag="step_succeeded"):
    step: Step
    attempt: int = 1
    result: Json = None
    keeps: bool = False
    """The value that reached the step goes on instead of its result."""
    next: str | None = None
    labels: tuple[str, ...] = ()
    """Labels it tried to leave by before `next`."""
    annotations: JsonObject | None = field(default=None, name="said")
    writes: tuple[Write, ...] = ()
    messages: tuple[Json, ...] = ()
    pending: tuple[ToolCall, ...] = ()
    mark: int = 0
    """A hash of an agent's input and answer."""
    repeats: int = 0
    """How often it gave this answer without a new answer or new data in its scope."""
    seen: int = 0
    """Where it repeats itself, a hash of what was in the data."""
    usage: Usage | None = None
    cached: bool = False
    """The result was known from an equal step; nothing was performed."""
    undone_by: str | None = None
    """The node that undoes it, should the execution fail."""
    printed: str = ""
    """The end of what its tools, or its code, printed and logged."""


class StepFailed(EventBase, frozen=True, kw_only=True, tag="step_failed"):
    """An attempt failed. `final`: the step is over; else a retry, a re-ask or advice follows."""

    step: Step
    attempt: int
    failure: Failure
    final: bool = True
    usage: Usage | None = None


class AttemptStarted(EventBase, frozen=True, kw_only=True, tag="attempt_started"):
    """A further attempt of a step, or after an approval the same. `input` is absent where it repeats the last one."""

    step: Step
    attempt: int
    reason: Literal["retry", "reask", "advice", "delay", "resume", "approved", "worker"]
    """`worker`: a worker that has what was missing performs the same attempt."""
    phase: Phase = "work"
    input: JsonObject | None = None


class ExitFailed(EventBase, frozen=True, kw_only=True, tag="leaving_failed"):
    """A finished step found no legal way on (`no-route`), or a condition on its edges failed."""

    step: Step
    failure: Failure


class StepCancelled(EventBase, frozen=True, kw_only=True, tag="step_cancelled"):
    step: Step


@final
class ArrivalParked(EventBase, frozen=True, kw_only=True, tag="parked"):
    """An arrival waits at a node for others that can still come. It replaces one of the same edge and thread."""

    node: str
    scope: Scope
    edge: str
    after: Step
    lineage: Lineage = field(default=(), name="thread")


@final
class ArrivalHeld(EventBase, frozen=True, kw_only=True, tag="held"):
    """An arrival is kept while the execution is paused or interrupted."""

    node: str
    scope: Scope
    edge: str
    after: Step | None
    lineage: Lineage = field(default=(), name="thread")
    caller: str | None = None
    again: bool = False
    """It was about to start the node: it does so when it goes on, whatever else could still come."""


@final
class TokenEnded(EventBase, frozen=True, kw_only=True, tag="token_ended"):
    """Control ended here: no edge was taken. `answers`: the value is one of the execution's results."""

    after: Step
    reason: Literal["no-edge", "end", "swallowed", "turn"] = "no-edge"
    output: Json = None
    answers: bool = False
    lineage: Lineage = field(default=(), name="thread")


class ScopesOpened(EventBase, frozen=True, kw_only=True, tag="scopes_opened"):
    """A parallel opened its branches. Branch b works on item b // len(starts) from start b % len(starts)."""

    step: Step
    starts: tuple[str, ...]
    """The edges that branches begin with."""
    items: list[Json] | None = None
    keys: tuple[str, ...] = ()
    item_name: str | None = None
    joined: bool = True


@final
class BranchSettled(EventBase, frozen=True, kw_only=True, tag="branch_settled"):
    step: Step
    """The step of the parallel."""
    branch: int
    outcome: Literal["arrived", "ended", "failed", "cancelled"]
    after: Step | None = None
    merged: tuple[Arrival, ...] = ()
    """The parked arrivals at the join that it consumed."""
    failure: Failure | None = None


class ScopesClosed(EventBase, frozen=True, kw_only=True, tag="scopes_closed"):
    """An opening is over: the writes of `branches` join the data around it, in branch order."""

    step: Step
    branches: tuple[int, ...]
    forgotten: bool = True
    """False: branches that still run go on, but reach nothing outside any more."""
    brought: tuple[int, ...] | None = None
    """The branches whose values, as a list, are what goes on."""
    result: Json = None
    """What goes on where `brought` is absent."""


class LoopEntered(EventBase, frozen=True, kw_only=True, tag="loop_entered"):
    node: str
    scope: Scope
    items: list[Json] | None = None
    item_name: str | None = None


@final
class LoopRound(EventBase, frozen=True, kw_only=True, tag="loop_round"):
    """A round begins. Rounds count from 1."""

    node: str
    scope: Scope
    round: int
    after: Step
    """The visit of the loop node that begins it; its value is `loop.previous` from the second round on."""


class LoopLeft(EventBase, frozen=True, kw_only=True, tag="loop_left"):
    node: str
    scope: Scope


class LoopRoundFailed(EventBase, frozen=True, kw_only=True, tag="loop_round_failed"):
    """A round is over because something in it failed; the loop goes on all the same."""

    node: str
    scope: Scope
    failure: Failure
    dropped: tuple[str, ...] = ()
    """The nodes of the body at which arrivals were parked; they are gone."""


class StateRead(EventBase, frozen=True, kw_only=True, tag="state_read"):
    """A node that runs beside others looks at fields that one of them may write; told of no other reads."""

    node: str
    scope: Scope
    lineage: Lineage = field(name="thread")
    paths: tuple[Path, ...]


StepEvent: TypeAlias = (
    StepStarted
    | InstantStepCompleted
    | StepSucceeded
    | ArrivalParked
    | ArrivalHeld
    | TokenEnded
    | BranchSettled
    | LoopRound
)
"""What most rows consist of."""

ControlEvent: TypeAlias = (
    StepFailed
    | AttemptStarted
    | ExitFailed
    | StepCancelled
    | ScopesOpened
    | ScopesClosed
    | LoopEntered
    | LoopLeft
    | LoopRoundFailed
    | StateRead
)
"""What changes the course of steps."""

Event: TypeAlias = StepEvent | ControlEvent | WaitEvent | LifecycleEvent
