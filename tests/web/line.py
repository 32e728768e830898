"""The network between a browser and its server, with faults."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager, suppress

CHUNK = 65_536


class Line:
    """Forwards bytes to a port that may change; a test decides whether each connection survives."""

    def __init__(self) -> None:
        self.to = 0
        """The port of the server."""
        self.port = 0
        self._tasks: set[asyncio.Task[None]] = set()
        self._writers: set[asyncio.StreamWriter] = set()
        self._flows = asyncio.Event()
        self._flows.set()
        self._is_cut = False

    @property
    def address(self) -> str:
        return f"http://127.0.0.1:{self.port}"

    def cut(self) -> None:
        """Close all connections and refuse new ones."""
        self._is_cut = True
        self._drop()

    def mend(self) -> None:
        self._is_cut = False

    def hold(self) -> None:
        """Hold back what the server sends."""
        self._flows.clear()

    def release(self) -> None:
        self._flows.set()

    def fall_silent(self) -> None:
        """Keep open connections, but forward no byte on them any more."""
        for task in self._tasks:
            task.cancel()

    def _drop(self) -> None:
        self.fall_silent()
        for writer in self._writers:
            writer.transport.abort()
        self._writers.clear()

    async def _take(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        if self._is_cut:
            writer.transport.abort()
            return
        try:
            there, back = await asyncio.open_connection("127.0.0.1", self.to)
        except ConnectionError:
            writer.transport.abort()
            return
        self._writers |= {writer, back}
        for task in (self._pass(reader, back, holds=False), self._pass(there, writer, holds=True)):
            running = asyncio.create_task(task)
            self._tasks.add(running)
            running.add_done_callback(self._tasks.discard)

    async def _pass(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter, *, holds: bool) -> None:
        with suppress(ConnectionError):
            while data := await reader.read(CHUNK):
                if holds:
                    await self._flows.wait()
                writer.write(data)
                await writer.drain()
            writer.close()

    async def close(self) -> None:
        self._drop()
        await asyncio.gather(*self._tasks, return_exceptions=True)


@asynccontextmanager
async def a_line() -> AsyncGenerator[Line, None]:
    line = Line()
    server = await asyncio.start_server(line._take, "127.0.0.1", 0)  # pyright: ignore[reportPrivateUsage] - its own
    line.port = server.sockets[0].getsockname()[1]
    try:
        yield line
    finally:
        server.close()
        await line.close()
        await server.wait_closed()
