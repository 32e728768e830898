"""Events of an execution as a program receives them, from `Execution.events` and `Client`: one class for each name.

    async for event in execution.events(live=True):
        match event:
            case DeltaEvent():
                print(event.text, end="")
            case GateEvent():
                await execution.answer(event.gate_id, "approve")

The names are those of the streams of the HTTP API. A server leaves out fields (`input`, `result`, `output`, `shown`,
`data`) and events that the `observability` of the workflow does not include. Later versions may add events: they
arrive as `OtherEvent`.
"""

from __future__ import annotations

from typing import Final

import msgspec
from msgspec import Struct

from pointsman.values import Json, JsonObject


class PublicEvent(Struct, frozen=True, kw_only=True, rename="camel", tag_field="event", omit_defaults=True):
    """The common fields of all events."""

    execution_id: str = ""
    id: str = ""
    """The place in the journal, after which a reader continues; empty for live events, which are not stored."""
    seq: int = 0
    """The row of the journal."""
    at: float = 0.0
    """Unix seconds."""

    @property
    def event(self) -> str:
        """The name of the event."""
        return str(self.__struct_config__.tag)

    def to_json(self) -> JsonObject:
        """Return the event as streams send it."""
        return msgspec.to_builtins(self)


class NodeEvent(PublicEvent, frozen=True, kw_only=True):
    """The common fields of the events of one step."""

    node_id: str = ""
    step: str = ""


class StartEvent(PublicEvent, frozen=True, kw_only=True, tag="workflow.start"):
    """The execution began."""

    workflow_id: str = ""
    input: Json = None


class NodeStartEvent(NodeEvent, frozen=True, kw_only=True, tag="workflow.node.start"):
    """A step began."""

    input: Json = None


class DeltaEvent(NodeEvent, frozen=True, kw_only=True, tag="workflow.node.delta"):
    """Live output inside a step: tokens of a model, a tool call, the progress of a tool. Never stored."""

    delta: JsonObject = {}
    """`kind`: `text`, `discarded` (the text so far is withdrawn), `tool_call`, `tool_result`, `progress`, `so_far`."""

    @property
    def text(self) -> str:
        """The tokens; empty for output of other kinds."""
        return str(self.delta.get("text", "")) if self.delta.get("kind") == "text" else ""


class NodeCompleteEvent(NodeEvent, frozen=True, kw_only=True, tag="workflow.node.complete"):
    """A step succeeded."""

    attempt: int = 1
    result: Json = None


class NodeSkippedEvent(NodeEvent, frozen=True, kw_only=True, tag="workflow.node.skipped"):
    """A step was skipped."""


class NodeRetryEvent(NodeEvent, frozen=True, kw_only=True, tag="workflow.node.retry"):
    """An attempt failed; another one follows. `error`: {code, message, …}."""

    attempt: int = 1
    error: JsonObject = {}


class NodeErrorEvent(NodeEvent, frozen=True, kw_only=True, tag="workflow.node.error"):
    """A step failed for good. `error`: {code, message, …}."""

    attempt: int = 1
    error: JsonObject = {}


class UsageEvent(NodeEvent, frozen=True, kw_only=True, tag="workflow.usage"):
    """Tokens, calls and cost of a step."""

    usage: JsonObject = {}


class GateEvent(NodeEvent, frozen=True, kw_only=True, tag="workflow.human.required"):
    """A gate waits for a person; again if what it asks or whom it asks has changed."""

    gate_id: str = ""
    message: str = ""
    options: list[JsonObject] = []
    """{value, label?, style?} of each action."""
    about: Json = None
    approvers: Json = None
    deadline: float | None = None
    digest: str = ""
    shown: Json = None
    again: bool = False
    level: int = 0
    """How often it was escalated."""


class GateAnsweredEvent(NodeEvent, frozen=True, kw_only=True, tag="workflow.human.answered"):
    """A gate was answered."""

    action: str = ""
    by: str = ""
    data: Json = None


class PauseEvent(PublicEvent, frozen=True, kw_only=True, tag="workflow.paused"):
    """The execution was paused."""

    by: str = ""


class ResumeEvent(PublicEvent, frozen=True, kw_only=True, tag="workflow.resumed"):
    """The execution continues."""

    by: str = ""


class InterruptEvent(PublicEvent, frozen=True, kw_only=True, tag="workflow.interrupted"):
    """A limit stopped the execution; it can be resumed."""

    limit: str = ""
    message: str = ""


class CompleteEvent(PublicEvent, frozen=True, kw_only=True, tag="workflow.complete"):
    """The execution completed."""

    output: Json = None


class FailEvent(PublicEvent, frozen=True, kw_only=True, tag="workflow.failed"):
    """The execution failed. `error`: {code, message, …}."""

    error: JsonObject = {}


class CancelEvent(PublicEvent, frozen=True, kw_only=True, tag="workflow.cancelled"):
    """The execution was cancelled."""

    reason: str = ""
    by: str = ""


class CheckpointEvent(PublicEvent, frozen=True, kw_only=True, tag="workflow.checkpoint.saved"):
    """A row of the journal is durable."""


class OtherEvent(PublicEvent, frozen=True, kw_only=True):
    """An event that this version does not describe, such as the snapshot of a stream."""

    name: str
    data: JsonObject
    """All its fields."""

    @property
    def event(self) -> str:
        return self.name

    def to_json(self) -> JsonObject:
        return self.data


CLASSES: Final[dict[str, type[PublicEvent]]] = {
    str(one.__struct_config__.tag): one
    for one in (
        *(StartEvent, PauseEvent, ResumeEvent, InterruptEvent, CompleteEvent, FailEvent, CancelEvent, CheckpointEvent),
        *(NodeStartEvent, DeltaEvent, NodeCompleteEvent, NodeSkippedEvent, NodeRetryEvent, NodeErrorEvent, UsageEvent),
        *(GateEvent, GateAnsweredEvent),
    )
}
"""Name -> class."""


def event_of(sent: JsonObject) -> PublicEvent:
    """Return an event of a stream as an object of its class."""
    name = str(sent["event"])
    known = CLASSES.get(name)
    if known is None:
        return OtherEvent(id=str(sent.get("id", "")), name=name, data=sent)
    return msgspec.convert(sent, known)
