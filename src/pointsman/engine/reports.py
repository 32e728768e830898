"""Reports: input from the world. `decide` turns each into events, once.

Executors answer an `Execute` command with `WorkDone` or `WorkFailed`; other reports come from people, timers and child
executions. A report about something that has closed decides nothing.
"""

from __future__ import annotations

from typing import TypeAlias

from msgspec import Struct

from pointsman.engine.actions import ProposedCall
from pointsman.engine.failures import Failure
from pointsman.engine.steps import DataEdit, Step, Undoes
from pointsman.values import Json, JsonObject


class ToolCall(Struct, frozen=True, kw_only=True, omit_defaults=True, gc=False):
    """A tool call that a model requested. `id` is the provider's; it pairs the call with its result."""

    id: str
    name: str
    arguments: JsonObject


class Usage(Struct, frozen=True, kw_only=True, omit_defaults=True, gc=False):
    """The usage of a piece of work. `cost_usd` is None if no price is known: unknown is not zero."""

    input_tokens: int = 0
    output_tokens: int = 0
    model_calls: int = 0
    tool_calls: int = 0
    cost_usd: float | None = None
    cache_read_tokens: int = 0
    """Input tokens that the provider read from its cache, at a lower price."""
    cache_write_tokens: int = 0
    """Input tokens that the provider wrote to its cache."""
    free_calls: int = 0
    """Model calls without a price, because the scripted model answers them."""
    scripted: bool = False
    """Whether the scripted model or a scripted tool answered a part of the work, also if the result comes from the
    cache.
    """


class Start(Struct, frozen=True, kw_only=True, tag="start", gc=False):
    """Start the execution. `seed` feeds the jitter of retries, so that replays agree."""

    input: JsonObject
    config: JsonObject = {}
    session: str | None = None
    messages: list[Json] = []
    """Earlier messages of the session, oldest first (role/content objects)."""
    parent: str | None = None
    definition: str = ""
    options: JsonObject = {}
    seed: int = 0
    attempt: int = 1
    queued: bool = False
    """Whether it must wait for `AdmissionGranted`."""
    input_bytes: int | None = None
    """Size of the input as JSON, if it was measured before."""


class AdmissionGranted(Struct, frozen=True, kw_only=True, tag="place_freed", gc=False):
    """A queued execution may begin."""


class WorkDone(Struct, frozen=True, kw_only=True, tag="work_done", omit_defaults=True, gc=False):
    """An attempt succeeded. `result` is the step's value; the other fields are for particular kinds of work."""

    step: Step
    attempt: int
    result: Json = None
    next: str | None = None
    """The label to leave by (`next` of an agent, the choice of a decision, the last routed tool)."""
    labels: tuple[str, ...] = ()
    """Labels tried before `next`, last first: the tools a tool_executor ran."""
    text: str | None = None
    """The whole text of a model if `result` is a value parsed from it."""
    pending: tuple[ToolCall, ...] = ()
    """Tool calls left for a tool_executor."""
    messages: tuple[Json, ...] = ()
    """Messages added to the conversation (role/content objects)."""
    warnings: tuple[str, ...] = ()
    usage: Usage | None = None
    cached: bool = False
    """The result comes from the cache of an equal step; no work ran."""
    printed: str = ""
    """The last part of the output and logs of its tools or code."""
    result_bytes: int | None = None
    """Size of the result as JSON if the sender knows it; otherwise it is measured when needed."""


class WorkFailed(Struct, frozen=True, kw_only=True, tag="work_failed", omit_defaults=True, gc=False):
    """An attempt failed."""

    step: Step
    attempt: int
    failure: Failure
    usage: Usage | None = None


class GateAnswered(Struct, frozen=True, kw_only=True, tag="gate_answered", omit_defaults=True, gc=False):
    """A person answered an open gate."""

    step: Step
    action: str
    data: Json = None
    comment: str = ""
    by: str = ""
    """The authenticated person who answers; empty: an unnamed person."""
    groups: tuple[str, ...] = ()
    """The person's groups; authenticated as well."""
    key: str = ""
    """Idempotency key: a repeated answer with the same key has no effect."""
    gate: str = ""
    """The id of the gate, since a step may open several in turn. Empty: whichever is open."""
    digest: str = ""
    """Digest of what the person saw; empty: unknown. An answer to other contents than the gate's is refused."""


class DelegationRequested(Struct, frozen=True, kw_only=True, tag="delegation_requested", omit_defaults=True, gc=False):
    """An approver passes the right to answer an open gate on to another person."""

    step: Step
    to: str
    by: str
    groups: tuple[str, ...] = ()
    comment: str = ""
    gate: str = ""


class ToolCallsProposed(Struct, frozen=True, kw_only=True, tag="approval_asked", gc=False):
    """An attempt proposes tool calls that need approval, the caller or a sub-workflow. It stops and is repeated
    later.
    """

    step: Step
    attempt: int
    calls: tuple[ProposedCall, ...]


class WorkerMissing(Struct, frozen=True, kw_only=True, tag="worker_missing", gc=False):
    """This process cannot perform an attempt because it lacks `failure.needs`. A worker that has it can."""

    step: Step
    attempt: int
    failure: Failure


class WorkerOffered(Struct, frozen=True, kw_only=True, tag="worker_offered", gc=False):
    """This process has what an attempt waits for, and offers to perform it."""

    step: Step
    attempt: int


class TimerFired(Struct, frozen=True, kw_only=True, tag="timer_fired", gc=False):
    """A timer has fired. `timer` is its id, chosen by the engine."""

    timer: str


class EventReceived(Struct, frozen=True, kw_only=True, tag="event_received", omit_defaults=True, gc=False):
    """An outside event (signal, webhook, `emit` of another execution) for steps that wait for its name."""

    name: str
    data: Json = None
    by: str = ""
    key: str = ""
    """Delivery key: a repeated delivery with the same key has no effect."""
    keeps: bool = False
    """Whether it was sent to this execution only: it is buffered if no step waits for it yet."""


class DeliveryConfirmed(Struct, frozen=True, kw_only=True, tag="delivered", gc=False):
    """Messages of `Publish` and `StopChild` commands were delivered; their names."""

    orders: tuple[str, ...]


class ChildEnded(Struct, frozen=True, kw_only=True, tag="child_ended", omit_defaults=True, gc=False):
    """A sub-workflow ended; `failure` is set unless it completed."""

    step: Step
    attempt: int
    output: Json = None
    failure: Failure | None = None
    usage: Usage | None = None
    call: int = 0
    """The tool call that the child performed; 0: the node's own work."""


class ChildUsageReported(Struct, frozen=True, kw_only=True, tag="child_spent", omit_defaults=True, gc=False):
    """The total usage so far of a sub-workflow that still runs."""

    step: Step
    attempt: int
    usage: Usage
    call: int = 0


class CancelRequested(Struct, frozen=True, kw_only=True, tag="cancel_requested", omit_defaults=True, gc=False):
    """Request to stop the execution for good. `now`: without compensation, or stopping it."""

    reason: str = ""
    by: str = ""
    now: bool = False


class PauseRequested(Struct, frozen=True, kw_only=True, tag="pause_requested", omit_defaults=True, gc=False):
    """Request to start no further step; running work may finish."""

    by: str = ""


class ResumeRequested(Struct, frozen=True, kw_only=True, tag="resume_requested", omit_defaults=True, gc=False):
    """Request to continue after a pause or a limit. `limits` raises limits by name (`steps`, `executionTime` in s,
    …).
    """

    limits: dict[str, float] = {}
    by: str = ""
    step: bool = False
    """Whether to pause again before the next step."""


class SteerRequested(Struct, frozen=True, kw_only=True, tag="steer_requested", omit_defaults=True, gc=False):
    """Manual intervention: edit data, add messages to the conversation, or move control to another node."""

    edits: tuple[DataEdit, ...] = ()
    messages: tuple[Json, ...] = ()
    goto: str | None = None
    reason: str = ""
    by: str = ""


class RetryRequested(Struct, frozen=True, kw_only=True, tag="retry_requested", omit_defaults=True, gc=False):
    """Request to retry the failed steps of a failed execution. `limits` raises limits, as on resumption."""

    by: str = ""
    limits: dict[str, float] = {}


class MigrationRequested(Struct, frozen=True, kw_only=True, tag="move_requested", omit_defaults=True, gc=False):
    """Request to continue with another definition: that of the plan with which this report is decided."""

    definition: str
    options: JsonObject = {}
    by: str = ""


class ForkRequested(Struct, frozen=True, kw_only=True, tag="fork_requested", omit_defaults=True, gc=False):
    """Request to continue the copied rows of another execution as an independent execution."""

    origin: str
    row: int
    """The last copied row."""
    before: Step | None = None
    input: JsonObject | None = None
    """Input fields to change."""
    edits: tuple[DataEdit, ...] = ()
    session: str | None = None
    limits: dict[str, float] = {}
    onto: MigrationRequested | None = None
    """Another definition to continue with."""
    by: str = ""
    undoes: Undoes = "own"
    """`all` occurs in journals of forks from before compensation was limited to the fork's own steps."""


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
