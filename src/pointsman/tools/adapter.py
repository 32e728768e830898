"""Adapter for tools of other libraries: a description of the tool, and a function that performs its calls."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from typing import Final

from pointsman.engine.failures import Failure
from pointsman.json_conversion import NotJson, as_json
from pointsman.ports import ToolSpec
from pointsman.tools.tool import ToolContext, ToolFailed, ToolLimits
from pointsman.values import Json, JsonObject

NO_LIMITS: Final = ToolLimits()
PLAIN: Final = frozenset({bool, int, float})
"""Types of results that are JSON as they are."""


class ToolAdapter:
    """A tool of another library. The library checks the arguments once more, and its results are written as JSON."""

    def __init__(
        self,
        spec: ToolSpec,
        perform: Callable[[JsonObject, ToolContext], Awaitable[object]],
        *,
        limits: ToolLimits = NO_LIMITS,
    ) -> None:
        self.name = spec.name
        self.spec = spec
        self.limits = limits
        self._perform = perform

    def __repr__(self) -> str:
        return f"<tool {self.name!r}>"

    async def run(self, arguments: JsonObject, context: ToolContext) -> Json:
        """Perform a call, and return its result as JSON. Raises `ToolFailed`, and what the library raises."""
        return result_as_json(self.name, await self._perform(arguments, context))


def result_as_json(name: str, result: object) -> Json:
    """Return the result of a tool as JSON. Raises `ToolFailed`."""
    if result is None or type(result) in PLAIN:
        return result  # pyright: ignore[reportReturnType] - it is one of these types
    try:
        return as_json(result, what=f"the result of the tool {name!r}", path="result")
    except NotJson as why:
        raise ToolFailed(failure_of_result(why)) from why.__cause__


def failure_of_result(why: NotJson) -> Failure:
    """Return the failure of a tool whose result cannot be written as JSON."""
    return Failure(code="tool-failed", message=str(why), hint=why.hint, details=why.details)
