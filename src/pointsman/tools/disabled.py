"""Disabled built-in tools: listed so that users find them; calls fail with a hint how to enable them."""

from __future__ import annotations

from typing import Final

from pointsman.engine.failures import Failure
from pointsman.ports import ToolSpec
from pointsman.tools.failures import ToolFailed
from pointsman.tools.tool import ToolContext, ToolLimits
from pointsman.values import Json, JsonObject

_ANYTHING: Final[JsonObject] = {"type": "object"}


class OffTool:
    """A tool with access to the outside that the operator has not enabled."""

    def __init__(self, name: str, description: str, *, because: str) -> None:
        """`because`: which setting is missing, and where it belongs."""
        self.name = name
        self.limits = ToolLimits()
        self.spec = ToolSpec(name=name, description=description, parameters=_ANYTHING, off=because)

    async def run(self, arguments: JsonObject, context: ToolContext) -> Json:
        """Always raise `ToolFailed`."""
        message = f"the tool {self.name!r} is off here"
        raise ToolFailed(Failure(code="tool-off", message=message, hint=self.spec.off, needs=f"tool:{self.name}"))
