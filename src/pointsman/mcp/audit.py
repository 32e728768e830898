"""Audit entries for tool calls of MCP clients, over HTTP or stdio."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import AbstractAsyncContextManager
from dataclasses import dataclass
from typing import Any, TypeAlias

from mcp.server.context import ServerRequestContext

from pointsman.auth.audit import Audit
from pointsman.auth.callers import Caller
from pointsman.auth.tool_audit import AuditedCall, audited, note_refused
from pointsman.values import JsonObject

Context: TypeAlias = ServerRequestContext[Any, Any]


@dataclass(frozen=True, slots=True)
class Deeds:
    """Writes the audit entries of one server."""

    audit: Audit
    origin: Callable[[Context], str] = lambda _: ""
    """Returns the network address of a call."""

    def told(
        self, context: Context, caller: Caller, tool: str, arguments: JsonObject
    ) -> AbstractAsyncContextManager[AuditedCall]:
        """Record the call of a tool that may change something; the block passes its answer to the yielded function."""
        return audited(self.audit, caller, f"mcp {tool}", arguments, origin=self.origin(context))

    async def refused(self, context: Context, caller: Caller, tool: str, arguments: JsonObject) -> None:
        """Record that the caller's role does not allow the tool."""
        await note_refused(self.audit, caller, f"mcp {tool}", arguments, "not-allowed", self.origin(context))
