"""Streams that come back: server-sent events of one address, over lost connections and servers that begin again.

Each event has an id; who comes back sends the last one, and hears the rest. So nothing is lost or told twice.
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
"""A server says every 15 s that it lives: one that was silent for so long is gone, whatever the connection says."""
WAIT_S: Final = 0.5
WAIT_S_MAX: Final = 10.0
CLOSING: Final = "stream.closing"


@dataclass(slots=True)
class StreamEvent:
    """One event as it came."""

    id: str = ""
    """Empty: it is live only."""
    event: str = ""
    data: list[str] = field(default_factory=list[str])

    def json(self) -> JsonObject:
        """Its data, with the `event` it is, and the `id` to go on behind."""
        found: JsonObject = msgspec.json.decode("\n".join(self.data))
        return {**found, "event": self.event} | ({"id": self.id} if self.id else {})


async def told(
    calls: ServerCalls, path: str, query: Query, *, after: str | None, patience_s: float
) -> AsyncGenerator[StreamEvent, None]:
    """The events of an address until the server says that there are no more. Raises what it refuses, and
    `ServerUnreachable` where nothing came of coming back for `patience_s`."""
    last = after
    failed_since: float | None = None
    wait = WAIT_S
    loop = asyncio.get_running_loop()
    while True:
        asked_wait: float | None = None
        try:
            async with aclosing(_once(calls, path, query, last)) as events:
                async for event in events:
                    # Where it ends by itself it is asked again at once: the server says whether there is more.
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
    """There is nothing more to tell."""


class _Away(httpx2.TransportError):
    """Whatever is between here and the server says that it is away."""


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
    """Server-sent events out of lines; some have no more than an id. One that was cut off is none: it comes again."""
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
                pass  # Comments, and what is not for us.


def _retry_s(event: StreamEvent) -> float | None:
    asked = event.json().get("retryMs")
    return asked / 1000 if isinstance(asked, int | float) else None
