"""Configuration of the nodes that do work: each type has one executor.

The operations of a transform apply in order: each sees what the earlier ones wrote. Paths point into the state.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Annotated, Final, Literal, TypeAlias

from pydantic import Field

from pointsman.definition.model.agents import AgentConfig, Thinking
from pointsman.definition.model.base import (
    AnyJson,
    AnyObject,
    ChosenBy,
    Count,
    Duration,
    Expression,
    Expressions,
    Many,
    Model,
    Name,
    Path,
    Spelled,
    Template,
    Text,
)


class SetValue(Model):
    """Write a literal; a text is a template."""

    set: Path
    value: AnyJson = None


class CopyValue(Model):
    """Copy one path to another."""

    copy_: Annotated[Path, Field(alias="copy")]
    to: Path


class LengthOf(Model):
    """Count a list, text or object; what is missing counts 0 and any other value 1."""

    length_of: Path
    to: Path


class ArrayGet(Model):
    """Take one item; out of range is null."""

    array_get: Path
    index: int | Path
    """A number, or the path of one."""
    to: Path


class Push(Model):
    """Append one value to a list, creating it."""

    push: Path
    to: Path


class Append(Model):
    """Append every item of one list to another, creating it."""

    append: Path
    to: Path


class Merge(Model):
    """Merge one object into another; its keys win."""

    merge: Path
    into: Path


class Increment(Model):
    """Add to a number, from 0."""

    increment: Path
    by: float | None = None
    """Default: 1."""


class Choose(Model):
    """Write one of two literals; a text is a template."""

    condition: Expression
    then: AnyJson = None
    else_: Annotated[AnyJson, Field(alias="else")] = None
    to: Path


class Evaluate(Model):
    """Write the value of an expression."""

    evaluate: Expression
    to: Path


class MemorySection(Model):
    """One `## section` of an agent's long-term memory."""

    profile_id: str | None = None
    profile_id_path: Path | None = None
    section: str


class ReadMemorySection(Model):
    """Read a section of long-term memory; what is missing is an empty text."""

    read_agent_memory_section: MemorySection
    to: Path


AnyOperation: TypeAlias = (
    SetValue
    | CopyValue
    | LengthOf
    | ArrayGet
    | Push
    | Append
    | Merge
    | Increment
    | Choose
    | Evaluate
    | ReadMemorySection
)

OPERATIONS: Final[Mapping[str, type[Model]]] = {
    "set": SetValue,
    "copy": CopyValue,
    "lengthOf": LengthOf,
    "arrayGet": ArrayGet,
    "push": Push,
    "append": Append,
    "merge": Merge,
    "increment": Increment,
    "condition": Choose,
    "evaluate": Evaluate,
    "readAgentMemorySection": ReadMemorySection,
}


def _operation_of(value: Mapping[str, object]) -> type[Model]:
    operations = [key for key in OPERATIONS if key in value]
    if len(operations) == 1:
        return OPERATIONS[operations[0]]
    raise ValueError(f"must have exactly one of {', '.join(OPERATIONS)}; it has {', '.join(operations) or 'none'}")


Operation: TypeAlias = Annotated[AnyOperation, ChosenBy(_operation_of, tuple(OPERATIONS.values()))]


TemplateText: TypeAlias = Annotated[Text, Spelled("template")]
ToolName: TypeAlias = Annotated[Name, Spelled("tool")]
ModelName: TypeAlias = Annotated[Name, Spelled("model")]


class ToolConfig(Model):
    """One tool call, no model."""

    tool: ToolName
    parameters: AnyObject | None = None
    """JSON; variables in its texts are replaced. A text that is exactly one path keeps the type of the value."""


class TransformConfig(Model):
    """Data only. `operations` first, then `set`, then `jsonpath`."""

    set: Expressions | None = None
    """State path -> expression."""
    operations: Many[Operation] | None = None
    jsonpath: Annotated[Name | None, Spelled("jsonpath")] = None
    """Its matches are the result, as a list."""
    input: Expression | None = None
    """The value that `jsonpath` searches. Default: the state."""


MemoryScope: TypeAlias = Literal["execution", "session", "user", "workflow", "shared", "long_term"]


class MemoryConfig(Model):
    """Reads and writes a memory tier."""

    scope: MemoryScope
    """Scope of the memory:

    this execution, this conversation, the person who started it, this workflow, or a shared memory with a name.
    `long_term`: the workflow; with a `namespace`, the shared memory of that name.
    """
    operation: Literal["get", "set", "append", "delete", "search"]
    key: Template | None = None
    value: Expression | None = None
    """The value to write. Default: the value that reached the node."""
    namespace: Template | None = None
    """Keeps the keys of one subject apart from others'. In the scope `shared` it is the name of the memory."""
    ttl: Duration | None = None
    """Time until written values expire. Default: never."""
    query: Template | None = None
    """The query of `search`."""
    limit: Count | None = None
    """Maximum number of results of `search`."""
    section: str | None = None
    """Only this `## section` of a text."""


class WorkflowCallConfig(Model):
    """A sub-workflow: a child execution with its own journal."""

    workflow: Annotated[Name, Spelled("workflow")]
    """`id`, `id@revision` or `id@semver`."""
    input: Expressions | None = None
    """Name -> expression. Default: the inputs of the node."""
    mode: Literal["call", "start"] | None = None
    """Wait for its output, or only start it and continue with its id."""


class CodeConfig(Model):
    """Sandboxed code, never in the server's own interpreter."""

    language: Literal["python"] | None = None
    source: str
    """Its last expression, or the variable `result`, is the result."""
    inputs: Expressions | None = None
    """Variable -> expression. Default: the inputs of the node."""


class HttpAuth(Model):
    """Credentials, as secret handles."""

    type: Literal["bearer", "basic", "apikey"]
    token: Template | None = None
    username: Template | None = None
    password: Template | None = None
    key: Template | None = None
    header_name: str | None = None
    """The header of an API key (X-API-Key)."""


class HttpConfig(Model):
    """One HTTP request; the result is {status, headers, data, ok}."""

    url: Template
    method: Literal["GET", "POST", "PUT", "PATCH", "DELETE", "HEAD"] | None = None
    headers: dict[str, Template] | None = None
    query: AnyObject | None = None
    body: AnyJson = None
    """JSON body (variables are replaced) or plain text."""
    auth: HttpAuth | None = None
    response_type: Literal["json", "text", "blob"] | None = None
    fail_on_error: bool | None = None
    """Whether a status outside 2xx fails the step (true)."""


class ProgressConfig(Model):
    """Tells watchers how far it is."""

    message: TemplateText


class TemplateRenderConfig(Model):
    """Renders a template into a text, as an artifact if it is named."""

    template: TemplateText
    bind: dict[str, Expression] | None = None
    """Name inside the template -> expression."""
    artifact_name: Template | None = None
    format: Literal["markdown", "text", "html"] | None = None


class TaskTemplate(Model):
    """The template of each planned task. `system` and `prompt` see `task`, `goal` and `results` beside the data."""

    model: ModelName | None = None
    system: TemplateText | None = None
    prompt: TemplateText | None = None
    tools: Many[ToolName] | None = None
    max_iterations: Count | None = None
    max_tokens: Count | None = None


class PlannerConfig(Model):
    """Breaks a goal into tasks; with `taskTemplate` or `synthesize` has each done, and may write the whole up.

    The result is {tasks: [{id, title, description, assigned_agent?, result?}], text?}.
    """

    goal: TemplateText
    system: TemplateText | None = None
    model: ModelName | None = None
    agents: Many[Annotated[Name, Spelled("agent")]] | None = None
    """Agents that tasks are assigned to: `assigned_agent` of each task is one of them."""
    max_tasks: Count | None = None
    """Maximum number of tasks of a plan (10)."""
    max_tokens: Count | None = None
    temperature: Annotated[float, Field(ge=0, le=2)] | None = None
    thinking: Thinking | None = None
    synthesize: bool | None = None
    """Whether a last call composes one text of the tasks' results."""
    task_template: TaskTemplate | None = None


class VerifierConfig(Model):
    """A model judges a value; emits `pass`, `retry` or `fail`.

    Its result is {verdict, score, issues, reason, retries, stalls}; the value that reached it is passed on.
    """

    criteria: TemplateText
    input: Expression | None = None
    """The value to judge. Default: the value that reached the node."""
    mode: Literal["standard", "adversarial"] | None = None
    system: TemplateText | None = None
    model: ModelName | None = None
    tools: Many[ToolName] | None = None
    max_tool_rounds: Count | None = None
    threshold: Annotated[float, Field(ge=0, le=100)] | None = None
    """The lowest score that passes."""
    max_retries: Annotated[int, Field(ge=0)] | None = None
    """Number of consecutive `retry` answers before it answers `fail` (3)."""
    stall_limit: Count | None = None
    """Number of equal judgements in a row after which it answers `fail`."""
    max_tokens: Count | None = None
    temperature: Annotated[float, Field(ge=0, le=2)] | None = None
    thinking: Thinking | None = None


class StructuredRecordConfig(Model):
    """Checks an extraction against a schema and appends a record {data, source, quotes, status} to a list."""

    schema_: Annotated[AnyObject, Field(alias="schema")]
    input: Expression
    """The extraction."""
    source: Expression | None = None
    """The source of the extraction."""
    source_system: str | None = None
    index: Expression | None = None
    """The number of the round."""
    records: Path
    """The list it appends to."""


class UnboundConfig(Model):
    """A type that is not registered here: shown, stored unchanged, and not executable until a plug-in does."""

    __pydantic_extra__: dict[str, object] = Field(init=False)


WorkConfig: TypeAlias = (
    AgentConfig
    | ToolConfig
    | TransformConfig
    | MemoryConfig
    | WorkflowCallConfig
    | CodeConfig
    | HttpConfig
    | ProgressConfig
    | TemplateRenderConfig
    | PlannerConfig
    | VerifierConfig
    | StructuredRecordConfig
    | UnboundConfig
)
