"""Events about an execution as a whole: start, pause, resume, end, retry, fork, migration, compensation."""

from __future__ import annotations

from typing import TypeAlias

from pointsman.engine.failures import Failure
from pointsman.engine.steps import Step
from pointsman.engine.writes import DataEdit, EventBase, Undoes
from pointsman.values import Json, JsonObject


class ExecutionStarted(EventBase, frozen=True, kw_only=True, tag="started"):
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
    queued: bool = False
    """It waits for a place among the executions of its workflow; `ExecutionAdmitted` gives it one."""


class ExecutionAdmitted(EventBase, frozen=True, kw_only=True, tag="admitted"):
    """A place is free: it begins."""


class LimitEscalated(EventBase, frozen=True, kw_only=True, tag="handed_over"):
    """The node of last resort takes over after a limit or a failure; `value` is what it is told."""

    node: str
    value: Json = None
    gate: Step | None = None
    """People are asked first, at this gate: what was on its way is kept until they have answered."""


class LimitsRaised(EventBase, frozen=True, kw_only=True, tag="limits_raised"):
    limits: dict[str, float]


class ExecutionPaused(EventBase, frozen=True, kw_only=True, tag="paused"):
    by: str = ""
    before: Step | None = None
    """The step that would have begun: at a breakpoint, or one step on."""


class ExecutionResumed(EventBase, frozen=True, kw_only=True, tag="resumed"):
    by: str = ""
    stepping: bool = False
    """Only until the next step would begin."""


class ExecutionInterrupted(EventBase, frozen=True, kw_only=True, tag="interrupted"):
    """A limit stopped it; everything is kept."""

    limit: str
    message: str


class ExecutionCompleted(EventBase, frozen=True, kw_only=True, tag="completed"):
    output: Json = None
    closes_session: bool = False
    until: tuple[str, ...] = ()
    """It was a trial as far as these nodes: what comes after them was not performed."""


class ExecutionFailed(EventBase, frozen=True, kw_only=True, tag="failed"):
    failure: Failure
    step: Step | None = None
    steps: tuple[Step, ...] = ()
    """All steps with uncaught failures: a retry resumes them."""


class ExecutionCancelled(EventBase, frozen=True, kw_only=True, tag="cancelled"):
    reason: str = ""
    by: str = ""


class ExecutionSteered(EventBase, frozen=True, kw_only=True, tag="steered"):
    """A person took a hand, between steps. With `goto` a redirection follows."""

    edits: tuple[DataEdit, ...] = ()
    messages: tuple[Json, ...] = ()
    goto: str | None = None
    reason: str = ""
    by: str = ""


class ControlRedirected(EventBase, frozen=True, kw_only=True, tag="redirected"):
    """Control is on its way to this node, with this value, and nowhere else."""

    node: str
    value: Json = None


class ExecutionRetried(EventBase, frozen=True, kw_only=True, tag="retried"):
    """A failed execution takes up its failed steps again, and what was on its way when they failed."""

    by: str = ""
    reenter: tuple[int, ...] = ()
    """Which of the failed ones are entered again instead of attempted again, by position."""
    parks: tuple[int, ...] = ()
    """Which of those are entered by all that had arrived there: it is parked again, for them to take."""


class ExecutionForked(EventBase, frozen=True, kw_only=True, tag="forked"):
    """The rows before this one are a copy of another execution's; from here on this one lives by itself."""

    origin: str
    row: int
    """The last row that was taken from there."""
    before: Step | None = None
    """The step it was forked to run again; the row before this one stops short of it."""
    input: JsonObject | None = None
    """The input from here on, where it was changed."""
    edits: tuple[DataEdit, ...] = ()
    session: str | None = None
    by: str = ""
    undoes: Undoes = "all"
    """What it undoes should it fail: what it did itself, or (as forks did once) also what its origin had done."""


class ExecutionMigrated(EventBase, frozen=True, kw_only=True, tag="moved"):
    """From here on it runs on another definition, which was checked to fit what is under way."""

    workflow: str
    version: str
    definition: str
    options: JsonObject = {}
    """All options it has from here on: the revision and the pins of sub-workflows are the new definition's."""
    by: str = ""


class CompensationBegan(EventBase, frozen=True, kw_only=True, tag="compensation_began"):
    """It has failed (`failure`) or was cancelled: nothing else moves any more, and what was done is undone."""

    failure: Failure | None = None
    step: Step | None = None
    """The step that failed it."""
    reason: str = ""
    by: str = ""


class UndoBegan(EventBase, frozen=True, kw_only=True, tag="undo_began"):
    """The last step that is not undone is next; a step of `node` follows."""

    step: Step
    node: str


class UndoEnded(EventBase, frozen=True, kw_only=True, tag="undo_ended"):
    """The step is undone; with a `failure` it could not be."""

    step: Step
    failure: Failure | None = None


LifecycleEvent: TypeAlias = (
    ExecutionStarted
    | ExecutionAdmitted
    | LimitsRaised
    | LimitEscalated
    | ExecutionPaused
    | ExecutionResumed
    | ExecutionInterrupted
    | ExecutionCompleted
    | ExecutionFailed
    | ExecutionCancelled
    | ExecutionRetried
    | ExecutionSteered
    | ControlRedirected
    | ExecutionForked
    | ExecutionMigrated
    | CompensationBegan
    | UndoBegan
    | UndoEnded
)
"""What happens to the execution as a whole."""
