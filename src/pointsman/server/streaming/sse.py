"""Server-sent events: their encoding, the ring buffer of a channel, and the streaming response.

A response to a client that does not read holds one chunk; further events wait in the ring buffer or the journal, and
the connection is closed after `connections.STUCK_S`.
"""

from __future__ import annotations

import asyncio
import random
from collections.abc import AsyncGenerator, Awaitable, Callable
from contextlib import aclosing, suppress
from typing import Final, NamedTuple, Protocol, TypeAlias

import msgspec
from fastapi import Response
from starlette.types import Receive, Scope, Send

from pointsman.auth.rate_limiter import OpenStream
from pointsman.values import JsonObject, JsonView

StreamPosition: TypeAlias = tuple[int, int]
"""`(seq, n)`: public event `n` of row `seq`."""

START: Final[StreamPosition] = (0, -1)
"""Before the first event."""
ROW_END: Final = 1 << 62
"""As `n`: after all public events of the row."""
FRAMES: Final = 512
"""The ring keeps at least this many frames, once there are so many, and at most twice as many."""
CHUNK_BYTES: Final = 16_384
"""Frames are sent together up to about this many bytes."""


class StreamFrame(NamedTuple):
    """What is sent at once. `place` is None for live frames."""

    place: StreamPosition | None
    data: bytes


class RingBuffer:
    """Frames by position. Positions count all frames that were ever put."""

    def __init__(self, behind: StreamPosition) -> None:
        self.behind = behind
        """Every frame with a place after this one is in the ring."""
        self.begin = 0
        self._frames: list[StreamFrame] = []

    @property
    def end(self) -> int:
        """The position after the newest frame."""
        return self.begin + len(self._frames)

    def put(self, frames: list[StreamFrame]) -> None:
        self._frames += frames
        if len(self._frames) > 2 * FRAMES:
            dropped, self._frames = self._frames[:-FRAMES], self._frames[-FRAMES:]
            self.begin += len(dropped)
            self.behind = max((frame.place for frame in dropped if frame.place is not None), default=self.behind)

    def since(self, position: int) -> list[StreamFrame]:
        """Return the frames from a position on, up to about `CHUNK_BYTES`."""
        frames: list[StreamFrame] = []
        size = 0
        for frame in self._frames[position - self.begin :]:
            frames.append(frame)
            size += len(frame.data)
            if size > CHUNK_BYTES:
                break
        return frames


class Encode(Protocol):
    """Encodes an event for subscribers."""

    def __call__(self, event: str, data: JsonObject, place: str, /) -> bytes: ...


class StreamEncoder(NamedTuple):
    """The wire format of a channel."""

    encode: Encode
    sign: bytes
    """The heartbeat of a silent stream."""
    closing_event: Callable[[], bytes]
    """The last bytes for a subscriber that is disconnected although more events may follow."""


MEDIA_TYPE: Final = "text/event-stream"
HEADERS: Final = {"cache-control": "no-store", "x-accel-buffering": "no"}
"""Prevent caching, and buffering by proxies."""
BEAT: Final = b": still here\n\n"
CLOSING: Final = "stream.closing"
COME_BACK_MS: Final = (500, 3000)
"""Range of the random reconnect delay, so that clients do not all reconnect at once after a restart."""

_ENCODER: Final = msgspec.json.Encoder()


def server_sent(event: str, data: JsonView, place: str, /) -> bytes:
    """Encode one event."""
    head = f"id: {place}\n" if place else ""
    return f"{head}event: {event}\ndata: ".encode() + _ENCODER.encode(data) + b"\n\n"


def closing_event() -> bytes:
    """Encode the event that the server stops; the client reconnects with the id of its last event."""
    wait = random.randint(*COME_BACK_MS)
    return f"retry: {wait}\n".encode() + server_sent(CLOSING, {"reason": "the server is stopping", "retryMs": wait}, "")


SHUT: Final = server_sent(CLOSING, {"reason": "the key or login that opened this stream is no longer valid"}, "")
WIRE: Final = StreamEncoder(server_sent, BEAT, closing_event)


class _ClientClosed(Exception):
    """The client has closed the connection."""


class _Revoked(Exception):
    """The credential of the client is no longer valid."""


class EventStream(Response):
    """Response that sends chunks until they end, the client disconnects, or its credential is revoked."""

    media_type = MEDIA_TYPE

    def __init__(self, chunks: AsyncGenerator[bytes, None], open_stream: OpenStream) -> None:
        """Release the quota when the stream ends; the stream ends when its caller loses access."""
        super().__init__(headers=HEADERS)
        del self.headers["content-length"]
        self._chunks = chunks
        self._open_stream = open_stream

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        try:
            async with asyncio.TaskGroup() as group:
                watching = [
                    group.create_task(_until_gone(receive)),
                    group.create_task(_until_revoked(self._open_stream)),
                ]
                await send({"type": "http.response.start", "status": 200, "headers": self.raw_headers})
                async for chunk in self._chunks:
                    await send({"type": "http.response.body", "body": chunk, "more_body": True})
                await send({"type": "http.response.body", "body": b"", "more_body": False})
                for task in watching:
                    task.cancel()
        except* _ClientClosed:
            pass
        except* _Revoked:
            with suppress(OSError):
                await send({"type": "http.response.body", "body": SHUT, "more_body": False})
        finally:
            self._open_stream.leave()
            await self._chunks.aclose()


async def _until_gone(receive: Receive) -> None:
    while (await receive())["type"] != "http.disconnect":
        pass
    raise _ClientClosed


async def _until_revoked(open_stream: OpenStream) -> None:
    await open_stream.revoked.wait()
    raise _Revoked


async def while_admitted(open_stream: OpenStream, work: Awaitable[None]) -> None:
    """Run the work until it ends or its caller loses access; then release the quota."""
    try:
        async with asyncio.TaskGroup() as group:
            watching = group.create_task(_until_revoked(open_stream))
            await work
            watching.cancel()
    except* _Revoked:
        pass
    finally:
        open_stream.leave()


async def with_first_chunk(first: bytes, chunks: AsyncGenerator[bytes, None]) -> AsyncGenerator[bytes, None]:
    """Yield a first chunk, unless it is empty, then the others."""
    if first:
        yield first
    async with aclosing(chunks):
        async for chunk in chunks:
            yield chunk
