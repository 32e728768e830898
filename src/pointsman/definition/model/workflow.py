"""A workflow: data, never code. One frozen object for one revision, from and to a native document."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from typing import Annotated, Final, Literal, cast

from pydantic import AfterValidator, Field, JsonValue, ValidationError

from pointsman.definition.model.agents import AgentConfig
from pointsman.definition.model.base import (
    AnyObject,
    Duration,
    Expression,
    Expressions,
    Many,
    Model,
    Name,
    NodeRef,
    Path,
    Text,
    read_as,
    written,
)
from pointsman.definition.model.control import StartConfig
from pointsman.definition.model.nodes import Edge, Node
from pointsman.definition.model.policies import Concurrency, Config, StateField
from pointsman.definition.problems import Problem, error, pointer_to
from pointsman.values import Json, JsonObject, NodeId, WorkflowId

FORMAT: Final = 1
"""The version of the native format that this code writes, and the newest it reads."""

_SEMVER: Final = re.compile(
    r"(0|[1-9]\d*)\.(0|[1-9]\d*)\.(0|[1-9]\d*)(-[0-9A-Za-z-]+(\.[0-9A-Za-z-]+)*)?(\+[0-9A-Za-z.-]+)?"
)
_SEMVER_SCHEMA: Final[dict[str, JsonValue]] = {"pattern": f"^{_SEMVER.pattern}$", "maxLength": 100}
_ID: Final = re.compile(r"(builtin:)?[A-Za-z0-9][A-Za-z0-9._-]{0,199}")


def _semver(value: str) -> str:
    if len(value) > 100 or not _SEMVER.fullmatch(value):
        raise ValueError(f"must be a semantic version such as '1.0.0', not {value[:100]!r}")
    return value


RESERVED_IDS: Final = ("executions", "check", "convert", "generate", "operations", "schema", "validate")
"""Words of addresses beside which workflows stand: as an id they would hide what is there."""


def _workflow_id(value: WorkflowId) -> WorkflowId:
    if not _ID.fullmatch(value):
        raise ValueError(
            "must begin with a letter or digit and have only letters, digits, '.', '_' and '-' (at most 200)"
        )
    if value in RESERVED_IDS:
        raise ValueError(f"must not be a reserved word of URLs: {', '.join(RESERVED_IDS)}")
    return value


_ID_SCHEMA: Final[dict[str, JsonValue]] = {"pattern": f"^{_ID.pattern}$", "not": {"enum": [*RESERVED_IDS]}}


class Trigger(Model):
    """An automatic start of executions."""

    id: Name
    type: Literal["schedule", "webhook", "event"]
    cron: str | None = None
    """When, for schedules: five fields."""
    timezone: str | None = None
    """Time zone of the schedule, as an IANA name. Default: UTC."""
    missed: Literal["skip", "once", "all"] | None = None
    """What to do about runs missed while no worker was running:

    nothing, one run for all of them (default), or one run each.
    """
    catch_up: Duration | None = None
    """How far back missed runs are caught up. Default: one day."""
    overlap: Literal["allow", "skip", "queue", "replace"] | None = None
    """What to do if the previous execution has not ended:

    run both, skip the new one (default), queue it, or replace the old one.
    """
    path: str | None = None
    """The end of a webhook's address."""
    secret: str | None = None
    """The key that signs a webhook's calls (HMAC-SHA256); better a handle, `secret.NAME`."""
    auth: Literal["none"] | None = None
    """`none`: a webhook without a secret accepts every call. By default it refuses every call."""
    scheme: Literal["standard", "github"] | None = None
    """How a webhook's calls are signed: as Standard Webhooks (default) or as GitHub signs. Others are refused."""
    event: str | None = None
    """The name of the event; for a webhook: the event to publish instead of starting the workflow."""
    match: Expression | None = None
    """Condition on the event; `event` is its data."""
    inputs: Expressions | None = None
    """Input of the executions it starts: name -> expression over `event` (data or body) and `headers`. Default: the
    fields of the data."""
    initial_data: AnyObject | None = None
    """Input of the executions that it starts, in addition to the data of the event or call."""
    enabled: bool | None = None


class ChatIntegration(Model):
    """How a chat offers the workflow."""

    enabled: bool | None = None
    primary_output: Path | None = None
    """The output shown as the answer."""
    output_format: Literal["markdown", "text", "json"] | None = None
    passthrough_result: bool | None = None
    """Whether the output is the answer as it is, not rephrased by a model."""
    tool_description: Text | None = None
    """Description of the workflow for models."""


class WorkflowDefinition(Model):
    """A definition. Absent means the default; nothing here is filled in."""

    pointsman: Annotated[int, Field(ge=FORMAT, le=FORMAT)] = FORMAT
    """The version of the format; optional on reading, always written."""
    id: Annotated[WorkflowId, AfterValidator(_workflow_id), Field(json_schema_extra=_ID_SCHEMA)]
    """Unique in its store."""
    name: Text | None = None
    description: Text | None = None
    version: Annotated[str, AfterValidator(_semver), Field(json_schema_extra=_SEMVER_SCHEMA)] | None = None
    """The author's own semantic version."""
    enabled: bool | None = None
    """`false`: hidden and not executable."""
    status: Literal["draft", "published"] | None = None
    """A draft is executable as a test only."""
    tags: Many[str] | None = None
    dialect: Literal["native", "rows", "graph", "steps", "plan"] | None = None
    """Where it was read from; names and templates are read as that dialect's authors expect."""
    allowed_groups: Many[str] | None = None
    """Groups of people who may see and execute it. Default: every signed-in user."""
    strict: bool | None = None
    """A missing path is an error instead of null."""
    entry: NodeRef | None = None
    """The first node. Default: the start node, or the node without incoming edges."""
    config: Config | None = None
    input: AnyObject | None = None
    """The input that a start requires, as a JSON Schema."""
    output: Expressions | Expression | None = None
    """The output: an object of names and values, or one expression. Defaults to the output of the end nodes."""
    state: dict[str, StateField] | None = None
    """Path pattern -> description of its values."""
    agents: dict[str, AgentConfig] | None = None
    """Agents used by reference."""
    nodes: Many[Node] = ()
    edges: Many[Edge] = ()
    on_error: NodeRef | None = None
    """The node to route to when the execution would fail."""
    triggers: Many[Trigger] | None = None
    concurrency: Concurrency | None = None
    chat_integration: ChatIntegration | None = None
    sources: Many[str] | None = None
    """Names of reference texts for agents."""
    canvas: AnyObject | None = None
    """Viewport of the editor; never read."""
    metadata: AnyObject | None = None
    """Free data, never read."""

    @classmethod
    def from_document(cls, document: Json) -> tuple[WorkflowDefinition | None, list[Problem]]:
        """Read a native document. Every problem is found at once; with any there is no workflow."""
        if not isinstance(document, dict):
            return None, [error("shape", "", f"a workflow must be an object, not {_json_kind(document)}")]
        newer = document.get("pointsman")
        if isinstance(newer, int) and not isinstance(newer, bool) and newer > FORMAT:
            hint = f"This version reads format {FORMAT}. Upgrade pointsman, or export the workflow from the newer one."
            return None, [error("format-newer", pointer_to("pointsman"), f"is in format {newer}", hint=hint)]
        try:
            workflow = read_as(cls, document)
        except ValidationError as why:
            from pointsman.definition.reading.error_messages import (
                findings_of,  # only documents with errors pay for its import
            )

            return None, findings_of(why, document=document, root=cls)
        assert isinstance(workflow, WorkflowDefinition)
        return workflow, []

    def to_document(self) -> JsonObject:
        """The native document: only set fields, keys in a fixed order. Reading it gives an equal workflow."""
        document = written(self)
        assert isinstance(document, dict)
        return {"pointsman": FORMAT, **_listed(cast(dict[str, object], document))}

    @property
    def nodes_by_id(self) -> Mapping[NodeId, Node]:
        """Made anew on each call; duplicates are the checker's business, the first one counts."""
        return {node.id: node for node in reversed(self.nodes)}

    @property
    def input_schema(self) -> JsonObject | None:
        """The JSON Schema of the input: the workflow's own, else the start node's."""
        if self.input is not None:
            return self.input
        starts = (node.config.inputs for node in self.nodes if isinstance(node.config, StartConfig))
        return next((inputs for inputs in starts if inputs is not None), None)

    @property
    def input_defaults(self) -> JsonObject:
        """Values of missing fields of the input: `defaults` of the start node, else `default` in the schema of a field.

        `default: null` is not a default, and a null in `defaults` is one only for a field that may be null.
        """
        properties = (self.input_schema or {}).get("properties")
        described = properties if isinstance(properties, dict) else {}
        result: JsonObject = {
            name: field["default"]
            for name, field in described.items()
            if isinstance(field, dict) and field.get("default") is not None
        }
        for node in self.nodes:
            if isinstance(node.config, StartConfig) and node.config.defaults is not None:
                defaults = node.config.defaults.items()
                return {
                    **result,
                    **{key: one for key, one in defaults if one is not None or _may_be_null(described.get(key))},
                }
        return result


def _may_be_null(field: Json) -> bool:
    """Return whether the schema of a field does not name types, or names null among them."""
    types = field.get("type", "null") if isinstance(field, dict) else "null"
    return "null" in types if isinstance(types, list) else types == "null"


def _listed(document: dict[str, object]) -> JsonObject:
    """Tuples, which the frozen models have, become JSON lists."""
    return cast(JsonObject, _json(document))


def _json(value: object) -> object:
    match value:
        case dict():
            return {key: _json(inner) for key, inner in cast(dict[str, object], value).items()}
        case list() | tuple():
            return [_json(inner) for inner in cast(Sequence[object], value)]
        case _:
            return value


def _json_kind(value: Json) -> str:
    match value:
        case None:
            return "null"
        case bool():
            return "true or false"
        case str():
            return "a text"
        case list():
            return "a list"
        case _:
            return "a number"
