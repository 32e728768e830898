"""Built-in workflows as tools: `deep_research`, `map_reduce`, `iterate`. A call starts a child execution."""

from __future__ import annotations

from collections.abc import Iterable
from functools import cached_property

from pointsman.errors import EngineBug
from pointsman.ports import ToolSpec
from pointsman.tools.tool import ToolContext, ToolLimits
from pointsman.values import Json, JsonObject
from pointsman.workflows.builtin.documents import PREFIX, TOOLS, shipped
from pointsman.workflows.workflow_tools import WorkflowTool


class ShippedTool:
    """A built-in workflow as a tool. Its document is read when the tool's specification is first needed."""

    def __init__(self, name: str) -> None:
        self.name = name
        self.limits = ToolLimits()

    @property
    def spec(self) -> ToolSpec:
        return self._tool.spec

    async def run(self, arguments: JsonObject, context: ToolContext) -> Json:
        """Raise `ToolFailed`: only an execution can run a workflow."""
        return await self._tool.run(arguments, context)

    @cached_property
    def _tool(self) -> WorkflowTool:
        source = shipped(PREFIX + self.name)
        if source is None:
            raise EngineBug(f"{self.name!r} is not on the shelf")
        return WorkflowTool(self.name, source.definition)


def shipped_among(tools: Iterable[str]) -> list[str]:
    """Return the ids of the built-in workflows among the tools of these names."""
    return [PREFIX + name for name in dict.fromkeys(tools) if name in TOOLS]
