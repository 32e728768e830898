"""Stand-ins for tools that are not registered, for runs with the scripted model. Calls of them fail.

They make it possible to try a definition that names `web_search` before the tool is written. Scripted models call only
the tools in their script; calling a tool that neither the app nor the script has is a failure.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Final

from pointsman.engine.failures import Failure
from pointsman.engine.reports import ToolCall
from pointsman.ports import ExecutionPort, Tools, ToolSpec
from pointsman.tools.failures import ToolFailed
from pointsman.tools.tool import need_of
from pointsman.values import Json, JsonObject

ANYTHING: Final[JsonObject] = {"type": "object"}


class UnscriptedTools:
    """The tools of an app; any other name is a stand-in for a tool without a script."""

    def __init__(self, tools: Tools) -> None:
        self._tools = tools

    def find(self, name: str) -> ToolSpec | None:
        """Return the tool, or a stand-in of that name."""
        found = self._tools.find(name)
        if found is not None and not found.off:
            return found
        return ToolSpec(name=name, description="Not registered here.", parameters=ANYTHING, stands_in=True)

    async def prepare(self, names: Iterable[str]) -> None:
        """Prepare the tools of the app."""
        await self._tools.prepare(names)

    async def call(self, call: ToolCall, *, key: str, run: ExecutionPort | None = None) -> Json:
        """Call the tool. Raises `ToolFailed` (`tool-not-scripted`) for a stand-in."""
        found = self._tools.find(call.name)
        if found is not None and not found.off:
            return await self._tools.call(call, key=key, run=run)
        about, hint = f"there is no tool {call.name!r} here", "Register it with the installation"
        if found is not None:
            about, hint = f"the tool {call.name!r} is off here", found.off.rstrip(".")
        message = f"{about}, and no script of it"
        hint = f"{hint}, or give it results under `tools:` in the script."
        raise ToolFailed(Failure(code="tool-not-scripted", message=message, hint=hint, needs=need_of(call.name)))
