"""Nodes: what all of them share, and which configuration each type has."""

from __future__ import annotations

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
    AnyObject,
    Expression,
    Expressions,
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
from pointsman.values import NodeId

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
    """The display name. Left out: the id."""
    description: Text | None = None
    position: AnyObject | None = None
    """Where the canvas shows it; never read."""
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
    placement: str | None = None
    """Where it must run, such as `worker:gpu`."""
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
        wanted = CONFIG_OF.get(kind, UnboundConfig)
        if isinstance(value, wanted):
            return value
        if value is not None and not isinstance(value, dict):
            raise ValueError("must be an object")
        return cast(NodeConfig, read_as(wanted, cast(object, {} if value is None else value)))

    @field_serializer("config", mode="wrap")
    def _write_config(self, value: NodeConfig | None, _handler: SerializerFunctionWrapHandler) -> object:
        return written(value)

    @property
    def label(self) -> str:
        """How people know it: its name in the main language, else its id."""
        return str(self.name) if self.name is not None else self.id
