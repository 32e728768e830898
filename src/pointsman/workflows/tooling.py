"""The tool registry of an installation: tools given in code, those of the settings, and built-in ones."""

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
    """Return the registry. Raises `SettingsInvalid`, `ToolNameTaken`."""
    registry = ToolRegistry(tools)
    if settings.tools or settings.tool_files:
        from pointsman.workflows.http_tools import http_tools  # Most installations have none.

        for tool in http_tools(settings):
            registry.add(tool, origin="http")
    for name, command in settings.commands.items():
        from pointsman.tools.commands.tool import CommandTool  # Import only if needed, as above.

        registry.add(CommandTool(name, command, box=settings.sandbox.box), origin="command")
    known = known_redaction(settings)
    for name, server in settings.mcp.items():
        from pointsman.tools.mcp.server import McpServer  # Import only if needed, as above.
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
    """Return the transport to an MCP server. The operator chose its address, so internal addresses and any port are
    allowed."""
    from pointsman.tools.egress.addresses import EVERYWHERE  # Loads an HTTP client.
    from pointsman.tools.egress.transport import Door, EgressPolicy

    return Door(EgressPolicy(networks=EVERYWHERE, ports=None, plain=settings.http.plain))
