"""What operations take and give, for the OpenAPI document: bodies are held to these shapes, answers are described."""

from __future__ import annotations

from typing import Any, Final, Literal

from pydantic import BaseModel, ConfigDict, Field
from pydantic.alias_generators import to_camel

JsonValue = Any  # Whatever JSON there is: the type is recursive, which models cannot follow.

EXECUTION_ID: Final = "exec-06f0c2k8s3v7q9y1m4t5w6x8z0"


class Body(BaseModel):
    """What is sent. Unknown fields are refused: they are mostly misspelt ones."""

    model_config = ConfigDict(extra="forbid", alias_generator=to_camel)


class Answer(BaseModel):
    """What is answered. There may be more fields than described."""

    model_config = ConfigDict(extra="allow", alias_generator=to_camel)


class ExecuteBody(Body):
    """A start."""

    model_config = ConfigDict(json_schema_extra={"examples": [{"input": {"goal": "harbour strike"}, "wait": True}]})
    input: JsonValue = Field(default=None, description="What the workflow's `input` schema takes.")
    session_id: str | None = Field(default=None, max_length=200, description="The conversation it is a turn of.")
    config: dict[str, JsonValue] = Field(default_factory=dict, description="Values of `config` for this execution.")
    durability: Literal["step", "async", "exit"] | None = None
    wait: bool = Field(default=False, description="Answer when nothing more happens by itself, with the execution.")


class RespondBody(Body):
    """An answer to a gate."""

    model_config = ConfigDict(
        json_schema_extra={"examples": [{"gateId": "review", "action": "approve", "comment": "Fine."}]}
    )
    gate_id: str = Field(min_length=1, description="The gate, or its node while that has one open gate.")
    action: str = Field(min_length=1)
    data: JsonValue = None
    comment: str = Field(default="", max_length=10_000)
    key: str = Field(default="", max_length=200, description="The same answer with the same key counts once.")


class ReasonBody(Body):
    """Why."""

    reason: str = Field(default="", max_length=1000)


class CancelBody(ReasonBody):
    """A stop."""

    now: bool = Field(default=False, description="Undo nothing.")


class LimitsBody(Body):
    """Going on, maybe with higher limits."""

    model_config = ConfigDict(json_schema_extra={"examples": [{"limits": {"maxSteps": 500}}]})
    limits: dict[str, float] = Field(default_factory=dict)


class ForkBody(Body):
    """A copy."""

    model_config = ConfigDict(json_schema_extra={"examples": [{"at": 12, "set": {"draft": "shorter"}}]})
    at: int | None = Field(default=None, ge=1, description="The row up to which it is a copy.")
    step: str | None = Field(default=None, description="Or: the step before which it begins.")
    set: dict[str, JsonValue] = Field(default_factory=dict, description="Values put into its data.")


class SteerBody(Body):
    """A hand taken between steps."""

    messages: list[JsonValue] = Field(default_factory=list)
    set: dict[str, JsonValue] = Field(default_factory=dict)
    goto: str | None = None
    reason: str = Field(default="", max_length=1000)


class SignalBody(Body):
    """An event."""

    model_config = ConfigDict(json_schema_extra={"examples": [{"name": "paid", "data": {"amount": 12}}]})
    name: str = Field(min_length=1, max_length=200)
    data: JsonValue = None
    key: str = Field(default="", max_length=200, description="Under one key it comes once.")


class MessageBody(Body):
    """What a user says next."""

    message: str = Field(min_length=1)
    wait: bool = False


class CheckBody(Body):
    """A document to look at."""

    document: JsonValue = Field(description="The workflow: an object, or its text in JSON or YAML.")
    dialect: Literal["native", "rows", "graph", "steps", "plan"] | None = None


class ProblemDocument(Answer):
    """An error (RFC 9457)."""

    type: str
    title: str
    status: int
    detail: str
    code: str
    hint: str = ""


class Started(Answer):
    """An execution that began."""

    execution_id: str = Field(examples=[EXECUTION_ID])
    status: str = Field(examples=["running"])


class Usage(Answer):
    """What was consumed."""

    input_tokens: int
    output_tokens: int
    cost_usd: float | None
    model_calls: int


class ExecutionAnswer(Answer):
    """An execution, as its journal tells."""

    execution_id: str = Field(examples=[EXECUTION_ID])
    workflow_id: str
    status: str
    output: JsonValue
    state: JsonValue
    path: list[str]
    steps: int
    waiting: list[JsonValue]
    errors: list[JsonValue]
    usage: Usage
    duration_ms: int


class ExecutionEntry(Answer):
    """An execution in a list."""

    execution_id: str
    workflow_id: str
    status: str
    started_at: float
    updated_at: float


class ExecutionPage(Answer):
    """Executions, newest first."""

    executions: list[ExecutionEntry]
    next: str | None = Field(description="The `before` of the next page; null: this was the last.")


class EventPage(Answer):
    """Events, oldest first."""

    events: list[dict[str, JsonValue]]
    last: str | None = Field(description="The `after` to go on with.")
    status: str


class WorkflowEntryAnswer(Answer):
    """A saved workflow in a list."""

    id: str
    revision: int
    name: str
    version: str | None
    dialect: str
    created_at: float


class WorkflowPage(Answer):
    """Saved workflows by id."""

    workflows: list[WorkflowEntryAnswer]


class SavedAnswer(Answer):
    """A revision that was saved."""

    id: str
    revision: int
    digest: str


class WorkflowAnswer(WorkflowEntryAnswer):
    """A saved workflow with its document."""

    document: JsonValue
    problems: list[JsonValue]


class CheckAnswer(Answer):
    """What is wrong with a document."""

    ok: bool
    dialect: str | None
    problems: list[JsonValue]


class InboxPage(Answer):
    """Open gates, oldest first."""

    gates: list[dict[str, JsonValue]]


class Health(Answer):
    """Whether it serves."""

    status: str
    version: str
