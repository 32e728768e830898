"""Memory tools of agents: `memory_get`, `memory_set`, `memory_append`, `memory_delete`, `memory_search`.

This module only describes them for models. The agent's step runs them, because only it knows whose memory to use.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

from pointsman.definition.model.agents import MEMORY_TOOLS
from pointsman.engine.failures import Failure
from pointsman.ports import ToolSpec
from pointsman.tools.tool import ToolContext, ToolFailed, ToolLimits
from pointsman.values import Json, JsonObject

KEY: Final[JsonObject] = {"type": "string", "minLength": 1, "maxLength": 500, "description": "The key of the value."}
TEXT: Final[JsonObject] = {"type": "string", "description": "The text to store."}
OPERATIONS: Final[dict[str, tuple[str, JsonObject, tuple[str, ...]]]] = {
    "get": ("Read the value of a key from memory; null: there is none.", {"key": KEY}, ("key",)),
    "set": (
        "Store a text under a key in memory, in place of the previous value.",
        {"key": KEY, "value": TEXT},
        ("key", "value"),
    ),
    "append": (
        "Append a text to the list under a key in memory; returns the list.",
        {"key": KEY, "value": TEXT},
        ("key", "value"),
    ),
    "delete": ("Delete the value of a key from memory; returns whether there was one.", {"key": KEY}, ("key",)),
    "search": (
        "Search memory for values that share words with a text, best matches first.",
        {
            "query": {"type": "string", "minLength": 1, "description": "Words."},
            "limit": {
                "type": "integer",
                "minimum": 1,
                "maximum": 50,
                "description": "Maximum number of matches; default 10.",
            },
        },
        ("query",),
    ),
}
"""Operation -> description, parameters, required parameters."""


def memory_tools() -> Iterator[MemoryTool]:
    """Yield all memory tools. They have no outside access, so they are enabled; an agent gets those in its `tools`."""
    for name in MEMORY_TOOLS:
        yield MemoryTool(name)


class MemoryTool:
    """One operation on the memory of the owner that the calling agent works for."""

    def __init__(self, name: str) -> None:
        self.name = name
        self.limits = ToolLimits()
        operation = name.removeprefix("memory_")
        description, properties, required = OPERATIONS[operation]
        parameters: JsonObject = {
            "type": "object",
            "properties": properties,
            "required": [*required],
            "additionalProperties": False,
        }
        self.spec = ToolSpec(
            name=name, description=description, parameters=parameters, idempotent=True, memory=operation
        )

    async def run(self, arguments: JsonObject, context: ToolContext) -> Json:
        """Always raise `ToolFailed`: only a step knows the owner of the memory."""
        raise ToolFailed(
            Failure(code="memory-no-owner", message=f"{self.name!r} has no memory here: the execution has no starter")
        )
