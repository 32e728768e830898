"""Events about an execution as a whole: start, pause, resume, end, retry, fork, migration, compensation."""

from __future__ import annotations

from typing import TypeAlias

from pointsman.engine.failures import Failure
from pointsman.engine.steps import DataEdit, EventBase, Step, Undoes
from pointsman.values import Json, JsonObject


class ExecutionStarted(EventBase, frozen=True, kw_only=True, tag="started"):
    workflow: str
    version: str
    input: JsonObject
    config: JsonObject = {}
    session: str | None = None
    state: JsonObject = {}
    """Defaults of declared fields; the input overrides them."""
    messages: list[Json] | None = None
    """None: the workflow has no conversation."""
    parent: str | None = None
    definition: str = ""
    """SHA-256 of the native document; the store keeps the document under this key."""
    options: JsonObject = {}
    """Options of this execution (`model`, `language` …)."""
    seed: int = 0
    attempt: int = 1
    queued: bool = False
    """Whether it waits in the queue of its workflow's concurrency limit; `ExecutionAdmitted` ends the wait."""


class ExecutionAdmitted(EventBase, frozen=True, kw_only=True, tag="admitted"):
    """The concurrency limit admits a queued execution: it begins."""


class LimitEscalated(EventBase, frozen=True, kw_only=True, tag="handed_over"):
    """The fallback node takes over after a limit or a failure; `value` is its input."""

    node: str
    value: Json = None
    gate: Step | None = None
    """The gate at which people decide first; open tokens are kept until they have answered."""


class LimitsRaised(EventBase, frozen=True, kw_only=True, tag="limits_raised"):
    limits: dict[str, float]


class ExecutionPaused(EventBase, frozen=True, kw_only=True, tag="paused"):
    by: str = ""
    before: Step | None = None
    """The step that was about to start, at a breakpoint or after a single step."""


class ExecutionResumed(EventBase, frozen=True, kw_only=True, tag="resumed"):
    by: str = ""
    stepping: bool = False
    """Whether it pauses again before the next step."""


class ExecutionInterrupted(EventBase, frozen=True, kw_only=True, tag="interrupted"):
    """A limit stopped the execution; its state is kept."""

    limit: str
    message: str


class ExecutionCompleted(EventBase, frozen=True, kw_only=True, tag="completed"):
    output: Json = None
    closes_session: bool = False
    until: tuple[str, ...] = ()
    """Target nodes of a partial run; nodes behind them were not performed."""


class ExecutionFailed(EventBase, frozen=True, kw_only=True, tag="failed"):
    failure: Failure
    step: Step | None = None
    steps: tuple[Step, ...] = ()
    """All steps with uncaught failures: a retry resumes them."""


class ExecutionCancelled(EventBase, frozen=True, kw_only=True, tag="cancelled"):
    reason: str = ""
    by: str = ""


class ExecutionSteered(EventBase, frozen=True, kw_only=True, tag="steered"):
    """A person intervened between steps. With `goto` a redirection follows."""

    edits: tuple[DataEdit, ...] = ()
    messages: tuple[Json, ...] = ()
    goto: str | None = None
    reason: str = ""
    by: str = ""


class ControlRedirected(EventBase, frozen=True, kw_only=True, tag="redirected"):
    """Control moves to this node with this value, and is nowhere else."""

    node: str
    value: Json = None


class ExecutionRetried(EventBase, frozen=True, kw_only=True, tag="retried"):
    """A failed execution resumes its failed steps and all tokens it had."""

    by: str = ""
    reenter: tuple[int, ...] = ()
    """Positions of the failed steps that are entered again instead of attempted again."""
    parks: tuple[int, ...] = ()
    """Positions of those whose arrivals are parked again first, so that the step consumes them."""


class ExecutionForked(EventBase, frozen=True, kw_only=True, tag="forked"):
    """The earlier rows are a copy of another execution's; from here on this execution is independent."""

    origin: str
    row: int
    """The last copied row."""
    before: Step | None = None
    """The step to run again; the copied rows end before it."""
    input: JsonObject | None = None
    """The changed input; None: unchanged."""
    edits: tuple[DataEdit, ...] = ()
    session: str | None = None
    by: str = ""
    undoes: Undoes = "all"
    """The scope of compensation after a failure: its own steps, or also those of its origin (older journals)."""


class ExecutionMigrated(EventBase, frozen=True, kw_only=True, tag="moved"):
    """The execution continues with another definition, which fits all its open parts."""

    workflow: str
    version: str
    definition: str
    options: JsonObject = {}
    """All options from here on: the revision and the pinned sub-workflows are those of the new definition."""
    by: str = ""


class CompensationBegan(EventBase, frozen=True, kw_only=True, tag="compensation_began"):
    """It has failed (`failure`) or was cancelled: all other work stops, and completed steps are undone."""

    failure: Failure | None = None
    step: Step | None = None
    """The step whose failure failed the execution."""
    reason: str = ""
    by: str = ""


class UndoBegan(EventBase, frozen=True, kw_only=True, tag="undo_began"):
    """The last step that is not undone yet is undone next, by a step of `node`."""

    step: Step
    node: str


class UndoEnded(EventBase, frozen=True, kw_only=True, tag="undo_ended"):
    """The step is undone, or with a `failure` could not be undone."""

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
"""Events about the execution as a whole."""
