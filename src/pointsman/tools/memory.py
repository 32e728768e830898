"""The tools by which agents remember: `memory_get`, `memory_set`, `memory_append`, `memory_delete`, `memory_search`.

Here is what models are shown of them. Whose memory is meant only the agent's step knows: it carries the calls out.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

from pointsman.definition.model.agents import MEMORY_TOOLS
from pointsman.engine.failures import Failure
from pointsman.ports import ToolSpec
from pointsman.tools.failures import ToolFailed
from pointsman.tools.tool import ToolContext, ToolLimits
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
"""Operation -> what it does, its parameters, those it must have."""


def memory_tools() -> Iterator[MemoryTool]:
    """All of them. They reach nothing outside, so they are on; an agent has those that its `tools` name."""
    for name in MEMORY_TOOLS:
        yield MemoryTool(name)


class MemoryTool:
    """One operation on the memory of whoever the calling agent works for."""

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
        """Raises `ToolFailed`: only a step knows whose memory is meant."""
        raise ToolFailed(Failure(code="memory-no-owner", message=f"nobody knows whose memory {self.name!r} means here"))
