"""Telling clients that there are other tools: workflows were saved or deleted."""

from __future__ import annotations

from contextlib import suppress
from typing import Any, Final

from mcp.server.context import ServerRequestContext
from mcp.server.session import ServerSession
from mcp.server.subscriptions import InMemorySubscriptionBus
from mcp.shared.subscriptions import ResourcesListChanged, ToolsListChanged
from mcp_types.version import MODERN_PROTOCOL_VERSIONS

from mcp import MCPError

SESSION: Final = "mcp-session-id"
SESSIONS_MAX: Final = 1000


class Changes:
    """Newer clients listen to the bus; older ones are told on the connection they hold."""

    def __init__(self, bus: InMemorySubscriptionBus) -> None:
        self.bus = bus
        self._sessions: dict[str, ServerSession] = {}

    def note(self, context: ServerRequestContext[Any, Any]) -> None:
        """Who is there."""
        if context.protocol_version in MODERN_PROTOCOL_VERSIONS:
            return
        headers = getattr(context.request, "headers", {})
        self._sessions[str(headers.get(SESSION, ""))] = context.session
        while len(self._sessions) > SESSIONS_MAX:
            del self._sessions[next(iter(self._sessions))]

    async def tell(self) -> None:
        """There are other tools and resources now."""
        await self.bus.publish(ToolsListChanged())
        await self.bus.publish(ResourcesListChanged())
        for session in [*self._sessions.values()]:
            with suppress(MCPError, RuntimeError, OSError):  # It is gone.
                await session.send_tool_list_changed()
                await session.send_resource_list_changed()
