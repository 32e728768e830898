"""Events about gates, timers, events, child executions, the outbox and warnings."""

from __future__ import annotations

from typing import Literal, TypeAlias

from msgspec import Struct

from pointsman.engine.actions import CallVerdict, GateAbout, GateApprovers, ProposedCall
from pointsman.engine.reports import Usage
from pointsman.engine.steps import EventBase, Step
from pointsman.values import Json, JsonObject


class GateOpened(EventBase, frozen=True, kw_only=True, tag="gate_opened"):
    """A gate waits for a person's answer; the execution may now wait for months."""

    step: Step
    gate: str
    message: str
    options: tuple[JsonObject, ...] = ()
    form: JsonObject | None = None
    shown: Json = None
    editable: tuple[tuple[str | int, ...], ...] = ()
    approvers: GateApprovers | None = None
    about: GateAbout = "node"
    calls: tuple[ProposedCall, ...] = ()
    """The tool calls that the gate decides."""
    deadline: float | None = None
    """Deadline of the present approvers, unix seconds."""
    item: str | None = None
    """Key of the item of its branch or round."""
    round: int | None = None
    """Round of the innermost loop around it."""
    messages: dict[str, str] = {}
    """The message by language, if the workflow has several; `message` is in the language of the execution."""
    called: Json = None
    """Display name of the node: a text, or one by language."""
    digest: str = ""
    """Digest of the gate's contents (`digests`); empty in older journals."""


class GateChanged(EventBase, frozen=True, kw_only=True, tag="gate_changed"):
    """The contents of an open gate changed: it is announced again, and earlier votes are void."""

    step: Step
    gate: str
    message: str
    messages: dict[str, str] = {}
    options: tuple[JsonObject, ...] = ()
    form: JsonObject | None = None
    shown: Json = None
    editable: tuple[tuple[str | int, ...], ...] = ()
    approvers: GateApprovers | None = None
    called: Json = None
    input: JsonObject | None = None
    """For a start approval: the changed input of the step."""
    digest: str


class GateVoted(EventBase, frozen=True, kw_only=True, tag="gate_voted"):
    """One of several approvers voted. A later vote of the same person replaces it."""

    step: Step
    by: str
    action: str
    data: Json = None
    comment: str = ""
    groups: tuple[str, ...] = ()
    """The voter's groups that are approvers."""
    key: str = ""
    digest: str = ""
    """Digest of the contents voted on."""


class GateDelegated(EventBase, frozen=True, kw_only=True, tag="gate_delegated"):
    """An approver delegated the right to answer; the approver's vote is withdrawn."""

    step: Step
    by: str
    to: str
    groups: tuple[str, ...] = ()
    comment: str = ""


class GateEscalated(EventBase, frozen=True, kw_only=True, tag="gate_escalated"):
    """The gate timed out: the next level is asked; earlier votes and delegations are void."""

    step: Step
    level: int
    approvers: GateApprovers
    deadline: float


class FieldEdit(Struct, frozen=True, kw_only=True, omit_defaults=True, gc=False):
    """One field that a person changed at a gate."""

    path: tuple[str | int, ...]
    before: Json = None
    after: Json = None


class GateClosed(EventBase, frozen=True, kw_only=True, tag="gate_closed"):
    """The gate has its answer, from a person, a quorum or the timeout (`cause`)."""

    step: Step
    action: str
    data: Json = None
    comment: str = ""
    by: str = ""
    """The person who answered; in a quorum, the person with the deciding vote."""
    groups: tuple[str, ...] = ()
    """The person's groups that are approvers."""
    cause: Literal["answer", "timeout"] = "answer"
    key: str = ""
    """The idempotency key of the answer."""
    changes: tuple[FieldEdit, ...] = ()
    digest: str = ""
    """Digest of the contents answered."""


class ToolCallsReviewed(EventBase, frozen=True, kw_only=True, tag="calls_reviewed"):
    """Verdicts on the proposed tool calls."""

    step: Step
    verdicts: tuple[CallVerdict, ...]


class WorkerAwaited(EventBase, frozen=True, kw_only=True, tag="worker_awaited"):
    """The driving process lacks something for this attempt, which waits for a worker that has it."""

    step: Step
    attempt: int
    needs: str
    """As in `Failure.needs`."""
    message: str
    hint: str = ""


class TimerSet(EventBase, frozen=True, kw_only=True, tag="timer_set"):
    timer: str
    purpose: Literal["retry", "delay", "wait", "gate", "join", "deadline", "event"]
    at: float
    step: Step | None = None


class TimerElapsed(EventBase, frozen=True, kw_only=True, tag="timer_rang"):
    timer: str


class EventAwaited(EventBase, frozen=True, kw_only=True, tag="event_awaited"):
    step: Step
    name: str


class EventConsumed(EventBase, frozen=True, kw_only=True, tag="event_taken"):
    """An event from outside arrived. Steps that waited for it settle in the same row. Of one `key` only the first
    counts.

    Old journals have rows of events that no step consumed.
    """

    name: str
    data: Json = None
    by: str = ""
    key: str = ""
    kept: bool = False
    """Whether no step waited for it: the first step that waits consumes it (`BufferedEventUsed`)."""


class BufferedEventUsed(EventBase, frozen=True, kw_only=True, tag="kept_event_used"):
    """A step consumed a buffered event. It settles in the same row."""

    step: Step
    number: int


class EventEmitted(EventBase, frozen=True, kw_only=True, tag="emitted"):
    step: Step
    name: str
    data: Json = None
    told: bool = True
    """False: it is sent to other executions; `OutboxDelivered` records the delivery."""


class ChildStopRequested(EventBase, frozen=True, kw_only=True, tag="child_stop_asked"):
    """The child of this attempt is to be cancelled; `OutboxDelivered` records the delivery."""

    step: Step
    attempt: int = 1
    call: int = 0
    """The tool call that the child performs; 0: the node's own work."""


class OutboxDelivered(EventBase, frozen=True, kw_only=True, tag="orders_delivered"):
    """Messages of the outbox were delivered."""

    orders: tuple[str, ...]


class ChildRequested(EventBase, frozen=True, kw_only=True, tag="child_asked"):
    step: Step
    workflow: str


class ToolChildrenRequested(EventBase, frozen=True, kw_only=True, tag="children_asked"):
    """Sub-workflows perform the tool calls of an attempt, one each; the attempt is repeated when all have ended."""

    step: Step
    calls: tuple[ProposedCall, ...]


class ToolCallEnded(EventBase, frozen=True, kw_only=True, tag="call_ended"):
    """The sub-workflow of a tool call has ended."""

    step: Step
    verdict: CallVerdict
    usage: Usage | None = None


class WarningRaised(EventBase, frozen=True, kw_only=True, tag="warned"):
    """A warning for people; the execution continues."""

    code: str
    message: str
    step: Step | None = None
    about: str = ""
    """Subject that is warned about only once; empty: no deduplication."""


class ChildUsageCounted(EventBase, frozen=True, kw_only=True, tag="spent_below"):
    """The total usage of a child execution so far."""

    step: Step
    usage: Usage
    call: int = 0
    """The tool call that the child performs; 0: the node's own work."""


class LimitHit(EventBase, frozen=True, kw_only=True, tag="limit_hit"):
    limit: str
    message: str
    step: Step | None = None


WaitEvent: TypeAlias = (
    GateOpened
    | GateChanged
    | GateVoted
    | GateDelegated
    | GateEscalated
    | GateClosed
    | ToolCallsReviewed
    | WorkerAwaited
    | TimerSet
    | TimerElapsed
    | EventAwaited
    | EventConsumed
    | BufferedEventUsed
    | EventEmitted
    | ChildRequested
    | ToolChildrenRequested
    | ToolCallEnded
    | ChildStopRequested
    | OutboxDelivered
    | WarningRaised
    | LimitHit
    | ChildUsageCounted
)
"""Events about waits: gates, timers, events, children, messages and warnings."""
