"""A provider on this machine that sends a little text and then waits, and that detects clients that disconnect."""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncGenerator, Sequence
from contextlib import asynccontextmanager

from pointsman.values import Json, JsonObject

HEAD = b"HTTP/1.1 200 OK\r\ncontent-type: text/event-stream\r\nconnection: close\r\n\r\n"


def chunk(delta: JsonObject, *, finish: str | None = None) -> bytes:
    """Return one event of the Chat Completions format."""
    choices: list[Json] = [{"index": 0, "delta": delta, "finish_reason": finish}]
    body: JsonObject = {"id": "1", "object": "chat.completion.chunk", "created": 0, "model": "m", "choices": choices}
    return b"data: " + json.dumps(body).encode() + b"\n\n"


def words(*texts: str) -> list[bytes]:
    return [chunk({"role": "assistant", "content": text}) for text in texts]


END = [chunk({}, finish="stop"), b"data: [DONE]\n\n"]


class Provider:
    """Answers each request with the next of its streams; an unfinished one stays open until its client disconnects."""

    def __init__(self, streams: Sequence[Sequence[bytes]], *, holds: bool) -> None:
        self._streams = [*streams]
        self._holds = holds
        self.asked: list[JsonObject] = []
        self.left = asyncio.Event()
        """Set when a client disconnected in the middle of a stream."""
        self.go_on = asyncio.Event()
        """Set by a test: an open stream then ends normally."""
        self.address = ""

    async def answer(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        head = await reader.readuntil(b"\r\n\r\n")
        length = next(int(line.split(b":")[1]) for line in head.lower().split(b"\r\n") if b"content-length" in line)
        self.asked.append(json.loads(await reader.readexactly(length)))
        stream = self._streams.pop(0) if len(self._streams) > 1 else self._streams[0]
        writer.write(HEAD + b"".join(stream))
        await writer.drain()
        if self._holds and END[0] not in stream:
            hung_up = asyncio.ensure_future(reader.read(1))
            told = asyncio.ensure_future(self.go_on.wait())
            done, _ = await asyncio.wait({hung_up, told}, return_when=asyncio.FIRST_COMPLETED)
            told.cancel()
            if hung_up in done:
                self.left.set()
            else:
                hung_up.cancel()
                writer.write(b"".join([*words(" and so on"), *END]))
        writer.close()


@asynccontextmanager
async def provider(*streams: Sequence[bytes], holds: bool = True) -> AsyncGenerator[Provider]:
    """Run a provider in this block."""
    made = Provider(streams, holds=holds)
    server = await asyncio.start_server(made.answer, "127.0.0.1", 0)
    made.address = f"http://127.0.0.1:{server.sockets[0].getsockname()[1]}/v1"
    try:
        yield made
    finally:
        made.go_on.set()
        server.close()
