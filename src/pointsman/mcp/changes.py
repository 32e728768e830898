"""Telling clients that there are other tools: workflows were saved or deleted."""

from __future__ import annotations

import asyncio
from contextlib import suppress
from typing import Any, Final

from mcp.server.context import ServerRequestContext
from mcp.server.session import ServerSession
from mcp.server.subscriptions import InMemorySubscriptionBus
from mcp.shared.subscriptions import ResourcesListChanged, ToolsListChanged
from mcp_types.version import MODERN_PROTOCOL_VERSIONS

from mcp import MCPError
from pointsman import Pointsman
from pointsman.errors import OperatorError
from pointsman.store.records import WorkflowEntry

SESSION: Final = "mcp-session-id"
SESSIONS_MAX: Final = 1000
LOOKED_EVERY_S: Final = 2.0
"""Other faces and processes save workflows too; what this one saves is told at once."""


class Changes:
    """Newer clients listen to the bus; older ones are told on the connection they hold."""

    def __init__(self, bus: InMemorySubscriptionBus) -> None:
        self.bus = bus
        self._sessions: dict[str, ServerSession] = {}
        self._known: list[WorkflowEntry] | None = None

    def note(self, context: ServerRequestContext[Any, Any]) -> None:
        """Who is there."""
        if context.protocol_version in MODERN_PROTOCOL_VERSIONS:
            return
        headers = getattr(context.request, "headers", {})
        self._sessions[str(headers.get(SESSION, ""))] = context.session
        while len(self._sessions) > SESSIONS_MAX:
            del self._sessions[next(iter(self._sessions))]

    async def look(self, app: Pointsman) -> None:
        """Tell, if the saved workflows are others than when they were looked at before, whoever changed them."""
        before, self._known = self._known, await app.workflows()
        if before is not None and before != self._known:
            await self._tell()

    async def watch(self, app: Pointsman) -> None:
        """Look now and then, until cancelled. A store that is away for a while is looked at later."""
        while True:
            with suppress(OperatorError):
                await self.look(app)
            await asyncio.sleep(LOOKED_EVERY_S)

    async def _tell(self) -> None:
        """There are other tools and resources now."""
        await self.bus.publish(ToolsListChanged())
        await self.bus.publish(ResourcesListChanged())
        for session in [*self._sessions.values()]:
            with suppress(MCPError, RuntimeError, OSError):  # It is gone.
                await session.send_tool_list_changed()
                await session.send_resource_list_changed()
