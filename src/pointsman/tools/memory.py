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

KEY: Final[JsonObject] = {"type": "string", "minLength": 1, "maxLength": 500, "description": "What it is called."}
TEXT: Final[JsonObject] = {"type": "string", "description": "What to remember."}
OPERATIONS: Final[dict[str, tuple[str, JsonObject, tuple[str, ...]]]] = {
    "get": ("Read what is remembered under a key; null: nothing is.", {"key": KEY}, ("key",)),
    "set": ("Remember a text under a key, instead of what was there.", {"key": KEY, "value": TEXT}, ("key", "value")),
    "append": ("Add a text to the list under a key; gives the list.", {"key": KEY, "value": TEXT}, ("key", "value")),
    "delete": ("Forget what is under a key; gives whether there was something.", {"key": KEY}, ("key",)),
    "search": (
        "Find what is remembered by words in it, the best first.",
        {
            "query": {"type": "string", "minLength": 1, "description": "Words."},
            "limit": {
                "type": "integer",
                "minimum": 1,
                "maximum": 50,
                "description": "Most hits; 10 where it is not said.",
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
        raise ToolFailed(Failure(code="memory-no-owner", message=f"nobody knows whose memory {self.name!r} means here"))
