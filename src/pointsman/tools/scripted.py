"""Tools of runs with the scripted model: tools that answer from a script, and stand-ins for tools without one.

    web_search:
      description: Search the web.
      results:
        - {when: {query: port}, result: [{title: Harbour}]}
        - {contains: strike, result: [], times: 1}
        - {fail: the index is down}
    pay: {requiresApproval: true, result: {paid: true}}

Listings mark scripted tools as such. Stand-ins make it possible to try a definition that names `web_search` before the
tool is written. Scripted models call only the tools in their script; a call of a stand-in fails.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Final

import msgspec

from pointsman.caches import UseCounts
from pointsman.engine.failures import Failure
from pointsman.engine.reports import ToolCall
from pointsman.ports import ExecutionPort, Tools, ToolSpec
from pointsman.tools.tool import ToolContext, ToolFailed, ToolLimits, need_of
from pointsman.values import Json, JsonObject

ANYTHING: Final[JsonObject] = {"type": "object"}


class CannedTool:
    """One scripted tool. The first result that matches and is not used up answers. The execution counts the uses."""

    def __init__(self, name: str, script: JsonObject) -> None:
        listed = script.get("results")
        self._results = [one for one in listed if isinstance(one, dict)] if isinstance(listed, list) else [script]
        self._outside = UseCounts()
        parameters = script.get("parameters")
        self.name = name
        self.limits = ToolLimits()
        self.spec = ToolSpec(
            name=name,
            description=str(script.get("description", "A scripted tool.")),
            parameters=parameters if isinstance(parameters, dict) else ANYTHING,
            idempotent=True,
            requires_approval=script.get("requiresApproval") is True,
            scripted=True,
        )

    async def run(self, arguments: JsonObject, context: ToolContext) -> Json:
        """Return the scripted result. Raises `ToolFailed` if the script requires it, or if no result matches."""
        text = msgspec.json.encode(arguments).decode()
        for index, result in enumerate(self._results):
            if _fits(result, arguments, text) and await self._use(result, index, context):
                if "fail" in result:
                    raise ToolFailed(_failure(result["fail"]))
                return result.get("result")
        message = f"the script has no result of {self.name!r} for {text}"
        hint = "Add a result without `when` and `contains` to its script."
        raise ToolFailed(Failure(code="tool-not-scripted", message=message, hint=hint))

    async def _use(self, result: JsonObject, index: int, context: ToolContext) -> bool:
        """Count a use of the result; False: it is used up."""
        most = result.get("times")
        if not isinstance(most, int):
            return True
        what = f"script/tool/{self.name}/{index}"
        if context.run is None:
            return self._outside.use(f"{what}/{context.execution}", most=most) is not None
        return await context.run.use(what, most=most) is not None


def canned_tools(tools: Mapping[str, JsonObject]) -> list[CannedTool]:
    """Return the tools of a script."""
    return [CannedTool(name, script) for name, script in tools.items()]


def _fits(result: JsonObject, arguments: JsonObject, text: str) -> bool:
    when, contains = result.get("when"), result.get("contains")
    return (not isinstance(when, dict) or all(key in arguments and arguments[key] == when[key] for key in when)) and (
        not isinstance(contains, str) or contains in text
    )


def _failure(fail: Json) -> Failure:
    if not isinstance(fail, dict):
        return Failure(code="tool-failed", message=str(fail))
    return Failure(
        code=str(fail.get("code", "tool-failed")),
        message=str(fail.get("message", "")),
        retryable=fail.get("retryable") is True,
    )


class UnscriptedTools:
    """The tools of an app; any other name gives a substitute, which fails because it has no script."""

    def __init__(self, tools: Tools) -> None:
        self._tools = tools

    def find(self, name: str) -> ToolSpec | None:
        """Return the tool, or a substitute of that name."""
        tool = self._tools.find(name)
        if tool is not None and not tool.off:
            return tool
        return ToolSpec(name=name, description="Not registered here.", parameters=ANYTHING, stands_in=True)

    async def prepare(self, names: Iterable[str]) -> None:
        """Prepare the tools of the app."""
        await self._tools.prepare(names)

    async def call(self, call: ToolCall, *, key: str, run: ExecutionPort | None = None) -> Json:
        """Call the tool. Raises `ToolFailed` (`tool-not-scripted`) for a substitute."""
        tool = self._tools.find(call.name)
        if tool is not None and not tool.off:
            return await self._tools.call(call, key=key, run=run)
        about, hint = (
            f"tool {call.name!r} is not registered in this process",
            "Add it with `@tool` and a `pointsman.tools` entry point",
        )
        if tool is not None:
            about, hint = f"tool {call.name!r} is disabled here", tool.off.rstrip(".")
        message = f"{about}, and the script has no results for it"
        hint = f"{hint}, or give it results under `tools:` in the script."
        raise ToolFailed(Failure(code="tool-not-scripted", message=message, hint=hint, needs=need_of(call.name)))
