"""A wire to a PostgreSQL server that is cut at the worst moment."""

from __future__ import annotations

import asyncio
import shutil
import tempfile
from pathlib import Path
from typing import Self

SOCKET = ".s.PGSQL.5432"
ROWS = b"INSERT INTO rows"
"""The statement whose connection is cut. The server later knows the statement by its number."""


class Unreliable:
    """A socket that forwards everything until it is cut."""

    def __init__(self, server: Path) -> None:
        self.folder = Path(tempfile.mkdtemp(prefix="pointsman-wire-"))
        self.cuts = 0
        self._server = server
        self._cut = ""
        self._listening: asyncio.Server | None = None
        self._wires: set[asyncio.Task[None]] = set()

    async def __aenter__(self) -> Self:
        self._listening = await asyncio.start_unix_server(self._connected, self.folder / SOCKET)
        return self

    async def __aexit__(self, *_: object) -> None:
        assert self._listening is not None
        self._listening.close()
        for wire in [*self._wires]:
            wire.cancel()
        await asyncio.gather(*self._wires, return_exceptions=True)
        shutil.rmtree(self.folder)

    def cut(self, lost: str) -> None:
        """Cut the connection that adds rows when it asks next: its `question` is lost, or the `answer`."""
        self._cut = lost

    async def _connected(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        wire = asyncio.current_task()
        assert wire is not None
        self._wires.add(wire)
        try:
            await self._pass(reader, writer)
        finally:
            self._wires.discard(wire)

    async def _pass(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        behind, before = await asyncio.open_unix_connection(self._server / SOCKET)
        muted = asyncio.Event()
        adds_rows = False

        async def answers() -> None:
            while data := await behind.read(65536):
                if muted.is_set():
                    return
                writer.write(data)

        answering = asyncio.ensure_future(answers())
        try:
            while data := await reader.read(65536):
                adds_rows = adds_rows or ROWS in data
                lost = self._taken() if adds_rows else ""
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

    def _taken(self) -> str:
        lost, self._cut = self._cut, ""
        self.cuts += bool(lost)
        return lost
