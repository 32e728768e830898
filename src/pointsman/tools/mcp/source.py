"""Tools of an MCP server, named `server__tool`.

Names contain only what model providers accept: letters, digits, `_` and `-`.
"""

from __future__ import annotations

import fnmatch
import re
from typing import TYPE_CHECKING, Final, cast

from pointsman.ports import ToolSpec
from pointsman.tools.mcp.server import McpServer
from pointsman.tools.tool import Origin, Tool, ToolContext, ToolLimits
from pointsman.values import Json, JsonObject

if TYPE_CHECKING:
    from mcp.types import Tool as Offered

SEPARATOR: Final = "__"
NAME_CHARS_MAX: Final = 64
ANYTHING: Final[JsonObject] = {"type": "object"}

_WORD: Final = re.compile(r"[^A-Za-z0-9_-]")


class McpTools:
    """The tools of a server as a source of the registry."""

    def __init__(self, server: McpServer) -> None:
        self._server = server
        self.prefix = server.name + SEPARATOR
        self.origin: Origin = "mcp"
        self.lasts = True

    async def listed(self) -> list[Tool]:
        """Return the tools that may be called. Raises `ToolFailed`."""
        found: dict[str, Tool] = {}
        for offered in await self._server.tools():
            if _matches(offered.name, self._server.described.tools):
                name = (self.prefix + _WORD.sub("_", offered.name))[:NAME_CHARS_MAX]
                found.setdefault(name, self._tool(name, offered.name, offered))
        return [*found.values()]

    def stand_in(self, name: str) -> Tool | None:
        """Return a tool before the server was listed; None: it may not be called."""
        native = name.removeprefix(self.prefix)
        return self._tool(name, native, None) if _matches(native, self._server.described.tools) else None

    async def close(self) -> None:
        await self._server.close()

    def _tool(self, name: str, native: str, offered: Offered | None) -> Tool:
        annotations = None if offered is None else offered.annotations
        spec = ToolSpec(
            name=name,
            description="" if offered is None else offered.description or "",
            parameters=ANYTHING if offered is None else cast("JsonObject", offered.input_schema),
            idempotent=annotations is not None and bool(annotations.read_only_hint or annotations.idempotent_hint),
            requires_approval=_matches(native, self._server.described.requires_approval),
        )
        return McpTool(self._server, native, spec)


class McpTool:
    """One tool of a server."""

    def __init__(self, server: McpServer, native: str, spec: ToolSpec) -> None:
        self._server = server
        self._said = native
        self.name = spec.name
        self.spec = spec
        self.limits = ToolLimits()

    async def run(self, arguments: JsonObject, context: ToolContext) -> Json:
        """Call the tool. Raises `ToolFailed`."""
        return await self._server.call(self._said, arguments)


def _matches(name: str, patterns: tuple[str, ...]) -> bool:
    return any(fnmatch.fnmatchcase(name, pattern) for pattern in patterns)
