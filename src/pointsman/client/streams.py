"""Reconnecting streams: server-sent events of one path, across lost connections and server restarts.

Each event has an id; a reconnecting client sends the last one and receives the following events. So none is lost or
duplicated.
"""

from __future__ import annotations

import asyncio
import random
from collections.abc import AsyncGenerator, AsyncIterator
from contextlib import aclosing
from dataclasses import dataclass, field
from http import HTTPStatus
from typing import Final

import httpx2
import msgspec

from pointsman.client.calls import AWAY, CONNECT_S, Query, ServerCalls, unreachable
from pointsman.client.errors import refusal_in
from pointsman.values import JsonObject

SILENT_S: Final = 50.0
"""A server sends a sign of life every 15 s: after this long without one it counts as gone, even if the connection is
open.
"""
WAIT_S: Final = 0.5
WAIT_S_MAX: Final = 10.0
CLOSING: Final = "stream.closing"


@dataclass(slots=True)
class StreamEvent:
    """One event as received."""

    id: str = ""
    """Empty: a live event that is not stored."""
    event: str = ""
    data: list[str] = field(default_factory=list[str])

    def json(self) -> JsonObject:
        """Return the data with the `event` name, and the `id` to continue after."""
        found: JsonObject = msgspec.json.decode("\n".join(self.data))
        return {**found, "event": self.event} | ({"id": self.id} if self.id else {})


async def told(
    calls: ServerCalls, path: str, query: Query, *, after: str | None, patience_s: float
) -> AsyncGenerator[StreamEvent, None]:
    """Yield the events of a path until the server ends the stream.

    Raises the server's error, and `ServerUnreachable` after `patience_s` without a successful reconnection.
    """
    last = after
    failed_since: float | None = None
    wait = WAIT_S
    loop = asyncio.get_running_loop()
    while True:
        asked_wait: float | None = None
        try:
            async with aclosing(_once(calls, path, query, last)) as events:
                async for event in events:
                    # A stream that ends normally is requested again at once: the server reports whether there is more.
                    failed_since, wait, asked_wait = None, WAIT_S, 0.0
                    last = event.id or last
                    if event.event == CLOSING:
                        asked_wait = _retry_s(event)
                    elif event.data:
                        yield event
        except _Ended:
            return
        except httpx2.TransportError as why:
            failed_since = failed_since if failed_since is not None else loop.time()
            if loop.time() - failed_since >= patience_s:
                raise unreachable(calls.url, why) from None
        await asyncio.sleep(wait * (0.5 + random.random()) if asked_wait is None else asked_wait)
        wait = min(2 * wait, WAIT_S_MAX)


class _Ended(Exception):
    """The stream has no more events."""


class _Away(httpx2.TransportError):
    """An intermediary reports that the server is unavailable."""


async def _once(calls: ServerCalls, path: str, query: Query, last: str | None) -> AsyncGenerator[StreamEvent, None]:
    headers = {"accept": "text/event-stream"} | ({"last-event-id": last} if last else {})
    given = {name: value for name, value in query.items() if value is not None}
    timeout = httpx2.Timeout(CONNECT_S, read=SILENT_S)
    async with calls.http.stream("GET", calls.url + path, params=given, headers=headers, timeout=timeout) as reply:
        if reply.status_code == HTTPStatus.NO_CONTENT:
            raise _Ended
        if reply.status_code in AWAY or reply.status_code == HTTPStatus.TOO_MANY_REQUESTS:
            raise _Away(f"it answered {reply.status_code}")
        if not reply.is_success:
            raise refusal_in(reply.status_code, await reply.aread(), calls.url)
        async for event in events_in(reply.aiter_lines()):
            yield event


async def events_in(lines: AsyncIterator[str]) -> AsyncIterator[StreamEvent]:
    """Parse server-sent events; some have only an id. A truncated event is dropped, because it is sent again."""
    event = StreamEvent()
    async for line in lines:
        if not line:
            if event.data or event.id:
                yield event
            event = StreamEvent()
            continue
        name, _, value = line.partition(":")
        value = value.removeprefix(" ")
        match name:
            case "id":
                event.id = value
            case "event":
                event.event = value
            case "data":
                event.data.append(value)
            case _:
                pass  # Comments and unknown fields.


def _retry_s(event: StreamEvent) -> float | None:
    asked = event.json().get("retryMs")
    return asked / 1000 if isinstance(asked, int | float) else None
