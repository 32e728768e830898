"""MCP on standard input and output.

    client ── line ─▶ within limits? ─▶ JSON-RPC? ─ yes ─▶ SDK ─▶ handlers
                            └───────────────┴────── no ──▶ an error as the answer

The transport of the SDK reads lines of any length, and ignores a line that is not a message.
"""

from __future__ import annotations

import os
from collections.abc import AsyncIterator, Awaitable, Callable, Generator
from contextlib import contextmanager
from typing import BinaryIO, Final, cast

import anyio.to_thread
from mcp.server.stdio import stdio_server
from mcp.shared.message import SessionMessage
from mcp.types import JSONRPCError

from pointsman import Pointsman
from pointsman.auth.callers import LOCAL, Caller
from pointsman.json_meter import LESS
from pointsman.mcp.server import McpEndpoint, error_of, invalid

CHUNK_BYTES: Final = 1_048_576
LINE_BYTES_MAX: Final = 64_000_000
"""Limit of a message, as that of a body over HTTP."""


async def serve_stdio(app: Pointsman, *, name: str = "") -> None:
    """Serve until the client closes its end. Running executions continue with the store's leader, or when resumed."""
    caller = Caller(name=name or LOCAL.name, role=LOCAL.role, entrance="shell")
    face = McpEndpoint(app, lambda _: caller)
    with private_standard_input() as stream:
        lines = MessageLines(stream)
        async with face.watching(), stdio_server(cast("anyio.AsyncFile[str]", lines)) as (incoming, outgoing):
            lines.send = outgoing.send  # Before the transport reads its first line: it begins with the next await.
            await face.server.run(incoming, outgoing, face.options)


@contextmanager
def private_standard_input() -> Generator[BinaryIO]:
    """Open standard input under another descriptor: handlers and child processes read from the null device."""
    private, null = os.dup(0), os.open(os.devnull, os.O_RDONLY)
    os.dup2(null, 0)
    os.close(null)
    try:
        with os.fdopen(private, "rb", closefd=False) as stream:
            yield stream
    finally:
        os.dup2(private, 0)
        os.close(private)


class MessageLines:
    """The lines of a stream that are JSON-RPC messages. Every other line is answered with an error."""

    def __init__(self, stream: BinaryIO) -> None:
        self._stream = stream
        self.send: Callable[[SessionMessage], Awaitable[None]] | None = None
        """Sends an error to the client."""

    async def __aiter__(self) -> AsyncIterator[str]:
        while line := await anyio.to_thread.run_sync(self._next):
            if isinstance(line, str):
                yield line
            else:
                assert self.send is not None, "the transport was opened before it reads"
                await self.send(SessionMessage(line))

    def _next(self) -> str | JSONRPCError:
        """Read the next line that is not blank; return the error if it is not a message, and an empty text at the
        end."""
        while line := self._stream.readline(LINE_BYTES_MAX):
            if len(line) == LINE_BYTES_MAX and not line.endswith(b"\n"):
                while (rest := self._stream.readline(CHUNK_BYTES)) and not rest.endswith(b"\n"):
                    pass
                return invalid(f"the message has more than {LINE_BYTES_MAX} bytes. {LESS}")
            if line.strip():
                return error_of(line) or line.decode()
        return ""
