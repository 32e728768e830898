"""Connections: what each may hold, and when one is given up.

our buffer ─▶ the system's ─▶ the network ─▶ a client that reads
    full: whoever writes waits; for too long: the connection is cut, whatever its client says of its health
"""

from __future__ import annotations

import asyncio
import socket
from typing import Final

from uvicorn.protocols.http.httptools_impl import HttpToolsProtocol

DEAD_CLIENT_MS: Final = 30_000
"""A client of which the system hears nothing for so long is gone."""
STUCK_S = 30.0
"""A client that lives and takes nothing for so long is let go."""
IDLE_S: Final = 75
"""For so long a connection is kept that nobody uses: longer than clients and proxies keep theirs (5 to 60 seconds). Who
sends on one that is closed at that moment cannot know whether it was heard."""
SEND_BYTES = 262_144
"""What the system may hold for each."""
WRITE_BYTES: Final = 32_768
"""What we hold beside it before whoever writes waits."""


class Connection(HttpToolsProtocol):
    """One client."""

    _giving_up: asyncio.TimerHandle | None = None

    def connection_made(self, transport: asyncio.Transport) -> None:
        super().connection_made(transport)
        transport.set_write_buffer_limits(high=WRITE_BYTES)

    def pause_writing(self) -> None:
        super().pause_writing()
        self._giving_up = self.loop.call_later(STUCK_S, self.transport.abort)

    def resume_writing(self) -> None:
        super().resume_writing()
        self._calm()

    def connection_lost(self, exc: Exception | None) -> None:
        self._calm()
        super().connection_lost(exc)

    def _calm(self) -> None:
        if self._giving_up is not None:
            self._giving_up.cancel()


def bound(listener: socket.socket) -> None:
    """Give a listening socket the bounds that its connections inherit."""
    listener.setsockopt(socket.SOL_SOCKET, socket.SO_SNDBUF, SEND_BYTES)
    # asyncio does so for sockets that say they are TCP; without it each answer waits 40 ms for an acknowledgement.
    listener.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
    if hasattr(socket, "TCP_USER_TIMEOUT"):  # Linux.
        listener.setsockopt(socket.IPPROTO_TCP, socket.TCP_USER_TIMEOUT, DEAD_CLIENT_MS)
