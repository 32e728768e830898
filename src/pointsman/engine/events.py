"""What happened: the only truth. One decision is one row of events; `fold` rebuilds the state from them alone.

An event holds what changed and nothing that can be read off the events before it: values travel by naming the step
they come from (`after`), writes that are the result itself say `whole`. Stored as JSON objects tagged by `kind`.
"""

from __future__ import annotations

from typing import Literal, TypeAlias

from msgspec import Struct

from pointsman.engine.commands import Phase
from pointsman.engine.facts import Arrival, Write
from pointsman.engine.failures import Failure
from pointsman.engine.reports import ToolCall, Usage
from pointsman.engine.steps import Scope, Step, Thread
from pointsman.values import Json, JsonObject


class Fact(Struct, frozen=True, kw_only=True, omit_defaults=True, tag_field="kind", gc=False):
    """How every event is stored. Events are trees of plain data: the garbage collector need not walk them."""


class ExecutionStarted(Fact, frozen=True, kw_only=True, tag="started"):
    workflow: str
    version: str
    input: JsonObject
    config: JsonObject = {}
    session: str | None = None
    state: JsonObject = {}
    """Declared fields and their defaults; the input's fields are put over them."""
    messages: list[Json] | None = None
    """None: this workflow has no conversation."""
    parent: str | None = None
    definition: str = ""
    """SHA-256 of the native document it runs, under which the store keeps it."""
    options: JsonObject = {}
    """What was asked for this execution alone (`model`, `language` …)."""
    seed: int = 0
    attempt: int = 1


class StepStarted(Fact, frozen=True, kw_only=True, tag="step_started"):
    """Work, a gate, a timer or a child begins; a settling event will follow."""

    step: Step
    edge: str = ""
    after: Step | None = None
    """The step whose value reaches it."""
    merged: tuple[Arrival, ...] = ()
    """The parked arrivals it consumes, in document order; the last one's value reaches it, `after` is absent."""
    thread: Thread = ()
    input: JsonObject | None = None
    messages: int = 0
    """How many messages of the conversation it receives."""
    runs: bool = True
    """False: nothing was asked of an executor yet (gate, timer, child, delay)."""
    caller: str | None = None


class StepPassed(Fact, frozen=True, kw_only=True, tag="step_passed"):
    """Control went through a node that takes no time."""

    step: Step
    edge: str = ""
    after: Step | None = None
    merged: tuple[Arrival, ...] = ()
    thread: Thread = ()
    replaces: bool = False
    """`result` is the value that goes on; otherwise the value that reached it does."""
    takes: bool = False
    """The value that reached it is its result."""
    result: Json = None
    said: JsonObject | None = None
    """What `nodes.<id>` shows of it (`branch`, `round` …)."""
    writes: tuple[Write, ...] = ()


class StepSucceeded(Fact, frozen=True, kw_only=True, tag="step_succeeded"):
    step: Step
    attempt: int = 1
    result: Json = None
    keeps: bool = False
    """The value that reached the step goes on instead of its result."""
    next: str | None = None
    said: JsonObject | None = None
    writes: tuple[Write, ...] = ()
    messages: tuple[Json, ...] = ()
    pending: tuple[ToolCall, ...] = ()
    mark: int = 0
    """A hash of what an agent said to what."""
    repeats: int = 0
    """How often in a row it has said that now."""
    usage: Usage | None = None
    cached: bool = False
    """The result was known from an equal step; nothing was performed."""


class StepFailed(Fact, frozen=True, kw_only=True, tag="step_failed"):
    """An attempt failed. `final`: the step is over; else a retry, a re-ask or advice follows."""

    step: Step
    attempt: int
    failure: Failure
    final: bool = True
    usage: Usage | None = None


class AttemptStarted(Fact, frozen=True, kw_only=True, tag="attempt_started"):
    """A further attempt of a step. `input` is absent where it repeats the last one."""

    step: Step
    attempt: int
    reason: Literal["retry", "reask", "advice", "delay", "resume"]
    phase: Phase = "work"
    input: JsonObject | None = None


class LeavingFailed(Fact, frozen=True, kw_only=True, tag="leaving_failed"):
    """A finished step found no legal way on (`no-route`), or a condition on its edges failed."""

    step: Step
    failure: Failure


class StepCancelled(Fact, frozen=True, kw_only=True, tag="step_cancelled"):
    step: Step


class Parked(Fact, frozen=True, kw_only=True, tag="parked"):
    """An arrival waits at a node for others that can still come. It replaces one of the same edge and thread."""

    node: str
    scope: Scope
    edge: str
    after: Step
    thread: Thread = ()


class Held(Fact, frozen=True, kw_only=True, tag="held"):
    """An arrival is kept while the execution is paused or interrupted."""

    node: str
    scope: Scope
    edge: str
    after: Step | None
    thread: Thread = ()
    caller: str | None = None


class TokenEnded(Fact, frozen=True, kw_only=True, tag="token_ended"):
    """Control ended here: no edge was taken. `answers`: the value is one of the execution's results."""

    after: Step
    reason: Literal["no-edge", "end", "swallowed", "turn"] = "no-edge"
    output: Json = None
    answers: bool = False
    thread: Thread = ()


class ScopesOpened(Fact, frozen=True, kw_only=True, tag="scopes_opened"):
    """A parallel opened its branches. Branch b works on item b // len(starts) from start b % len(starts)."""

    step: Step
    starts: tuple[str, ...]
    """The edges that branches begin with."""
    items: list[Json] | None = None
    keys: tuple[str, ...] = ()
    item_name: str | None = None
    joined: bool = True


class BranchSettled(Fact, frozen=True, kw_only=True, tag="branch_settled"):
    step: Step
    """The step of the parallel."""
    branch: int
    outcome: Literal["arrived", "ended", "failed", "cancelled"]
    after: Step | None = None
    merged: tuple[Arrival, ...] = ()
    """The parked arrivals at the join that it consumed."""
    failure: Failure | None = None


class ScopesClosed(Fact, frozen=True, kw_only=True, tag="scopes_closed"):
    """An opening is over: the writes of `branches` join the data around it, in branch order."""

    step: Step
    branches: tuple[int, ...]
    forgotten: bool = True
    """False: branches that still run go on, but reach nothing outside any more."""
    brought: tuple[int, ...] | None = None
    """The branches whose values, as a list, are what goes on."""
    result: Json = None
    """What goes on where `brought` is absent."""


class LoopEntered(Fact, frozen=True, kw_only=True, tag="loop_entered"):
    node: str
    scope: Scope
    items: list[Json] | None = None
    item_name: str | None = None


class LoopRound(Fact, frozen=True, kw_only=True, tag="loop_round"):
    """A round begins. Rounds count from 1."""

    node: str
    scope: Scope
    round: int
    after: Step
    """The visit of the loop node that begins it; its value is `loop.previous` from the second round on."""


class LoopLeft(Fact, frozen=True, kw_only=True, tag="loop_left"):
    node: str
    scope: Scope


class LoopRoundFailed(Fact, frozen=True, kw_only=True, tag="loop_round_failed"):
    """A round is over because something in it failed; the loop goes on all the same."""

    node: str
    scope: Scope
    failure: Failure
    dropped: tuple[str, ...] = ()
    """The nodes of the body at which arrivals were parked; they are gone."""


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


class HandedOver(Fact, frozen=True, kw_only=True, tag="handed_over"):
    """The node of last resort takes over after a limit or a failure; `value` is what it is told."""

    node: str
    value: Json = None


class LimitsRaised(Fact, frozen=True, kw_only=True, tag="limits_raised"):
    limits: dict[str, float]


class ExecutionPaused(Fact, frozen=True, kw_only=True, tag="paused"):
    by: str = ""


class ExecutionResumed(Fact, frozen=True, kw_only=True, tag="resumed"):
    by: str = ""


class ExecutionInterrupted(Fact, frozen=True, kw_only=True, tag="interrupted"):
    """A limit stopped it; everything is kept."""

    limit: str
    message: str


class ExecutionCompleted(Fact, frozen=True, kw_only=True, tag="completed"):
    output: Json = None
    closes_session: bool = False


class ExecutionFailed(Fact, frozen=True, kw_only=True, tag="failed"):
    failure: Failure
    step: Step | None = None
    steps: tuple[Step, ...] = ()
    """All steps whose failures nobody caught: what a retry takes up again."""


class ExecutionCancelled(Fact, frozen=True, kw_only=True, tag="cancelled"):
    reason: str = ""
    by: str = ""


class ExecutionRetried(Fact, frozen=True, kw_only=True, tag="retried"):
    """A failed execution takes up its failed steps again, and what was on its way when they failed."""

    by: str = ""
    reenter: tuple[int, ...] = ()
    """Which of the failed ones are entered again instead of attempted again, by position."""


StepEvent: TypeAlias = StepStarted | StepPassed | StepSucceeded | Parked | Held | TokenEnded | BranchSettled | LoopRound
"""What most rows consist of."""

CourseEvent: TypeAlias = (
    StepFailed
    | AttemptStarted
    | LeavingFailed
    | StepCancelled
    | ScopesOpened
    | ScopesClosed
    | LoopEntered
    | LoopLeft
    | LoopRoundFailed
    | LimitsRaised
)
"""What changes the course of steps."""

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

LifeEvent: TypeAlias = (
    ExecutionStarted
    | HandedOver
    | ExecutionPaused
    | ExecutionResumed
    | ExecutionInterrupted
    | ExecutionCompleted
    | ExecutionFailed
    | ExecutionCancelled
    | ExecutionRetried
)
"""What happens to the execution as a whole."""

Event: TypeAlias = StepEvent | CourseEvent | WaitEvent | LifeEvent
