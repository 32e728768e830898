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
from pointsman.engine.steps import Arrival, EventBase, Lineage, Scope, Step, Write
from pointsman.values import Json, JsonObject, Path


@final
class StepStarted(EventBase, frozen=True, kw_only=True, tag="step_started"):
    """Work, a gate, a timer or a child begins; a settling event follows."""

    step: Step
    edge: str = ""
    after: Step | None = None
    """The step whose value is the input."""
    merged: tuple[Arrival, ...] = ()
    """The parked arrivals it consumes, in document order. The value of the last one is the input; `after` is absent."""
    lineage: Lineage = field(default=(), name="thread")
    input: JsonObject | None = None
    messages: int = 0
    """Number of messages of the conversation that it receives."""
    runs: bool = True
    """False: no executor works yet (gate, timer, child, delay)."""
    caller: str | None = None


@final
class InstantStepCompleted(EventBase, frozen=True, kw_only=True, tag="step_passed"):
    """Control passed a node that takes no time."""

    step: Step
    edge: str = ""
    after: Step | None = None
    merged: tuple[Arrival, ...] = ()
    lineage: Lineage = field(default=(), name="thread")
    replaces: bool = False
    """Whether `result` is passed on instead of the incoming value."""
    takes: bool = False
    """Whether the incoming value is its result."""
    result: Json = None
    annotations: JsonObject | None = field(default=None, name="said")
    """Fields of `nodes.<id>` beside the result (`branch`, `round` …)."""
    writes: tuple[Write, ...] = ()
    pinned: bool = False
    """Whether a mock of a partial run supplied the result."""


@final
class StepSucceeded(EventBase, frozen=True, kw_only=True, tag="step_succeeded"):
    step: Step
    attempt: int = 1
    result: Json = None
    keeps: bool = False
    """Whether the incoming value is passed on instead of the result."""
    next: str | None = None
    labels: tuple[str, ...] = ()
    """Labels tried before `next`."""
    annotations: JsonObject | None = field(default=None, name="said")
    writes: tuple[Write, ...] = ()
    messages: tuple[Json, ...] = ()
    pending: tuple[ToolCall, ...] = ()
    mark: int = 0
    """Hash of an agent's input and answer."""
    repeats: int = 0
    """How often the agent gave this answer without any new answer or data in its scope."""
    seen: int = 0
    """For a repeated answer, a hash of the data."""
    usage: Usage | None = None
    cached: bool = False
    """The result comes from the cache of an equal step; no work ran."""
    undone_by: str | None = None
    """The node that undoes the step if the execution fails."""
    printed: str = ""
    """The last part of the output and logs of its tools or code."""


class StepFailed(EventBase, frozen=True, kw_only=True, tag="step_failed"):
    """An attempt failed. `final`: the step has failed; otherwise a retry, a re-ask or advice follows."""

    step: Step
    attempt: int
    failure: Failure
    final: bool = True
    usage: Usage | None = None


class AttemptStarted(EventBase, frozen=True, kw_only=True, tag="attempt_started"):
    """A further attempt of a step, or the same one after an approval. `input` is absent if unchanged."""

    step: Step
    attempt: int
    reason: Literal["retry", "reask", "advice", "delay", "resume", "approved", "worker"]
    """`worker`: a worker that has the missing part performs the same attempt."""
    phase: Phase = "work"
    input: JsonObject | None = None


class ExitFailed(EventBase, frozen=True, kw_only=True, tag="leaving_failed"):
    """A finished step has no legal edge (`no-route`), or a condition on its edges failed."""

    step: Step
    failure: Failure


class StepCancelled(EventBase, frozen=True, kw_only=True, tag="step_cancelled"):
    step: Step


@final
class ArrivalParked(EventBase, frozen=True, kw_only=True, tag="parked"):
    """An arrival waits at a node for others that can still come. It replaces one of the same edge and lineage."""

    node: str
    scope: Scope
    edge: str
    after: Step
    lineage: Lineage = field(default=(), name="thread")


@final
class ArrivalHeld(EventBase, frozen=True, kw_only=True, tag="held"):
    """An arrival is held while the execution is paused or interrupted."""

    node: str
    scope: Scope
    edge: str
    after: Step | None
    lineage: Lineage = field(default=(), name="thread")
    caller: str | None = None
    again: bool = False
    """Whether it was about to start the node: on resumption it starts it without waiting for other arrivals."""


@final
class TokenEnded(EventBase, frozen=True, kw_only=True, tag="token_ended"):
    """A token ended because no edge was taken. `answers`: its value is one of the execution's results."""

    after: Step
    reason: Literal["no-edge", "end", "swallowed", "turn"] = "no-edge"
    output: Json = None
    answers: bool = False
    lineage: Lineage = field(default=(), name="thread")


class ScopesOpened(EventBase, frozen=True, kw_only=True, tag="scopes_opened"):
    """A parallel opened its branches. Branch b works on item b // len(starts) from start b % len(starts)."""

    step: Step
    starts: tuple[str, ...]
    """The first edges of the branches."""
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
    """The parked arrivals at the join that the branch consumed."""
    failure: Failure | None = None


class ScopesClosed(EventBase, frozen=True, kw_only=True, tag="scopes_closed"):
    """A parallel is over: the writes of `branches` are merged into the surrounding scope, in branch order."""

    step: Step
    branches: tuple[int, ...]
    forgotten: bool = True
    """False: running branches continue, but have no effect outside."""
    brought: tuple[int, ...] | None = None
    """The branches whose values, as a list, are passed on."""
    result: Json = None
    """The value passed on if `brought` is absent."""


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
    """The visit of the loop node that begins the round; its value is `loop.previous` from the second round on."""


class LoopLeft(EventBase, frozen=True, kw_only=True, tag="loop_left"):
    node: str
    scope: Scope


class LoopRoundFailed(EventBase, frozen=True, kw_only=True, tag="loop_round_failed"):
    """A round ended because a step in it failed; the loop continues."""

    node: str
    scope: Scope
    failure: Failure
    dropped: tuple[str, ...] = ()
    """Nodes of the body whose parked arrivals were dropped."""


class StateRead(EventBase, frozen=True, kw_only=True, tag="state_read"):
    """A node reads fields that a concurrent node may write; other reads are not recorded."""

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
"""The most frequent events."""

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
"""Events that change the course of steps."""

Event: TypeAlias = StepEvent | ControlEvent | WaitEvent | LifecycleEvent
