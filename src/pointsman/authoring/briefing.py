"""System prompts for models that design: how to write workflows, the available fields, and the available tools."""

from __future__ import annotations

from functools import cache
from typing import Final, cast

import msgspec

from pointsman.auth.callers import Caller
from pointsman.auth.policy import sees_tool
from pointsman.authoring.guide import GUIDE
from pointsman.authoring.operations import AnyOperation
from pointsman.context import AppContext
from pointsman.definition.model.nodes import CONFIG_OF
from pointsman.definition.model.schema import native_schema
from pointsman.values import Json, JsonObject

TOOLS_MAX: Final = 100
SAYS_CHARS_MAX: Final = 160
CHANGES: Final = (
    'You change workflows of Pointsman. Answer with one JSON object {"operations": [...]} and nothing else. They are '
    "applied in order, all or none, to the workflow below. Change no more than you are asked to."
)


async def design_briefing(app: AppContext, caller: Caller) -> str:
    """Return the system prompt for the design of a whole workflow."""
    return "\n\n".join(
        (
            "You design workflows for Pointsman. Answer with one JSON object, the workflow, and nothing else.",
            GUIDE,
            _fields(),
            await _catalogue(app, caller),
        )
    )


async def edit_briefing(app: AppContext, caller: Caller, document: JsonObject) -> str:
    """Return the system prompt for a change of a workflow."""
    return "\n\n".join(
        (
            CHANGES,
            GUIDE,
            _operations(),
            _fields(),
            await _catalogue(app, caller),
            f"The workflow is now:\n{msgspec.json.encode(document).decode()}",
        )
    )


@cache
def _fields() -> str:
    """Return the keys of each type's `config`; `!` marks required ones."""
    definitions = cast("dict[str, JsonObject]", native_schema()["$defs"])
    lines: list[str] = []
    for kind, model in CONFIG_OF.items():
        shape = definitions[model.__name__]
        properties, required = shape.get("properties"), shape.get("required")
        keys = [*properties] if isinstance(properties, dict) else []
        must = required if isinstance(required, list) else []
        lines.append(f"- {kind}: " + (", ".join(f"{key}!" if key in must else key for key in keys) or "nothing"))
    return "All keys of `config` by type (`!`: required):\n" + "\n".join(lines)


@cache
def _operations() -> str:
    lines: list[str] = []
    for operation in cast("tuple[type[msgspec.Struct], ...]", AnyOperation.__args__):
        fields = msgspec.structs.fields(operation)
        keys = ", ".join(f"{field.encode_name}!" if field.required else field.encode_name for field in fields)
        says = " ".join((operation.__doc__ or "").split())
        lines.append(f'- {{"op": "{operation.__struct_config__.tag}", {keys}}}: {says}')
    return (
        "Operations (`!`: required). Edges are named by id or `source->target`; `set` and `remove` use JSON pointers "
        'into the thing, as in {"set": {"/config/prompt": "Hi"}}:\n' + "\n".join(lines)
    )


async def _catalogue(app: AppContext, caller: Caller) -> str:
    """Return the tools that a model may name. Tools that the caller may not see are omitted, because a model may repeat
    what its prompt contains."""
    lines: list[str] = []
    for name in app.tools.names():
        spec = app.tools.find(name)
        if spec is not None and not spec.off and await sees_tool(app, caller, name):
            says = " ".join(spec.description.split())[:SAYS_CHARS_MAX]
            lines.append(f"- {name}({', '.join(_parameters(spec.parameters))}): {says}")
        if len(lines) == TOOLS_MAX:
            break
    return "Tools:\n" + ("\n".join(lines) or "- none: use agents without tools")


def _parameters(schema: JsonObject) -> list[str]:
    properties: Json = schema.get("properties")
    return [*properties] if isinstance(properties, dict) else []
