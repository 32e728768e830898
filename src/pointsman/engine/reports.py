"""Reports: input from the world. `decide` turns each into events, once.

Executors answer an `Execute` command with `WorkDone` or `WorkFailed`; other reports come from people, timers and child
executions. A report about something that is no longer open decides nothing.
"""

from __future__ import annotations

from typing import TypeAlias

from msgspec import Struct

from pointsman.engine.failures import Failure
from pointsman.engine.steps import Step
from pointsman.engine.tool_calls import ProposedCall
from pointsman.engine.writes import DataEdit, Undoes
from pointsman.values import Json, JsonObject


class ToolCall(Struct, frozen=True, kw_only=True, omit_defaults=True):
    """A tool call that a model asked for. `id` is the provider's; it pairs the call with its result."""

    id: str
    name: str
    arguments: JsonObject


class Usage(Struct, frozen=True, kw_only=True, omit_defaults=True):
    """What a piece of work consumed. `cost_usd` is None where no price is known: unknown is not zero."""

    input_tokens: int = 0
    output_tokens: int = 0
    model_calls: int = 0
    tool_calls: int = 0
    cost_usd: float | None = None
    cache_read_tokens: int = 0
    """Of the input tokens those that the provider had read before, and charges less for."""
    cache_write_tokens: int = 0
    """Of the input tokens those that it keeps for later calls."""
    free_calls: int = 0
    """Model calls without a price because the scripted model answers them."""
    scripted: bool = False
    """An answer of the scripted model or of a scripted tool is part of the work, also where the cache returned it."""


class Start(Struct, frozen=True, kw_only=True, tag="start"):
    """Begin. `seed` feeds the jitter of retries, so that a replay agrees."""

    input: JsonObject
    config: JsonObject = {}
    session: str | None = None
    messages: list[Json] = []
    """What the session said so far, oldest first (role/content objects)."""
    parent: str | None = None
    definition: str = ""
    options: JsonObject = {}
    seed: int = 0
    attempt: int = 1
    queued: bool = False
    """It must wait for a place (`AdmissionGranted`)."""


class AdmissionGranted(Struct, frozen=True, kw_only=True, tag="place_freed"):
    """An execution that waited for its place may begin."""


class WorkDone(Struct, frozen=True, kw_only=True, tag="work_done", omit_defaults=True):
    """An attempt succeeded. `result` is the step's value; the rest is what only some kinds of work say."""

    step: Step
    attempt: int
    result: Json = None
    next: str | None = None
    """The label by which to leave (`next` of an agent, the choice of a decision, the last routed tool)."""
    labels: tuple[str, ...] = ()
    """Labels tried before `next`, last first: the tools a tool_executor ran."""
    text: str | None = None
    """The whole text of a model, where `result` is a value read from it."""
    pending: tuple[ToolCall, ...] = ()
    """Tool calls left for a tool_executor."""
    messages: tuple[Json, ...] = ()
    """What this work adds to the conversation (role/content objects)."""
    warnings: tuple[str, ...] = ()
    usage: Usage | None = None
    cached: bool = False
    """It was not performed: an equal step had brought this before."""
    printed: str = ""
    """The end of what its tools, or its code, printed and logged."""
    result_bytes: int | None = None
    """Size of the result as JSON, if the sender knows it; else it is measured where that matters."""


class WorkFailed(Struct, frozen=True, kw_only=True, tag="work_failed", omit_defaults=True):
    """An attempt failed."""

    step: Step
    attempt: int
    failure: Failure
    usage: Usage | None = None


class GateAnswered(Struct, frozen=True, kw_only=True, tag="gate_answered", omit_defaults=True):
    """A person answered an open gate."""

    step: Step
    action: str
    data: Json = None
    comment: str = ""
    by: str = ""
    """The authenticated person who answers; empty: an unnamed person."""
    groups: tuple[str, ...] = ()
    """The groups they are in, likewise."""
    key: str = ""
    """Idempotency key: the same answer with the same key again decides nothing."""
    gate: str = ""
    """The id of the gate it is about: a step may ask again, about something else. Empty: whichever is open there."""
    digest: str = ""
    """Of what the person saw; empty: not known. An answer to anything else than what the gate shows is refused."""


class DelegationRequested(Struct, frozen=True, kw_only=True, tag="delegation_requested", omit_defaults=True):
    """An approver passes the right to answer an open gate on to another person."""

    step: Step
    to: str
    by: str
    groups: tuple[str, ...] = ()
    comment: str = ""
    gate: str = ""


class ToolCallsProposed(Struct, frozen=True, kw_only=True, tag="approval_asked"):
    """An attempt got to tool calls that a person must approve first. It was left there, and is performed again then."""

    step: Step
    attempt: int
    calls: tuple[ProposedCall, ...]


class WorkerMissing(Struct, frozen=True, kw_only=True, tag="worker_missing"):
    """This process cannot perform an attempt: it lacks `failure.needs`. A worker that has it can."""

    step: Step
    attempt: int
    failure: Failure


class WorkerOffered(Struct, frozen=True, kw_only=True, tag="worker_offered"):
    """This process has what an attempt waits for, and performs it."""

    step: Step
    attempt: int


class TimerFired(Struct, frozen=True, kw_only=True, tag="timer_fired"):
    """The time of a timer has come. `timer` is the id the core gave it."""

    timer: str


class EventReceived(Struct, frozen=True, kw_only=True, tag="event_received", omit_defaults=True):
    """An outside event (signal, webhook, `emit` of another execution) for steps that wait for its name."""

    name: str
    data: Json = None
    by: str = ""
    key: str = ""
    """Names this one delivery: what comes again under the same key changes nothing."""
    keeps: bool = False
    """It was sent to this execution alone: it is buffered if no step waits for it yet."""


class DeliveryConfirmed(Struct, frozen=True, kw_only=True, tag="delivered"):
    """Others were told what `Publish` and `StopChild` commands said: the names of these orders."""

    orders: tuple[str, ...]


class ChildEnded(Struct, frozen=True, kw_only=True, tag="child_ended", omit_defaults=True):
    """A sub-workflow ended; `failure` is set unless it completed."""

    step: Step
    attempt: int
    output: Json = None
    failure: Failure | None = None
    usage: Usage | None = None
    call: int = 0
    """The tool call that it carries out; 0: it is the work of the node."""


class ChildUsageReported(Struct, frozen=True, kw_only=True, tag="child_spent", omit_defaults=True):
    """A sub-workflow that still runs has consumed so much until now, in all."""

    step: Step
    attempt: int
    usage: Usage
    call: int = 0


class CancelRequested(Struct, frozen=True, kw_only=True, tag="cancel_requested", omit_defaults=True):
    """Someone wants the execution to stop for good. `now`: nothing is undone first, or no more of it."""

    reason: str = ""
    by: str = ""
    now: bool = False


class PauseRequested(Struct, frozen=True, kw_only=True, tag="pause_requested", omit_defaults=True):
    """Someone wants no further step to start; running work may finish."""

    by: str = ""


class ResumeRequested(Struct, frozen=True, kw_only=True, tag="resume_requested", omit_defaults=True):
    """Go on after a pause or a limit. `limits` raises limits by name (`steps`, `executionTime` in seconds, …)."""

    limits: dict[str, float] = {}
    by: str = ""
    step: bool = False
    """Pause again before the next step begins."""


class SteerRequested(Struct, frozen=True, kw_only=True, tag="steer_requested", omit_defaults=True):
    """Someone takes a hand: values into the data, messages into the conversation, control to another node."""

    edits: tuple[DataEdit, ...] = ()
    messages: tuple[Json, ...] = ()
    goto: str | None = None
    reason: str = ""
    by: str = ""


class RetryRequested(Struct, frozen=True, kw_only=True, tag="retry_requested", omit_defaults=True):
    """Try the finally failed steps of a failed execution again. `limits` raises limits, as for a resumption."""

    by: str = ""
    limits: dict[str, float] = {}


class MigrationRequested(Struct, frozen=True, kw_only=True, tag="move_requested", omit_defaults=True):
    """Go on with another definition: that of the plan with which this report is decided."""

    definition: str
    options: JsonObject = {}
    by: str = ""


class ForkRequested(Struct, frozen=True, kw_only=True, tag="fork_requested", omit_defaults=True):
    """The rows so far are a copy of another execution's: go on with them as an execution of one's own."""

    origin: str
    row: int
    """The last one that was taken from there."""
    before: Step | None = None
    input: JsonObject | None = None
    """Fields of the input that change."""
    edits: tuple[DataEdit, ...] = ()
    session: str | None = None
    limits: dict[str, float] = {}
    onto: MigrationRequested | None = None
    """Another definition to go on with."""
    by: str = ""
    undoes: Undoes = "own"
    """`all` is said by journals of forks that were begun before origin and fork were told apart."""


Report: TypeAlias = (
    Start
    | AdmissionGranted
    | WorkDone
    | WorkFailed
    | GateAnswered
    | DelegationRequested
    | ToolCallsProposed
    | WorkerMissing
    | WorkerOffered
    | TimerFired
    | EventReceived
    | DeliveryConfirmed
    | ChildEnded
    | ChildUsageReported
    | CancelRequested
    | PauseRequested
    | ResumeRequested
    | RetryRequested
    | SteerRequested
    | ForkRequested
    | MigrationRequested
)
