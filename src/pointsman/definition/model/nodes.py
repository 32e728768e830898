"""Nodes and edges: the fields that all nodes share, the configuration of each type, and the conditions of edges."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Annotated, Final, Literal, TypeAlias, cast

from pydantic import (
    BeforeValidator,
    Field,
    SerializerFunctionWrapHandler,
    ValidationInfo,
    field_serializer,
    field_validator,
)

from pointsman.definition.model.agents import AgentConfig
from pointsman.definition.model.base import (
    AnyJson,
    AnyObject,
    ChosenBy,
    Expression,
    Expressions,
    Many,
    Model,
    Name,
    NodeRef,
    Spelled,
    Text,
    read_as,
    written,
)
from pointsman.definition.model.control import (
    ControlConfig,
    DecisionConfig,
    EmitConfig,
    EndConfig,
    HumanConfig,
    JoinConfig,
    LoopConfig,
    NoteConfig,
    ParallelConfig,
    StartConfig,
    ToolExecutorConfig,
    WaitConfig,
)
from pointsman.definition.model.policies import Approval, Execution
from pointsman.definition.model.work import (
    CodeConfig,
    HttpConfig,
    MemoryConfig,
    PlannerConfig,
    ProgressConfig,
    StructuredRecordConfig,
    TemplateRenderConfig,
    ToolConfig,
    TransformConfig,
    UnboundConfig,
    VerifierConfig,
    WorkConfig,
    WorkflowCallConfig,
)
from pointsman.definition.problems import did_you_mean
from pointsman.values import NodeId


class Always(Model):
    """Taken whenever the step is left."""

    type: Literal["always"] = "always"


class Never(Model):
    """Switched off."""

    type: Literal["never"] = "never"


class When(Model):
    """Taken when the expression holds."""

    type: Literal["expression"] = "expression"
    expression: Expression


class Equals(Model):
    """Taken when the field equals the value; both as texts where the field is a branch label."""

    type: Literal["equals"] = "equals"
    field: Expression
    value: AnyJson


class Contains(Model):
    """Taken when the field (a list, text or object) contains the value."""

    type: Literal["contains"] = "contains"
    field: Expression
    value: AnyJson


class Exists(Model):
    """Taken when there is such a field and it holds."""

    type: Literal["exists"] = "exists"
    field: Expression


class AskModel(Model):
    """Taken when a model answers yes; its answer and reason are recorded."""

    type: Literal["llm"] = "llm"
    prompt: Annotated[Text, Spelled("template")]
    model: str | None = None


class OnLabel(Model):
    """Taken when the step emitted this label."""

    type: Literal["label"] = "label"
    label: Name


class OnError(Model):
    """Taken only when the step failed for good."""

    type: Literal["error"] = "error"
    codes: Many[str] | None = None
    """Only failures with one of these codes. Default: every failure."""


class Otherwise(Model):
    """Taken only when no other edge of the node was."""

    type: Literal["default"] = "default"


AnyCondition: TypeAlias = Always | Never | When | Equals | Contains | Exists | AskModel | OnLabel | OnError | Otherwise

CONDITIONS: Final[Mapping[str, type[Model]]] = {
    "always": Always,
    "never": Never,
    "expression": When,
    "equals": Equals,
    "contains": Contains,
    "exists": Exists,
    "llm": AskModel,
    "label": OnLabel,
    "error": OnError,
    "default": Otherwise,
}


def _condition_of(value: Mapping[str, object]) -> type[Model]:
    kind = value.get("type")
    if isinstance(kind, str) and kind in CONDITIONS:
        return CONDITIONS[kind]
    hint = did_you_mean(kind, CONDITIONS) if isinstance(kind, str) else ""
    raise ValueError(f"has the unknown condition type {kind!r}; known are {', '.join(CONDITIONS)}. {hint}".rstrip())


Condition: TypeAlias = Annotated[AnyCondition, ChosenBy(_condition_of, tuple(CONDITIONS.values()))]


class Edge(Model):
    """A way from one node to another."""

    id: Name | None = None
    """Default: `<source>-><target>`, with a number if that is taken."""
    source: NodeRef
    target: NodeRef
    """A node's id, or `END`, which ends the execution."""
    condition: Condition | None = None
    """Condition for following this edge. Default: always."""
    label: Text | None = None
    """Caption on the canvas. With `routing: label`, also the label that selects it if it has no condition."""
    source_handle: str | None = None
    target_handle: str | None = None
    mark: Literal["body", "exit", "break", "continue"] | None = None
    """Role of this edge in a loop (normally detected automatically)."""
    position: Annotated[dict[str, object] | None, Field(description="Editor data.")] = None
    metadata: Annotated[dict[str, object] | None, Field(description="Free data, never read.")] = None


NodeConfig: TypeAlias = ControlConfig | WorkConfig
"""A closed union: `match node.config` and `assert_never` find every place that must know a new type."""

CONFIG_OF: Final[Mapping[str, type[NodeConfig]]] = {
    "start": StartConfig,
    "end": EndConfig,
    "agent": AgentConfig,
    "tool": ToolConfig,
    "tool_executor": ToolExecutorConfig,
    "decision": DecisionConfig,
    "parallel": ParallelConfig,
    "join": JoinConfig,
    "loop": LoopConfig,
    "human": HumanConfig,
    "transform": TransformConfig,
    "memory": MemoryConfig,
    "workflow": WorkflowCallConfig,
    "code": CodeConfig,
    "wait": WaitConfig,
    "emit": EmitConfig,
    "note": NoteConfig,
    "http": HttpConfig,
    "progress": ProgressConfig,
    "template-render": TemplateRenderConfig,
    "planner": PlannerConfig,
    "verifier": VerifierConfig,
    "structured-record": StructuredRecordConfig,
}
"""Every type with a configuration of its own. Any other type is `UnboundConfig`: plug-ins may know it."""

TYPE_ALIASES: Final[Mapping[str, str]] = {
    "prompt": "agent",
    "conditional": "decision",
    "fanout": "parallel",
    "merge": "join",
    "checkpoint": "human",
}

Routing: TypeAlias = Literal["all", "first", "label"]


PLACEMENT: Final = re.compile(r"worker:([a-z0-9][a-z0-9._-]{0,62})")


def queue_of(placement: str | None) -> str:
    """Return the queue that a valid `placement` names; empty: none."""
    named = PLACEMENT.fullmatch(placement) if placement is not None else None
    return named[1] if named is not None else ""


def _canonical_type(value: object) -> object:
    return TYPE_ALIASES.get(value, value) if isinstance(value, str) else value


NodeType: TypeAlias = Annotated[
    Name,
    BeforeValidator(_canonical_type),
    Field(examples=[*CONFIG_OF], json_schema_extra={"x-aliases": dict(TYPE_ALIASES)}),
]


class Node(Model):
    """One step of the graph, its policies, and its place on the canvas."""

    id: Annotated[NodeId, Field(min_length=1, max_length=500)]
    type: NodeType
    name: Text | None = None
    """Display name. Defaults to the id."""
    description: Text | None = None
    position: AnyObject | None = None
    """Position on the canvas; never read."""
    inputs: Expressions | None = None
    """Name -> expression over the execution's data: the inputs of the node."""
    outputs: Expressions | None = None
    """State path -> expression over `result`: the outputs of the node."""
    execution: Execution | None = None
    """Timeout, retries, error handling."""
    routing: Routing | None = None
    """Which edges are followed:

    every one whose condition is true, the first one, or the one with the emitted label. The default depends on the
    type.
    """
    trigger: Literal["each"] | None = None
    """`each`: every arrival starts the node. Default: wait for all arrivals that are still possible."""
    compensate: NodeRef | None = None
    """The node that undoes this one when the execution fails or is cancelled."""
    placement: Annotated[str | None, Field(examples=["worker:gpu"])] = None
    """The queue whose workers perform it, such as `worker:gpu` (`pointsman worker --queue gpu`).

    Default: the process that drives the execution. Without a cluster it has no effect.
    """
    skip_when: Expression | None = None
    """Skip the node while this is true: no work, no writes; the value that reached it is passed on."""
    requires_approval: bool | None = None
    """A person must agree before it starts."""
    approval: Approval | None = None
    """Approvers of the start and of tool calls. Default: `config.approval`."""
    chat_visible: bool | None = None
    """Whether the chat shows that it runs."""
    progress: Annotated[Text | None, Spelled("template")] = None
    """Progress message when the node starts."""
    config: Annotated[NodeConfig | None, Field(validate_default=True)] = None
    """The configuration of the type."""
    metadata: AnyObject | None = None
    """Free data, never read."""

    @field_validator("config", mode="plain")
    @classmethod
    def _read_config(cls, value: object, info: ValidationInfo) -> NodeConfig | None:
        kind = cast(object, info.data.get("type"))
        if not isinstance(kind, str):
            return None  # the type itself is wrong and already reported; guessing would only report it twice
        model = CONFIG_OF.get(kind, UnboundConfig)
        if isinstance(value, model):
            return value
        if value is not None and not isinstance(value, dict):
            raise ValueError("must be an object")
        return cast(NodeConfig, read_as(model, cast(object, {} if value is None else value)))

    @field_serializer("config", mode="wrap")
    def _write_config(self, value: NodeConfig | None, _handler: SerializerFunctionWrapHandler) -> object:
        return written(value)

    @property
    def label(self) -> str:
        """How people know it: its name in the main language, else its id."""
        return str(self.name) if self.name is not None else self.id
