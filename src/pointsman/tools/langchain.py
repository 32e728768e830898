"""Tools of LangChain and graphs of LangGraph as tools. Their packages are not imported here: both are described by the
methods that are called.

                  tool_of_langchain                     BaseTool.arun(arguments)
    tool node ──▶ tool_of_graph      ──▶ ToolAdapter ──▶ CompiledStateGraph.ainvoke(arguments, thread)
    or agent                                             └─ its own checkpointer, under the idempotency key of the call

A graph with a checkpointer has one thread for each call of the tool. When a call is repeated, after a crash or by a
retry, the graph continues after its last checkpoint; a graph that had ended returns its output again.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping
from typing import Any, Final, Protocol, TypeGuard, cast

from pointsman.arguments import checks_call
from pointsman.engine.failures import Failure
from pointsman.ports import ToolSpec
from pointsman.tools.adapter import ToolAdapter
from pointsman.tools.tool import OUTPUT_BYTES_MAX, ToolContext, ToolFailed, ToolInvalid, ToolLimits
from pointsman.values import Bytes, Json, JsonObject

INTERRUPT: Final = "__interrupt__"
"""Key of the output of a graph that stopped at `interrupt()`."""
THREAD: Final = "thread_id"
MESSAGES: Final[JsonObject] = {
    "type": "array",
    "items": {
        "type": "object",
        "properties": {"role": {"type": "string"}, "content": {}},
        "required": ["content"],
    },
}
"""Schema of a list of messages: LangChain's own has 20 KB, and refuses the short form that graphs accept."""


class LangChainTool(Protocol):
    """A `BaseTool` of LangChain: made by its `@tool`, a `StructuredTool`, or an object of a class of its own."""

    name: str
    description: str

    @property
    def tool_call_schema(self) -> Any:
        """A pydantic model, or a JSON Schema. Arguments that LangChain injects are left out."""
        ...

    def get_input_schema(self) -> Any:
        """Return the pydantic model of all arguments."""
        ...

    async def arun(self, tool_input: dict[str, Any], /) -> Any:
        """Run the tool; one that is not asynchronous runs in a thread."""
        ...


class CompiledGraph(Protocol):
    """A graph of LangGraph: `StateGraph(…).compile()`, or a function with `@entrypoint`."""

    checkpointer: Any

    def get_input_jsonschema(self) -> dict[str, Any]: ...

    async def ainvoke(self, input: Any, config: Any, /) -> Any: ...

    async def aget_state(self, config: Any, /) -> Any: ...


def is_langchain_tool(value: object) -> TypeGuard[LangChainTool]:
    """Return whether a value is a tool of LangChain. Looks only at its class: properties may be slow, or raise."""
    return all(hasattr(type(value), name) for name in ("arun", "tool_call_schema", "get_input_schema"))


@checks_call
def tool_of_langchain(
    tool: LangChainTool,
    *,
    timeout_s: float | None = None,
    output_bytes_max: int = OUTPUT_BYTES_MAX,
    idempotent: bool = False,
    requires_approval: bool = False,
) -> ToolAdapter:
    """Make a tool of a tool of LangChain, with its name, description and schema. The options are those of `@tool`;
    without options, pass the tool itself: `Pointsman(tools=[search])`.

    Raises `ToolInvalid` if its schema cannot be written, or if it requires arguments that only LangChain injects.
    """
    schema = _described(lambda: _tool_schema(tool), what=f"the tool {tool.name!r} of LangChain")

    async def perform(arguments: JsonObject, context: ToolContext) -> object:
        return await tool.arun(dict(arguments))

    limits = ToolLimits(timeout_s=timeout_s, output_bytes_max=Bytes(output_bytes_max))
    spec = ToolSpec(
        name=tool.name,
        description=tool.description,
        parameters=schema,
        idempotent=idempotent,
        requires_approval=requires_approval,
    )
    return ToolAdapter(spec, perform, limits=limits)


@checks_call
def tool_of_graph(
    graph: CompiledGraph,
    *,
    name: str,
    description: str = "",
    input: Mapping[str, object] | None = None,
    config: Mapping[str, object] | None = None,
    timeout_s: float | None = None,
    output_bytes_max: int = OUTPUT_BYTES_MAX,
    idempotent: bool = False,
    requires_approval: bool = False,
) -> ToolAdapter:
    """Make a tool of a graph of LangGraph. Its arguments are the input of the graph, its result the output.

    `input`: JSON Schema of the arguments; by default, that of the input of the graph. `config`: of every call. If it
    has a `thread_id`, all calls use that thread, and each adds its input to it. The other options are those of `@tool`.

    Raises `ToolInvalid` if the input of the graph cannot be described.
    """
    if input is None:
        schema = _described(lambda: _graph_schema(graph), what=f"the input of the graph {name!r}")
    else:
        schema = cast("JsonObject", dict(input))
    is_object = schema.get("type", "object") == "object"
    parameters: JsonObject = (
        schema if is_object else {"type": "object", "properties": {"input": schema}, "required": ["input"]}
    )
    spec = ToolSpec(
        name=name,
        description=description,
        parameters=parameters,
        idempotent=idempotent,
        requires_approval=requires_approval,
    )
    calls = _GraphCalls(graph, name, dict(config or {}), takes_object=is_object)
    limits = ToolLimits(timeout_s=timeout_s, output_bytes_max=Bytes(output_bytes_max))
    return ToolAdapter(spec, calls.perform, limits=limits)


class _GraphCalls:
    """Performs the calls of a graph."""

    def __init__(self, graph: CompiledGraph, name: str, config: dict[str, object], *, takes_object: bool) -> None:
        self._graph = graph
        self._name = name
        self._config = config
        self._takes_object = takes_object

    async def perform(self, arguments: JsonObject, context: ToolContext) -> object:
        given: object = dict(arguments) if self._takes_object else arguments["input"]
        result = await self._output(given, context)
        if isinstance(result, Mapping):
            interrupts = cast("Mapping[str, object]", result).get(INTERRUPT)
            if interrupts is not None:
                raise self._interrupted(interrupts)
        return cast("object", result)

    def _output(self, given: object, context: ToolContext) -> Awaitable[object]:
        thread = cast("Mapping[str, object]", self._config.get("configurable") or {})
        if not self._is_checkpointed or THREAD in thread:
            return self._graph.ainvoke(given, self._config)
        own = {**self._config, "configurable": {**thread, THREAD: context.idempotency_key}}
        return self._continued(given, own)

    @property
    def _is_checkpointed(self) -> bool:
        return not isinstance(self._graph.checkpointer, bool | None)

    async def _continued(self, given: object, config: Mapping[str, object]) -> object:
        """Run the graph, or let it continue if an earlier attempt of this call has written a checkpoint."""
        state = await self._graph.aget_state(config)
        return await self._graph.ainvoke(given if state.created_at is None else None, config)

    def _interrupted(self, interrupts: object) -> ToolFailed:
        asked = ", ".join(repr(getattr(one, "value", one)) for one in cast("tuple[object, ...]", interrupts))
        message = f"the graph {self._name!r} stopped at `interrupt()`: {asked}"
        hint = "Ask people with a `human` node before or after the graph: a tool cannot wait for them."
        return ToolFailed(Failure(code="tool-failed", message=message, hint=hint))


def _described(schema: Callable[[], JsonObject], *, what: str) -> JsonObject:
    """Return a schema. Raises `ToolInvalid`; the library that writes it may raise anything."""
    try:
        return schema()
    except ToolInvalid:
        raise
    except Exception as why:
        reason = str(why).partition("\n")[0]
        raise ToolInvalid(
            f"{what} cannot be described as JSON Schema: {reason}",
            hint="Use JSON types, pydantic models, or `typing_extensions.TypedDict`; a graph also takes `input=`.",
        ) from why


def _tool_schema(tool: LangChainTool) -> JsonObject:
    found = tool.tool_call_schema
    if isinstance(found, dict):
        return _without_titles(cast("dict[str, Any]", found))
    fields = tool.get_input_schema().model_fields
    injected = [name for name, field in fields.items() if name not in found.model_fields and field.is_required()]
    if injected:
        names = ", ".join(map(repr, injected))
        raise ToolInvalid(
            f"the tool {tool.name!r} of LangChain requires {names}, which only an agent of LangChain fills in",
            hint="Give it a default, or write a function that calls the tool and fills it in.",
        )
    return _without_titles(found.model_json_schema())


def _graph_schema(graph: CompiledGraph) -> JsonObject:
    schema = _without_titles(graph.get_input_jsonschema())
    properties = cast("dict[str, JsonObject]", schema.get("properties", {}))
    for name, field in properties.items():
        if "/AIMessage" in repr(field):
            properties[name] = MESSAGES
    if "$defs" in schema and "'$ref'" not in repr(properties):
        del schema["$defs"]
    state = getattr(getattr(graph, "builder", None), "input_schema", None)
    if hasattr(state, "__total__"):  # A TypedDict: graphs take a part of it.
        schema.pop("required", None)
    return schema


def _without_titles(schema: dict[str, Any]) -> JsonObject:
    """Return a schema without its own title and description, which repeat those of the tool, and the titles of its
    properties, which repeat their names."""
    made = cast("JsonObject", {name: value for name, value in schema.items() if name not in ("title", "description")})
    properties = made.get("properties")
    if isinstance(properties, dict):
        made["properties"] = {name: _without_title(field) for name, field in properties.items()}
    return made


def _without_title(field: Json) -> Json:
    return {name: value for name, value in field.items() if name != "title"} if isinstance(field, dict) else field
