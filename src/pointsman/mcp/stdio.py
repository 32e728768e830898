"""MCP over standard input and output: for a client that starts this process, with the rights of who started it."""

from __future__ import annotations

from mcp.server.stdio import stdio_server

from pointsman import Pointsman
from pointsman.auth.callers import LOCAL, Caller
from pointsman.mcp.audit import Deeds
from pointsman.mcp.server import Face


async def serve_stdio(app: Pointsman, *, name: str = "") -> None:
    """Until the client closes its end. What runs then goes on when the store is kept, or resumed."""
    caller = Caller(name=name or LOCAL.name, role=LOCAL.role, entrance="shell")
    face = Face(app, lambda _: caller, Deeds(app.audit))
    async with stdio_server() as (incoming, outgoing), face.watching():
        await face.server.run(incoming, outgoing, face.options)
