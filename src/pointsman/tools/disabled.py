"""Built-in tools that are off here: listed, so that people learn of them, and refused with what switches them on."""

from __future__ import annotations

from typing import Final

from pointsman.engine.failures import Failure
from pointsman.ports import ToolSpec
from pointsman.tools.failures import ToolFailed
from pointsman.tools.tool import ToolContext, ToolLimits
from pointsman.values import Json, JsonObject

_ANYTHING: Final[JsonObject] = {"type": "object"}


class OffTool:
    """A tool that reaches outside, and that nobody has allowed to."""

    def __init__(self, name: str, description: str, *, because: str) -> None:
        """`because`: what is missing, and where to put it."""
        self.name = name
        self.limits = ToolLimits()
        self.spec = ToolSpec(name=name, description=description, parameters=_ANYTHING, off=because)

    async def run(self, arguments: JsonObject, context: ToolContext) -> Json:
        """Raises `ToolFailed`."""
        message = f"the tool {self.name!r} is off here"
        raise ToolFailed(Failure(code="tool-off", message=message, hint=self.spec.off, needs=f"tool:{self.name}"))
