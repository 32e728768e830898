"""Types of the options of workflows and nodes that are built in code: the fields of the models of the language, as
Python types. A test compares them with the models.

Nested objects are models of `pointsman.definition.model`, or mappings with the keys of documents.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Literal, Protocol, Required, TypeAlias

from typing_extensions import TypedDict

from pointsman.definition.model.agents import AgentConfig, AgentMemory, Guardrails, Thinking
from pointsman.definition.model.control import Case, Choice, HumanOption
from pointsman.definition.model.policies import (
    Approval,
    Approvers,
    Concurrency,
    Config,
    Escalation,
    Execution,
    StateField,
)
from pointsman.definition.model.work import HttpAuth, TaskTemplate
from pointsman.definition.model.workflow import ChatIntegration, Trigger
from pointsman.tools.conversion import ToolLike


class NodeHandle(Protocol):
    """A node of a builder."""

    @property
    def id(self) -> str: ...


TextLike: TypeAlias = str | Mapping[str, str]
"""A text, or language -> text."""
NodeLike: TypeAlias = str | NodeHandle
"""The id of a node, or the node."""
SchemaLike: TypeAlias = Mapping[str, object] | type[object]
"""A JSON Schema, or a pydantic model, dataclass or TypedDict."""
ToolName: TypeAlias = str | ToolLike
"""The name of a tool, or the tool, as `Pointsman(tools=[…])` takes it."""


class NodeOptions(TypedDict, total=False):
    """Options of every node, see `Node`. `after`: the nodes that lead to it."""

    name: TextLike
    description: TextLike
    position: Mapping[str, object]
    inputs: Mapping[str, str]
    outputs: Mapping[str, str]
    execution: Execution | Mapping[str, object]
    routing: Literal["all", "first", "label"]
    trigger: Literal["each"]
    compensate: NodeLike
    placement: str
    skip_when: str
    requires_approval: bool
    approval: Approval | Mapping[str, object]
    chat_visible: bool
    progress: TextLike
    metadata: Mapping[str, object]
    after: NodeLike | Sequence[NodeLike]


class WorkflowOptions(TypedDict, total=False):
    """Options of a workflow, see `WorkflowDefinition`."""

    name: TextLike
    description: TextLike
    version: str
    enabled: bool
    status: Literal["draft", "published"]
    tags: Sequence[str]
    allowed_groups: Sequence[str]
    strict: bool
    entry: str
    config: Config | Mapping[str, object]
    input: SchemaLike
    output: Mapping[str, str] | str
    state: Mapping[str, StateField | Mapping[str, object]]
    agents: Mapping[str, AgentConfig | Mapping[str, object]]
    on_error: NodeLike
    triggers: Sequence[Trigger | Mapping[str, object]]
    concurrency: Concurrency | Mapping[str, object]
    chat_integration: ChatIntegration | Mapping[str, object]
    sources: Sequence[str]
    canvas: Mapping[str, object]
    metadata: Mapping[str, object]


class StartNodeOptions(NodeOptions, total=False):
    """Options of a node of the type `start`, see `StartConfig`."""

    defaults: Mapping[str, object]
    set: Mapping[str, str]


class EndNodeOptions(NodeOptions, total=False):
    """Options of a node of the type `end`, see `EndConfig`."""

    output: Mapping[str, str] | str
    status: str
    terminate: bool


class AgentNodeOptions(NodeOptions, total=False):
    """Options of a node of the type `agent`, see `AgentConfig`."""

    agent: str
    model: str
    fallback: Sequence[str]
    system: TextLike
    prompt: TextLike
    messages: str
    tools: Sequence[ToolName]
    max_iterations: int
    output_schema: SchemaLike
    result: Literal["text", "json", "auto"]
    temperature: float
    max_tokens: int
    thinking: Thinking | Mapping[str, object]
    key_index: int
    handoffs: Sequence[NodeLike]
    memory: AgentMemory | Mapping[str, object]
    guardrails: Guardrails | Mapping[str, object]
    purpose: str
    input_files: Sequence[str]


class ToolNodeOptions(NodeOptions, total=False):
    """Options of a node of the type `tool`, see `ToolConfig`."""

    tool: Required[ToolName]
    parameters: Mapping[str, object]


class DecisionNodeOptions(NodeOptions, total=False):
    """Options of a node of the type `decision`, see `DecisionConfig`."""

    expression: str
    cases: Sequence[Case | Mapping[str, object]]
    default: str
    llm_prompt: TextLike
    choices: Sequence[str | Choice | Mapping[str, object]]
    model: str


class ParallelNodeOptions(NodeOptions, total=False):
    """Options of a node of the type `parallel`, see `ParallelConfig`."""

    branches: Sequence[NodeLike]
    items: str
    as_: str
    max_parallel: int
    on_branch_error: Literal["fail", "continue", "ignore"]
    on_no_items: Literal["skip", "branches"]
    duplicate_keys: Literal["fail", "number"]


class JoinNodeOptions(NodeOptions, total=False):
    """Options of a node of the type `join`, see `JoinConfig`."""

    wait: str | int
    cancel_rest: bool
    aggregate: str
    separator: str
    template: TextLike
    order: Sequence[str]
    timeout: str | float
    on_timeout: Literal["fail", "continue"]
    expected_keys: Sequence[str] | str
    merge_key: str
    of: NodeLike


class LoopNodeOptions(NodeOptions, total=False):
    """Options of a node of the type `loop`, see `LoopConfig`."""

    while_: str
    until: str
    max_iterations: int
    over: str
    as_: str
    body: Sequence[NodeLike]
    body_end: Literal["end", "exit"]
    collect: str
    count_into: str
    on_round_error: Literal["fail", "skip"]
    failures_into: str


class HumanNodeOptions(NodeOptions, total=False):
    """Options of a node of the type `human`, see `HumanConfig`."""

    title: TextLike
    message: TextLike
    options: Sequence[HumanOption | Mapping[str, object]]
    actions: Sequence[Literal["approve", "edit", "reject", "skip"]]
    form: SchemaLike
    editable: Sequence[str]
    show: Sequence[str]
    approvers: Approvers | Mapping[str, object]
    timeout: str | float
    escalation: Sequence[Escalation | Mapping[str, object]]
    on_timeout: NodeLike
    auto_proceed: bool


class TransformNodeOptions(NodeOptions, total=False):
    """Options of a node of the type `transform`, see `TransformConfig`."""

    set: Mapping[str, str]
    operations: Sequence[Mapping[str, object]]
    jsonpath: str
    input: str


class MemoryNodeOptions(NodeOptions, total=False):
    """Options of a node of the type `memory`, see `MemoryConfig`."""

    scope: Required[Literal["execution", "session", "user", "workflow", "shared", "long_term"]]
    operation: Required[Literal["get", "set", "append", "delete", "search"]]
    key: str
    value: str
    namespace: str
    ttl: str | float
    query: str
    limit: int
    section: str


class WorkflowCallNodeOptions(NodeOptions, total=False):
    """Options of a node of the type `workflow`, see `WorkflowCallConfig`."""

    workflow: Required[str]
    input: Mapping[str, str]
    mode: Literal["call", "start"]


class CodeNodeOptions(NodeOptions, total=False):
    """Options of a node of the type `code`, see `CodeConfig`."""

    language: Literal["python"]
    source: Required[str]


class WaitNodeOptions(NodeOptions, total=False):
    """Options of a node of the type `wait`, see `WaitConfig`."""

    duration: str | float
    until: str
    event: TextLike
    match: str
    timeout: str | float
    on_timeout: Literal["fail", "continue"]


class EmitNodeOptions(NodeOptions, total=False):
    """Options of a node of the type `emit`, see `EmitConfig`."""

    event: Required[str]
    data: object


class NoteNodeOptions(NodeOptions, total=False):
    """Options of a node of the type `note`, see `NoteConfig`."""

    text: TextLike
    color: Literal["yellow", "green", "blue", "purple", "red", "gray"]
    frame: bool
    width: int
    height: int


class HttpNodeOptions(NodeOptions, total=False):
    """Options of a node of the type `http`, see `HttpConfig`."""

    url: Required[str]
    method: Literal["GET", "POST", "PUT", "PATCH", "DELETE", "HEAD"]
    headers: Mapping[str, str]
    query: Mapping[str, object]
    body: object
    auth: HttpAuth | Mapping[str, object]
    response_type: Literal["json", "text", "blob"]
    fail_on_error: bool


class ProgressNodeOptions(NodeOptions, total=False):
    """Options of a node of the type `progress`, see `ProgressConfig`."""

    message: Required[TextLike]


class TemplateRenderNodeOptions(NodeOptions, total=False):
    """Options of a node of the type `template-render`, see `TemplateRenderConfig`."""

    template: Required[TextLike]
    bind: Mapping[str, str]
    artifact_name: str
    format: Literal["markdown", "text", "html"]


class PlannerNodeOptions(NodeOptions, total=False):
    """Options of a node of the type `planner`, see `PlannerConfig`."""

    goal: Required[TextLike]
    system: TextLike
    model: str
    agents: Sequence[str]
    max_tasks: int
    max_tokens: int
    temperature: float
    thinking: Thinking | Mapping[str, object]
    synthesize: bool
    task_template: TaskTemplate | Mapping[str, object]


class VerifierNodeOptions(NodeOptions, total=False):
    """Options of a node of the type `verifier`, see `VerifierConfig`."""

    criteria: Required[TextLike]
    input: str
    mode: Literal["standard", "adversarial"]
    system: TextLike
    model: str
    tools: Sequence[ToolName]
    max_tool_rounds: int
    threshold: float
    max_retries: int
    stall_limit: int
    max_tokens: int
    temperature: float
    thinking: Thinking | Mapping[str, object]


class StructuredRecordNodeOptions(NodeOptions, total=False):
    """Options of a node of the type `structured-record`, see `StructuredRecordConfig`."""

    schema_: Required[SchemaLike]
    input: Required[str]
    source: str
    source_system: str
    index: str
    records: Required[str]
