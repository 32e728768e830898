"""An MCP server of the official SDK, spoken to over its standard input and output: `python peer.py [FILE]`.

Each start adds a line to FILE, so that a test knows how often it was started.
"""

from __future__ import annotations

import asyncio
import os
import sys
from pathlib import Path
from typing import Any

from mcp.server import MCPServer

server = MCPServer("peer")


@server.tool()
def add(a: int, b: int) -> int:
    """Add two numbers."""
    return a + b


@server.tool(name="who.am/i")
def who() -> dict[str, Any]:
    """Return the visible environment."""
    return {"token": os.environ.get("TOKEN", ""), "home": "HOME" in os.environ, "leaked": os.environ.get("LEAKED", "")}


@server.tool()
def flood() -> str:
    """Too much."""
    return "x" * 3_000_000


@server.tool()
async def hang() -> str:
    """Never answers."""
    await asyncio.sleep(60)
    return "late"


@server.tool()
def fail() -> str:
    """Goes wrong."""
    raise ValueError("no luck today")


@server.tool()
def die() -> str:
    """Ends the process in the middle of a call."""
    os._exit(3)


@server.tool()
def secret_thing() -> str:
    """Not on the list."""
    return "never"


if __name__ == "__main__":
    if len(sys.argv) > 1:
        with Path(sys.argv[1]).open("a", encoding="utf-8") as file:
            file.write(f"{os.getpid()}\n")
    server.run("stdio")
