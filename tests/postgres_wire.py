"""A socket in front of a PostgreSQL server, which loses one message or stops passing data on."""

from __future__ import annotations

import asyncio
import shutil
import tempfile
from contextlib import suppress
from pathlib import Path
from typing import Final, Literal, Self, TypeAlias

SOCKET: Final = ".s.PGSQL.5432"
ROWS: Final = b"INSERT INTO rows"
"""The statement whose connection is cut. The server later knows the statement by its number."""

Message: TypeAlias = Literal["question", "answer"]


class Wire:
    """Forwards the connections of a store. `folder` is the host for the address of the store."""

    def __init__(self, server: Path) -> None:
        self.folder = Path(tempfile.mkdtemp(prefix="pointsman-wire-"))
        self.whole = asyncio.Event()
        """While it is not set, the wire passes no data on, and closes no connection."""
        self.whole.set()
        self.cuts = 0
        self._server = server / SOCKET
        self._lost: Message | None = None
        self._listening: asyncio.Server | None = None
        self._connections: set[asyncio.Task[None]] = set()

    async def __aenter__(self) -> Self:
        self._listening = await asyncio.start_unix_server(self._connected, self.folder / SOCKET)
        return self

    async def __aexit__(self, *_: object) -> None:
        assert self._listening is not None
        self._listening.close()
        for connection in [*self._connections]:
            connection.cancel()
        await asyncio.gather(*self._connections, return_exceptions=True)
        shutil.rmtree(self.folder)

    def cut(self, lost: Message) -> None:
        """Cut the connection that adds rows when it asks next: its question is lost, or the answer."""
        self._lost = lost

    async def _connected(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        connection = asyncio.current_task()
        assert connection is not None
        self._connections.add(connection)
        try:
            with suppress(ConnectionError):  # A process was killed.
                await self._pass(reader, writer)
        finally:
            self._connections.discard(connection)

    async def _pass(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        try:
            behind, before = await asyncio.open_unix_connection(self._server)
        except OSError:  # The server is down.
            writer.close()
            return
        muted = asyncio.Event()
        adds_rows = False

        async def answers() -> None:
            while data := await behind.read(65536):
                await self.whole.wait()
                if muted.is_set():
                    break
                writer.write(data)
            writer.close()

        answering = asyncio.ensure_future(answers())
        try:
            while data := await reader.read(65536):
                await self.whole.wait()
                adds_rows = adds_rows or ROWS in data
                lost = self._taken() if adds_rows else None
                if lost == "question":
                    return
                if lost == "answer":
                    muted.set()
                before.write(data)
                if lost == "answer":
                    await answering
                    return
        finally:
            answering.cancel()
            before.close()
            writer.close()

    def _taken(self) -> Message | None:
        lost, self._lost = self._lost, None
        self.cuts += lost is not None
        return lost
