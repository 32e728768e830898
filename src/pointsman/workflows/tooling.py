"""The tools of one installation: given ones, those of the settings, those of packages."""

from __future__ import annotations

from collections.abc import Iterable
from functools import partial
from typing import TYPE_CHECKING

from pointsman.auth.redaction import known_redaction
from pointsman.settings import Settings
from pointsman.tools.client_tools import ClientTool
from pointsman.tools.registry import ToolRegistry
from pointsman.tools.tool import Tool
from pointsman.workflows.builtin.documents import TOOLS
from pointsman.workflows.builtin.tools import ShippedTool
from pointsman.workflows.builtin_tools import builtin_tools

if TYPE_CHECKING:
    from pointsman.tools.egress.transport import Door
    from pointsman.tools.mcp.config import McpServerDescription


def registry_for(settings: Settings, tools: Iterable[Tool]) -> ToolRegistry:
    """Raises `SettingsInvalid`, `ToolNameTaken`."""
    registry = ToolRegistry(tools)
    if settings.tools or settings.tool_files:
        from pointsman.workflows.http_tools import http_tools  # Most installations have none.

        for tool in http_tools(settings):
            registry.add(tool, origin="http")
    for name, command in settings.commands.items():
        from pointsman.tools.commands.tool import CommandTool  # As above.

        registry.add(CommandTool(name, command, box=settings.sandbox.box), origin="command")
    known = known_redaction(settings)
    for name, server in settings.mcp.items():
        from pointsman.tools.mcp.server import McpServer  # As above.
        from pointsman.tools.mcp.source import McpTools

        door = partial(_door, settings, server)
        registry.add_source(
            McpTools(McpServer(name, server, door=door, resolved=settings.resolved, rule=settings.rule, known=known))
        )
    for name, described in settings.client_tools.items():
        registry.add(ClientTool(name, described), origin="client")
    for tool in builtin_tools(settings):
        registry.add_builtin(tool)
    for name in TOOLS:
        registry.add_builtin(ShippedTool(name))
    return registry


def _door(settings: Settings, server: McpServerDescription) -> Door:
    """The address of a server is the operator's own: it may be inside, and on any port."""
    from pointsman.tools.egress.addresses import EVERYWHERE  # It loads an HTTP client.
    from pointsman.tools.egress.transport import Door, EgressPolicy

    return Door(EgressPolicy(networks=EVERYWHERE, ports=None, plain=settings.http.plain))
