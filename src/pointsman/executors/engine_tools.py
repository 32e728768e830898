"""The engine's own tools: `router`, `end` and `final_result`. Offered to models, never run, never left pending.

There are three ways to set `next`: a field of the structured output, a call of `router`, a field of plain JSON. `end`
means `next = END`. Nothing else counts, in particular no word of a text.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Final, NamedTuple

from pointsman.engine.actions import WorkSpec
from pointsman.engine.reports import ToolCall
from pointsman.models.repair import read_whole
from pointsman.ports import ToolSpec
from pointsman.values import END, Json, JsonObject

ROUTER: Final = "router"
END_TOOL: Final = "end"
FINAL: Final = "final_result"

_TO_ROUTE: Final = (
    "When your part is done, choose who goes on: call the tool `router` with `next` set to one of {labels}. "
    "Text alone does not choose. Do not give the same task to the same one again without new information."
)
_TO_ROUTE_BY_FIELD: Final = "Set `next` in your answer to who goes on: one of {labels}."
_TO_END: Final = "This is a conversation. When it is over and nothing is left to do, answer and call the tool `end`."
_TO_FINISH: Final = "Give your final answer by calling the tool `final_result`."


class Injected(NamedTuple):
    """Tools and texts that the engine adds to a request."""

    tools: tuple[ToolSpec, ...]
    text: str
    """For the system prompt."""
    schema: JsonObject | None
    """The output schema, if it is part of the request itself and not of `final_result`."""


class Intercepted(NamedTuple):
    """The calls of one reply, with the engine's own taken out."""

    others: tuple[ToolCall, ...]
    next: str | None
    """The label chosen by `router` or `end`; the last one counts."""
    final: ToolCall | None
    misrouted: bool
    """`router` was called without `next`."""


def injected(spec: WorkSpec, schema: JsonObject | None, *, has_tools: bool) -> Injected:
    """Return the tools and texts that an agent is offered beside its own tools."""
    tools: list[ToolSpec] = []
    texts: list[str] = []
    labels = ", ".join(f"`{label}`" for label in spec.routes) + (" (`END`: all is done)" if END in spec.routes else "")
    if spec.routes and _has_next(schema):
        texts.append(_TO_ROUTE_BY_FIELD.format(labels=labels))
    elif spec.routes:
        tools.append(_router(spec.routes))
        texts.append(_TO_ROUTE.format(labels=labels))
    if spec.conversational:
        tools.append(ToolSpec(name=END_TOOL, description="End the conversation.", parameters=_object({})))
        texts.append(_TO_END)
    # Several providers use only one of tools and schema in a request: with tools, the schema becomes a tool.
    by_tool = schema is not None and (has_tools or bool(tools))
    if schema is not None and by_tool:
        tools.append(ToolSpec(name=FINAL, description="Give the final answer.", parameters=_as_parameters(schema)))
        texts.append(_TO_FINISH)
    return Injected(tuple(tools), "\n".join(texts), None if by_tool else schema)


def intercepted(calls: Iterable[ToolCall]) -> Intercepted:
    """Take the engine's own calls out of a reply."""
    others: list[ToolCall] = []
    label: str | None = None
    final: ToolCall | None = None
    misrouted = False
    for call in calls:
        match call.name:
            case "end":
                label = END
            case "router":
                said = call.arguments.get("next")
                if isinstance(said, str) and said:
                    label = said
                else:
                    misrouted = True
            case "final_result":
                final = call
            case _:
                others.append(call)
    return Intercepted(tuple(others), label, final, misrouted and label is None)


def final_value(call: ToolCall, schema: JsonObject) -> Json:
    """Return the answer in a call of `final_result`."""
    return call.arguments if _is_object(schema) else call.arguments.get("value")


def next_of(value: Json) -> str | None:
    """Return the label in a structured answer."""
    said = value.get("next") if isinstance(value, dict) else None
    return said if isinstance(said, str) and said else None


def next_in_text(text: str) -> str | None:
    """Return the label in an answer that as a whole is a JSON object."""
    whole = read_whole(text)
    return None if whole is None else next_of(whole.value)


def _router(labels: tuple[str, ...]) -> ToolSpec:
    legal: list[Json] = [*labels]
    parameters = _object({"next": {"type": "string", "enum": legal}})
    return ToolSpec(name=ROUTER, description="Choose who goes on.", parameters=parameters)


def _object(properties: JsonObject) -> JsonObject:
    required: list[Json] = [*properties]
    return {"type": "object", "properties": properties, "required": required, "additionalProperties": False}


def _as_parameters(schema: JsonObject) -> JsonObject:
    """Return tool parameters, which must be an object: another schema is wrapped, with its definitions at the root."""
    if _is_object(schema):
        return schema
    definitions = {key: schema[key] for key in ("$defs", "definitions") if key in schema}
    return {**_object({"value": {key: said for key, said in schema.items() if key not in definitions}}), **definitions}


def _is_object(schema: JsonObject) -> bool:
    return schema.get("type") == "object" or ("type" not in schema and "properties" in schema)


def _has_next(schema: JsonObject | None) -> bool:
    properties = {} if schema is None else schema.get("properties")
    return isinstance(properties, dict) and "next" in properties
