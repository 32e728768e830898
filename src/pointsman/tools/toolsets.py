"""Toolsets of pydantic-ai as tools: each tool of a toolset keeps its name, description and schema."""

from __future__ import annotations

from typing import Any, cast

from pydantic_ai import RunContext, RunUsage
from pydantic_ai.models.test import TestModel
from pydantic_ai.toolsets import AbstractToolset
from pydantic_ai.toolsets.abstract import ToolsetTool

from pointsman.json_conversion import as_json
from pointsman.ports import ToolSpec
from pointsman.tools.tool import ToolContext, ToolLimits
from pointsman.values import Json, JsonObject


class ToolOfToolset:
    """One tool of a toolset of pydantic-ai."""

    def __init__(self, toolset: AbstractToolset[Any], tool: ToolsetTool[Any], context: RunContext[Any]) -> None:
        self._toolset, self._tool, self._context = toolset, tool, context
        self.name = tool.tool_def.name
        self.limits = ToolLimits()
        self.spec = ToolSpec(
            name=self.name,
            description=tool.tool_def.description or "",
            parameters=cast("JsonObject", tool.tool_def.parameters_json_schema),
        )

    async def run(self, arguments: JsonObject, context: ToolContext) -> Json:
        """Validate the arguments as the toolset does, call it, and return its result as JSON."""
        checked = cast("dict[str, Any]", self._tool.args_validator.validate_python(arguments))
        result = await self._toolset.call_tool(self.name, checked, self._context, self._tool)
        return as_json(result, what=f"the result of the tool {self.name!r}", path="result")


async def tools_of_toolset(toolset: AbstractToolset[Any], *, deps: object = None) -> list[ToolOfToolset]:
    """Return the tools of a toolset, for `Pointsman(tools=…)`. `deps`: what they receive as `ctx.deps`.

    The toolset must be entered, if it needs that. Its tools see no model: their context has a model for tests.
    """
    context = RunContext[Any](deps=deps, model=TestModel(), usage=RunUsage())
    tools = await toolset.get_tools(context)
    return [ToolOfToolset(toolset, tool, context) for tool in tools.values()]
