"""A TCP port in front of others, which stops passing data on when a test cuts it."""

from __future__ import annotations

import asyncio
from contextlib import suppress
from random import Random
from typing import Self

from tests.server.processes import free_port


class TcpWire:
    """Forwards each connection to one of the target ports of this machine: a balancer, if there are several."""

    def __init__(self, *targets: int) -> None:
        self.port = free_port()
        self.targets = [*targets]
        self.whole = asyncio.Event()
        """While it is not set, the wire passes no data on, and closes no connection."""
        self.whole.set()
        self._random = Random(7)
        self._listening: asyncio.Server | None = None
        self._connections: set[asyncio.Task[None]] = set()

    async def __aenter__(self) -> Self:
        self._listening = await asyncio.start_server(self._connected, "127.0.0.1", self.port)
        return self

    async def __aexit__(self, *_: object) -> None:
        assert self._listening is not None
        self._listening.close()
        for connection in [*self._connections]:
            connection.cancel()
        await asyncio.gather(*self._connections, return_exceptions=True)
        await asyncio.sleep(0)  # The loop closes the sockets.

    async def _connected(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        connection = asyncio.current_task()
        assert connection is not None
        self._connections.add(connection)
        try:
            for target in self._random.sample(self.targets, len(self.targets)):
                with suppress(OSError, asyncio.CancelledError):
                    behind, before = await asyncio.open_connection("127.0.0.1", target)
                    await self._pass(reader, before, behind, writer)
                    return
        finally:
            writer.close()
            self._connections.discard(connection)

    async def _pass(
        self,
        reader: asyncio.StreamReader,
        before: asyncio.StreamWriter,
        behind: asyncio.StreamReader,
        writer: asyncio.StreamWriter,
    ) -> None:
        try:
            async with asyncio.TaskGroup() as group:
                group.create_task(self._copy(reader, before))
                group.create_task(self._copy(behind, writer))
        finally:
            for end in (before, writer):
                end.transport.abort()  # A process that hangs reads nothing more.

    async def _copy(self, source: asyncio.StreamReader, to: asyncio.StreamWriter) -> None:
        """Pass data on until its sender ends, then end the connection on the other side."""
        try:
            with suppress(OSError):
                while data := await source.read(65536):
                    await self.whole.wait()
                    to.write(data)
                    await to.drain()
        finally:
            to.close()
