"""Toolsets of pydantic-ai as tools: each tool of a toolset keeps its name, description and schema."""

from __future__ import annotations

import inspect
from dataclasses import replace
from typing import Any, cast

from pydantic import ValidationError
from pydantic_ai import ApprovalRequired, CallDeferred, RunContext, RunUsage
from pydantic_ai import ToolFailed as ToolsetToolFailed
from pydantic_ai.models.test import TestModel
from pydantic_ai.toolsets import AbstractToolset
from pydantic_ai.toolsets.abstract import ToolsetTool

from pointsman.arguments import checks_call
from pointsman.engine.failures import Failure
from pointsman.ports import ToolSpec
from pointsman.tools.adapter import ToolAdapter
from pointsman.tools.tool import CORRECT_ARGUMENTS, ToolContext, ToolFailed, ToolInvalid
from pointsman.values import JsonObject


@checks_call
async def tools_of_toolset(
    toolset: AbstractToolset[Any], *, deps: object = None, idempotent: bool = False, requires_approval: bool = False
) -> list[ToolAdapter]:
    """Return the tools of a toolset, for `Pointsman(tools=…)`. `deps`: what they receive as `ctx.deps`. The other
    options are those of `@tool`, for all tools; a tool that requires approval in the toolset requires it here.

    The toolset must be entered, if it needs that. Its tools see no model: their context has a model for tests. Raises
    `ToolInvalid` for a tool whose result comes from outside (`kind="external"`).
    """
    context = RunContext[Any](deps=deps, model=TestModel(), usage=RunUsage())
    found = await toolset.get_tools(context)
    calls = [_ToolsetCalls(toolset, tool, context, must_ask=requires_approval) for tool in found.values()]
    return [ToolAdapter(one.spec(idempotent=idempotent), one.perform) for one in calls]


class _ToolsetCalls:
    """Performs the calls of one tool of a toolset."""

    def __init__(
        self, toolset: AbstractToolset[Any], tool: ToolsetTool[Any], context: RunContext[Any], *, must_ask: bool
    ) -> None:
        self._toolset, self._tool, self._context = toolset, tool, context
        self._name = tool.tool_def.name
        self._must_ask = must_ask or tool.tool_def.kind == "unapproved"
        if tool.tool_def.kind == "external":
            raise ToolInvalid(
                f"the tool {self._name!r} of a toolset is external: the toolset cannot call it",
                hint="Describe it in the settings, [client_tools.NAME]: the caller of the API returns its results.",
            )

    def spec(self, *, idempotent: bool) -> ToolSpec:
        return ToolSpec(
            name=self._name,
            description=self._tool.tool_def.description or "",
            parameters=cast("JsonObject", self._tool.tool_def.parameters_json_schema),
            idempotent=idempotent,
            requires_approval=self._must_ask,
        )

    async def perform(self, arguments: JsonObject, context: ToolContext) -> object:
        """Validate the arguments as pydantic-ai does, and call the tool. A person has approved the call before, if the
        tool requires it."""
        run = replace(
            self._context,
            tool_name=self._name,
            tool_call_id=context.idempotency_key,
            tool_call_approved=self._must_ask,
        )
        try:
            checked = await self._checked(arguments, run)
            return await self._toolset.call_tool(self._name, checked, run, self._tool)
        except ApprovalRequired as why:
            message = f"the tool {self._name!r} requires approval of this call"
            hint = "Let a person approve every call: `tools_of_toolset(toolset, requires_approval=True)`."
            raise ToolFailed(Failure(code="tool-failed", message=message, hint=hint)) from why
        except CallDeferred as why:
            message = f"the tool {self._name!r} deferred its call, and nothing can return the result later"
            hint = "Return the result, or describe the tool in the settings, [client_tools.NAME]."
            raise ToolFailed(Failure(code="tool-failed", message=message, hint=hint)) from why
        except ToolsetToolFailed as why:
            message = f"the tool {self._name!r} failed: {why.message}"
            raise ToolFailed(Failure(code="tool-failed", message=message)) from why

    async def _checked(self, arguments: JsonObject, run: RunContext[Any]) -> dict[str, Any]:
        try:
            checked = cast("dict[str, Any]", self._tool.args_validator.validate_python(dict(arguments)))
        except ValidationError as why:
            wrong = "; ".join(
                f"{'.'.join(map(str, one['loc']))}: {one['msg']}" for one in why.errors(include_url=False)
            )
            message = f"arguments of {self._name!r}: {wrong}"
            raise ToolFailed(Failure(code="tool-arguments", message=message, hint=CORRECT_ARGUMENTS)) from why
        if self._tool.args_validator_func is not None:
            pending = self._tool.args_validator_func(run, **checked)
            if inspect.isawaitable(pending):
                await pending
        return checked
