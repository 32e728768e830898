"""Server-sent events: how they are written, and the answer that carries them.

A connection that takes nothing holds one chunk: what comes meanwhile waits in the ring or the journal, and the
connection is given up after a while (`serving.Connection`).
"""

from __future__ import annotations

import asyncio
import random
from collections.abc import AsyncGenerator, Awaitable
from contextlib import aclosing, suppress
from typing import Final

import msgspec
from fastapi import Response
from starlette.types import Receive, Scope, Send

from pointsman.auth.presence import Seat
from pointsman.executions.ring_buffer import Wire
from pointsman.values import JsonObject

MEDIA_TYPE: Final = "text/event-stream"
HEADERS: Final = {"cache-control": "no-store", "x-accel-buffering": "no"}
"""Proxies pass on what they get at once."""
BEAT: Final = b": still here\n\n"
CLOSING: Final = "stream.closing"
COME_BACK_MS: Final = (500, 3000)
"""Between these, each at another moment: a server that begins again is not met by everybody at once."""

_ENCODER: Final = msgspec.json.Encoder()


def server_sent(event: str, told: JsonObject, place: str, /) -> bytes:
    """One event as it is sent."""
    head = f"id: {place}\n" if place else ""
    return f"{head}event: {event}\ndata: ".encode() + _ENCODER.encode(told) + b"\n\n"


def farewell() -> bytes:
    """The server goes, and the client is to come back with the id of its last event."""
    wait = random.randint(*COME_BACK_MS)
    return f"retry: {wait}\n".encode() + server_sent(CLOSING, {"reason": "the server stops", "retryMs": wait}, "")


SHUT: Final = server_sent(CLOSING, {"reason": "what opened this stream opens nothing any more"}, "")
WIRE: Final = Wire(server_sent, BEAT, farewell)


class _Gone(Exception):
    """The client has closed the connection."""


class _Revoked(Exception):
    """What let the client in opens nothing any more."""


class EventStream(Response):
    """Sends chunks as they come, until there are no more or nobody listens."""

    media_type = MEDIA_TYPE

    def __init__(self, chunks: AsyncGenerator[bytes, None], seat: Seat) -> None:
        """The seat is left when it has ended; it ends, too, when what opened it is taken back."""
        super().__init__(headers=HEADERS)
        del self.headers["content-length"]
        self._chunks = chunks
        self._seat = seat

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        try:
            async with asyncio.TaskGroup() as group:
                watching = [
                    group.create_task(_until_gone(receive)),
                    group.create_task(_until_revoked(self._seat)),
                ]
                await send({"type": "http.response.start", "status": 200, "headers": self.raw_headers})
                async for chunk in self._chunks:
                    await send({"type": "http.response.body", "body": chunk, "more_body": True})
                await send({"type": "http.response.body", "body": b"", "more_body": False})
                for one in watching:
                    one.cancel()
        except* _Gone:
            pass
        except* _Revoked:
            with suppress(OSError):
                await send({"type": "http.response.body", "body": SHUT, "more_body": False})
        finally:
            self._seat.leave()
            await self._chunks.aclose()


async def _until_gone(receive: Receive) -> None:
    while (await receive())["type"] != "http.disconnect":
        pass
    raise _Gone


async def _until_revoked(seat: Seat) -> None:
    await seat.revoked.wait()
    raise _Revoked


async def while_seated(seat: Seat, work: Awaitable[None]) -> None:
    """The work, until it is done or what let its client in is taken back."""
    try:
        async with asyncio.TaskGroup() as group:
            watching = group.create_task(_until_revoked(seat))
            await work
            watching.cancel()
    except* _Revoked:
        pass
    finally:
        seat.leave()


async def begun(first: bytes, chunks: AsyncGenerator[bytes, None]) -> AsyncGenerator[bytes, None]:
    """The chunks behind another one."""
    if first:
        yield first
    async with aclosing(chunks):
        async for chunk in chunks:
            yield chunk
