"""Response models, for the OpenAPI document. Answers are not validated at run time; tests compare them."""

from __future__ import annotations

from typing import Final, Literal

from pydantic import Field

from pointsman.executions.lists import ExecutionEntry
from pointsman.executions.pages import EventPage, ExecutionPage
from pointsman.executions.views import UsageView
from pointsman.server.schemas.answers import EXECUTION_ID
from pointsman.server.schemas.requests import Answer, JsonValue, sample
from pointsman.server.schemas.views import example
from pointsman.values import JsonObject, json_of
from pointsman.workflows.revisions import WorkflowEntryView


class Trouble(Answer):
    """What went wrong in an execution."""

    code: str
    message: str
    node_id: str | None = None
    hint: str | None = None


class StoppingLimit(Answer):
    """The limit that stopped an execution, and what would be enough to go on."""

    name: str = Field(description="Under which it is raised.")
    now: float
    used: float
    next: float | None = Field(description="As much once more; null: the operator allows no more.")
    most: float | None = Field(description="What the operator allows; null: any number.")


Status = Literal[
    "pending", "running", "stopped", "waiting", "paused", "interrupted", "completed", "failed", "cancelled"
]
"""`stopped`: stored as `running`, but the process that executed it has ended."""
Severity = Literal["error", "warning", "note"]

USAGE: UsageView = {
    "inputTokens": 812,
    "outputTokens": 240,
    "cacheReadTokens": 0,
    "cacheWriteTokens": 0,
    "costUsd": 0.0021,
    "modelCalls": 2,
    "toolCalls": 0,
}
GATE: JsonObject = {
    "gateId": "review",
    "nodeId": "review",
    "message": "Send it?",
    "options": [{"value": "approve"}, {"value": "again"}],
    "form": None,
    "shown": None,
    "editable": [],
    "values": {},
    "digest": "0f2a9c3b7d1e4a5f6b8c9d0e1f2a3b4c",
    "openedAt": 1_763_700_000.0,
    "deadline": None,
}
WORKFLOW: WorkflowEntryView = {
    "id": "letter",
    "revision": 2,
    "name": "Letter",
    "version": "1.1.0",
    "dialect": "native",
    "builtIn": False,
    "createdAt": 1_763_700_000.0,
    "author": "ada",
    "digest": "9f86d081884c7d65",
    "enabled": True,
    "description": "Writes a letter, and asks before it is sent.",
    "names": None,
    "tags": ["mail"],
}
SHOWN_ENTRY: ExecutionEntry = {
    "executionId": EXECUTION_ID,
    "workflowId": "letter",
    "revision": 2,
    "status": "waiting",
    "waitingFor": [],
    "startedAt": 1_763_700_000.0,
    "updatedAt": 1_763_700_004.0,
    "parent": None,
    "sessionId": None,
    "scripted": False,
}
ENTRY: JsonObject = json_of(SHOWN_ENTRY)


SCRIPTED: Final = "The scripted model answers in it: what its agents say is made up."


class Warned(Answer):
    """Something to know although nothing stopped."""

    code: str
    message: str
    node_id: str | None


class Started(Answer):
    """An execution that began."""

    model_config = sample(executionId=EXECUTION_ID, status="running", scripted=False, warnings=[])
    execution_id: str
    status: Status
    scripted: bool = Field(description=SCRIPTED)
    warnings: list[Warned] = Field(description="What to know of its answers before they come.")


class Usage(Answer):
    """What was consumed."""

    input_tokens: int
    output_tokens: int
    cache_read_tokens: int
    cache_write_tokens: int
    cost_usd: float | None
    model_calls: int
    tool_calls: int


NODE_NAME: Final = "How people know the node: a text, or one by language; null: by its id."
DIGEST: Final = "Names what the gate asks and shows. It changes with them; an answer sends it back."
MESSAGES: Final = "The message by language, where its workflow says it in several."


class Gate(Answer):
    """What a person is asked."""

    gate_id: str
    node_id: str
    node_name: JsonValue = Field(default=None, description=NODE_NAME)
    message: str
    messages: dict[str, str] | None = Field(default=None, description=MESSAGES)
    options: list[JsonValue]
    form: JsonValue
    shown: JsonValue
    editable: list[str] = Field(default_factory=list[str], description="The fields that `edit` may change.")
    values: dict[str, JsonValue] = Field(
        default_factory=dict[str, JsonValue], description="The present values of the editable fields."
    )
    digest: str = Field(default="", description=DIGEST)
    opened_at: float | None
    deadline: float | None
    execution_id: str | None = Field(default=None, description="The sub-workflow that asks, where it is one.")


class Awaited(Answer):
    """An outside event that a step waits for."""

    node_id: str
    event: JsonValue


class Needed(Answer):
    """A step that waits for a worker: the process that drove the execution lacks something for it."""

    node_id: str
    step: str
    needs: str = Field(description="What the worker must have, as `kind:name`, such as `tool:search`.")
    reason: str = Field(description="The same in words.")
    execution_id: str | None = Field(default=None, description="The sub-workflow whose step it is, where it is one.")


class PendingTimer(Answer):
    """A timer of a step that has not fired."""

    node_id: str
    step: str
    purpose: Literal["retry", "delay", "wait", "gate", "join", "event"] = Field(
        description="What happens at that time: the step is tried again, starts, or is over; or a gate, a join or the "
        "wait for an event reaches its deadline."
    )
    at: float = Field(description="Unix seconds.")
    execution_id: str | None = Field(default=None, description="The sub-workflow whose step it is, where it is one.")


class Artifact(Answer):
    """A file that an execution keeps."""

    path: str
    bytes: int


class ExecutionAnswer(Answer):
    """An execution, as its journal tells."""

    model_config = sample(
        executionId=EXECUTION_ID,
        workflowId="letter",
        status="waiting",
        seq=4,
        input={"goal": "tides"},
        output=None,
        currentNodes=["review"],
        state={"goal": "tides", "text": "Dear all, …"},
        path=["write"],
        steps=2,
        waiting=[GATE],
        awaiting=[],
        waitingFor=[],
        errors=[],
        usage=json_of(USAGE),
        sessionId=None,
        startedAt=1_763_700_000.0,
        durationMs=4012,
    )
    execution_id: str
    workflow_id: str
    status: Status
    seq: int = Field(description="The last row of its journal.")
    input: JsonValue
    output: JsonValue
    current_nodes: list[str] = Field(description="Those with a step that is not over.")
    state: JsonValue
    path: list[str] = Field(description="The nodes of finished steps, in the order of the journal.")
    steps: int
    waiting: list[Gate]
    awaiting: list[Awaited]
    waiting_for: list[Needed] = Field(default_factory=list[Needed], description="The steps that wait for a worker.")
    timers: list[PendingTimer] = Field(default_factory=list[PendingTimer], description="Until when steps wait.")
    errors: list[Trouble]
    usage: Usage
    session_id: str | None
    scripted: bool = Field(default=False, description=SCRIPTED)
    warnings: list[Warned] = Field(default_factory=list[Warned], description="What to know although nothing stopped.")
    started_at: float
    duration_ms: int
    artifacts: list[Artifact] = Field(default_factory=list[Artifact])
    limit: StoppingLimit | None = Field(default=None, description="What stopped it, where a limit did.")
    observability: Literal["minimal", "standard", "full"] = Field(default="standard", description="How much is told.")
    withheld: list[str] = Field(default_factory=list[str], description="Fields that `minimal` keeps back.")


class SignalledAnswer(ExecutionAnswer):
    """An execution that was sent an event."""

    became: Literal["taken", "kept", "known"] = Field(
        default="taken", description="Steps that waited took it; it is kept for who waits later; it had come before."
    )


example(ExecutionPage, {"executions": [SHOWN_ENTRY], "next": None})


example(
    EventPage,
    {
        "events": [{"seq": 3, "n": 0, "at": 1_763_700_003.0, "kind": "step_succeeded"}],
        "last": "3.0",
        "status": "waiting",
    },
)


class CallEstimate(Answer):
    """What a node would call, and what that would cost."""

    node_id: str
    kind: Literal["model", "tool"]
    name: str
    calls: int
    cost_usd: float | None


class CostEstimate(Answer):
    """Between these two; null: a price is not known."""

    low_usd: float | None
    high_usd: float | None
    unpriced: list[str]


class DryRunAnswer(Answer):
    """The way an execution would go."""

    model_config = sample(
        dryRun=True,
        workflowId="letter",
        status="completed",
        output={"letter": "…"},
        path=["write", "review", "send"],
        steps=3,
        waits=[],
        calls=[{"nodeId": "write", "kind": "model", "name": "scripted", "calls": 1, "costUsd": 0.0}],
        cost={"lowUsd": 0.0, "highUsd": 0.0, "unpriced": []},
        errors=[],
        warnings=[],
    )
    workflow_id: str
    status: Status
    output: JsonValue
    path: list[str]
    steps: int
    waits: list[JsonValue]
    calls: list[CallEstimate]
    cost: CostEstimate
    errors: list[Trouble]
    warnings: list[JsonValue]


class InboxEntry(Answer):
    """An open gate in an inbox."""

    execution_id: str
    workflow_id: str
    gate_id: str
    node_id: str
    node_name: JsonValue = Field(default=None, description=NODE_NAME)
    message: str
    messages: dict[str, str] | None = Field(default=None, description=MESSAGES)
    digest: str = Field(default="", description=DIGEST)
    scripted: bool = Field(default=False, description=SCRIPTED)
    opened_at: float
    deadline: float | None
    users: list[str]
    groups: list[str]
    cursor: str = Field(description="The `after` of a page that begins behind it.")


class InboxPage(Answer):
    """Open gates, oldest first."""

    model_config = sample(
        gates=[
            {
                "executionId": EXECUTION_ID,
                "workflowId": "letter",
                "gateId": "review",
                "nodeId": "review",
                "message": "Send it?",
                "digest": "0f2a9c3b7d1e4a5f6b8c9d0e1f2a3b4c",
                "openedAt": 1_763_700_004.0,
                "deadline": None,
                "users": [],
                "groups": ["desk"],
                "cursor": f'[1763700004.0,"{EXECUTION_ID}","review"]',
            }
        ]
    )
    gates: list[InboxEntry]
