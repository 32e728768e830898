"""Audit entries for the tools of MCP clients, whether they come over HTTP or through a pipe."""

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
    """The audit entries of one server."""

    audit: Audit
    origin: Callable[[Context], str] = lambda _: ""
    """From which address a call comes."""

    def told(
        self, context: Context, caller: Caller, tool: str, arguments: JsonObject
    ) -> AbstractAsyncContextManager[AuditedCall]:
        """Around the call of a tool that may change something; its answer is given to what this yields."""
        return audited(self.audit, caller, f"mcp {tool}", arguments, origin=self.origin(context))

    async def refused(self, context: Context, caller: Caller, tool: str, arguments: JsonObject) -> None:
        """The caller's role does not allow the tool."""
        await note_refused(self.audit, caller, f"mcp {tool}", arguments, "not-allowed", self.origin(context))
