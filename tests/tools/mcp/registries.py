"""Tools of MCP servers, as a test calls them."""

from __future__ import annotations

from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager

from pointsman.settings import Settings
from pointsman.tools.registry import ToolRegistry
from pointsman.workflows.tools import registry_for


@asynccontextmanager
async def tools(settings: Settings) -> AsyncGenerator[ToolRegistry]:
    """Yield the tools of the settings, and close them at the end."""
    registry = registry_for(settings, ())
    try:
        yield registry
    finally:
        await registry.close()
