"""Clients of the official SDK, for the server."""

from __future__ import annotations

import sys
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any, Final, Literal

from mcp.client.stdio import stdio_client
from mcp.types import CallToolResult

from mcp import Client, StdioServerParameters

SOURCES: Final = Path(__file__).parents[2] / "src"
Mode = Literal["auto", "legacy"]
MODES: Final[tuple[Mode, ...]] = ("auto", "legacy")


@asynccontextmanager
async def at_prompt(store: str, mode: Mode = "auto", *, script: Path | None = None) -> AsyncGenerator[Client, None]:
    """Start `pointsman mcp` and yield a client of its standard input and output."""
    said = ["--model", "scripted"] if script is None else ["--model", "scripted", "--script", str(script)]
    server = StdioServerParameters(
        command=sys.executable,
        args=["-m", "pointsman", "mcp", "--store", store, *said],
        env={"PYTHONPATH": str(SOURCES)},
    )
    async with Client(stdio_client(server), mode=mode) as client:
        yield client


async def call(client: Client, tool: str, **arguments: Any) -> Any:
    """Call a tool and return its answer, which must not be an error."""
    result = await client.call_tool(tool, arguments)
    assert not result.is_error, result.structured_content
    return result.structured_content


async def refused(client: Client, tool: str, **arguments: Any) -> Any:
    """Call a tool and return its error."""
    result: CallToolResult = await client.call_tool(tool, arguments)
    assert result.is_error
    return result.structured_content


async def names(client: Client) -> list[str]:
    return [tool.name for tool in (await client.list_tools(cache_mode="bypass")).tools]
