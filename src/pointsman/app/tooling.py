"""The tools of one installation: given ones, those of the settings, those of packages."""

from __future__ import annotations

from collections.abc import Iterable

from pointsman.settings import Settings
from pointsman.tools.registry import ToolRegistry
from pointsman.tools.tool import Tool


def registry_for(settings: Settings, tools: Iterable[Tool]) -> ToolRegistry:
    """Raises `SettingsInvalid`, `ToolNameTaken`."""
    registry = ToolRegistry(tools)
    if settings.tools or settings.tool_files:
        from pointsman.app.web_tools import http_tools  # Most installations have none.

        for tool in http_tools(settings):
            registry.add(tool, origin="http")
    return registry
