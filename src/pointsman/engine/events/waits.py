"""Events about gates, timers, events, child executions, the outbox and warnings."""

from __future__ import annotations

from typing import Literal, TypeAlias

from msgspec import Struct

from pointsman.engine.approvers import GateAbout, GateApprovers
from pointsman.engine.reports import Usage
from pointsman.engine.steps import Step
from pointsman.engine.tool_calls import CallVerdict, ProposedCall
from pointsman.engine.writes import EventBase
from pointsman.values import Json, JsonObject


class GateOpened(EventBase, frozen=True, kw_only=True, tag="gate_opened"):
    """A person owes us an answer; the execution may now wait for months."""

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
    """The tool calls that wait for it."""
    deadline: float | None = None
    """When the time of those who are asked is up, unix seconds."""
    item: str | None = None
    """The key of the item that its branch or round works on."""
    round: int | None = None
    """Of the innermost loop around it."""
    messages: dict[str, str] = {}
    """The message by language, where its workflow says it in several; `message` is in that of the execution."""
    called: Json = None
    """How people know its node: a text, or one by language."""
    digest: str = ""
    """Names what is asked and shown (`digests`); empty in journals that are older than it."""


class GateChanged(EventBase, frozen=True, kw_only=True, tag="gate_changed"):
    """What an open gate asks or shows has changed: it is asked again. Votes on what was shown before count no more."""

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
    """Of a gate before a step starts: what the step will be given instead."""
    digest: str


class GateVoted(EventBase, frozen=True, kw_only=True, tag="gate_voted"):
    """One of several approvers said what they want. A later vote of the same person replaces it."""

    step: Step
    by: str
    action: str
    data: Json = None
    comment: str = ""
    groups: tuple[str, ...] = ()
    """Their groups that gave them the right."""
    key: str = ""
    digest: str = ""
    """Of what the gate showed."""


class GateDelegated(EventBase, frozen=True, kw_only=True, tag="gate_delegated"):
    """An approver passed their right on, and their vote is withdrawn."""

    step: Step
    by: str
    to: str
    groups: tuple[str, ...] = ()
    comment: str = ""


class GateEscalated(EventBase, frozen=True, kw_only=True, tag="gate_escalated"):
    """The gate timed out: the next level is asked, and earlier votes and delegations are void."""

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
    """The gate has its answer: of a person, of several who voted, or of the clock (`cause`)."""

    step: Step
    action: str
    data: Json = None
    comment: str = ""
    by: str = ""
    """Who answered; of several the one whose vote was the last that was needed."""
    groups: tuple[str, ...] = ()
    """Their groups that gave them the right."""
    cause: Literal["answer", "timeout"] = "answer"
    key: str = ""
    """The idempotency key of the answer."""
    changes: tuple[FieldEdit, ...] = ()
    digest: str = ""
    """Of what the gate showed."""


class ToolCallsReviewed(EventBase, frozen=True, kw_only=True, tag="calls_reviewed"):
    """The tool calls that waited may be made, or may not."""

    step: Step
    verdicts: tuple[CallVerdict, ...]


class WorkerAwaited(EventBase, frozen=True, kw_only=True, tag="worker_awaited"):
    """The process that drives the execution lacks something for this attempt. It is left to a worker that has it."""

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
    """An outside event came. Those who waited for it settle in the same row. Of one `key` only the first is taken.

    Old journals have rows of events that no step took.
    """

    name: str
    data: Json = None
    by: str = ""
    key: str = ""
    kept: bool = False
    """No step waited for it yet: the first step that does takes it (`BufferedEventUsed`)."""


class BufferedEventUsed(EventBase, frozen=True, kw_only=True, tag="kept_event_used"):
    """A step began to wait for an event that had come before. It settles in the same row."""

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
    """The tool call that it carries out; 0: it is the work of the node."""


class OutboxDelivered(EventBase, frozen=True, kw_only=True, tag="orders_delivered"):
    """Messages of the outbox were delivered."""

    orders: tuple[str, ...]


class ChildRequested(EventBase, frozen=True, kw_only=True, tag="child_asked"):
    step: Step
    workflow: str


class ToolChildrenRequested(EventBase, frozen=True, kw_only=True, tag="children_asked"):
    """Sub-workflows carry out tool calls of an attempt, one each; it is performed again once all have ended."""

    step: Step
    calls: tuple[ProposedCall, ...]


class ToolCallEnded(EventBase, frozen=True, kw_only=True, tag="call_ended"):
    """The sub-workflow of a tool call has ended."""

    step: Step
    verdict: CallVerdict
    usage: Usage | None = None


class WarningRaised(EventBase, frozen=True, kw_only=True, tag="warned"):
    """A warning for people; nothing stopped."""

    code: str
    message: str
    step: Step | None = None
    about: str = ""
    """What it is said of only once; empty: each time."""


class ChildUsageCounted(EventBase, frozen=True, kw_only=True, tag="spent_below"):
    """The total usage of a child execution so far."""

    step: Step
    usage: Usage
    call: int = 0
    """The tool call that it carries out; 0: it is the work of the node."""


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
"""What the world owes, gave, or was told."""
